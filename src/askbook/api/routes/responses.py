"""/v1/responses, OpenAI's newer way to ask: whole, or event by event."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterable
from typing import Any

from fastapi import APIRouter, Request, Response

from askbook.api.answering import get_reply, stream_reply, to_event, to_failure
from askbook.api.completions import (
    InputItem,
    OutputMessage,
    OutputText,
    ResponseAnnotation,
    ResponseBody,
    ResponseRequest,
    ResponseUsage,
    to_own_fields,
)
from askbook.api.failing import OpenAIError, printable
from askbook.api.openapi import MAYBE_RESPONSE_STREAM, errors
from askbook.api.requests import SessionHeader
from askbook.api.routes.openai import read_question, say_notices, say_rest, to_citations
from askbook.api.running import Reader, Up
from askbook.domain import AnswerEvent, Delta, Failed, Question, Replied
from askbook.errors import InputError

router = APIRouter(prefix="/v1", tags=["openai"])

_ID = re.compile(r"resp_([0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15})[0-9a-f]{16}")
"""A response's id: the session's UUID4 in hex, and 16 more digits of its own."""


@router.post(
    "/responses", response_model=ResponseBody, responses={200: MAYBE_RESPONSE_STREAM, **errors(404, 413, openai=True)}
)
async def respond(
    body: ResponseRequest, request: Request, running: Up, caller: Reader, in_header: SessionHeader = None
) -> ResponseBody | Response:
    """Ask as a client of OpenAI's Responses does. Answers in its words, with `sources` beside."""
    told = [InputItem(role="user", content=body.input)] if isinstance(body.input, str) else body.input
    before = _read_session(body.previous_response_id) if body.previous_response_id else None
    session_id = body.session_id or before or in_header
    question, askbook = await read_question(running, caller, body.model, told, session_id)
    writer = _ResponseWriter(body, question)
    if body.stream:
        return await stream_reply(running, question, writer.write, askbook)
    return writer.to_response(await get_reply(running, request, question, askbook))


def _read_session(response_id: str) -> str:
    named = _ID.fullmatch(response_id)
    if named is None:
        raise InputError(f"there is no response {printable(response_id)}", "Leave previous_response_id out.")
    return str(uuid.UUID(named[1]))


class _ResponseWriter:
    def __init__(self, body: ResponseRequest, question: Question) -> None:
        self._session_id = question.thread_id or ""
        self._begun = ResponseBody(
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
        return self._begun.model_copy(update=told | to_own_fields(replied, self._session_id))

    def write(self, event: AnswerEvent) -> Iterable[bytes]:
        if not self._sent:
            yield from self._open()
        match event:
            case Delta(text):
                yield self._write_delta(text)
            case Replied(reply):
                if rest := say_rest(reply):
                    yield self._write_delta(rest)
                yield from self._close(self.to_response(event).model_dump(mode="json"))
            case Failed(error):
                # The client raises on `error`, as in every stream; the other fields are this event's own.
                told = OpenAIError.from_problem(to_failure(error)).error.model_dump()
                yield self._write("error", **{name: told[name] for name in ("message", "param", "code")}, error=told)
            case _:
                pass

    def _open(self) -> Iterable[bytes]:
        begun = self._begun.model_dump(mode="json")
        item = OutputMessage(id=self._item_id, status="in_progress", content=[])
        yield self._write("response.created", response=begun)
        yield self._write("response.in_progress", response=begun)
        yield self._write("response.output_item.added", output_index=0, item=item.model_dump(mode="json"))
        yield self._write_part("response.content_part.added", part=OutputText().model_dump(mode="json"))

    def _write_delta(self, text: str) -> bytes:
        return self._write_part("response.output_text.delta", delta=text, logprobs=[])

    def _close(self, response: dict[str, Any]) -> Iterable[bytes]:
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

    def _write_part(self, kind: str, **more: Any) -> bytes:
        return self._write(kind, item_id=self._item_id, output_index=0, content_index=0, **more)

    def _write(self, kind: str, **more: Any) -> bytes:
        number, self._sent = self._sent, self._sent + 1
        return to_event(kind, json.dumps({"type": kind, "sequence_number": number, **more}, ensure_ascii=False))
