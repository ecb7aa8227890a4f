"""Which reader askbook has: the bundled one, a folder's, or none."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from tiny_readers import write_reader

from askbook.errors import InputError, ReaderUnavailable, ShuttingDown
from askbook.reading.model import BUNDLED
from askbook.settings import Settings, load_settings
from askbook.wiring import build_reader, open_askbook
from ingest.world import settings_for


def settings(tmp_path: Path, reader: str) -> Settings:
    return settings_for(tmp_path / "home", askbook_embedder="none", askbook_reader=reader)


def reading_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("read_")]


async def test_a_folder_is_read_with_and_closed_in_the_end(tmp_path: Path) -> None:
    folder = write_reader(tmp_path / "my-reader")
    async with open_askbook(settings(tmp_path, str(folder))) as askbook:
        assert askbook.reader is not None
        assert not reading_threads(), "nothing is loaded before it is needed"
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
    assert notices == ("The reading model is not installed: passages are ranked and answered without reading",)


def test_with_damaged_bundled_weights_askbook_goes_on_and_says_so(tmp_path: Path) -> None:
    damaged = tmp_path / "reader.onnx"
    damaged.write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    reader, (notice,) = build_reader(settings(tmp_path, "bundled"), damaged)
    assert reader is None
    assert "not the file that was published: passages are ranked" in notice


def test_the_bundled_reader_is_the_default(tmp_path: Path) -> None:
    assert Settings(askbook_home=tmp_path).askbook_reader == "bundled"
    assert BUNDLED.parent.parent.name == "reading"


@pytest.mark.parametrize(
    ("written", "meant"), [("~/models/reader", Path.home() / "models" / "reader"), ("none", "none")]
)
def test_a_folder_may_be_written_from_home(tmp_path: Path, written: str, meant: object) -> None:
    assert settings(tmp_path, written).askbook_reader == meant


def test_an_empty_choice_is_refused() -> None:
    with pytest.raises(InputError, match="ASKBOOK_READER is wrong"):
        load_settings(askbook_reader="")
