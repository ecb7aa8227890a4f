"""Search on Qdrant Edge at growing sizes: `python bench/search_bench.py [SIZE …]`.

The chunks are made up (words by Zipf's law, vectors at random, a tenth of them near the questions); the questions are
embedded by
the real model. The index is compacted as at the end of `askbook ingest`, so large ones are rounded. The ledger is in
memory: what SQL adds
is in the figures of a real book.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import re
import resource
import statistics
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

import numpy as np

from askbook.domain import Chunk, Filters, Piece
from askbook.index.embedders.base import Vector, to_unit
from askbook.index.embedders.minilm import MiniLM
from askbook.index.keywords import keyword_text, weigh_chunk
from askbook.index.search import Searcher
from askbook.index.vectors.base import Point
from askbook.index.vectors.edge import EdgeIndex

SIZES = (1_000, 4_000, 10_000, 100_000, 1_000_000)
WORDS_PER_CHUNK = 120
VOCABULARY = 40_000
QUESTIONS = 60
BATCH = 2_000
NEAREST = 60
"""Whose recall is taken: as many as a search asks for."""


@dataclass(frozen=True, slots=True)
class Measured:
    size: int
    p50_ms: float
    p95_ms: float
    embedding_ms: float
    """Of the p50, what the question's embedding takes."""
    cpu_ms: float
    """Mean CPU of the whole process for one search, the question's embedding included."""
    recall: float
    """Of the nearest by exact cosines, the share that the index finds."""
    rss_mb: int
    filled_cpu_s: float


class MadeUpLedger:
    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self.frequencies: Counter[int] = Counter()

    async def live_chunks(self, book_id: str, point_ids: Sequence[str]) -> dict[str, Chunk]:
        places = {one: uuid.UUID(one).int - 1 for one in point_ids}
        return {one: _to_chunk(one, at, self.texts[at]) for one, at in places.items()}

    async def term_frequencies(self, book_id: str, term_ids: Sequence[int]) -> tuple[int, int, dict[int, int]]:
        return 1, len(self.texts), {term: self.frequencies[term] for term in term_ids if term in self.frequencies}

    async def revision(self, book_id: str) -> int:
        return 1


def measure_growth(sizes: Sequence[int] = SIZES) -> list[Measured]:
    """Each in a process of its own, so that its memory is its own."""
    spawning = multiprocessing.get_context("spawn")
    measured: list[Measured] = []
    for size in sizes:
        with spawning.Pool(1) as alone:
            measured.append(alone.apply(_measure, (size,)))
        show(measured[-1:])
    return measured


def _measure(size: int) -> Measured:
    return asyncio.run(_measure_size(size))


async def _measure_size(size: int) -> Measured:
    embedder = MiniLM()
    known = re.findall("[a-z]{3,}", " ".join(read_demo()).lower())
    words = [word for word, _ in Counter(known).most_common()]
    texts = list(made_up_texts(size + QUESTIONS, np.random.default_rng(7), words=words))
    questions = [" ".join(text.split()[5:15]) for text in texts[size:]]
    near = np.array(await embedder.embed_passages(questions))
    with tempfile.TemporaryDirectory() as folder:
        index, ledger = await EdgeIndex.open(Path(folder) / "index", embedder.dimension), MadeUpLedger(texts[:size])
        cpu = time.process_time()
        nearest = await _fill(index, ledger, near)
        await index.optimize()
        filled = time.process_time() - cpu
        measured = await _ask(index, embedder, ledger, questions)
        found = [await index.find_dense(vector, Filters("bench"), NEAREST) for vector in near]
        await index.close()
    await embedder.close()
    recall = statistics.mean(
        len(best & {hit.point_id for hit in hits}) / len(best) for best, hits in zip(nearest, found, strict=True)
    )
    return replace(measured, recall=recall, filled_cpu_s=filled)


async def _fill(index: EdgeIndex, ledger: MadeUpLedger, near: Vector) -> list[set[str]]:
    """For each question the points that are nearest by exact cosines."""
    rng = np.random.default_rng(8)
    best = np.full((len(near), NEAREST), -1.0), np.zeros((len(near), NEAREST), dtype=int)
    for start in range(0, len(ledger.texts), BATCH):
        points = [
            _to_point(at, ledger.texts[at], rng, near) for at in range(start, min(start + BATCH, len(ledger.texts)))
        ]
        await index.save_points(points)
        for point in points:
            ledger.frequencies.update(point.keywords.indices)
        cosines = np.hstack([best[0], near @ np.array([point.dense for point in points]).T])
        places = np.hstack([best[1], np.tile(np.arange(start, start + len(points)), (len(near), 1))])
        order = np.argsort(-cosines, axis=1)[:, :NEAREST]
        best = np.take_along_axis(cosines, order, 1), np.take_along_axis(places, order, 1)
    await index.flush()
    return [{_point_id(at) for at in row} for row in best[1]]


async def _ask(index: EdgeIndex, embedder: MiniLM, ledger: MadeUpLedger, questions: Sequence[str]) -> Measured:
    searcher = Searcher(index, embedder, ledger)
    await searcher.search("warming up", Filters("bench"))
    wall: list[float] = []
    embedding: list[float] = []
    cpu = time.process_time()
    for question in questions:
        started = time.perf_counter()
        outcome = await searcher.search(question, Filters("bench"))
        embedding.append(outcome.embedding_ms)
        wall.append((time.perf_counter() - started) * 1000)
    cpu_ms = (time.process_time() - cpu) * 1000 / len(questions)
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    p50, p95 = statistics.median(wall), statistics.quantiles(wall, n=20)[18]
    return Measured(len(ledger.texts), p50, p95, statistics.median(embedding), cpu_ms, 0.0, rss, 0.0)


def read_demo() -> Iterator[str]:
    demo = Path(str(files("askbook") / "demo" / "physical-ai-robotics"))
    return (file.read_text() for file in sorted(demo.rglob("*.md")))


def made_up_texts(
    count: int, rng: np.random.Generator, length: int = WORDS_PER_CHUNK, words: Sequence[str] = ()
) -> Iterator[str]:
    """`words`: the frequent ones, the most frequent first; without them all are made up."""
    letters = np.array(list("abcdefghijklmnoprstuvw"))
    made_up = ["".join(rng.choice(letters, size=rng.integers(3, 10))) for _ in range(VOCABULARY - len(words))]
    vocabulary = np.array([*words, *made_up])
    ranks = 1.0 / np.arange(1, VOCABULARY + 1)
    for start in range(0, count, 1_000):
        drawn = rng.choice(vocabulary, size=(min(1_000, count - start), length), p=ranks / ranks.sum())
        yield from (" ".join(row) for row in drawn)


def _point_id(at: int) -> str:
    return str(uuid.UUID(int=at + 1))


def _to_point(at: int, text: str, rng: np.random.Generator, near: Vector) -> Point:
    vector = rng.normal(size=len(near[0]))
    if at % 10 == 0:
        vector = near[at % len(near)] + vector * 0.04
    point_id = _point_id(at)
    chunk = _to_chunk(point_id, at, text)
    return Point(point_id, chunk, weigh_chunk(keyword_text(chunk)), to_unit(vector))


def _to_chunk(chunk_id: str, at: int, text: str) -> Chunk:
    return Chunk(
        id=chunk_id,
        text=text,
        embed_text=text,
        embed_hash=chunk_id,
        book_id="bench",
        module=f"module-{at % 5}",
        chapter=at % 20,
        lesson=at % 10,
        section_title=None,
        heading_path=("Bench", f"Module {at % 5}", f"Chapter {at % 20}"),
        hardware_tier=at % 4 + 1,
        proficiency_level="A2",
        layer="L1",
        facets={},
        source_file=f"{at % 500}.md",
        url=f"https://example.org/{at % 500}",
        parent_doc_id=chunk_id,
        chunk_index=0,
        total_chunks=1,
        prev_chunk_id=None,
        next_chunk_id=None,
        content_hash=chunk_id,
        source_file_hash=chunk_id,
        word_count=WORDS_PER_CHUNK,
        token_count=round(WORDS_PER_CHUNK * 1.3),
        char_count=len(text),
        first_line=1,
        last_line=1,
        start=0,
        end=len(text),
        pieces=(Piece(0, 0, len(text)),),
    )


def show(rows: Sequence[Measured]) -> None:
    for row in rows:
        print(
            f"{row.size:>9,} chunks: p50 {row.p50_ms:.1f} ms, p95 {row.p95_ms:.1f} ms, CPU {row.cpu_ms:.1f} ms "
            f"({row.embedding_ms:.1f} ms embedding), recall {row.recall:.3f}, "
            f"{row.rss_mb} MB, filled in {row.filled_cpu_s:.0f} CPU s",
            flush=True,
        )


if __name__ == "__main__":
    measure_growth([int(argument) for argument in sys.argv[1:]] or SIZES)
