"""askbook over HTTP: the app, what it holds open while it runs, and what stands around its routes."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
from collections.abc import AsyncIterator
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema
from sqlalchemy import text

from askbook import __version__
from askbook.api.bodies import BoundedRequests
from askbook.api.callers import trusts_loopback
from askbook.api.closing import Closing, told_by_signals
from askbook.api.failing import install_handlers
from askbook.api.guard import OutageGuard
from askbook.api.limits import LimitHeaders, RateLimiter, build_limiter
from askbook.api.metrics import Metrics
from askbook.api.middleware import RequestScope
from askbook.api.origins import KnownOrigins
from askbook.api.routes import admin, answers, gaps, health, ingestion, mcp, openai, owner, pages, responses, search
from askbook.api.runner import Runner
from askbook.api.running import Patience, Running
from askbook.api.schemas import ContentEvent, RetrievalResult, ToolCallEvent
from askbook.api.suggesting import keep_suggestions
from askbook.api.telemetry import build_telemetry
from askbook.api.watch import Watch
from askbook.errors import AskbookError
from askbook.settings import Settings
from askbook.store.database import Database
from askbook.store.deliveries import Deliveries
from askbook.store.threads import Threads
from askbook.wiring import Askbook, open_askbook

logger = logging.getLogger("askbook.api")

ARCHIVE_SECONDS = 300.0
WEBHOOK_BYTES = 5 * 2**20
"""A push of thousands of commits; read before its signature can be checked, so not more."""
DESCRIPTION = (
    "Ask a book a question; get an answer with its sources, or an honest “the book does not say”.\n\n"
    "Every error has the same body: `error`, `message`, `detail`, `status_code`, `request_id`, `timestamp`; below `/v1` it "
    "is OpenAI's: `error` with `message`, `type`, `param` and `code`."
)
EXPOSED = [
    "X-Request-ID",
    "X-Session-ID",
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
    "Retry-After",
]


OPEN_HERE = (
    "Whoever asks from this machine needs no key. Behind a proxy set ASKBOOK_PUBLIC_URL, "
    "or ASKBOOK_LOCAL_OWNER=0: one that leaves no sign passes for you"
)
CLOSED = "Everybody needs a key here, and there is none yet: askbook keys create makes one"


def create_app(
    settings: Settings, patience: Patience | None = None, *, alone: bool = False, address: str | None = None
) -> FastAPI:
    """`alone`: nothing else lives in this process. `address`: where it listens, for other processes on this machine."""
    metrics = Metrics()

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with open_askbook(settings, to_itself=True) as askbook:
            running = _build_running(settings, patience or Patience(), askbook, metrics, app.state.limiter)
            app.state.askbook, app.state.running = askbook, running
            for notice in askbook.notices:
                logger.warning(notice)
            if trusts_loopback(settings) == await askbook.keys.were_made():
                logger.warning(OPEN_HERE if trusts_loopback(settings) else CLOSED)
            await askbook.warm()
            if alone:
                _settle()
            with told_by_signals(running.closing):
                async with _background(running):
                    if address is not None:
                        askbook.announce(address, running.token)
                    yield

    app = FastAPI(
        title="askbook",
        version=__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        telemetry=build_telemetry(settings),
    )
    app.state.limiter = build_limiter(settings)
    for routes in (answers, search, ingestion, gaps, admin, openai, responses, health, owner, pages):
        app.include_router(routes.router)
    if mcp.INSTALLED:
        app.include_router(mcp.router)
    install_handlers(app)
    _wrap(app, settings, metrics)
    app.openapi = lambda: _describe(app)
    return app


def _wrap(app: FastAPI, settings: Settings, metrics: Metrics) -> None:
    """The last one added is the outermost."""
    app.add_middleware(
        BoundedRequests,
        body_bytes=settings.askbook_body_bytes,
        body_seconds=settings.askbook_body_seconds,
        larger={"/ingestion/webhook/github": WEBHOOK_BYTES},
    )
    app.add_middleware(OutageGuard)
    app.add_middleware(
        KnownOrigins,
        allow_origins=settings.askbook_cors_origins,
        allow_methods=["GET", "POST", "PATCH", "DELETE"],
        allow_headers=["Authorization", "Content-Type", "X-API-Key", "X-Reader", "X-Request-ID", "X-Session-ID"],
        expose_headers=EXPOSED,
    )
    app.add_middleware(LimitHeaders)
    app.add_middleware(RequestScope, metrics=metrics, public_url=settings.askbook_public_url)


# --- while it runs --------------------------------------------------------------------------------


def _build_running(
    settings: Settings, patience: Patience, askbook: Askbook, metrics: Metrics, limiter: RateLimiter | None
) -> Running:
    database = askbook.ledger.database
    shared = {"redis": limiter.ping} if limiter is not None and limiter.shared is not None else {}
    watch = Watch({"database": lambda: _ping(database), "index": askbook.index.ping, **shared})
    for part in watch.signs:
        metrics.watch_part(part, lambda part=part: watch.signs[part].up)
    for service, breaker in askbook.breakers.items():
        metrics.watch_breaker(service, lambda breaker=breaker: breaker.is_open)
    if limiter is not None and limiter.shared is not None:
        metrics.watch_breaker("redis", lambda: limiter.breaker.is_open)
    return Running(
        settings=settings,
        patience=patience,
        askbook=askbook,
        metrics=metrics,
        watch=watch,
        closing=Closing(patience.grace),
        runner=Runner(askbook, metrics, settings.askbook_refresh_command),
        deliveries=Deliveries(database),
    )


async def _ping(database: Database) -> None:
    async with database.reading() as connection:
        await connection.execute(text("SELECT 1"))


def _settle() -> None:
    """All that is here now stays. Looked through for garbage again and again, it would hold everybody up for 0.2 s a time."""
    gc.collect()
    gc.freeze()


@contextlib.asynccontextmanager
async def _background(running: Running) -> AsyncIterator[None]:
    if running.settings.askbook_worker:
        running.runner.start()
    works = [
        running.watch.run(),
        _archive(running.askbook.threads),
        keep_suggestions(running.askbook),
        _stop_early(running),
    ]
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
    """A job is handed back as soon as the end is near, while answers still have their seconds."""
    await running.closing.wait()
    await running.runner.stop()


async def _archive(threads: Threads) -> None:
    while True:
        try:
            count = await threads.archive_idle()
        except AskbookError as error:
            logger.warning("threads were not archived: %s", error.message)
        else:
            if count:
                logger.info("threads archived", extra={"count": count})
        await asyncio.sleep(ARCHIVE_SECONDS)


# --- the OpenAPI document -------------------------------------------------------------------------


def _describe(app: FastAPI) -> dict[str, Any]:
    """FastAPI would say 422 of what is answered with 400."""
    if app.openapi_schema is None:
        schema = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes, servers=[{"url": "/"}]
        )
        for operations in schema["paths"].values():
            for operation in operations.values():
                operation["responses"].pop("422", None)
        for name in ("HTTPValidationError", "ValidationError"):
            schema["components"]["schemas"].pop(name, None)
        schema["components"]["schemas"] |= _describe_events()
        app.openapi_schema = schema
    return app.openapi_schema


def _describe_events() -> dict[str, Any]:
    """What a stream carries besides the bodies of other routes."""
    _, told = models_json_schema(
        [(model, "serialization") for model in (ToolCallEvent, RetrievalResult, ContentEvent)],
        ref_template="#/components/schemas/{model}",
    )
    return told["$defs"]
