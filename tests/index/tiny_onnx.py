"""Models of a dozen nodes, written as ONNX files: what they score or embed can be counted by hand."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from askbook.onnx import TOKENIZER

PAIR = ("input_ids", "attention_mask", "token_type_ids")
FLOAT, INT64 = 1, 7
MATRIX = ("rows", "columns")

# Tokens are the question's (1), the passage's (2) or padding (0); every two equal ones of both are counted.
OVERLAP = (
    ("Add", "attention_mask token_type_ids", "kind"),
    ("Equal", "kind one", "asked"),
    ("Equal", "kind two", "told"),
    ("Where", "asked input_ids none", "question"),
    ("Where", "told input_ids nothing", "passage"),
    ("Unsqueeze", "question axis_2", "rows"),
    ("Unsqueeze", "passage axis_1", "columns"),
    ("Equal", "rows columns", "same"),
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

Nodes = tuple[tuple[str, str, str], ...]


def token_vectors() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(30522, 4)).astype(np.float32)


def write_embedder(folder: Path) -> Path:
    return _write(folder, _to_model(LOOK_UP, PAIR[:2], {"vectors": token_vectors()}, ("rows", "columns", "width")))


def write_cross_encoder(folder: Path, nodes: Nodes, inputs: tuple[str, ...] = PAIR) -> Path:
    return _write(folder, _to_model(nodes, inputs, CONSTANTS))


def _write(folder: Path, model: bytes) -> Path:
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(model)
    shutil.copy(TOKENIZER, folder / "tokenizer.json")
    return folder


# --- the ONNX format: the numbers are the fields of onnx.proto -------------------------------------


def _to_model(
    nodes: Nodes, inputs: tuple[str, ...], constants: Mapping[str, np.ndarray], sides: tuple[str, ...] = MATRIX
) -> bytes:
    opset = _number(2, 17)
    return _number(1, 8) + _bytes(7, _to_graph(nodes, inputs, constants, sides)) + _bytes(8, opset)


def _to_graph(
    nodes: Nodes, inputs: tuple[str, ...], constants: Mapping[str, np.ndarray], sides: tuple[str, ...]
) -> bytes:
    used = {name for _, given, _ in nodes for name in given.split()}
    graph = b"".join(_bytes(1, _to_node(*node)) for node in nodes) + _bytes(2, b"tiny")
    graph += b"".join(_bytes(5, _to_tensor(name, value)) for name, value in constants.items() if name in used)
    graph += b"".join(_bytes(11, _to_value(name, INT64, MATRIX)) for name in inputs)
    return graph + _bytes(12, _to_value("logits", FLOAT, sides))


def _to_node(kind: str, given: str, output: str) -> bytes:
    inputs = b"".join(_bytes(1, name.encode()) for name in given.split())
    return inputs + _bytes(2, output.encode()) + _bytes(4, kind.encode())


def _to_tensor(name: str, value: np.ndarray) -> bytes:
    kind = INT64 if value.dtype == np.int64 else FLOAT
    dimensions = b"".join(_number(1, length) for length in value.shape)
    return dimensions + _number(2, kind) + _bytes(8, name.encode()) + _bytes(9, value.tobytes())


def _to_value(name: str, kind: int, sides: tuple[str, ...]) -> bytes:
    """Of any size."""
    shape = b"".join(_bytes(1, _bytes(2, side.encode())) for side in sides)
    return _bytes(1, name.encode()) + _bytes(2, _bytes(1, _number(1, kind) + _bytes(2, shape)))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    low, rest = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + _varint(rest) if rest else bytes([low])
