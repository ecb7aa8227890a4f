"""Python in processes of their own that have askbook's rooms imported already.

To import them takes each process half a second, and the tests start hundreds. So one process imports them, and every
other is forked from it: its arguments, environment, folder, input, output and exit code are its own, and the door it
goes through, such as askbook.cli, is imported by itself. What a process imports, and when, is no question for these,
nor how Python takes apart at the end what it was forked with: that would copy all of it first, which takes longer than
most commands.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOMS = ("askbook.wiring", "askbook.api.app", "alembic.command", "rich.console", "typer")
"""None of them starts a thread, which a fork would lose."""


class Process:
    """As much of `subprocess.Popen` as the tests use."""

    def __init__(
        self,
        command: Sequence[str | Path],
        cwd: Path | None,
        env: Mapping[str, str] | None,
        files: tuple[int, int, int],
    ) -> None:
        """`python -c lines …` or `python file …`; the files are what it reads and where it writes."""
        self.args = [str(one) for one in command]
        assert self.args[0] == sys.executable
        self.returncode: int | None = None
        self._socket, theirs = socket.socketpair()
        self._talk = self._socket.makefile("rw")
        with theirs:
            socket.send_fds(start_parent()[1], [b"."], [theirs.fileno(), *files])
        json.dump([self.args[1:], str(cwd or Path.cwd()), dict(os.environ if env is None else env)], self._talk)
        self._talk.write("\n")
        self._talk.flush()
        self.pid = int(self._talk.readline())

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0.001)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._socket], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.returncode = int(self._talk.readline())
            self._talk.close()
            self._socket.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def run(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    typed: str = "",
    timeout: float = 120,
) -> subprocess.CompletedProcess[str]:
    """As `subprocess.run` would."""
    reading, writing = os.pipe()
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as output,
        tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
        os.fdopen(writing, "w", encoding="utf-8") as keyboard,
    ):
        process = Process(command, cwd, env, (reading, output.fileno(), errors.fileno()))
        os.close(reading)
        with contextlib.suppress(BrokenPipeError):
            keyboard.write(typed)
            keyboard.close()
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        output.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(process.args, status, output.read(), errors.read())


@functools.cache
def start_parent() -> tuple[subprocess.Popen[bytes], socket.socket]:
    """The process that all others are forked from. It ends when this one does, for then nobody speaks to it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            # Otherwise numpy starts threads.
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
    return process, ours


# --- in the process that they are forked from -----------------------------------------------------


def _fork_on(orders: socket.socket) -> list[str]:
    """Returns in each of those that were forked, with what it is to run."""
    for room in ROOMS:
        __import__(room)
    gc.freeze()
    while True:
        _, files, *_ = socket.recv_fds(orders, 1, 4)
        if not files:
            sys.exit()
        if not os.fork():
            orders.close()
            return _become(*files)
        for file in files:
            os.close(file)
        while _reap():
            pass


def _reap() -> bool:
    try:
        return os.waitpid(-1, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return False


def _become(talk: int, *files: int) -> list[str]:
    """Of the two that come out of it, one tells the exit code of the other."""
    with socket.socket(fileno=talk) as asker, asker.makefile("rw") as lines:
        arguments, folder, environment = json.loads(lines.readline())
        if process := os.fork():
            lines.write(f"{process}\n")
            lines.flush()
            lines.write(f"{os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])}\n")
            lines.flush()
            os._exit(0)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    return arguments


_status: list[int] = []


def _leave() -> None:
    """The last that Python does before it takes itself apart. What C does at its end is done."""
    if _status:
        with contextlib.suppress(OSError, ValueError):  # Python says so itself.
            sys.stdout.flush()
            sys.stderr.flush()
            ctypes.PyDLL(None).exit(_status[0])


if __name__ == "__main__":
    # What is registered first is called last.
    atexit.register(_leave)
    program, *given = _fork_on(socket.socket(fileno=int(sys.argv[1])))
    try:
        if program == "-c":
            sys.argv[:], sys.path[0] = ["-c", *given[1:]], ""
            exec(given[0], {"__name__": "__main__"})
        else:
            sys.argv[:] = [program, *given]
            sys.path[0] = str(Path(program).parent)
            runpy.run_path(program, run_name="__main__")
        _status.append(0)
    except SystemExit as end:
        if isinstance(end.code or 0, int):
            _status.append(int(end.code or 0) & 0xFF)
        raise
