"""F2: the n-th write, fsync or truncation of an ingestion fails, as the kernel says it. No damage, and a retry ends."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import processes
from cli.serving import ASKBOOK, build_environment
from figures import Figure

pytestmark = [pytest.mark.row("F2"), pytest.mark.timeout(3600)]

CALLS = {"pwrite64": "ENOSPC", "fsync": "EIO", "fdatasync": "EIO", "ftruncate": "ENOSPC", "msync": "EIO"}
QUESTION, ANSWER = "With what force does the gripper close?", "40 newtons"
MOST = 12
"""Of each call so many n, spread over all there are."""


def _run(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return processes.run([*ASKBOOK, *arguments], cwd=place, env=build_environment(place / "home"))


def _run_under(tracer: tuple[str, ...], place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """In a process that is traced from its beginning."""
    return subprocess.run(
        [*tracer, *ASKBOOK, *arguments],
        capture_output=True,
        text=True,
        cwd=place,
        env=build_environment(place / "home"),
        stdin=subprocess.DEVNULL,
        timeout=120,
    )


def _trace(place: Path, call: str, *more: str) -> tuple[str, ...]:
    return ("strace", "-f", "--seccomp-bpf", "-qq", "-o", str(place / "trace"), "-e", f"trace={call}", *more)


def _write(place: Path) -> None:
    (place / "book").mkdir(parents=True)
    for number in range(4):
        (place / "book" / f"{number}.md").write_text(
            f"# Gear {number}\n\nGear {number} turns {number}0 times a minute.\n"
        )
    (place / "book" / "gripper.md").write_text("# Gripper\n\nThe gripper closes with a force of 40 newtons.\n")


def _may_trace() -> bool:
    tried = ["strace", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", "true"]
    return shutil.which("strace") is not None and subprocess.run(tried, capture_output=True).returncode == 0


@pytest.mark.parametrize("call", CALLS)
def test_the_nth_call_fails(call: str, tmp_path: Path, torture: bool, figure: Figure) -> None:
    if not _may_trace():
        pytest.skip("there is no strace here, or it may not trace")
    _write(tmp_path / "whole")
    assert _run_under(_trace(tmp_path, call), tmp_path / "whole", "ingest", "book").returncode == 0
    # Each thread counts for itself: the busiest one's calls are all there are to fail.
    threads = [line.split()[0] for line in (tmp_path / "trace").read_text().splitlines() if f" {call}(" in line]
    count = max((threads.count(one) for one in set(threads)), default=0)
    chosen = sorted({1 + at * count // MOST for at in range(MOST)} if torture else {1, count // 2 + 1}) if count else []
    failed = 0
    for nth in chosen:
        place = tmp_path / f"{nth}"
        _write(place)
        injected = _trace(tmp_path, call, "-e", f"inject={call}:error={CALLS[call]}:when={nth}")
        broken = _run_under(injected, place, "ingest", "book")
        failed += broken.returncode != 0
        assert "Traceback" not in broken.stderr, (nth, broken.stderr)
        again = _run(place, "ingest", "book")
        again = again if again.returncode == 0 else _run(place, "verify", "--repair")
        assert again.returncode == 0, (nth, again.stderr)
        assert _run(place, "verify").returncode == 0, nth
        assert ANSWER in _run(place, "ask", QUESTION).stdout, nth
        shutil.rmtree(place)
    figure(f"F2: {call}: {len(chosen)} of {count} failed, one at a time; {failed} ended the job", cases=len(chosen))
