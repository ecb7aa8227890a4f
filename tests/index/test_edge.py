"""Qdrant Edge's own traps: one owner, a killed process, leftovers, damage, a full disk."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from index_points import DIMENSION, on_axis, point_id, small_scope, to_point

from askbook.domain import Filters
from askbook.errors import DataInUse, IndexUnavailable, StorageError
from askbook.index.embedders.base import to_unit
from askbook.index.vectors.edge import EdgeIndex

BOOK = Filters("book")
HERE = Path(__file__).parent


async def fill(folder: Path) -> None:
    index = await EdgeIndex.open(folder, DIMENSION)
    await index.save_points([to_point(chunk, on_axis(n)) for n, chunk in enumerate(small_scope())])
    await index.close()


async def count(folder: Path) -> int:
    index = await EdgeIndex.open(folder, DIMENSION)
    try:
        return len([one async for one in index.scroll_points("book")])
    finally:
        await index.close()


def start(script: str, *arguments: str) -> subprocess.Popen[str]:
    """A process of its own, as `spawn` would make it."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parent)])},
        stdout=subprocess.PIPE,
        text=True,
    )


def run_until(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdout is not None
    assert process.stdout.readline().strip() == word


WRITER = """
    import asyncio, sys, time
    from pathlib import Path
    from askbook.index.vectors.edge import EdgeIndex
    from index_points import *

    async def write():
        index = await EdgeIndex.open(Path(sys.argv[1]), DIMENSION)
        chunk = small_scope()[0]
        await index.save_points([to_point(chunk, on_axis(0), point_id(n + 1)) for n in range(200)])
        await index.flush()
        print("flushed", flush=True)
        await index.save_points([to_point(chunk, on_axis(0), point_id(n + 1)) for n in range(200, 5000)])
        time.sleep(60)

    asyncio.run(write())
"""


async def test_a_second_owner_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    index = await EdgeIndex.open(tmp_path / "index", DIMENSION)
    with pytest.raises(DataInUse):
        await EdgeIndex.open(tmp_path / "index", DIMENSION)
    await index.save_points([to_point(small_scope()[0], on_axis(0))])
    await index.close()
    assert await count(tmp_path / "index") == 1


async def test_kill_9_after_flush_loses_nothing(tmp_path: Path) -> None:
    process = start(WRITER, str(tmp_path / "index"))
    try:
        run_until(process, "flushed")
        with pytest.raises(DataInUse):
            await EdgeIndex.open(tmp_path / "index", DIMENSION)
        time.sleep(0.05)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    index = await EdgeIndex.open(tmp_path / "index", DIMENSION)
    kept = {one async for one, embedded in index.scroll_points("book") if embedded}
    assert {point_id(n + 1) for n in range(200)} <= kept
    await index.close()


async def test_leftovers_of_killed_work_are_cleared(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    await fill(folder)
    for left in (folder / "temp_segments" / "half", tmp_path / "index.new" / "segments", tmp_path / "index.old"):
        left.mkdir(parents=True)
        (left / "segment.json").write_text("{")
    assert await count(folder) == 9
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index", "index.lock"]
    assert not (folder / "temp_segments").exists()


@pytest.mark.parametrize("half", ["nothing", "wal", "wal and segments", "half a config"])
async def test_an_interrupted_create_is_made_good(tmp_path: Path, half: str) -> None:
    folder = tmp_path / "index"
    folder.mkdir()
    if "wal" in half:
        (folder / "wal").mkdir()
        (folder / "wal" / "open-1").write_bytes(b"")
    if "segments" in half:
        (folder / "segments").mkdir()
    if "config" in half:
        (folder / "edge_config.json").write_text('{"vect')
    assert await count(folder) == 0
    await fill(folder)
    assert await count(folder) == 9


@pytest.mark.parametrize("config", [None, '{"vectors":{"den'])
async def test_a_lost_description_costs_no_point(tmp_path: Path, config: str | None) -> None:
    folder = tmp_path / "index"
    await fill(folder)
    (folder / "edge_config.json").unlink()
    if config is not None:
        (folder / "edge_config.json").write_text(config)
    assert await count(folder) == 9
    index = await EdgeIndex.open(folder, DIMENSION)
    hits = await index.find_dense(on_axis(4), Filters("book", hardware_tier=1, url_prefix="https://example.org/"), 3)
    assert hits[0].point_id == small_scope()[4].id
    await index.close()


async def test_a_damaged_folder_says_what_to_do_and_names_no_path(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    await fill(folder)
    for segment in folder.glob("segments/*/segment.json"):
        segment.write_text("{")
    with pytest.raises(IndexUnavailable, match="damaged") as raised:
        await EdgeIndex.open(folder, DIMENSION)
    assert raised.value.hint and "verify --repair" in raised.value.hint
    assert str(tmp_path) not in f"{raised.value}{raised.value.hint}"
    shutil.rmtree(folder)
    assert await count(folder) == 0


async def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    folder.mkdir()
    (folder / "thesis.md").write_text("my only copy")
    with pytest.raises(StorageError, match="something else"):
        await EdgeIndex.open(folder, DIMENSION)
    assert (folder / "thesis.md").read_text() == "my only copy"


async def test_a_place_that_cannot_be_written_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError):
        await EdgeIndex.open(tmp_path / "file" / "index", DIMENSION)


async def test_a_closed_index_says_so(tmp_path: Path) -> None:
    index = await EdgeIndex.open(tmp_path / "index", DIMENSION)
    await index.close()
    await index.close()
    with pytest.raises(IndexUnavailable, match="closed"):
        await index.ping()


async def test_ids_must_be_uuids_in_their_usual_form(tmp_path: Path) -> None:
    index = await EdgeIndex.open(tmp_path / "index", DIMENSION)
    for wrong in ("p1", "00000000000000000000000000000001"):
        with pytest.raises(ValueError):
            await index.save_points([to_point(small_scope()[0], point_id=wrong)])
    await index.close()


async def test_searching_while_writing_never_fails(tmp_path: Path) -> None:
    import asyncio

    index = await EdgeIndex.open(tmp_path / "index", DIMENSION)
    chunk = small_scope()[0]

    async def write() -> None:
        for start in range(0, 2000, 200):
            ids = [point_id(n + 1) for n in range(start, start + 200)]
            await index.save_points([to_point(chunk, on_axis(0), one) for one in ids])
            await index.forget_points(ids[:50])

    async def read() -> None:
        for _ in range(50):
            assert len(await index.find_dense(on_axis(0), BOOK, 10)) <= 10
            await asyncio.sleep(0)

    await asyncio.gather(write(), read(), read())
    assert len([one async for one in index.scroll_points("book")]) == 1500
    await index.close()


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("mount"), reason="needs root to mount a small disk")
async def test_a_full_disk_is_a_storage_error_and_costs_nothing_confirmed(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300m", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("cannot mount a small disk here")
    try:
        process = start(FILLER, str(disk / "index"))
        said = process.communicate(timeout=60)[0].split()
        assert said == ["refused", "StorageError"] * 2
        assert process.returncode == 0
        (disk / "ballast").unlink()
        assert await count(disk / "index") >= 9
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)


FILLER = """
    import asyncio, os, sys
    from dataclasses import replace
    from pathlib import Path
    from askbook.domain import Filters
    from askbook.errors import AskbookError
    from askbook.index.vectors.edge import EdgeIndex
    from index_points import *

    async def write():
        folder = Path(sys.argv[1])
        index = await EdgeIndex.open(folder, DIMENSION)
        await index.save_points([to_point(chunk, on_axis(n)) for n, chunk in enumerate(small_scope())])
        await index.flush()
        free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
        (folder.parent / "ballast").write_bytes(b"x" * (free - 80 * 2**20))
        chunk = replace(small_scope()[0], text="word " * 5000)
        try:
            for n in range(2000):
                await index.save_points([to_point(chunk, on_axis(0), point_id(n + 1))])
            await index.flush()
        except AskbookError as error:
            print("refused", type(error).__name__, flush=True)
        found = await index.find_dense(on_axis(0), Filters("book"), 5)
        assert len(found) == 5
        await index.flush()
        await index.close()
        try:
            (folder.parent / "more").write_bytes(b"x" * 20 * 2**20)
            await EdgeIndex.open(folder, DIMENSION)
        except AskbookError as error:
            print("refused", type(error).__name__, flush=True)

    asyncio.run(write())
"""


async def test_a_large_index_is_rounded_when_it_is_optimized_and_finds_the_same(tmp_path: Path) -> None:
    """Its vectors take a byte a number in the scan; what is found is scored by the vectors as they were."""
    rng, (chunk, *_) = np.random.default_rng(7), small_scope()
    vectors = [to_unit(one) for one in rng.normal(size=(3000, 64))]
    points = [to_point(chunk, vector, point_id(n + 1)) for n, vector in enumerate(vectors)]
    folder = tmp_path / "index"
    index = await EdgeIndex.open(folder, 64, rounded_from=1000)
    await index.save_points(points[:500])
    await index.optimize()
    assert not _rounded(folder)
    await index.save_points(points[500:])
    before = [await index.find_dense(one, BOOK, 20) for one in vectors[:20]]
    await index.optimize()
    assert _rounded(folder)
    assert [await index.find_dense(one, BOOK, 20) for one in vectors[:20]] == before
    await index.close()
    index = await EdgeIndex.open(folder, 64)
    assert [await index.find_dense(one, BOOK, 20) for one in vectors[:20]] == before
    await index.close()


def _rounded(folder: Path) -> list[Path]:
    return [*folder.rglob("quantized*")]
