"""Answers over HTTP, whole or streamed; counted, and ended when a reader leaves, a part fails or the server ends."""

from __future__ import annotations

import asyncio
import contextlib
from asyncio import FIRST_COMPLETED
from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import replace
from typing import Any

from fastapi import Request
from fastapi.responses import StreamingResponse
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from starlette.types import Receive, Scope, Send

from askbook.answer.ask import get_reply as wait_for_reply
from askbook.api.failing import ClientLeft, to_unknown
from askbook.api.running import NEEDED, Running, cancel
from askbook.domain import AnswerEvent, Failed, Question, Refusal, Replied, StateChanged
from askbook.errors import AskbookError, EmbedderUnavailable
from askbook.shapes.problems import ErrorResponse, to_outside
from askbook.wiring import Askbook

Event = AnswerEvent | None
"""None where nothing came for a while."""


async def get_reply(running: Running, request: Request, question: Question, askbook: Askbook | None = None) -> Replied:
    """The whole answer at once. It ends when its client leaves."""
    async with contextlib.aclosing(_watch_answer(running, question, askbook, request)) as events:
        return await wait_for_reply(events)


def fail_without_service(event: AnswerEvent) -> AnswerEvent:
    """A service that is down is reported as a failure, not as a refusal of the book."""
    if isinstance(event, Replied) and isinstance(event.reply, Refusal) and event.reply.reason == "provider_down":
        return Failed(EmbedderUnavailable(event.reply.text, event.reply.advice or None))
    return event


async def stream_reply(
    running: Running,
    question: Question,
    write: Callable[[AnswerEvent], Iterable[bytes]],
    askbook: Askbook | None = None,
) -> EventStream:
    """The answer as it comes; `write` makes an event's bytes. What fails before there is anything to send is raised.

    A header names the session, so that a reader whose stream breaks off can go on in it."""
    events = _watch_answer(running, replace(question, streamed=True), askbook)
    try:
        opening = await _read_opening(events)
    except BaseException:
        await events.aclose()
        raise

    async def write_all() -> AsyncGenerator[bytes]:
        with running.metrics.streams.track_inprogress():
            async with contextlib.aclosing(events):
                for event in opening:
                    for piece in write(event):
                        yield piece
                async for event in events:
                    for piece in [KEEPALIVE_COMMENT] if event is None else write(event):
                        yield piece

    return EventStream(write_all(), {"X-Session-ID": question.thread_id or ""})


class EventStream(StreamingResponse):
    """Server-sent events in FastAPI's own wire format.

    FastAPI makes them of a generator too, but only for a route that always streams, and it leaves an abandoned
    generator to the garbage collector. Here a reader who leaves ends the model's call at once.
    """

    media_type = "text/event-stream"

    def __init__(self, pieces: AsyncGenerator[bytes], headers: dict[str, str]) -> None:
        super().__init__(pieces, headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no", **headers})
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._pieces.aclose()


def to_event(name: str | None, data: str) -> bytes:
    return format_sse_event(event=name, data_str=data)


def to_failure(error: Exception) -> ErrorResponse:
    """The body of an `error` event: its stream has begun, so no status can tell."""
    return to_outside(error) if isinstance(error, AskbookError) else to_unknown()


# --- the events of one question -------------------------------------------------------------------


async def _read_opening(events: AsyncGenerator[Event]) -> list[AnswerEvent]:
    """The events up to the first that has something to send, or up to the first silence."""
    opening: list[AnswerEvent] = []
    async for event in events:
        if isinstance(event, Failed):
            raise event.error
        if event is None:
            break
        opening.append(event)
        if not isinstance(event, StateChanged):
            break
    return opening


async def _watch_answer(
    running: Running, question: Question, askbook: Askbook | None, request: Request | None = None
) -> AsyncGenerator[Event]:
    """The events of a question until the last, or until there is a reason to stop; None after each silence."""
    events = (askbook or running.askbook).ask(question)
    own: list[asyncio.Future[Any]] = [running.watch.until_down(NEEDED)]
    if request is not None:
        own.append(asyncio.create_task(_await_leaving(request)))
    reasons = [*own, running.closing.over]
    coming: asyncio.Future[AnswerEvent] | None = None
    try:
        while True:
            coming = coming or asyncio.ensure_future(anext(events))
            done, _ = await asyncio.wait(
                {coming, *reasons}, timeout=running.patience.keepalive, return_when=FIRST_COMPLETED
            )
            event: Event = None
            if coming in done:
                event, coming = coming.result(), None
            elif done:
                event = Failed(next(reason.result() for reason in reasons if reason.done()))
            if event is not None:
                running.metrics.note_event(event)
                event = fail_without_service(event)
            yield event
            if isinstance(event, Replied | Failed):
                return
    finally:
        for reason in own:
            reason.cancel()
        await running.leave(_close(coming, events))


async def _close(coming: asyncio.Future[AnswerEvent] | None, events: AsyncGenerator[AnswerEvent]) -> None:
    if coming is not None:
        await cancel(coming)
    await events.aclose()


async def _await_leaving(request: Request) -> Exception:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    return ClientLeft()
