"""What an agent may do with the books: four tools, their arguments and results. Nothing here knows the protocol."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field, ValidationError

from askbook.answer.cleaning import escape_for_model
from askbook.api.callers import Caller, find_books, pick_book
from askbook.api.failing import describe_invalid, printable
from askbook.api.requests import UUID4, BookId, LessonId, QuestionText, RequestBody, WholeNumber
from askbook.domain import (
    LIMIT_MAX,
    QUERY_MAX,
    QUERY_MIN,
    TIER_MAX,
    BookRecord,
    Chunk,
    ConfidenceLevel,
    Filters,
    Question,
    Reader,
    Refusal,
    RefusalReason,
    Replied,
    to_mark,
)
from askbook.errors import InputError, NotFound
from askbook.index.choices import check_choices
from askbook.shapes.body import Addressed, Body, taken_from, to_address
from askbook.store.database import map_json
from askbook.wiring import Askbook

PART_CHARACTERS = 20_000
"""About 5,000 tokens: what an agent reads at one go."""
QUOTE_SHOWN = 300


@dataclass(frozen=True)
class Visit:
    """One call of a tool: who calls, and what answers. The call's arguments change neither."""

    askbook: Askbook
    caller: Caller
    answer: Callable[[Question], Awaitable[Replied]]

    async def find_book(self, book_id: str | None) -> BookRecord:
        books = await self.askbook.ledger.load_books()
        try:
            return pick_book(self.caller, book_id, books)
        except NotFound as error:
            raise NotFound(error.message, "list_books tells which there are." if book_id else error.hint) from error


# --- arguments ------------------------------------------------------------------------------------

Tier = Annotated[
    int, Field(ge=1, le=TIER_MAX, description="Leave out what needs more hardware than this tier, 1 to 4.")
]


class Arguments(RequestBody):
    # Small models write numbers as text.
    model_config = ConfigDict(strict=False)


class SearchBook(Arguments):
    query: str = Field(min_length=QUERY_MIN, max_length=QUERY_MAX)
    """What to look for: a question or a topic. Keep names, identifiers and numbers as they are."""
    book_id: BookId | None = None
    limit: int = Field(default=5, ge=1, le=LIMIT_MAX, description="How many passages.")
    module: str | None = Field(default=None, max_length=200)
    """Only this module; list_books names the modules."""
    chapter_min: WholeNumber | None = Field(default=None, description="Only from this chapter on.")
    chapter_max: WholeNumber | None = Field(default=None, description="Only up to this chapter, itself included.")
    lesson_id: LessonId | None = Field(default=None, description="Only in this lesson.")
    hardware_tier: Tier | None = None


class AskBook(Arguments):
    question: QuestionText
    """One question, in full sentences, as its reader would ask it; 1 to 1000 characters."""
    book_id: BookId | None = None
    thread_id: Annotated[str, Field(pattern=UUID4)] | None = None
    """For a follow-up: the thread_id of the answer before. “Tell me more” is then understood."""
    hardware_tier: Tier | None = None


class ReadLesson(Arguments):
    lesson: str = Field(min_length=1, max_length=2000)
    """A lesson_id or a url, as search_book and ask_book give them."""
    book_id: BookId | None = None
    part: int = Field(default=1, ge=1, description="A long lesson comes in parts; the first one says how many.")


class ListBooks(Arguments):
    """Takes nothing."""


# --- results --------------------------------------------------------------------------------------


class ToolResult(Body):
    """A result as fields and as text: some clients show their model only one of them."""

    def to_text(self) -> str:
        raise NotImplementedError


class BookPlace(Addressed):
    title: str = taken_from("way", "The way to it through the book's headings.")
    lesson_id: str = taken_from("parent_doc_id")

    @property
    def line(self) -> str:
        return " · ".join(filter(None, (self.title, to_address(self.url))))


class FoundPassage(BookPlace):
    text: str
    relevance: float = Field(description="0 to 1, calibrated; the best comes first.")
    module: str
    chapter: int
    lesson: int


class FoundPassages(ToolResult):
    book_id: str
    query: str
    total_found: int
    passages: list[FoundPassage]
    notices: list[str] = Field(description="A service that did not take part.")

    def to_text(self) -> str:
        nothing = f"Nothing in {self.book_id} fits “{self.query}”. Search with other words, or with fewer filters."
        found = (
            f"{place}. {passage.line}\n"
            f"relevance {passage.relevance:.2f} · lesson_id {passage.lesson_id}\n\n{passage.text}"
            for place, passage in enumerate(self.passages, start=1)
        )
        return "\n\n".join((*self.notices, *(found if self.passages else (nothing,))))


class Citation(BookPlace):
    number: int = Field(description="[1] in the answer stands for citation 1.")
    quote: str = Field(description="The book's own words that the answer leans on.")


class BookReply(ToolResult):
    """An answer, or a refusal: `answered` says which."""

    answered: bool
    answer: str = taken_from("text", "Markdown with marks such as [1]; of a refusal, what it says.")
    citations: list[Citation]
    confidence: ConfidenceLevel
    confidence_score: float = Field(description="Mean relevance of the passages, 0 to 1.")
    refusal: RefusalReason | None = Field(description="Why the book does not answer; null where it does.")
    advice: str | None = Field(description="Of a refusal: what would help.")
    nearest: list[BookPlace] = Field(description="Of a refusal: the sections that come closest.")
    notices: list[str] = Field(description="Doubts that a reader of the answer must be told.")
    removed: list[str] = Field(description="Sentences that were left out, because the book does not support them.")
    thread_id: str = Field(description="Give it with a follow-up.")
    book_id: str

    @classmethod
    def from_replied(cls, replied: Replied, thread_id: str, book_id: str) -> Self:
        reply, confidence = replied.reply, replied.reply.confidence
        refusal = reply if isinstance(reply, Refusal) else None
        return cls.of(
            reply,
            answered=refusal is None,
            citations=[Citation.of(source, source.passage.chunk) for source in reply.sources],
            confidence=confidence.confidence_level if confidence and not refusal else "insufficient",
            confidence_score=round(confidence.average_similarity, 3) if confidence else 0.0,
            refusal=refusal and refusal.reason,
            advice=refusal and refusal.advice,
            nearest=[BookPlace.of(passage.chunk) for passage in refusal.nearest] if refusal else [],
            removed=[statement.text for statement in reply.removed],
            thread_id=thread_id,
            book_id=book_id,
        )

    def to_text(self) -> str:
        body = self._say_answer() if self.answered else self._say_refusal()
        return "\n".join((*body, f"thread_id for a follow-up: {self.thread_id}"))

    def _say_answer(self) -> Iterable[str]:
        yield from (self.answer, "", "Sources:")
        for source in self.citations:
            quote = " ".join(source.quote.split())
            shown = quote if len(quote) <= QUOTE_SHOWN else f"{quote[:QUOTE_SHOWN]}…"
            yield from (f"{to_mark(source.number)} {source.line}", f"    “{shown}”")
        yield from ("", f"Confidence: {self.confidence} ({self.confidence_score:.2f})")
        yield from self.notices

    def _say_refusal(self) -> Iterable[str]:
        yield f"The book does not answer this ({self.refusal}). {self.answer.rstrip('.')}."
        if self.advice:
            yield self.advice
        yield from self.notices
        if self.nearest:
            yield from ("Nearest sections:", *(f"- {section.line}" for section in self.nearest))


class LessonSection(Addressed):
    heading: str
    text: str


class WholeLesson(BookPlace, ToolResult):
    book_id: str
    module: str
    chapter: int
    lesson: int
    part: int
    parts: int
    sections: list[LessonSection]

    def to_text(self) -> str:
        more = f"\n\nPart {self.part} of {self.parts}." if self.parts > 1 else ""
        return f"{self.line}\n\n" + "\n\n".join(section.text for section in self.sections) + more


class ListedBook(Body):
    book_id: str
    title: str
    modules: list[str]
    lessons: int
    last_change: str | None = Field(description="When something of it was last ingested.")


class ListedBooks(ToolResult):
    books: list[ListedBook]

    def to_text(self) -> str:
        if not self.books:
            return "There is no book. `askbook ingest FOLDER` makes one."
        return "\n".join(
            f"{book.book_id}: {book.title}; {book.lessons} lessons; modules {', '.join(book.modules)}"
            for book in self.books
        )


# --- what they do ---------------------------------------------------------------------------------


async def _search(visit: Visit, wanted: SearchBook) -> FoundPassages:
    book = await visit.find_book(wanted.book_id)
    asked = wanted.model_dump(include={"hardware_tier", "module", "chapter_min", "chapter_max"})
    filters = Filters(book.book_id, parent_doc_id=wanted.lesson_id, **asked)
    check_choices(filters, book)
    outcome = await visit.askbook.search(wanted.query, filters, limit=wanted.limit)
    passages = [FoundPassage.of(found.chunk, relevance=round(found.rating, 3)) for found in outcome.passages]
    return FoundPassages.of(outcome, book_id=book.public_id, passages=passages)


async def _ask(visit: Visit, wanted: AskBook) -> BookReply:
    book = await visit.find_book(wanted.book_id)
    thread_id = wanted.thread_id or str(uuid.uuid4())
    reader = Reader(hardware_tier=wanted.hardware_tier) if wanted.hardware_tier else None
    filters, limits = Filters(book.book_id), visit.askbook.limits
    question = Question(wanted.question, filters, thread_id, visit.caller.owner, reader=reader, **limits)
    return BookReply.from_replied(await visit.answer(question), thread_id, book.public_id)


async def _read(visit: Visit, wanted: ReadLesson) -> WholeLesson:
    book = await visit.find_book(wanted.book_id)
    outline = await visit.askbook.ledger.load_outline(book.book_id)
    page = wanted.lesson.strip().partition("#")[0]
    named = [
        lesson
        for lesson in outline.lessons
        if page.lower() == lesson.parent_doc_id or page in (lesson.url, to_address(lesson.url.partition("#")[0]))
    ]
    if not named:
        raise NotFound(
            f"there is no lesson {printable(page[:200])} in {book.public_id}",
            "Give a lesson_id or a url that search_book told.",
        )
    chunks = await visit.askbook.ledger.load_lesson(book.book_id, named[0].parent_doc_id)
    parts = _to_parts(chunks)
    if wanted.part > len(parts):
        raise InputError(f"the lesson has {len(parts)} parts, and {wanted.part} is none of them")
    lesson = named[0]
    return WholeLesson.of(
        lesson,
        title=" › ".join(filter(None, (lesson.module_title, lesson.chapter_title, lesson.title))),
        book_id=book.public_id,
        part=wanted.part,
        parts=len(parts),
        sections=parts[wanted.part - 1],
    )


def _to_parts(chunks: Sequence[Chunk]) -> list[list[LessonSection]]:
    parts: list[list[LessonSection]] = []
    covered = size = 0
    for chunk in chunks:
        text = _without_overlap(chunk, covered)
        covered = max(covered, chunk.end)
        size += len(text)
        if not parts or size > PART_CHARACTERS:
            parts.append([])
            size = len(text)
        parts[-1].append(LessonSection(heading=chunk.heading_path[-1], url=chunk.url, text=text))
    return parts


def _without_overlap(chunk: Chunk, covered: int) -> str:
    """A chunk may begin with the last sentences of the one before."""
    if chunk.start >= covered:
        return chunk.text
    fresh = next((piece for piece in chunk.pieces if piece.source_at + piece.length > covered), None)
    return chunk.text[fresh.text_at + max(0, covered - fresh.source_at) :].lstrip() if fresh else ""


async def _list(visit: Visit, _wanted: ListBooks) -> ListedBooks:
    books = find_books(visit.caller, await visit.askbook.ledger.load_books())
    return ListedBooks(
        books=[
            ListedBook.of(
                book,
                book_id=book.public_id,
                lessons=book.total_files,
                last_change=book.last_change.isoformat() if book.last_change else None,
            )
            for book in books
        ]
    )


# --- the four -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BookTool:
    name: str
    title: str
    about: str
    arguments: type[Arguments]
    result: type[ToolResult]
    run: Callable[[Visit, Any], Awaitable[ToolResult]]
    reads_only: bool = True


TOOLS = {
    tool.name: tool
    for tool in (
        BookTool(
            "ask_book",
            "Ask a book",
            "Ask a book a question and get an answer from its text alone, with numbered citations (url, quote) that "
            "were checked, and how sure it is. Where the book does not say, it tells so (answered: false) with the "
            "nearest sections: pass that on, and do not answer in the book's name. Best for “what”, “why”, “how to” "
            "and “what is in chapter 3”.",
            AskBook,
            BookReply,
            _ask,
            reads_only=False,
        ),
        BookTool(
            "search_book",
            "Search a book",
            "Find the passages of a book that fit a question or a topic, the best first, with their url and lesson_id. "
            "For looking around, comparing passages or quoting; ask_book is better for one answer.",
            SearchBook,
            FoundPassages,
            _search,
        ),
        BookTool(
            "read_lesson",
            "Read a lesson",
            "Read a whole lesson in order, when the passages that were found are too short to understand.",
            ReadLesson,
            WholeLesson,
            _read,
        ),
        BookTool(
            "list_books",
            "List the books",
            "Which books there are, with their modules. Needed where there are several: the other tools then want a "
            "book_id.",
            ListBooks,
            ListedBooks,
            _list,
        ),
    )
}


async def call_tool(visit: Visit, name: str, given: Mapping[str, Any]) -> ToolResult:
    tool = TOOLS.get(name)
    if tool is None:
        raise NotFound(f"there is no tool {printable(name[:100])}", f"There are {', '.join(TOOLS)}.")
    result = await tool.run(visit, _read_arguments(tool, given))
    # Text from the book is data. It is escaped here, for all fields of all tools.
    escaped = map_json(result.model_dump(), lambda value: escape_for_model(value) if isinstance(value, str) else value)
    return tool.result.model_validate(escaped)


def _read_arguments(tool: BookTool, given: Mapping[str, Any]) -> Arguments:
    try:
        # Models send null for what they leave out.
        return tool.arguments.model_validate({name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        wrong = [{**wrong, "loc": ("arguments", *wrong["loc"])} for wrong in error.errors(include_url=False)]
        message, all_that_is = describe_invalid(wrong)
        takes = f"{tool.name} takes {', '.join(tool.arguments.model_fields) or 'nothing'}."
        raise InputError(all_that_is or message, takes) from error
