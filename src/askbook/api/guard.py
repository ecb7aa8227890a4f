"""A part that hangs must not keep anybody waiting: whoever needs it and has no answer yet is told that it is down."""

from __future__ import annotations

import asyncio
from asyncio import FIRST_COMPLETED
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from askbook.api.failing import to_response
from askbook.api.problems import to_outside
from askbook.api.running import NEEDED, Running

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
            # Told first: a driver takes a while to let go of what hangs.
            response = to_response(to_outside(down.result()), scope)
            await response(scope, receive, send)
        finally:
            down.cancel()
            if not answer.done():
                await running.leave(_end(answer))


async def _end(answer: asyncio.Future[None]) -> None:
    answer.cancel()
    await asyncio.wait({answer})
