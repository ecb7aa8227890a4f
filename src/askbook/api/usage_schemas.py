"""The body of `/usage`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, timedelta
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field

from askbook.domain import ConfidenceLevel, Opinion, RefusalReason, UsageDay, to_public_id

DAY_EXAMPLE: dict[str, Any] = {
    "day": "2026-11-16",
    "asked": 12,
    "levels": {"high": 6, "medium": 3, "low": 1},
    "refused": {"not_in_book": 2},
    "helpful": 4,
    "unhelpful": 1,
}
OPINION_EXAMPLE: dict[str, Any] = {
    "book_id": "robotics",
    "question": "What is a URDF file?",
    "helpful": False,
    "comment": "It does not say which version.",
    "given_at": "2026-11-16T09:30:00Z",
}


class UsageDayBody(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    day: date = Field(description="In UTC.")
    asked: int = Field(ge=0)
    levels: dict[ConfidenceLevel, int] = Field(description="How sure the answers were.")
    refused: dict[RefusalReason, int] = Field(description="Why there was no answer.")
    helpful: int = Field(ge=0)
    unhelpful: int = Field(ge=0)


class OpinionBody(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    book_id: str
    question: str
    helpful: bool
    comment: str | None
    given_at: datetime


class UsageResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"days": [DAY_EXAMPLE], "opinions": [OPINION_EXAMPLE]}]})

    days: list[UsageDayBody] = Field(description="Every day, the oldest first.")
    opinions: list[OpinionBody] = Field(description="The latest thumbs, the newest first.")

    @classmethod
    def from_usage(cls, first: date, last: date, usage: Iterable[UsageDay], opinions: Iterable[Opinion]) -> Self:
        known = {one.day: one for one in usage}
        days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
        told = [OpinionBody.model_validate(one) for one in opinions]
        return cls(
            days=[UsageDayBody.model_validate(known.get(day) or UsageDay(day)) for day in days],
            opinions=[one.model_copy(update={"book_id": to_public_id(one.book_id)}) for one in told],
        )
