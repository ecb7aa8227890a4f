"""`/feedback` and `/gaps`: what readers thought of answers, and what the book could not answer."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query

from askbook.answer.gaps import find_gaps
from askbook.api.examples import errors
from askbook.api.gap_schemas import FeedbackRequest, FeedbackResponse, GapList
from askbook.api.requests import BookId
from askbook.api.running import Admin, Reader, Up
from askbook.domain import to_public_id

router = APIRouter(tags=["gaps"])


@router.post("/feedback", responses=errors(404, 413), summary="Say whether an answer helped")
async def give_feedback(running: Up, caller: Reader, body: FeedbackRequest) -> FeedbackResponse:
    given = await running.askbook.questions.save_feedback(
        body.session_id, caller.owner, body.helpful, body.comment, body.position
    )
    return FeedbackResponse.from_feedback(given)


@router.get("/gaps", responses=errors(404), summary="The questions that the book could not answer")
async def list_gaps(
    running: Up,
    caller: Admin,
    book_id: Annotated[BookId | None, Query()] = None,
    days: Annotated[int, Query(ge=1, le=3650, description="Asked within so many days.")] = 90,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> GapList:
    """The questions that the book could not answer, grouped, with the section that should have. Costs 5 requests of the key's minute."""
    named = (await running.find_book(caller, book_id)).book_id if book_id else None
    since = datetime.now(UTC) - timedelta(days=days)
    asked = await running.askbook.questions.load_open(caller.scope, named, since)
    gaps = await find_gaps(asked, running.askbook.embedder)
    return GapList.from_gaps([replace(gap, book_id=to_public_id(gap.book_id)) for gap in gaps], limit)
