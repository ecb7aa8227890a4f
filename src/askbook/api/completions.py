"""/v1/chat/completions, as OpenAI's clients write and read it, with askbook's own fields: sources, session, refusal."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal, Protocol, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from askbook.api.answering import to_event, to_failure
from askbook.api.failing import OpenAIError
from askbook.api.requests import SessionId, clean_body
from askbook.domain import MARK, AnswerEvent, Delta, Failed, Question, Refusal, Replied, Reply
from askbook.errors import InputError
from askbook.shapes.answers import ChatResponse, ChatSource, CheckedStatement, RefusalBody
from askbook.shapes.body import describe, example, to_address

ANY_BOOK = "askbook"
"""The model's name for the only book there is, or for the first; `askbook/ID` names one."""
ModelName = Annotated[
    str,
    Field(
        max_length=200,
        description=f"`{ANY_BOOK}/` and a book's id; `{ANY_BOOK}` alone is the first book that the key names, else the "
        "first there is.",
    ),
]
MESSAGES_MAX = 500
TEXT_MAX = 100_000
TEXT_PARTS = ("text", "input_text", "output_text")
DONE = b"data: [DONE]\n\n"


# --- what is sent ---------------------------------------------------------------------------------


class Sent(BaseModel):
    """Unknown fields are ignored: a client may send what only its usual service knows."""

    model_config = ConfigDict(extra="ignore", json_schema_extra=describe)

    _clean = model_validator(mode="before")(clean_body)


class MessagePart(Sent):
    type: str = Field(max_length=40)
    text: str | None = Field(default=None, max_length=TEXT_MAX)


class Said(Sent):
    content: str | list[MessagePart] | None = Field(default=None, max_length=TEXT_MAX)

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            if any(part.type not in TEXT_PARTS for part in self.content):
                raise InputError("a message has a part that is not text", "askbook reads text alone.")
            return "\n".join(part.text or "" for part in self.content)
        return self.content or ""


class SentMessage(Said):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]


class StreamOptions(Sent):
    include_usage: bool = False


class CompletionRequest(Sent):
    model_config = example(model=ANY_BOOK, messages=[{"role": "user", "content": "What is a URDF file?"}])

    model: ModelName
    messages: list[SentMessage] = Field(min_length=1, max_length=MESSAGES_MAX)
    """The last is the question; those before are its conversation."""
    stream: bool = False
    stream_options: StreamOptions | None = None
    session_id: SessionId | None = None
    """Go on with a conversation that askbook keeps, in place of the earlier messages."""


# --- what is told ---------------------------------------------------------------------------------


class OwnFields(BaseModel):
    """The fields that askbook adds."""

    sources: list[ChatSource] | None = None
    session_id: str | None = None
    confidence: float | None = None
    confidence_level: str | None = None
    refusal: RefusalBody | None = None
    notices: list[str] | None = None
    removed: list[CheckedStatement] | None = None


def to_own_fields(replied: Replied, session_id: str) -> dict[str, Any]:
    chat = ChatResponse.from_replied(replied, session_id)
    return {name: getattr(chat, name) for name in OwnFields.model_fields}


class UrlCitation(BaseModel):
    start_index: int
    end_index: int
    title: str
    url: str


class Annotation(BaseModel):
    """Where in the text a source is cited."""

    type: Literal["url_citation"] = "url_citation"
    url_citation: UrlCitation


class CompletionMessage(BaseModel):
    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None
    annotations: list[Annotation]


class Choice(BaseModel):
    index: int = 0
    message: CompletionMessage
    finish_reason: Literal["stop"] = "stop"
    logprobs: None = None


class Usage(BaseModel):
    """The tokens of the model behind askbook. They are counted together and reported as tokens of the prompt."""

    prompt_tokens: int
    completion_tokens: int = 0
    total_tokens: int

    @classmethod
    def of(cls, tokens: int) -> Self:
        return cls(prompt_tokens=tokens, total_tokens=tokens)


class ChatCompletion(OwnFields):
    id: str
    created: int
    model: str
    object: Literal["chat.completion"] = "chat.completion"
    choices: list[Choice]
    usage: Usage


class ModelInfo(BaseModel):
    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "askbook"


class ModelList(BaseModel):
    object: Literal["list"] = "list"
    data: list[ModelInfo]


# --- how an answer is told ------------------------------------------------------------------------


class Wire(Protocol):
    """How a piece of an answer is written on one of OpenAI's two wires."""

    def write_beginning(self) -> Iterable[bytes]: ...

    def write_text(self, text: str) -> Iterable[bytes]: ...

    def write_end(self, replied: Replied) -> Iterable[bytes]: ...

    def write_error(self, error: OpenAIError) -> Iterable[bytes]: ...


def write_on(wire: Wire) -> Callable[[AnswerEvent], Iterable[bytes]]:
    begun = False

    def write(event: AnswerEvent) -> Iterable[bytes]:
        nonlocal begun
        if not begun:
            begun = True
            yield from wire.write_beginning()
        match event:
            case Delta(text):
                yield from wire.write_text(text)
            case Replied(reply):
                # The deltas left out all of a refusal, and the notices.
                if rest := (reply.text if isinstance(reply, Refusal) else "") + say_notices(reply):
                    yield from wire.write_text(rest)
                yield from wire.write_end(event)
            case Failed(error):
                yield from wire.write_error(OpenAIError.from_problem(to_failure(error)))
            case _:
                pass

    return write


class CompletionWriter:
    def __init__(self, body: CompletionRequest, question: Question) -> None:
        self._head = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": body.model}
        self._wants_usage = body.stream_options is not None and body.stream_options.include_usage
        self._session_id = question.thread_id or ""

    def to_completion(self, replied: Replied) -> ChatCompletion:
        content = replied.reply.text + say_notices(replied.reply)
        message = CompletionMessage(content=content, annotations=_to_annotations(replied.reply))
        usage, ours = Usage.of(replied.account.tokens_used), to_own_fields(replied, self._session_id)
        return ChatCompletion(**self._head, choices=[Choice(message=message)], usage=usage, **ours)

    def write_beginning(self) -> Iterable[bytes]:
        yield self._write_choice({"role": "assistant", "content": ""})

    def write_text(self, text: str) -> Iterable[bytes]:
        yield self._write_choice({"content": text})

    def write_end(self, replied: Replied) -> Iterable[bytes]:
        annotations = [annotation.model_dump() for annotation in _to_annotations(replied.reply)]
        ours = OwnFields(**to_own_fields(replied, self._session_id)).model_dump(mode="json", exclude_none=True)
        yield self._write_choice({"annotations": annotations}, "stop", **ours)
        if self._wants_usage:
            yield self._write(choices=[], usage=Usage.of(replied.account.tokens_used).model_dump())
        yield DONE

    def write_error(self, error: OpenAIError) -> Iterable[bytes]:
        yield to_event(None, error.model_dump_json())

    def _write_choice(self, delta: dict[str, Any], finish_reason: str | None = None, **told: object) -> bytes:
        return self._write(choices=[{"index": 0, "delta": delta, "finish_reason": finish_reason}], **told)

    def _write(self, **told: object) -> bytes:
        chunk = {**self._head, "object": "chat.completion.chunk", **told}
        return to_event(None, json.dumps(chunk, ensure_ascii=False))


def say_notices(reply: Reply) -> str:
    """The notices as text under the answer: OpenAI's clients show nothing else."""
    return "".join(f"\n\n*{notice}*" for notice in reply.notices)


def _to_annotations(reply: Reply) -> list[Annotation]:
    return [Annotation(url_citation=citation) for citation in to_citations(reply)]


def to_citations(reply: Reply) -> list[UrlCitation]:
    """Each mark in the text, with the page of its source."""
    sources = {source.number: source for source in reply.sources}
    return [
        UrlCitation(start_index=mark.start(), end_index=mark.end(), title=source.title, url=url)
        for mark in MARK.finditer(reply.text)
        if (source := sources.get(int(mark[1]))) and (url := to_address(source.passage.chunk.url))
    ]
