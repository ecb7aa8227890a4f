"""A task that sends events, as a generator of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

Event = TypeVar("Event")


async def read_sent(run: Callable[[Callable[[Event], None]], Coroutine[Any, Any, None]]) -> AsyncGenerator[Event]:
    """What `run` sends, then the error that ended it. Closed early, it cancels `run`."""
    sent: asyncio.Queue[Event | None] = asyncio.Queue()
    task = asyncio.create_task(run(sent.put_nowait))
    task.add_done_callback(lambda _: sent.put_nowait(None))
    try:
        while (event := await sent.get()) is not None:
            yield event
        await task
    finally:
        task.cancel()
        # An error was raised above, and a caller who left does not need it.
        with suppress(asyncio.CancelledError, Exception):
            await task
