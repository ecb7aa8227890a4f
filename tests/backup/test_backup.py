"""Everything in one file and back, onto the same engines and onto others; nothing is embedded on the way."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
from qdrant_client import AsyncQdrantClient
from sqlalchemy import update
from sqlalchemy.engine import make_url

import processes
from askbook.answer.ask import get_reply
from askbook.answer.calibration import Calibrations
from askbook.backup.archive import Archive, open_archive, save_archive
from askbook.backup.holdings import CARRIED, Engines, Row, read_holdings, to_vector
from askbook.backup.restore import restore
from askbook.book.chunker import CHUNKER_VERSION
from askbook.domain import Filters, Question
from askbook.errors import InputError, StorageError
from askbook.index.search import Searcher
from askbook.index.vectors.server import ServerIndex
from askbook.ingest.verify import Verdict, verify_book
from askbook.lock import own_folder
from askbook.settings import Settings, load_settings_of_file
from askbook.store.database import open_database
from askbook.store.jobs import Jobs
from askbook.store.keys import Keys
from askbook.store.ledger import Ledger
from askbook.store.questions import Questions
from askbook.store.schema import jobs
from askbook.store.threads import Threads
from askbook.wiring import Askbook, open_askbook, open_engines
from builders import copy_home
from databases import fresh_postgres
from ingest.world import CountingEmbedder

BOOK = "physical-ai-robotics"
ASKBOOK = [sys.executable, "-c", "from askbook.cli.main import run; run()"]
KILLED = Path(__file__).with_name("killed.py")
QUESTIONS = (
    "What is the difference between a topic and a service?",
    "Why does a subscriber get nothing from a best-effort publisher?",
    "How do I launch several nodes at once?",
    "What is a URDF file?",
    "What is in chapter 3?",
    "Which yeast do I need for sourdough bread?",
)
Run = Callable[..., subprocess.CompletedProcess[str]]


def settings_of(home: Path) -> Settings:
    return Settings.model_validate({"askbook_home": home})


def unwatched(_step: str, _done: int, _total: int) -> None:
    pass


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def lived_in(ingested_demo: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A home with a bit of everything in it, and the text of its key."""
    home = copy_home(ingested_demo, tmp_path_factory.mktemp("lived-in"))
    async with open_askbook(settings_of(home)) as askbook:
        replied = await get_reply(askbook.ask(Question("What is a URDF file?", Filters(BOOK))))
        assert replied.account.thread_id is not None
        await get_reply(askbook.ask(Question("Tell me more", Filters(BOOK), replied.account.thread_id)))
        await askbook.questions.save_feedback(replied.account.thread_id, "", helpful=False, comment="zu kurz – naïve ☂")
        chosen = await askbook.calibrations.choose(BOOK)
        await askbook.ledger.save_calibration(BOOK, "another/embedder", chosen.calibration.to_json())
        _, key = await askbook.keys.create("ours")
    return home, key


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def file(lived_in: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("backups") / "all.askbook"
    await save(lived_in[0], file)
    return file


async def save(home: Path, file: Path) -> None:
    async with open_engines(settings_of(home)) as engines, read_holdings(engines) as holdings:
        assert await save_archive(file, holdings, unwatched) == 0


async def load(file: Path, home: Path) -> Verdict:
    """Restored and verified."""
    with open_archive(file, unwatched) as archive:
        async with open_engines(settings_of(home), archive.header.dimension) as engines:
            await restore(archive, engines, unwatched)
            return await verify_book(BOOK, Ledger(engines.database), engines.index, embeds=True)


@pytest.fixture
async def servers(postgres_url: str, tmp_path: Path) -> AsyncIterator[Engines]:
    """PostgreSQL, and an index that is not Qdrant Edge."""
    database = await open_database(await fresh_postgres(postgres_url))
    index = await ServerIndex.over(AsyncQdrantClient(path=str(tmp_path / "local")), "elsewhere", 384)
    yield Engines(database, index, "elsewhere")
    await index.close()
    await database.close()


@pytest.fixture
def run(tmp_path: Path) -> Run:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ASKBOOK", "QDRANT", "DATABASE"))}

    def run(*arguments: str | Path, home: Path, **more: str) -> subprocess.CompletedProcess[str]:
        return processes.run([*ASKBOOK, *arguments], cwd=tmp_path, env=kept | {"ASKBOOK_HOME": str(home), **more})

    return run


async def rows_of(engines: Engines) -> dict[str, list[Row]]:
    async with read_holdings(engines) as holdings:
        return {table.name: [row async for rows in holdings.rows(table) for row in rows] for table in CARRIED}


def in_any_order(rows: list[Row]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def assert_same(left: dict[str, list[Row]], right: dict[str, list[Row]]) -> None:
    """Each engine brings a vector to length one in its own way, to the last bit but one."""
    vectors = [{row["point_id"]: to_vector(row) for row in side["chunks"]} for side in (left, right)]
    assert vectors[0].keys() == vectors[1].keys()
    for point_id, vector in vectors[0].items():
        other = vectors[1][point_id]
        assert vector is not None and other is not None and np.allclose(vector, other, atol=1e-6)
    for table in CARRIED:
        bare = [[{**row, "vector": ""} for row in side[table.name]] for side in (left, right)]
        assert in_any_order(bare[0]) == in_any_order(bare[1]), table.name


def over(askbook: Askbook, engines: Engines, embedder: CountingEmbedder) -> Askbook:
    """The same askbook on other engines."""
    ledger = Ledger(engines.database)
    return replace(
        askbook,
        ledger=ledger,
        threads=Threads(engines.database),
        questions=Questions(engines.database),
        index=engines.index,
        embedder=embedder,
        searcher=Searcher(engines.index, embedder, ledger),
        calibrations=Calibrations(ledger, embedder.name, CHUNKER_VERSION),
    )


async def answer_all(askbook: Askbook) -> list[Any]:
    replies = [(await get_reply(askbook.ask(Question(text, Filters(BOOK))))).reply for text in QUESTIONS]
    return [
        (type(one).__name__, one.text, [source.quote for source in getattr(one, "sources", ())], one.confidence)
        for one in replies
    ]


async def test_on_other_engines_the_same_questions_have_the_same_answers(
    lived_in: tuple[Path, str], file: Path, servers: Engines, tmp_path: Path
) -> None:
    with open_archive(file, unwatched) as archive:
        await restore(archive, servers, unwatched)
    # A copy: what is asked is kept.
    async with open_askbook(settings_of(copy_home(lived_in[0], tmp_path))) as before:
        assert before.embedder is not None
        embedder = CountingEmbedder(before.embedder)
        after = over(before, servers, embedder)
        verdict = await verify_book(BOOK, after.ledger, after.index, embeds=True)
        assert verdict.agrees, verdict.differences
        for there, here in zip(await answer_all(after), await answer_all(before), strict=True):
            assert there[:3] == here[:3]
            assert there[3].average_similarity == pytest.approx(here[3].average_similarity, abs=1e-4)
        # Numbers go on where they were.
        assert (await Jobs(servers.database).submit(BOOK, "elsewhere", "full")).job_id == 2
    # Questions, and the sentences of an answer, are embedded as they are asked; no chunk ever was.
    embedded = {row["embed_text"] for row in (await rows_of(servers))["chunks"]} & set(embedder.texts)
    assert embedded == set()
    key = await Keys(servers.database).find(lived_in[1])
    assert key is not None and key.name == "ours"


async def test_there_and_back_nothing_is_lost(file: Path, servers: Engines, tmp_path: Path) -> None:
    with open_archive(file, unwatched) as archive:
        await restore(archive, servers, unwatched)
        again = tmp_path / "again.askbook"
        async with read_holdings(servers) as holdings:
            await save_archive(again, holdings, unwatched)
        with open_archive(again, unwatched) as second:
            async with open_engines(settings_of(tmp_path / "home"), 384) as engines:
                await restore(second, engines, unwatched)
                assert_same(await rows_of(engines), await rows_of(servers))
                assert_same(await rows_of(engines), await read_rows(archive))


async def read_rows(archive: Archive) -> dict[str, list[Row]]:
    return {table.name: [row async for rows in archive.rows(table) for row in rows] for table in CARRIED}


def test_on_the_same_engines_the_tables_are_equal_to_the_byte(
    lived_in: tuple[Path, str], run: Run, tmp_path: Path
) -> None:
    file, new = tmp_path / "all.askbook", tmp_path / "new"
    saved = run("backup", file, "--json", home=lived_in[0])
    assert saved.returncode == 0, saved.stderr
    assert json.loads(saved.stdout)["rows"]["threads"] == 1
    assert file.stat().st_mode & 0o777 == 0o600
    restored = run("restore", file, home=new)
    assert restored.returncode == 0, restored.stderr
    assert "chunks 168" in restored.stdout
    assert dump(new) == dump(lived_in[0])
    verified = run("verify", home=new)
    assert verified.returncode == 0, verified.stdout
    again = run("restore", file, home=new)
    assert again.returncode == 1 and "books" in again.stderr and "ASKBOOK_HOME" in again.stderr


def dump(home: Path) -> dict[str, list[tuple[Any, ...]]]:
    with contextlib.closing(sqlite3.connect(home / "askbook.db")) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: sorted(connection.execute(f"SELECT * FROM {name}"), key=repr) for name in names}


# --- what is refused, before anything is written


def rewritten(file: Path, target: Path, **changes: Any) -> Path:
    """The backup with another header, and sums that fit."""
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(target, "w") as new:
        header = json.dumps(json.loads(old.read("askbook.json")) | changes).encode()
        for name in old.namelist():
            body = header if name == "askbook.json" else old.read(name)
            if name == "SHA256SUMS":
                others = body.decode().splitlines(keepends=True)[1:]
                body = "".join([f"{hashlib.sha256(header).hexdigest()}  askbook.json\n", *others]).encode()
            new.writestr(name, body)
    return target


@pytest.mark.parametrize(
    ("changes", "says"),
    [({"schema": "0004"}, "older than"), ({"schema": "9999"}, "newer than"), ({"format": 2}, "newer than")],
)
def test_a_backup_of_another_version_is_refused(changes: dict[str, Any], says: str, file: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=says), open_archive(rewritten(file, tmp_path / "b", **changes), unwatched):
        pass


def test_vectors_of_another_embedder_are_refused(file: Path, run: Run, tmp_path: Path) -> None:
    other = rewritten(file, tmp_path / "other.askbook", embedder="openai/text-embedding-3-small")
    refused = run("restore", other, home=tmp_path / "new")
    assert refused.returncode == 1
    assert "openai/text-embedding-3-small" in refused.stderr and "ASKBOOK_EMBEDDER" in refused.stderr
    assert not (tmp_path / "new").exists()


async def test_what_is_no_backup_is_refused(lived_in: tuple[Path, str], run: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("my diary")
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as other:
        other.writestr("a.jpg", b"x")
    for name in ("notes.txt", "photos.zip", "nothing-there", ""):
        assert not _opens(tmp_path / name)
    refused = run("restore", "photos.zip", home=tmp_path / "new")
    assert refused.returncode == 1 and "photos.zip is no whole backup" in refused.stderr
    assert not (tmp_path / "new").exists()
    # Nor does a backup take the place of a file that was named by mistake.
    with pytest.raises(InputError, match="no backup of askbook"):
        await save(lived_in[0], tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text() == "my diary"


def test_cut_short_or_altered_it_is_refused(file: Path, tmp_path: Path) -> None:
    whole = file.read_bytes()
    sums = zipfile.ZipFile(file).read("SHA256SUMS")
    chance = random.Random(7)
    spoilt = tmp_path / "spoilt.askbook"
    for length in [0, 10, *(chance.randrange(len(whole)) for _ in range(20)), len(whole) - 1]:
        spoilt.write_bytes(whole[:length])
        assert not _opens(spoilt)
    kept = 0
    for at in [*(chance.randrange(len(whole)) for _ in range(100)), *range(len(whole) - 1500, len(whole), 5)]:
        altered = bytearray(whole)
        altered[at] ^= 1 << chance.randrange(8)
        spoilt.write_bytes(altered)
        if _opens(spoilt):
            # Times and the like, which nobody reads: what is in it is the same.
            kept += 1
            assert zipfile.ZipFile(spoilt).read("SHA256SUMS") == sums
    assert kept < 150


def _opens(file: Path) -> bool:
    try:
        with open_archive(file, unwatched):
            return True
    except InputError as refused:
        assert file.name in refused.message
        return False


async def test_a_collection_with_points_of_nobody_is_left_alone(file: Path, servers: Engines) -> None:
    with open_archive(file, unwatched) as archive:
        await restore(archive, servers, unwatched)
        empty = await open_database("sqlite://")
        with pytest.raises(InputError, match="does not know"):
            await restore(archive, Engines(empty, servers.index, "elsewhere"), unwatched)
        await empty.close()
    assert (await verify_book(BOOK, Ledger(servers.database), servers.index, embeds=True)).agrees


def test_a_folder_in_use_says_by_whom(lived_in: tuple[Path, str], run: Run, tmp_path: Path) -> None:
    with own_folder(lived_in[0]):
        refused = run("backup", tmp_path / "all.askbook", home=lived_in[0])
    assert refused.returncode == 1 and f"process {os.getpid()}" in refused.stderr
    assert not list(tmp_path.glob("all.askbook*"))


def test_nothing_is_no_backup(run: Run, tmp_path: Path) -> None:
    refused = run("backup", "all.askbook", home=tmp_path / "typo")
    assert refused.returncode == 1 and "nothing to back up" in refused.stderr


# --- killed, full, at work


def kill(what: str, home: Path, file: Path, step: str) -> None:
    victim = processes.run([sys.executable, KILLED, what, home, file, step])
    assert victim.returncode == -signal.SIGKILL, victim.stderr


async def test_killed_a_backup_leaves_what_was_there(lived_in: tuple[Path, str], tmp_path: Path) -> None:
    file = tmp_path / "all.askbook"
    kill("save", lived_in[0], file, "saving")
    assert not file.exists()
    await save(lived_in[0], file)
    first = file.read_bytes()
    kill("save", lived_in[0], file, "saving")
    assert file.read_bytes() == first
    await save(lived_in[0], file)
    assert [one.name for one in tmp_path.iterdir()] == ["all.askbook"]


@pytest.mark.parametrize("step", ["checking", "points", "tables"])
async def test_killed_a_restore_is_run_again(step: str, lived_in: tuple[Path, str], file: Path, tmp_path: Path) -> None:
    home = tmp_path / "new"
    kill("restore", home, file, step)
    assert (await load(file, home)).agrees
    assert dump(home) == dump(lived_in[0])


@contextlib.contextmanager
def no_file_over(size: int) -> Iterator[None]:
    """As near to a full disk as one gets without one."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_a_full_disk_leaves_no_half_file(lived_in: tuple[Path, str], tmp_path: Path) -> None:
    async with open_engines(settings_of(lived_in[0])) as engines, read_holdings(engines) as holdings:
        with no_file_over(100_000), pytest.raises(StorageError, match="cannot be written"):
            await save_archive(tmp_path / "all.askbook", holdings, unwatched)
    assert list(tmp_path.iterdir()) == []


async def test_a_backup_holds_one_moment(file: Path, servers: Engines, tmp_path: Path) -> None:
    """While others go on: what is deleted meanwhile is in it, and a vector that went is embedded by the next job."""
    with open_archive(file, unwatched) as archive:
        await restore(archive, servers, unwatched)
        then = await read_rows(archive)
    threads, point_id = Threads(servers.database), then["chunks"][0]["point_id"]
    async with read_holdings(servers) as holdings:
        await threads.delete((await threads.load_all())[0].thread_id)
        await servers.index.forget_points([point_id])
        assert await save_archive(tmp_path / "b.askbook", holdings, unwatched) == 1
    with open_archive(tmp_path / "b.askbook", unwatched) as archive:
        rows = await read_rows(archive)
    assert rows["messages"] and in_any_order(rows["messages"]) == in_any_order(then["messages"])
    gone = next(row for row in rows["chunks"] if row["point_id"] == point_id)
    assert (gone["embedded"], gone["vector"]) == (False, None)


async def test_a_running_job_waits_where_it_comes_to(demo_home: Path, tmp_path: Path) -> None:
    async with open_engines(settings_of(demo_home)) as here:
        async with here.database.writing() as connection:
            await connection.execute(update(jobs).values(status="running", phase="embedding", owner="dead:1"))
        async with read_holdings(here) as holdings, open_engines(settings_of(tmp_path / "new"), 384) as there:
            await restore(holdings, there, unwatched)
            [job] = await Jobs(there.database).load_open()
            assert (job.status, job.phase, job.started_at) == ("queued", "queued", None)


# --- moving


async def test_move_takes_everything_to_other_engines_and_tells_no_secret(
    lived_in: tuple[Path, str], postgres_url: str, run: Run, tmp_path: Path
) -> None:
    url = await fresh_postgres(postgres_url)
    told = make_url(url).set(password="s3cret-canary").render_as_string(hide_password=False)
    (tmp_path / "servers.env").write_text(f"DATABASE_URL={told}\nASKBOOK_HOME={tmp_path / 'vectors'}\nOTHER=1\n")
    moved = run("move", "--to", "servers.env", home=lived_in[0])
    assert moved.returncode == 0, moved.stderr
    verified = run("verify", home=tmp_path / "vectors", DATABASE_URL=url)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    # And back into a folder, from servers that the environment names.
    back = run("move", "--to-home", tmp_path / "back", home=tmp_path / "vectors", DATABASE_URL=url)
    assert back.returncode == 0, back.stderr
    assert run("verify", home=tmp_path / "back").returncode == 0
    owners = [(home / "owner").read_text() for home in (lived_in[0], tmp_path / "vectors", tmp_path / "back")]
    assert "s3cret-canary" not in moved.stdout + moved.stderr + "".join(owners)


def test_move_says_what_is_wrong_without_the_password(lived_in: tuple[Path, str], run: Run, tmp_path: Path) -> None:
    url = "postgresql://me:s3cret-canary@127.0.0.1:9/x"
    (tmp_path / "down.env").write_text(f"DATABASE_URL={url}\nASKBOOK_HOME={tmp_path / 'elsewhere'}\n")
    (tmp_path / "same.env").write_text(f"DATABASE_URL={url}\nASKBOOK_HOME={lived_in[0]}\n")
    for name, says in (("down.env", "me:***@127.0.0.1"), ("same.env", "already")):
        refused = run("move", "--to", name, home=lived_in[0])
        assert refused.returncode == 1 and says in refused.stderr, refused.stderr
        assert "s3cret-canary" not in refused.stdout + refused.stderr
    assert run("move", home=lived_in[0]).returncode == 2


def test_where_the_data_lies_the_file_alone_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key of the servers here is not shown to those there."""
    monkeypatch.setenv("QDRANT_API_KEY", "of-the-old-one")
    monkeypatch.setenv("AGENT_TOP_K", "7")
    (tmp_path / "new.env").write_text("QDRANT_URL=http://127.0.0.1:6333\nDATABASE_URL=\n")
    there = load_settings_of_file(tmp_path / "new.env")
    assert (there.qdrant_url, there.qdrant_api_key, there.database_url) == ("http://127.0.0.1:6333", None, None)
    assert there.agent_top_k == 7
    (tmp_path / "other.env").write_text("OPENAI_API_KEY=x\n")
    with pytest.raises(InputError, match="does not say where"):
        load_settings_of_file(tmp_path / "other.env")


async def test_everything_that_takes_long_tells_how_far_it_is(file: Path, servers: Engines) -> None:
    told: dict[str, tuple[int, int]] = {}

    def watch(step: str, done: int, total: int) -> None:
        told[step] = done, total

    with open_archive(file, watch) as archive:
        await restore(archive, servers, watch)
    assert told.keys() == {"checking", "points", "tables"}
    assert told["points"] == (168, 168) and told["tables"] == (archive.header.total,) * 2
