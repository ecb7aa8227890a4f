"""Python in processes of their own that have askbook's rooms imported already.

To import them takes each process half a second, and the tests start hundreds. So one process imports them, and every
other is forked from it: its arguments, environment, folder, input, output and exit code are its own, and the door it goes
through, such as askbook.cli, is imported by itself. What a process imports, and when, is no question for these.
"""

from __future__ import annotations

import functools
import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOMS = ("askbook.wiring", "askbook.api.app", "alembic.command", "rich.console", "typer")
"""None of them starts a thread, which a fork would lose."""


def run(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    typed: str = "",
    timeout: float = 120,
) -> subprocess.CompletedProcess[str]:
    """As `subprocess.run` would: `python -c lines …` or `python file …`."""
    arguments = [str(one) for one in command]
    assert arguments[0] == sys.executable
    ours, theirs = socket.socketpair()
    reading, writing = os.pipe()
    with (
        ours,
        ours.makefile("rw") as talk,
        tempfile.TemporaryFile("w+", encoding="utf-8") as output,
        tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
    ):
        socket.send_fds(_start()[1], [b"."], [theirs.fileno(), reading, output.fileno(), errors.fileno()])
        theirs.close()
        os.close(reading)
        json.dump([arguments[1:], str(cwd or Path.cwd()), dict(os.environ if env is None else env)], talk)
        talk.write("\n")
        talk.flush()
        with os.fdopen(writing, "w", encoding="utf-8") as keyboard:
            keyboard.write(typed)
        process = int(talk.readline())
        ours.settimeout(timeout)
        try:
            status = int(talk.readline())
        except TimeoutError:
            os.kill(process, signal.SIGKILL)
            raise subprocess.TimeoutExpired(arguments, timeout) from None
        output.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(arguments, status, output.read(), errors.read())


@functools.cache
def _start() -> tuple[subprocess.Popen[bytes], socket.socket]:
    """The process that all others are forked from. It ends when this one does, for then nobody speaks to it any more."""
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


if __name__ == "__main__":
    program, *given = _fork_on(socket.socket(fileno=int(sys.argv[1])))
    if program == "-c":
        sys.argv[:], sys.path[0] = ["-c", *given[1:]], ""
        exec(given[0], {"__name__": "__main__"})
    else:
        sys.argv[:] = [program, *given]
        sys.path[0] = str(Path(program).parent)
        runpy.run_path(program, run_name="__main__")
