"""Real books, whole: the demo, the evaluation sets, and a draw from MDN."""

from __future__ import annotations

import random
import tarfile
from pathlib import Path

import pytest
from book_checks import check_lesson
from shelf import REPOSITORY, SHARED

from askbook.book.chunker import split_lesson
from askbook.book.reader import read_book, read_lessons
from askbook.domain import Lesson

DEMO = REPOSITORY / "src" / "askbook" / "demo" / "physical-ai-robotics"
NO_CORPORA = "the corpora are not here: they lie in ../shared, beside the repository"


def check_book(folder: Path) -> list[Lesson]:
    """Every lesson holds together, and no id, place or address is given twice."""
    lessons, problems = read_lessons(folder, read_book(folder))
    ids: set[str] = set()
    count = 0
    for lesson in lessons:
        chunks = split_lesson(lesson)
        check_lesson(lesson, chunks)
        ids.update(chunk.id for chunk in chunks)
        count += len(chunks)
    assert len(ids) == count
    assert len({lesson.identity for lesson in lessons}) == len({lesson.url for lesson in lessons}) == len(lessons)
    assert not [problem for problem in problems if problem.skipped]
    return lessons


def test_the_demo_book() -> None:
    lessons = check_book(DEMO)
    assert {lesson.module for lesson in lessons} == {"main", "ros2", "gazebo", "isaac", "vla"}
    assert read_lessons(DEMO, read_book(DEMO))[1] == []


@pytest.mark.skipif(not (SHARED / "evals").is_dir(), reason=NO_CORPORA)
@pytest.mark.parametrize(
    "name", ["aws_docs_qa", "hf_llm_course_quiz", "openstax_biology", "openstax_physics", "rust_book_quiz"]
)
def test_the_evaluation_sets(name: str) -> None:
    folder = SHARED / "evals" / name / "md"
    files = [path for path in folder.rglob("*") if path.suffix in (".md", ".mdx")]
    assert len(check_book(folder)) == len(files)


@pytest.mark.row("B2")
@pytest.mark.skipif(not (SHARED / "corpora" / "mdn.tar.gz").is_file(), reason=NO_CORPORA)
def test_five_hundred_pages_of_mdn(tmp_path: Path, torture: bool) -> None:
    with tarfile.open(SHARED / "corpora" / "mdn.tar.gz") as archive:
        members = sorted(
            (member for member in archive.getmembers() if member.name.endswith(".md")), key=lambda member: member.name
        )
        drawn = members if torture else random.Random(500).sample(members, 500)
        in_file_order = sorted(drawn, key=lambda member: member.offset)
        archive.extractall(tmp_path, members=in_file_order, filter="data")
    assert len(check_book(tmp_path)) == len(drawn)
