"""The rows of docs/reliability.md: what each promises, and how its line gets there.

A test belongs to a row by `pytest.mark.row("F1")`; `pytest --row F1` runs a row, `--torture` in its long form, and
writes its line.
"""

from __future__ import annotations

import fcntl
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reliability.md"
NOT_RUN = "did not run"


@dataclass(frozen=True)
class Row:
    tries: str
    bar: str


ROWS = {
    "L1": Row("50 readers with 50 keys, 5 min, a stand-in model (2 s, p95 4 s)", "p95 < 5 s; own p95 < 300 ms; no 5xx"),
    "L2": Row("L1 while a book is ingested", "as L1; no read fails"),
    "L3": Row(
        "300 streams left before the first byte, after it, midway", "all gone within 2 s; nothing half is stored"
    ),
    "L4": Row("200 slow sockets beside 10 readers", "closed within 15 s; p95 at most 20 % worse"),
    "L5": Row("rate limit: bursts, spoofed addresses, two processes", "≤ 100 a minute a key; 429 with Retry-After"),
    "L6": Row("60 min of mixed traffic with reading and edits", "RSS at the end ≤ 1.05 × that after a third; no 5xx"),
    "F1": Row("kill -9 at every named point of an ingestion × 25", "equal to a clean run; no lesson ever torn"),
    "F2": Row("the n-th write, fsync or HTTP call fails", "nothing damaged; a retry completes"),
    "F3": Row("the model fails, in every way", "typed error in time; ≤ 3 tries, none after the first word; breaker"),
    "F4": Row("index or database down, hung, back", "503 within 3 s; /ready says which; back within 10 s"),
    "F5": Row("the clock jumps", "limiter and breaker stuck ≤ 60 s"),
    "F6": Row("the same job 20 times at once", "one run, one id"),
    "F7": Row(
        "weights, index, database: 20 byte ranges each, or deleted",
        "told with what to do, or a right answer; mended; never a wrong refusal",
    ),
    "F8": Row("each service down, hung, back", "health says so; what is left answers and says so"),
    "B1": Row("every route fuzzed, both databases", "10,000 cases; no 5xx, no traceback, none > 10 s"),
    "B2": Row("5,000 generated Markdown files, and crafted ones", "every character in a chunk; ≤ 2 s a MB; ≤ 512 MB"),
    "B3": Row("hostile front matter", "refused within 100 ms, the job goes on"),
    "B4": Row("paths, links, pipes, devices", "nothing read outside the book"),
    "B5": Row("hostile books of every generator, ingested, asked, read", "refused or harmless, named in a warning"),
    "S1": Row("3 tenants, 10,000 random operations", "no canary crosses; a foreign id is 404"),
    "S2": Row("every route × every kind of key", "all as expected; a new route needs a row"),
    "S3": Row("hostile answers and citations in a real browser", "no script, no remote picture, no open CORS"),
    "S4": Row("30 injections, a model that obeys each", "nothing gets out"),
    "S6": Row("secrets in every run", "none in logs, bodies, database, metrics"),
    "S7": Row("loopback-only network; addresses in books and questions", "no connection but to what is configured"),
    "S8": Row("dependency audit; bandit's rules", "no known weakness; nothing found"),
    "M1": Row("a real small model writes 50 answers", "no number, code or quote that is not the book's"),
    "S9": Row(
        "the check under attack: 40 true and 40 false sentences a kind",
        "true kept ≥ .92, false caught ≥ .80, nothing smuggled; linear",
    ),
}


def write_line(key: str, cells: Sequence[str]) -> str:
    """Replaces the line of the page that begins with this key, and no other."""
    line = f"| {' | '.join((key, *(cell.replace('|', '/').replace(chr(10), ' ') for cell in cells)))} |"
    with PAGE.open("r+", encoding="utf-8") as page:
        fcntl.flock(page, fcntl.LOCK_EX)
        lines = [line if one.startswith(f"| {key} |") else one for one in page.read().splitlines()]
        page.seek(0)
        page.truncate()
        page.write("\n".join(lines) + "\n")
    return line


def read_lines() -> dict[str, list[str]]:
    """The cells of each row that the page tells of."""
    lines = (line.strip("| \n").split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines())
    return {cells[0]: cells[1:] for cells in lines if cells[0] in ROWS}


def name_version() -> str:
    """The commit; a plus says that something but the page itself is not committed."""
    git = ["git", "-C", str(ROOT)]
    commit = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    changed = subprocess.run([*git, "status", "--porcelain", "--", ".", f":!{PAGE}"], capture_output=True).stdout
    return (commit or "?") + ("+" if changed else "")


def tell_when() -> str:
    return f"{time.strftime('%Y-%m-%d %H:%M', time.gmtime())}, {name_version()}"
