"""What the tests start by fork is a process like any other."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import processes

LINES = (
    "import os, sys; print(sys.argv[1:], os.getcwd(), dict(os.environ), input()); print('no', file=sys.stderr); exit(3)"
)


def test_it_has_arguments_folder_environment_input_and_output_of_its_own(tmp_path: Path) -> None:
    done = processes.run([sys.executable, "-c", LINES, "a", "b"], cwd=tmp_path, env={"ONE": "1"}, typed="é\n")
    assert (done.returncode, done.stderr) == (3, "no\n")
    assert done.stdout == f"['a', 'b'] {tmp_path} {{'ONE': '1'}} é\n"


def test_a_file_is_run_as_python_runs_it(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("WORD = 'found'\n")
    file = tmp_path / "main.py"
    file.write_text("import sys, beside\nassert __name__ == '__main__'\nraise ValueError(beside.WORD, *sys.argv[1:])\n")
    done = processes.run([sys.executable, file, "x"])
    assert done.returncode == 1 and done.stderr.endswith("ValueError: ('found', 'x')\n")


def test_a_signal_ends_it_and_so_does_patience() -> None:
    done = processes.run([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"])
    assert done.returncode == -signal.SIGKILL
    with pytest.raises(subprocess.TimeoutExpired):
        processes.run([sys.executable, "-c", "import time; time.sleep(60)"], timeout=0.2)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_where_it_is_forked_there_is_one_thread() -> None:
    """Another one would be lost, with whatever it holds."""
    assert processes.run([sys.executable, "-c", ""]).returncode == 0
    parent, _ = processes.start_parent()
    assert len(list(Path(f"/proc/{parent.pid}/task").iterdir())) == 1
