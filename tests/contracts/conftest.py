"""One textbook, ingested once, and one real server over it for all tests of the contracts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from answer.robots import ingest_books
from api.service import Service, build_settings, serve
from builders import copy_home
from contracts.terminal import Terminal
from contracts.textbook import BOOK, write_textbook


@pytest.fixture(scope="session")
def textbook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_textbook(tmp_path_factory.mktemp("textbook"))


@pytest.fixture(scope="session")
def ingested_textbook(textbook: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ingest_books(tmp_path_factory.mktemp("ingested"), {BOOK: textbook})


@pytest.fixture(scope="session")
def service(ingested_textbook: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Without a model: the book's own sentences answer."""
    home = copy_home(ingested_textbook, tmp_path_factory.mktemp("served"))
    with serve(build_settings(home)) as service:
        yield service


@pytest.fixture(scope="session")
def client(service: Service) -> Iterator[httpx2.Client]:
    with service.open_client() as client:
        yield client


@pytest.fixture(scope="module")
def terminal(ingested_textbook: Path, tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    folder = tmp_path_factory.mktemp("terminal")
    return Terminal(copy_home(ingested_textbook, folder), folder)
