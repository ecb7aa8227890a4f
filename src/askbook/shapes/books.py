"""What a book holds and what is done with it: the bodies of /context, /lesson, /contents, /info and /ingestion."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import groupby
from typing import Literal, Self

from pydantic import Field

from askbook.domain import (
    BookRecord,
    Chunk,
    Job,
    LessonRecord,
    Outline,
    OutlineLesson,
    OutlineSection,
    Problem,
)
from askbook.shapes.answers import ChunkPlace, Count, Share
from askbook.shapes.body import Address, Addressed, Body, body_of


class DocumentMetadata(Addressed, ChunkPlace):
    """Seed 003's: where a chunk stands, and for whom it was written."""

    book_id: str
    chunk_index: Count
    total_chunks: int = Field(ge=1)
    source_file_hash: str
    version: int
    created_at: datetime | None
    updated_at: datetime | None


class DocumentChunk(Body):
    """Seed 003's chunk."""

    id: str
    text: str
    metadata: DocumentMetadata
    word_count: int
    token_count: int
    char_count: int
    embedded_at: datetime | None = Field(description="Null while it waits for its vector.")
    embedding_model: str | None = Field(description="Null also for a chunk of which it was not yet noted.")

    @classmethod
    def from_chunks(cls, chunks: Iterable[Chunk], book_id: str) -> list[Self]:
        """`book_id`: as its reader knows it."""
        return [cls.of(chunk, metadata=DocumentMetadata.of(chunk, book_id=book_id)) for chunk in chunks]


class ContextResponse(Body):
    """A chunk with its neighbours, in order."""

    chunk_id: str
    book_id: str
    chunks: list[DocumentChunk]


class LessonResponse(Addressed):
    """A whole lesson, in order."""

    parent_doc_id: str
    book_id: str
    title: str
    module: str
    chapter: int
    lesson: int
    source_file: str
    total_chunks: int
    chunks: list[DocumentChunk]

    @classmethod
    def from_chunks(cls, chunks: Sequence[Chunk], book_id: str) -> Self:
        first = chunks[0]
        sections = 1 if first.section_title else 0
        return cls.of(
            first,
            book_id=book_id,
            title=first.heading_path[max(0, len(first.heading_path) - 1 - sections)],
            url=first.url.partition("#")[0],
            total_chunks=len(chunks),
            chunks=DocumentChunk.from_chunks(chunks, book_id),
        )


class SectionContents(body_of(OutlineSection)):
    depth: int = Field(ge=1, description="1 for a section of the lesson, 2 for a section of that, and so on.")


class LessonContents(Addressed):
    parent_doc_id: str
    lesson: int
    title: str
    read_url: Address = Field(description="Where askbook shows it.")
    sections: list[SectionContents]


class ChapterContents(Body):
    chapter: int
    title: str = Field(description="Empty where lessons are in no chapter.")
    lessons: list[LessonContents]


class ModuleContents(Body):
    module: str
    title: str
    chapters: list[ChapterContents]


class ContentsResponse(Body):
    """A book's table of contents, in its own order."""

    book_id: str
    title: str
    modules: list[ModuleContents]
    suggestions: list[str] = Field(description="Questions that the book answers; empty until they have been tried.")

    @classmethod
    def from_outline(
        cls, outline: Outline, book_id: str, read_url: Callable[[OutlineLesson], str], suggestions: Sequence[str]
    ) -> Self:
        modules: list[ModuleContents] = []
        for module, of_module in groupby(outline.lessons, lambda lesson: lesson.module):
            lessons = list(of_module)
            chapters = [
                ChapterContents(
                    chapter=chapter,
                    title=title,
                    lessons=[LessonContents.of(lesson, read_url=read_url(lesson)) for lesson in of_chapter],
                )
                for (chapter, title), of_chapter in groupby(
                    lessons, lambda lesson: (lesson.chapter, lesson.chapter_title)
                )
            ]
            modules.append(ModuleContents(module=module, title=lessons[0].module_title, chapters=chapters))
        return cls.of(outline, book_id=book_id, modules=modules, suggestions=suggestions)


class BookInfo(body_of(BookRecord, "folder")):
    collection_name: str
    unembedded_chunks: int = Field(description="Found by their words alone until their vectors are there.")


class Ingesting(Body):
    """A book that is being ingested, for readers who wait for it."""

    book_id: str
    progress: Share
    files_processed: int
    files_total: int


class InfoResponse(Body):
    version: str
    embedder: str | None = Field(description="Null where books are searched by their words alone.")
    reranker: str | None
    model: str | None = Field(description="Null where the book's own sentences are the answer.")
    books: list[BookInfo]
    ingesting: list[Ingesting] = Field(description="Books of this key that a job is at work on, or waits for.")


# --- ingestion ------------------------------------------------------------------------------------


class FileProblem(body_of(Problem)): ...


class IngestionJob(body_of(Job, "folder")):
    progress: Share
    problems: list[FileProblem]
    duration_seconds: int | None


class JobList(Body):
    jobs: list[IngestionJob]


class IngestionRecord(body_of(LessonRecord, "fingerprint", "parent_doc_id")):
    """Seed 003's record of one indexed file."""


class IngestionState(Body):
    """Seed 003's: what is indexed of one book."""

    book_id: str
    collection_name: str
    records: dict[str, IngestionRecord] = Field(description="By file; empty unless asked for.")
    last_full_ingest: datetime | None
    last_incremental_update: datetime | None
    total_chunks: int


class IngestionChanges(Body):
    """How the folder differs from what is indexed of it."""

    book_id: str
    new_files: list[str]
    modified_files: list[str]
    deleted_files: list[str]
    renamed_files: list[str] = Field(description="Their new names; nothing of them is embedded anew.")
    moved_files: list[str] = Field(description="The same file at another place of the book.")
    unchanged_files: int
    problems: list[FileProblem]
    has_changes: bool


class IngestionStatus(Body):
    jobs: list[IngestionJob] = Field(description="The newest first.")
    states: list[IngestionState]


class WebhookReply(Body):
    status: Literal["accepted", "repeated", "ignored", "pong"]
    why: str
    job_ids: list[int]
