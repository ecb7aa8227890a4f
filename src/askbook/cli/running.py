"""Runs a command's work, and turns Ctrl+C into words."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TypeVar

from askbook.errors import Stopped
from askbook.settings import load_settings
from askbook.wiring import Store, open_store

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
