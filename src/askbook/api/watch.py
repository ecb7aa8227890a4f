"""Which parts answer. Each is pinged twice a second, so that no request has to wait to find out."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass

from askbook.errors import AskbookError, IndexUnavailable, StorageError

logger = logging.getLogger("askbook.watch")

EVERY_SECONDS = 0.5
PATIENCE_SECONDS = 1.5
"""How long a part may take to answer a ping. Both together stay well below three seconds."""
STALL_SECONDS = 0.5
"""If the event loop itself was held up for this long, a late answer says nothing about the part."""
AGAIN = "It is tried again and again; so may you."

Ping = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Sign:
    """What a part last answered."""

    up: bool = True
    latency_ms: float = 0.0
    why: str = ""


class Watch:
    def __init__(self, pings: Mapping[str, Ping]) -> None:
        self._pings = pings
        self.signs = {part: Sign() for part in pings}
        self._asked_at = dict.fromkeys(pings, 0.0)
        self._pending: set[asyncio.Future[object]] = set()
        self._waiting: dict[asyncio.Future[AskbookError], Collection[str]] = {}

    async def run(self) -> None:
        """Until it is cancelled."""
        await asyncio.gather(*(self._ping_for_ever(part) for part in self._pings))

    async def ping_all(self) -> Mapping[str, Sign]:
        """Pings every part now."""
        await asyncio.gather(*(self._ping(part) for part in self._pings))
        return self.signs

    def until_down(self, parts: Collection[str]) -> asyncio.Future[AskbookError]:
        """Done when the first of these parts goes down; whoever stops waiting cancels it."""
        down: asyncio.Future[AskbookError] = asyncio.get_running_loop().create_future()
        gone = next((part for part in parts if not self.signs[part].up), None)
        if gone is None:
            self._waiting[down] = parts
            down.add_done_callback(self._waiting.pop)
        else:
            down.set_result(to_outage(gone))
        return down

    async def _ping_for_ever(self, part: str) -> None:
        while True:
            await self._ping(part)
            await asyncio.sleep(EVERY_SECONDS)

    async def _ping(self, part: str) -> None:
        started = time.monotonic()
        why = await self._find_fault(part)
        took = time.monotonic() - started
        stalled = why == "late" and took > PATIENCE_SECONDS + STALL_SECONDS
        # Pings of a part may overlap: the latest one counts.
        if stalled or started < self._asked_at[part]:
            return
        self._asked_at[part] = started
        before, self.signs[part] = self.signs[part], Sign(not why, took * 1000, why)
        for down, parts in self._waiting.items():
            if why and part in parts and not down.done():
                down.set_result(to_outage(part))
        if before.up != (not why):
            logger.log(logging.INFO if not why else logging.ERROR, "%s is %s", part, "back" if not why else "down")

    async def _find_fault(self, part: str) -> str:
        ping = asyncio.ensure_future(self._pings[part]())
        self._pending.add(ping)
        ping.add_done_callback(self._forget)
        await asyncio.wait({ping}, timeout=PATIENCE_SECONDS)
        if not ping.done():
            # Not awaited: a driver takes seconds to let go of a server that hangs.
            ping.cancel()
            return "late"
        error = asyncio.CancelledError() if ping.cancelled() else ping.exception()
        if error is not None and not isinstance(error, AskbookError):
            # Drivers raise all sorts of errors for a part that went away. It counts as down and is asked again.
            logger.warning("%s failed in an unforeseen way", part, exc_info=error)
        return "" if error is None else type(error).__name__

    def _forget(self, ping: asyncio.Future[object]) -> None:
        self._pending.discard(ping)
        if not ping.cancelled():
            ping.exception()  # Seen: nobody waits for one that was late.


def to_outage(part: str) -> AskbookError:
    if part == "database":
        return StorageError("the database does not answer", AGAIN)
    return IndexUnavailable("the vector index does not answer", AGAIN)
