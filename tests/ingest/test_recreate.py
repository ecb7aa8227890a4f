"""`recreate` on a server engine: who asks all the time never sees an empty book, or a lesson in two versions."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from qdrant_client import QdrantClient
from world import TOPICS, dump_state, ingest, settings_for, write_book

from askbook.book.reader import read_book
from askbook.cli.book import ingest_folder
from askbook.domain import Filters
from askbook.errors import IndexMismatch
from askbook.ingest.pipeline import Sizes
from askbook.ingest.verify import verify_book
from askbook.ingest.worker import watch_nothing
from askbook.settings import Settings
from askbook.wiring import Askbook, open_askbook
from index.qdrant_stand_in import stand_in_qdrant
from index.scripted_server import Received, Reply, stand_in


@dataclass
class Reader:
    """Asks in both ways, over and over, and keeps what should not be."""

    askbook: Askbook
    reads: int = 0
    wrong: list[str] = field(default_factory=list)

    async def read_on(self) -> None:
        while True:
            await self._look("the care of a part", "hybrid")
            await self._look("care", "keyword")
            await asyncio.sleep(0)

    async def _look(self, text: str, mode: str) -> None:
        found = await self.askbook.searcher.search(text, Filters("book"), mode, limit=20)  # pyright: ignore[reportArgumentType]
        self.reads += 1
        files = {passage.chunk.source_file for passage in found.passages}
        versions = {(passage.chunk.source_file, passage.chunk.source_file_hash) for passage in found.passages}
        if mode == "keyword" and len(files) != len(TOPICS):
            self.wrong.append(f"{len(files)} lessons found by {text!r}")
        if not files:
            self.wrong.append(f"nothing found by {text!r}")
        if len(versions) != len(files):
            self.wrong.append(f"a lesson in two versions: {versions}")


@contextlib.asynccontextmanager
async def reading(settings: Settings) -> AsyncIterator[Reader]:
    """In an askbook of its own, as another process has."""
    async with open_askbook(settings) as askbook:
        reader = Reader(askbook)
        task = asyncio.create_task(reader.read_on())
        try:
            yield reader
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def test_a_reader_sees_every_lesson_in_one_version_all_the_time(tmp_path: Path) -> None:
    folder = write_book(tmp_path / "book")
    with stand_in_qdrant() as url:
        settings = settings_for(tmp_path / "home", qdrant_url=url)
        async with open_askbook(settings) as askbook:
            await ingest(askbook, folder)
            for file in folder.rglob("*.md"):
                file.write_text(file.read_text() + "\n\nA second edition has this line too.\n")
            askbook.worker.sizes = Sizes(commit=8, embed=8, write=8)
            async with reading(settings) as reader:
                changed = await ingest(askbook, folder, "recreate")
                again = await ingest(askbook, folder, "recreate")
                reads = reader.reads
            assert (changed.status, again.status, again.files_processed) == ("completed", "completed", len(TOPICS))
            assert again.chunks_embedded == len((await dump_state(askbook, "book")).chunks)
            verdict = await verify_book("book", askbook.ledger, askbook.index, embeds=True)
            assert verdict.differences == ()
    assert reader.wrong == []
    assert reads > 20
    print(f"\nrecreate: {reads} reads, none empty, none mixed")


async def test_recreate_leaves_nothing_that_does_not_belong(tmp_path: Path) -> None:
    folder = write_book(tmp_path / "book")
    async with open_askbook(settings_for(tmp_path / "home", askbook_embedder="none")) as askbook:
        await ingest(askbook, folder)
        clean = await dump_state(askbook, "book")
        await askbook.ledger.recount_terms("book", {1: 1})
        from askbook.index.keywords import keyword_text, weigh_chunk
        from askbook.index.vectors.base import Point

        chunk = next(iter(clean.chunks.values()))
        stray = Point("00000000-0000-0000-0000-000000000001", chunk, weigh_chunk(keyword_text(chunk)))
        await askbook.index.save_points([stray])
        assert (await ingest(askbook, folder, "recreate")).status == "completed"
        assert (await dump_state(askbook, "book")).differs_from(clean) == []


def eight_numbers(request: Received) -> Reply:
    """Another embedder, of another dimension; what a text means to it is of no matter here."""
    rows = [
        [byte / 255 + 0.01 for byte in hashlib.sha256(text.encode()).digest()[:8]] for text in request.body["input"]
    ]
    return Reply(body={"data": [{"index": at, "embedding": row} for at, row in enumerate(rows)], "model": "eight"})


async def test_a_new_embedder_fills_an_index_of_its_own_while_readers_keep_the_old_one(tmp_path: Path) -> None:
    folder = write_book(tmp_path / "book")
    with stand_in_qdrant() as url, stand_in(lambda _, request: eight_numbers(request)) as embeddings:
        old = settings_for(tmp_path / "home", qdrant_url=url)
        openai = {
            "openai_api_key": "sk-x",
            "openai_base_url": f"{embeddings.url}/v1",
            "openai_embedding_model": "eight",
        }
        new = settings_for(tmp_path / "home", qdrant_url=url, askbook_embedder="openai", **openai)
        async with open_askbook(old) as askbook:
            await ingest(askbook, folder)
        with pytest.raises(IndexMismatch, match="made by the embedder all-MiniLM") as refused:
            async with open_askbook(new):
                pass
        assert "recreate" in (refused.value.hint or "")

        async with reading(old) as reader, open_askbook(new, rebuild=True) as askbook:
            assert (await ingest(askbook, folder, "recreate")).status == "completed"
            # Not yet the index for anybody who opens it now.
            async with open_askbook(old) as another:
                assert (await another.searcher.search("care", Filters("book"), "dense")).passages
            reads = reader.reads
        assert reader.wrong == [] and reads > 0

        async with open_askbook(new, rebuild=True) as askbook:
            job = await ingest_folder(askbook, folder, read_book(folder), "recreate", watch_nothing)
            assert (job.status, job.error_message) == ("completed", None)
        async with open_askbook(new) as askbook:
            verdict = await verify_book("book", askbook.ledger, askbook.index, embeds=True)
            assert verdict.differences == ()
            assert (await askbook.searcher.search("care", Filters("book"), "dense")).passages
        with pytest.raises(IndexMismatch):
            async with open_askbook(old):
                pass
        assert not QdrantClient(url=url, check_compatibility=False).collection_exists("askbook")
