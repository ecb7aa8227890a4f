"""Questions and conversations: /ask, /chat and the sessions."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from askbook.api.answering import EventStream, check_reply, get_reply, stream_reply, to_event, to_failure
from askbook.api.callers import Caller
from askbook.api.examples import MAYBE_STREAM, STREAM, errors
from askbook.api.failing import get_request_id
from askbook.api.requests import UUID4, AgentRequest, BookId, ChatRequest, SessionHeader, ThreadChange
from askbook.api.running import Reader, Running, Up
from askbook.api.schemas import (
    AgentResponse,
    ChatResponse,
    ContentEvent,
    ConversationThread,
    RetrievalResult,
    ThreadList,
    ThreadOverview,
    ToolCallEvent,
)
from askbook.domain import (
    AnswerEvent,
    Delta,
    Failed,
    PassagesFound,
    Question,
    Refusal,
    Replied,
    Searching,
    Thread,
    to_public_id,
)
from askbook.errors import AskbookError

router = APIRouter(tags=["answers"])

SessionPath = Annotated[str, Path(pattern=UUID4, description="The session's UUID4.")]


@router.post("/ask", responses=errors(404, 413))
async def ask(
    body: AgentRequest, request: Request, running: Up, caller: Reader, session_id: SessionHeader = None
) -> AgentResponse:
    """Ask a book a question: an answer with its sources, or a refusal that says why."""
    question = await _read(running, caller, body, session_id)
    replied = await get_reply(running, request, question)
    response = AgentResponse.from_replied(replied, body.reader.user_id if body.reader else None)
    return response if body.include_sources else response.without_sources()


@router.post("/chat/run", response_model=ChatResponse, responses={200: MAYBE_STREAM, **errors(404, 413)})
async def chat_run(
    body: ChatRequest, request: Request, running: Up, caller: Reader, session_id: SessionHeader = None
) -> ChatResponse | Response:
    """A question of a conversation. With `stream` it answers as /chat/stream does."""
    if body.stream:
        return await chat_stream(body, request, running, caller, session_id)
    question = await _read(running, caller, body, session_id)
    replied = await get_reply(running, request, question)
    return _to_chat(body, question, replied)


@router.post("/chat/stream", response_class=StreamingResponse, responses={200: STREAM, **errors(404, 413)})
async def chat_stream(
    body: ChatRequest, request: Request, running: Up, caller: Reader, session_id: SessionHeader = None
) -> EventStream:
    """The same, as server-sent events."""
    question = await _read(running, caller, body, session_id)
    writer = _ChatWriter(running, body, question, get_request_id(request))
    return await stream_reply(running, question, writer.write, {"X-Session-ID": writer.session_id})


@router.get("/sessions", responses=errors(404))
async def sessions(
    running: Up,
    caller: Reader,
    book_id: BookId | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
) -> ThreadList:
    """The conversations of this key, the latest first."""
    book = (await running.find_book(caller, book_id)).book_id if book_id else None
    found = await running.askbook.threads.load_all(caller.owner, book, limit)
    return ThreadList(threads=[_to_public(ThreadOverview.from_thread(one), one) for one in found])


@router.get("/session/{session_id}/history", responses=errors(404))
async def history(session_id: SessionPath, running: Up, caller: Reader) -> ConversationThread:
    """A whole conversation: the live messages, and the earlier ones that were archived."""
    threads = running.askbook.threads
    thread = await threads.load(session_id, caller.owner)
    whole = ConversationThread.from_history(thread, await threads.load_history(session_id, caller.owner))
    return whole.model_copy(update={"book_id": to_public_id(thread.book_id)})


@router.patch("/session/{session_id}", responses=errors(404, 413))
async def change_session(body: ThreadChange, session_id: SessionPath, running: Up, caller: Reader) -> ThreadOverview:
    """Give a conversation another name, tags, or metadata."""
    thread = await running.askbook.threads.change(session_id, caller.owner, body.title, body.to_metadata())
    return _to_public(ThreadOverview.from_thread(thread), thread)


@router.delete("/session/{session_id}", status_code=204, responses=errors(404))
async def delete_session(session_id: SessionPath, running: Up, caller: Reader) -> Response:
    """Delete a conversation, for good."""
    await running.askbook.threads.delete(session_id, caller.owner)
    return Response(status_code=204)


async def _read(running: Running, caller: Caller, body: AgentRequest | ChatRequest, in_header: str | None) -> Question:
    book = await running.find_book(caller, body.book_id)
    # Known before the answer is: whose stream breaks off can go on in the same session.
    session_id = body.session_id or in_header or str(uuid.uuid4())
    return body.to_question(book.book_id, caller.owner, session_id, running.settings)


def _to_public(overview: ThreadOverview, thread: Thread) -> ThreadOverview:
    return overview.model_copy(update={"book_id": to_public_id(thread.book_id)})


def _to_chat(body: ChatRequest, question: Question, replied: Replied) -> ChatResponse:
    user_id = body.reader.user_id if body.reader else None
    chat = ChatResponse.from_replied(replied, question.thread_id or "", user_id)
    confidence, account = replied.reply.confidence, replied.account
    # What the book's structure tells is looked up in its outline: it cites passages, and none was searched for.
    searched = account.outcome is not None or question.selected_text is not None
    if not body.include_embedding or not searched or confidence is None:
        return chat
    found = PassagesFound(account.passages, confidence, account.outcome)
    return chat.model_copy(update={"retrieval": RetrievalResult.from_found(found, include_embedding=True)})


class _ChatWriter:
    """Puts the events of a question on the wire."""

    def __init__(self, running: Running, body: ChatRequest, question: Question, request_id: str | None) -> None:
        self._running = running
        self._body = body
        self._question = question
        self._request_id = request_id
        self.session_id = question.thread_id or ""

    async def write(self, event: AnswerEvent) -> Iterable[bytes]:
        match event:
            case Searching(query):
                return [to_event("tool_call", ToolCallEvent(query=query, session_id=self.session_id).model_dump_json())]
            case PassagesFound():
                found = RetrievalResult.from_found(event, self._body.include_embedding)
                return [to_event("retrieval", found.model_dump_json())]
            case Delta(text):
                return [_to_content(text)]
            case Replied():
                return self._write_reply(event)
            case Failed(error):
                return [self._write_error(error)]
            case _:
                return []

    def _write_reply(self, replied: Replied) -> Iterable[bytes]:
        try:
            check_reply(replied)
        except AskbookError as error:
            return [self._write_error(error)]
        whole = to_event("done", _to_chat(self._body, self._question, replied).model_dump_json())
        # The deltas are the response, also where it refuses.
        return [_to_content(replied.reply.text), whole] if isinstance(replied.reply, Refusal) else [whole]

    def _write_error(self, error: Exception) -> bytes:
        problem = to_failure(error).model_copy(update={"request_id": self._request_id})
        return to_event("error", problem.model_dump_json())


def _to_content(text: str) -> bytes:
    return to_event("content", ContentEvent(delta=text).model_dump_json())
