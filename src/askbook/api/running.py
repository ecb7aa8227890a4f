"""What an app holds open while it runs, and how a request gets at it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, Request

from askbook.api.callers import Caller, get_admin, get_caller, resolve_book
from askbook.api.closing import GRACE_SECONDS, Closing
from askbook.api.metrics import Metrics
from askbook.api.runner import Runner
from askbook.api.watch import Watch
from askbook.domain import BookRecord
from askbook.settings import Settings
from askbook.store.deliveries import Deliveries
from askbook.wiring import Askbook

LEAVE_SECONDS = 0.5
NEEDED = ("database", "index")
"""Without both there is no answer."""


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds."""

    keepalive: float = 10.0
    """After so long a silence a stream says that it is still there."""
    grace: float = GRACE_SECONDS
    """For answers that are under way when the server is told to end."""


@dataclass(frozen=True)
class Running:
    settings: Settings
    patience: Patience
    askbook: Askbook
    metrics: Metrics
    watch: Watch
    closing: Closing
    runner: Runner
    deliveries: Deliveries
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    """Who sends it may read the data folder, and owns what is here."""
    leaving: set[asyncio.Task[None]] = field(default_factory=set["asyncio.Task[None]"])
    """Answers that nobody waits for any more, on their way out."""

    async def find_book(self, caller: Caller, book_id: str | None) -> BookRecord:
        """The book that was named, or the caller's only one."""
        books = await self.askbook.ledger.load_books()
        wanted = resolve_book(caller, book_id, books)
        return next(record for record in books if record.book_id == wanted)

    async def leave(self, ending: Coroutine[Any, Any, None]) -> None:
        """A part that hangs must not keep its reader waiting: what takes longer to end does so by itself."""
        task = asyncio.create_task(ending)
        self.leaving.add(task)
        task.add_done_callback(self.leaving.discard)
        await asyncio.wait({task}, timeout=LEAVE_SECONDS)


def get_running(request: Request) -> Running:
    return request.app.state.running


Up = Annotated[Running, Depends(get_running)]
Reader = Annotated[Caller, Depends(get_caller)]
Admin = Annotated[Caller, Depends(get_admin)]
