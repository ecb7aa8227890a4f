"""The real local model: what it gives is checked against the published fp32 weights, not against itself."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny_onnx import token_vectors, write_embedder

from askbook.errors import EmbedderUnavailable, ShuttingDown
from askbook.index.embedders.minilm import WINDOW_TOKENS, WINDOWS_MAX, MiniLM, bundled_weights, folder_weights
from askbook.index.embedders.minilm import split_windows as windows_of
from askbook.onnx import TOKENIZER, open_tokenizer

EMBEDDER = MiniLM()
EMBEDDER_TOKENIZER = open_tokenizer(TOKENIZER, EmbedderUnavailable)
SENTENCES = [
    "A ROS 2 node publishes messages on a topic.",
    "Nodes in ROS 2 communicate by sending messages over topics.",
    "Mitochondria make most of the chemical energy of a cell.",
    "",
    "naïve Ünïcode 日本語 🤖",
]
FP32 = Path(__file__).with_name("minilm_fp32.npy")
"""Vectors of SENTENCES by the base's fp32 weights: `python train/export.py minilm-l6 --fp32 --out …`, each alone."""
LONG = " ".join(f"Sentence number {n} is about the weather in the harbour." for n in range(60))


async def test_vectors_are_nearly_those_of_the_fp32_weights() -> None:
    vectors = await EMBEDDER.embed_passages(SENTENCES)
    for vector, expected in zip(vectors, np.load(FP32).astype(np.float32), strict=True):
        assert vector @ expected > 0.98


async def test_vectors_are_unit_float32() -> None:
    for vector in await EMBEDDER.embed_passages([*SENTENCES, LONG]):
        assert vector.shape == (EMBEDDER.dimension,) == (384,)
        assert vector.dtype == np.float32
        assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-5)


async def test_a_paraphrase_is_nearer_than_something_else() -> None:
    node, paraphrase, cell, *_ = await EMBEDDER.embed_passages(SENTENCES)
    assert node @ paraphrase > 0.7
    assert node @ cell < 0.2


async def test_a_batch_gives_what_each_text_alone_gives() -> None:
    texts = [*SENTENCES, LONG, *(" ".join(LONG.split()[:n]) for n in (3, 40, 150))]
    together = await EMBEDDER.embed_passages(texts)
    for text, vector in zip(texts, together, strict=True):
        assert (vector == await EMBEDDER.embed_query(text)).all()


async def test_the_tail_of_a_long_text_is_read() -> None:
    about_cells = f"{LONG} {SENTENCES[2]} The mitochondria of a muscle cell burn sugar. {SENTENCES[2]}"
    plain, with_tail, cell = await EMBEDDER.embed_passages([LONG, about_cells, SENTENCES[2]])
    assert with_tail @ cell > plain @ cell + 0.05


async def test_a_text_beyond_every_window_still_has_a_vector() -> None:
    vector = await EMBEDDER.embed_query("word " * 100_000)
    assert np.isfinite(vector).all()


async def test_odd_texts_are_embedded() -> None:
    for vector in await EMBEDDER.embed_passages(["\0", "\ud800 half a character", "\n\t ", "[CLS] [SEP] [PAD]"]):
        assert np.isfinite(vector).all()
    assert await EMBEDDER.embed_passages([]) == []


async def test_a_question_does_not_wait_for_a_long_batch() -> None:
    batch = asyncio.create_task(EMBEDDER.embed_passages([f"{LONG} {n}" for n in range(12)]))
    await asyncio.sleep(0.05)
    await EMBEDDER.embed_query("quick?")
    assert not batch.done()
    await batch


async def test_a_closed_embedder_embeds_no_more() -> None:
    embedder = MiniLM()
    batches = [asyncio.create_task(embedder.embed_passages([LONG])) for _ in range(3)]
    await asyncio.sleep(0)
    await embedder.close()
    with pytest.raises(ShuttingDown):
        await batches[-1]
    with pytest.raises(ShuttingDown):
        await embedder.embed_query("quick?")
    await asyncio.gather(*batches, return_exceptions=True)


@pytest.mark.parametrize("count", [0, 1, 253, 254, 255, 509, 3000])
def test_windows_hold_every_token_once_and_none_too_many(count: int) -> None:
    ids = list(range(count))
    windows = list(windows_of(ids))
    assert [one for window in windows for one in window] == ids[: (WINDOW_TOKENS - 2) * WINDOWS_MAX]
    assert max(map(len, windows)) <= WINDOW_TOKENS - 2
    assert max(map(len, windows)) - min(map(len, windows)) <= 1


async def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    weights = bundled_weights()
    for name in ("model", "tokenizer"):
        changed = tmp_path / f"{name}.bin"
        shutil.copy(getattr(weights, name), changed)
        with changed.open("r+b") as file:
            file.seek(1000)
            file.write(b"?")
        embedder = MiniLM(replace(weights, **{name: changed}))
        with pytest.raises(EmbedderUnavailable, match="not the file that was published"):
            await embedder.embed_query("hello")
        await embedder.close()


def test_missing_weights_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(EmbedderUnavailable) as raised:
        MiniLM(folder_weights(tmp_path))
    assert raised.value.hint and "model.onnx" in raised.value.hint


async def test_any_folder_with_a_model_will_do(tmp_path: Path) -> None:
    folder = tmp_path / "my-model"
    folder.mkdir()
    shutil.copy(bundled_weights().model, folder / "model.onnx")
    shutil.copy(bundled_weights().tokenizer, folder / "tokenizer.json")
    embedder = MiniLM(folder_weights(folder), threads=1)
    assert embedder.name.startswith("my-model-") and embedder.name != EMBEDDER.name
    assert embedder.dimension == 384
    assert await embedder.embed_query("hello") == pytest.approx(await EMBEDDER.embed_query("hello"), abs=1e-3)
    await embedder.close()


async def test_a_folder_may_give_a_vector_for_each_token_and_take_64_bits(tmp_path: Path) -> None:
    """As an export of the original model does: the vector is the mean over all tokens, the special ones too."""
    embedder = MiniLM(folder_weights(write_embedder(tmp_path / "tokens")), threads=1)
    ids = EMBEDDER_TOKENIZER.encode("hello world").ids
    mean = token_vectors()[ids].mean(axis=0)
    assert embedder.dimension == token_vectors().shape[1]
    assert await embedder.embed_query("hello world") == pytest.approx(mean / np.linalg.norm(mean), abs=1e-6)
    await embedder.close()


async def test_a_folder_with_nonsense_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"nonsense")
    (tmp_path / "tokenizer.json").write_text("{}")
    embedder = MiniLM(folder_weights(tmp_path))
    with pytest.raises(EmbedderUnavailable, match="cannot be loaded"):
        await embedder.embed_query("hello")
