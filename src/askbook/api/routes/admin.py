"""What the author's page needs besides the rest: `/usage` and `/keys`."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import Annotated

from fastapi import APIRouter, Path, Query

from askbook.api.examples import errors
from askbook.api.key_schemas import CreatedKey, KeyBody, KeyList, KeyRequest
from askbook.api.requests import BookId
from askbook.api.running import Admin, Up
from askbook.api.usage_schemas import UsageResponse
from askbook.errors import InputError

router = APIRouter()

OPINIONS = 10


@router.get("/usage", tags=["gaps"], responses=errors(404))
async def usage(
    running: Up,
    caller: Admin,
    book_id: Annotated[BookId | None, Query()] = None,
    days: Annotated[int, Query(ge=1, le=366, description="So many, today included.")] = 30,
) -> UsageResponse:
    """What was asked on each day, how sure the answers were, why others were refused, and what readers thought."""
    named = (await running.find_book(caller, book_id)).book_id if book_id else None
    today = datetime.now(UTC).date()
    first = today - timedelta(days=days - 1)
    since = datetime.combine(first, time(), UTC)
    questions = running.askbook.questions
    return UsageResponse.from_usage(
        first,
        today,
        await questions.load_usage(caller.scope, named, since),
        await questions.load_opinions(caller.scope, named, since, OPINIONS),
    )


@router.get("/keys", tags=["keys"], responses=errors())
async def list_keys(running: Up, caller: Admin) -> KeyList:
    """The keys for what this key may read."""
    return KeyList(keys=[KeyBody.from_key(one) for one in await running.askbook.keys.load_all(caller.scope)])


@router.post("/keys", tags=["keys"], status_code=201, responses=errors(413))
async def create_key(body: KeyRequest, running: Up, caller: Admin) -> CreatedKey:
    """Make a key for what this key may read, or for less. Its text is shown this once."""
    scope = body.to_scope(caller.tenant)
    if not caller.scope.covers(scope):
        raise InputError("a key cannot read more than the one that makes it", "Name books that this key may read.")
    made, text = await running.askbook.keys.create(body.name, body.role, scope, body.origins)
    return CreatedKey.from_key(made, key=text)


@router.delete("/keys/{key_id}", tags=["keys"], responses=errors(404))
async def revoke_key(key_id: Annotated[str, Path(max_length=64)], running: Up, caller: Admin) -> KeyBody:
    """Take a key back, at once and for good."""
    return KeyBody.from_key(await running.askbook.keys.revoke(key_id, caller.scope))
