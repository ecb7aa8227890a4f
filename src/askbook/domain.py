"""askbook's words: what a book, a chunk, a passage and a job are. Values only; nothing here reads, writes or calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

SearchMode = Literal["hybrid", "dense", "keyword"]
IngestMode = Literal["incremental", "full", "recreate"]
JobStatus = Literal["queued", "running", "completed", "failed"]
FacetValue = str | int
ConfidenceLevel = Literal["high", "medium", "low", "insufficient"]
RefusalReason = Literal["not_in_book", "ambiguous", "unverified", "index_empty", "provider_down"]

PROFICIENCY_LEVELS = ("A1", "A2", "B1", "B2", "C1", "C2")
LAYERS = ("L1", "L2", "L3", "L4")
TIER_MAX = 4

QUERY_MIN, QUERY_MAX = 3, 1000
LIMIT_MAX = 20


# --- the book -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Facet:
    """A front matter key that readers can filter by. No `values` means that any value is allowed."""

    name: str
    keys: tuple[str, ...]
    values: tuple[FacetValue, ...] = ()
    default: FacetValue | None = None


@dataclass(frozen=True, slots=True)
class Book:
    """What `askbook.toml` says of a folder, with a default for everything it leaves out."""

    book_id: str
    title: str
    base_url: str | None = None
    modules: Mapping[str, str] = field(default_factory=dict[str, str])
    facets: tuple[Facet, ...] = ()
    ignore: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with one file. `skipped` when the file could not be used at all."""

    source_file: str
    message: str
    key: str | None = None
    skipped: bool = False


@dataclass(frozen=True, slots=True)
class Lesson:
    """One Markdown file of a book, read and placed; not yet cut."""

    book_id: str
    source_file: str
    file_hash: str
    module: str
    chapter: int
    lesson: int
    title: str
    book_title: str
    module_title: str
    chapter_title: str
    hardware_tier: int
    proficiency_level: str
    layer: str
    facets: Mapping[str, FacetValue]
    url: str
    parent_doc_id: str
    identity: str
    """What chunk ids are built from: `book:module:chapter:lesson`, and the file where two files claim the same."""
    title_in_file: bool
    """False when the title was made from the file name; such a title is not embedded, so that a rename costs nothing."""
    text: str
    """The whole file, newlines as `\\n`; every offset of a chunk counts in it."""
    body_start: int
    """Where the front matter ends."""
    fingerprint: str
    """Changes whenever anything a chunk of this lesson carries would change."""


@dataclass(frozen=True, slots=True)
class Piece:
    """`chunk.text[text_at:text_at + length]` is `lesson.text[source_at:source_at + length]`, to the letter."""

    text_at: int
    source_at: int
    length: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a lesson that we store, with everything the seeds' payload carries."""

    id: str
    text: str
    embed_text: str
    embed_hash: str
    book_id: str
    module: str
    chapter: int
    lesson: int
    section_title: str | None
    heading_path: tuple[str, ...]
    """Book, Module, Chapter, Lesson, then the sections down to this chunk."""
    hardware_tier: int
    proficiency_level: str
    layer: str
    facets: Mapping[str, FacetValue]
    source_file: str
    url: str
    parent_doc_id: str
    chunk_index: int
    total_chunks: int
    prev_chunk_id: str | None
    next_chunk_id: str | None
    content_hash: str
    source_file_hash: str
    word_count: int
    token_count: int
    char_count: int
    first_line: int
    last_line: int
    start: int
    end: int
    pieces: tuple[Piece, ...]
    version: int = field(default=1, compare=False)
    created_at: datetime | None = field(default=None, compare=False)
    updated_at: datetime | None = field(default=None, compare=False)


# --- search ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Filters:
    """All must hold. `book_id` is set by the caller's rights, never by a model."""

    book_id: str
    hardware_tier: int | None = None
    module: str | None = None
    chapter_min: int | None = None
    chapter_max: int | None = None
    lesson: int | None = None
    proficiency_levels: tuple[str, ...] = ()
    layer: str | None = None
    parent_doc_id: str | None = None
    facets: Mapping[str, tuple[FacetValue, ...]] = field(default_factory=dict[str, tuple[FacetValue, ...]])
    url_prefix: str | None = None
    heading_prefix: str | None = None


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk that a search found. `similarity` is the raw cosine, `keyword_score` the raw BM25; None where that side has none."""

    chunk: Chunk
    score: float
    """What it is ranked by; says nothing of whether the book has the answer."""
    rank: int
    similarity: float | None = None
    keyword_score: float | None = None
    coverage: float = 0.0
    """How much of the question's words it holds, each weighed by its rarity, 0 to 1."""
    relevance: float | None = None
    """The calibrated value that the seeds' score fields carry; in the same order as `score`."""
    point_id: str = ""


@dataclass(frozen=True, slots=True)
class Signals:
    """What a search tells of the question as a whole, from the five best passages whatever the limit was."""

    similarity: float | None = None
    """Their mean cosine; None where the book has no vectors."""
    coverage: float = 0.0
    """The most of the question that one of them holds."""
    score: float = 0.0
    """The best one's score, and …"""
    mean_score: float = 0.0
    lead: float = 0.0
    """… how far it is ahead of the best passage of any other lesson."""
    unknown_words: tuple[str, ...] = ()
    """Words of the question that the book never uses."""
    chunks: int = 0
    """How many chunks the book has: the best of many is good by chance."""


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    query: str
    filters: Filters
    mode: SearchMode
    passages: tuple[Passage, ...]
    total_found: int
    """How many different chunks matched before the list was cut to `limit`."""
    embedding_ms: float
    retrieval_ms: float
    signals: Signals = Signals()


# --- confidence -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Confidence:
    """Seed 004's metrics over the calibrated relevance of the passages."""

    average_similarity: float
    min_similarity: float
    max_similarity: float
    num_chunks: int
    chunk_diversity: float
    confidence_level: ConfidenceLevel
    should_answer: bool


@dataclass(frozen=True, slots=True)
class Refusal:
    """The book does not say. `nearest` is the closest it has; `advice` says what would help."""

    reason: RefusalReason
    text: str
    nearest: tuple[Passage, ...]
    advice: str


# --- ingestion ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LessonRecord:
    """What the ledger knows of one indexed file."""

    book_id: str
    source_file: str
    file_hash: str
    fingerprint: str
    module: str
    chapter: int
    lesson: int
    parent_doc_id: str
    chunk_ids: tuple[str, ...]
    chunk_count: int
    ingested_at: datetime


@dataclass(frozen=True, slots=True)
class BookRecord:
    """A book that has been ingested."""

    book_id: str
    title: str
    folder: str
    facets: Mapping[str, tuple[FacetValue, ...]]
    """The facets that the book declares and their allowed values; none means any."""
    modules: tuple[str, ...]
    total_files: int
    total_chunks: int
    unembedded_chunks: int
    revision: int
    last_full_ingest: datetime | None
    last_incremental_update: datetime | None


@dataclass(frozen=True, slots=True)
class Job:
    job_id: int
    book_id: str
    folder: str
    mode: IngestMode
    status: JobStatus
    phase: str
    files_processed: int
    files_skipped: int
    files_total: int
    chunks_created: int
    chunks_deleted: int
    chunks_embedded: int
    chunks_to_embed: int
    problems: tuple[Problem, ...]
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    error_message: str | None

    @property
    def duration_seconds(self) -> int | None:
        if self.started_at is None or self.completed_at is None:
            return None
        return round((self.completed_at - self.started_at).total_seconds())

    @property
    def progress(self) -> float:
        """0 to 1: reading counts for a tenth, embedding for the rest."""
        if self.status == "completed":
            return 1.0
        read = (self.files_processed + self.files_skipped) / self.files_total if self.files_total else 0.0
        embedded = self.chunks_embedded / self.chunks_to_embed if self.chunks_to_embed else 0.0
        return 0.1 * read + 0.9 * embedded
