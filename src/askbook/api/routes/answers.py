"""Questions and conversations: /ask, /chat and the sessions."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from askbook.api.answering import EventStream, get_reply, stream_reply, to_event, to_failure
from askbook.api.callers import Caller
from askbook.api.openapi import MAYBE_STREAM, STREAM, errors
from askbook.api.requests import UUID4, AgentRequest, BookId, ChatRequest, SessionHeader, ThreadChange
from askbook.api.running import Reader, Running, Up
from askbook.domain import (
    AnswerEvent,
    Delta,
    Failed,
    Filters,
    PassagesFound,
    Question,
    Refusal,
    Replied,
    Searching,
    to_public_id,
)
from askbook.shapes.answers import (
    CHAT_EVENTS,
    AgentResponse,
    ChatResponse,
    ContentEvent,
    ConversationThread,
    RetrievalResult,
    ThreadList,
    ThreadOverview,
    ToolCallEvent,
)

router = APIRouter(tags=["answers"])

SessionPath = Annotated[str, Path(pattern=UUID4, description="The session's UUID4.")]


@router.post("/ask", responses=errors(404, 413))
async def ask(
    body: AgentRequest, request: Request, running: Up, caller: Reader, session_id: SessionHeader = None
) -> AgentResponse:
    """Ask a book a question: an answer with its sources, or a refusal that says why."""
    question = await _read(running, caller, body, session_id)
    replied = await get_reply(running, request, question)
    response = AgentResponse.from_replied(replied, body.user_id)
    return response if body.include_sources else response.without_sources()


@router.post("/chat/run", response_model=ChatResponse, responses={200: MAYBE_STREAM, **errors(404, 413)})
async def chat_run(
    body: ChatRequest, request: Request, running: Up, caller: Reader, session_id: SessionHeader = None
) -> ChatResponse | Response:
    """A question of a conversation. With `stream` it answers as /chat/stream does."""
    if body.stream:
        return await chat_stream(body, request, running, caller, session_id)
    question = await _read(running, caller, body, session_id)
    return _to_chat(body, question, await get_reply(running, request, question))


@router.post("/chat/stream", response_class=StreamingResponse, responses={200: STREAM, **errors(404, 413)})
async def chat_stream(
    body: ChatRequest, request: Request, running: Up, caller: Reader, session_id: SessionHeader = None
) -> EventStream:
    """The same, as server-sent events."""
    question = await _read(running, caller, body, session_id)
    request_id = request.state.request_id
    return await stream_reply(running, question, lambda event: _write(event, body, question, request_id))


@router.get("/sessions", responses=errors(404))
async def sessions(
    running: Up,
    caller: Reader,
    book_id: BookId | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
) -> ThreadList:
    """The conversations of this key, the latest first."""
    book = await running.find_book_id(caller, book_id)
    found = await running.askbook.threads.load_all(caller.owner, book, limit)
    return ThreadList(threads=[ThreadOverview.of(thread, book_id=to_public_id(thread.book_id)) for thread in found])


@router.get("/session/{session_id}/history", responses=errors(404))
async def history(session_id: SessionPath, running: Up, caller: Reader) -> ConversationThread:
    """A whole conversation: the live messages, and the earlier ones that were archived."""
    threads = running.askbook.threads
    thread = await threads.load(session_id, caller.owner)
    told = await threads.load_history(session_id, caller.owner)
    return ConversationThread.from_history(thread, told, book_id=to_public_id(thread.book_id))


@router.patch("/session/{session_id}", responses=errors(404, 413))
async def change_session(body: ThreadChange, session_id: SessionPath, running: Up, caller: Reader) -> ThreadOverview:
    """Give a conversation another name, tags, or metadata."""
    thread = await running.askbook.threads.change(session_id, caller.owner, body.title, body.to_metadata())
    return ThreadOverview.of(thread, book_id=to_public_id(thread.book_id))


@router.delete("/session/{session_id}", status_code=204, responses=errors(404))
async def delete_session(session_id: SessionPath, running: Up, caller: Reader) -> Response:
    """Delete a conversation, for good."""
    await running.askbook.threads.delete(session_id, caller.owner)
    return Response(status_code=204)


async def _read(running: Running, caller: Caller, body: AgentRequest | ChatRequest, in_header: str | None) -> Question:
    book = await running.find_book(caller, body.book_id)
    session_id = body.session_id or in_header or str(uuid.uuid4())
    asked = Question(body.text, Filters(book.book_id), session_id, caller.owner, **running.askbook.limits)
    return body.complete(asked)


def _to_chat(body: ChatRequest, question: Question, replied: Replied) -> ChatResponse:
    chat = ChatResponse.from_replied(replied, question.thread_id or "", body.user_id)
    confidence, account = replied.reply.confidence, replied.account
    # An answer from the book's outline cites passages, but nothing was searched.
    searched = account.outcome is not None or question.selected_text is not None
    if body.include_embedding and searched and confidence is not None:
        found = PassagesFound(account.passages, confidence, account.outcome)
        chat.retrieval = RetrievalResult.from_found(found, include_embedding=True)
    return chat


def _write(event: AnswerEvent, body: ChatRequest, question: Question, request_id: str) -> Iterable[bytes]:
    match event:
        case Searching(query):
            yield _to_event(ToolCallEvent(query=query, session_id=question.thread_id or ""))
        case PassagesFound():
            yield _to_event(RetrievalResult.from_found(event, body.include_embedding))
        case Delta(text):
            yield _to_event(ContentEvent(delta=text))
        case Replied(reply):
            # The deltas together are the response, also for a refusal.
            if isinstance(reply, Refusal):
                yield _to_event(ContentEvent(delta=reply.text))
            yield _to_event(_to_chat(body, question, event))
        case Failed(error):
            yield _to_event(to_failure(error).model_copy(update={"request_id": request_id}))
        case _:
            pass


def _to_event(body: BaseModel) -> bytes:
    name = next(name for name, carried in CHAT_EVENTS.items() if isinstance(body, carried))
    return to_event(name, body.model_dump_json())
