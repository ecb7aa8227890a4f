"""OpenAI's routes /v1/chat/completions and /v1/models; `responses.py` has /v1/responses. A book is a model."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from askbook.api.answering import get_reply, stream_reply, to_event, to_failure
from askbook.api.callers import Caller, find_books
from askbook.api.completions import (
    ANY_BOOK,
    Annotation,
    ChatCompletion,
    ChatCompletionChunk,
    Choice,
    ChunkChoice,
    ChunkDelta,
    CompletionMessage,
    CompletionRequest,
    InputItem,
    ModelInfo,
    ModelList,
    SentMessage,
    UrlCitation,
    Usage,
    to_own_fields,
)
from askbook.api.failing import OpenAIError
from askbook.api.openapi import MAYBE_COMPLETION_STREAM, errors
from askbook.api.requests import BOOK_ID, SessionHeader
from askbook.api.running import Reader, Running, Up
from askbook.domain import (
    MARK,
    Answer,
    AnswerEvent,
    BookRecord,
    Delta,
    Failed,
    Filters,
    Message,
    Question,
    Refusal,
    Replied,
    Reply,
    Thread,
    to_internal_id,
)
from askbook.errors import InputError
from askbook.shapes.body import to_address
from askbook.store.threads import Threads
from askbook.wiring import Askbook

router = APIRouter(prefix="/v1", tags=["openai"])

DONE = b"data: [DONE]\n\n"
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
    question, askbook = await read_question(running, caller, body.model, body.messages, body.session_id or session_id)
    writer = _CompletionWriter(body, question)
    if body.stream:
        return await stream_reply(running, question, writer.write, askbook)
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


async def read_question(
    running: Running, caller: Caller, model: str, told: Sequence[SentMessage | InputItem], session_id: str | None
) -> tuple[Question, Askbook]:
    """The last message asks. Those before are its conversation, unless a kept one goes on."""
    book = await _find_book(running, caller, model)
    spoken = [message for message in told if message.role in ("user", "assistant")]
    if not spoken or spoken[-1].role != "user":
        raise InputError("the last message must be the user's", "It is the question.")
    question = Question(
        spoken[-1].text,
        Filters(book.book_id),
        session_id or str(uuid.uuid4()),
        caller.owner,
        running.settings.agent_top_k,
        running.settings.agent_score_threshold,
    )
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


# --- the wire -------------------------------------------------------------------------------------


class _CompletionWriter:
    """An answer in OpenAI's words: whole, or piece by piece."""

    def __init__(self, body: CompletionRequest, question: Question) -> None:
        self._head = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": body.model}
        self._wants_usage = body.stream_options is not None and body.stream_options.include_usage
        self._opened = False
        self._session_id = question.thread_id or ""

    def to_completion(self, replied: Replied) -> ChatCompletion:
        content = replied.reply.text + say_notices(replied.reply)
        message = CompletionMessage(content=content, annotations=_to_annotations(replied.reply))
        usage, ours = Usage.of(replied.account.tokens_used), to_own_fields(replied, self._session_id)
        return ChatCompletion(**self._head, choices=[Choice(message=message)], usage=usage, **ours)

    def write(self, event: AnswerEvent) -> Iterable[bytes]:
        match event:
            case Delta(text):
                yield self._write_delta(text)
            case Replied(reply, account):
                if rest := say_rest(reply):
                    yield self._write_delta(rest)
                last = ChunkChoice(delta=ChunkDelta(annotations=_to_annotations(reply)), finish_reason="stop")
                yield self._write(choices=[last], **to_own_fields(event, self._session_id))
                if self._wants_usage:
                    yield self._write(choices=[], usage=Usage.of(account.tokens_used))
                yield DONE
            case Failed(error):
                yield to_event(None, OpenAIError.from_problem(to_failure(error)).model_dump_json())
            case _:
                pass

    def _write_delta(self, text: str) -> bytes:
        role = None if self._opened else "assistant"
        self._opened = True
        return self._write(choices=[ChunkChoice(delta=ChunkDelta(role=role, content=text))])

    def _write(self, **told: object) -> bytes:
        chunk = ChatCompletionChunk.model_validate({**self._head, **told})
        return to_event(None, chunk.model_dump_json(exclude_none=True))


def say_rest(reply: Reply) -> str:
    """What the deltas left out: all of a refusal, and the notices."""
    return (reply.text if isinstance(reply, Refusal) else "") + say_notices(reply)


def say_notices(reply: Reply) -> str:
    """The notices as text under the answer: OpenAI's clients show nothing else."""
    return "".join(f"\n\n*{notice}*" for notice in reply.notices)


def _to_annotations(reply: Reply) -> list[Annotation]:
    return [Annotation(url_citation=citation) for citation in to_citations(reply)]


def to_citations(reply: Reply) -> list[UrlCitation]:
    """Each mark in the text, with the page of its source."""
    sources = {source.number: source for source in reply.sources} if isinstance(reply, Answer) else {}
    return [
        UrlCitation(start_index=mark.start(), end_index=mark.end(), title=source.title, url=url)
        for mark in MARK.finditer(reply.text)
        if (source := sources.get(int(mark[1]))) and (url := to_address(source.passage.chunk.url))
    ]
