"""What clients of OpenAI speak: /v1/chat/completions and /v1/models; /v1/responses is beside. A book is a model."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from askbook.api.addresses import to_address
from askbook.api.answering import check_reply, get_reply, stream_reply, to_event, to_failure
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
    pick_ours,
)
from askbook.api.examples import MAYBE_COMPLETION_STREAM, errors
from askbook.api.requests import BOOK_ID, SessionHeader
from askbook.api.running import Reader, Running, Up
from askbook.api.schemas import ChatResponse, OpenAIError
from askbook.domain import (
    Answer,
    AnswerEvent,
    BookRecord,
    Delta,
    Failed,
    Filters,
    Message,
    MetadataValue,
    Question,
    Refusal,
    Replied,
    Reply,
    Thread,
    to_internal_id,
    to_public_id,
)
from askbook.errors import AskbookError, InputError
from askbook.store.threads import Threads
from askbook.wiring import Askbook

router = APIRouter(prefix="/v1", tags=["openai"])

DONE = b"data: [DONE]\n\n"
_MARK = re.compile(r"\[(\d{1,3})\]")
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
        return await stream_reply(running, question, writer.write, {"X-Session-ID": writer.session_id}, askbook)
    return writer.to_completion(await get_reply(running, request, question, askbook))


@router.get("/models", responses=errors(openai=True))
async def models(running: Up, caller: Reader) -> ModelList:
    """The books of this key, as models."""
    books = find_books(caller, await running.askbook.ledger.load_books())
    named = [_to_model(f"{ANY_BOOK}/{to_public_id(one.book_id)}", one) for one in books]
    return ModelList(data=[_to_model(ANY_BOOK, _choose(caller, books)), *named] if books else [])


@router.get("/models/{model:path}", responses=errors(404, openai=True))
async def model(model: Annotated[str, Path(max_length=200)], running: Up, caller: Reader) -> ModelInfo:
    return _to_model(model, await _find_book(running, caller, model))


def _to_model(name: str, record: BookRecord) -> ModelInfo:
    made = [one for one in (record.last_full_ingest, record.last_incremental_update) if one is not None]
    return ModelInfo(id=name, created=int(max(made).timestamp()) if made else 0)


async def _find_book(running: Running, caller: Caller, model: str) -> BookRecord:
    books = find_books(caller, await running.askbook.ledger.load_books())
    if model == ANY_BOOK and len(books) > 1:
        return _choose(caller, books)
    name = None if model == ANY_BOOK else model.removeprefix(f"{ANY_BOOK}/")
    if name is not None and not _BOOK_ID.fullmatch(name):
        raise InputError("the model must be a book's id", "GET /v1/models lists them.")
    return await running.find_book(caller, name)


def _choose(caller: Caller, books: Sequence[BookRecord]) -> BookRecord:
    """The first that the key names, or the first of all."""
    order = {to_internal_id(caller.tenant, name): place for place, name in enumerate(caller.books or ())}
    return min(books, key=lambda one: order.get(one.book_id, len(order)))


async def read_question(
    running: Running, caller: Caller, model: str, told: Sequence[SentMessage | InputItem], session_id: str | None
) -> tuple[Question, Askbook]:
    """The last message asks. Those before are its conversation, unless a kept one goes on."""
    book = await _find_book(running, caller, model)
    spoken = [one for one in told if one.role in ("user", "assistant")]
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
    return question, running.askbook if session_id else _recalling(running, _to_messages(spoken[:-1]))


# --- a conversation that the client brings --------------------------------------------------------


class _RecalledThreads(Threads):
    """For a client that tells the conversation with each question: a new thread begins with it in mind."""

    def __init__(self, threads: Threads, told: tuple[Message, ...]) -> None:
        super().__init__(threads.database, threads.clock)
        self._told = told

    async def open(
        self,
        thread_id: str | None,
        book_id: str,
        owner: str = "",
        metadata: Mapping[str, MetadataValue] | None = None,
    ) -> Thread:
        return replace(await super().open(thread_id, book_id, owner, metadata), messages=self._told)


def _recalling(running: Running, told: tuple[Message, ...]) -> Askbook:
    return replace(running.askbook, threads=_RecalledThreads(running.askbook.threads, told))


def _to_messages(sent: Sequence[SentMessage | InputItem]) -> tuple[Message, ...]:
    """Questions and their answers in turn, as a thread has them; a question that nobody answered is left out."""
    now = datetime.now(UTC)
    told: list[Message] = []
    for one in sent:
        if one.role == "user" and len(told) % 2 == 1:
            told.pop()
        if (one.role == "user") == (len(told) % 2 == 0) and one.text.strip():
            told.append(Message("user" if one.role == "user" else "assistant", one.text, now))
    return tuple(told[: len(told) // 2 * 2])


# --- the wire -------------------------------------------------------------------------------------


class _CompletionWriter:
    """An answer in OpenAI's words: whole, or piece by piece."""

    def __init__(self, body: CompletionRequest, question: Question) -> None:
        self._id = f"chatcmpl-{uuid.uuid4().hex}"
        self._created = int(time.time())
        self._model = body.model
        self._wants_usage = body.stream_options is not None and body.stream_options.include_usage
        self._opened = False
        self.session_id = question.thread_id or ""

    def to_completion(self, replied: Replied) -> ChatCompletion:
        content = replied.reply.text + say_notices(replied.reply)
        message = CompletionMessage(content=content, annotations=_to_annotations(replied.reply))
        return ChatCompletion(
            id=self._id,
            created=self._created,
            model=self._model,
            choices=[Choice(message=message)],
            usage=Usage.of(replied.account.tokens_used),
            **pick_ours(ChatResponse.from_replied(replied, self.session_id)),
        )

    async def write(self, event: AnswerEvent) -> Iterable[bytes]:
        match event:
            case Delta(text):
                return [self._write_delta(text)]
            case Replied():
                return self._write_reply(event)
            case Failed(error):
                return [_write_error(error)]
            case _:
                return []

    def _write_delta(self, text: str) -> bytes:
        role = None if self._opened else "assistant"
        self._opened = True
        return self._write_chunk(ChunkChoice(delta=ChunkDelta(role=role, content=text)))

    def _write_reply(self, replied: Replied) -> Iterable[bytes]:
        try:
            check_reply(replied)
        except AskbookError as error:
            return [_write_error(error)]
        rest = (replied.reply.text if isinstance(replied.reply, Refusal) else "") + say_notices(replied.reply)
        said = [self._write_delta(rest)] if rest else []
        last = ChunkChoice(delta=ChunkDelta(annotations=_to_annotations(replied.reply)), finish_reason="stop")
        ours = pick_ours(ChatResponse.from_replied(replied, self.session_id))
        end = self._to_chunk([last]).model_copy(update=ours)
        usage = self._to_chunk([]).model_copy(update={"usage": Usage.of(replied.account.tokens_used)})
        return [*said, _to_data(end), *([_to_data(usage)] if self._wants_usage else []), DONE]

    def _write_chunk(self, choice: ChunkChoice) -> bytes:
        return _to_data(self._to_chunk([choice]))

    def _to_chunk(self, choices: list[ChunkChoice]) -> ChatCompletionChunk:
        return ChatCompletionChunk(id=self._id, created=self._created, model=self._model, choices=choices)


def _to_data(chunk: ChatCompletionChunk) -> bytes:
    return to_event(None, chunk.model_dump_json(exclude_none=True))


def _write_error(error: Exception) -> bytes:
    return to_event(None, OpenAIError.from_problem(to_failure(error)).model_dump_json())


def say_notices(reply: Reply) -> str:
    """Under the answer: other clients show its text and nothing beside it."""
    return "".join(f"\n\n*{notice}*" for notice in reply.notices)


def _to_annotations(reply: Reply) -> list[Annotation]:
    return [Annotation(url_citation=one) for one in to_citations(reply)]


def to_citations(reply: Reply) -> list[UrlCitation]:
    """Each mark in the text, with the page that it stands for."""
    if not isinstance(reply, Answer):
        return []
    sources = {source.number: source for source in reply.sources}
    return [
        UrlCitation(start_index=mark.start(), end_index=mark.end(), title=sources[int(mark[1])].title, url=url)
        for mark in _MARK.finditer(reply.text)
        if int(mark[1]) in sources and (url := to_address(sources[int(mark[1])].passage.chunk.url))
    ]
