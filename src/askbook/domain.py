"""askbook's words: what a book, a chunk, a passage and a job are. Values only; nothing here reads, writes or calls."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import ClassVar, Literal, TypeAlias, get_args

SearchMode = Literal["hybrid", "dense", "keyword"]
IngestMode = Literal["incremental", "full", "recreate"]
JobStatus = Literal["queued", "running", "completed", "failed"]
FacetValue = str | int
ConfidenceLevel = Literal["high", "medium", "low", "insufficient"]
RefusalReason = Literal["not_in_book", "below_threshold", "ambiguous", "unverified", "index_empty", "provider_down"]
Role = Literal["reader", "admin"]

Level = Literal["A1", "A2", "B1", "B2", "C1", "C2"]
Layer = Literal["L1", "L2", "L3", "L4"]
PROFICIENCY_LEVELS: tuple[str, ...] = get_args(Level)
LAYERS: tuple[str, ...] = get_args(Layer)
TIER_MAX = 4
RETRIEVAL_TOOL = "retrieve_documentation"
"""The one tool that a model has here: seed 001's."""

MARK = re.compile(r"\[(\d{1,3})\]")
"""How an answer points at a source, and …"""


def to_mark(number: int) -> str:
    """… as it is written: `[1]`."""
    return f"[{number}]"


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
    """False when the title was made from the file name; it is then not embedded, so that a rename costs nothing."""
    text: str
    """The whole file, newlines as `\\n`, with what it includes in its place; every offset of a chunk counts in it."""
    body_start: int
    """Where the front matter ends."""
    fingerprint: str
    """Changes whenever anything a chunk of this lesson carries would change."""
    anchors: str = "github"
    """How the page at `url` names its headings: a style of `book.sections.Anchors`."""
    lines: Sequence[int] = ()
    """For each line of the text its line in the file; empty where nothing is included and both are the same."""
    link_titles: Mapping[str, str] = field(default_factory=dict[str, str])
    """Titles for links without words of their own, by their targets."""
    module_order: int = 0
    """The place of its module in the site's navigation, from 1; 0 where none tells."""


@dataclass(frozen=True, slots=True)
class Piece:
    """`chunk.text[text_at:text_at + length]` is `lesson.text[source_at:source_at + length]`, to the letter."""

    text_at: int
    source_at: int
    length: int


@dataclass(frozen=True, slots=True)
class SectionStart:
    """From this offset of the lesson's text on, a chunk that holds several sections is in this one."""

    at: int
    section_title: str | None
    heading_path: tuple[str, ...]
    url: str


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
    sections: tuple[SectionStart, ...] = ()
    """Of a chunk that holds several; its own title, path and address are those of the first that says something."""
    module_order: int = 0
    version: int = field(default=1, compare=False)
    created_at: datetime | None = field(default=None, compare=False)
    updated_at: datetime | None = field(default=None, compare=False)
    embedded_at: datetime | None = field(default=None, compare=False)
    """None while it waits for its vector."""
    embedding_model: str | None = field(default=None, compare=False)
    """None where it was not noted."""

    def at(self, place: int) -> Chunk:
        """The same chunk, named and addressed by the section at this offset of the lesson's text."""
        if not self.sections:
            return self
        # What stands above the first is repeated from the chunk before, in the same section.
        here = next((section for section in reversed(self.sections) if section.at <= place), self.sections[0])
        return replace(self, section_title=here.section_title, heading_path=here.heading_path, url=here.url)

    @property
    def way(self) -> str:
        """The way to it through the book's headings, as every door shows it."""
        return " › ".join(self.heading_path)

    @property
    def way_in_book(self) -> str:
        """The same below the book's own title."""
        return " › ".join(self.heading_path[1:] or self.heading_path)

    @property
    def name(self) -> str:
        """ "Installation › Prerequisites": the last two steps of the way to it."""
        return " › ".join(self.heading_path[-2:])


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
    """A chunk that a search found. `similarity` is the raw cosine, `keyword_score` the raw BM25, if any."""

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
    rerank_score: float | None = None
    """The reranker's own, 0 to 1; None where none was asked. It decides the place, and the place has the score."""

    @property
    def rating(self) -> float:
        """What readers see: its relevance, or its score where nothing rated it."""
        return self.score if self.relevance is None else self.relevance


@dataclass(frozen=True, slots=True)
class Signals:
    """What a search tells of the question as a whole, from the five best passages whatever the limit was."""

    similarity: float | None = None
    """Their mean cosine, in a small book that of the best alone; None where the book has no vectors."""
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
    reranked: bool = False
    """False where no reranker is set, and where it failed."""
    cache_hit: bool = False
    """The same was searched before, and the book is the same."""
    notices: tuple[str, ...] = ()
    """What a reader must know of it: a service that did not take part."""
    retrieved_at: datetime | None = None
    vector: Sequence[float] | None = None
    """The question's; None where its words alone were searched."""
    keywords: Mapping[int, float] = field(default_factory=dict[int, float])
    """The weights of the question's words, by the id of the term, and …"""
    rarities: Mapping[int, float] = field(default_factory=dict[int, float])
    """… how rare each of them is in the book."""


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
    chance: float | None = None
    """How often a text like the one shown answers its question; None where nothing was read."""


# --- questions and answers ------------------------------------------------------------------------

AnsweredBy = Literal["extractive", "model"]
Verdict = Literal["verbatim", "supported", "unsupported"]
UnsupportedChoice = Literal["drop", "mark"]
CheckChoice = Literal["reader", "model"]
RequestState = Literal["received", "validating", "processing", "retrieving", "generating", "completed", "failed"]
RetryState = Literal["pending", "executing", "retrying", "succeeded", "failed_permanent"]


@dataclass(frozen=True, slots=True)
class Reader:
    """Who asks: the tier filters, the level and the layer are preferred; all are optional."""

    hardware_tier: int | None = None
    proficiency_level: str | None = None
    layer: str | None = None
    user_id: str | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """What somebody asks of a book, and where: a thread, a selected text, a part of the book."""

    text: str
    filters: Filters
    thread_id: str | None = None
    owner: str = ""
    """Whose threads these are; empty on a machine without keys."""
    top_k: int = 5
    threshold: float = 0.0
    selected_text: str | None = None
    reader: Reader | None = None
    streamed: bool = False
    """The answer is read as it comes, so the model may take longer to finish it."""


@dataclass(frozen=True, slots=True)
class Quote:
    """Words of a lesson as readers see them, and their place: the file's characters `start` to `end`.

    The file may have markup between them that readers do not see.
    """

    text: str
    start: int
    end: int
    section: str = ""
    """The name and the address of their section."""
    url: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """A passage that an answer cites, named by the section of the first words in it that the answer leans on."""

    number: int
    passage: Passage
    quote: str
    """Verbatim: the lesson file's characters `start` to `end`."""
    start: int
    end: int
    shown: tuple[Quote, ...] = ()
    """All that an answer in the book's own words has of the passage; the quote is of the first."""

    @property
    def quotes(self) -> tuple[Quote, ...]:
        return self.shown or (Quote(self.quote, self.start, self.end, self.title, self.passage.chunk.url),)

    @property
    def title(self) -> str:
        return self.passage.chunk.name


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence or block of an answer as it is shown, marks included, and what the check found."""

    text: str
    cites: tuple[int, ...]
    verdict: Verdict
    why: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    text: str
    """Markdown; `[1]` refers to the first source."""
    sources: tuple[Source, ...]
    statements: tuple[Statement, ...]
    removed: tuple[Statement, ...]
    """What the model said and the check took out; no reader sees it as an answer."""
    confidence: Confidence
    answered_by: AnsweredBy
    notices: tuple[str, ...] = ()
    """A doubt that readers must see: low confidence, a model that did not answer."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The book does not say. `nearest` is the closest it has; `advice` says what would help."""

    reason: RefusalReason
    text: str
    nearest: tuple[Passage, ...]
    advice: str
    confidence: Confidence | None = None
    removed: tuple[Statement, ...] = ()
    notices: tuple[str, ...] = ()
    # Of an answer alone.
    sources: ClassVar[tuple[Source, ...]] = ()
    statements: ClassVar[tuple[Statement, ...]] = ()
    answered_by: ClassVar[AnsweredBy | None] = None


Reply = Answer | Refusal


@dataclass(frozen=True, slots=True)
class Retrieval:
    """One call of the tool, by the model or for it."""

    query: str
    results_count: int
    avg_similarity: float
    timestamp: datetime
    tool_name: str = RETRIEVAL_TOOL


@dataclass(frozen=True, slots=True)
class Account:
    """How a reply came about: what it was searched with, by whom it was written, and what that took."""

    question: str
    searched: str
    """The question made whole from its thread."""
    passages: tuple[Passage, ...]
    response_ms: float
    embedding_ms: float
    retrieval_ms: float
    generation_ms: float
    created_at: datetime
    cache_hit: bool = False
    """The question's vector was at hand."""
    thread_id: str = ""
    model: str | None = None
    tokens_used: int = 0
    retrievals: tuple[Retrieval, ...] = ()
    outcome: SearchOutcome | None = None
    """The question's own search."""
    retrieved: int = 0
    """Different chunks, over all searches."""
    tries: int = 0
    """Calls to the model's service, those that failed included."""


@dataclass(frozen=True, slots=True)
class Searching:
    query: str


@dataclass(frozen=True, slots=True)
class PassagesFound:
    passages: tuple[Passage, ...]
    confidence: Confidence
    outcome: SearchOutcome | None = None
    """The search that they come from."""


@dataclass(frozen=True, slots=True)
class StateChanged:
    state: RequestState


@dataclass(frozen=True, slots=True)
class Tried:
    """A call to the model's service; `why` says what went wrong."""

    state: RetryState
    attempt: int
    why: str = ""


@dataclass(frozen=True, slots=True)
class Delta:
    """The next part of the answer, checked already: nothing that was sent is taken back."""

    text: str


@dataclass(frozen=True, slots=True)
class Replied:
    reply: Reply
    account: Account


@dataclass(frozen=True, slots=True)
class Failed:
    error: Exception


AnswerEvent = StateChanged | Searching | PassagesFound | Tried | Delta | Replied | Failed


# --- threads --------------------------------------------------------------------------------------

LIVE_MESSAGES = 50
"""How many messages of a thread are at hand; older ones are archived, and still readable."""
MetadataValue: TypeAlias = "str | int | float | bool | Sequence[MetadataValue] | Mapping[str, MetadataValue] | None"


@dataclass(frozen=True, slots=True)
class Cited:
    """A passage that an answer cites: its place and its text."""

    title: str
    text: str
    url: str = ""
    chunk_id: str = ""
    parent_doc_id: str = ""
    quotes: tuple[Quote, ...] = ()
    """Those of its source; empty in messages of older versions."""


@dataclass(frozen=True, slots=True)
class Message:
    role: Literal["user", "assistant"]
    content: str
    timestamp: datetime
    confidence: float | None = None
    """The assistant's alone."""
    cited: tuple[Cited, ...] = ()
    """In the order of the numbers shown."""
    tool_calls: tuple[Retrieval, ...] = ()
    refusal: RefusalReason | None = None
    archived: bool = False


@dataclass(frozen=True, slots=True)
class Thread:
    """A conversation about one book. `messages` are the live ones, the oldest first."""

    thread_id: str
    book_id: str
    owner: str
    messages: tuple[Message, ...]
    created_at: datetime
    updated_at: datetime
    archived_messages: int = 0
    archived_at: datetime | None = None
    title: str = ""
    """Its first question, or the name that somebody gave it."""
    topic_summary: str | None = None
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict[str, MetadataValue])
    """Who asks (`user_id`, tier, level, layer), `tags`, and whatever else a caller wants kept."""
    retrieval_history: tuple[Retrieval, ...] = ()
    tokens_used: int = 0
    turn_count: int = 0
    model: str | None = None


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

    @property
    def public_id(self) -> str:
        return to_public_id(self.book_id)

    @property
    def last_change(self) -> datetime | None:
        """When something of it was last ingested."""
        return max(filter(None, (self.last_full_ingest, self.last_incremental_update)), default=None)


@dataclass(frozen=True, slots=True)
class OutlineSection:
    title: str
    depth: int
    """1 for a section of the lesson, 2 for a section of that, and so on."""


@dataclass(frozen=True, slots=True)
class OutlineLesson:
    """A lesson's place in its book, and what its sections are called."""

    module: str
    module_title: str
    chapter: int
    chapter_title: str
    """Empty where the lesson is in no chapter."""
    lesson: int
    title: str
    url: str
    source_file: str
    parent_doc_id: str
    sections: tuple[OutlineSection, ...] = ()


@dataclass(frozen=True, slots=True)
class Outline:
    """What a book holds, in its own order."""

    book_id: str
    title: str
    lessons: tuple[OutlineLesson, ...]
    revision: int = 0


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


# --- who may read what ----------------------------------------------------------------------------


def to_internal_id(tenant: str, public_id: str) -> str:
    """`acme/robots`: a tenant's book. No public id holds a slash, so no book of one tenant is ever another's."""
    return f"{tenant}/{public_id}" if tenant else public_id


def to_public_id(book_id: str) -> str:
    """The book's id without its tenant, as callers know it."""
    return book_id.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Scope:
    """The books that somebody may read: all of a tenant, or the named ones of them."""

    tenant: str = ""
    books: tuple[str, ...] | None = None
    """Public ids."""

    def holds(self, book_id: str) -> bool:
        tenant, _, public_id = book_id.rpartition("/")
        return tenant == self.tenant and (self.books is None or public_id in self.books)

    def covers(self, other: Scope) -> bool:
        """Whether a reader of this scope may hand out the other."""
        within = self.books is None or (other.books is not None and set(other.books) <= set(self.books))
        return other.tenant == self.tenant and within


@dataclass(frozen=True, slots=True)
class Key:
    """What is known of an API key; the key itself is known to its bearer alone."""

    key_id: str
    name: str
    role: Role
    scope: Scope
    created_at: datetime
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None
    origins: tuple[str, ...] = ()
    """The sites whose pages contain it in public; it works only there. Empty: the key is its bearer's secret."""


# --- what the book could not answer ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NearSection:
    """The section that comes closest to a question."""

    title: str
    url: str
    source_file: str
    parent_doc_id: str


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question that was refused, or whose answer did not help."""

    book_id: str
    text: str
    """Made whole from its thread."""
    own_words: str
    """As its reader wrote it."""
    asked_at: datetime
    refused: RefusalReason | None
    unhelpful: bool
    comment: str | None
    nearest: NearSection | None


@dataclass(frozen=True, slots=True)
class Gap:
    """Questions of one meaning that the book left open, and the section that should have answered them."""

    book_id: str
    question: str
    """The wording that represents them all."""
    count: int
    refused: int
    unhelpful: int
    last_asked: datetime
    variants: tuple[str, ...]
    """The other wordings, the most asked first."""
    own_words: tuple[str, ...]
    """What readers wrote in threads that complete the question, the latest first."""
    comments: tuple[str, ...]
    section: NearSection | None


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a reader thought of an answer. `position` counts the thread's messages from 0."""

    thread_id: str
    position: int
    helpful: bool
    comment: str | None
    given_at: datetime


@dataclass(frozen=True, slots=True)
class Opinion:
    """A thumb, and the question whose answer it was given for."""

    book_id: str
    question: str
    helpful: bool
    comment: str | None
    given_at: datetime


@dataclass(frozen=True, slots=True)
class UsageDay:
    """What was asked on a day, in UTC, and what became of it."""

    day: date
    asked: int = 0
    levels: Mapping[ConfidenceLevel, int] = field(default_factory=dict[ConfidenceLevel, int])
    """Of the answers."""
    refused: Mapping[RefusalReason, int] = field(default_factory=dict[RefusalReason, int])
    helpful: int = 0
    unhelpful: int = 0
