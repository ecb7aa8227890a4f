"""What wraps the routes, outermost first; pure ASGI, so that it does not hold up a streamed answer."""

from __future__ import annotations

import asyncio
import logging
import math
import re
import time
import uuid
from asyncio import FIRST_COMPLETED
from dataclasses import dataclass

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from askbook.api.failing import to_response, to_unknown
from askbook.api.limits import Allowance
from askbook.api.metrics import Metrics
from askbook.api.running import NEEDED, Running, cancel
from askbook.errors import AskbookError
from askbook.shapes.body import at_home
from askbook.shapes.problems import to_outside

logger = logging.getLogger("askbook.api")
LOGGED = "The log of the server says more; it is found there by the request_id."


# --- its id, its line in the log, its count, the headers that browsers obey, and the last resort ---

_SANE_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")
_SANE_HOST = re.compile(r"[A-Za-z0-9.-]{1,255}(:\d{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:\d{1,5})?")
UNKNOWN_ROUTE = "unknown"
METHODS = ("GET", "POST", "DELETE", "OPTIONS", "HEAD", "PUT", "PATCH")

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
"""Set unless the route has set them."""


@dataclass(frozen=True)
class RequestScope:
    app: ASGIApp
    metrics: Metrics
    public_url: str | None
    """None: the address that the caller used."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        sent = Headers(scope=scope)
        # The caller's own id is kept where it is sane, so that its logs can be compared with ours.
        own_id = sent.get("x-request-id", "")
        request_id = own_id if _SANE_ID.fullmatch(own_id) else uuid.uuid4().hex
        scope.setdefault("state", {})["request_id"] = request_id
        if scope["method"] == "HEAD":
            # Answered as GET; the server, which has the original scope, sends the head alone.
            scope = {**scope, "method": "GET"}
        started, status = time.perf_counter(), 0

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-ID"] = request_id
                _add_limits(headers, status, scope["state"].get("allowance"))
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        home = at_home(self.public_url or _read_home(scope, sent))
        with structlog.contextvars.bound_contextvars(request_id=request_id), home:
            try:
                await self.app(scope, receive, send_on)
            except Exception:
                logger.exception("a request failed unexpectedly")
                if status:
                    # The answer has begun; only breaking off the connection can tell.
                    raise
                await to_response(to_unknown(LOGGED), scope)(scope, receive, send_on)
            finally:
                self._note(scope, status, time.perf_counter() - started)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", UNKNOWN_ROUTE)
        # Each label is kept for good, and a client can invent methods.
        method = scope["method"] if scope["method"] in METHODS else "other"
        self.metrics.requests.labels(route, method, str(status)).inc()
        self.metrics.request_seconds.labels(route).observe(seconds)
        told = {"route": route, "method": method, "status": status, "ms": round(seconds * 1000, 1)}
        caller = scope["state"].get("caller")
        if caller is not None and caller.key_id:
            told["key_id"] = caller.key_id
        logger.info("request", extra=told)


def _read_home(scope: Scope, sent: Headers) -> str | None:
    """The server's address as the caller wrote it; None where that is not a host."""
    host = sent.get("host", "")
    scheme = "https" if sent.get("x-forwarded-proto") == "https" else scope.get("scheme", "http")
    return f"{scheme}://{host}" if _SANE_HOST.fullmatch(host) else None


def _add_limits(headers: MutableHeaders, status: int, allowance: Allowance | None) -> None:
    """What is left of the key's minute; on a 401, how to show a key."""
    if status == 401:
        headers.setdefault("WWW-Authenticate", "Bearer")
    if allowance is None:
        return
    headers["X-RateLimit-Limit"] = str(allowance.limit)
    headers["X-RateLimit-Remaining"] = str(allowance.remaining)
    headers["X-RateLimit-Reset"] = str(math.ceil(time.time()) + allowance.seconds)
    if status == 429:
        headers["Retry-After"] = str(allowance.seconds)


# --- the sites that a browser lets ask: ASKBOOK_CORS_ORIGINS, and those of a key in force ----------

FRESH_SECONDS = 2.0
PATIENCE_SECONDS = 1.0
"""A database that hangs must not hold up the 503 that reports it."""


class KnownOrigins(CORSMiddleware):
    """Starlette's, with the sites of all keys in force: a preflight carries no key, so any of them is allowed."""

    _of_keys: frozenset[str] = frozenset()
    _fresh_until = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and any(name == b"origin" for name, _ in scope["headers"]):
            await self._refresh(scope["app"].state.running)
        await super().__call__(scope, receive, send)

    def is_allowed_origin(self, origin: str) -> bool:
        return origin in self._of_keys or super().is_allowed_origin(origin)

    async def _refresh(self, running: Running) -> None:
        if time.monotonic() < self._fresh_until:
            return
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                self._of_keys = await running.askbook.keys.load_origins()
        except (AskbookError, TimeoutError):
            logger.warning("the sites of keys were not read; those known before are allowed")
        self._fresh_until = time.monotonic() + FRESH_SECONDS


# --- a part that hangs: whoever needs it and has no answer yet is told that it is down -------------

ALWAYS_OPEN = ("/health", "/ready", "/docs", "/openapi.json")
SEARCHING = ("/search", "/ask", "/chat/run", "/chat/stream", "/v1/chat/completions", "/v1/responses")


@dataclass(frozen=True)
class OutageGuard:
    """Answers 503 when a part goes down before the answer has begun; a stream that has begun reports it itself."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in ALWAYS_OPEN:
            return await self.app(scope, receive, send)
        running: Running = scope["app"].state.running
        begun = given_up = False

        async def send_on(message: Message) -> None:
            nonlocal begun
            begun = True
            if not given_up:
                await send(message)

        down = running.watch.until_down(NEEDED if scope["path"] in SEARCHING else ("database",))
        answer = asyncio.ensure_future(self.app(scope, receive, send_on))
        try:
            await asyncio.wait({down, answer}, return_when=FIRST_COMPLETED)
            if answer.done() or begun:
                return await answer
            given_up = True
            # Answered first: a driver takes a while to let go of what hangs.
            await to_response(to_outside(down.result()), scope)(scope, receive, send)
        finally:
            down.cancel()
            if not answer.done():
                await running.leave(cancel(answer))
