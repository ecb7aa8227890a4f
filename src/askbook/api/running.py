"""What an app holds open while it runs, the work beside its requests, and how it shuts down."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import signal
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, Request
from sqlalchemy import text

from askbook.answer.suggestions import Suggester
from askbook.api.callers import Caller, get_admin, get_caller, pick_book
from askbook.api.limits import RateLimiter
from askbook.api.metrics import Metrics
from askbook.api.runner import Runner
from askbook.api.watch import Watch
from askbook.breaker import Breaker
from askbook.domain import BookRecord
from askbook.errors import AskbookError, ShuttingDown
from askbook.settings import Settings
from askbook.store.deliveries import Deliveries
from askbook.store.threads import Threads
from askbook.wiring import Askbook

logger = logging.getLogger("askbook.api")

LEAVE_SECONDS = 0.5
NEEDED = ("database", "index")
"""No answer without both."""


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds."""

    keepalive: float = 10.0
    """A stream sends a comment after this long a silence."""
    grace: float = 4.0
    """For answers under way when the server is told to end."""


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
    """Whoever sends it is the owner of the data folder."""
    leaving: set[asyncio.Task[None]] = field(default_factory=set["asyncio.Task[None]"])
    """Answers that are ending and that nobody waits for."""

    async def find_book(self, caller: Caller, book_id: str | None) -> BookRecord:
        """The book that was named, or the caller's only one."""
        return pick_book(caller, book_id, await self.askbook.ledger.load_books())

    async def find_book_id(self, caller: Caller, book_id: str | None) -> str | None:
        """The id of the book that was named; None for all of the caller's books."""
        return (await self.find_book(caller, book_id)).book_id if book_id else None

    async def leave(self, ending: Coroutine[Any, Any, None]) -> None:
        """Waits a moment for `ending`. Where a part hangs, it goes on in the background: no reader waits for it."""
        task = asyncio.create_task(ending)
        self.leaving.add(task)
        task.add_done_callback(self.leaving.discard)
        await asyncio.wait({task}, timeout=LEAVE_SECONDS)


async def cancel(work: asyncio.Future[Any]) -> None:
    work.cancel()
    await asyncio.wait({work})


def get_running(request: Request) -> Running:
    return request.app.state.running


Up = Annotated[Running, Depends(get_running)]
Reader = Annotated[Caller, Depends(get_caller)]
Admin = Annotated[Caller, Depends(get_admin)]


def build_running(
    settings: Settings, patience: Patience, askbook: Askbook, metrics: Metrics, limiter: RateLimiter | None
) -> Running:
    database = askbook.database
    pings = {"database": lambda: database.load_value(text("SELECT 1")), "index": askbook.index.ping}
    breakers: dict[str, Breaker] = {**askbook.breakers}
    if limiter is not None and limiter.shared is not None:
        pings["redis"] = limiter.ping
        breakers["redis"] = limiter.breaker
    watch = Watch(pings)
    for part in watch.signs:
        metrics.part_up.labels(part).set_function(lambda part=part: watch.signs[part].up)
    for service, breaker in breakers.items():
        metrics.breaker_open.labels(service).set_function(lambda breaker=breaker: breaker.is_open)
    runner = Runner(askbook, metrics, settings.askbook_refresh_command)
    closing = Closing(patience.grace)
    return Running(settings, patience, askbook, metrics, watch, closing, runner, Deliveries(database))


# --- beside the requests --------------------------------------------------------------------------

ARCHIVE_SECONDS = 300.0
SUGGEST_SECONDS, AFTER_FAILURE_SECONDS = 3.0, 60.0


@contextlib.asynccontextmanager
async def in_background(running: Running) -> AsyncIterator[None]:
    if running.settings.askbook_worker:
        running.runner.start()
    works = (
        running.watch.run(),
        _archive_threads(running.askbook.threads),
        _make_suggestions(running.askbook),
        _stop_early(running),
    )
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield
    finally:
        running.closing.begin()
        await running.runner.stop()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, *running.leaving, return_exceptions=True)


async def _stop_early(running: Running) -> None:
    """Hands the job back as soon as the server closes, while answers still have their seconds of grace."""
    await running.closing.wait()
    await running.runner.stop()


async def _archive_threads(threads: Threads) -> None:
    while True:
        try:
            if count := await threads.archive_idle():
                logger.info("threads archived", extra={"count": count})
        except AskbookError as error:
            logger.warning("threads were not archived: %s", error.message)
        await asyncio.sleep(ARCHIVE_SECONDS)


async def _make_suggestions(askbook: Askbook) -> None:
    """Makes the questions that a book's page begins with, whenever the book has changed."""
    suggester = Suggester(askbook.ledger, askbook.searcher, askbook.index, askbook.reader, askbook.calibrations)
    while True:
        await asyncio.sleep(SUGGEST_SECONDS)
        try:
            # A book that is being ingested waits, because it still changes.
            busy = {job.book_id for job in await askbook.jobs.load_open()}
            waiting = [book for book in await askbook.ledger.load_unsuggested() if book[0] not in busy]
            for book_id, revision in waiting[:1]:
                questions = await suggester.suggest(book_id)
                await askbook.ledger.save_suggestions(book_id, revision, questions)
                logger.info("questions made", extra={"book_id": book_id, "count": len(questions)})
        except Exception as error:
            # The page works without suggestions.
            if isinstance(error, AskbookError):
                logger.warning("no questions were made: %s", error.message)
            else:
                logger.exception("making questions failed unexpectedly")
            await asyncio.sleep(AFTER_FAILURE_SECONDS)


# --- the end: answers that are under way get a few seconds, then their readers are told ------------

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Closing:
    def __init__(self, grace: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._grace = grace
        self._begun = asyncio.Event()
        self.over: asyncio.Future[AskbookError] = self._loop.create_future()
        """Done when every answer must end. All answers share it: `asyncio.wait` never cancels what it waits for."""

    def begin(self) -> None:
        if not self._begun.is_set():
            self._begun.set()
            advice = "Nothing of this answer is kept; ask again in a moment."
            self._loop.call_later(
                self._grace, self.over.set_result, ShuttingDown("the server is shutting down", advice)
            )

    async def wait(self) -> None:
        await self._begun.wait()


@contextlib.contextmanager
def closing_on_signals(closing: Closing) -> Iterator[None]:
    """Begins closing at the signal itself: uvicorn tells its app only after it has cancelled every stream."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def on_signal(number: int, frame: Any) -> None:
        loop.call_soon_threadsafe(closing.begin)
        handler = before[signal.Signals(number)]
        if isinstance(handler, Callable):
            handler(number, frame)

    for number in SIGNALS:
        signal.signal(number, on_signal)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
