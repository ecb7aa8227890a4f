"""The bodies that askbook sends, with the seeds' names. The terminal's `--json` prints the same."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal, Self
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field

from askbook.answer.check.marks import drop_marks
from askbook.api.addresses import Addressed
from askbook.book.pictures import find_pictures
from askbook.domain import (
    LIVE_MESSAGES,
    TIER_MAX,
    Account,
    Answer,
    AnsweredBy,
    Chunk,
    Confidence,
    ConfidenceLevel,
    FacetValue,
    IngestMode,
    Job,
    JobStatus,
    Message,
    Passage,
    PassagesFound,
    Quote,
    Refusal,
    RefusalReason,
    Replied,
    Reply,
    SearchMode,
    SearchOutcome,
    Source,
    Statement,
    Thread,
    Verdict,
    to_public_id,
)


class SearchResult(Addressed):
    text: str
    score: float = Field(ge=0, le=1, description="The calibrated relevance; results are in its order.")
    source_file: str
    section_title: str | None
    module: str
    chapter: int
    lesson: int
    hardware_tier: int
    proficiency_level: str
    layer: str
    chunk_index: int
    total_chunks: int
    parent_doc_id: str | None
    prev_chunk_id: str | None
    next_chunk_id: str | None
    content_hash: str | None
    chunk_id: str
    rank: int
    heading_path: list[str]
    facets: dict[str, FacetValue]
    similarity: float | None = Field(description="The raw cosine; null for a chunk without a vector.")
    keyword_score: float | None = Field(description="The raw BM25 score; null where no word matched.")
    re_ranking_score: float | None = Field(ge=0, le=1, description="The reranker's own score; null without one.")
    first_line: int
    last_line: int
    start: int
    end: int

    @classmethod
    def from_passage(cls, passage: Passage) -> Self:
        chunk = passage.chunk
        fields = {name: getattr(chunk, name) for name in cls.model_fields if hasattr(chunk, name)}
        return cls(
            **fields,
            chunk_id=chunk.id,
            score=passage.rating,
            rank=passage.rank,
            similarity=passage.similarity,
            keyword_score=passage.keyword_score,
            re_ranking_score=passage.rerank_score,
        )


class QueryKeywords(BaseModel):
    """A sparse vector: the ids of the question's words and their weights."""

    indices: list[int]
    values: list[float]


class Retrieved(BaseModel):
    """What every search tells of itself: seed 002's RetrievalContext, and seed 004's vector where it was asked for."""

    retrieved_at: datetime
    filter_applied: str | None = Field(description="The prefix of an address or a heading that it was kept to.")
    query_embedding: list[float] | None = Field(
        description="The question's vector, where `include_embedding` asked for it; null where the words alone were searched."
    )
    query_keywords: QueryKeywords | None = Field(description="The weights of its words, likewise.")


def _tell_retrieval(outcome: SearchOutcome | None, include_embedding: bool) -> dict[str, Any]:
    if outcome is None:
        nothing = dict.fromkeys(("filter_applied", "query_embedding", "query_keywords"))
        return {**nothing, "retrieved_at": datetime.now(UTC)}
    keywords = QueryKeywords(indices=list(outcome.keywords), values=list(outcome.keywords.values()))
    return {
        "retrieved_at": outcome.retrieved_at or datetime.now(UTC),
        "filter_applied": " and ".join(filter(None, (outcome.filters.url_prefix, outcome.filters.heading_prefix)))
        or None,
        "query_embedding": list(outcome.vector) if include_embedding and outcome.vector is not None else None,
        "query_keywords": keywords if include_embedding else None,
    }


class SearchResponse(Retrieved):
    query: str
    results: list[SearchResult]
    total_found: int
    hardware_tier_filter: int
    module_filter: str | None
    book_id: str
    mode: SearchMode = Field(description="As it was searched: `keyword` where the embedder did not answer.")
    embedding_time_ms: float
    retrieval_time_ms: float
    notices: list[str] = Field(description="A service that did not take part.")

    @classmethod
    def from_outcome(cls, outcome: SearchOutcome, include_embedding: bool = False) -> Self:
        return cls(
            **_tell_retrieval(outcome, include_embedding),
            query=outcome.query,
            results=[SearchResult.from_passage(passage) for passage in outcome.passages],
            total_found=outcome.total_found,
            hardware_tier_filter=TIER_MAX if outcome.filters.hardware_tier is None else outcome.filters.hardware_tier,
            module_filter=outcome.filters.module,
            book_id=outcome.filters.book_id,
            mode=outcome.mode,
            embedding_time_ms=outcome.embedding_ms,
            retrieval_time_ms=outcome.retrieval_ms,
            notices=list(outcome.notices),
        )


class ConfidenceMetrics(BaseModel):
    """Seed 004's, over the calibrated relevance of the five best passages."""

    average_similarity: float = Field(ge=0, le=1)
    min_similarity: float = Field(ge=0, le=1)
    max_similarity: float = Field(ge=0, le=1)
    num_chunks: int = Field(
        ge=0, description="The best passages that were found, five at most, whatever `top_k` leaves of them."
    )
    chunk_diversity: float = Field(ge=0, le=1)
    confidence_level: ConfidenceLevel
    should_answer: bool
    chance: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="How often a text like the one shown answers; null where nothing was read.",
    )

    @classmethod
    def from_confidence(cls, confidence: Confidence) -> Self:
        return cls.model_validate(confidence, from_attributes=True)


class SearchSignals(BaseModel):
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


class Explanation(BaseModel):
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
    nearest: list[SearchResult] = Field(
        description="What was found; of a refusal, the best passage of each of the nearest sections."
    )


class QuotedPlace(Addressed):
    """Words of the book that an answer leans on, as readers see them, and where they stand in the source file, in characters.

    From the first of them to the last: markup that readers do not see (tags, a listing's settings) lies between."""

    quote: str
    start: int
    end: int
    section: str = Field(description="That they stand in; `url` is its address.")

    @classmethod
    def from_quote(cls, quote: Quote) -> Self:
        return cls(quote=quote.text, start=quote.start, end=quote.end, section=quote.section, url=quote.url)


class SourceChunk(Addressed):
    """A passage that the answer was made from, each once; the best score first."""

    content: str
    chunk_id: str
    document_id: str
    similarity_score: float = Field(ge=0, le=1, description="The calibrated relevance.")
    position: int = Field(ge=1, description="Its rank by score, and its place in this list.")
    cited: bool
    number: int | None = Field(description="That of its mark in the answer, [1]; null where it is not cited.")
    title: str
    quote: str | None = Field(description="The words that the answer leans on, verbatim; null where it is not cited.")
    places: list[QuotedPlace] = Field(description="All of its words that the answer leans on; `quote` is of the first.")
    source_file: str
    start: int = Field(description="Where the quote, or the passage, begins in the source file, in characters.")
    end: int
    re_ranking_score: float | None
    similarity: float | None = Field(description="The raw cosine.")

    @classmethod
    def from_passage(cls, passage: Passage, position: int, source: Source | None = None) -> Self:
        chunk = source.passage.chunk if source else passage.chunk
        return cls(
            content=chunk.text,
            url=chunk.url,
            chunk_id=chunk.id,
            document_id=chunk.parent_doc_id,
            similarity_score=passage.rating,
            position=position,
            cited=source is not None,
            number=source.number if source else None,
            title=" › ".join(chunk.heading_path),
            quote=source.quote if source else None,
            places=[QuotedPlace.from_quote(one) for one in source.quotes] if source else [],
            source_file=chunk.source_file,
            start=source.start if source else chunk.start,
            end=source.end if source else chunk.end,
            re_ranking_score=passage.rerank_score,
            similarity=passage.similarity,
        )


class ResponseMetadata(BaseModel):
    response_time_ms: float = Field(ge=0)
    chunk_count: int = Field(ge=0)
    embedding_time_ms: float = Field(ge=0)
    retrieval_time_ms: float = Field(ge=0)
    generation_time_ms: float = Field(ge=0)
    cache_hit: bool
    session_id: str | None
    user_id: str | None = None
    answered_by: AnsweredBy | None = Field(description="Who wrote it: the book's own sentences, or a model.")
    model: str | None
    tokens_used: int = Field(ge=0)
    retrieval_count: int = Field(ge=0, description="Different chunks retrieved, over all searches.")
    searched: str = Field(description="The question made whole from its thread.")
    created_at: datetime

    @classmethod
    def from_replied(cls, replied: Replied, user_id: str | None) -> Self:
        reply, account = replied.reply, replied.account
        return cls(
            response_time_ms=account.response_ms,
            chunk_count=len(_find_passages(reply, account)),
            embedding_time_ms=account.embedding_ms,
            retrieval_time_ms=account.retrieval_ms,
            generation_time_ms=account.generation_ms,
            cache_hit=account.cache_hit,
            session_id=account.thread_id,
            user_id=user_id,
            answered_by=reply.answered_by if isinstance(reply, Answer) else None,
            model=account.model,
            tokens_used=account.tokens_used,
            retrieval_count=account.retrieved,
            searched=account.searched,
            created_at=account.created_at,
        )


class CheckedStatement(BaseModel):
    text: str
    cites: list[int]
    verdict: Verdict
    why: str

    @classmethod
    def from_statement(cls, statement: Statement) -> Self:
        return cls.model_validate(statement, from_attributes=True)


class RefusalBody(BaseModel):
    reason: RefusalReason
    advice: str
    nearest: list[SourceChunk]


class AgentResponse(BaseModel):
    """Seed 000's answer; a refusal is one too, with its reason."""

    answer: str
    sources: list[SourceChunk]
    metadata: ResponseMetadata
    confidence: ConfidenceMetrics | None
    refused: bool
    refusal: RefusalBody | None
    statements: list[CheckedStatement]
    removed: list[CheckedStatement] = Field(description="Sentences of the model that the check took out.")
    notices: list[str]

    @classmethod
    def from_replied(cls, replied: Replied, user_id: str | None = None) -> Self:
        reply, account = replied.reply, replied.account
        answer = reply if isinstance(reply, Answer) else None
        return cls(
            answer=reply.text,
            sources=_to_sources(answer, account) if answer else [],
            metadata=ResponseMetadata.from_replied(replied, user_id),
            confidence=ConfidenceMetrics.from_confidence(reply.confidence) if reply.confidence else None,
            refused=answer is None,
            refusal=None if isinstance(reply, Answer) else _to_refusal(reply),
            statements=[CheckedStatement.from_statement(one) for one in answer.statements] if answer else [],
            removed=[CheckedStatement.from_statement(one) for one in reply.removed],
            notices=list(reply.notices),
        )

    def without_sources(self) -> Self:
        """And without the marks that would point at them."""
        statements = [one.model_copy(update={"text": drop_marks(one.text), "cites": []}) for one in self.statements]
        changes = {"answer": drop_marks(self.answer), "sources": [], "statements": statements}
        return self.model_copy(update=changes)


def _to_sources(answer: Answer, account: Account) -> list[SourceChunk]:
    passages = _find_passages(answer, account)
    shown = [
        (one, source)
        for one in passages
        for source in [source for source in answer.sources if source.passage.chunk.id == one.chunk.id] or [None]
    ]
    return [SourceChunk.from_passage(one, place, source) for place, (one, source) in enumerate(shown, start=1)]


def _find_passages(reply: Reply, account: Account) -> list[Passage]:
    """What was found for the question, and what a model found beside it and cites; each once, the best first."""
    cited = [source.passage for source in reply.sources] if isinstance(reply, Answer) else []
    once = {one.chunk.id: one for one in (*cited, *account.passages)}
    return sorted(once.values(), key=lambda one: -one.rating)


def _to_refusal(refusal: Refusal) -> RefusalBody:
    nearest = [SourceChunk.from_passage(one, place) for place, one in enumerate(refusal.nearest, start=1)]
    return RefusalBody(reason=refusal.reason, advice=refusal.advice, nearest=nearest)


CHUNK_TEXT_MAX = 500
NO_MODULE = "main"
"""What lessons belong to that lie in no module's folder; no step of their heading path is a module's."""


PICTURES_MOST = 3


class ShownPicture(Addressed):
    """A picture that a cited passage shows; its address needs the same key."""

    alt: str

    @classmethod
    def find_all(cls, book_id: str, chunk_id: str, text: str) -> list[Self]:
        """`book_id`: as its reader knows it."""
        home = f"/picture/{book_id}/{chunk_id}?src="
        found = [cls(alt=one.alt, url=home + quote(one.src, safe="")) for one in find_pictures(text)]
        return found[:PICTURES_MOST] if chunk_id else []


class ChatSource(Addressed):
    """Seed 004's Source: a passage that the answer cites, in the order of the marks, [1] first."""

    model_config = ConfigDict(title="Source")

    chunk_text: str = Field(max_length=CHUNK_TEXT_MAX, description="The passage, or the part of it that is cited.")
    similarity_score: float = Field(ge=0, le=1, description="The calibrated relevance.")
    chapter: str
    section: str
    chunk_index: int = Field(ge=0)
    chunk_id: str
    quote: str = Field(description="The words that the answer leans on, verbatim.")
    places: list[QuotedPlace] = Field(description="All of its words that the answer leans on; `quote` is of the first.")
    pictures: list[ShownPicture] = Field(description="Those of the book's folder that the passage shows.")

    @classmethod
    def from_source(cls, source: Source) -> Self:
        chunk = source.passage.chunk
        return cls(
            chunk_text=_cut_around(chunk.text, source.quote),
            similarity_score=source.passage.rating,
            chapter=_chapter_of(chunk),
            section=chunk.section_title or chunk.heading_path[-1],
            url=chunk.url,
            chunk_index=chunk.chunk_index,
            chunk_id=chunk.id,
            quote=source.quote,
            places=[QuotedPlace.from_quote(one) for one in source.quotes],
            pictures=ShownPicture.find_all(to_public_id(chunk.book_id), chunk.id, chunk.text),
        )


def _cut_around(text: str, quote: str) -> str:
    """At most so much of a chunk, with the quote in it."""
    start = min(max(0, text.find(quote)), max(0, len(text) - CHUNK_TEXT_MAX))
    return text[start : start + CHUNK_TEXT_MAX]


def _chapter_of(chunk: Chunk) -> str:
    """Its title; where a lesson is in no chapter, the lesson's."""
    path = chunk.heading_path
    step = 1 if chunk.module == NO_MODULE else 2
    if chunk.chapter and len(path) > step:
        return path[step]
    return path[-2 if chunk.section_title and len(path) > 1 else -1]


class ChatResponse(BaseModel):
    """Seed 004's answer; a refusal is one too, with its reason."""

    response: str = Field(min_length=1)
    confidence: float = Field(ge=0, le=1, description="Mean relevance of the passages.")
    sources: list[ChatSource]
    session_id: str
    timestamp: datetime
    confidence_level: ConfidenceLevel
    should_answer: bool
    refusal: RefusalBody | None
    notices: list[str] = Field(description="A doubt that readers must see.")
    removed: list[CheckedStatement] = Field(description="Sentences of the model that the check took out, and why.")
    metadata: ResponseMetadata
    retrieval: RetrievalResult | None = Field(
        default=None,
        description="What was found, where `include_embedding` asked for it; a stream has it as an event. Null where "
        "nothing was searched.",
    )

    @classmethod
    def from_replied(cls, replied: Replied, session_id: str, user_id: str | None = None) -> Self:
        reply, account = replied.reply, replied.account
        answered = isinstance(reply, Answer)
        confidence = reply.confidence
        return cls(
            response=reply.text,
            confidence=confidence.average_similarity if confidence else 0.0,
            sources=[ChatSource.from_source(one) for one in reply.sources] if answered else [],
            session_id=session_id,
            timestamp=account.created_at,
            confidence_level=confidence.confidence_level if answered and confidence else "insufficient",
            should_answer=answered,
            refusal=None if answered else _to_refusal(reply),
            notices=list(reply.notices),
            removed=[CheckedStatement.from_statement(one) for one in reply.removed],
            metadata=ResponseMetadata.from_replied(replied, user_id),
        )


class ChunkMetadata(Addressed):
    chapter: str
    section: str
    chunk_index: int
    content_hash: str

    @classmethod
    def from_chunk(cls, chunk: Chunk) -> Self:
        return cls(
            chapter=_chapter_of(chunk),
            section=chunk.section_title or chunk.heading_path[-1],
            url=chunk.url,
            chunk_index=chunk.chunk_index,
            content_hash=chunk.content_hash,
        )


SUFFICIENT_SCORE, SUFFICIENT_CHUNKS = 0.75, 3


class RetrievalResult(Retrieved):
    """Seed 004's: what was found for the question. The three lists go together."""

    chunks: list[str]
    scores: list[float] = Field(description="The calibrated relevance of each.")
    metadata: list[ChunkMetadata]
    average_score: float = Field(ge=0, le=1)
    has_sufficient_context: bool = Field(description="A mean of 0.75 or more over 3 chunks or more.")
    confidence: ConfidenceMetrics

    @classmethod
    def from_found(cls, found: PassagesFound, include_embedding: bool = False) -> Self:
        scores = [one.rating for one in found.passages]
        average = sum(scores) / len(scores) if scores else 0.0
        return cls(
            chunks=[one.chunk.text for one in found.passages],
            scores=scores,
            metadata=[ChunkMetadata.from_chunk(one.chunk) for one in found.passages],
            average_score=average,
            has_sufficient_context=average >= SUFFICIENT_SCORE and len(scores) >= SUFFICIENT_CHUNKS,
            confidence=ConfidenceMetrics.from_confidence(found.confidence),
            **_tell_retrieval(found.outcome, include_embedding),
        )


class ToolCallEvent(BaseModel):
    """The `tool_call` event of a stream: what is searched for."""

    tool_name: str = "retrieve_documentation"
    query: str
    session_id: str


class ContentEvent(BaseModel):
    """The `content` event of a stream: the next part of the answer, checked already."""

    delta: str


class ToolCall(BaseModel):
    tool_name: str
    query: str
    results_count: int = Field(ge=0)
    avg_similarity: float
    timestamp: datetime


class CitedSource(Addressed):
    title: str
    text: str
    chunk_id: str
    places: list[QuotedPlace] = Field(default=[], description="As of a source.")
    pictures: list[ShownPicture] = Field(default=[], description="As of a source.")


class ThreadMessage(BaseModel):
    role: Literal["user", "assistant"]
    content: str
    timestamp: datetime
    confidence: float | None = Field(default=None, description="Of an answer; null for a question.")
    cited: list[CitedSource] = Field(description="In the order of the marks, [1] first.")
    tool_calls: list[ToolCall]
    refusal: RefusalReason | None


class ThreadOverview(BaseModel):
    thread_id: str
    book_id: str
    title: str
    topic_summary: str | None = Field(max_length=200, description="From the fifth exchange on.")
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None = Field(description="After an hour of silence; the next question resumes the thread.")
    turn_count: int = Field(ge=0)
    archived_messages: int = Field(ge=0, description="How many messages are older than the live ones.")
    tokens_used: int = Field(ge=0)
    model: str | None
    metadata: dict[str, Any]

    @classmethod
    def from_thread(cls, thread: Thread) -> Self:
        return cls.model_validate(thread, from_attributes=True)


class ThreadList(BaseModel):
    threads: list[ThreadOverview]


class ConversationThread(ThreadOverview):
    """Seed 004's thread, whole."""

    messages: list[ThreadMessage] = Field(max_length=LIVE_MESSAGES, description="The live ones, the oldest first.")
    earlier_messages: list[ThreadMessage] = Field(description="The archived ones, the oldest first.")
    retrieval_history: list[ToolCall]

    @classmethod
    def from_history(cls, thread: Thread, history: Sequence[Message]) -> Self:
        """`history`: all its messages, as `load_history` gives them."""
        return cls(
            **ThreadOverview.from_thread(thread).model_dump(),
            messages=[_to_message(one, thread.book_id) for one in history if not one.archived],
            earlier_messages=[_to_message(one, thread.book_id) for one in history if one.archived],
            retrieval_history=[ToolCall.model_validate(one, from_attributes=True) for one in thread.retrieval_history],
        )


def _to_message(message: Message, book_id: str) -> ThreadMessage:
    told = ThreadMessage.model_validate(message, from_attributes=True)
    for one, cited in zip(told.cited, message.cited, strict=True):
        one.places = [QuotedPlace.from_quote(quote) for quote in cited.quotes]
        one.pictures = ShownPicture.find_all(to_public_id(book_id), one.chunk_id, one.text)
    return told


class FileProblem(BaseModel):
    source_file: str
    message: str
    key: str | None
    skipped: bool


class IngestionJob(BaseModel):
    job_id: int
    book_id: str
    mode: IngestMode
    status: JobStatus
    phase: str
    progress: float = Field(ge=0, le=1)
    files_processed: int
    files_skipped: int
    files_total: int
    chunks_created: int
    chunks_deleted: int
    chunks_embedded: int
    chunks_to_embed: int
    problems: list[FileProblem]
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    duration_seconds: int | None
    error_message: str | None

    @classmethod
    def from_job(cls, job: Job) -> Self:
        return cls.model_validate(job, from_attributes=True)


class ErrorResponse(BaseModel):
    error: str
    message: str
    detail: str | None = None
    status_code: int = Field(ge=400, le=599)
    request_id: str | None = None
    timestamp: datetime = Field(default_factory=lambda: datetime.now(UTC))


class OpenAIErrorBody(BaseModel):
    message: str
    type: str
    param: str | None = None
    code: str = Field(description="The `error` of all other routes.")


class OpenAIError(BaseModel):
    """As OpenAI's clients look for it, also in a stream."""

    error: OpenAIErrorBody

    @classmethod
    def from_problem(cls, problem: ErrorResponse, param: str | None = None) -> Self:
        kinds = {"authentication_error": "authentication_error", "rate_limited": "rate_limit_error"}
        kind = kinds.get(problem.error, "invalid_request_error" if problem.status_code < 500 else "server_error")
        message = ". ".join(one.rstrip(".") for one in (problem.message, problem.detail) if one)
        return cls(error=OpenAIErrorBody(message=f"{message}.", type=kind, param=param, code=problem.error))
