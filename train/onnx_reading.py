"""The exported file as a way to read pairs, so that what is measured is what is shipped."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from encoder import Bert
from validate import Read, ReadPairs, read_pairs


class OnnxReader(Bert):
    """ONNX Runtime in the encoder's place; everything around it is the same."""

    def __init__(self, file: Path) -> None:
        torch.nn.Module.__init__(self)
        options = onnxruntime.SessionOptions()
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])

    def forward(self, ids: torch.Tensor, types: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        names = ("input_ids", "token_type_ids", "attention_mask")
        given = {n: t.numpy().astype(np.int32) for n, t in zip(names, (ids, types, mask), strict=True)}
        scores, spans = self._session.run(["scores", "spans"], given)
        return torch.from_numpy(scores), torch.from_numpy(spans)


def read_with(file: Path) -> ReadPairs:
    reader = OnnxReader(file)

    def read(texts: Sequence[tuple[str, str]]) -> Read:
        return read_pairs(reader, texts, "cpu")

    return read
