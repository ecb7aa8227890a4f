"""A data folder of every released schema opens in today's code; one of a newer schema is refused and left alone."""

from __future__ import annotations

import hashlib
import sqlite3
import subprocess
import tarfile
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import text

import processes
from askbook.errors import StorageError
from askbook.store.database import HEAD, Database, open_database
from askbook.store.schema import metadata
from cli.serving import ASKBOOK, build_environment
from upgrades.make_home import ANSWER, BOOK, HOMES, QUESTION

RELEASED = sorted(HOMES.glob("*.tar.xz"))


def _unpack(packed: Path, place: Path) -> Path:
    with tarfile.open(packed) as archive:
        archive.extractall(place, filter="data")
    # The book lies elsewhere on this machine.
    with sqlite3.connect(place / "home" / "askbook.db") as packed_data:
        packed_data.execute("UPDATE books SET folder = ?", (str(place / "book"),))
    packed_data.close()
    return place


def _run(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return processes.run([*ASKBOOK, *arguments], cwd=place, env=build_environment(place / "home"))


def _hash_files(place: Path) -> dict[str, str]:
    files = (one for one in (place / "home").rglob("*") if one.is_file())
    return {str(one): hashlib.sha256(one.read_bytes()).hexdigest() for one in files}


def test_todays_schema_is_packed() -> None:
    assert f"{HEAD}.tar.xz" in [one.name for one in RELEASED], "run: python tests/upgrades/make_home.py"


@pytest.mark.parametrize("packed", RELEASED, ids=lambda one: one.name[:4])
def test_what_an_older_version_left_is_all_there(packed: Path, tmp_path: Path) -> None:
    place = _unpack(packed, tmp_path)
    asked = _run(place, "ask", QUESTION)
    assert ANSWER in asked.stdout, asked.stdout + asked.stderr
    assert QUESTION in _run(place, "threads").stdout
    assert "a reader" in _run(place, "keys", "list").stdout
    # Lessons that a newer version reads otherwise are told as changed, and mended.
    assert _run(place, "verify", "--repair", "--book", BOOK).returncode == 0
    assert _run(place, "verify", "--book", BOOK).returncode == 0
    assert ANSWER in _run(place, "ask", QUESTION).stdout
    assert _run(place, "ingest", "book", "--book", "again").returncode == 0
    assert ANSWER in _run(place, "ask", QUESTION, "--book", "again").stdout


def test_what_a_newer_version_left_is_refused_and_left_alone(tmp_path: Path) -> None:
    place = _unpack(RELEASED[-1], tmp_path)
    with sqlite3.connect(place / "home" / "askbook.db") as newer:
        newer.execute("UPDATE alembic_version SET version_num = '0999'")
    newer.close()
    before = _hash_files(place)
    for command in (("ask", QUESTION), ("ingest", "book"), ("verify", "--repair"), ("jobs",)):
        told = _run(place, *command)
        assert told.returncode == 1 and "Traceback" not in told.stderr
        assert "of a newer askbook: its schema is 0999" in told.stderr, told.stderr
    changed = {file: hash_ for file, hash_ in _hash_files(place).items() if before.get(file) != hash_}
    assert [file for file in changed if not file.endswith(".lock")] == []


@pytest.mark.parametrize("packed", RELEASED, ids=lambda one: one.name[:4])
async def test_an_older_database_is_brought_to_the_schema_in_the_code(packed: Path, tmp_path: Path) -> None:
    database = await open_database(f"sqlite:///{_unpack(packed, tmp_path) / 'home' / 'askbook.db'}")
    async with database.reading() as connection:
        found = await connection.run_sync(lambda c: compare_metadata(MigrationContext.configure(c), metadata))
    await database.close()
    assert found == []


async def test_so_is_a_newer_schema_on_either_engine(database: Database) -> None:
    async with database.writing() as connection:
        await connection.execute(text("UPDATE alembic_version SET version_num = '0999'"))
    with pytest.raises(StorageError, match="of a newer askbook"):
        await open_database(database.engine.url)
