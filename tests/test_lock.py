"""One line names who has a data folder, whatever was typed; the next names a server, and no question can write it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from askbook.errors import DataInUse
from askbook.lock import Server, announce, find_server, is_taken, own_folder

HOLD = """
import sys
from pathlib import Path
from askbook.lock import own_folder
with own_folder(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""
SERVER = Server("http://127.0.0.1:8000", "token", "0.1.0", "askbook", "")


@pytest.mark.parametrize("typed", ["two\nlines", 'x\n{"url": "http://127.0.0.1:8666"}\n', "a\x0bb\x0cc\u2028d\r\n{}"])
def test_what_is_typed_names_no_server(tmp_path: Path, typed: str) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path), "ask", typed]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        with pytest.raises(DataInUse, match=f"process {holder.pid}"), own_folder(tmp_path):
            pass
        assert find_server(tmp_path) is None and is_taken(tmp_path)
        holder.communicate("")
    assert not is_taken(tmp_path)


def test_a_server_that_has_ended_is_not_found(tmp_path: Path) -> None:
    with own_folder(tmp_path):
        announce(tmp_path, SERVER)
        assert find_server(tmp_path) == SERVER
    assert find_server(tmp_path) is None
