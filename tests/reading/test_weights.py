"""A file that is missing, damaged or no reading model is refused, in words that say what to do."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from tiny_readers import COUNTING, MADE_UP, NOT_A_NUMBER, READER_INPUTS, READER_OUTPUTS, TWO_SCORES, write_reader

from askbook.errors import ReaderUnavailable
from askbook.onnx import INPUTS, TOKENIZER, sha256_of
from askbook.reading.model import bundled_weights, folder_weights
from askbook.reading.reader import Reader
from onnx_files import FLOAT, INT64


async def refusal(folder: Path) -> ReaderUnavailable:
    """What a reader of this folder says when it is first asked; to build it costs nothing yet."""
    reader = Reader(folder_weights(folder), threads=1)
    with pytest.raises(ReaderUnavailable) as raised:
        await reader.read("Does this work?", ["It works."])
    await reader.close()
    assert raised.value.hint
    return raised.value


def test_a_folder_without_a_model_says_what_to_put_there(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ReaderUnavailable, match=r"no reader\.onnx in the folder") as raised:
            folder_weights(folder)
        assert raised.value.hint == "Put reader.onnx into it, or set ASKBOOK_READER to bundled or none."


def test_a_bundled_model_that_is_missing_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ReaderUnavailable, match="The reading model is not installed") as raised:
        bundled_weights(tmp_path / "reader.onnx")
    assert raised.value.hint and "ASKBOOK_READER=none" in raised.value.hint


async def test_a_bundled_model_is_the_file_that_was_published(tmp_path: Path) -> None:
    file = write_reader(tmp_path) / "reader.onnx"
    published = sha256_of(file), file.stat().st_size
    reader = Reader(bundled_weights(file, *published))
    assert await reader.open() == "tiny"
    await reader.close()

    sound = file.read_bytes()
    for damaged in (sound[:-1], b"", b"version https://git-lfs.github.com/spec/v1\n"):
        file.write_bytes(damaged)
        with pytest.raises(ReaderUnavailable, match="not the file that was published"):
            bundled_weights(file, *published)

    file.write_bytes(sound[:500] + b"?" + sound[501:])
    reader = Reader(bundled_weights(file, *published))
    with pytest.raises(ReaderUnavailable, match="not the file that was published"):
        await reader.open()
    await reader.close()


@pytest.mark.parametrize("broken", [{"nodes": NOT_A_NUMBER}, {"metadata": {}}], ids=["no numbers", "no metadata"])
async def test_whoever_has_the_bundled_model_is_not_told_to_take_it(tmp_path: Path, broken: dict[str, Any]) -> None:
    file = write_reader(tmp_path, **broken) / "reader.onnx"
    reader = Reader(bundled_weights(file, sha256_of(file), file.stat().st_size))
    with pytest.raises(ReaderUnavailable) as raised:
        await reader.read("Does this work?", ["It works."])
    assert raised.value.hint == "Install askbook anew, or set ASKBOOK_READER=none."
    await reader.close()


async def test_a_bundled_model_damaged_after_it_was_chosen_is_refused_at_load(tmp_path: Path) -> None:
    file = write_reader(tmp_path) / "reader.onnx"
    reader = Reader(bundled_weights(file, sha256_of(file), file.stat().st_size))
    file.write_bytes(b"nonsense")
    with pytest.raises(ReaderUnavailable, match="not the file that was published"):
        await reader.open()
    await reader.close()


@pytest.mark.parametrize("nonsense", [b"", b"nonsense", b"\0" * 1000])
async def test_a_file_that_is_no_onnx_is_refused(tmp_path: Path, nonsense: bytes) -> None:
    (tmp_path / "reader.onnx").write_bytes(nonsense)
    assert "cannot be loaded" in (await refusal(tmp_path)).message


async def test_a_model_cut_short_is_refused(tmp_path: Path) -> None:
    file = write_reader(tmp_path) / "reader.onnx"
    file.write_bytes(file.read_bytes()[:-100])
    await refusal(tmp_path)


async def test_a_file_without_our_metadata_is_refused(tmp_path: Path) -> None:
    error = await refusal(write_reader(tmp_path, metadata={"author": "somebody"}))
    assert error.message.endswith("is no reading model: its metadata has no `askbook_reader`")


WRONG: dict[str, dict[str, Any]] = {
    "no number": {"answers": ["steep", 0]},
    "one number": {"supports": [1.0]},
    "not finite": {"answers": [float("nan"), 0.0]},
    "no room": {"pair_tokens": 100, "question_tokens": 80},
    "no window": {"pair_tokens": 0},
    "no question": {"question_tokens": -1},
}


@pytest.mark.parametrize("contract", WRONG.values(), ids=WRONG)
async def test_metadata_that_cannot_be_kept_to_is_refused(tmp_path: Path, contract: dict[str, Any]) -> None:
    assert "`askbook_reader` in its metadata" in (await refusal(write_reader(tmp_path, **contract))).message


@pytest.mark.parametrize("told", ["", "[]", "{", '"reader"', "{}"])
async def test_metadata_that_is_no_contract_is_refused(tmp_path: Path, told: str) -> None:
    assert "cannot be read" in (await refusal(write_reader(tmp_path, metadata={"askbook_reader": told}))).message


async def test_another_tokenizer_is_refused(tmp_path: Path) -> None:
    error = await refusal(write_reader(tmp_path, tokenizer="0" * 64))
    assert "another tokenizer" in error.message
    assert error.hint == "Put the tokenizer.json that it was trained with beside reader.onnx."


async def test_a_tokenizer_beside_the_model_is_used_and_checked(tmp_path: Path) -> None:
    folder = write_reader(tmp_path)
    shutil.copy(TOKENIZER, folder / "tokenizer.json")
    reader = Reader(folder_weights(folder))
    assert await reader.open() == "tiny"
    await reader.close()
    (folder / "tokenizer.json").write_text("{}")
    assert "another tokenizer" in (await refusal(folder)).message


async def test_a_tokenizer_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    folder = write_reader(tmp_path, tokenizer=sha256_of(tmp_path / "tokenizer.json"))
    assert "tokenizer cannot be read" in (await refusal(folder)).message


LONG_INPUTS = dict.fromkeys(INPUTS, (INT64, ("rows", "columns")))
LOOKING_UP = (("Gather", "table input_ids", "spans"), *MADE_UP[-3:])
RENAMED = tuple((kind, given, {"spans": "places"}.get(made, made)) for kind, given, made in COUNTING)


@pytest.mark.parametrize(
    "changed",
    [
        {"outputs": {"scores": READER_OUTPUTS["scores"]}},
        {"outputs": {**READER_OUTPUTS, "hits": (FLOAT, ("rows", "columns"))}},
        {"nodes": RENAMED, "outputs": {"scores": READER_OUTPUTS["scores"], "places": READER_OUTPUTS["spans"]}},
        {"inputs": {**READER_INPUTS, "position_ids": READER_INPUTS["input_ids"]}},
        {"nodes": LOOKING_UP, "inputs": LONG_INPUTS},
    ],
    ids=["no spans", "an output more", "other names", "an input more", "longer numbers"],
)
async def test_a_model_with_other_ends_is_refused(tmp_path: Path, changed: dict[str, Any]) -> None:
    assert "it has other inputs or outputs" in (await refusal(write_reader(tmp_path, **changed))).message


async def test_a_model_that_gives_other_shapes_is_refused(tmp_path: Path) -> None:
    assert "three scores a pair" in (await refusal(write_reader(tmp_path, TWO_SCORES))).message


async def test_a_model_that_gives_no_numbers_is_refused(tmp_path: Path) -> None:
    assert "no number" in (await refusal(write_reader(tmp_path, NOT_A_NUMBER))).message


async def test_a_model_that_fails_when_it_runs_is_refused(tmp_path: Path) -> None:
    """Its table knows ten words."""
    folder = write_reader(tmp_path, (("Gather", "short_table input_ids", "looked_up"), *MADE_UP[1:]))
    assert "cannot be run" in (await refusal(folder)).message


async def test_a_model_removed_after_it_was_chosen_is_refused(tmp_path: Path) -> None:
    reader = Reader(folder_weights(write_reader(tmp_path)))
    (tmp_path / "reader.onnx").unlink()
    with pytest.raises(ReaderUnavailable, match=r"no reader\.onnx"):
        await reader.open()
    with pytest.raises(ReaderUnavailable, match="cannot be read"):
        sha256_of(tmp_path / "reader.onnx", ReaderUnavailable)
    await reader.close()


async def test_a_reader_mended_on_disk_works_without_a_restart(tmp_path: Path) -> None:
    (tmp_path / "reader.onnx").write_bytes(b"nonsense")
    reader = Reader(folder_weights(tmp_path))
    with pytest.raises(ReaderUnavailable):
        await reader.open()
    write_reader(tmp_path)
    assert await reader.open() == "tiny"
    await reader.close()
