"""How large and how slow a request may be. Its body is read whole before a route sees it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from askbook.api.failing import to_response
from askbook.errors import AskbookError, HeadersTooLarge, TooLarge, TooSlow
from askbook.shapes.problems import to_problem

HEADERS_MAX = 100
HEADER_BYTES = 16 * 1024
ADDRESS_BYTES = 8 * 1024
DRAIN_BYTES = 8 * 1024 * 1024
DRAIN_SECONDS = 8.0


@dataclass(frozen=True)
class BoundedRequests:
    """Pure ASGI, so that it does not hold up a streamed answer."""

    app: ASGIApp
    body_bytes: int
    body_seconds: float
    larger: Mapping[str, int] = field(default_factory=dict[str, int])
    """Paths whose bodies may be larger, and by how much."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        try:
            body = await self._read(scope, receive)
        except ClientDisconnect:
            return None
        except AskbookError as error:
            # On an open connection the unread rest would be read as the next request.
            refusal = to_response(to_problem(error), scope, {"Connection": "close"})
            return await refusal(scope, receive, send)
        await self.app(scope, _replay(body, receive), send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes:
        limit = self.larger.get(scope["path"], self.body_bytes)
        try:
            async with asyncio.timeout(self.body_seconds):
                if (excess := _find_excess(scope, limit)) is None:
                    return await _read_body(receive, limit)
                # A client that sends `Expect` has not sent its body yet.
                if not any(name == b"expect" for name, _ in scope["headers"]):
                    await _drain(receive)
                raise excess
        except TimeoutError as error:
            raise TooSlow(f"the request did not come within {self.body_seconds:g} seconds", "Send it again.") from error


def _find_excess(scope: Scope, limit: int) -> AskbookError | None:
    """What the headers alone show to be too much. They may understate the body, so its bytes are counted too."""
    size = sum(len(name) + len(value) for name, value in scope["headers"])
    if len(scope["headers"]) > HEADERS_MAX or size > HEADER_BYTES:
        return HeadersTooLarge(f"a request has at most {HEADERS_MAX} headers, of {HEADER_BYTES} bytes in all")
    if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > ADDRESS_BYTES:
        return HeadersTooLarge(f"an address has at most {ADDRESS_BYTES} bytes")
    said = dict(scope["headers"]).get(b"content-length", b"")
    return _too_large(limit) if said.isdigit() and int(said[:20]) > limit else None


async def _read_body(receive: Receive, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        part = message.get("body", b"")
        size += len(part)
        more = message.get("more_body", False)
        if size > limit:
            if more:
                await _drain(receive)
            raise _too_large(limit)
        parts.append(part)
        if not more:
            return b"".join(parts)


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"a body has at most {limit} bytes", "Send less at a time.")


async def _drain(receive: Receive) -> None:
    """Reads some of what is still coming: a client that is cut off while it sends never reads the answer."""
    drained = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_SECONDS):
            while drained < DRAIN_BYTES:
                message = await receive()
                drained += len(message.get("body", b""))
                if not message.get("more_body", False):
                    return


def _replay(body: bytes, receive: Receive) -> Receive:
    """Gives the body that was read, and after it what comes next: the news that the client has left."""
    unread: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return unread.pop() if unread else await receive()

    return receive_again
