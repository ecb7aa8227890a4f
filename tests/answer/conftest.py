"""The small book, ingested once for all tests of answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from answer.robots import BOOK, LESSONS, ingest_books, write_lessons
from builders import copy_home


@pytest.fixture(scope="session")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_lessons(tmp_path_factory.mktemp("robots"), LESSONS)
    return ingest_books(tmp_path_factory.mktemp("home"), {BOOK: folder})


@pytest.fixture
def home(ingested: Path, tmp_path: Path) -> Path:
    """One to write into."""
    return copy_home(ingested, tmp_path)
