"""A lane: a model that is loaded once, a thread that runs it, and an end."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from pathlib import Path

import pytest

from askbook.errors import ShuttingDown
from askbook.onnx import Lane, Weights, share


class Loaded:
    """Stands for a model."""


async def test_a_model_is_loaded_once_and_dropped_at_the_end() -> None:
    lane = Lane("lane", Loaded)
    assert lane.loaded is None
    first, again = [await lane.run(weakref.ref) for _ in range(2)]
    assert first is again
    lane.close()
    gc.collect()
    assert first() is None


async def test_nothing_is_kept_that_was_loaded_while_the_lane_was_closed() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def load() -> Loaded:
        begun.set()
        go_on.wait(5)
        return Loaded()

    lane = Lane("lane", load)
    asking = asyncio.create_task(lane.run(lambda loaded: loaded))
    await asyncio.to_thread(begun.wait, 5)
    lane.close()
    go_on.set()
    with pytest.raises(ShuttingDown):
        await asking
    assert lane.loaded is None


async def test_a_closed_lane_says_so_to_whoever_waits_and_whoever_comes() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def work(_: Loaded) -> str:
        begun.set()
        go_on.wait(5)
        return "done"

    lane = Lane("lane", Loaded)
    running = asyncio.create_task(lane.run(work))
    await asyncio.to_thread(begun.wait, 5)
    waiting = asyncio.create_task(lane.run(work))
    await asyncio.sleep(0)
    lane.close()
    with pytest.raises(ShuttingDown):
        await asyncio.wait_for(waiting, 5)
    with pytest.raises(ShuttingDown):
        await lane.run(work)
    with pytest.raises(ShuttingDown):
        lane.load()
    go_on.set()
    assert await running == "done"


async def test_whoever_leaves_is_cancelled_and_nothing_else() -> None:
    go_on = threading.Event()
    lane = Lane("lane", Loaded)
    leaving = asyncio.create_task(lane.run(lambda _: go_on.wait(5)))
    await asyncio.sleep(0)
    leaving.cancel()
    lane.close()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    go_on.set()


def _write(folder: Path) -> Weights:
    folder.mkdir()
    for name in ("model.onnx", "tokenizer.json"):
        (folder / name).write_text(name)
    return Weights("some", folder / "model.onnx", folder / "tokenizer.json")


def _load(_weights: Weights, _threads: int) -> Loaded:
    return Loaded()


def test_whoever_reads_by_the_same_files_has_the_same_model(tmp_path: Path) -> None:
    weights = _write(tmp_path / "one")
    model = share(_load, weights, 1)
    assert share(_load, weights, 1) is model
    assert share(_load, weights, 2) is not model
    assert share(_load, _write(tmp_path / "other"), 1) is not model


def test_a_changed_file_is_another_model(tmp_path: Path) -> None:
    weights = _write(tmp_path / "one")
    model = share(_load, weights, 1)
    weights.tokenizer.write_text("changed")
    assert share(_load, weights, 1) is not model


def test_a_shared_model_is_dropped_with_its_last_reader(tmp_path: Path) -> None:
    weights = _write(tmp_path / "one")
    lanes = [Lane("lane", lambda: share(_load, weights, 1)) for _ in range(2)]
    model = weakref.ref(lanes[0].load())
    assert lanes[1].load() is model()
    lanes[0].close()
    gc.collect()
    assert model() is lanes[1].loaded is not None
    lanes[1].close()
    gc.collect()
    assert model() is None
