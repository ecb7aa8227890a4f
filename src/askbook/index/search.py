"""A question in, ranked Passages out: candidates from both sides of the index, of chunks that are live."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Protocol, get_args

import numpy as np

from askbook.cache import Cache
from askbook.domain import LIMIT_MAX, QUERY_MAX, QUERY_MIN, Chunk, Filters, SearchMode, SearchOutcome
from askbook.errors import (
    DeadlinePassed,
    EmbedderUnavailable,
    IndexUnavailable,
    InputError,
    ReaderUnavailable,
    RerankerUnavailable,
)
from askbook.index.coverage import Rarities
from askbook.index.embedders.base import Embedder, Vector
from askbook.index.keywords import best_score, find_unknown_words, term_ids, weigh_query, weigh_terms
from askbook.index.ranking import RERANKED, Found, Relevance, Scale, Words, cut, rank, reorder
from askbook.index.rerankers.base import Reranker
from askbook.index.vectors.base import LOST, Hit, Sparse, VectorIndex, load_some
from askbook.index.vectors.checks import is_sound

# The same for every limit: how many passages are shown must not change which they are.
CANDIDATES, ENOUGH, CANDIDATES_MAX = 60, LIMIT_MAX, 3840
SEARCHES_MAX = 3
REMEMBERED_QUERIES, REMEMBERED_SEARCHES, REMEMBERED_SAMPLES = 256, 64, 16
SAMPLE, SAMPLE_MIN = 256, 32
"""Chunks that tell how near any chunk is to a question. Point ids are hashes: the first ones are a random sample."""
NUMBER_MAX = 2**53
WORDS_ONLY = "The embedder does not answer: this was found by the book's words alone."
NOT_RERANKED = "The reranker does not answer: the passages stand as the search found them."

log = logging.getLogger("askbook")


class LiveChunks(Protocol):
    """What readers may see now; the ledger knows."""

    async def live_chunks(self, book_id: str, point_ids: Sequence[str]) -> dict[str, Chunk]:
        """Of these points, those that are live, each with its chunk."""
        ...

    async def term_frequencies(self, book_id: str, term_ids: Sequence[int]) -> tuple[int, int, dict[int, int]]:
        """The book's revision, how many live chunks it has, and in how many of them each term occurs."""
        ...

    async def revision(self, book_id: str) -> int:
        """Grows whenever the set of live chunks changes."""
        ...


@dataclass(frozen=True, slots=True)
class Question:
    """A search, checked, with both its sides ready to be looked up."""

    text: str
    filters: Filters
    mode: SearchMode
    vector: Vector | None
    keywords: Sparse
    words: Words


@dataclass(slots=True)
class Candidates:
    """The points found so far with their raw scores, and the chunks of those that are live."""

    dense: dict[str, float] = field(default_factory=dict[str, float])
    keyword: dict[str, float] = field(default_factory=dict[str, float])
    live: dict[str, Chunk] = field(default_factory=dict[str, Chunk])
    dropped: bool = False

    def count_different(self) -> int:
        return len({chunk.content_hash for chunk in self.live.values()})

    def to_found(self) -> list[Found]:
        return [
            Found(point_id, chunk, self.dense.get(point_id), self.keyword.get(point_id))
            for point_id, chunk in self.live.items()
        ]


@dataclass(frozen=True, slots=True)
class Sample:
    """Some chunks of a book, which tell where the embedder's cosines lie in it."""

    vectors: Vector
    """One in each row."""

    def measure(self, question: Vector) -> Scale:
        count, total = len(self.vectors), self.vectors.sum(axis=0)
        between = (float(total @ total) - count) / (count * (count - 1))
        return Scale(between, float((self.vectors @ question).std()))


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds."""

    retrieval: float = 3.0
    reranking: float = 2.0
    reading: float = 10.0


@contextlib.asynccontextmanager
async def _in_time(seconds: float, what: str) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise DeadlinePassed(
            f"{what} took longer than {seconds:g} s", "Try again; askbook doctor says what works."
        ) from error


Search = tuple[int, SearchMode, str, str]
"""The book's revision, the mode, the question and the filters, as text."""


class Searcher:
    def __init__(
        self,
        index: VectorIndex,
        embedder: Embedder | None,
        live: LiveChunks,
        reranker: Reranker | None = None,
        deadlines: Deadlines | None = None,
        on_request: Reranker | None = None,
    ) -> None:
        self._index = index
        self._embedder = embedder
        self._live = live
        self._reranker = reranker
        self._on_request = on_request
        self._deadlines = deadlines or Deadlines()
        self._vectors = Cache[str, Vector](REMEMBERED_QUERIES)
        self._searches = Cache[Search, Candidates](REMEMBERED_SEARCHES)
        self._samples = Cache[tuple[str, int], Sample](REMEMBERED_SAMPLES)

    async def search(
        self,
        text: str,
        filters: Filters,
        mode: SearchMode = "hybrid",
        limit: int = 5,
        threshold: float = 0.0,
        relevance: Relevance | None = None,
        hide: Callable[[Chunk], bool] | None = None,
        rerank: bool | None = None,
    ) -> SearchOutcome:
        """`relevance` rates each passage; the threshold is then compared with that, else with the ranking's score.

        `rerank`: by the reranker that is set up, or else by the reader; None: only where one is set up.
        Only a hybrid search is reranked: one side alone was asked for in its own order.
        """
        text = check_query(text)
        check_filters(filters)
        check_limits(limit, threshold)
        if mode not in get_args(SearchMode):
            raise InputError(f"mode is one of {', '.join(get_args(SearchMode))}, not {mode}")
        plain = mode != "hybrid"
        if mode == "dense" and self._embedder is None:
            raise InputError(
                "There is no embedder, so nothing can be found by meaning", "Search by keywords, or set one up."
            )
        started = time.perf_counter()
        vector, notices = await self._embed(text, mode)
        if vector is None:
            mode = "keyword"
        embedded = time.perf_counter()
        async with _in_time(self._deadlines.retrieval, "the search"):
            revision, keywords, words = await self._weigh(text, filters.book_id)
            question = Question(text, filters, mode, vector, Sparse((), ()) if mode == "dense" else keywords, words)
            candidates, remembered = await self._find_or_remember(question, revision)
            await self._refuse_lost(question, candidates)
            scale = await self._measure_scale(question, revision) if mode == "hybrid" else None
        found = [found for found in candidates.to_found() if hide is None or not hide(found.chunk)]
        ranked, signals = rank(found, words, plain, relevance, scale)
        finished = time.perf_counter()
        outcome = SearchOutcome(
            query=text,
            filters=filters,
            mode=mode,
            passages=tuple(ranked),
            total_found=len(ranked),
            embedding_ms=(embedded - started) * 1000,
            retrieval_ms=(finished - embedded) * 1000,
            signals=signals,
            cache_hit=remembered,
            notices=notices,
            retrieved_at=datetime.now(UTC),
            vector=None if vector is None else vector.tolist(),
            keywords=dict(zip(keywords.indices, keywords.values, strict=True)),
            rarities=words.rarities,
        )
        if rerank is not False and not plain:
            outcome = await self.rerank(outcome, on_request=bool(rerank))
        return cut(outcome, limit, threshold)

    async def _refuse_lost(self, question: Question, candidates: Candidates) -> None:
        """A lost index must not read as a book that has nothing on the question."""
        book_id = question.filters.book_id
        if not candidates.live and question.words.chunks and not await load_some(self._index, book_id, 1):
            raise IndexUnavailable("the index holds nothing of this book: it was lost", LOST)
        if any(not math.isfinite(score) for score in candidates.dense.values()):
            raise IndexUnavailable("the index holds damaged vectors", LOST)

    async def rerank(self, outcome: SearchOutcome, on_request: bool = False) -> SearchOutcome:
        """The best passages in the reranker's order; all as they were where there is none, or where it fails."""
        reranker = self._reranker or (self._on_request if on_request else None)
        if reranker is None or not outcome.passages:
            return outcome
        started = time.perf_counter()
        texts = [passage.chunk.embed_text for passage in outcome.passages[:RERANKED]]
        scores = await self._ask_reranker(reranker, outcome.query, texts)
        took = (time.perf_counter() - started) * 1000
        outcome = replace(outcome, retrieval_ms=outcome.retrieval_ms + took)
        if scores is None:
            return replace(outcome, notices=(*outcome.notices, NOT_RERANKED))
        return replace(outcome, passages=tuple(reorder(outcome.passages, scores)), reranked=True)

    async def _ask_reranker(self, reranker: Reranker, question: str, texts: list[str]) -> list[float] | None:
        seconds = self._deadlines.reranking if reranker is self._reranker else self._deadlines.reading
        try:
            async with asyncio.timeout(seconds):
                return await reranker.rerank(question, texts)
        except (RerankerUnavailable, ReaderUnavailable) as error:
            log.warning("A search was not reranked: %s", error.message)
        except TimeoutError:
            log.warning("A search was not reranked: %s took over %g s", reranker.name, seconds)
        return None

    async def weigh_words(self, text: str, book_id: str) -> Rarities:
        """The question's words, and how rare each is in the book."""
        return (await self._weigh(text, book_id))[2].rarities

    async def _embed(self, text: str, mode: SearchMode) -> tuple[Vector | None, tuple[str, ...]]:
        """Where the embedder fails, the words go on alone, unless the meaning alone was asked for."""
        if mode == "keyword" or self._embedder is None:
            return None, ()
        if (known := self._vectors.get(text)) is not None:
            return known, ()
        try:
            return self._vectors.put(text, await self._embedder.embed_query(text)), ()
        except EmbedderUnavailable as error:
            if mode == "dense":
                raise
            log.warning("A question was searched by its words alone: %s", error.message)
            return None, (WORDS_ONLY,)

    async def _weigh(self, text: str, book_id: str) -> tuple[int, Sparse, Words]:
        """The revision that the words were counted in, and what a search needs of them."""
        revision, total, frequencies = await self._live.term_frequencies(book_id, list(term_ids(text)))
        keywords = weigh_query(text, frequencies, total)
        rarities, unknown = weigh_terms(text, frequencies, total), find_unknown_words(text, frequencies)
        return revision, keywords, Words(rarities, tuple(unknown), best_score(keywords), total)

    async def _measure_scale(self, question: Question, revision: int) -> Scale | None:
        """None for a book of few vectors: its cosines are taken as they are."""
        sample = await self._sample_book(question.filters.book_id, revision, question.words.chunks)
        if question.vector is None or len(sample.vectors) < SAMPLE_MIN:
            return None
        return sample.measure(question.vector)

    async def _sample_book(self, book_id: str, revision: int, chunks: int) -> Sample:
        sample = self._samples.get((book_id, revision))
        if sample is None:
            points = await load_some(self._index, book_id, SAMPLE)
            # A chunk is live when its point is written, and forgotten before that is.
            if len(points) < min(chunks, SAMPLE) and await self._live.revision(book_id) == revision:
                raise IndexUnavailable("the index has lost a part of this book", LOST)
            vectors = await self._index.load_vectors([point_id for point_id, embedded in points if embedded])
            if not all(map(is_sound, vectors.values())):
                raise IndexUnavailable("the index holds damaged vectors", LOST)
            sample = Sample(np.array([*vectors.values()], dtype=np.float32))
            # While vectors are still to come, half a sample will do, and less is looked up again.
            if 2 * len(vectors) >= len(points):
                self._samples.put((book_id, revision), sample)
        return sample

    async def _find_or_remember(self, question: Question, revision: int) -> tuple[Candidates, bool]:
        """The same search of the same state of the book need not be made twice."""
        search: Search = (revision, question.mode, question.text, repr(question.filters))
        candidates = self._searches.get(search)
        if candidates is not None:
            return candidates, True
        candidates = await self._find_steadily(question, revision)
        # Vectors that are still to come do not change the revision.
        if question.mode == "keyword" or len(candidates.dense) == len(candidates.live):
            self._searches.put(search, candidates)
        return candidates, False

    async def _find_steadily(self, question: Question, revision: int) -> Candidates:
        """Search again when a lesson was swapped between the two look-ups, or its reader would miss it."""
        for _ in range(SEARCHES_MAX - 1):
            candidates = await self._find_enough(question)
            if not candidates.dropped:
                return candidates
            before, revision = revision, await self._live.revision(question.filters.book_id)
            if revision == before:
                return candidates
        return await self._find_enough(question)

    async def _find_enough(self, question: Question) -> Candidates:
        """Dead points and doubles may fill the lists: ask for more until enough different chunks are live."""
        count = CANDIDATES
        while True:
            dense, keyword = await asyncio.gather(
                self._find_dense(question, count), self._find_keywords(question, count)
            )
            candidates = await self._keep_live(question, dense, keyword)
            enough = candidates.count_different() >= ENOUGH
            if enough or count >= CANDIDATES_MAX or max(len(dense), len(keyword)) < count:
                return await self._fill_missing(question, candidates)
            count *= 2

    async def _keep_live(self, question: Question, dense: list[Hit], keyword: list[Hit]) -> Candidates:
        found = list(dict.fromkeys(hit.point_id for hit in (*dense, *keyword)))
        live = await self._live.live_chunks(question.filters.book_id, found) if found else {}
        return Candidates(
            dense={hit.point_id: hit.score for hit in dense if hit.point_id in live},
            keyword={hit.point_id: hit.score for hit in keyword if hit.point_id in live},
            live=live,
            dropped=len(live) < len(found),
        )

    async def _fill_missing(self, question: Question, candidates: Candidates) -> Candidates:
        """What one side found, the other scores too: a place beyond its list is not a score of zero."""
        no_dense = [point_id for point_id in candidates.live if point_id not in candidates.dense]
        no_keyword = [point_id for point_id in candidates.live if point_id not in candidates.keyword]
        dense, keyword = await asyncio.gather(
            self._find_dense(question, len(no_dense), no_dense),
            self._find_keywords(question, len(no_keyword), no_keyword),
        )
        candidates.dense |= {hit.point_id: hit.score for hit in dense}
        candidates.keyword |= {hit.point_id: hit.score for hit in keyword}
        return candidates

    async def _find_dense(self, question: Question, count: int, among: Sequence[str] | None = None) -> list[Hit]:
        if question.vector is None or not count:
            return []
        return await self._index.find_dense(question.vector, question.filters, count, among)

    async def _find_keywords(self, question: Question, count: int, among: Sequence[str] | None = None) -> list[Hit]:
        if not question.keywords.indices or not count:
            return []
        return await self._index.find_keywords(question.keywords, question.filters, count, among)


# --- limits ---------------------------------------------------------------------------------------


def check_query(text: str) -> str:
    """The question as it is searched: no NUL, no half of a character, no blanks around it."""
    cleaned = text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8").strip()
    if not QUERY_MIN <= len(cleaned) <= QUERY_MAX:
        raise InputError(
            f"A question has {QUERY_MIN} to {QUERY_MAX} characters; this one has {len(cleaned)}",
            code=None if cleaned else "E005",
        )
    return cleaned


def check_limits(limit: int, threshold: float) -> None:
    if not 1 <= limit <= LIMIT_MAX:
        raise InputError(f"limit is 1 to {LIMIT_MAX}, not {limit}")
    if not 0.0 <= threshold <= 1.0:
        raise InputError(f"threshold is 0 to 1, not {threshold}")


def check_filters(filters: Filters) -> None:
    """An engine is not asked what it cannot be told: half a character, or a number beyond its own."""
    for name, value in _filter_values(filters):
        if isinstance(value, int) and abs(value) > NUMBER_MAX:
            raise InputError(f"{name} is out of range")
        if isinstance(value, str) and value.encode("utf-8", "replace").decode("utf-8") != value:
            raise InputError(f"{name} is not valid text")


def _filter_values(filters: Filters) -> Iterator[tuple[str, object]]:
    for name in sorted({*Filters.__slots__} - {"facets"}):
        value = getattr(filters, name)
        yield from ((name, single) for single in (value if isinstance(value, tuple) else (value,)))
    for facet, values in filters.facets.items():
        yield "a facet's name", facet
        yield from (("a facet", value) for value in values)
