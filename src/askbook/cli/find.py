"""`askbook search`."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from askbook.cli.render import err, print_json, show_outcome
from askbook.cli.running import run_with_book
from askbook.domain import BookRecord, FacetValue, Filters, SearchMode, SearchOutcome
from askbook.index.choices import check_choices
from askbook.wiring import Askbook, SearchOptions


def search(
    text: Annotated[str, typer.Argument(help="What to look for: 3 to 1000 characters.")],
    book: Annotated[str | None, typer.Option(help="Book to search; needed when there are several.")] = None,
    limit: Annotated[int, typer.Option(help="How many passages, 1 to 20.")] = 5,
    mode: Annotated[SearchMode, typer.Option(help="Words and meaning, meaning alone, or words alone.")] = "hybrid",
    threshold: Annotated[float, typer.Option(help="Leave out what scores less, 0 to 1.")] = 0.0,
    tier: Annotated[int | None, typer.Option(help="Nothing that needs a higher hardware tier, 1 to 4.")] = None,
    module: Annotated[str | None, typer.Option(help="Only this module.")] = None,
    chapter: Annotated[str | None, typer.Option(help="Only this chapter (3), or these (2-5).")] = None,
    lesson: Annotated[int | None, typer.Option(help="Only this lesson number.")] = None,
    level: Annotated[list[str] | None, typer.Option(help="Only this proficiency level; may be given again.")] = None,
    layer: Annotated[str | None, typer.Option(help="Only this teaching layer, L1 to L4.")] = None,
    lesson_id: Annotated[str | None, typer.Option(help="Only the lesson with this parent_doc_id.")] = None,
    facet: Annotated[list[str] | None, typer.Option(help="Any facet the book declares, as name=value.")] = None,
    url_prefix: Annotated[str | None, typer.Option(help="Only pages whose address begins so.")] = None,
    heading: Annotated[
        str | None, typer.Option(help="Only below a heading path that begins so: “Book › Module”.")
    ] = None,
    rerank: Annotated[
        bool, typer.Option("--rerank", help="Read the first twenty and order them by how well they answer.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the SearchResponse as JSON.")] = False,
) -> None:
    """Find the passages of a book that fit your words."""
    first_chapter, last_chapter = _read_chapters(chapter)

    async def find(askbook: Askbook, record: BookRecord) -> SearchOutcome:
        filters = Filters(
            book_id=record.book_id,
            hardware_tier=tier,
            module=module,
            chapter_min=first_chapter,
            chapter_max=last_chapter,
            lesson=lesson,
            proficiency_levels=tuple(level or ()),
            layer=layer,
            parent_doc_id=lesson_id,
            facets=_read_facets(facet or [], record),
            url_prefix=url_prefix,
            heading_prefix=heading,
        )
        check_choices(filters, record)
        if mode != "keyword":
            tell_waiting(record)
        how = SearchOptions(mode=mode, limit=limit, threshold=threshold, rerank=rerank or None)
        outcome = await askbook.search(text, filters, **how)
        calibration = await askbook.calibrations.choose(record.book_id)
        for notice in filter(None, (calibration.notice, *outcome.notices)):
            err.print(notice)
        return outcome

    outcome = run_with_book(book, find)
    if as_json:
        from askbook.shapes.answers import SearchResponse

        print_json(SearchResponse.from_outcome(outcome))
    else:
        show_outcome(outcome)


def tell_waiting(record: BookRecord) -> None:
    if record.unembedded_chunks:
        err.print(f"{record.unembedded_chunks} chunks wait for their vectors: askbook ingest goes on with them")


def _read_chapters(text: str | None) -> tuple[int | None, int | None]:
    if text is None:
        return None, None
    numbers = re.fullmatch(r"\s*(\d{1,6})\s*(?:[-–]\s*(\d{1,6})\s*)?", text)
    if numbers is None:
        raise typer.BadParameter(f"{text!r} is neither a chapter (3) nor a range (2-5)", param_hint="--chapter")
    return int(numbers[1]), int(numbers[2] or numbers[1])


def _read_facets(given: list[str], record: BookRecord) -> dict[str, tuple[FacetValue, ...]]:
    """`name=value`, with the value as the book declares it: a number stays a number."""
    wanted: dict[str, tuple[FacetValue, ...]] = {}
    for item in given:
        name, _, value = item.partition("=")
        typed = next((allowed for allowed in record.facets.get(name, ()) if str(allowed) == value), value)
        wanted[name] = (*wanted.get(name, ()), typed)
    return wanted
