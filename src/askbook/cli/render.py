"""How things look in a terminal. Results go to stdout; progress, notices and errors to stderr."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pydantic import BaseModel
from rich.console import Console
from rich.text import Text

from askbook.answer.cleaning import clean
from askbook.cli.formulas import show_formulas
from askbook.domain import (
    Answer,
    AnswerEvent,
    Job,
    PassagesFound,
    Problem,
    Refusal,
    Replied,
    Searching,
    SearchOutcome,
    StateChanged,
    Tried,
    to_mark,
)
from askbook.errors import AskbookError, JobFailed
from askbook.index.keywords import split_terms
from askbook.settings import load_settings
from askbook.shapes.body import at_home
from askbook.shapes.problems import to_problem

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

# A pipe gets whole lines; only a terminal has a width to wrap at.
out = Console(
    highlight=False, markup=False, soft_wrap=not sys.stdout.isatty(), width=None if sys.stdout.isatty() else 200
)
err = Console(stderr=True, highlight=False, markup=False, soft_wrap=not sys.stderr.isatty())

SNIPPET_CHARACTERS = 420
PROBLEMS_SHOWN = 10

WORD = re.compile(r"\w[\w'’-]*")


def print_json(body: BaseModel) -> None:
    with at_home(load_settings().askbook_public_url):
        _write_json(body)


def _write_json(body: BaseModel) -> None:
    sys.stdout.write(body.model_dump_json(indent=2) + "\n")


def say_error(error: AskbookError, as_json: bool) -> None:
    if as_json:
        _write_json(to_problem(error))
    err.print(Text.assemble((f"error {error.code}: " if error.code else "error: ", "bold red"), clean(error.message)))
    if error.hint:
        err.print(Text(clean(error.hint)))


@contextmanager
def progress_bar(*columns: ProgressColumn, refreshes: float = 10) -> Iterator[Progress]:
    """On stderr, and only where that is a terminal."""
    from rich.progress import Progress, TimeRemainingColumn

    shown = (*columns, TimeRemainingColumn())
    with Progress(
        *shown, console=err, transient=True, disable=not err.is_terminal, refresh_per_second=refreshes
    ) as bar:
        yield bar


def show_outcome(outcome: SearchOutcome) -> None:
    wanted = set(split_terms(outcome.query))
    if not outcome.passages:
        out.print(f"Nothing in {outcome.filters.book_id} fits. Try other words, or fewer filters.")
    for passage in outcome.passages:
        chunk = passage.chunk
        out.print()
        out.print(Text.assemble((f"{passage.rank}. ", "bold"), (clean(chunk.way), "bold cyan")))
        place = f"   {chunk.source_file}:{chunk.first_line}–{chunk.last_line}   score {passage.rating:.2f}"
        out.print(Text(clean(place), style="dim"))
        for line in _marked(_snippet(chunk.text, wanted), wanted).split("\n", allow_blank=False):
            out.print(Text("   ") + line)


def _snippet(text: str, wanted: set[str]) -> str:
    """The run of lines that holds most of the wanted words."""
    lines = [line for line in show_formulas(clean(text)).splitlines() if line.strip()]
    best = max(range(len(lines)), key=lambda at: (len(wanted & set(split_terms(_run_from(lines, at)))), -at))
    return _run_from(lines, best)


def _run_from(lines: Sequence[str], start: int) -> str:
    run = lines[start]
    for line in lines[start + 1 :]:
        if len(run) + len(line) > SNIPPET_CHARACTERS:
            break
        run = f"{run}\n{line}"
    return run if len(run) <= SNIPPET_CHARACTERS * 2 else f"{run[: SNIPPET_CHARACTERS * 2]}…"


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


# --- answers --------------------------------------------------------------------------------------


def show_reply(replied: Replied, before: str) -> None:
    """The sources after an answer's text, or a whole refusal."""
    if isinstance(replied.reply, Refusal):
        _show_refusal(replied.reply, before)
    else:
        _show_sources(replied.reply)
    out.print(Text(_summarise(replied), style="dim"))


def _show_sources(answer: Answer) -> None:
    out.print("\n")
    for notice in answer.notices:
        out.print(Text(notice, style="yellow"))
    out.print("---")
    out.print(Text("**Sources:**", style="bold"))
    for source in answer.sources:
        chunk = source.passage.chunk
        place = f" · {chunk.source_file}:{chunk.first_line}" if chunk.source_file else ""
        line = f"{to_mark(source.number)} {chunk.url or source.title} (score: {source.passage.rating:.2f})"
        # The terminal wraps it: an address with a line break in it could not be clicked or copied.
        out.print(Text(clean(line)), soft_wrap=True)
        sections = " · ".join(dict.fromkeys(quote.section for quote in source.quotes)) or source.title
        out.print(Text(clean(f"    {sections}{place}"), style="dim"), soft_wrap=True)


def _show_refusal(refusal: Refusal, before: str) -> None:
    out.print(Text.assemble(before, (f"{clean(refusal.text)}.", "bold")))
    if refusal.advice != refusal.text:
        out.print(Text(clean(refusal.advice)))
    for notice in refusal.notices:
        out.print(Text(notice, style="yellow"))
    if refusal.nearest:
        out.print("\nThe closest I have:")
    for passage in refusal.nearest:
        chunk = passage.chunk
        out.print(Text(clean(f"  {chunk.way_in_book}")))
        out.print(Text(clean(f"    {chunk.url} · {chunk.source_file}:{chunk.first_line}"), style="dim"), soft_wrap=True)


def _summarise(replied: Replied) -> str:
    reply, account = replied.reply, replied.account
    parts = [f"{account.response_ms / 1000:.1f} s"]
    if reply.confidence is not None:
        confidence = reply.confidence
        parts.insert(0, f"confidence {confidence.confidence_level} ({confidence.average_similarity:.2f})")
    if isinstance(reply, Answer):
        parts.append("the book's own words" if reply.answered_by == "extractive" else f"written by {account.model}")
    return " · ".join(parts)


def show_step(event: AnswerEvent) -> None:
    """One line on stderr for `--verbose`."""
    match event:
        case StateChanged(state):
            err.print(Text(state, style="dim"))
        case Searching(query):
            err.print(Text(clean(f"searching: {query}"), style="dim"))
        case PassagesFound(passages, confidence):
            err.print(Text(f"found {len(passages)} passages, {confidence.confidence_level}", style="dim"))
            for passage in passages:
                place = f"  {passage.rating:.2f} {passage.chunk.way}"
                err.print(Text(clean(place), style="dim"))
        case Tried(state, attempt, why):
            err.print(Text(clean(f"model call {attempt}: {state} {why}".rstrip()), style="dim"))
        case Replied(reply, account):
            taken_out = len(reply.removed)
            for statement in reply.removed:
                err.print(Text(clean(f"left out: {statement.text} ({statement.why})"), style="dim"))
            err.print(
                Text(
                    clean(
                        f"embedding {account.embedding_ms:.0f} ms, retrieval {account.retrieval_ms:.0f} ms, "
                        f"generation {account.generation_ms:.0f} ms, {account.tokens_used} tokens, "
                        f"{taken_out} sentences taken out, thread {account.thread_id}"
                    ),
                    style="dim",
                )
            )
        case _:
            pass
