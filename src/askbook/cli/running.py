"""Runs a command's work, and turns Ctrl+C into words."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

from askbook.domain import BookRecord
from askbook.errors import InputError, NotFound, Stopped
from askbook.settings import Settings, load_settings
from askbook.store.ledger import Ledger
from askbook.wiring import Askbook, Store, open_askbook, open_store

T = TypeVar("T")


def run_async(work: Coroutine[object, object, T]) -> T:
    try:
        return asyncio.run(work)
    except KeyboardInterrupt as error:
        raise Stopped("stopped", "What was saved is kept; the same command goes on from there.") from error


def run_with_store(work: Callable[[Store], Awaitable[T]]) -> T:
    """For a command that needs the database and no index."""

    async def run() -> T:
        async with open_store(load_settings()) as store:
            return await work(store)

    return run_async(run())


def run_with_book(
    book: str | None,
    work: Callable[[Askbook, BookRecord], Awaitable[T]],
    opening: Callable[[Settings], AbstractAsyncContextManager[Askbook]] = open_askbook,
) -> T:
    """For a command about one book: the one that is named, or the only one there is."""

    async def run() -> T:
        async with opening(load_settings()) as askbook:
            return await work(askbook, await choose_book(askbook.ledger, book))

    return run_async(run())


async def choose_book(ledger: Ledger, book_id: str | None) -> BookRecord:
    """The book that was named, or the only one there is."""
    if book_id is not None:
        return await ledger.load_book(book_id)
    books = await ledger.load_books()
    if not books:
        raise NotFound(
            "there is no book yet", "askbook ingest FOLDER makes one; askbook demo brings its own.", code="E002"
        )
    if len(books) > 1:
        names = ", ".join(record.book_id for record in books)
        raise InputError(f"there are several books: {names}", "Name one with --book.")
    return books[0]
