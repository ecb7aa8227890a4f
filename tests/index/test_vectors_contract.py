"""One contract for every index: Qdrant Edge, qdrant-client's local mode, that behind HTTP as a stand-in for a server,
and a real server where QDRANT_URL names one."""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from index_points import DIMENSION, axis, lesson_chunks, on_axis, point_id, small_scope, to_point
from qdrant_stand_in import stand_in_qdrant

from askbook.domain import Chunk, Filters
from askbook.errors import IndexMismatch
from askbook.index.keywords import term_id, weigh_query
from askbook.index.vectors.base import Sparse, VectorIndex

ALL = 100
BOOK = Filters("book")
Open = Callable[[int], Awaitable[VectorIndex]]


@dataclass
class Place:
    """Somewhere an index can be opened, closed and opened again."""

    open: Open
    forget: Callable[[], Awaitable[None]]


async def _nothing() -> None: ...


def edge_place(folder: Path) -> Place:
    from askbook.index.vectors.edge import EdgeIndex

    return Place(lambda dimension: EdgeIndex.open(folder / "edge", dimension), _nothing)


def local_place(folder: Path) -> Place:
    from qdrant_client import AsyncQdrantClient

    from askbook.index.vectors.server import ServerIndex

    async def open(dimension: int) -> VectorIndex:
        return await ServerIndex.over(AsyncQdrantClient(path=str(folder / "local")), "lessons", dimension)

    return Place(open, _nothing)


def server_place(folder: Path) -> Place:
    from qdrant_client import AsyncQdrantClient

    from askbook.index.vectors.server import ServerIndex

    url, key = os.environ.get("QDRANT_URL"), os.environ.get("QDRANT_API_KEY")
    if not url:
        pytest.skip("no server")
    collection = f"askbook-contract-{uuid.uuid4().hex}"

    async def forget() -> None:
        client = AsyncQdrantClient(url=url, api_key=key)
        await client.delete_collection(collection)
        await client.close()

    return Place(lambda dimension: ServerIndex.open(url, key, collection, dimension), forget)


def stand_in_place(url: str) -> Place:
    from askbook.index.vectors.server import ServerIndex

    return Place(lambda dimension: ServerIndex.open(url, None, "lessons", dimension), _nothing)


PLACES = {"edge": edge_place, "local": local_place, "server": server_place}


@pytest.fixture(params=[*PLACES, "stand-in"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    if request.param == "stand-in":
        with stand_in_qdrant() as url:
            yield stand_in_place(url)
        return
    place = PLACES[request.param](tmp_path)
    yield place
    await place.forget()


@pytest.fixture
async def index(place: Place) -> AsyncIterator[VectorIndex]:
    index = await place.open(DIMENSION)
    yield index
    await index.close()


@pytest.fixture
async def full(index: VectorIndex) -> VectorIndex:
    """The nine chunks of the small scope, each on an axis of its own."""
    await index.save_points([to_point(chunk, on_axis(n)) for n, chunk in enumerate(small_scope())])
    return index


def asks(*words: str) -> Sparse:
    return weigh_query(" ".join(words), {term_id(word): 1 for word in words}, 9)


async def found(index: VectorIndex, filters: Filters) -> list[int]:
    """The numbers of the small-scope chunks that a filter lets through; both sides must agree."""
    numbers = {chunk.id: n for n, chunk in enumerate(small_scope())}
    dense = await index.find_dense(axis(*[1.0] * 9), filters, ALL)
    keyword = await index.find_keywords(asks("topic"), filters, ALL)
    assert {hit.point_id for hit in dense} == {hit.point_id for hit in keyword}
    return sorted(numbers[hit.point_id] for hit in dense)


A, B, C = [0, 1, 2, 3, 4], [5, 6, 7], [8]
PARENT_A, PARENT_B = small_scope()[0].parent_doc_id, small_scope()[5].parent_doc_id


FILTERS: list[tuple[Filters, list[int]]] = [
    (BOOK, A + B + C),
    (Filters("another"), []),
    (Filters("book", hardware_tier=1), [0, 1, 4]),
    (Filters("book", hardware_tier=2), [0, 1, 2, 4, 8]),
    (Filters("book", hardware_tier=2, parent_doc_id=PARENT_A), [0, 1, 2, 4]),
    (Filters("book", hardware_tier=4), A + B + C),
    (Filters("book", module="gazebo"), B),
    (Filters("book", module="gaz"), []),
    (Filters("book", chapter_min=3), B + C),
    (Filters("book", chapter_max=3), A + B),
    (Filters("book", chapter_min=2, chapter_max=6), B),
    (Filters("book", lesson=3), C),
    (Filters("book", lesson=0), []),
    (Filters("book", proficiency_levels=("B1",)), B),
    (Filters("book", proficiency_levels=("B1", "C1")), B + C),
    (Filters("book", layer="L4"), C),
    (Filters("book", parent_doc_id=PARENT_B), B),
    (Filters("book", facets={"robot": ("arm",)}), A),
    (Filters("book", facets={"robot": ("arm", "légged")}), A + B),
    (Filters("book", facets={"robot": ("arm", "légged"), "year": (2025,)}), B),
    (Filters("book", facets={"year": ("2025",)}), B),
    (Filters("book", facets={"draft": (True,)}), C),
    (Filters("book", facets={"robot": ()}), A + B + C),
    (Filters("book", facets={"unknown": ("x",)}), []),
    (Filters("book", url_prefix="https://example.org/ros2/"), A),
    (Filters("book", url_prefix="https://example.org/ros2"), A + C),
    (Filters("book", url_prefix="https://example.org/ROS2"), []),
    (Filters("book", url_prefix="example.org"), []),
    (Filters("book", heading_prefix="Book › Module › Chapter 1 › Beta › Über"), B),
    (Filters("book", heading_prefix="Book › Module"), A + B + C),
    (Filters("book", heading_prefix="Module"), []),
    (Filters("book", url_prefix="https://example.org/", module="ros2", hardware_tier=1, chapter_max=1), [0, 1, 4]),
    (Filters("book", module="ros2", lesson=2), []),
]


async def test_each_filter_alone_and_together(full: VectorIndex) -> None:
    for filters, expected in FILTERS:
        assert await found(full, filters) == expected, filters


async def test_dense_is_the_cosine_best_first_ties_by_id(full: VectorIndex) -> None:
    hits = await full.find_dense(axis(0.8, 0.6), BOOK, ALL)
    chunks = small_scope()
    assert [hit.point_id for hit in hits[:2]] == [chunks[0].id, chunks[1].id]
    assert [hit.score for hit in hits[:2]] == pytest.approx([0.8, 0.6], abs=1e-5)
    assert [hit.point_id for hit in hits[2:]] == sorted(chunk.id for chunk in chunks[2:])


async def test_keywords_are_the_dot_product(full: VectorIndex) -> None:
    chunk = small_scope()[8]
    (hit,) = await full.find_keywords(asks("gamma"), BOOK, ALL)
    weights = dict(zip(to_point(chunk).keywords.indices, to_point(chunk).keywords.values, strict=True))
    assert hit.point_id == chunk.id
    assert hit.score == pytest.approx(weights[term_id("gamma")] * asks("gamma").values[0], rel=1e-5)


async def test_the_limit_cuts(full: VectorIndex) -> None:
    assert len(await full.find_dense(on_axis(0), BOOK, 3)) == 3
    assert len(await full.find_keywords(asks("topic"), BOOK, 4)) == 4


async def test_among_keeps_to_these_points(full: VectorIndex) -> None:
    chunks = small_scope()
    some = [chunks[3].id, chunks[6].id, point_id(1)]
    assert {hit.point_id for hit in await full.find_dense(on_axis(0), BOOK, ALL, some)} == {chunks[3].id, chunks[6].id}
    assert [hit.point_id for hit in await full.find_keywords(asks("alpha"), BOOK, ALL, some)] == [chunks[3].id]
    assert await full.find_dense(on_axis(0), BOOK, ALL, []) == []


async def test_a_word_in_no_chunk_and_no_word_at_all_find_nothing(full: VectorIndex) -> None:
    assert await full.find_keywords(asks("zeppelin"), BOOK, ALL) == []
    assert await full.find_keywords(Sparse((), ()), BOOK, ALL) == []


async def test_unicode_is_kept(full: VectorIndex) -> None:
    assert [hit.point_id for hit in await full.find_keywords(asks("日本語"), BOOK, ALL)] == [small_scope()[8].id]


async def test_points_of_keywords_alone_are_not_found_by_meaning_until_they_have_a_vector(index: VectorIndex) -> None:
    chunks = small_scope()
    await index.save_points([to_point(chunk) for chunk in chunks])
    assert await index.find_dense(on_axis(0), BOOK, ALL) == []
    assert len(await index.find_keywords(asks("topic"), BOOK, ALL)) == 9

    await index.save_vectors({chunks[2].id: on_axis(2), point_id(77): on_axis(3)})
    assert [hit.point_id for hit in await index.find_dense(on_axis(2), BOOK, ALL)] == [chunks[2].id]
    assert len(await index.find_keywords(asks("topic"), BOOK, ALL)) == 9
    assert {one async for one in index.scroll_points("book")} == {(c.id, c is chunks[2]) for c in chunks}


async def test_vectors_come_back_for_those_that_have_one(index: VectorIndex) -> None:
    chunks = small_scope()
    await index.save_points([to_point(chunks[0], axis(3.0, 4.0)), to_point(chunks[1])])
    loaded = await index.load_vectors([chunks[0].id, chunks[1].id, point_id(5)])
    assert list(loaded) == [chunks[0].id]
    assert loaded[chunks[0].id].dtype == np.float32
    assert loaded[chunks[0].id] == pytest.approx(axis(3.0, 4.0), abs=1e-6)


async def test_forgotten_points_are_gone(full: VectorIndex) -> None:
    chunks = small_scope()
    await full.forget_points([chunks[0].id, chunks[8].id, point_id(5)])
    await full.forget_points([])
    assert await found(full, BOOK) == [1, 2, 3, 4, 5, 6, 7]


async def test_overwriting_replaces_the_whole_point(full: VectorIndex) -> None:
    chunk = replace(small_scope()[0], text="delta", module="vla", url="https://example.org/other")
    await full.save_points([to_point(chunk)])
    assert await full.load_vectors([chunk.id]) == {}
    assert [hit.point_id for hit in await full.find_keywords(asks("delta"), BOOK, ALL)] == [chunk.id]
    assert await found_by_keyword(full, Filters("book", module="ros2")) == {c.id for c in small_scope()[1:5]}
    assert chunk.id not in await found_by_keyword(full, Filters("book", url_prefix="https://example.org/ros2"))


async def found_by_keyword(index: VectorIndex, filters: Filters) -> set[str]:
    return {hit.point_id for hit in await index.find_keywords(asks("topic", "delta"), filters, ALL)}


async def test_books_do_not_see_each_other(index: VectorIndex) -> None:
    def book(name: str) -> list[Chunk]:
        return [replace(chunk, book_id=name) for chunk in small_scope()]

    ids = {name: [point_id(n + start) for n in range(9)] for name, start in (("one", 100), ("two", 200))}
    for name in ids:
        await index.save_points([to_point(c, on_axis(n), ids[name][n]) for n, c in enumerate(book(name))])
    for name in ids:
        filters = Filters(name)
        assert {hit.point_id for hit in await index.find_dense(on_axis(0), filters, ALL)} == set(ids[name])
        assert {hit.point_id for hit in await index.find_keywords(asks("topic"), filters, ALL)} == set(ids[name])
        assert {one async for one, _ in index.scroll_points(name)} == set(ids[name])
    assert await index.find_dense(on_axis(0), Filters("one"), ALL, ids["two"]) == []


async def test_scrolling_sees_every_point_once(index: VectorIndex) -> None:
    chunk = lesson_chunks(1, "a word")[0]
    points = [to_point(chunk, on_axis(0) if n % 3 == 0 else None, point_id(n + 1)) for n in range(1100)]
    await index.save_points(points)
    seen = [one async for one in index.scroll_points("book")]
    assert len(seen) == 1100
    assert dict(seen) == {point.point_id: point.dense is not None for point in points}


async def test_everything_is_there_after_closing_and_opening(place: Place) -> None:
    index = await place.open(DIMENSION)
    await index.save_points([to_point(chunk, on_axis(n)) for n, chunk in enumerate(small_scope())])
    await index.flush()
    await index.close()
    index = await place.open(DIMENSION)
    try:
        assert await found(index, BOOK) == A + B + C
        assert await found(index, Filters("book", heading_prefix="Book › Module › Chapter 1 › Alpha")) == A
    finally:
        await index.close()


async def test_optimizing_changes_no_answer(full: VectorIndex) -> None:
    await full.forget_points([chunk.id for chunk in small_scope()[:4]])
    before = await full.find_dense(axis(*range(1, 10)), BOOK, ALL)
    await full.optimize()
    assert await full.find_dense(axis(*range(1, 10)), BOOK, ALL) == before
    assert await found(full, Filters("book", hardware_tier=2)) == [4, 8]


async def test_a_dropped_index_is_gone_and_can_be_made_anew(place: Place) -> None:
    index = await place.open(DIMENSION)
    await index.save_points([to_point(chunk, on_axis(n)) for n, chunk in enumerate(small_scope())])
    await index.drop()
    index = await place.open(8)
    assert [one async for one in index.scroll_points("book")] == []
    await index.close()


async def test_another_dimension_is_refused(place: Place) -> None:
    await (await place.open(DIMENSION)).close()
    with pytest.raises(IndexMismatch, match="16 dimensions, the embedder makes 8") as raised:
        await place.open(8)
    assert raised.value.hint and "recreate" in raised.value.hint
    await (await place.open(DIMENSION)).close()


async def test_an_index_of_keywords_alone_can_be_given_vectors_later(place: Place) -> None:
    index = await place.open(0)
    await index.save_points([to_point(chunk) for chunk in small_scope()])
    assert len(await index.find_keywords(asks("topic"), BOOK, ALL)) == 9
    assert await index.load_vectors([small_scope()[0].id]) == {}
    assert [embedded async for _, embedded in index.scroll_points("book")] == [False] * 9
    with pytest.raises(ValueError, match="0 dimensions"):
        await index.save_points([to_point(small_scope()[0], on_axis(0))])
    await index.close()

    index = await place.open(DIMENSION)
    await index.save_vectors({chunk.id: on_axis(n) for n, chunk in enumerate(small_scope())})
    assert await found(index, BOOK) == A + B + C
    await index.close()

    index = await place.open(0)
    assert len(await index.find_keywords(asks("topic"), BOOK, ALL)) == 9
    await index.close()


async def test_an_open_index_can_be_told_of_its_vectors(place: Place) -> None:
    index = await place.open(0)
    await index.save_points([to_point(chunk) for chunk in small_scope()])
    for _ in range(2):
        await index.take_dimension(DIMENSION)
    with pytest.raises(IndexMismatch, match="16 dimensions, the embedder makes 8"):
        await index.take_dimension(8)
    await index.save_vectors({chunk.id: on_axis(n) for n, chunk in enumerate(small_scope())})
    assert await found(index, BOOK) == A + B + C
    await index.close()


@pytest.mark.parametrize("wrong", [np.full(DIMENSION, np.nan, np.float32), np.ones(3, np.float32)])
async def test_nothing_of_a_batch_with_a_wrong_vector_is_kept(index: VectorIndex, wrong: np.ndarray) -> None:
    chunks = small_scope()
    with pytest.raises(ValueError):
        await index.save_points([to_point(chunks[0], on_axis(0)), to_point(chunks[1], wrong)])
    assert [one async for one in index.scroll_points("book")] == []

    await index.save_points([to_point(chunk) for chunk in chunks])
    with pytest.raises(ValueError):
        await index.save_vectors({chunks[0].id: on_axis(0), chunks[1].id: wrong})
    assert await index.load_vectors([chunk.id for chunk in chunks]) == {}


@pytest.mark.parametrize(
    "wrong", [Sparse((2, 1), (1.0, 1.0)), Sparse((1,), ()), Sparse((2**32,), (1.0,)), Sparse((1,), (float("nan"),))]
)
async def test_a_wrong_sparse_vector_is_refused(index: VectorIndex, wrong: Sparse) -> None:
    with pytest.raises(ValueError, match="sparse"):
        await index.save_points([replace(to_point(small_scope()[0]), keywords=wrong)])


async def test_it_answers_while_it_is_open(index: VectorIndex) -> None:
    await index.ping()
