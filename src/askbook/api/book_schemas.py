"""The bodies that tell of a book: its chunks and lessons, what is indexed of it, and its jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import groupby
from typing import Literal, Self

from pydantic import BaseModel, Field

from askbook.api.addresses import Address, Addressed
from askbook.api.schemas import FileProblem, IngestionJob
from askbook.domain import BookRecord, Chunk, FacetValue, Job, LessonRecord, Outline, OutlineLesson


class DocumentMetadata(Addressed):
    """Seed 003's: where a chunk stands, and for whom it was written."""

    book_id: str
    module: str
    chapter: int
    lesson: int
    section_title: str | None
    hardware_tier: int
    proficiency_level: str
    layer: str
    source_file: str
    parent_doc_id: str
    chunk_index: int = Field(ge=0)
    total_chunks: int = Field(ge=1)
    prev_chunk_id: str | None
    next_chunk_id: str | None
    content_hash: str
    source_file_hash: str
    version: int
    created_at: datetime | None
    updated_at: datetime | None
    heading_path: list[str]
    facets: dict[str, FacetValue]
    first_line: int
    last_line: int
    start: int
    end: int


class DocumentChunk(BaseModel):
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
    def from_chunk(cls, chunk: Chunk, book_id: str) -> Self:
        """`book_id`: as its reader knows it."""
        fields = {name: getattr(chunk, name) for name in DocumentMetadata.model_fields}
        return cls(
            id=chunk.id,
            text=chunk.text,
            metadata=DocumentMetadata(**{**fields, "book_id": book_id}),
            word_count=chunk.word_count,
            token_count=chunk.token_count,
            char_count=chunk.char_count,
            embedded_at=chunk.embedded_at,
            embedding_model=chunk.embedding_model,
        )


class ContextResponse(BaseModel):
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
        return cls(
            parent_doc_id=first.parent_doc_id,
            book_id=book_id,
            title=first.heading_path[max(0, len(first.heading_path) - 1 - sections)],
            module=first.module,
            chapter=first.chapter,
            lesson=first.lesson,
            source_file=first.source_file,
            url=first.url.partition("#")[0],
            total_chunks=len(chunks),
            chunks=[DocumentChunk.from_chunk(one, book_id) for one in chunks],
        )


class SectionContents(BaseModel):
    title: str
    depth: int = Field(ge=1, description="1 for a section of the lesson, 2 for a section of that, and so on.")


class LessonContents(Addressed):
    parent_doc_id: str
    lesson: int
    title: str
    read_url: Address = Field(description="Where askbook shows it.")
    sections: list[SectionContents]


class ChapterContents(BaseModel):
    chapter: int
    title: str = Field(description="Empty where lessons are in no chapter.")
    lessons: list[LessonContents]


class ModuleContents(BaseModel):
    module: str
    title: str
    chapters: list[ChapterContents]


class ContentsResponse(BaseModel):
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
        for module, lessons in groupby(outline.lessons, lambda one: one.module):
            of_module = list(lessons)
            chapters = [
                ChapterContents(
                    chapter=chapter, title=title, lessons=[_to_lesson(one, read_url(one)) for one in of_chapter]
                )
                for (chapter, title), of_chapter in groupby(of_module, lambda one: (one.chapter, one.chapter_title))
            ]
            modules.append(ModuleContents(module=module, title=of_module[0].module_title, chapters=chapters))
        return cls(book_id=book_id, title=outline.title, modules=modules, suggestions=list(suggestions))


def _to_lesson(lesson: OutlineLesson, read_url: str) -> LessonContents:
    sections = [SectionContents(title=one.title, depth=one.depth) for one in lesson.sections]
    return LessonContents(
        parent_doc_id=lesson.parent_doc_id,
        lesson=lesson.lesson,
        title=lesson.title,
        url=lesson.url,
        read_url=read_url,
        sections=sections,
    )


class BookInfo(BaseModel):
    book_id: str
    title: str
    collection_name: str
    modules: list[str]
    facets: dict[str, list[FacetValue]] = Field(description="What can be filtered by; an empty list means any value.")
    total_files: int
    total_chunks: int
    unembedded_chunks: int = Field(description="Found by their words alone until their vectors are there.")
    revision: int
    last_full_ingest: datetime | None
    last_incremental_update: datetime | None

    @classmethod
    def from_record(cls, record: BookRecord, book_id: str, collection: str) -> Self:
        named = {name: getattr(record, name) for name in cls.model_fields if hasattr(record, name)}
        facets = {name: list(values) for name, values in record.facets.items()}
        named |= {"book_id": book_id, "facets": facets, "modules": list(record.modules)}
        return cls(**named, collection_name=collection)


class Ingesting(BaseModel):
    """A book that is being read in, for those who wait for it."""

    book_id: str
    progress: float = Field(ge=0, le=1)
    files_processed: int
    files_total: int

    @classmethod
    def from_job(cls, job: Job, book_id: str) -> Self:
        files = job.files_processed + job.files_skipped
        return cls(book_id=book_id, progress=job.progress, files_processed=files, files_total=job.files_total)


class InfoResponse(BaseModel):
    version: str
    embedder: str | None = Field(description="Null where books are searched by their words alone.")
    reranker: str | None
    model: str | None = Field(description="Null where the book's own sentences are the answer.")
    books: list[BookInfo]
    ingesting: list[Ingesting] = Field(description="Books of this key that a job is at work on, or waits for.")


class IngestionRecord(BaseModel):
    """Seed 003's record of one indexed file."""

    source_file: str
    file_hash: str
    chunk_ids: list[str]
    chunk_count: int
    ingested_at: datetime
    book_id: str
    module: str
    chapter: int
    lesson: int

    @classmethod
    def from_record(cls, record: LessonRecord, book_id: str) -> Self:
        named = {name: getattr(record, name) for name in cls.model_fields}
        return cls(**{**named, "book_id": book_id, "chunk_ids": list(record.chunk_ids)})


class IngestionState(BaseModel):
    """Seed 003's: what is indexed of one book."""

    book_id: str
    collection_name: str
    records: dict[str, IngestionRecord] = Field(description="By file; empty unless asked for.")
    last_full_ingest: datetime | None
    last_incremental_update: datetime | None
    total_chunks: int


class IngestionChanges(BaseModel):
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


class IngestionStatus(BaseModel):
    jobs: list[IngestionJob] = Field(description="The newest first.")
    states: list[IngestionState]


class WebhookReply(BaseModel):
    status: Literal["accepted", "repeated", "ignored", "pong"]
    why: str
    job_ids: list[int]
