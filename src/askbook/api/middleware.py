"""Around every request: its id, its line in the log, its count, the headers that browsers obey, and the last resort."""

from __future__ import annotations

import logging
import re
import time
import uuid
from dataclasses import dataclass

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from askbook.api.addresses import at_home, read_home
from askbook.api.failing import to_unknown
from askbook.api.metrics import Metrics

logger = logging.getLogger("askbook.api")

_SANE_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")
UNKNOWN_ROUTE = "unknown"

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
"""Unless a route says otherwise."""


@dataclass(frozen=True)
class RequestScope:
    """Pure ASGI: a stream inside it flows as it would without."""

    app: ASGIApp
    metrics: Metrics
    public_url: str | None
    """None: where the caller found it."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        request_id = _read_id(Headers(scope=scope).get("x-request-id"))
        scope.setdefault("state", {})["request_id"] = request_id
        if scope["method"] == "HEAD":
            # Answered as GET is; the server, which keeps the scope it made, sends the head alone.
            scope = {**scope, "method": "GET"}
        started, status = time.perf_counter(), 0

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                _add_headers(MutableHeaders(scope=message), request_id)
            await send(message)

        home = at_home(self.public_url or read_home(Request(scope)))
        with structlog.contextvars.bound_contextvars(request_id=request_id), home:
            try:
                await self.app(scope, receive, send_on)
            except Exception:
                logger.exception("a request failed unexpectedly")
                if status:
                    # Too late for another answer: a connection that breaks off is the only sign left.
                    raise
                await to_unknown(scope)(scope, receive, send_on)
            finally:
                self._note(scope, status, time.perf_counter() - started)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", UNKNOWN_ROUTE)
        self.metrics.note_request(route, _method(scope), status, seconds)
        told = {"route": route, "method": _method(scope), "status": status, "ms": round(seconds * 1000, 1)}
        caller = scope["state"].get("caller")
        if caller is not None and caller.key_id:
            told["key_id"] = caller.key_id
        logger.info("request", extra=told)


def _read_id(sent: str | None) -> str:
    """The caller's own where it is sane, so that its logs and ours can be laid side by side."""
    return sent if sent and _SANE_ID.fullmatch(sent) else uuid.uuid4().hex


def _add_headers(headers: MutableHeaders, request_id: str) -> None:
    headers["X-Request-ID"] = request_id
    for name, value in HEADERS.items():
        headers.setdefault(name, value)


def _method(scope: Scope) -> str:
    """Anybody may invent one; a label is kept for each."""
    known = ("GET", "POST", "DELETE", "OPTIONS", "HEAD", "PUT", "PATCH")
    return scope["method"] if scope["method"] in known else "other"
