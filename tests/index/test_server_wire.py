"""What a Qdrant server is sent, seen on a loopback stand-in (no Qdrant is behind it), and what its failures become."""

from __future__ import annotations

import time
from typing import Any

import pytest
from index_points import DIMENSION, on_axis, small_scope, to_point
from scripted_server import HANG, IN_TIME, Received, Reply, StandIn, stand_in

from askbook.domain import Filters
from askbook.errors import IndexMismatch, IndexUnavailable
from askbook.index.vectors.base import Sparse
from askbook.index.vectors.payload import INDEXED
from askbook.index.vectors.server import Deadlines, Layout, ServerIndex

pytestmark = pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")
QUICK = Deadlines(read=0.6, write=1.0)


def ok(result: Any) -> Reply:
    return Reply(body={"result": result, "status": "ok", "time": 0.001})


def collection(size: int, indexed: list[str] | None = None) -> dict[str, Any]:
    schema = {name: {"data_type": "keyword", "points": 0} for name in (INDEXED if indexed is None else indexed)}
    return {
        "status": "green",
        "optimizer_status": "ok",
        "segments_count": 1,
        "payload_schema": schema,
        "config": {
            "params": {"vectors": {"dense": {"size": size, "distance": "Cosine"}}, "sparse_vectors": {"keywords": {}}},
            "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 10000},
            "optimizer_config": {
                "deleted_threshold": 0.2,
                "vacuum_min_vector_number": 1000,
                "default_segment_number": 0,
                "flush_interval_sec": 5,
            },
        },
    }


def healthy(request: Received, exists: bool = True, indexed: list[str] | None = None) -> Reply:
    done = {"operation_id": 1, "status": "completed"}
    path = request.path.split("?")[0]
    if path.endswith("/exists"):
        return ok({"exists": exists})
    if path.endswith("/query"):
        return ok({"points": [{"id": small_scope()[0].id, "version": 1, "score": 0.5}]})
    if request.method == "GET":
        return ok(collection(DIMENSION, indexed))
    if path.endswith(("/points", "/index", "/delete", "/vectors")):
        return ok(done)
    return ok(True)


async def open_index(server: StandIn, deadlines: Deadlines | None = None) -> ServerIndex:
    return await ServerIndex.open(server.url, "qdrant-key", "lessons", DIMENSION, deadlines=deadlines)


async def test_a_new_collection_and_its_payload_indexes() -> None:
    with stand_in(lambda _, request: healthy(request, exists=False, indexed=[])) as server:
        index = await open_index(server)
        await index.close()
    created = next(r for r in server.received if r.method == "PUT" and r.path.split("?")[0] == "/collections/lessons")
    assert created.headers["api-key"] == "qdrant-key"
    assert created.body["vectors"]["dense"] == {"size": DIMENSION, "distance": "Cosine", "on_disk": False}
    assert created.body["sparse_vectors"] == {"keywords": {"index": {"on_disk": False}}}
    assert (created.body["shard_number"], created.body["replication_factor"]) == (1, 1)
    assert "quantization_config" not in created.body
    sent = {r.body["field_name"]: r.body["field_schema"] for r in server.received if "/index" in r.path}
    assert sent.keys() == INDEXED.keys()
    assert sent["book_id"] == {"type": "keyword", "is_tenant": True}
    assert sent["hardware_tier"] == {"type": "integer", "lookup": True, "range": True}
    assert sent["url"] == {"type": "keyword", "prefix": True}
    assert sent["module"] == {"type": "keyword"}


async def test_a_collection_for_a_cluster() -> None:
    with stand_in(lambda _, request: healthy(request, exists=False)) as server:
        layout = Layout(shards=6, replicas=2, on_disk=True, quantization="scalar")
        index = await ServerIndex.open(server.url, None, "lessons", DIMENSION, layout)
        await index.find_dense(on_axis(0), Filters("book"), 7)
        await index.close()
    created = next(r for r in server.received if r.method == "PUT").body
    assert (created["shard_number"], created["replication_factor"]) == (6, 2)
    assert created["vectors"]["dense"]["on_disk"] and created["sparse_vectors"]["keywords"]["index"]["on_disk"]
    assert created["quantization_config"] == {"scalar": {"type": "int8", "quantile": 0.99, "always_ram": True}}
    asked = next(r for r in server.received if r.path.split("?")[0].endswith("/query")).body
    assert asked["params"] == {"quantization": {"rescore": True, "oversampling": 2.0}}


async def test_points_go_in_batches_that_are_waited_for() -> None:
    chunk = small_scope()[0]
    points = [to_point(chunk, on_axis(0), f"00000000-0000-0000-0000-{n:012}") for n in range(100)]
    with stand_in(lambda _, request: healthy(request)) as server:
        index = await open_index(server)
        await index.save_points(points)
        await index.forget_points([chunk.id])
        await index.close()
    upserts = [r for r in server.received if r.method == "PUT" and "/points" in r.path]
    assert [len(r.body["points"]) for r in upserts] == [64, 36]
    assert all("wait=true" in r.path for r in upserts)
    point = upserts[0].body["points"][0]
    assert point["payload"]["book_id"] == "book" and point["payload"]["text"] == chunk.text
    assert point["payload"]["facet_tags"] == ["robot=arm", "year=2024"]
    assert point["payload"]["facet_year"] == 2024
    assert len(point["vector"]["dense"]) == DIMENSION and point["vector"]["keywords"]["indices"]
    deleted = next(r for r in server.received if "/delete" in r.path)
    assert deleted.body["points"] == [chunk.id] and "wait=true" in deleted.path


async def test_a_filter_on_the_wire() -> None:
    filters = Filters(
        "book",
        hardware_tier=2,
        chapter_min=1,
        proficiency_levels=("A2", "B1"),
        facets={"robot": ("arm",)},
        url_prefix="https://example.org/",
    )
    with stand_in(lambda _, request: healthy(request)) as server:
        index = await open_index(server)
        (hit,) = await index.find_dense(on_axis(0), filters, 7, among=[small_scope()[0].id])
        await index.find_keywords(Sparse((1, 2), (0.5, 0.25)), Filters("book"), 7)
        await index.close()
    assert (hit.point_id, hit.score) == (small_scope()[0].id, 0.5)
    dense, keyword = (r.body for r in server.received if r.path.split("?")[0].endswith("/query"))
    assert (dense["using"], dense["limit"], dense["with_payload"]) == ("dense", 7, False)
    assert dense["filter"]["must"] == [
        {"key": "book_id", "match": {"value": "book"}},
        {"key": "hardware_tier", "range": {"lte": 2.0}},
        {"key": "chapter", "range": {"gte": 1.0}},
        {"key": "proficiency_level", "match": {"any": ["A2", "B1"]}},
        {"key": "facet_tags", "match": {"any": ["robot=arm"]}},
        {"key": "url", "match": {"prefix": "https://example.org/"}},
        {"has_id": [small_scope()[0].id]},
    ]
    assert keyword["query"]["nearest"] == {"indices": [1, 2], "values": [0.5, 0.25]}
    assert keyword["filter"]["must"] == [{"key": "book_id", "match": {"value": "book"}}]


async def test_a_collection_of_another_dimension_is_refused() -> None:
    def answer(number: int, request: Received) -> Reply:
        return ok(collection(99)) if request.path.endswith("/lessons") else healthy(request)

    with stand_in(answer) as server, pytest.raises(IndexMismatch, match="99 dimensions"):
        await open_index(server)


async def test_a_write_is_tried_three_times_and_a_read_twice() -> None:
    sick = False

    def answer(number: int, request: Received) -> Reply:
        return Reply(500, {"status": {"error": "sick"}}) if sick else healthy(request)

    with stand_in(answer) as server:
        index = await open_index(server, Deadlines(read=2.5, write=5.0))
        sick = True
        before = len(server.received)
        with pytest.raises(IndexUnavailable, match="answered 500"):
            await index.save_points([to_point(small_scope()[0])])
        assert len(server.received) == before + 3
        with pytest.raises(IndexUnavailable, match="answered 500"):
            await index.ping()
        assert len(server.received) == before + 5
        sick = False
        await index.ping()
        await index.close()


@pytest.mark.parametrize(
    ("reply", "tries"),
    [
        (Reply(503, {"status": {"error": "busy"}}), 3),
        (Reply(429, {"status": {"error": "slow down"}}), 3),
        (Reply(429, {"status": {"error": "slow down"}}, {"Retry-After": "1"}), 3),
        (Reply(400, {"status": {"error": "bad"}}), 1),
        (Reply(403, {"status": {"error": "key"}}), 1),
        (Reply(raw=b"{}"), 1),
    ],
)
async def test_only_what_may_pass_is_tried_again(reply: Reply, tries: int) -> None:
    sick = False
    with stand_in(lambda _, request: reply if sick else healthy(request)) as server:
        index = await open_index(server, Deadlines(write=5.0))
        sick, before = True, len(server.received)
        with pytest.raises(IndexUnavailable):
            await index.save_points([to_point(small_scope()[0])])
        assert len(server.received) == before + tries
        await index.close()


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (Reply(delay=HANG), "no answer within 0.6 s"),
        (Reply(401, {"status": {"error": "key"}}), "refused the key"),
        (Reply(400, {"status": {"error": "bad"}}), "answered 400"),
        (Reply(raw=b"<html>"), "cannot be reached|failed"),
    ],
)
async def test_failures_are_typed_and_in_time(reply: Reply, message: str) -> None:
    with stand_in(lambda _, request: reply) as server:
        started = time.monotonic()
        with pytest.raises(IndexUnavailable, match=message) as raised:
            await open_index(server, QUICK)
        assert time.monotonic() - started < IN_TIME
    assert "qdrant-key" not in f"{raised.value!r} {raised.value.hint}"


async def test_nobody_listening_is_typed_within_three_seconds() -> None:
    with stand_in(lambda _, request: ok(True)) as server:
        pass
    started = time.monotonic()
    with pytest.raises(IndexUnavailable, match="cannot be reached"):
        await open_index(server)
    assert time.monotonic() - started < 3.0
