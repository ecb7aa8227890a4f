"""The bodies of `/feedback` and `/gaps`, and what `askbook gaps --json` prints."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Self

from pydantic import BaseModel, ConfigDict, Field

from askbook.api.addresses import Addressed
from askbook.api.requests import NUMBER_MAX, RequestBody, SessionId
from askbook.domain import Feedback, Gap
from askbook.store.questions import COMMENT_MAX


class FeedbackRequest(RequestBody):
    """A thumb on an answer. Sent again, it replaces what was said before."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "session_id": "550e8400-e29b-41d4-a716-446655440000",
                    "helpful": False,
                    "comment": "It does not say which version.",
                }
            ]
        }
    )

    session_id: SessionId
    helpful: bool
    position: int | None = Field(
        default=None,
        ge=0,
        le=NUMBER_MAX,
        description="The place of the answer among all messages of the session, counted from 0. Default: the last answer.",
    )
    comment: str | None = Field(default=None, max_length=COMMENT_MAX)


class FeedbackResponse(BaseModel):
    session_id: str
    position: int
    helpful: bool
    comment: str | None
    timestamp: datetime

    @classmethod
    def from_feedback(cls, feedback: Feedback) -> Self:
        return cls(
            session_id=feedback.thread_id,
            position=feedback.position,
            helpful=feedback.helpful,
            comment=feedback.comment,
            timestamp=feedback.given_at,
        )


class GapSection(Addressed):
    model_config = ConfigDict(from_attributes=True)

    title: str
    source_file: str
    parent_doc_id: str


class GapBody(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    book_id: str
    question: str = Field(description="The one that speaks best for all of them.")
    count: int = Field(ge=1, description="How often something of this meaning was asked.")
    refused: int = Field(ge=0)
    unhelpful: int = Field(ge=0, description="How many of the answers got a thumb down.")
    last_asked: datetime
    variants: list[str] = Field(description="Other wordings.")
    own_words: list[str] = Field(description="What readers wrote, where the question was made whole from its thread.")
    comments: list[str] = Field(description="What readers said of the answers.")
    section: GapSection | None = Field(description="The section that should have said it; null where none came close.")


class GapList(BaseModel):
    gaps: list[GapBody]
    total: int = Field(ge=0, description="How many there are; the list may be shorter.")
    questions: int = Field(ge=0, description="How many open questions are in them.")

    @classmethod
    def from_gaps(cls, gaps: Sequence[Gap], limit: int) -> Self:
        return cls(
            gaps=[GapBody.model_validate(gap) for gap in gaps[:limit]],
            total=len(gaps),
            questions=sum(gap.count for gap in gaps),
        )
