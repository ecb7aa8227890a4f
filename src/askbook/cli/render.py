"""How things look in a terminal. Results go to stdout; progress, notices and errors to stderr."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterator, Sequence

from pydantic import BaseModel
from rich.console import Console
from rich.text import Text

from askbook.answer.confidence import relevance_of
from askbook.api.problems import to_problem
from askbook.domain import Job, Problem, SearchOutcome
from askbook.errors import AskbookError, JobFailed
from askbook.index.keywords import split_terms

# A pipe gets whole lines; only a terminal has a width to wrap at.
out = Console(
    highlight=False, markup=False, soft_wrap=not sys.stdout.isatty(), width=None if sys.stdout.isatty() else 200
)
err = Console(stderr=True, highlight=False, markup=False, soft_wrap=not sys.stderr.isatty())

SNIPPET_CHARACTERS = 420
PROBLEMS_SHOWN = 10

WORD = re.compile(r"\w[\w'’-]*")


def print_json(body: BaseModel) -> None:
    sys.stdout.write(body.model_dump_json(indent=2) + "\n")


def say_error(error: AskbookError, as_json: bool) -> None:
    if as_json:
        print_json(to_problem(error))
    err.print(Text.assemble(("error: ", "bold red"), clean(error.message)))
    if error.hint:
        err.print(Text(clean(error.hint)))


def clean(text: str) -> str:
    """Without the characters that command a terminal or reorder what is read."""
    return "".join(
        character
        for character in text
        if character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cf", "Cs")
    )


def show_outcome(outcome: SearchOutcome) -> None:
    wanted = set(split_terms(outcome.query))
    if not outcome.passages:
        out.print(f"Nothing in {outcome.filters.book_id} fits. Try other words, or fewer filters.")
    for passage in outcome.passages:
        chunk = passage.chunk
        out.print()
        out.print(Text.assemble((f"{passage.rank}. ", "bold"), (clean(" › ".join(chunk.heading_path)), "bold cyan")))
        place = f"   {chunk.source_file}:{chunk.first_line}–{chunk.last_line}   score {relevance_of(passage):.2f}"
        out.print(Text(clean(place), style="dim"))
        for line in _marked(_snippet(chunk.text, wanted), wanted).split("\n", allow_blank=False):
            out.print(Text("   ") + line)


def _snippet(text: str, wanted: set[str]) -> str:
    """The run of lines that holds most of the wanted words."""
    lines = [line for line in clean(text).splitlines() if line.strip()]
    best = max(range(len(lines)), key=lambda at: (_matches(_run_from(lines, at), wanted), -at))
    return _run_from(lines, best)


def _run_from(lines: Sequence[str], start: int) -> str:
    run = lines[start]
    for line in lines[start + 1 :]:
        if len(run) + len(line) > SNIPPET_CHARACTERS:
            break
        run = f"{run}\n{line}"
    return run if len(run) <= SNIPPET_CHARACTERS * 2 else f"{run[: SNIPPET_CHARACTERS * 2]}…"


def _matches(text: str, wanted: set[str]) -> int:
    return len(wanted & set(split_terms(text)))


def _marked(text: str, wanted: set[str]) -> Text:
    """Bold in a terminal, *starred* where there is no bold."""
    marked = Text()
    for word, matches in _words(text, wanted):
        if matches and not out.is_terminal:
            word = f"*{word}*"
        marked.append(word, style="bold yellow" if matches else "")
    return marked


def _words(text: str, wanted: set[str]) -> Iterator[tuple[str, bool]]:
    at = 0
    for word in WORD.finditer(text):
        yield text[at : word.start()], False
        yield word[0], not wanted.isdisjoint(split_terms(word[0]))
        at = word.end()
    yield text[at:], False


def show_finished(job: Job) -> None:
    """What an ingestion changed and what was wrong; raises where it failed."""
    if job.status == "failed":
        raise JobFailed(f"job {job.job_id} failed: {job.error_message}")
    out.print(
        Text.assemble(
            (f"{job.book_id} ", "bold"),
            f"is up to date: {job.files_processed} files processed, {job.files_skipped} skipped of {job.files_total}; "
            f"{job.chunks_created} chunks new, {job.chunks_deleted} gone, {job.chunks_embedded} embedded; "
            f"{job.duration_seconds or 0} s",
        )
    )
    show_problems(job.problems)


def show_problems(problems: Sequence[Problem]) -> None:
    for problem in problems[:PROBLEMS_SHOWN]:
        kind = ("skipped ", "bold red") if problem.skipped else ("warning ", "yellow")
        err.print(Text.assemble(kind, clean(f"{problem.source_file}: {problem.message}")))
    if len(problems) > PROBLEMS_SHOWN:
        err.print(f"… and {len(problems) - PROBLEMS_SHOWN} more: askbook jobs JOB_ID --json lists them all")
