"""The real local model: what it gives is checked against a plain reading of the paper, not against itself."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from askbook.errors import EmbedderUnavailable
from askbook.index.embedders.base import Vector
from askbook.index.embedders.minilm import WINDOW_TOKENS, WINDOWS_MAX, MiniLM, bundled_weights, folder_weights
from askbook.index.embedders.minilm import split_windows as windows_of

EMBEDDER = MiniLM()
SENTENCES = [
    "A ROS 2 node publishes messages on a topic.",
    "Nodes in ROS 2 communicate by sending messages over topics.",
    "Mitochondria make most of the chemical energy of a cell.",
    "",
    "naïve Ünïcode 日本語 🤖",
]
PINNED = [0.00858, -0.03362, -0.08624, 0.10524]
LONG = " ".join(f"Sentence number {n} is about the weather in the harbour." for n in range(60))


def reference(text: str) -> Vector:
    """One text, no padding, the tokenizer's own special tokens, the mean over all tokens: as the model card has it."""
    import onnxruntime
    from tokenizers import Tokenizer

    weights = bundled_weights()
    tokenizer = Tokenizer.from_file(str(weights.tokenizer))
    tokenizer.no_padding()
    tokenizer.enable_truncation(WINDOW_TOKENS)
    ids = np.array([tokenizer.encode(text).ids], dtype=np.int64)
    session = onnxruntime.InferenceSession(str(weights.model), providers=["CPUExecutionProvider"])
    given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    hidden = np.asarray(session.run(None, given)[0])
    mean = hidden[0].mean(axis=0)
    return mean / np.linalg.norm(mean)


async def test_vectors_are_those_of_the_reference() -> None:
    vectors = await EMBEDDER.embed_passages(SENTENCES)
    for text, vector in zip(SENTENCES, vectors, strict=True):
        assert vector == pytest.approx(reference(text), abs=1e-3)


async def test_the_first_sentence_is_pinned() -> None:
    vector = await EMBEDDER.embed_query(SENTENCES[0])
    assert vector[:4] == pytest.approx(PINNED, abs=5e-3)


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
        assert vector == pytest.approx(await EMBEDDER.embed_query(text), abs=1e-3)


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


async def test_a_folder_with_nonsense_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"nonsense")
    (tmp_path / "tokenizer.json").write_text("{}")
    embedder = MiniLM(folder_weights(tmp_path))
    with pytest.raises(EmbedderUnavailable, match="cannot be loaded"):
        await embedder.embed_query("hello")
