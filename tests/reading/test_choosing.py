"""Which reader askbook has: the bundled one, a folder's, or none."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from tiny_readers import write_reader

from askbook.errors import InputError, ReaderUnavailable, ShuttingDown
from askbook.reading.model import BUNDLED, BUNDLED_BYTES
from askbook.settings import Settings, load_settings
from askbook.wiring import build_reader, open_askbook
from ingest.world import settings_for


def settings(tmp_path: Path, reader: str) -> Settings:
    return settings_for(tmp_path / "home", askbook_embedder="none", askbook_reader=reader)


def reading_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("read_")}


async def test_a_folder_is_read_with_and_closed_in_the_end(tmp_path: Path) -> None:
    folder = write_reader(tmp_path / "my-reader")
    before = reading_threads()
    async with open_askbook(settings(tmp_path, str(folder))) as askbook:
        assert askbook.reader is not None
        assert reading_threads() <= before, "nothing is loaded before it is needed"
        (reading,) = await askbook.reader.read("buffer", ["The buffer."])
        assert reading.answers > 0.5
        assert not any("reading" in notice for notice in askbook.notices)
    with pytest.raises(ShuttingDown):
        await askbook.reader.read("buffer", ["Another buffer."])


async def test_a_folder_without_a_model_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ReaderUnavailable, match=r"no reader\.onnx in the folder `elsewhere`"):
        async with open_askbook(settings(tmp_path, str(tmp_path / "elsewhere"))):
            pass


async def test_without_a_reader_askbook_goes_on(tmp_path: Path) -> None:
    async with open_askbook(settings(tmp_path, "none")) as askbook:
        assert askbook.reader is None
        assert not any("reading" in notice for notice in askbook.notices)


def test_without_the_bundled_weights_askbook_goes_on_and_says_so(tmp_path: Path) -> None:
    missing = tmp_path / "reader.onnx"
    reader, notices = build_reader(settings(tmp_path, "bundled"), missing)
    assert reader is None
    assert notices == ("The reading model is not installed: there is no reader",)


def test_with_damaged_bundled_weights_askbook_goes_on_and_says_so(tmp_path: Path) -> None:
    damaged = tmp_path / "reader.onnx"
    damaged.write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    reader, (notice,) = build_reader(settings(tmp_path, "bundled"), damaged)
    assert reader is None
    assert "not the file that was published: there is no reader" in notice


def test_the_bundled_reader_is_the_default(tmp_path: Path) -> None:
    assert Settings(askbook_home=tmp_path).askbook_reader == "bundled"
    assert BUNDLED.parent.parent.name == "reading"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("~/models/reader", Path.home() / "models" / "reader"),
        (" ~/models/reader ", Path.home() / "models" / "reader"),
        ("none", "none"),
        ("none ", "none"),
        ("Bundled", "bundled"),
    ],
)
def test_a_choice_is_taken_as_it_is_meant(tmp_path: Path, written: str, meant: object) -> None:
    assert settings(tmp_path, written).askbook_reader == meant


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("", "it is empty; set bundled, none, or a folder"),
        (" \n", "it is empty; set bundled, none, or a folder"),
        ("~nosuchuser/x", "nobody's home is ~nosuchuser"),
        ("x" * 300, "that folder cannot be looked into: File name too long"),
    ],
    ids=["empty", "blank", "nobody's home", "a long name"],
)
def test_a_choice_that_cannot_be_is_refused(written: str, why: str) -> None:
    with pytest.raises(InputError, match=f"ASKBOOK_READER is wrong: .*{why}"):
        load_settings(askbook_reader=written)


async def test_opening_askbook_reads_nothing_of_the_bundled_weights(tmp_path: Path) -> None:
    """A file of the right size is believed until it is loaded."""
    damaged = tmp_path / "reader.onnx"
    damaged.touch()
    os.truncate(damaged, BUNDLED_BYTES)
    reader, notices = build_reader(settings(tmp_path, "bundled"), damaged)
    assert reader is not None and not notices
    with pytest.raises(ReaderUnavailable, match="not the file that was published") as raised:
        await reader.open()
    assert raised.value.hint == "Install askbook anew, or set ASKBOOK_READER=none."
    await reader.close()
