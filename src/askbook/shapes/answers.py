"""What was found, answered and said: the bodies of /search, /ask, /chat and the sessions, with the seeds' names."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Annotated, Any, Self
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field

from askbook.answer.check.marks import drop_marks
from askbook.domain import (
    LIVE_MESSAGES,
    RETRIEVAL_TOOL,
    TIER_MAX,
    Answer,
    AnsweredBy,
    Chunk,
    ConfidenceLevel,
    Message,
    Passage,
    PassagesFound,
    RefusalReason,
    Replied,
    Reply,
    Retrieval,
    SearchMode,
    SearchOutcome,
    Source,
    Statement,
    Thread,
    to_public_id,
)
from askbook.shapes.body import Addressed, Body, body_of, taken_from
from askbook.shapes.problems import ErrorResponse

Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]
Milliseconds = Annotated[float, Field(ge=0)]
ChunkPlace = body_of(
    Chunk,
    *("id", "text", "book_id", "url", "embed_text", "embed_hash", "source_file_hash", "pieces", "sections", "version"),
    *("word_count", "token_count", "char_count", "created_at", "updated_at", "embedded_at", "embedding_model"),
    "module_order",
)
"""Where a chunk stands, and for whom it was written."""


# --- search ---------------------------------------------------------------------------------------


class SearchResult(Addressed, ChunkPlace):
    text: str
    score: Share = taken_from("rating", "The calibrated relevance; results are in its order.")
    chunk_id: str = taken_from("id")
    rank: int
    similarity: float | None = Field(description="The raw cosine; null for a chunk without a vector.")
    keyword_score: float | None = Field(description="The raw BM25 score; null where no word matched.")
    re_ranking_score: Share | None = taken_from("rerank_score", "The reranker's own score; null without one.")

    @classmethod
    def from_passage(cls, passage: Passage) -> Self:
        return cls.of(passage, passage.chunk)


class QueryKeywords(Body):
    """A sparse vector: the ids of the question's words and their weights."""

    indices: list[int]
    values: list[float]


class Retrieved(Body):
    """What every search tells of itself: seed 002's RetrievalContext, and seed 004's vector where it was asked for."""

    retrieved_at: datetime
    filter_applied: str | None = Field(description="The prefix of an address or a heading that it was kept to.")
    query_embedding: list[float] | None
    """The question's vector, where `include_embedding` asked for it; null where the words alone were searched."""
    query_keywords: QueryKeywords | None = Field(description="The weights of its words, likewise.")

    @classmethod
    def from_search(cls, outcome: SearchOutcome | None, include_embedding: bool, **named: Any) -> Self:
        prefixes = (outcome.filters.url_prefix, outcome.filters.heading_prefix) if outcome else ()
        shown = outcome if include_embedding else None
        weights = shown.keywords if shown else {}
        return cls.of(
            outcome,
            retrieved_at=(outcome and outcome.retrieved_at) or datetime.now(UTC),
            filter_applied=" and ".join(filter(None, prefixes)) or None,
            query_embedding=list(shown.vector) if shown and shown.vector is not None else None,
            query_keywords=QueryKeywords(indices=[*weights], values=[*weights.values()]) if shown else None,
            **named,
        )


class SearchResponse(Retrieved):
    query: str
    results: list[SearchResult]
    total_found: int
    hardware_tier_filter: int
    module_filter: str | None
    book_id: str
    mode: SearchMode = Field(description="As it was searched: `keyword` where the embedder did not answer.")
    embedding_time_ms: float = taken_from("embedding_ms")
    retrieval_time_ms: float = taken_from("retrieval_ms")
    notices: list[str] = Field(description="A service that did not take part.")

    @classmethod
    def from_outcome(cls, outcome: SearchOutcome, include_embedding: bool = False, book_id: str | None = None) -> Self:
        filters = outcome.filters
        return cls.from_search(
            outcome,
            include_embedding,
            results=[SearchResult.from_passage(passage) for passage in outcome.passages],
            hardware_tier_filter=TIER_MAX if filters.hardware_tier is None else filters.hardware_tier,
            module_filter=filters.module,
            book_id=book_id or filters.book_id,
        )


class ConfidenceMetrics(Body):
    """Seed 004's, over the calibrated relevance of the five best passages."""

    average_similarity: Share
    min_similarity: Share
    max_similarity: Share
    num_chunks: Count
    """The best passages that were found, five at most, whatever `top_k` leaves of them."""
    chunk_diversity: Share
    confidence_level: ConfidenceLevel
    should_answer: bool
    chance: Share | None = None
    """How often a text like the one shown answers; null where nothing was read."""


class SearchSignals(Body):
    """What the search tells of the question; the two chances are null where raw cosines decide."""

    similarity: float | None = Field(description="Mean raw cosine of the five best passages.")
    coverage: float = Field(description="The most of the question's words, weighed by rarity, that one of them holds.")
    score: float
    lead: float = Field(description="How far the best lesson is ahead of the next.")
    unknown_words: list[str]
    chance_in_book: float | None
    chance_right_place: float | None
    chance_on_topic: float | None = Field(description="As read: that the book speaks of this; null without a reader.")
    chance_answered: float | None = Field(description="As read: that some excerpt answers it.")
    chance_shown: float | None = Field(description="As read: that the text which would be shown answers it.")


class Explanation(Body):
    query: str
    book_id: str
    mode: SearchMode
    calibration: str
    notice: str | None
    gate: str = Field(description="What decided, in words.")
    confidence: ConfidenceMetrics
    signals: SearchSignals
    refusal: RefusalReason | None
    advice: str | None
    nearest: list[SearchResult]
    """What was found; of a refusal, the best passage of each of the nearest sections."""


# --- sources --------------------------------------------------------------------------------------


class QuotedPlace(Addressed):
    """Words of the book that an answer leans on, as readers see them, and where they stand in the source file, in
    characters.

    From the first of them to the last: markup that readers do not see (tags, a listing's settings) lies between."""

    quote: str = taken_from("text")
    start: int
    end: int
    section: str = Field(description="That they stand in; `url` is its address.")


Places = Annotated[
    list[QuotedPlace],
    taken_from("quotes", "All of its words that the answer leans on; `quote` is of the first."),
]


class SourceChunk(Addressed):
    """A passage that the answer was made from, each once; the best score first."""

    content: str = taken_from("text")
    chunk_id: str = taken_from("id")
    document_id: str = taken_from("parent_doc_id")
    similarity_score: Share = taken_from("rating", "The calibrated relevance.")
    position: int = Field(ge=1, description="Its rank by score, and its place in this list.")
    cited: bool
    number: int | None = Field(description="That of its mark in the answer, [1]; null where it is not cited.")
    title: str = taken_from("way")
    quote: str | None = Field(description="The words that the answer leans on, verbatim; null where it is not cited.")
    places: Places
    source_file: str
    start: int = Field(description="Where the quote, or the passage, begins in the source file, in characters.")
    end: int
    re_ranking_score: float | None = taken_from("rerank_score")
    similarity: float | None = Field(description="The raw cosine.")

    @classmethod
    def from_passage(cls, passage: Passage, position: int, source: Source | None = None) -> Self:
        chunk = source.passage.chunk if source else passage.chunk
        uncited = {} if source else {"number": None, "quote": None, "places": []}
        return cls.of(source, passage, chunk, position=position, cited=source is not None, **uncited)


CHUNK_TEXT_MAX = 500
PICTURES_MOST = 3
NO_MODULE = "main"
"""The module of lessons that lie in no module's folder; their heading path has no step for it."""


class ShownPicture(Addressed):
    """A picture that a cited passage shows; its address needs the same key."""

    alt: str

    @classmethod
    def find_in(cls, book_id: str, chunk_id: str, text: str) -> list[Self]:
        if not chunk_id or ("![" not in text and "<img" not in text.casefold()):
            return []
        # What reads a book takes longer to load than an answer without pictures to print.
        from askbook.book.pictures import find_pictures

        home = f"/picture/{to_public_id(book_id)}/{chunk_id}?src="
        return [
            cls(alt=picture.alt, url=home + quote(picture.src, safe=""))
            for picture in islice(find_pictures(text), PICTURES_MOST)
        ]


class ChunkMetadata(Addressed):
    chapter: str
    section: str
    chunk_index: Count
    content_hash: str

    @classmethod
    def from_chunk(cls, chunk: Chunk, **named: Any) -> Self:
        return cls.of(chunk, chapter=_chapter_of(chunk), section=chunk.section_title or chunk.heading_path[-1], **named)


class ChatSource(Addressed):
    """Seed 004's Source: a passage that the answer cites, in the order of the marks, [1] first."""

    model_config = ConfigDict(title="Source")

    chunk_text: str = Field(max_length=CHUNK_TEXT_MAX, description="The passage, or the part of it that is cited.")
    similarity_score: Share = taken_from("rating", "The calibrated relevance.")
    chapter: str
    section: str
    chunk_index: Count
    chunk_id: str = taken_from("id")
    quote: str = Field(description="The words that the answer leans on, verbatim.")
    places: Places
    pictures: list[ShownPicture] = Field(description="Those of the book's folder that the passage shows.")

    @classmethod
    def from_source(cls, source: Source) -> Self:
        chunk = source.passage.chunk
        # A part of the chunk with the quote in it.
        start = min(max(0, chunk.text.find(source.quote)), max(0, len(chunk.text) - CHUNK_TEXT_MAX))
        return cls.of(
            source,
            source.passage,
            ChunkMetadata.from_chunk(chunk),
            chunk,
            chunk_text=chunk.text[start : start + CHUNK_TEXT_MAX],
            pictures=ShownPicture.find_in(chunk.book_id, chunk.id, chunk.text),
        )


def _chapter_of(chunk: Chunk) -> str:
    """Its title; where a lesson is in no chapter, the lesson's."""
    path = chunk.heading_path
    step = 1 if chunk.module == NO_MODULE else 2
    if chunk.chapter and len(path) > step:
        return path[step]
    return path[-2 if chunk.section_title and len(path) > 1 else -1]


# --- answers --------------------------------------------------------------------------------------


class ResponseMetadata(Body):
    response_time_ms: Milliseconds = taken_from("response_ms")
    chunk_count: Count
    embedding_time_ms: Milliseconds = taken_from("embedding_ms")
    retrieval_time_ms: Milliseconds = taken_from("retrieval_ms")
    generation_time_ms: Milliseconds = taken_from("generation_ms")
    cache_hit: bool
    session_id: str | None = taken_from("thread_id")
    user_id: str | None = None
    answered_by: AnsweredBy | None = Field(description="Who wrote it: the book's own sentences, or a model.")
    model: str | None
    tokens_used: Count
    retrieval_count: Count = taken_from("retrieved", "Different chunks retrieved, over all searches.")
    searched: str = Field(description="The question made whole from its thread.")
    created_at: datetime

    @classmethod
    def from_replied(cls, replied: Replied, user_id: str | None) -> Self:
        return cls.of(replied.account, replied.reply, chunk_count=len(_find_passages(replied)), user_id=user_id)


class CheckedStatement(body_of(Statement)):
    text: str


class RefusalBody(Body):
    reason: RefusalReason
    advice: str
    nearest: list[SourceChunk]

    @classmethod
    def from_reply(cls, reply: Reply) -> Self | None:
        if isinstance(reply, Answer):
            return None
        nearest = [SourceChunk.from_passage(passage, place) for place, passage in enumerate(reply.nearest, start=1)]
        return cls.of(reply, nearest=nearest)


Notices = Annotated[list[str], Field(description="A doubt that readers must see.")]
Removed = Annotated[
    list[CheckedStatement], Field(description="Sentences of the model that the check took out, and why.")
]


class AgentResponse(Body):
    """Seed 000's answer; a refusal is one too, with its reason."""

    answer: str = taken_from("text")
    sources: list[SourceChunk]
    metadata: ResponseMetadata
    confidence: ConfidenceMetrics | None
    refused: bool
    refusal: RefusalBody | None
    statements: list[CheckedStatement]
    removed: Removed
    notices: Notices

    @classmethod
    def from_replied(cls, replied: Replied, user_id: str | None = None) -> Self:
        refusal = RefusalBody.from_reply(replied.reply)
        return cls.of(
            replied.reply,
            sources=[] if refusal else _to_sources(replied),
            metadata=ResponseMetadata.from_replied(replied, user_id),
            refused=refusal is not None,
            refusal=refusal,
        )

    def without_sources(self) -> Self:
        """And without the marks that would point at them."""
        without_marks = [
            statement.model_copy(update={"text": drop_marks(statement.text), "cites": ()})
            for statement in self.statements
        ]
        return self.model_copy(update={"answer": drop_marks(self.answer), "sources": [], "statements": without_marks})


def _to_sources(replied: Replied) -> list[SourceChunk]:
    cited: dict[str, list[Source | None]] = {}
    for source in replied.reply.sources:
        cited.setdefault(source.passage.chunk.id, []).append(source)
    shown = [(passage, source) for passage in _find_passages(replied) for source in cited.get(passage.chunk.id, [None])]
    return [SourceChunk.from_passage(passage, place, source) for place, (passage, source) in enumerate(shown, start=1)]


def _find_passages(replied: Replied) -> list[Passage]:
    """What was found for the question, and what a model found beside it and cites; each once, the best first."""
    cited = (source.passage for source in replied.reply.sources)
    once = {passage.chunk.id: passage for passage in (*cited, *replied.account.passages)}
    return sorted(once.values(), key=lambda passage: -passage.rating)


SUFFICIENT_SCORE, SUFFICIENT_CHUNKS = 0.75, 3


class RetrievalResult(Retrieved):
    """Seed 004's: what was found for the question. The three lists go together."""

    chunks: list[str]
    scores: list[float] = Field(description="The calibrated relevance of each.")
    metadata: list[ChunkMetadata]
    average_score: Share
    has_sufficient_context: bool = Field(description="A mean of 0.75 or more over 3 chunks or more.")
    confidence: ConfidenceMetrics

    @classmethod
    def from_found(cls, found: PassagesFound, include_embedding: bool = False) -> Self:
        scores = [passage.rating for passage in found.passages]
        average = sum(scores) / len(scores) if scores else 0.0
        return cls.from_search(
            found.outcome,
            include_embedding,
            chunks=[passage.chunk.text for passage in found.passages],
            scores=scores,
            metadata=[ChunkMetadata.from_chunk(passage.chunk) for passage in found.passages],
            average_score=average,
            has_sufficient_context=average >= SUFFICIENT_SCORE and len(scores) >= SUFFICIENT_CHUNKS,
            confidence=ConfidenceMetrics.of(found.confidence),
        )


class ChatResponse(Body):
    """Seed 004's answer; a refusal is one too, with its reason."""

    response: str = Field(min_length=1, validation_alias="text")
    confidence: Share = Field(description="Mean relevance of the passages.")
    sources: list[ChatSource]
    session_id: str
    timestamp: datetime
    confidence_level: ConfidenceLevel
    should_answer: bool
    refusal: RefusalBody | None
    notices: Notices
    removed: Removed
    metadata: ResponseMetadata
    retrieval: RetrievalResult | None = None
    """What was found, where `include_embedding` asked for it; a stream has it as an event. Null where nothing was
    searched."""

    @classmethod
    def from_replied(cls, replied: Replied, session_id: str, user_id: str | None = None) -> Self:
        reply, confidence = replied.reply, replied.reply.confidence
        refusal = RefusalBody.from_reply(reply)
        return cls.of(
            reply,
            confidence=confidence.average_similarity if confidence else 0.0,
            sources=[ChatSource.from_source(source) for source in reply.sources],
            session_id=session_id,
            timestamp=replied.account.created_at,
            confidence_level=confidence.confidence_level if confidence and not refusal else "insufficient",
            should_answer=refusal is None,
            refusal=refusal,
            metadata=ResponseMetadata.from_replied(replied, user_id),
        )


class ToolCallEvent(Body):
    """The `tool_call` event of a stream: what is searched for."""

    tool_name: str = RETRIEVAL_TOOL
    query: str
    session_id: str


class ContentEvent(Body):
    """The `content` event of a stream: the next part of the answer, checked already."""

    delta: str


CHAT_EVENTS: dict[str, type[BaseModel]] = {
    "tool_call": ToolCallEvent,
    "retrieval": RetrievalResult,
    "content": ContentEvent,
    "done": ChatResponse,
    "error": ErrorResponse,
}
"""What a stream carries under each name; one of the last two ends it."""


# --- threads --------------------------------------------------------------------------------------


class ToolCall(body_of(Retrieval)):
    results_count: Count


class CitedSource(Addressed):
    title: str
    text: str
    chunk_id: str
    places: list[QuotedPlace] = Field(default=[], description="As of a source.")
    pictures: list[ShownPicture] = Field(default=[], description="As of a source.")


class ThreadMessage(body_of(Message, "archived")):
    confidence: float | None = Field(default=None, description="Of an answer; null for a question.")
    cited: list[CitedSource] = Field(description="In the order of the marks, [1] first.")
    tool_calls: list[ToolCall]

    @classmethod
    def from_message(cls, message: Message, book_id: str) -> Self:
        cited = [
            CitedSource.of(
                cited,
                places=cited.quotes,
                pictures=ShownPicture.find_in(book_id, cited.chunk_id, cited.text),
            )
            for cited in message.cited
        ]
        return cls.of(message, cited=cited)


class ThreadOverview(body_of(Thread, "owner", "messages", "retrieval_history", "metadata")):
    topic_summary: str | None = Field(max_length=200, description="From the fifth exchange on.")
    archived_at: datetime | None = Field(description="After an hour of silence; the next question resumes the thread.")
    turn_count: Count
    archived_messages: Count = Field(description="How many messages are older than the live ones.")
    tokens_used: Count
    metadata: dict[str, Any]


class ThreadList(Body):
    threads: list[ThreadOverview]


class ConversationThread(ThreadOverview):
    """Seed 004's thread, whole."""

    messages: list[ThreadMessage] = Field(max_length=LIVE_MESSAGES, description="The live ones, the oldest first.")
    earlier_messages: list[ThreadMessage] = Field(description="The archived ones, the oldest first.")
    retrieval_history: list[ToolCall]

    @classmethod
    def from_history(cls, thread: Thread, history: Sequence[Message], **named: Any) -> Self:
        """`history`: all its messages, as `load_history` gives them."""
        told = [(message.archived, ThreadMessage.from_message(message, thread.book_id)) for message in history]
        messages = [shown for archived, shown in told if not archived]
        earlier = [shown for archived, shown in told if archived]
        return cls.of(thread, messages=messages, earlier_messages=earlier, **named)
