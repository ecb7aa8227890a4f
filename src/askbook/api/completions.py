"""/v1/chat/completions, as OpenAI's clients write and read it, with askbook's own fields: sources, session, refusal."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from askbook.api.answering import to_event, to_failure
from askbook.api.failing import OpenAIError
from askbook.api.requests import SessionId, clean_body
from askbook.domain import MARK, AnswerEvent, Delta, Failed, Question, Refusal, Replied, Reply
from askbook.errors import InputError
from askbook.shapes.answers import ChatResponse, ChatSource, CheckedStatement, RefusalBody
from askbook.shapes.body import example, to_address

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

    model_config = ConfigDict(extra="ignore")

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
    messages: list[SentMessage] = Field(
        min_length=1,
        max_length=MESSAGES_MAX,
        description="The last is the question; those before are its conversation.",
    )
    stream: bool = False
    stream_options: StreamOptions | None = None
    session_id: SessionId | None = Field(
        default=None, description="Go on with a conversation that askbook keeps, in place of the earlier messages."
    )


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


class _Completion(OwnFields):
    id: str
    created: int
    model: str


class ChatCompletion(_Completion):
    object: Literal["chat.completion"] = "chat.completion"
    choices: list[Choice]
    usage: Usage


class ChunkDelta(BaseModel):
    role: Literal["assistant"] | None = None
    content: str | None = None
    annotations: list[Annotation] | None = None


class ChunkChoice(BaseModel):
    index: int = 0
    delta: ChunkDelta
    finish_reason: Literal["stop"] | None = None
    logprobs: None = None


class ChatCompletionChunk(_Completion):
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    choices: list[ChunkChoice]
    usage: Usage | None = None


class ModelInfo(BaseModel):
    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "askbook"


class ModelList(BaseModel):
    object: Literal["list"] = "list"
    data: list[ModelInfo]


# --- how an answer is told ------------------------------------------------------------------------


class CompletionWriter:
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
    sources = {source.number: source for source in reply.sources}
    return [
        UrlCitation(start_index=mark.start(), end_index=mark.end(), title=source.title, url=url)
        for mark in MARK.finditer(reply.text)
        if (source := sources.get(int(mark[1]))) and (url := to_address(source.passage.chunk.url))
    ]
