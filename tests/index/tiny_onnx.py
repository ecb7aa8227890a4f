"""Models of a dozen nodes, written as ONNX files: what they score or embed can be counted by hand."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from askbook.onnx import TOKENIZER
from onnx_files import FLOAT, INT64, SAME, Nodes, write_model

PAIR = ("input_ids", "attention_mask", "token_type_ids")
MATRIX = ("rows", "columns")

# Every two equal tokens of question and passage are counted.
OVERLAP = (
    *SAME,
    ("Where", "same tenth zero", "weights"),
    ("ReduceSum", "weights axes_1_2", "sums"),
    ("Squeeze", "sums axis_2", "logits"),
)
# A tenth for each token of the pair. It knows no token types, as RoBERTa does not.
LENGTH = (
    ("Equal", "attention_mask one", "present"),
    ("Where", "present tenth zero", "weights"),
    ("ReduceSum", "weights axis_1", "logits"),
)
# One logit a token, as a model that tags words has.
TAGS = (
    ("Equal", "input_ids input_ids", "always"),
    ("Where", "always tenth zero", "logits"),
)
# A vector for each token, whatever stands beside it.
LOOK_UP = (("Gather", "vectors input_ids", "logits"),)
CONSTANTS = {
    "one": np.array(1, np.int64),
    "two": np.array(2, np.int64),
    "none": np.array(-1, np.int64),
    "nothing": np.array(-2, np.int64),
    "axis_1": np.array([1], np.int64),
    "axis_2": np.array([2], np.int64),
    "axes_1_2": np.array([1, 2], np.int64),
    "tenth": np.array(0.1, np.float32),
    "zero": np.array(0.0, np.float32),
}


def token_vectors() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(30522, 4)).astype(np.float32)


def write_embedder(folder: Path) -> Path:
    return _write(folder, LOOK_UP, PAIR[:2], {"vectors": token_vectors()}, (*MATRIX, "width"))


def write_cross_encoder(folder: Path, nodes: Nodes, inputs: tuple[str, ...] = PAIR) -> Path:
    return _write(folder, nodes, inputs, CONSTANTS, MATRIX)


def _write(
    folder: Path, nodes: Nodes, inputs: tuple[str, ...], constants: Mapping[str, np.ndarray], sides: tuple[str, ...]
) -> Path:
    folder.mkdir(parents=True)
    given = dict.fromkeys(inputs, (INT64, MATRIX))
    write_model(folder / "model.onnx", nodes, constants, given, {"logits": (FLOAT, sides)})
    shutil.copy(TOKENIZER, folder / "tokenizer.json")
    return folder
