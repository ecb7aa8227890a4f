"""Who asks, and what they thought of it: the bodies of /keys, /feedback, /gaps and /usage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from typing import Any, Self

from pydantic import Field

from askbook.domain import (
    ConfidenceLevel,
    Feedback,
    Gap,
    Key,
    NearSection,
    Opinion,
    RefusalReason,
    UsageDay,
    to_public_id,
)
from askbook.shapes.answers import Count
from askbook.shapes.body import Addressed, Body, body_of, example, taken_from

KEY_EXAMPLE: dict[str, Any] = {
    "key_id": "5f1b0c7c0e5b",
    "name": "docs site",
    "role": "reader",
    "tenant": "",
    "books": ["robotics"],
    "origins": ["https://docs.example.org"],
    "created_at": "2026-11-16T09:30:00Z",
    "revoked_at": None,
    "last_used_at": None,
}


class KeyBody(body_of(Key, "scope")):
    model_config = example(**KEY_EXAMPLE)

    tenant: str
    books: list[str] | None
    origins: list[str] = Field(description="Empty: a secret of its bearer, good everywhere.")

    @classmethod
    def from_key(cls, made: Key, /, **more: Any) -> Self:
        return cls.of(made, made.scope, **more)


class CreatedKey(KeyBody):
    model_config = example(**KEY_EXAMPLE, key="askbook_5f1b0c7c0e5b_…")

    key: str = Field(description="Shown this once.")


class KeyList(Body):
    keys: list[KeyBody] = Field(description="The oldest first, the revoked ones too.")


class FeedbackResponse(body_of(Feedback, "thread_id", "given_at")):
    session_id: str = taken_from("thread_id")
    timestamp: datetime = taken_from("given_at")


class GapSection(Addressed, body_of(NearSection, "url")): ...


class GapBody(body_of(Gap)):
    count: int = Field(ge=1, description="How often something of this meaning was asked.")
    refused: Count
    unhelpful: Count = Field(description="How many of the answers got a thumb down.")
    comments: list[str] = Field(description="What readers said of the answers.")
    section: GapSection | None = Field(description="The section that should have said it; null where none came close.")


class GapList(Body):
    gaps: list[GapBody]
    total: Count = Field(description="How many there are; the list may be shorter.")
    questions: Count = Field(description="How many open questions are in them.")

    @classmethod
    def from_gaps(cls, gaps: Sequence[Gap], limit: int) -> Self:
        return cls(
            gaps=[GapBody.of(gap) for gap in gaps[:limit]],
            total=len(gaps),
            questions=sum(gap.count for gap in gaps),
        )


class UsageDayBody(body_of(UsageDay)):
    day: date = Field(description="In UTC.")
    asked: Count
    levels: dict[ConfidenceLevel, int] = Field(description="How sure the answers were.")
    refused: dict[RefusalReason, int] = Field(description="Why there was no answer.")
    helpful: Count
    unhelpful: Count


class OpinionBody(body_of(Opinion)): ...


class UsageResponse(Body):
    model_config = example(
        days=[
            {
                "day": "2026-11-16",
                "asked": 12,
                "levels": {"high": 6, "medium": 3, "low": 1},
                "refused": {"not_in_book": 2},
                "helpful": 4,
                "unhelpful": 1,
            }
        ],
        opinions=[
            {
                "book_id": "robotics",
                "question": "What is a URDF file?",
                "helpful": False,
                "comment": "It does not say which version.",
                "given_at": "2026-11-16T09:30:00Z",
            }
        ],
    )

    days: list[UsageDayBody] = Field(description="Every day, the oldest first.")
    opinions: list[OpinionBody] = Field(description="The latest thumbs, the newest first.")

    @classmethod
    def from_usage(cls, first: date, last: date, usage: Iterable[UsageDay], opinions: Iterable[Opinion]) -> Self:
        known = {day.day: day for day in usage}
        days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
        return cls(
            days=[UsageDayBody.of(known.get(day) or UsageDay(day)) for day in days],
            opinions=[OpinionBody.of(opinion, book_id=to_public_id(opinion.book_id)) for opinion in opinions],
        )
