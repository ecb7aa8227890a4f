"""How things look in a terminal. Results go to stdout; progress, notices and errors to stderr."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from pydantic_core import to_json
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
    Reply,
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


class Terminal(Console):
    """Prints text as it is: brackets are no markup, and numbers get no colours."""

    def __init__(self, stderr: bool = False) -> None:
        # A pipe gets whole lines; only a terminal has a width to wrap at.
        is_pipe = not (sys.stderr if stderr else sys.stdout).isatty()
        width = 200 if is_pipe and not stderr else None
        super().__init__(stderr=stderr, highlight=False, markup=False, soft_wrap=is_pipe, width=width)

    def say(self, *parts: str | tuple[str, str], style: str = "", soft_wrap: bool | None = None) -> None:
        """A line of parts, each plain or with a style. What commands a terminal is taken out."""
        pairs = ((part, "") if isinstance(part, str) else part for part in parts)
        line = Text.assemble(*((clean(text), part_style) for text, part_style in pairs), style=style)
        self.print(line, soft_wrap=soft_wrap)


out = Terminal()
err = Terminal(stderr=True)

SNIPPET_CHARACTERS = 420
PROBLEMS_SHOWN = 10
FOUND_WORD = "bold yellow"

WORD = re.compile(r"\w[\w'’-]*")


def print_json(body: object) -> None:
    """A body, or whatever else JSON can hold."""
    with at_home(load_settings().askbook_public_url):
        _write_json(body)


def _write_json(body: object) -> None:
    sys.stdout.write(to_json(body, indent=2).decode() + "\n")


def say_error(error: AskbookError, as_json: bool = False) -> None:
    if as_json:
        _write_json(to_problem(error))
    err.say((f"error {error.code}: " if error.code else "error: ", "bold red"), error.message)
    if error.hint:
        err.say(error.hint)


def show_time(moment: datetime) -> str:
    return f"{moment.astimezone():%Y-%m-%d %H:%M}"


@contextmanager
def progress_bar(counter: ProgressColumn, refreshes: float = 10) -> Iterator[Progress]:
    """On stderr, and only where that is a terminal."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description:<10}"), BarColumn(), counter, TimeRemainingColumn())
    with Progress(
        *columns, console=err, transient=True, disable=not err.is_terminal, refresh_per_second=refreshes
    ) as bar:
        yield bar


def show_outcome(outcome: SearchOutcome) -> None:
    wanted = set(split_terms(outcome.query))
    if not outcome.passages:
        out.print(f"Nothing in {outcome.filters.book_id} fits. Try other words, or fewer filters.")
    for passage in outcome.passages:
        chunk = passage.chunk
        out.print()
        out.say((f"{passage.rank}. ", "bold"), (chunk.way, "bold cyan"))
        out.say(
            f"   {chunk.source_file}:{chunk.first_line}–{chunk.last_line}   score {passage.rating:.2f}", style="dim"
        )
        for line in _mark_words(_find_snippet(chunk.text, wanted), wanted).split("\n", allow_blank=False):
            out.print(Text("   ") + line)


def _find_snippet(text: str, wanted: set[str]) -> str:
    """The run of lines that holds most of the wanted words."""
    lines = [line for line in show_formulas(clean(text)).splitlines() if line.strip()]
    runs = (_take_run(lines, start) for start in range(len(lines)))
    return max(runs, key=lambda run: len(wanted & set(split_terms(run))))


def _take_run(lines: Sequence[str], start: int) -> str:
    run = lines[start]
    for line in lines[start + 1 :]:
        if len(run) + len(line) > SNIPPET_CHARACTERS:
            break
        run = f"{run}\n{line}"
    return run if len(run) <= SNIPPET_CHARACTERS * 2 else f"{run[: SNIPPET_CHARACTERS * 2]}…"


def _mark_words(text: str, wanted: set[str]) -> Text:
    """Bold in a terminal, *starred* where there is no bold."""
    marked = Text()
    at = 0
    for word in WORD.finditer(text):
        if not wanted.isdisjoint(split_terms(word[0])):
            marked.append(text[at : word.start()])
            marked.append(word[0] if out.is_terminal else f"*{word[0]}*", FOUND_WORD)
            at = word.end()
    return marked.append(text[at:])


def show_finished(job: Job) -> None:
    """What an ingestion changed and what was wrong; raises where it failed."""
    if job.status == "failed":
        raise JobFailed(f"job {job.job_id} failed: {job.error_message}")
    out.say(
        (f"{job.book_id} ", "bold"),
        f"is up to date: {job.files_processed} files processed, {job.files_skipped} skipped of {job.files_total}; "
        f"{job.chunks_created} chunks new, {job.chunks_deleted} gone, {job.chunks_embedded} embedded; "
        f"{job.duration_seconds or 0} s",
    )
    show_problems(job.problems)


def show_problems(problems: Sequence[Problem]) -> None:
    for problem in problems[:PROBLEMS_SHOWN]:
        kind = ("skipped ", "bold red") if problem.skipped else ("warning ", "yellow")
        err.say(kind, f"{problem.source_file}: {problem.message}")
    if len(problems) > PROBLEMS_SHOWN:
        err.print(f"… and {len(problems) - PROBLEMS_SHOWN} more: askbook jobs JOB_ID --json lists them all")


# --- answers --------------------------------------------------------------------------------------


def show_reply(replied: Replied, before: str) -> None:
    """The sources after an answer's text, or a whole refusal."""
    reply, confidence = replied.reply, replied.reply.confidence
    facts = [f"confidence {confidence.confidence_level} ({confidence.average_similarity:.2f})"] if confidence else []
    facts.append(f"{replied.account.response_ms / 1000:.1f} s")
    if isinstance(reply, Refusal):
        _show_refusal(reply, before)
    else:
        _show_sources(reply)
        own_words = reply.answered_by == "extractive"
        facts.append("the book's own words" if own_words else f"written by {replied.account.model}")
    out.say(" · ".join(facts), style="dim")


def _show_notices(reply: Reply) -> None:
    for notice in reply.notices:
        out.say(notice, style="yellow")


def _show_sources(answer: Answer) -> None:
    out.print("\n")
    _show_notices(answer)
    out.print("---")
    out.say("**Sources:**", style="bold")
    for source in answer.sources:
        chunk = source.passage.chunk
        place = f" · {chunk.source_file}:{chunk.first_line}" if chunk.source_file else ""
        line = f"{to_mark(source.number)} {chunk.url or source.title} (score: {source.passage.rating:.2f})"
        # The terminal wraps it: an address with a line break in it could not be clicked or copied.
        out.say(line, soft_wrap=True)
        sections = " · ".join(dict.fromkeys(quote.section for quote in source.quotes)) or source.title
        out.say(f"    {sections}{place}", style="dim", soft_wrap=True)


def _show_refusal(refusal: Refusal, before: str) -> None:
    out.say(before, (f"{refusal.text}.", "bold"))
    if refusal.advice != refusal.text:
        out.say(refusal.advice)
    _show_notices(refusal)
    if refusal.nearest:
        out.print("\nThe closest I have:")
    for passage in refusal.nearest:
        chunk = passage.chunk
        out.say(f"  {chunk.way_in_book}")
        out.say(f"    {chunk.url} · {chunk.source_file}:{chunk.first_line}", style="dim", soft_wrap=True)


def show_step(event: AnswerEvent) -> None:
    """On stderr, for `--verbose`."""
    for line in _describe_step(event):
        err.say(line, style="dim")


def _describe_step(event: AnswerEvent) -> Iterator[str]:
    match event:
        case StateChanged(state):
            yield state
        case Searching(query):
            yield f"searching: {query}"
        case PassagesFound(passages, confidence):
            yield f"found {len(passages)} passages, {confidence.confidence_level}"
            yield from (f"  {passage.rating:.2f} {passage.chunk.way}" for passage in passages)
        case Tried(state, attempt, why):
            yield f"model call {attempt}: {state} {why}".rstrip()
        case Replied(reply, account):
            yield from (f"left out: {statement.text} ({statement.why})" for statement in reply.removed)
            yield (
                f"embedding {account.embedding_ms:.0f} ms, retrieval {account.retrieval_ms:.0f} ms, "
                f"generation {account.generation_ms:.0f} ms, {account.tokens_used} tokens, "
                f"{len(reply.removed)} sentences taken out, thread {account.thread_id}"
            )
        case _:
            pass
