"""What the books hold: /search, /context, /lesson, /contents, /info."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Path, Query

from askbook import __version__
from askbook.api.callers import find_books
from askbook.api.lesson_page import read_url
from askbook.api.openapi import errors
from askbook.api.requests import BookId, ChunkPath, LessonId, SearchRequest
from askbook.api.running import Reader, Up
from askbook.domain import to_public_id
from askbook.index.choices import check_choices
from askbook.shapes.answers import SearchResponse
from askbook.shapes.books import (
    BookInfo,
    ContentsResponse,
    ContextResponse,
    DocumentChunk,
    InfoResponse,
    Ingesting,
    LessonResponse,
)

router = APIRouter(tags=["books"])

REACH_MAX = 10


@router.post("/search", responses=errors(404, 413))
async def search(body: SearchRequest, running: Up, caller: Reader) -> SearchResponse:
    """The passages of a book that fit, the best first."""
    book = await running.find_book(caller, body.book_id)
    filters = body.to_filters(book.book_id)
    # The default tier is not checked: nobody asked for it.
    asked = "hardware_tier_filter" in body.model_fields_set
    check_choices(filters if asked else replace(filters, hardware_tier=None), book)
    outcome = await running.askbook.search(
        body.text, filters, mode=body.mode, limit=body.limit, threshold=body.threshold, rerank=body.rerank
    )
    return SearchResponse.from_outcome(outcome, body.include_embedding, book.public_id)


@router.get("/context/{chunk_id}", responses=errors(404))
async def context(
    chunk_id: ChunkPath,
    running: Up,
    caller: Reader,
    book_id: BookId | None = None,
    reach: Annotated[int, Query(ge=0, le=REACH_MAX, description="How many chunks on either side.")] = 1,
) -> ContextResponse:
    """A chunk with its neighbours in the lesson, in order."""
    book = await running.find_book(caller, book_id)
    found = await running.askbook.ledger.load_neighbours(book.book_id, chunk_id, reach)
    chunks = DocumentChunk.from_chunks(found, book.public_id)
    return ContextResponse(chunk_id=chunk_id, book_id=book.public_id, chunks=chunks)


@router.get("/lesson/{parent_doc_id}", responses=errors(404))
async def lesson(
    parent_doc_id: Annotated[LessonId, Path()], running: Up, caller: Reader, book_id: BookId | None = None
) -> LessonResponse:
    """A whole lesson, in order."""
    book = await running.find_book(caller, book_id)
    chunks = await running.askbook.ledger.load_lesson(book.book_id, parent_doc_id)
    return LessonResponse.from_chunks(chunks, book.public_id)


@router.get("/contents", responses=errors(404))
async def contents(running: Up, caller: Reader, book_id: BookId | None = None) -> ContentsResponse:
    """A book's table of contents: modules, chapters, lessons and their sections; and what to ask it to begin with."""
    book = await running.find_book(caller, book_id)
    outline = await running.askbook.ledger.load_outline(book.book_id)
    suggestions = await running.askbook.ledger.load_suggestions(book.book_id)
    public = book.public_id
    return ContentsResponse.from_outline(outline, public, lambda lesson: read_url(public, lesson), suggestions)


@router.get("/info", responses=errors())
async def info(running: Up, caller: Reader) -> InfoResponse:
    """The books of this key, and what searches and answers."""
    askbook = running.askbook
    collection = running.settings.qdrant_collection_name
    books = find_books(caller, await askbook.ledger.load_books())
    jobs = [job for job in await askbook.jobs.load_open() if caller.scope.holds(job.book_id)]
    return InfoResponse(
        version=__version__,
        embedder=askbook.embedder.name if askbook.embedder else None,
        reranker=askbook.reranker.name if askbook.reranker else None,
        model=askbook.agent.name if askbook.agent else None,
        books=[BookInfo.of(book, book_id=book.public_id, collection_name=collection) for book in books],
        ingesting=[
            Ingesting.of(
                job, book_id=to_public_id(job.book_id), files_processed=job.files_processed + job.files_skipped
            )
            for job in jobs
        ],
    )
