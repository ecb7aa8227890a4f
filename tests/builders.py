"""Small, whole values for tests that do not want to read a folder."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from askbook.answer.quotes import place_quote
from askbook.domain import Chunk, Lesson, Piece, Source

NAMESPACE = uuid.UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def make_lesson(
    source_file: str = "m/c/01-a.md", *, number: int = 1, text: str = "# A\n\nText.", **changes: Any
) -> Lesson:
    identity = f"book:m:1:{number}"
    lesson = Lesson(
        book_id="book",
        source_file=source_file,
        file_hash=sha256(text),
        module="m",
        chapter=1,
        lesson=number,
        title="A",
        book_title="Book",
        module_title="Module",
        chapter_title="Chapter 1",
        hardware_tier=1,
        proficiency_level="A2",
        layer="L1",
        facets={},
        url=f"https://example.org/{source_file}",
        parent_doc_id=str(uuid.uuid5(NAMESPACE, f"{identity}:parent")),
        identity=identity,
        title_in_file=True,
        text=text,
        body_start=0,
        fingerprint=sha256(f"{identity}:{source_file}:{text}"),
    )
    return replace(lesson, **changes)


def make_chunks(lesson: Lesson, *texts: str) -> list[Chunk]:
    """One chunk for each text, chained as the chunker would."""
    ids = [str(uuid.uuid5(NAMESPACE, f"{lesson.identity}:{sha256(text)[:16]}")) for text in texts]
    return [
        Chunk(
            id=ids[at],
            text=text,
            embed_text=f"{lesson.title}\n{text}",
            embed_hash=sha256(f"{lesson.title}\n{text}"),
            book_id=lesson.book_id,
            module=lesson.module,
            chapter=lesson.chapter,
            lesson=lesson.lesson,
            section_title=None,
            heading_path=(lesson.book_title, lesson.module_title, lesson.chapter_title, lesson.title),
            hardware_tier=lesson.hardware_tier,
            proficiency_level=lesson.proficiency_level,
            layer=lesson.layer,
            facets=lesson.facets,
            source_file=lesson.source_file,
            url=lesson.url,
            parent_doc_id=lesson.parent_doc_id,
            chunk_index=at,
            total_chunks=len(texts),
            prev_chunk_id=ids[at - 1] if at else None,
            next_chunk_id=ids[at + 1] if at + 1 < len(texts) else None,
            content_hash=sha256(text),
            source_file_hash=lesson.file_hash,
            word_count=len(text.split()),
            token_count=round(len(text.split()) * 1.3),
            char_count=len(text),
            first_line=1,
            last_line=1,
            start=0,
            end=len(text),
            pieces=(Piece(0, 0, len(text)),),
        )
        for at, text in enumerate(texts)
    ]


def copy_home(home: Path, target: Path) -> Path:
    """A home of one's own. The index reserves much more than it fills: an ordinary copy would be 200 times its size."""
    return Path(shutil.copytree(home, target / "home", copy_function=_copy_with_holes))


def _copy_with_holes(source: str, target: str) -> None:
    with Path(source).open("rb") as original, Path(target).open("wb") as copy:
        for start, end in _find_data(original.fileno()):
            copy.seek(start)
            copy.write(os.pread(original.fileno(), end - start, start))
        copy.truncate(os.fstat(original.fileno()).st_size)


def _find_data(file: int) -> Iterator[tuple[int, int]]:
    """Where it is not a hole, as the file system knows it: to look for zeros would be to read all of it."""
    end = 0
    while True:
        try:
            start = os.lseek(file, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            return  # There is none beyond.
        end = os.lseek(file, start, os.SEEK_HOLE)
        yield start, end


def is_verbatim(source: Source) -> bool:
    """The quote stands in its chunk, and the chunk's pieces put it where the source says."""
    chunk, quote = source.passage.chunk, source.quote
    starts = (at for at in range(len(chunk.text)) if chunk.text.startswith(quote, at))
    return any(place_quote(chunk, at, at + len(quote)) == (source.start, source.end) for at in starts)
