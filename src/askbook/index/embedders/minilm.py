"""A sentence model in this process: the bundled all-MiniLM-L6-v2, or any folder with model.onnx and tokenizer.json."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
    share,
)

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

MODEL = Path(__file__).parent / "data" / "minilm.onnx"
"""Made by train/export.py: docs/decisions/0017-embedder.md."""
MODEL_SHA256 = "7be7c1cf4aa62d51e2b05f3afddd79a1f8c0007e400e1d5234d6c4e48b554533"
WINDOW_TOKENS = 256
WINDOWS_MAX = 8

Window = list[int]


def bundled_weights() -> Weights:
    return Weights("all-MiniLM-L6-v2-int8-fused", MODEL, TOKENIZER, MODEL_SHA256, TOKENIZER_SHA256)


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
        self._passages = Lane("embed", partial(share, _load, self._weights, threads), steps_back=True)
        self._queries = Lane("embed", partial(share, _load, self._weights, 1))

    @property
    def name(self) -> str:
        return f"{self._weights.name}/{WINDOWS_MAX}x{WINDOW_TOKENS}"

    @property
    def dimension(self) -> int:
        if self._weights.model_sha256 is not None:
            return 384
        return len(_run(self._queries.load(), []))

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        return await self._passages.run(partial(_embed, list(texts)))

    async def embed_query(self, text: str) -> Vector:
        return (await self._queries.run(partial(_embed, [text])))[0]

    async def close(self) -> None:
        self._passages.close()
        self._queries.close()


@dataclass(frozen=True, slots=True, weakref_slot=True)
class _Model:
    session: InferenceSession
    tokenizer: Tokenizer


def _load(weights: Weights, threads: int) -> _Model:
    check_published(
        weights, EmbedderUnavailable, "the embedding model", "Install it anew; until then search by keywords."
    )
    session = open_session(weights.model, threads, EmbedderUnavailable)
    return _Model(session, open_tokenizer(weights.tokenizer, EmbedderUnavailable))


def _embed(texts: list[str], model: _Model) -> list[Vector]:
    encodings = model.tokenizer.encode_batch([printable(text) for text in texts], add_special_tokens=False)
    return [
        to_unit(np.sum([_run(model, window) * max(1, len(window)) for window in split_windows(encoding.ids)], axis=0))
        for encoding in encodings
    ]


def split_windows(ids: Sequence[int]) -> Iterator[Window]:
    """Windows of equal length: a short last one would be embedded with no context."""
    room = WINDOW_TOKENS - 2
    ids = ids[: room * WINDOWS_MAX]
    count = max(1, math.ceil(len(ids) / room))
    cuts = [round(len(ids) * n / count) for n in range(count + 1)]
    return (list(ids[start:end]) for start, end in pairwise(cuts))


def _run(model: _Model, window: Window) -> Vector:
    """One at a time: an int8 graph rounds by what else is in its batch, and a batch of such lengths gains no time."""
    first, last = model.tokenizer.encode("").ids
    inputs = model.session.get_inputs()
    ids = np.array([[first, *window, last]], dtype=np.int32 if inputs[0].type == "tensor(int32)" else np.int64)
    given = dict(zip(INPUTS, (ids, np.ones_like(ids), np.zeros_like(ids)), strict=True))
    found: Any = model.session.run(None, {node.name: given[node.name] for node in inputs})[0]
    # A vector for each token, unless the graph has pooled them.
    return to_unit(found[0] if found.ndim == 2 else found[0].mean(axis=0))
