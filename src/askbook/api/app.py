"""askbook over HTTP: the app, made from settings."""

from __future__ import annotations

import contextlib
import gc
import logging
from collections.abc import AsyncIterator

from fastapi import FastAPI

from askbook import __version__
from askbook.api.bodies import BoundedRequests
from askbook.api.callers import trusts_loopback
from askbook.api.failing import install_handlers
from askbook.api.limits import build_limiter
from askbook.api.metrics import Metrics, build_telemetry
from askbook.api.middleware import KnownOrigins, OutageGuard, RequestScope
from askbook.api.openapi import DESCRIPTION, describe_app
from askbook.api.routes import admin, answers, health, ingestion, mcp, openai, owner, pages, search
from askbook.api.running import Patience, build_running, closing_on_signals, in_background
from askbook.settings import Settings
from askbook.wiring import open_askbook

logger = logging.getLogger("askbook.api")

WEBHOOK_BYTES = 5 * 2**20
"""Enough for a push of thousands of commits. It is read before its signature can be checked, so no more is taken."""
TAKEN = ["Authorization", "Content-Type", "X-API-Key", "X-Reader", "X-Request-ID", "X-Session-ID"]
EXPOSED = [
    *("X-Request-ID", "X-Session-ID", "Retry-After"),
    *("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"),
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
            running = build_running(settings, patience or Patience(), askbook, metrics, app.state.limiter)
            app.state.askbook, app.state.running = askbook, running
            for notice in askbook.notices:
                logger.warning(notice)
            if trusts_loopback(settings) == await askbook.keys.were_made():
                logger.warning(OPEN_HERE if trusts_loopback(settings) else CLOSED)
            await askbook.warm()
            if alone:
                # What is loaded now stays loaded. Each search of it for garbage would hold up every request for 0.2 s.
                gc.collect()
                gc.freeze()
            with closing_on_signals(running.closing):
                async with in_background(running):
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
    for routes in (answers, search, ingestion, admin, openai, health, owner, pages):
        app.include_router(routes.router)
    if mcp.INSTALLED:
        app.include_router(mcp.router)
    install_handlers(app)
    # The last one added is the outermost.
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
        allow_headers=TAKEN,
        expose_headers=EXPOSED,
    )
    app.add_middleware(RequestScope, metrics=metrics, public_url=settings.askbook_public_url)
    app.openapi = lambda: describe_app(app)
    return app
