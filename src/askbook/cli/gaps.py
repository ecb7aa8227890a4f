"""`askbook gaps`: what readers asked and the book could not answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from askbook.answer.gaps import find_gaps
from askbook.cli.render import clean, err, out, print_json, show_time
from askbook.cli.running import run_with_store
from askbook.domain import Gap
from askbook.settings import load_settings
from askbook.shapes.readers import GapList
from askbook.wiring import Store, build_embedder


def gaps(
    book: Annotated[str | None, typer.Option(help="Only of this book.")] = None,
    days: Annotated[int, typer.Option(help="Asked within so many days.", min=1, max=3650)] = 90,
    limit: Annotated[int, typer.Option(help="How many, the most asked first.", min=1, max=1000)] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print the GapList as JSON.")] = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print a page of Markdown, to keep or to send.")
    ] = False,
) -> None:
    """Show the questions that were refused or got a thumb down, grouped, with the section that should have answered."""
    if as_json and as_markdown:
        raise typer.BadParameter("--json and --markdown do not go together")
    found = run_with_store(lambda store: _load(store, book, days))
    if as_json:
        print_json(GapList.from_gaps(found, limit))
    elif as_markdown:
        out.print("\n".join(_to_markdown(found[:limit], days)))
    elif not found:
        out.print(f"No open question of the last {days} days: nothing was refused, and no answer got a thumb down.")
    else:
        for number, gap in enumerate(found[:limit], start=1):
            _print_gap(number, gap)


async def _load(store: Store, book: str | None, days: int) -> list[Gap]:
    if book is not None:
        await store.ledger.load_book(book)
    asked = await store.questions.load_open(book_id=book, since=datetime.now(UTC) - timedelta(days=days))
    embedder, notices = build_embedder(load_settings()) if asked else (None, ())
    for notice in notices:
        err.print(notice)
    try:
        return await find_gaps(asked, embedder)
    finally:
        if embedder is not None:
            await embedder.close()


def _print_gap(number: int, gap: Gap) -> None:
    out.say((f"{number}. ", "bold"), (gap.question, "bold cyan"))
    out.say(f"   {_count(gap)}", style="dim")
    for variant in gap.variants:
        out.say(f"   also: {variant}")
    for remark in _find_remarks(gap):
        out.say(f"   {remark}")
    out.say(f"   nearest: {_find_place(gap)}")
    out.print()


def _find_remarks(gap: Gap) -> list[str]:
    in_threads = [f"in a thread: {words}" for words in gap.own_words]
    return in_threads + [f"said of the answer: {comment}" for comment in gap.comments]


def _count(gap: Gap) -> str:
    facts = (
        "asked once" if gap.count == 1 else f"asked {gap.count} times",
        f"{gap.unhelpful} {'thumbs' if gap.unhelpful > 1 else 'thumb'} down" if gap.unhelpful else "",
        f"last {show_time(gap.last_asked)}",
        gap.book_id,
    )
    return " · ".join(filter(None, facts))


def _find_place(gap: Gap) -> str:
    return f"{gap.section.title} · {gap.section.source_file}" if gap.section else "no section comes close"


def _to_markdown(found: Sequence[Gap], days: int) -> Iterator[str]:
    yield from ("# What the book could not answer", "")
    if not found:
        yield f"Nothing, in the last {days} days."
    for gap in found:
        yield from (f"## {_escape(gap.question)}", "")
        yield from (f"{_escape(_count(gap))}. Nearest section: {_escape(_find_place(gap))}.", "")
        if remarks := [*gap.variants, *_find_remarks(gap)]:
            yield from (f"- {_escape(remark)}" for remark in remarks)
            yield ""


def _escape(text: str) -> str:
    """On one line, with Markdown's characters escaped."""
    return re.sub(r"([\\`*_\[\]<>#|!])", r"\\\1", " ".join(clean(text).split()))
