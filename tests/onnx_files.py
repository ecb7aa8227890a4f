"""Small models written as ONNX files, byte by byte: the numbers are the fields of onnx.proto."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

FLOAT, INT32, INT64 = 1, 6, 7
KINDS = {"float32": FLOAT, "int32": INT32, "int64": INT64}

Nodes = tuple[tuple[str, str, str], ...]
"""Operator, its inputs, its output."""
Ends = Mapping[str, tuple[int, tuple[str | int, ...]]]
"""Inputs or outputs of the whole: the kind of number, and the sides, each of a fixed size or of any by a name."""
Constants = Mapping[str, np.ndarray[Any, Any]]

# Tokens are the question's (1), the passage's (2) or padding (0); `same` is true where a token of both is equal.
SAME: Nodes = (
    ("Add", "attention_mask token_type_ids", "kind"),
    ("Equal", "kind one", "asked"),
    ("Equal", "kind two", "told"),
    ("Where", "asked input_ids none", "question"),
    ("Where", "told input_ids nothing", "passage"),
    ("Unsqueeze", "question axis_2", "rows"),
    ("Unsqueeze", "passage axis_1", "columns"),
    ("Equal", "rows columns", "same"),
)


def write_model(
    file: Path,
    nodes: Nodes,
    constants: Constants,
    inputs: Ends,
    outputs: Ends,
    metadata: Mapping[str, str] | None = None,
) -> None:
    opset = _number(2, 17)
    model = _number(1, 8) + _bytes(7, _to_graph(nodes, constants, inputs, outputs)) + _bytes(8, opset)
    for key, value in (metadata or {}).items():
        model += _bytes(14, _bytes(1, key.encode()) + _bytes(2, value.encode()))
    file.write_bytes(model)


def _to_graph(nodes: Nodes, constants: Constants, inputs: Ends, outputs: Ends) -> bytes:
    used = {name for _, given, _ in nodes for name in given.split()}
    graph = b"".join(_bytes(1, _to_node(*node)) for node in nodes) + _bytes(2, b"tiny")
    graph += b"".join(_bytes(5, _to_tensor(name, value)) for name, value in constants.items() if name in used)
    graph += b"".join(_bytes(11, _to_value(name, *end)) for name, end in inputs.items())
    return graph + b"".join(_bytes(12, _to_value(name, *end)) for name, end in outputs.items())


def _to_node(kind: str, given: str, output: str) -> bytes:
    inputs = b"".join(_bytes(1, name.encode()) for name in given.split())
    return inputs + _bytes(2, output.encode()) + _bytes(4, kind.encode())


def _to_tensor(name: str, value: np.ndarray[Any, Any]) -> bytes:
    dimensions = b"".join(_number(1, length) for length in value.shape)
    return dimensions + _number(2, KINDS[value.dtype.name]) + _bytes(8, name.encode()) + _bytes(9, value.tobytes())


def _to_value(name: str, kind: int, sides: tuple[str | int, ...]) -> bytes:
    named = (_number(1, side) if isinstance(side, int) else _bytes(2, side.encode()) for side in sides)
    shape = b"".join(_bytes(1, side) for side in named)
    return _bytes(1, name.encode()) + _bytes(2, _bytes(1, _number(1, kind) + _bytes(2, shape)))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    low, rest = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + _varint(rest) if rest else bytes([low])
