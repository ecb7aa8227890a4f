"""The bodies that askbook sends, with the seeds' names. The terminal's `--json` prints the same."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Self

from pydantic import BaseModel, Field

from askbook.domain import (
    TIER_MAX,
    Confidence,
    ConfidenceLevel,
    FacetValue,
    IngestMode,
    Job,
    JobStatus,
    Passage,
    RefusalReason,
    SearchMode,
    SearchOutcome,
)


class SearchResult(BaseModel):
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
    url: str
    heading_path: list[str]
    facets: dict[str, FacetValue]
    similarity: float | None = Field(description="The raw cosine; null for a chunk without a vector.")
    keyword_score: float | None = Field(description="The raw BM25 score; null where no word matched.")
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
            score=passage.score if passage.relevance is None else passage.relevance,
            rank=passage.rank,
            similarity=passage.similarity,
            keyword_score=passage.keyword_score,
        )


class SearchResponse(BaseModel):
    query: str
    results: list[SearchResult]
    total_found: int
    hardware_tier_filter: int
    module_filter: str | None
    book_id: str
    mode: SearchMode
    embedding_time_ms: float
    retrieval_time_ms: float

    @classmethod
    def from_outcome(cls, outcome: SearchOutcome) -> Self:
        return cls(
            query=outcome.query,
            results=[SearchResult.from_passage(passage) for passage in outcome.passages],
            total_found=outcome.total_found,
            hardware_tier_filter=TIER_MAX if outcome.filters.hardware_tier is None else outcome.filters.hardware_tier,
            module_filter=outcome.filters.module,
            book_id=outcome.filters.book_id,
            mode=outcome.mode,
            embedding_time_ms=outcome.embedding_ms,
            retrieval_time_ms=outcome.retrieval_ms,
        )


class ConfidenceMetrics(BaseModel):
    """Seed 004's, over the calibrated relevance of the five best passages."""

    average_similarity: float = Field(ge=0, le=1)
    min_similarity: float = Field(ge=0, le=1)
    max_similarity: float = Field(ge=0, le=1)
    num_chunks: int = Field(ge=0)
    chunk_diversity: float = Field(ge=0, le=1)
    confidence_level: ConfidenceLevel
    should_answer: bool

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
    nearest: list[SearchResult]


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
