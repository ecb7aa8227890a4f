"""A part that hangs must not keep anybody waiting: whoever needs it and has no answer yet is told that it is down."""

from __future__ import annotations

import asyncio
from asyncio import FIRST_COMPLETED
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from askbook.api.failing import to_response
from askbook.api.problems import to_outside
from askbook.api.running import NEEDED, Running
from askbook.errors import AskbookError

ALWAYS_OPEN = ("/health", "/ready", "/docs", "/openapi.json")
SEARCHING = ("/search", "/ask", "/chat/run", "/chat/stream", "/v1/chat/completions", "/v1/responses")


@dataclass(frozen=True)
class OutageGuard:
    """Pure ASGI. A stream that has begun looks after itself."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in ALWAYS_OPEN:
            return await self.app(scope, receive, send)
        running: Running = scope["app"].state.running
        outage = await _answer_or_outage(self.app, running, scope, receive, send)
        if outage is not None:
            response = to_response(to_outside(outage), scope)
            await response(scope, receive, send)


async def _answer_or_outage(
    app: ASGIApp, running: Running, scope: Scope, receive: Receive, send: Send
) -> AskbookError | None:
    """None where the app has answered."""
    begun = given_up = False

    async def send_on(message: Message) -> None:
        nonlocal begun
        begun = True
        if not given_up:
            await send(message)

    parts = NEEDED if scope["path"] in SEARCHING else ("database",)
    down = running.watch.until_down(parts)
    answer = asyncio.ensure_future(app(scope, receive, send_on))
    try:
        await asyncio.wait({down, answer}, return_when=FIRST_COMPLETED)
        if answer.done() or begun:
            await answer
            return None
        given_up = True
        return down.result()
    finally:
        down.cancel()
        if not answer.done():
            await running.leave(_end(answer))


async def _end(answer: asyncio.Future[None]) -> None:
    answer.cancel()
    await asyncio.wait({answer})
