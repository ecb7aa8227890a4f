"""/v1/responses, OpenAI's newer way to ask: its bodies, and the answer whole or event by event."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from askbook.api.answering import to_event
from askbook.api.completions import (
    ANY_BOOK,
    MESSAGES_MAX,
    TEXT_MAX,
    ModelName,
    OwnFields,
    Said,
    Sent,
    UrlCitation,
    say_notices,
    to_citations,
    to_own_fields,
)
from askbook.api.failing import OpenAIError, printable
from askbook.api.requests import SessionId
from askbook.domain import Question, Replied
from askbook.errors import InputError
from askbook.shapes.body import example

_ID = re.compile(r"resp_([0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15})[0-9a-f]{16}")
"""A response's id: the session's UUID4 in hex, and 16 more digits of its own."""


class InputItem(Said):
    """A message. Other items (tool calls, reasoning) have no role and are skipped."""

    role: Literal["system", "developer", "user", "assistant"] | None = None


class ResponseRequest(Sent):
    model_config = example(model=ANY_BOOK, input="What is a URDF file?")

    model: ModelName
    input: Annotated[str, Field(max_length=TEXT_MAX)] | Annotated[list[InputItem], Field(max_length=MESSAGES_MAX)]
    """The question; or messages, of which the last asks, and those before are its conversation."""
    stream: bool = False
    previous_response_id: str | None = Field(default=None, max_length=100)
    """Go on from this response, in place of the earlier messages."""
    session_id: SessionId | None = Field(default=None, description="The same, by askbook's own name for it.")


class ResponseAnnotation(UrlCitation):
    type: Literal["url_citation"] = "url_citation"


class OutputText(BaseModel):
    type: Literal["output_text"] = "output_text"
    text: str = ""
    annotations: list[ResponseAnnotation] = []
    logprobs: list[Any] = []


class OutputMessage(BaseModel):
    id: str
    type: Literal["message"] = "message"
    role: Literal["assistant"] = "assistant"
    status: Literal["in_progress", "completed"]
    content: list[OutputText]


class CachedTokens(BaseModel):
    cached_tokens: int = 0
    cache_write_tokens: int = 0


class ReasoningTokens(BaseModel):
    reasoning_tokens: int = 0


class ResponseUsage(BaseModel):
    """As in `Usage`, all tokens are reported as input."""

    input_tokens: int
    input_tokens_details: CachedTokens = CachedTokens()
    output_tokens: int = 0
    output_tokens_details: ReasoningTokens = ReasoningTokens()
    total_tokens: int


class ResponseBody(OwnFields):
    id: str
    object: Literal["response"] = "response"
    created_at: int
    status: Literal["in_progress", "completed"] = "in_progress"
    model: str
    output: list[OutputMessage] = Field(default=[])
    previous_response_id: str | None = None
    usage: ResponseUsage | None = None
    error: None = None
    incomplete_details: None = None
    instructions: None = None
    metadata: dict[str, str] = Field(default={})
    parallel_tool_calls: bool = False
    tool_choice: Literal["none"] = "none"
    tools: list[Any] = Field(default=[])
    temperature: None = None
    top_p: None = None


def read_session_id(response_id: str) -> str:
    named = _ID.fullmatch(response_id)
    if named is None:
        raise InputError(f"there is no response {printable(response_id)}", "Leave previous_response_id out.")
    return str(uuid.UUID(named[1]))


class ResponseWriter:
    def __init__(self, body: ResponseRequest, question: Question) -> None:
        self._session_id = question.thread_id or ""
        self._response = ResponseBody(
            id=f"resp_{uuid.UUID(self._session_id).hex}{uuid.uuid4().hex[:16]}",
            created_at=int(time.time()),
            model=body.model,
            previous_response_id=body.previous_response_id,
        )
        self._item_id = f"msg_{uuid.uuid4().hex}"
        self._sent = 0

    def to_response(self, replied: Replied) -> ResponseBody:
        text = replied.reply.text + say_notices(replied.reply)
        cited = [ResponseAnnotation(**citation.model_dump()) for citation in to_citations(replied.reply)]
        content = [OutputText(text=text, annotations=cited)]
        tokens = replied.account.tokens_used
        told = {
            "status": "completed",
            "output": [OutputMessage(id=self._item_id, status="completed", content=content)],
            "usage": ResponseUsage(input_tokens=tokens, total_tokens=tokens),
        }
        return self._response.model_copy(update=told | to_own_fields(replied, self._session_id))

    def write_beginning(self) -> Iterable[bytes]:
        begun = self._response.model_dump(mode="json")
        item = OutputMessage(id=self._item_id, status="in_progress", content=[])
        yield self._write("response.created", response=begun)
        yield self._write("response.in_progress", response=begun)
        yield self._write("response.output_item.added", output_index=0, item=item.model_dump(mode="json"))
        yield self._write_part("response.content_part.added", part=OutputText().model_dump(mode="json"))

    def write_text(self, text: str) -> Iterable[bytes]:
        yield self._write_part("response.output_text.delta", delta=text, logprobs=[])

    def write_end(self, replied: Replied) -> Iterable[bytes]:
        response = self.to_response(replied).model_dump(mode="json")
        [item] = response["output"]
        [part] = item["content"]
        for place, annotation in enumerate(part["annotations"]):
            yield self._write_part(
                "response.output_text.annotation.added", annotation=annotation, annotation_index=place
            )
        yield self._write_part("response.output_text.done", text=part["text"], logprobs=[])
        yield self._write_part("response.content_part.done", part=part)
        yield self._write("response.output_item.done", output_index=0, item=item)
        yield self._write("response.completed", response=response)

    def write_error(self, error: OpenAIError) -> Iterable[bytes]:
        # The client raises on `error`, as in every stream; the other fields are this event's own.
        told = error.error.model_dump()
        yield self._write("error", **{name: told[name] for name in ("message", "param", "code")}, error=told)

    def _write_part(self, kind: str, **more: Any) -> bytes:
        return self._write(kind, item_id=self._item_id, output_index=0, content_index=0, **more)

    def _write(self, kind: str, **more: Any) -> bytes:
        number, self._sent = self._sent, self._sent + 1
        return to_event(kind, json.dumps({"type": kind, "sequence_number": number, **more}, ensure_ascii=False))
