"""The list of commands is shown at once: none of them is imported for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from askbook.cli.main import COMMANDS, load_command, read_line
from figures import Figure

HEAVY = ("askbook.wiring", "numpy", "onnxruntime", "pydantic", "sqlalchemy")
LISTING = f"""
import sys, time
from askbook.cli.main import app
try:
    app(["--help"])
except SystemExit:
    print("CPU", time.process_time(), "LOADED", [name for name in {HEAVY} if name in sys.modules])
"""


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_listed_with_the_first_paragraph_of_its_help(name: str) -> None:
    written = load_command(name).help or ""
    assert " ".join(written.split("\n\n")[0].split()) == read_line(name)


def test_the_list_of_commands_imports_none_of_them(figure: Figure) -> None:
    ran = subprocess.run([sys.executable, "-c", LISTING], capture_output=True, text=True, check=True)
    told = ran.stdout.splitlines()[-1]
    assert told.endswith("LOADED []")
    assert all(f" {name} " in ran.stdout for name in COMMANDS)
    figure(f"askbook --help: {float(told.split()[1]):.2f} s of CPU")
