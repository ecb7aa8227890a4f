"""A cross-encoder in this process: any folder with model.onnx (pairs in, one logit out) and tokenizer.json."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from askbook.errors import InputError, RerankerUnavailable
from askbook.onnx import INPUTS, Lane, check_present, open_session, open_tokenizer, printable

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Encoding, Tokenizer

PAIR_TOKENS = 512
"""What the published cross-encoders were trained on; the longer of the two texts is cut."""
BATCH = 4


class CrossEncoder:
    def __init__(self, folder: Path, threads: int = 0) -> None:
        self._folder = folder
        check_present(InputError, folder / "model.onnx", folder / "tokenizer.json")
        self._lane = Lane("rerank", partial(_load, folder, threads))

    @property
    def name(self) -> str:
        return self._folder.name

    async def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        return await self._lane.run(partial(_score, question, list(texts)))

    async def close(self) -> None:
        self._lane.close()


def _load(folder: Path, threads: int) -> tuple[InferenceSession, Tokenizer]:
    tokenizer = open_tokenizer(folder / "tokenizer.json", RerankerUnavailable)
    tokenizer.enable_truncation(PAIR_TOKENS)
    return open_session(folder / "model.onnx", threads, RerankerUnavailable), tokenizer


def _score(question: str, texts: list[str], loaded: tuple[InferenceSession, Tokenizer]) -> list[float]:
    session, tokenizer = loaded
    pairs = tokenizer.encode_batch([(printable(question), printable(text)) for text in texts])
    # Neighbours in length share a batch: little of it is padding.
    by_length = sorted(range(len(pairs)), key=lambda at: len(pairs[at].ids))
    scores = [0.0] * len(pairs)
    for start in range(0, len(pairs), BATCH):
        batch = by_length[start : start + BATCH]
        for at, score in zip(batch, _run(session, [pairs[at] for at in batch]), strict=True):
            scores[at] = score
    return scores


def _run(session: InferenceSession, pairs: list[Encoding]) -> list[float]:
    given = np.zeros((len(INPUTS), len(pairs), max(len(pair.ids) for pair in pairs)), dtype=np.int64)
    for row, pair in enumerate(pairs):
        given[:, row, : len(pair.ids)] = pair.ids, pair.attention_mask, pair.type_ids
    by_name = dict(zip(INPUTS, given, strict=True))
    try:
        logits = session.run(None, {node.name: by_name[node.name] for node in session.get_inputs()})[0]
    except Exception as error:  # onnxruntime raises a dozen unrelated types, and a KeyError is an input we do not know
        raise RerankerUnavailable("The reranking model cannot be run", "Is it a cross-encoder?") from error
    flat = np.asarray(logits, dtype=np.float64).ravel()
    if flat.size != len(pairs) or not np.isfinite(flat).all():
        raise RerankerUnavailable("The reranking model does not give one score a pair", "Is it a cross-encoder?")
    return (1 / (1 + np.exp(-np.clip(flat, -30, 30)))).tolist()
