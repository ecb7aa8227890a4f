"""Books and lessons for the tests of this room, made of real files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from askbook.book.chunker import split_lesson
from askbook.book.reader import read_book, read_lessons
from askbook.domain import Chunk, Lesson, Problem

REPOSITORY = Path(__file__).parents[2]
SHARED = REPOSITORY.parent / "shared"


def write_book(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def read_all(folder: Path) -> tuple[dict[str, Lesson], list[Problem]]:
    """Lessons by file, in reading order."""
    lessons, problems = read_lessons(folder, read_book(folder))
    return {lesson.source_file: lesson for lesson in lessons}, problems


def places(folder: Path) -> dict[str, tuple[str, int, int]]:
    return {file: (lesson.module, lesson.chapter, lesson.lesson) for file, lesson in read_all(folder)[0].items()}


def split(folder: Path, text: str, name: str = "m/01-a.md") -> tuple[Lesson, list[Chunk]]:
    lesson = read_all(write_book(folder, {name: text}))[0][name]
    return lesson, split_lesson(lesson)


def words(count: int, word: str = "robot") -> str:
    """Sentences of ten words."""
    return " ".join(f"The {word} number {n} walks over the floor and waits." for n in range(count // 10))
