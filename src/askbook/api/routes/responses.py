"""/v1/responses, OpenAI's newer way to ask: whole, or event by event."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterable
from typing import Any

from fastapi import APIRouter, Request, Response

from askbook.api.answering import check_reply, get_reply, stream_reply, to_event, to_failure
from askbook.api.completions import (
    InputItem,
    OutputMessage,
    OutputText,
    ResponseAnnotation,
    ResponseBody,
    ResponseRequest,
    ResponseUsage,
    pick_ours,
)
from askbook.api.examples import MAYBE_RESPONSE_STREAM, errors
from askbook.api.requests import SessionHeader
from askbook.api.routes.openai import read_question, say_notices, to_citations
from askbook.api.running import Reader, Up
from askbook.api.schemas import ChatResponse, OpenAIError
from askbook.api.wording import printable
from askbook.domain import AnswerEvent, Delta, Failed, Question, Refusal, Replied
from askbook.errors import AskbookError, InputError

router = APIRouter(prefix="/v1", tags=["openai"])

_ID = re.compile(r"resp_([0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15})[0-9a-f]{16}")
"""The session of a response, and what tells it from the others of that session."""


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
        return await stream_reply(running, question, writer.write, {"X-Session-ID": writer.session_id}, askbook)
    return writer.to_response(await get_reply(running, request, question, askbook))


def _read_session(response_id: str) -> str:
    named = _ID.fullmatch(response_id)
    if named is None:
        raise InputError(f"there is no response {printable(response_id)}", "Leave previous_response_id out.")
    return str(uuid.UUID(named[1]))


class _ResponseWriter:
    def __init__(self, body: ResponseRequest, question: Question) -> None:
        self.session_id = question.thread_id or ""
        self._begun = ResponseBody(
            id=f"resp_{uuid.UUID(self.session_id).hex}{uuid.uuid4().hex[:16]}",
            created_at=int(time.time()),
            model=body.model,
            previous_response_id=body.previous_response_id,
        )
        self._item_id = f"msg_{uuid.uuid4().hex}"
        self._sent = 0

    def to_response(self, replied: Replied) -> ResponseBody:
        text = replied.reply.text + say_notices(replied.reply)
        cited = [ResponseAnnotation(**one.model_dump()) for one in to_citations(replied.reply)]
        tokens = replied.account.tokens_used
        ours = pick_ours(ChatResponse.from_replied(replied, self.session_id))
        message = OutputMessage(
            id=self._item_id, status="completed", content=[OutputText(text=text, annotations=cited)]
        )
        usage = ResponseUsage(input_tokens=tokens, total_tokens=tokens)
        return self._begun.model_copy(update={**ours, "status": "completed", "output": [message], "usage": usage})

    async def write(self, event: AnswerEvent) -> Iterable[bytes]:
        opening = [] if self._sent else self._open()
        match event:
            case Delta(text):
                return [*opening, self._write_delta(text)]
            case Replied():
                return [*opening, *self._write_reply(event)]
            case Failed(error):
                return [*opening, self._write_error(error)]
            case _:
                return opening

    def _open(self) -> list[bytes]:
        begun = self._begun.model_dump(mode="json")
        item = OutputMessage(id=self._item_id, status="in_progress", content=[])
        return [
            self._write("response.created", response=begun),
            self._write("response.in_progress", response=begun),
            self._write("response.output_item.added", output_index=0, item=item.model_dump(mode="json")),
            self._write_part("response.content_part.added", part=OutputText().model_dump(mode="json")),
        ]

    def _write_delta(self, text: str) -> bytes:
        return self._write_part("response.output_text.delta", delta=text, logprobs=[])

    def _write_reply(self, replied: Replied) -> Iterable[bytes]:
        try:
            whole = self.to_response(check_reply(replied))
        except AskbookError as error:
            yield self._write_error(error)
            return
        # The deltas are the text, also where it refuses.
        rest = (replied.reply.text if isinstance(replied.reply, Refusal) else "") + say_notices(replied.reply)
        if rest:
            yield self._write_delta(rest)
        response = whole.model_dump(mode="json")
        [item] = response["output"]
        [part] = item["content"]
        for place, one in enumerate(part["annotations"]):
            yield self._write_part("response.output_text.annotation.added", annotation=one, annotation_index=place)
        yield self._write_part("response.output_text.done", text=part["text"], logprobs=[])
        yield self._write_part("response.content_part.done", part=part)
        yield self._write("response.output_item.done", output_index=0, item=item)
        yield self._write("response.completed", response=response)

    def _write_error(self, error: Exception) -> bytes:
        """`error`, as in every stream, has the client raise; the rest is the event of this one."""
        told = OpenAIError.from_problem(to_failure(error)).error.model_dump()
        return self._write("error", **{name: told[name] for name in ("message", "param", "code")}, error=told)

    def _write_part(self, kind: str, **more: Any) -> bytes:
        return self._write(kind, item_id=self._item_id, output_index=0, content_index=0, **more)

    def _write(self, kind: str, **more: Any) -> bytes:
        number, self._sent = self._sent, self._sent + 1
        return to_event(kind, json.dumps({"type": kind, "sequence_number": number, **more}, ensure_ascii=False))
