"""`make torture`: every row of docs/reliability.md in full, or those that are named.

Each row is a run of pytest of its own and writes its line when it ends, so that a run that was broken off goes on with
`left`. What takes an hour and little of the machine runs beside the others; what is judged by seconds runs when nothing
else does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

from reliability import NOT_RUN, ROOT, ROWS, name_version, read_lines

BESIDE, ALONE = ("L6",), ("L4", "L1", "L2")
# Hundreds of models are opened in one process: glibc would keep the memory of each thread's.
ENVIRONMENT = {**os.environ, "MALLOC_ARENA_MAX": "2", "PYTHONDONTWRITEBYTECODE": ""}


def start(row: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "pytest", "-q", "--torture", "--row", row]
    return subprocess.Popen(command, cwd=ROOT, env=ENVIRONMENT)


def choose(named: list[str]) -> list[str]:
    if named == ["left"]:
        version = name_version().rstrip("+")
        return [row for row, cells in read_lines().items() if "yes" not in cells or version not in cells[-1]]
    if unknown := set(named) - ROWS.keys():
        sys.exit(f"there is no row {', '.join(sorted(unknown))}; there are {', '.join(ROWS)}, and left")
    return named or list(ROWS)


def main() -> None:
    rows, started = choose(sys.argv[1:]), time.monotonic()
    beside = [start(row) for row in rows if row in BESIDE]
    for row in [one for one in rows if one not in BESIDE + ALONE]:
        start(row).wait()
    for one in beside:
        one.wait()
    for row in [one for one in ALONE if one in rows]:
        start(row).wait()
    lines = read_lines()
    for row in rows:
        _, cases, bar, measured, held, _ = lines[row]
        print(f"{row} | {cases} | {bar} | {measured} | {held}")
    print(f"{len(rows)} rows in {(time.monotonic() - started) / 60:.0f} minutes")
    sys.exit(any(lines[row][4] not in ("yes", NOT_RUN) for row in rows))


if __name__ == "__main__":
    main()
