"""Each row of docs/reliability.md can fail: a deliberate defect in a copy of the code, and the row that it turns red.
Each weakness that was found by attack, 1 to 9, has a test: its mend is taken out, and the test is red.

    python bench/defects.py [ROW …]

Rows run in their quick form, where they have one, and only the tests that are named with the defect.
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
from reliability import PAGE, ROWS, tell_when, write_line  # noqa: E402

LONG = ("L6", "M1")
"""Rows that have no quick form. The hour of L6 has two minutes here."""
HEADING = "## Deliberate defects"


@dataclass(frozen=True)
class Defect:
    row: str
    what: str
    file: str
    right: str
    wrong: str
    tests: str

    @property
    def seen_by(self) -> str:
        return self.row if self.row in ROWS else f"`tests/{self.tests}`"


DEFECTS = (
    Defect("L3", "who leaves does not end the answer", "answer/sending.py", "        task.cancel()\n", "",
           "api/test_streaming.py"),
    Defect("L4", "a head may take its time", "api/sockets.py", "self.head_seconds, self", "600, self",
           "api/test_slow_sockets.py"),
    Defect("L5", "one request more a minute", "api/limits.py", "len(window) + cost <=", "len(window) <=",
           "api/test_rate_limit.py"),
    Defect("F1", "points are written before they are noted", "ingest/pipeline.py",
           "        await self.ledger.doom_points(self.job.book_id, [draft.point_id for draft in drafts])\n", "",
           "ingest/test_kill.py"),
    Defect("F2", "a full disk is no error of ours", "lock.py",
           "        except OSError as error:\n            raise StorageError(\n"
           "                f\"the data folder {home} cannot be written",
           "        except KeyError as error:\n            raise StorageError(\n"
           "                f\"the data folder {home} cannot be written", "ingest/test_failing_disk.py"),
    Defect("F3", "429 opens the breaker", "answer/model_calls.py", "outage=status != 429", "outage=True",
           "answer/test_agent.py"),
    Defect("F5", "the breaker rests for an hour", "breaker.py", "FAILURES, REST_SECONDS = 5, 60.0",
           "FAILURES, REST_SECONDS = 5, 3600.0", "test_breaker.py"),
    Defect("F6", "a job sent twice is an error", "store/jobs.py",
           "insert.on_conflict_do_nothing(index_elements=list(once), index_where=OPEN)", "insert",
           "store/test_jobs.py"),
    Defect("F7", "a missing embedder is not told", "answer/ask.py", "(*self.parts.outages, *outcome.notices)",
           "outcome.notices", "cli/test_damage.py"),
    Defect("F8", "half a search proves that the book has nothing", "answer/ask.py", "and WORDS_ONLY in notices",
           "and False", "api/test_services.py"),
    Defect("B2", "what is small is dropped", "book/chunker.py", "    return merged\n\n\ndef _may_merge",
           "    return [one for one in merged if _size_of(one).tokens > 9]\n\n\ndef _may_merge",
           "book/test_any_markdown.py"),
    Defect("B3", "front matter of any size", "book/front_matter.py", "MAX_CHARS = 64 * 1024", "MAX_CHARS = 2**30",
           "book/test_front_matter.py"),
    Defect("B4", "links are followed out of the book", "book/reader.py", "    if entry.is_symlink():",
           "    if False:", "book/test_files.py"),
    Defect("B5", "includes are read from anywhere", "book/reader.py", "if not file.is_relative_to(home) or any(",
           "if False and any(", "api/test_hostile_books.py"),
    Defect("S8", "a shell runs what it is given", "lock.py", "            handle.truncate(0)\n            # One line",
           "            os.system(sys.argv[0])\n            # One line", "test_weaknesses.py"),
    Defect("L1", "all keys share one minute", "api/callers.py", "await limiter.spend(key_id, cost)",
           'await limiter.spend("all", cost)', "api/test_load.py"),
    Defect("L2", "who searches while something is written is turned away", "index/vectors/edge.py",
           "        return await self._run(lambda: self._open_shard.query(request))",
           '        if self._thread._work_queue.qsize():\n            raise IndexUnavailable("busy")\n'
           '        return await self._run(lambda: self._open_shard.query(request))', "api/test_load.py"),
    Defect("L6", "what is kept holds 200 KB more", "cache.py", "            self._values[key] = value\n",
           "            self._values[key] = value\n"
           "            self._more = [*getattr(self, '_more', ()), bytes(range(200)) * 1000]\n", "api/test_soak.py"),
    Defect("F4", "an index that is down is not told", "api/routes/health.py",
           ' if parts["index"].state == "up" else "disconnected"', "", "api/test_services.py"),
    Defect("B1", "NUL and halves of characters come in", "api/requests.py", "return database.to_storable(value)",
           "return value", "api/test_fuzz.py"),
    Defect("S1", "a tenant's books are everybody's", "domain.py",
           "return tenant == self.tenant and (self.books is None", "return (self.books is None", "api/test_tenancy.py"),
    Defect("S2", "every key is an admin's", "api/callers.py", 'if caller.role != "admin":', "if False:",
           "api/test_key_matrix.py"),
    Defect("S3", "an address is taken as it is", "web/markdown.js",
           "  const address = safeAddress(url);\n"
           "  if (!address || !options.mayLink || !options.mayLink(address)) return words;",
           "  const address = url;\n  if (!address) return words;", "web/test_hostile.py"),
    Defect("S4", "links, pictures and HTML of a model are shown", "answer/citations.py",
           "text = keep_book_links(unlink_marks(clean(cut.text)), self.is_book_link)", "text = cut.text",
           "answer/test_injections.py"),
    Defect("S6", "keys are logged", "api/logs.py", 'KEY.sub("***", super().format(record))', "super().format(record)",
           "api/test_callers.py"),
    Defect("S7", "redirects are followed", "answer/model_calls.py", "            base_url=base_url,\n",
           "            base_url=base_url,\n            follow_redirects=True,\n", "answer/test_agent.py"),
    Defect("M1", "nothing is checked", "answer/check/support.py", "BAR = 0.5", "BAR = 0.0",
           "answer/test_real_model.py"),
    Defect("S9", "any number is as good as another", "answer/check/literals.py",
           "and math.isclose(abs(ours.value), abs(theirs.value))", "", "answer/test_check_attacked.py"),
    Defect("S9", "what is hardly supported is shown", "answer/check/support.py", "BAR = 0.5", "BAR = 0.05",
           "answer/test_check_attacked.py"),
    Defect("1", "a pattern that reads a model tries each blank anew", "answer/check/marks.py",
           r"(?<!\s)\s*+(?<!\\)\[", r"\s*(?<!\\)\[",
           "test_linear.py::test_every_pattern_that_reads_foreign_text_is_linear"),
    Defect("2", "signs of a proxy are not looked at", "api/callers.py",
           " or any(map(_PROXY.fullmatch, request.headers.keys()))", "",
           "api/test_callers.py::test_any_sign_of_a_proxy_means_not_from_here"),
    Defect("3", "no vector is proved", "ingest/verify.py", "        if embeds:\n            stored",
           "        if False:\n            stored", "cli/test_damage.py::test_verify_proves_what_the_index_holds"),
    Defect("4", "a first key locks the owner out", "api/callers.py", "(not text or not await keys.were_made())",
           "not await keys.were_made()", "api/test_callers.py::test_the_owner_stays_the_owner_whatever_keys_are_made"),
    Defect("5", "beside a server nothing works", "wiring.py", "if server is None or to_itself:", "if True:",
           "cli/test_beside_a_server.py::test_python_goes_through_the_server_too"),
    Defect("6", "no book stands for `askbook` where there are several", "api/routes/openai.py",
           "if model == ANY_BOOK and len(books) > 1:", "if False:",
           "api/test_openai.py::test_a_default_book_where_there_are_several"),
    Defect("7", "what a server's own address is, is not known", "api/middleware.py",
           "at_home(self.public_url or _read_home(scope, sent))", "at_home(self.public_url)",
           "api/test_mcp.py::test_every_tool_over_http"),
    Defect("8", "a delivery is known by its id, which is not signed", "api/routes/ingestion.py",
           "f\"{signature}:{book_id or ''}\"", "f\"{delivery}:{book_id or ''}\"",
           "api/test_webhook.py::test_what_was_recorded_cannot_be_sent_again_under_another_id"),
    Defect("9", "1.0 is no whole number", "api/requests.py", "value.is_integer() and abs(value) < EXACT", "False",
           "api/test_sessions.py::test_a_whole_number_however_json_writes_it"),
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
        environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "SOAK_MINUTES": "2"}
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "--reruns",
            "0",
            *(["--row", defect.row] if defect.row in ROWS else []),
            *(["--torture"] if defect.row in LONG else []),
            f"tests/{defect.tests}",
        ]
        told = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)
        failed = [line for line in told.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
        print(defect.row, told.returncode, *(failed or told.stdout.splitlines()[-1:]), flush=True)
        return told.returncode == 1 and bool(failed)


def main() -> None:
    page = PAGE.read_text(encoding="utf-8")
    if HEADING not in page:
        table = (
            f"\n{HEADING}\n\nEach in a copy of the code, the row in its quick form: `python bench/defects.py`. "
            "Numbers are weaknesses that were found by attack, each with its mend taken out.\n\n"
        )
        table += (
            "| defect in | what is wrong | row or test | turned red | when (UTC), commit |\n|---|---|---|---|---|\n"
        )
        PAGE.write_text(page + table, encoding="utf-8")
    for defect in DEFECTS:
        if defect.row in sys.argv[1:] or not sys.argv[1:]:
            key = f"{defect.row}: `{defect.file}`"
            if f"| {key} |" not in PAGE.read_text(encoding="utf-8"):
                with PAGE.open("a", encoding="utf-8") as opened:
                    opened.write(f"| {key} |\n")
            write_line(key, [defect.what, defect.seen_by, "yes" if is_red(defect) else "**no**", tell_when()])


if __name__ == "__main__":
    main()
