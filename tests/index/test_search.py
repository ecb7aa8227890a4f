"""A question in, ranked passages out: on a real Edge index, with a small ledger that counts its calls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from index_points import DIMENSION, axis, lesson_chunks, on_axis, point_id, to_point

from askbook.domain import Chunk, Filters, Passage
from askbook.errors import InputError
from askbook.index.embedders.base import Vector
from askbook.index.keywords import best_score, count_terms, keyword_text, term_ids, weigh_query
from askbook.index.ranking import Found, Scale, Words, rank, scale_keyword
from askbook.index.search import Searcher
from askbook.index.vectors.edge import EdgeIndex

BOOK = Filters("book")


async def _nothing(look: int) -> None: ...


class SmallLedger:
    """Live chunks by point, in memory. `before_look` runs ahead of each look-up: there a test swaps a lesson."""

    def __init__(self) -> None:
        self.live: dict[str, Chunk] = {}
        self.now = 1
        self.looks = 0
        self.before_look: Callable[[int], Awaitable[None]] = _nothing

    async def live_chunks(self, book_id: str, point_ids: Sequence[str]) -> dict[str, Chunk]:
        self.looks += 1
        await self.before_look(self.looks)
        return {one: self.live[one] for one in point_ids if one in self.live and self.live[one].book_id == book_id}

    async def term_frequencies(self, book_id: str, term_ids: Sequence[int]) -> tuple[int, int, dict[int, int]]:
        chunks = [chunk for chunk in self.live.values() if chunk.book_id == book_id]
        counts = count_terms(map(keyword_text, chunks))
        return self.now, len(chunks), {term: counts[term] for term in term_ids if counts[term]}

    async def revision(self, book_id: str) -> int:
        return self.now


class AxisEmbedder:
    """A question names its axis: `… axis 3`. Counts what it embeds."""

    name, dimension = "axis", DIMENSION

    def __init__(self) -> None:
        self.embedded = 0

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        return [await self.embed_query(text) for text in texts]

    async def embed_query(self, text: str) -> Vector:
        self.embedded += 1
        last = text.split()[-1]
        return on_axis(int(last) if last.isdigit() else DIMENSION - 1)

    async def close(self) -> None: ...


class World:
    def __init__(self, index: EdgeIndex) -> None:
        self.index = index
        self.ledger = SmallLedger()
        self.embedder = AxisEmbedder()
        self.searcher = Searcher(index, self.embedder, self.ledger)

    async def add(
        self, chunks: Sequence[Chunk], vectors: Sequence[Vector | None], first_id: int, live: bool = True
    ) -> None:
        ids = [point_id(first_id + n) for n in range(len(chunks))]
        await self.index.save_points([to_point(c, v, i) for c, v, i in zip(chunks, vectors, ids, strict=True)])
        if live:
            self.ledger.live |= dict(zip(ids, chunks, strict=True))
            self.ledger.now += 1


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    index = await EdgeIndex.open(tmp_path / "index", DIMENSION)
    yield World(index)
    await index.close()


async def most(world: World, question: str) -> float:
    _, total, frequencies = await world.ledger.term_frequencies("book", list(term_ids(question)))
    return best_score(weigh_query(question, frequencies, total))


def texts(passages: Sequence[Passage]) -> list[str]:
    return [passage.chunk.text for passage in passages]


async def test_hybrid_adds_both_sides_on_a_fixed_scale(world: World) -> None:
    chunks = lesson_chunks(1, "gripper force", "gripper", "elbow")
    await world.add(chunks, [axis(0.8, 0.6), axis(0.0, 1.0), axis(0.6, 0.8)], 1)
    outcome = await world.searcher.search("gripper axis 0", BOOK)
    assert outcome.mode == "hybrid" and outcome.query == "gripper axis 0" and outcome.total_found == 3
    assert [passage.rank for passage in outcome.passages] == [1, 2, 3]
    by_text = {passage.chunk.text: passage for passage in outcome.passages}
    covered, best = by_text["gripper"].coverage, await most(world, "gripper axis 0")
    alone = {
        text: 0.5 * (one.similarity or 0)
        + 0.3 * scale_keyword(one.keyword_score, best)
        + 0.1 * (covered * ("gripper" in text))
        for text, one in by_text.items()
    }
    for text, passage in by_text.items():
        assert passage.score == pytest.approx(alone[text])
    assert by_text["gripper force"].similarity == pytest.approx(0.8, abs=1e-4)
    assert by_text["elbow"].keyword_score is None and by_text["elbow"].coverage == 0
    assert texts(outcome.passages)[0] == "gripper force"


def test_the_order_is_that_of_the_scores_however_many_candidates_there_are() -> None:
    chunks = [one for n in range(60) for one in lesson_chunks(n, f"gripper {'force ' * (n % 7)}{n}", f"elbow {n}")]
    found = [Found(str(at), one, (at * 37 % 100) / 100, at * 13 % 9 or None) for at, one in enumerate(chunks)]
    passages, _ = rank(found, Words({1: 1.0}, (), 20.0), False, None)
    scores = [passage.score for passage in passages]
    assert len(passages) == 120 and scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


async def test_a_heading_and_a_sentence_that_hold_the_question_lift_a_passage(world: World) -> None:
    scattered = "The gripper is new. " + "Nothing of note. " * 5 + "A force is felt."
    together = "The gripper has a force. " + "Nothing of note. " * 5 + "It is new, and felt."
    await world.add(lesson_chunks(1, scattered), [axis(1.0)], 1)
    await world.add(lesson_chunks(2, together), [axis(1.0)], 2)
    first, second = (await world.searcher.search("gripper force axis 0", BOOK)).passages
    assert first.chunk.text == together and first.coverage == second.coverage
    (titled,) = lesson_chunks(3, scattered + " ")
    titled = replace(titled, heading_path=("Gripper force",))
    await world.add([titled], [axis(1.0)], 3)
    assert (await world.searcher.search("gripper force axis 0", BOOK)).passages[0].chunk.id == titled.id


async def test_what_a_search_tells_of_the_question(world: World) -> None:
    await world.add(lesson_chunks(1, "gripper force", "elbow"), [axis(0.8, 0.6), axis(0.6, 0.8)], 1)
    await world.add(lesson_chunks(2, "knee"), [axis(0.1, 1.0)], 5)
    for limit in (1, 5):
        outcome = await world.searcher.search("gripper warp-drive axis 0", BOOK, limit=limit)
        signals = outcome.signals
        # Of so small a book, that of the best alone.
        assert signals.similarity == pytest.approx(0.8, abs=1e-4)
        assert signals.unknown_words == ("warp-drive", "axis", "0")
        assert 0 < signals.coverage < 0.5 and 0 < signals.lead < signals.score
    words = (await world.searcher.search("gripper force", BOOK, "keyword")).signals
    assert words.similarity is None and words.coverage == 1 and words.unknown_words == ()


async def test_a_threshold_is_compared_with_the_relevance_where_there_is_one(world: World) -> None:
    await world.add(lesson_chunks(1, "gripper", "elbow", "knee"), [axis(1.0), axis(0.6, 0.8), axis(0.0, 1.0)], 1)
    outcome = await world.searcher.search(
        "axis 0", BOOK, threshold=0.5, relevance=lambda _, passage: passage.similarity or 0.0
    )
    assert [round(passage.relevance or 0, 2) for passage in outcome.passages] == [1.0, 0.6]
    assert outcome.total_found == 2


async def test_one_side_alone(world: World) -> None:
    chunks = lesson_chunks(1, "gripper force", "elbow", "knee")
    await world.add(chunks, [axis(0.5, 0.8), axis(1.0), axis(-1.0)], 1)
    dense = await world.searcher.search("gripper axis 0", BOOK, "dense")
    assert texts(dense.passages)[0] == "elbow"
    assert dense.passages[0].score == pytest.approx(1.0) and dense.passages[0].keyword_score is None
    assert dense.passages[-1].score == 0.0 and dense.passages[-1].similarity == pytest.approx(-1.0)
    keyword = await world.searcher.search("gripper axis 0", BOOK, "keyword")
    (passage,) = keyword.passages
    assert passage.keyword_score is not None and passage.similarity is None
    assert passage.score == pytest.approx(passage.keyword_score / await most(world, "gripper axis 0"))
    assert 0 < passage.score < 1
    assert world.embedder.embedded == 1


async def test_what_one_side_alone_found_is_scored_by_the_other(world: World) -> None:
    """The gripper chunk is 121st by meaning, far beyond the candidates, and still has its cosine."""
    others = lesson_chunks(1, *(f"other {n}" for n in range(199)))
    await world.add(others, [axis(1.0, 4.0 + 0.05 * n) for n in range(199)], 1000)
    await world.add(lesson_chunks(2, "gripper"), [axis(0.1, 1.0)], 1)
    passage = next(
        p for p in (await world.searcher.search("gripper axis 0", BOOK, limit=20)).passages if p.chunk.text == "gripper"
    )
    assert passage.similarity == pytest.approx(0.1 / np.sqrt(1.01), abs=1e-4)


@pytest.mark.parametrize("floor", [0.5, 0.8])
async def test_an_embedder_whose_cosines_are_all_high_ranks_the_same(world: World, floor: float) -> None:
    """As gte and bge have them: every cosine lies between `floor` and 1, in the order it would have had."""
    cosines = [0.9 - 0.02 * n for n in range(40)]
    chunks = lesson_chunks(1, *(f"gripper {n}" if n % 7 == 3 else f"elbow {n}" for n in range(40)))
    await world.add(chunks, [to_cosine(one) for one in cosines], 1)
    plain = await world.searcher.search("gripper axis 0", BOOK, limit=20)
    await world.index.save_vectors({point_id(1 + n): to_cosine(floor + (1 - floor) * c) for n, c in enumerate(cosines)})
    squeezed = await Searcher(world.index, world.embedder, world.ledger).search("gripper axis 0", BOOK, limit=20)
    assert texts(squeezed.passages) == texts(plain.passages)
    assert [one.score for one in squeezed.passages] == pytest.approx([one.score for one in plain.passages], abs=1e-3)
    assert min(one.similarity or 0 for one in squeezed.passages) > floor, "what is shown is the cosine itself"


def to_cosine(cosine: float) -> Vector:
    return axis(cosine, float(np.sqrt(1 - cosine**2)))


def test_a_scale_without_spread_is_no_division_by_zero() -> None:
    assert [Scale(0.7, 0.0).place(one) for one in (None, 0.6, 0.9)] == [0.0, 0.0, 1.0]
    assert Scale().place(0.4) == pytest.approx(0.4), "MiniLM's own scale leaves a cosine as it is"


async def test_the_same_text_twice_is_given_once_the_best_of_them(world: World) -> None:
    one, two = lesson_chunks(1, "gripper"), lesson_chunks(2, "gripper")
    await world.add(one, [axis(0.5, 0.8)], 1)
    await world.add(two, [axis(0.9, 0.1)], 2)
    outcome = await world.searcher.search("gripper axis 0", BOOK)
    assert [passage.chunk.lesson for passage in outcome.passages] == [2]
    assert outcome.total_found == 1


async def test_ties_are_broken_by_chunk_id(world: World) -> None:
    chunks = lesson_chunks(1, "left gripper", "right gripper", "upper gripper")
    await world.add(chunks, [axis(1.0)] * 3, 1)
    outcome = await world.searcher.search("gripper axis 0", BOOK)
    assert [passage.chunk.id for passage in outcome.passages] == sorted(chunk.id for chunk in chunks)


async def test_dead_points_are_never_seen(world: World) -> None:
    await world.add(lesson_chunks(1, "gripper old"), [axis(1.0)], 1, live=False)
    await world.add(lesson_chunks(1, "gripper new"), [axis(1.0)], 2)
    assert texts((await world.searcher.search("gripper axis 0", BOOK)).passages) == ["gripper new"]


async def test_more_is_asked_for_when_the_dead_fill_the_list(world: World) -> None:
    dead = lesson_chunks(1, *(f"gripper {n}" for n in range(130)))
    await world.add(dead, [axis(1.0)] * 130, 1000, live=False)
    await world.add(lesson_chunks(2, "gripper alive and well, at the end of the list"), [axis(0.5, 0.8)], 1)
    outcome = await world.searcher.search("gripper axis 0", BOOK)
    assert texts(outcome.passages) == ["gripper alive and well, at the end of the list"]
    assert world.ledger.looks == 3


async def test_more_is_asked_for_when_doubles_fill_the_list(world: World) -> None:
    doubles = [lesson_chunks(n, "gripper")[0] for n in range(120)]
    await world.add(doubles, [axis(1.0)] * 120, 1000)
    await world.add(lesson_chunks(200, "elbow", "knee"), [axis(0.5, 0.8)] * 2, 1)
    assert len((await world.searcher.search("gripper axis 0", BOOK)).passages) == 3


async def check_that_limits_only_cut(world: World) -> Passage:
    """The first of them, which a short list must show as a long one does."""
    longest = await world.searcher.search("gripper axis 0", BOOK, limit=20)
    for limit in (1, 5, 19):
        forgetful = Searcher(world.index, world.embedder, world.ledger)
        outcome = await forgetful.search("gripper axis 0", BOOK, limit=limit)
        assert outcome.passages == longest.passages[:limit]
        assert (outcome.signals, outcome.total_found) == (longest.signals, longest.total_found)
    return longest.passages[0]


async def test_what_is_56th_by_meaning_and_by_words_may_be_first_whatever_the_limit(world: World) -> None:
    numbers = range(100, 155)
    await world.add(lesson_chunks(1, *(f"elbow {n}" for n in numbers)), [axis(0.92, 0.39)] * 55, 1)
    await world.add(lesson_chunks(2, *(f"gripper gripper {n}" for n in numbers)), [axis(0.0, 1.0)] * 55, 100)
    await world.add(lesson_chunks(3, "the gripper of a long arm that reaches far"), [axis(0.9, 0.43)], 300)
    assert (await check_that_limits_only_cut(world)).chunk.lesson == 3


async def test_the_dead_are_looked_past_as_far_whatever_the_limit(world: World) -> None:
    dead = lesson_chunks(1, *(f"gripper gripper {n}" for n in range(100, 155)))
    await world.add(dead, [axis(1.0)] * 55, 1000, live=False)
    alive = lesson_chunks(2, *(f"elbow {n}" for n in range(100, 220)))
    await world.add(alive, [axis(0.8, 0.6)] * 120, 1)
    await world.add(lesson_chunks(3, "the gripper of a long arm that reaches far"), [axis(0.7, 0.7)], 300)
    await check_that_limits_only_cut(world)


async def test_a_lesson_swapped_between_the_two_looks_is_not_missed(world: World) -> None:
    await world.add(lesson_chunks(1, "gripper old"), [axis(1.0)], 1)
    new = lesson_chunks(1, "gripper new")

    async def swap(look: int) -> None:
        if look == 1:
            world.ledger.live.clear()
            world.ledger.now += 1
            await world.add(new, [axis(1.0)], 2)

    world.ledger.before_look = swap
    assert texts((await world.searcher.search("gripper axis 0", BOOK)).passages) == ["gripper new"]
    assert world.ledger.looks == 2


async def test_a_book_that_never_rests_does_not_hold_a_reader_for_ever(world: World) -> None:
    await world.add(lesson_chunks(1, "gripper"), [axis(1.0)], 1)
    await world.add(lesson_chunks(2, "gripper dead"), [axis(1.0)], 2, live=False)

    async def change(look: int) -> None:
        world.ledger.now += 1

    world.ledger.before_look = change
    assert len((await world.searcher.search("gripper axis 0", BOOK)).passages) == 1
    assert world.ledger.looks == 3


async def test_thresholds_and_limits(world: World) -> None:
    chunks = lesson_chunks(1, *(f"part {n}" for n in range(10)))
    await world.add(chunks, [axis(1.0, 0.2 * n) for n in range(10)], 1)
    outcome = await world.searcher.search("zzz axis 0", BOOK, "dense", limit=3)
    assert len(outcome.passages) == 3 and outcome.total_found == 10
    outcome = await world.searcher.search("zzz axis 0", BOOK, "dense", limit=20, threshold=0.9)
    assert {passage.score >= 0.9 for passage in outcome.passages} == {True}
    assert outcome.total_found == len(outcome.passages) == 3
    assert (await world.searcher.search("zzz axis 5", BOOK, "dense", threshold=1.0)).passages == ()


async def test_chunks_without_a_vector_yet_are_found_by_their_keywords(world: World) -> None:
    chunks = lesson_chunks(1, "gripper", "elbow")
    await world.add(chunks, [None, None], 1)
    outcome = await world.searcher.search("gripper axis 0", BOOK)
    (passage,) = outcome.passages
    assert passage.similarity is None and passage.keyword_score
    assert 0.5 * scale_keyword(passage.keyword_score, await most(world, "gripper axis 0")) < passage.score < 1
    await world.index.save_vectors({point_id(2): axis(1.0)})
    assert texts((await world.searcher.search("gripper axis 0", BOOK)).passages) == ["elbow", "gripper"]


async def test_without_an_embedder(world: World) -> None:
    await world.add(lesson_chunks(1, "gripper"), [axis(1.0)], 1)
    searcher = Searcher(world.index, None, world.ledger)
    outcome = await searcher.search("gripper", BOOK)
    assert outcome.mode == "keyword" and outcome.embedding_ms < 5 and len(outcome.passages) == 1
    with pytest.raises(InputError, match="no embedder") as raised:
        await searcher.search("gripper", BOOK, "dense")
    assert raised.value.hint


async def test_filters_and_books(world: World) -> None:
    await world.add(lesson_chunks(1, "gripper one", module="ros2"), [axis(1.0)], 1)
    await world.add(lesson_chunks(1, "gripper two", book_id="another"), [axis(1.0)], 2)
    assert texts((await world.searcher.search("gripper axis 0", BOOK)).passages) == ["gripper one"]
    assert texts((await world.searcher.search("gripper axis 0", Filters("another"))).passages) == ["gripper two"]
    assert (await world.searcher.search("gripper axis 0", replace(BOOK, module="vla"))).passages == ()
    assert (await world.searcher.search("gripper axis 0", Filters("nowhere"))).passages == ()


async def test_a_question_is_embedded_once(world: World) -> None:
    await world.add(lesson_chunks(1, "gripper"), [axis(1.0)], 1)
    for _ in range(3):
        await world.searcher.search("  gripper axis 0 ", BOOK)
    assert world.embedder.embedded == 1
    for n in range(300):
        await world.searcher.search(f"gripper {n} axis 0", BOOK, "dense")
    await world.searcher.search("gripper axis 0", BOOK)
    assert world.embedder.embedded == 302


@pytest.mark.parametrize("text", ["", "  ab  ", "\0\0\0\0", "x" * 1001])
async def test_questions_out_of_their_limits(world: World, text: str) -> None:
    with pytest.raises(InputError, match="3 to 1000 characters"):
        await world.searcher.search(text, BOOK)


@pytest.mark.parametrize(
    ("limit", "threshold"), [(0, 0.0), (21, 0.0), (-1, 0.0), (5, -0.1), (5, 1.1), (5, float("nan"))]
)
async def test_numbers_out_of_their_limits(world: World, limit: int, threshold: float) -> None:
    with pytest.raises(InputError, match=r"limit is 1 to 20|threshold is 0 to 1"):
        await world.searcher.search("gripper", BOOK, limit=limit, threshold=threshold)


@pytest.mark.parametrize(
    "filters",
    [
        Filters("\ud800"),
        Filters("book", module="\udfff"),
        Filters("book", chapter_min=10**400),
        Filters("book", lesson=-(2**70)),
        Filters("book", facets={"robot": ("\ud800",)}),
        Filters("book", facets={"\ud800": (1,)}),
        Filters("book", proficiency_levels=("\ud800",)),
    ],
)
async def test_filters_that_no_engine_could_be_told(world: World, filters: Filters) -> None:
    with pytest.raises(InputError):
        await world.searcher.search("gripper", filters)


async def test_odd_but_allowed_questions(world: World) -> None:
    await world.add(lesson_chunks(1, "gripper"), [axis(1.0)], 1)
    for text in ("the and of", "\ud800 gripper \0 axis", "???", "日本語", "x" * 1000, "a\tb\nc"):
        outcome = await world.searcher.search(text, replace(BOOK, url_prefix="\0", facets={"a.b[0]": ("=",)}))
        assert outcome.passages == ()
        assert outcome.query.encode()
