"""Search on Qdrant Edge at growing sizes: `python bench/search_bench.py [SIZE …]`.

The chunks are made up (words by Zipf's law, vectors at random, a few near the questions); the questions are embedded by
the real model. The ledger is a dictionary: what SQL adds is measured elsewhere.
"""

from __future__ import annotations

import asyncio
import resource
import statistics
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from askbook.domain import Chunk, Filters, Piece, SearchMode
from askbook.index.embedders.base import Vector, to_unit
from askbook.index.embedders.minilm import MiniLM
from askbook.index.keywords import keyword_text, term_ids, weigh_chunk
from askbook.index.search import Searcher
from askbook.index.vectors.base import Point
from askbook.index.vectors.edge import EdgeIndex

SIZES = (4_000, 20_000, 100_000)
WORDS_PER_CHUNK = 120
VOCABULARY = 40_000
QUESTIONS = 60
MODES: tuple[SearchMode, ...] = ("hybrid", "keyword")


@dataclass(frozen=True, slots=True)
class Measured:
    size: int
    mode: SearchMode
    filtered: bool
    p50_ms: float
    p95_ms: float
    embedding_ms: float
    """Of the p50, what the question's embedding takes."""
    cpu_ms: float
    """Mean CPU of the whole process for one search, the question's embedding included."""
    rss_mb: int


class DictLedger:
    def __init__(self) -> None:
        self.live: dict[str, Chunk] = {}
        self.frequencies: Counter[int] = Counter()

    async def live_chunks(self, book_id: str, point_ids: Sequence[str]) -> dict[str, Chunk]:
        return {one: self.live[one] for one in point_ids if one in self.live}

    async def term_frequencies(self, book_id: str, term_ids: Sequence[int]) -> tuple[int, int, dict[int, int]]:
        return 1, len(self.live), {term: self.frequencies[term] for term in term_ids if term in self.frequencies}

    async def revision(self, book_id: str) -> int:
        return 1


def measure_search(sizes: Sequence[int] = SIZES) -> list[Measured]:
    return [one for size in sizes for one in asyncio.run(_measure(size))]


async def _measure(size: int) -> list[Measured]:
    embedder = MiniLM()
    texts = list(made_up_texts(size + QUESTIONS, np.random.default_rng(7)))
    questions = [" ".join(text.split()[5:15]) for text in texts[size:]]
    near = await embedder.embed_passages(questions)
    with tempfile.TemporaryDirectory() as folder:
        index, ledger = await EdgeIndex.open(Path(folder) / "index", embedder.dimension), DictLedger()
        await _fill(index, ledger, texts[:size], near)
        measured = [
            await _ask(index, embedder, ledger, questions, mode, filtered)
            for mode in MODES
            for filtered in (False, True)
        ]
        await index.close()
    await embedder.close()
    return measured


async def _fill(index: EdgeIndex, ledger: DictLedger, texts: Sequence[str], near: Sequence[Vector]) -> None:
    rng = np.random.default_rng(8)
    for start in range(0, len(texts), 2_000):
        points = [_to_point(at, texts[at], rng, near) for at in range(start, min(start + 2_000, len(texts)))]
        await index.save_points(points)
        for point in points:
            ledger.live[point.point_id] = point.chunk
            ledger.frequencies.update(term_ids(keyword_text(point.chunk)).keys())
    await index.flush()


async def _ask(
    index: EdgeIndex, embedder: MiniLM, ledger: DictLedger, questions: Sequence[str], mode: SearchMode, filtered: bool
) -> Measured:
    searcher = Searcher(index, embedder, ledger)
    filters = Filters("bench", hardware_tier=2) if filtered else Filters("bench")
    await searcher.search("warming up", filters, mode)
    wall: list[float] = []
    embedding: list[float] = []
    cpu = time.process_time()
    for question in questions:
        started = time.perf_counter()
        outcome = await searcher.search(question, filters, mode)
        embedding.append(outcome.embedding_ms)
        wall.append((time.perf_counter() - started) * 1000)
    cpu_ms = (time.process_time() - cpu) * 1000 / len(questions)
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    p50, p95 = statistics.median(wall), statistics.quantiles(wall, n=20)[18]
    return Measured(len(ledger.live), mode, filtered, p50, p95, statistics.median(embedding), cpu_ms, rss)


def made_up_texts(count: int, rng: np.random.Generator, length: int = WORDS_PER_CHUNK) -> Iterator[str]:
    letters = np.array(list("abcdefghijklmnoprstuvw"))
    words = np.array(["".join(rng.choice(letters, size=rng.integers(3, 10))) for _ in range(VOCABULARY)])
    ranks = 1.0 / np.arange(1, VOCABULARY + 1)
    for start in range(0, count, 1_000):
        drawn = rng.choice(words, size=(min(1_000, count - start), length), p=ranks / ranks.sum())
        yield from (" ".join(row) for row in drawn)


def _to_point(at: int, text: str, rng: np.random.Generator, near: Sequence[Vector]) -> Point:
    vector = rng.normal(size=len(near[0]))
    if at % 10 == 0:
        vector = near[at % len(near)] + vector * 0.04
    point_id = str(uuid.UUID(int=at + 1))
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


def show_search(rows: Sequence[Measured]) -> None:
    print(f"{'chunks':>8}  {'mode':8}{'filter':9}{'p50 ms':>8}{'p95 ms':>8}{'embed':>8}{'cpu ms':>8}{'rss MB':>8}")
    for row in rows:
        kind = "tier ≤ 2" if row.filtered else "none"
        figures = f"{row.p50_ms:8.1f}{row.p95_ms:8.1f}{row.embedding_ms:8.1f}{row.cpu_ms:8.1f}{row.rss_mb:8}"
        print(f"{row.size:8}  {row.mode:8}{kind:9}{figures}", flush=True)


if __name__ == "__main__":
    show_search(measure_search([int(argument) for argument in sys.argv[1:]] or SIZES))
