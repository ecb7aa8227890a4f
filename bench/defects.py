"""Each row of docs/reliability.md can fail: a deliberate defect in a copy of the code, and the row that it turns red.

    python bench/defects.py [ROW …]

Rows run in their quick form, and only the tests that are named with the defect.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from reliability import PAGE, tell_when, write_line  # noqa: E402

HEADING = "## Deliberate defects"


@dataclass(frozen=True)
class Defect:
    row: str
    what: str
    file: str
    right: str
    wrong: str
    tests: str


DEFECTS = (
    Defect("L3", "who leaves does not end the answer", "answer/ask.py", "        task.cancel()\n", "", "api/test_streaming.py"),
    Defect("L4", "a head may take its time", "api/sockets.py", "self.head_seconds, self", "600, self", "api/test_slow_sockets.py"),
    Defect("L5", "one request more a minute", "api/limits.py", "+ amount > limit", "> limit", "api/test_rate_limit.py"),
    Defect("F1", "points are written before they are noted", "ingest/pipeline.py",
           "        await self.ledger.doom_points(self.job.book_id, [draft.point_id for draft in drafts])\n", "", "ingest/test_kill.py"),
    Defect("F2", "a full disk is no error of ours", "lock.py", "        except OSError as error:\n            raise StorageError(\n                f\"the data folder {home} cannot be written",
           "        except KeyError as error:\n            raise StorageError(\n                f\"the data folder {home} cannot be written", "ingest/test_failing_disk.py"),
    Defect("F3", "429 opens the breaker", "answer/model_calls.py", "outage=status != 429", "outage=True", "answer/test_agent.py"),
    Defect("F5", "the breaker rests for an hour", "breaker.py", "FAILURES, REST_SECONDS = 5, 60.0", "FAILURES, REST_SECONDS = 5, 3600.0", "test_breaker.py"),
    Defect("F6", "a job sent twice is an error", "store/jobs.py", "insert.on_conflict_do_nothing(index_elements=list(once), index_where=OPEN)", "insert", "store/test_jobs.py"),
    Defect("F7", "a missing embedder is not told", "answer/ask.py", "(*self.parts.outages, *outcome.notices)", "outcome.notices", "cli/test_damage.py"),
    Defect("F8", "half a search proves that the book has nothing", "answer/ask.py", "and WORDS_ONLY in notices", "and False", "api/test_services.py"),
    Defect("B2", "what is small is dropped", "book/chunker.py", "    return merged\n\n\ndef _may_merge", "    return [one for one in merged if _size_of(one).tokens > 9]\n\n\ndef _may_merge", "book/test_any_markdown.py"),
    Defect("B3", "front matter of any size", "book/front_matter.py", "MAX_CHARS = 64 * 1024", "MAX_CHARS = 2**30", "book/test_front_matter.py"),
    Defect("B4", "links are followed out of the book", "book/reader.py", "    if target.is_relative_to(home):", "    if True:", "book/test_files.py"),
    Defect("B5", "includes are read from anywhere", "book/reader.py", "if not file.is_relative_to(home) or any(", "if False and any(", "api/test_hostile_books.py"),
    Defect("S8", "a shell runs what it is given", "lock.py", "    handle.truncate(0)\n    # One line", "    os.system(sys.argv[0])\n    # One line", "test_weaknesses.py"),
    Defect("S9", "what is hardly supported is shown", "answer/check/support.py", "BAR = 0.5", "BAR = 0.05", "answer/test_check_attacked.py"),
)  # fmt: skip


def is_red(defect: Defect) -> bool:
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / "copy"
        ignored = shutil.ignore_patterns(".venv*", ".git", ".hypothesis", "__pycache__", ".pytest_cache")
        shutil.copytree(ROOT, copy, ignore=ignored)
        (Path(place) / "shared").symlink_to(ROOT.parent / "shared")
        file = copy / "src" / "askbook" / defect.file
        text = file.read_text()
        assert text.count(defect.right) == 1, (defect.file, defect.right, text.count(defect.right))
        file.write_text(text.replace(defect.right, defect.wrong))
        # Before the path of the installed one.
        environment = {**os.environ, "PYTHONPATH": str(copy / "src")}
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "--reruns",
            "0",
            "--row",
            defect.row,
            f"tests/{defect.tests}",
        ]
        told = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)
        failed = [line for line in told.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
        print(defect.row, told.returncode, *(failed or told.stdout.splitlines()[-1:]), flush=True)
        return told.returncode == 1 and bool(failed)


def main() -> None:
    page = PAGE.read_text(encoding="utf-8")
    if HEADING not in page:
        table = f"\n{HEADING}\n\nEach in a copy of the code, the row in its quick form: `python bench/defects.py`.\n\n"
        table += "| defect in | what is wrong | row | turned red | when (UTC), commit |\n|---|---|---|---|---|\n"
        PAGE.write_text(page + table, encoding="utf-8")
    for defect in DEFECTS:
        if defect.row in sys.argv[1:] or not sys.argv[1:]:
            key = f"{defect.row}: `{defect.file}`"
            if f"| {key} |" not in PAGE.read_text(encoding="utf-8"):
                with PAGE.open("a", encoding="utf-8") as opened:
                    opened.write(f"| {key} |\n")
            write_line(key, [defect.what, defect.row, "yes" if is_red(defect) else "**no**", tell_when()])


if __name__ == "__main__":
    main()
