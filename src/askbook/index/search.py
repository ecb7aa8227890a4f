"""A question in, ranked Passages out: candidates from both sides of the index, of chunks that are live."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from askbook.domain import LIMIT_MAX, QUERY_MAX, QUERY_MIN, Chunk, Filters, SearchMode, SearchOutcome
from askbook.errors import InputError
from askbook.index.embedders.base import Embedder, Vector
from askbook.index.keywords import best_score, find_unknown_words, term_ids, weigh_query, weigh_terms
from askbook.index.ranking import Found, Relevance, Words, rank
from askbook.index.vectors.base import Hit, Sparse, VectorIndex

CANDIDATES_MIN, CANDIDATES_PER_RESULT, CANDIDATES_MAX = 50, 3, 3200
SEARCHES_MAX = 3
REMEMBERED_QUERIES = 256
NUMBER_MAX = 2**53


class LiveChunks(Protocol):
    """What readers may see now; the ledger knows."""

    async def live_chunks(self, book_id: str, point_ids: Sequence[str]) -> dict[str, Chunk]:
        """Of these points, those that are live, each with its chunk."""
        ...

    async def term_frequencies(self, book_id: str, term_ids: Sequence[int]) -> tuple[int, dict[int, int]]:
        """How many live chunks the book has, and in how many of them each term stands."""
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
    limit: int
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


class Searcher:
    def __init__(self, index: VectorIndex, embedder: Embedder | None, live: LiveChunks) -> None:
        self._index = index
        self._embedder = embedder
        self._live = live
        self._vectors: OrderedDict[str, Vector] = OrderedDict()

    async def search(
        self,
        text: str,
        filters: Filters,
        mode: SearchMode = "hybrid",
        limit: int = 5,
        threshold: float = 0.0,
        relevance: Relevance | None = None,
        hide: Callable[[Chunk], bool] | None = None,
    ) -> SearchOutcome:
        """`relevance` rates each passage; the threshold is then compared with that, else with the ranking's score."""
        text = check_query(text)
        check_filters(filters)
        check_limits(limit, threshold)
        plain = mode != "hybrid"
        mode = self._possible_mode(mode)
        started = time.perf_counter()
        vector = None if mode == "keyword" else await self._embed(text)
        embedded = time.perf_counter()
        keywords, words = await self._weigh(text, filters.book_id)
        question = Question(text, filters, mode, limit, vector, Sparse((), ()) if mode == "dense" else keywords, words)
        candidates = await self._find_steadily(question)
        found = [one for one in candidates.to_found() if hide is None or not hide(one.chunk)]
        ranked, signals = rank(found, words, plain, threshold, relevance)
        finished = time.perf_counter()
        return SearchOutcome(
            query=text,
            filters=filters,
            mode=mode,
            passages=tuple(ranked[:limit]),
            total_found=len(ranked),
            embedding_ms=(embedded - started) * 1000,
            retrieval_ms=(finished - embedded) * 1000,
            signals=signals,
        )

    def _possible_mode(self, mode: SearchMode) -> SearchMode:
        if self._embedder is not None:
            return mode
        if mode == "dense":
            raise InputError(
                "There is no embedder, so nothing can be found by meaning", "Search by keywords, or set one up."
            )
        return "keyword"

    async def _embed(self, text: str) -> Vector:
        assert self._embedder is not None
        if text not in self._vectors:
            self._vectors[text] = await self._embedder.embed_query(text)
        self._vectors.move_to_end(text)
        vector = self._vectors[text]
        while len(self._vectors) > REMEMBERED_QUERIES:
            self._vectors.popitem(last=False)
        return vector

    async def _weigh(self, text: str, book_id: str) -> tuple[Sparse, Words]:
        total, frequencies = await self._live.term_frequencies(book_id, list(term_ids(text)))
        keywords = weigh_query(text, frequencies, total)
        rarities, unknown = weigh_terms(text, frequencies, total), find_unknown_words(text, frequencies)
        return keywords, Words(rarities, tuple(unknown), best_score(keywords), total)

    async def _find_steadily(self, question: Question) -> Candidates:
        """Search again when a lesson was swapped between the two look-ups, or its reader would miss it."""
        book_id = question.filters.book_id
        for _ in range(SEARCHES_MAX - 1):
            revision = await self._live.revision(book_id)
            candidates = await self._find_enough(question)
            if not candidates.dropped or await self._live.revision(book_id) == revision:
                return candidates
        return await self._find_enough(question)

    async def _find_enough(self, question: Question) -> Candidates:
        """Dead points and doubles may fill the lists: ask for more until enough different chunks are live."""
        count = max(CANDIDATES_MIN, CANDIDATES_PER_RESULT * question.limit)
        while True:
            dense, keyword = await asyncio.gather(
                self._find_dense(question, count), self._find_keywords(question, count)
            )
            candidates = await self._keep_live(question, dense, keyword)
            enough = candidates.count_different() >= question.limit
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
        raise InputError(f"A question has {QUERY_MIN} to {QUERY_MAX} characters; this one has {len(cleaned)}")
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
    for name in ("book_id", "hardware_tier", "module", "chapter_min", "chapter_max", "lesson", "layer"):
        yield name, getattr(filters, name)
    for name in ("parent_doc_id", "url_prefix", "heading_prefix"):
        yield name, getattr(filters, name)
    yield from (("proficiency_levels", level) for level in filters.proficiency_levels)
    yield from (pair for facet, values in filters.facets.items() for pair in _facet_values(facet, values))


def _facet_values(facet: str, values: Iterable[object]) -> Iterator[tuple[str, object]]:
    yield "a facet's name", facet
    yield from (("a facet", value) for value in values)
