"""The end of the server: answers that are under way get a few seconds, then their readers are told."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

from askbook.errors import AskbookError, ShuttingDown

GRACE_SECONDS = 4.0
SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Closing:
    def __init__(self, grace: float = GRACE_SECONDS) -> None:
        self._loop = asyncio.get_running_loop()
        self._grace = grace
        self._begun = asyncio.Event()
        self.over: asyncio.Future[AskbookError] = self._loop.create_future()
        """Done when no answer may go on. All wait for the same one, by `asyncio.wait`, which never cancels it."""

    def begin(self) -> None:
        if not self._begun.is_set():
            self._begun.set()
            self._loop.call_later(self._grace, self._end)

    async def wait(self) -> None:
        await self._begun.wait()

    def _end(self) -> None:
        advice = "Nothing of this answer is kept; ask again in a moment."
        self.over.set_result(ShuttingDown("the server is shutting down", advice))


@contextlib.contextmanager
def told_by_signals(closing: Closing) -> Iterator[None]:
    """The server hears a signal long before it tells its app, and by then it has cancelled every stream."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def hear(number: int, frame: Any) -> None:
        loop.call_soon_threadsafe(closing.begin)
        handler = before[signal.Signals(number)]
        if isinstance(handler, Callable):
            handler(number, frame)

    for number in SIGNALS:
        signal.signal(number, hear)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
