"""The bodies that askbook takes, with the seeds' names, defaults and limits. A field that is not here is refused."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Annotated, Any, Self

from fastapi import Header, Path
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from askbook.answer.ask import SELECTED_MAX, TOP_K_MAX
from askbook.domain import (
    LIMIT_MAX,
    QUERY_MAX,
    QUERY_MIN,
    TIER_MAX,
    FacetValue,
    Filters,
    IngestMode,
    Layer,
    Level,
    Question,
    Reader,
    Role,
    SearchMode,
)
from askbook.shapes.body import describe, example, from_address
from askbook.store import database
from askbook.store.keys import NAME_MAX
from askbook.store.questions import COMMENT_MAX
from askbook.store.threads import METADATA_BYTES, READER_NAMES, TITLE_MAX

NUMBER_MAX = 1_000_000
EXACT = 2**53
"""Up to here a float holds every whole number."""
PREFIX_MAX = 500
DEPTH_MAX = 5
LIST_MAX = 50
UUID4 = r"^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-4[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}$"
UUID = r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
BOOK_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
NOT_BLANK = r"\S"


def _clean_value(value: Any) -> Any:
    """With U+FFFD for what is no character, and 1.0 as 1: JSON has one kind of number."""
    match value:
        case float() if value.is_integer() and abs(value) < EXACT:
            return int(value)
        case str():
            return database.to_storable(value)
        case _:
            return value


def _not_blank(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError("blank", "cannot be empty")
    return text


QuestionText = Annotated[
    str,
    Field(min_length=1, max_length=QUERY_MAX, json_schema_extra={"pattern": NOT_BLANK}),
    AfterValidator(_not_blank),
]
BookId = Annotated[str, Field(pattern=BOOK_ID, description="The book; may be left out where there is only one.")]
SessionId = Annotated[str, Field(pattern=UUID4, description="A UUID4. Left out, a new conversation begins.")]
SessionHeader = Annotated[
    str | None,
    Header(
        alias="X-Session-ID", pattern=UUID4, description="The session, where the body names none; streams tell it so."
    ),
]
LessonId = Annotated[str, Field(pattern=UUID), AfterValidator(str.lower)]
ChunkPath = Annotated[str, Path(pattern=UUID), AfterValidator(str.lower)]
WholeNumber = Annotated[int, Field(ge=0, le=NUMBER_MAX)]
FacetName = Annotated[str, Field(max_length=64)]
FacetChoice = Annotated[int, Field(ge=-NUMBER_MAX, le=NUMBER_MAX)] | Annotated[str, Field(max_length=200)]


def clean_body(body: Any) -> Any:
    try:
        return database.map_json(body, _clean_value)
    except RecursionError:
        raise PydanticCustomError("too_deep", "is nested too deeply") from None


class RequestBody(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, json_schema_extra=describe)

    _clean = model_validator(mode="before")(clean_body)


class ReaderProfile(RequestBody):
    """Who asks. The tier filters; the level and the layer are preferred."""

    hardware_tier: int | None = Field(default=None, ge=1, le=TIER_MAX)
    proficiency_level: Level | None = None
    layer: Layer | None = None
    user_id: str | None = Field(default=None, min_length=1, max_length=128)


class _QuestionBody(RequestBody):
    """What every question may carry, however it is sent."""

    text: QuestionText
    top_k: int = Field(default=5, ge=1, le=TOP_K_MAX, description="Passages to answer from.")
    book_id: BookId | None = None
    session_id: SessionId | None = None
    selected_text: str | None = Field(default=None, min_length=1, max_length=SELECTED_MAX)
    """Answer from this text alone."""
    reader: ReaderProfile | None = None
    module_filter: str | None = Field(default=None, max_length=200, description="Answer from this module alone.")

    @property
    def user_id(self) -> str | None:
        return self.reader.user_id if self.reader else None

    def complete(self, asked: Question) -> Question:
        """`asked`: of the text and the book, with the limits of the settings."""
        return replace(
            asked,
            filters=replace(asked.filters, module=self.module_filter),
            top_k=self.top_k if "top_k" in self.model_fields_set else asked.top_k,
            selected_text=self.selected_text,
            reader=Reader(**dict(self.reader)) if self.reader else None,
        )


class AgentRequest(_QuestionBody):
    """Seed 000's question."""

    model_config = example(query="How do ROS 2 nodes communicate?", top_k=5, include_sources=True)

    text: QuestionText = Field(alias="query", description="The question, 1 to 1000 characters.")
    include_sources: bool = Field(default=True, description="Whether the answer names its sources.")


class ChatRequest(_QuestionBody):
    """Seed 004's question."""

    model_config = example(
        message="How do ROS 2 nodes communicate?",
        session_id="550e8400-e29b-41d4-a716-446655440000",
        stream=False,
        top_k=5,
        similarity_threshold=0.7,
    )

    text: QuestionText = Field(alias="message", description="The question, 1 to 1000 characters.")
    stream: bool = Field(default=False, description="Answer as server-sent events, as /chat/stream always does.")
    similarity_threshold: float = Field(default=0.7, ge=0, le=1)
    """The least relevance: what lies below it counts as not found. Relevance is calibrated: with 0.7 an answer of low
    confidence is seldom given, with 0 every one that the levels allow."""
    include_embedding: bool = False
    """Send the question's vectors along: in `retrieval`, an event of a stream, else a field. Where nothing is
    searched, as for the number of chapters, there is no `retrieval` in either."""

    def complete(self, asked: Question) -> Question:
        return replace(super().complete(asked), threshold=max(asked.threshold, self.similarity_threshold))


Tag = Annotated[str, Field(min_length=1, max_length=64, pattern=NOT_BLANK)]
MetadataName = Annotated[str, Field(min_length=1, max_length=64)]


class ThreadChange(RequestBody):
    model_config = example(title="Nodes and topics", tags=["ros2"], metadata={"course": 7})

    title: str | None = Field(default=None, min_length=1, max_length=TITLE_MAX, pattern=NOT_BLANK)
    """The conversation's new name."""
    tags: list[Tag] | None = Field(default=None, max_length=20, description="In place of those that it has.")
    metadata: dict[MetadataName, Any] | None = Field(
        default=None,
        max_length=50,
        description=f"Laid over what it has, {METADATA_BYTES} bytes at most; null takes a name out. Nested {DEPTH_MAX} "
        'levels at most, itself the first and the innermost value the last: `{"x": [[[1]]]}`.',
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.title is None and self.tags is None and self.metadata is None:
            raise PydanticCustomError("nothing", "must change something: title, tags or metadata")
        if _depth(self.metadata) > DEPTH_MAX:
            raise PydanticCustomError("too_deep", "is nested too deeply")
        self._check_names(self.metadata or {})
        return self

    def _check_names(self, metadata: dict[str, Any]) -> None:
        """Names that askbook itself keeps in the metadata are checked as in a question."""
        if "tags" in metadata:
            raise PydanticCustomError("tags", "must not have tags in its metadata: send them beside it")
        try:
            ReaderProfile.model_validate({name: metadata[name] for name in READER_NAMES & metadata.keys()})
        except ValidationError as error:
            name = error.errors()[0]["loc"][0]
            raise PydanticCustomError(
                "reader", "has a {name} in its metadata that no reader can have", {"name": name}
            ) from None

    def to_metadata(self) -> dict[str, Any]:
        return {**(self.metadata or {}), **({"tags": self.tags} if self.tags is not None else {})}


def _depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_depth, inner), default=0)


class SearchRequest(RequestBody):
    """Seed 003's SearchQuery. All filters must hold."""

    model_config = example(text="publish-subscribe", hardware_tier_filter=2, module_filter="ros2", limit=5)

    text: str = Field(min_length=QUERY_MIN, max_length=QUERY_MAX, description="What to look for, 3 to 1000 characters.")
    book_id: BookId | None = None
    hardware_tier_filter: int = Field(default=1, ge=1, le=TIER_MAX)
    """Nothing that needs a higher hardware tier."""
    module_filter: str | None = Field(default=None, max_length=200)
    chapter_min: WholeNumber | None = Field(default=None, description="Inclusive.")
    chapter_max: WholeNumber | None = Field(default=None, description="Inclusive.")
    lesson_filter: WholeNumber | None = None
    proficiency_levels: Annotated[list[Level], AfterValidator(tuple)] | None = Field(default=None, max_length=6)
    """Any of these."""
    layer_filter: Layer | None = None
    parent_doc_id: LessonId | None = Field(default=None, description="Only this lesson.")
    limit: int = Field(default=5, ge=1, le=LIMIT_MAX)
    mode: SearchMode = Field(default="hybrid", description="Words and meaning, meaning alone, or words alone.")
    threshold: float = Field(default=0.0, ge=0, le=1, description="Leave out what scores less.")
    rerank: bool | None = None
    """Read the first twenty and order them by how well they answer. Left out: only where a reranker is set up."""
    include_embedding: bool = Field(default=False, description="Send the question's vectors along.")
    facets: dict[FacetName, Annotated[list[FacetChoice], AfterValidator(tuple)]] = Field(
        default_factory=dict[str, list[FacetValue]], max_length=20, description="Any facet that the book declares."
    )
    url_prefix: Annotated[str, Field(max_length=PREFIX_MAX), AfterValidator(from_address)] | None = None
    """Only pages whose address begins so."""
    heading_prefix: str | None = Field(default=None, max_length=PREFIX_MAX)
    """Only below a heading path that begins so: “Book › Module”."""

    def to_filters(self, book_id: str) -> Filters:
        """Fields have the filters' names, some with the seeds' suffix `_filter`."""
        given = {name.removesuffix("_filter"): value for name, value in self if value not in (None, "")}
        given["book_id"] = book_id
        return Filters(**{field.name: given[field.name] for field in fields(Filters) if field.name in given})


class TriggerRequest(RequestBody):
    """What to ingest. The folder is the one that the book was made from; no caller names one."""

    model_config = example(book_id="robotics", mode="incremental")

    book_id: BookId | None = None
    mode: IngestMode = "incremental"
    """incremental: what changed; full: every file again; recreate: every file again, and nothing else is left."""


class FeedbackRequest(RequestBody):
    """A thumb on an answer. Sent again, it replaces what was said before."""

    model_config = example(
        session_id="550e8400-e29b-41d4-a716-446655440000", helpful=False, comment="It does not say which version."
    )

    session_id: SessionId
    helpful: bool
    position: WholeNumber | None = None
    """The place of the answer among all messages of the session, counted from 0. Default: the last answer."""
    comment: str | None = Field(default=None, max_length=COMMENT_MAX)


class KeyRequest(RequestBody):
    """A key to be made, for the tenant of the key that asks."""

    model_config = example(name="docs site", books=["robotics"], origins=["https://docs.example.org"])

    name: str = Field(min_length=1, max_length=NAME_MAX, description="Whose key it is.")
    role: Role = Field(default="reader", description="reader: asks and searches; admin: ingests and manages keys too.")
    books: list[BookId] | None = Field(default=None, min_length=1, max_length=LIST_MAX)
    """The books that it may read; null: all."""
    origins: list[str] = Field(default_factory=list[str], max_length=LIST_MAX)
    """The sites whose pages hold it, for all to read: it works on them alone."""
