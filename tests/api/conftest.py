"""The small book, ingested once, and askbook over it on both databases."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from answer.robots import BOOK, LESSONS, ingest_books, write_lessons
from api.service import build_settings, ingest, open_client
from askbook.settings import Settings
from builders import copy_home
from databases import fresh_postgres


@pytest.fixture(scope="session")
def robots_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lessons(tmp_path_factory.mktemp("robots"), LESSONS)


@pytest.fixture(scope="session")
def ingested_robots(robots_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ingest_books(tmp_path_factory.mktemp("home"), {BOOK: robots_folder})


@pytest.fixture
def home(ingested_robots: Path, tmp_path: Path) -> Path:
    """One to write into."""
    return copy_home(ingested_robots, tmp_path)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def both_settings(
    request: pytest.FixtureRequest, robots_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Settings:
    """The book on each database."""
    changes: dict[str, object] = {}
    if request.param == "postgresql":
        changes["database_url"] = asyncio.run(fresh_postgres(request.getfixturevalue("postgres_url")))
    settings = build_settings(tmp_path_factory.mktemp("both"), **changes)
    asyncio.run(ingest(settings, robots_folder))
    return settings


@pytest.fixture(scope="module")
def client(both_settings: Settings) -> Iterator[TestClient]:
    with open_client(both_settings) as client:
        yield client
