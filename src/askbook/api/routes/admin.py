"""What readers thought, what the book could not answer, and who may ask: /feedback, /gaps, /usage and /keys."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Annotated

from fastapi import APIRouter, Path, Query

from askbook.answer.gaps import find_gaps
from askbook.api.openapi import errors
from askbook.api.requests import BookId, FeedbackRequest, KeyRequest
from askbook.api.running import Admin, Reader, Up
from askbook.domain import Scope, to_public_id
from askbook.errors import InputError
from askbook.shapes.readers import CreatedKey, FeedbackResponse, GapList, KeyBody, KeyList, UsageResponse

router = APIRouter()

OPINIONS = 10


@router.post("/feedback", tags=["gaps"], responses=errors(404, 413), summary="Say whether an answer helped")
async def give_feedback(running: Up, caller: Reader, body: FeedbackRequest) -> FeedbackResponse:
    given = await running.askbook.questions.save_feedback(
        body.session_id, caller.owner, body.helpful, body.comment, body.position
    )
    return FeedbackResponse.of(given)


@router.get("/gaps", tags=["gaps"], responses=errors(404), summary="The questions that the book could not answer")
async def list_gaps(
    running: Up,
    caller: Admin,
    book_id: Annotated[BookId | None, Query()] = None,
    days: Annotated[int, Query(ge=1, le=3650, description="Asked within so many days.")] = 90,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> GapList:
    """The questions that the book could not answer, grouped, with the section that should have.
    Costs 5 requests of the key's minute."""
    named = await running.find_book_id(caller, book_id)
    since = datetime.now(UTC) - timedelta(days=days)
    asked = await running.askbook.questions.load_open(caller.scope, named, since)
    gaps = await find_gaps(asked, running.askbook.embedder)
    return GapList.from_gaps([replace(gap, book_id=to_public_id(gap.book_id)) for gap in gaps], limit)


@router.get("/usage", tags=["gaps"], responses=errors(404))
async def usage(
    running: Up,
    caller: Admin,
    book_id: Annotated[BookId | None, Query()] = None,
    days: Annotated[int, Query(ge=1, le=366, description="So many, today included.")] = 30,
) -> UsageResponse:
    """What was asked on each day, how sure the answers were, why others were refused, and what readers thought."""
    named = await running.find_book_id(caller, book_id)
    today = datetime.now(UTC).date()
    first = today - timedelta(days=days - 1)
    since = datetime.combine(first, time(), UTC)
    asked = await running.askbook.questions.load_usage(caller.scope, named, since)
    opinions = await running.askbook.questions.load_opinions(caller.scope, named, since, OPINIONS)
    return UsageResponse.from_usage(first, today, asked, opinions)


@router.get("/keys", tags=["keys"], responses=errors())
async def list_keys(running: Up, caller: Admin) -> KeyList:
    """The keys for what this key may read."""
    return KeyList(keys=[KeyBody.from_key(key) for key in await running.askbook.keys.load_all(caller.scope)])


@router.post("/keys", tags=["keys"], status_code=201, responses=errors(413))
async def create_key(body: KeyRequest, running: Up, caller: Admin) -> CreatedKey:
    """Make a key for what this key may read, or for less. Its text is shown this once."""
    scope = Scope(caller.scope.tenant, tuple(dict.fromkeys(body.books)) if body.books else None)
    if not caller.scope.covers(scope):
        raise InputError("a key cannot read more than the one that makes it", "Name books that this key may read.")
    made, text = await running.askbook.keys.create(body.name, body.role, scope, body.origins)
    return CreatedKey.from_key(made, key=text)


@router.delete("/keys/{key_id}", tags=["keys"], responses=errors(404))
async def revoke_key(key_id: Annotated[str, Path(max_length=64)], running: Up, caller: Admin) -> KeyBody:
    """Take a key back, at once and for good."""
    return KeyBody.from_key(await running.askbook.keys.revoke(key_id, caller.scope))
