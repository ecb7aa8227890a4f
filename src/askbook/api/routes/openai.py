"""OpenAI's routes: /v1/chat/completions, /v1/responses and /v1/models. A book is a model."""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from askbook.api.answering import get_reply, stream_reply
from askbook.api.callers import Caller, find_books
from askbook.api.completions import (
    ANY_BOOK,
    ChatCompletion,
    CompletionRequest,
    CompletionWriter,
    ModelInfo,
    ModelList,
    SentMessage,
    write_on,
)
from askbook.api.openapi import MAYBE_COMPLETION_STREAM, MAYBE_RESPONSE_STREAM, errors
from askbook.api.requests import BOOK_ID, SessionHeader
from askbook.api.responses import InputItem, ResponseBody, ResponseRequest, ResponseWriter, read_session_id
from askbook.api.running import Reader, Running, Up
from askbook.domain import BookRecord, Filters, Message, Question, Thread, to_internal_id
from askbook.errors import InputError
from askbook.store.threads import Threads
from askbook.wiring import Askbook

router = APIRouter(prefix="/v1", tags=["openai"])

_BOOK_ID = re.compile(BOOK_ID)


@router.post(
    "/chat/completions",
    response_model=ChatCompletion,
    responses={200: MAYBE_COMPLETION_STREAM, **errors(404, 413, openai=True)},
)
async def complete(
    body: CompletionRequest, request: Request, running: Up, caller: Reader, session_id: SessionHeader = None
) -> ChatCompletion | Response:
    """The last message asks, those before are its conversation. Answers as OpenAI would, with `sources` beside."""
    question, askbook = await _read_question(running, caller, body.model, body.messages, body.session_id or session_id)
    writer = CompletionWriter(body, question)
    if body.stream:
        return await stream_reply(running, question, write_on(writer), askbook)
    return writer.to_completion(await get_reply(running, request, question, askbook))


@router.get("/models", responses=errors(openai=True))
async def models(running: Up, caller: Reader) -> ModelList:
    """The books of this key, as models."""
    books = find_books(caller, await running.askbook.ledger.load_books())
    named = [_to_model(f"{ANY_BOOK}/{book.public_id}", book) for book in books]
    return ModelList(data=[_to_model(ANY_BOOK, _choose_first(caller, books)), *named] if books else [])


@router.get("/models/{model:path}", responses=errors(404, openai=True))
async def model(model: Annotated[str, Path(max_length=200)], running: Up, caller: Reader) -> ModelInfo:
    return _to_model(model, await _find_book(running, caller, model))


@router.post(
    "/responses", response_model=ResponseBody, responses={200: MAYBE_RESPONSE_STREAM, **errors(404, 413, openai=True)}
)
async def respond(
    body: ResponseRequest, request: Request, running: Up, caller: Reader, in_header: SessionHeader = None
) -> ResponseBody | Response:
    """Ask as a client of OpenAI's Responses does. Answers in its words, with `sources` beside."""
    told = [InputItem(role="user", content=body.input)] if isinstance(body.input, str) else body.input
    before = read_session_id(body.previous_response_id) if body.previous_response_id else None
    session_id = body.session_id or before or in_header
    question, askbook = await _read_question(running, caller, body.model, told, session_id)
    writer = ResponseWriter(body, question)
    if body.stream:
        return await stream_reply(running, question, write_on(writer), askbook)
    return writer.to_response(await get_reply(running, request, question, askbook))


def _to_model(name: str, record: BookRecord) -> ModelInfo:
    return ModelInfo(id=name, created=int(record.last_change.timestamp()) if record.last_change else 0)


async def _find_book(running: Running, caller: Caller, model: str) -> BookRecord:
    books = find_books(caller, await running.askbook.ledger.load_books())
    if model == ANY_BOOK and len(books) > 1:
        return _choose_first(caller, books)
    name = None if model == ANY_BOOK else model.removeprefix(f"{ANY_BOOK}/")
    if name is not None and not _BOOK_ID.fullmatch(name):
        raise InputError("the model must be a book's id", "GET /v1/models lists them.")
    return await running.find_book(caller, name)


def _choose_first(caller: Caller, books: Sequence[BookRecord]) -> BookRecord:
    """The first that the key names, or the first of all."""
    order = {to_internal_id(caller.scope.tenant, name): place for place, name in enumerate(caller.scope.books or ())}
    return min(books, key=lambda book: order.get(book.book_id, len(order)))


async def _read_question(
    running: Running, caller: Caller, model: str, told: Sequence[SentMessage | InputItem], session_id: str | None
) -> tuple[Question, Askbook]:
    """The last message asks. Those before are its conversation, unless a kept one goes on."""
    book = await _find_book(running, caller, model)
    spoken = [message for message in told if message.role in ("user", "assistant")]
    if not spoken or spoken[-1].role != "user":
        raise InputError("the last message must be the user's", "It is the question.")
    thread_id, limits = session_id or str(uuid.uuid4()), running.askbook.limits
    question = Question(spoken[-1].text, Filters(book.book_id), thread_id, caller.owner, **limits)
    if session_id:
        return question, running.askbook
    brought = _ClientThreads(running.askbook.threads, _to_messages(spoken[:-1]))
    return question, replace(running.askbook, threads=brought)


# --- a conversation that the client brings --------------------------------------------------------


class _ClientThreads(Threads):
    """Threads of a client that sends the conversation with each question: a new thread begins with these messages."""

    def __init__(self, threads: Threads, told: tuple[Message, ...]) -> None:
        super().__init__(threads.database, threads.clock)
        self._told = told

    async def open(self, *given: Any, **named: Any) -> Thread:
        return replace(await super().open(*given, **named), messages=self._told)


def _to_messages(sent: Sequence[SentMessage | InputItem]) -> tuple[Message, ...]:
    """Questions and answers in turn, as a thread has them; a question without an answer is left out."""
    now = datetime.now(UTC)
    told: list[Message] = []
    for message in sent:
        if message.role == "user" and len(told) % 2 == 1:
            told.pop()
        if (message.role == "user") == (len(told) % 2 == 0) and message.text.strip():
            told.append(Message("user" if message.role == "user" else "assistant", message.text, now))
    return tuple(told[: len(told) // 2 * 2])
