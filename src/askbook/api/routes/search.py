"""What the books hold: /search, /context, /lesson, /contents, /info."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Path, Query

from askbook import __version__
from askbook.api.book_schemas import (
    BookInfo,
    ContentsResponse,
    ContextResponse,
    DocumentChunk,
    InfoResponse,
    Ingesting,
    LessonResponse,
)
from askbook.api.callers import find_books
from askbook.api.examples import errors
from askbook.api.lesson_page import read_url
from askbook.api.requests import UUID, BookId, SearchRequest
from askbook.api.running import Reader, Up
from askbook.api.schemas import SearchResponse
from askbook.domain import BookRecord, Filters, to_public_id
from askbook.index.choices import check_choices

router = APIRouter(tags=["books"])

REACH_MAX = 10


@router.post("/search", responses=errors(404, 413))
async def search(body: SearchRequest, running: Up, caller: Reader) -> SearchResponse:
    """The passages of a book that fit, the best first."""
    book = await running.find_book(caller, body.book_id)
    filters = body.to_filters(book.book_id)
    _check(filters, body, book)
    askbook = running.askbook
    relevance = (await askbook.calibrations.choose(book.book_id)).calibration.relevance
    outcome = await askbook.searcher.search(
        body.text, filters, body.mode, body.limit, body.threshold, relevance, rerank=body.rerank
    )
    return SearchResponse.from_outcome(outcome, body.include_embedding).model_copy(
        update={"book_id": to_public_id(book.book_id)}
    )


@router.get("/context/{chunk_id}", responses=errors(404))
async def context(
    chunk_id: Annotated[str, Path(pattern=UUID)],
    running: Up,
    caller: Reader,
    book_id: BookId | None = None,
    reach: Annotated[int, Query(ge=0, le=REACH_MAX, description="How many chunks on either side.")] = 1,
) -> ContextResponse:
    """A chunk with its neighbours in the lesson, in order."""
    book = await running.find_book(caller, book_id)
    found = await running.askbook.ledger.load_neighbours(book.book_id, chunk_id.lower(), reach)
    public = to_public_id(book.book_id)
    chunks = [DocumentChunk.from_chunk(one, public) for one in found]
    return ContextResponse(chunk_id=chunk_id.lower(), book_id=public, chunks=chunks)


@router.get("/lesson/{parent_doc_id}", responses=errors(404))
async def lesson(
    parent_doc_id: Annotated[str, Path(pattern=UUID)],
    running: Up,
    caller: Reader,
    book_id: BookId | None = None,
) -> LessonResponse:
    """A whole lesson, in order."""
    book = await running.find_book(caller, book_id)
    chunks = await running.askbook.ledger.load_lesson(book.book_id, parent_doc_id.lower())
    return LessonResponse.from_chunks(chunks, to_public_id(book.book_id))


@router.get("/contents", responses=errors(404))
async def contents(running: Up, caller: Reader, book_id: BookId | None = None) -> ContentsResponse:
    """A book's table of contents: modules, chapters, lessons and their sections; and what to ask it to begin with."""
    book = await running.find_book(caller, book_id)
    outline = await running.askbook.ledger.load_outline(book.book_id)
    public = to_public_id(book.book_id)
    suggestions = await running.askbook.ledger.load_suggestions(book.book_id)
    return ContentsResponse.from_outline(outline, public, lambda lesson: read_url(public, lesson), suggestions)


@router.get("/info", responses=errors())
async def info(running: Up, caller: Reader) -> InfoResponse:
    """The books of this key, and what searches and answers."""
    askbook = running.askbook
    collection = running.settings.qdrant_collection_name
    books = find_books(caller, await askbook.ledger.load_books())
    jobs = [one for one in await askbook.jobs.load_open() if caller.scope.holds(one.book_id)]
    return InfoResponse(
        version=__version__,
        embedder=askbook.embedder.name if askbook.embedder else None,
        reranker=askbook.reranker.name if askbook.reranker else None,
        model=askbook.agent.name if askbook.agent else None,
        books=[BookInfo.from_record(one, to_public_id(one.book_id), collection) for one in books],
        ingesting=[Ingesting.from_job(one, to_public_id(one.book_id)) for one in jobs],
    )


def _check(filters: Filters, body: SearchRequest, book: BookRecord) -> None:
    """A tier that nobody asked for cannot be a mistake."""
    asked = "hardware_tier_filter" in body.model_fields_set
    check_choices(filters if asked else replace(filters, hardware_tier=None), book)
