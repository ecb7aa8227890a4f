"""An encoder and its heads as one ONNX graph of ONNX Runtime's fused operators, int8 per channel or fp32.

The quantised nodes are written here and not by `quantize_dynamic`, which knows no rounding of a table by rows and
reduces Attention's range always. Weights are symmetric int8 with a scale for each column, word embeddings for each row.
With `reduce_range` they keep to seven bits: a CPU without VNNI adds two products of 8-bit numbers in 16 bits, and
saturates.

    python train/export.py minilm-l6 --out model.onnx [--reduce-range] [--fp32]
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Literal

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ATTENTION_HEADS = 12
EPSILON = 1e-12
SCORES = ("relevance", "answerable", "supported")
INT8_MAX = 127
"""Of a weight; 64 with a reduced range."""

Pooling = Literal["mean", "first", "none"]
State = dict[str, np.ndarray]


class Graph:
    """Nodes and weights in the order they are added. What adds a node gives the name of its output."""

    def __init__(self, state: State, fp32: bool, reduce_range: bool) -> None:
        self._state = state
        self._fp32 = fp32
        self._largest = 64 if reduce_range else INT8_MAX
        self._nodes: list[onnx.NodeProto] = []
        self._weights: dict[str, onnx.TensorProto] = {}

    def add(self, kind: str, *inputs: str, name: str, domain: str = "", outputs: int = 1, **attributes: object) -> str:
        names = [name, *(f"{name}_{number}" for number in range(1, outputs))]
        self._nodes.append(helper.make_node(kind, inputs, names, name=name, domain=domain, **attributes))
        return name

    def fused(self, kind: str, *inputs: str, name: str, **attributes: object) -> str:
        return self.add(kind, *inputs, name=name, domain="com.microsoft", **attributes)

    def weight(self, name: str, array: np.ndarray | None = None, dtype: type = np.float32) -> str:
        """One of the state, unless an array is given."""
        if name not in self._weights:
            array = self._state[name] if array is None else array
            self._weights[name] = numpy_helper.from_array(np.array(array, dtype=dtype, order="C"), name)
        return name

    def quantised(self, name: str, matrix: np.ndarray, axis: int) -> tuple[str, str]:
        """A scale for each column (axis 0 is reduced) or for each row (axis 1)."""
        scale = np.maximum(np.abs(matrix).max(axis=axis, keepdims=True), 1e-12) / self._largest
        whole = np.clip(np.rint(matrix / scale), -self._largest, self._largest)
        scales = scale if axis else scale[0]
        return self.weight(f"{name}_int8", whole, np.int8), self.weight(f"{name}_scale", scales)

    def words(self, ids: str) -> str:
        table = self._state["we.weight"]
        if self._fp32:
            return self.add("Gather", self.weight("we.weight"), ids, name="words")
        rows, scales = self.quantised("we", table, axis=1)
        values = self.add(
            "Cast", self.add("Gather", rows, ids, name="word_rows"), name="word_values", to=TensorProto.FLOAT
        )
        return self.add("Mul", values, self.add("Gather", scales, ids, name="word_scales"), name="words")

    def linear(self, at: str, x: str, biased: bool = True) -> str:
        bias = [self.weight(f"{at}.bias")] if biased else []
        if self._fp32:
            product = self.product(at, x)
            return self.add("Add", product, *bias, name=at) if bias else product
        whole, scales = self.quantised(at, self._state[f"{at}.weight"].T, axis=0)
        return self.fused("DynamicQuantizeMatMul", x, whole, scales, *(["", *bias] if bias else []), name=at)

    def head(self, at: str, x: str) -> str:
        """In fp32 always."""
        return self.add("Add", self.product(at, x), self.weight(f"{at}.bias"), name=at)

    def product(self, at: str, x: str) -> str:
        matrix = self.weight(f"{at}.matrix", self._state[f"{at}.weight"].T)
        return self.add("MatMul", x, matrix, name=f"{at}.product")

    def attention(self, at: str, x: str, mask: str) -> str:
        matrix = np.concatenate([self._state[f"{at}.{part}.weight"].T for part in "qkv"], axis=1)
        bias = self.weight(f"{at}.qkv.bias", np.concatenate([self._state[f"{at}.{part}.bias"] for part in "qkv"]))
        name = f"{at}.attention"
        if self._fp32:
            whole = self.weight(f"{at}.qkv", matrix)
            return self.fused("Attention", x, whole, bias, mask, name=name, num_heads=ATTENTION_HEADS)
        whole, scales = self.quantised(f"{at}.qkv", matrix, axis=0)
        rounded = self.add("DynamicQuantizeLinear", x, name=f"{at}.rounded", outputs=3)
        given = (rounded, whole, bias, f"{rounded}_1", scales, mask, f"{rounded}_2")
        return self.fused("QAttention", *given, name=name, num_heads=ATTENTION_HEADS)

    def normalised(self, at: str, x: str, skip: str) -> str:
        # The fused SkipLayerNormalization is four times as slow on a CPU as the two apart (1.31).
        total = self.add("Add", x, skip, name=f"{at}.total")
        norm = (self.weight(f"{at}.weight"), self.weight(f"{at}.bias"))
        return self.add("LayerNormalization", total, *norm, name=at, axis=-1, epsilon=EPSILON)

    def save(self, out: Path, inputs: list[str], outputs: dict[str, list[str | int]], metadata: dict[str, str]) -> None:
        given = [helper.make_tensor_value_info(name, TensorProto.INT32, ["batch", "length"]) for name in inputs]
        found = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()]
        graph = helper.make_graph(self._nodes, "model", given, found, list(self._weights.values()))
        versions = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, producer_name="askbook", opset_imports=versions, ir_version=9)
        helper.set_model_props(model, metadata)
        out.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(model, str(out))


def build_graph(graph: Graph, state: State, segments: bool) -> str:
    """The encoder; gives the name of its last hidden state. Without segments every token is of the first."""
    places = state["pe.weight"] if segments else state["pe.weight"] + state["te.weight"][:1]
    # Stored as float16, computed as float32: ONNX Runtime casts it once, when the session opens.
    table = graph.add("Cast", graph.weight("places_half", places, np.float16), name="place_table", to=TensorProto.FLOAT)
    shape = graph.add("Shape", "input_ids", name="length", start=1, end=2)
    places = graph.add("Slice", table, graph.weight("zero", np.zeros(1), np.int64), shape, name="place_rows")
    if segments:
        kinds = graph.add("Gather", graph.weight("te.weight"), "token_type_ids", name="kinds")
        places = graph.add("Add", kinds, places, name="places")
    else:
        places = graph.add("Unsqueeze", places, graph.weight("zero", np.zeros(1), np.int64), name="places")
    x = graph.normalised("n", graph.words("input_ids"), places)
    for number in range(count_layers(state)):
        at = f"layers.{number}"
        mixed = graph.linear(f"{at}.o", graph.attention(at, x, "attention_mask"))
        x = graph.normalised(f"{at}.n1", mixed, x)
        wide = graph.linear(f"{at}.i", x, biased=False)
        bent = graph.fused("BiasGelu", wide, graph.weight(f"{at}.i.bias"), name=f"{at}.gelu")
        x = graph.normalised(f"{at}.n2", graph.linear(f"{at}.u", bent), x)
    return x


def count_layers(state: State) -> int:
    return 1 + max(int(found[1]) for name in state if (found := re.match(r"layers\.(\d+)\.", name)))


def export_embedder(state: State, out: Path, pooling: Pooling, reduce_range: bool, fp32: bool = False) -> None:
    """`vectors` [batch, width] of length one, or with no pooling `last_hidden_state` [batch, length, width]."""
    graph = Graph(state, fp32, reduce_range)
    hidden = build_graph(graph, state, segments=False)
    width = state["we.weight"].shape[1]
    if pooling == "none":
        graph.add("Identity", hidden, name="last_hidden_state")
        outputs: dict[str, list[str | int]] = {"last_hidden_state": ["batch", "length", width]}
    else:
        graph.add("LpNormalization", pooled(graph, hidden, pooling), name="vectors", axis=-1, p=2)
        outputs = {"vectors": ["batch", width]}
    graph.save(out, ["input_ids", "attention_mask"], outputs, {"askbook_embedder": json.dumps({"pooling": pooling})})


def pooled(graph: Graph, hidden: str, pooling: Pooling) -> str:
    if pooling == "first":
        return graph.add("Gather", hidden, graph.weight("first", np.zeros(()), np.int64), name="first_token", axis=1)
    # The sum has the direction of the mean, and the length goes anyway.
    ones = graph.add("Cast", "attention_mask", name="mask_values", to=TensorProto.FLOAT)
    row = graph.add("Unsqueeze", ones, graph.weight("one", np.ones(1), np.int64), name="mask_row")
    total = graph.add("MatMul", row, hidden, name="sum_row")
    return graph.add("Squeeze", total, graph.weight("one", np.ones(1), np.int64), name="sum")


def export_reader(state: State, out: Path, metadata: dict, reduce_range: bool, fp32: bool = False) -> None:
    """`scores` [batch, 3], logits in the order of SCORES; `spans` [batch, length, 2]. The heads are fp32 either way."""
    graph = Graph(state, fp32, reduce_range)
    hidden = build_graph(graph, state, segments=True)
    zero = graph.weight("first", np.zeros(()), np.int64)
    first = graph.add("Gather", hidden, zero, name="first_token", axis=1)
    logits = []
    for score in SCORES:
        bent = graph.add("Tanh", graph.head(f"{score}.0", first), name=f"{score}.1")
        logits.append(graph.head(f"{score}.2", bent))
    graph.add("Concat", *logits, name="scores", axis=1)
    graph.add("Identity", graph.head("span", hidden), name="spans")
    outputs: dict[str, list[str | int]] = {"scores": ["batch", len(SCORES)], "spans": ["batch", "length", 2]}
    inputs = ["input_ids", "attention_mask", "token_type_ids"]
    graph.save(out, inputs, outputs, {"askbook_reader": json.dumps(metadata, sort_keys=True)})


def main() -> None:
    from bases import BASES, load_base, to_state

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=BASES, help="a base that embeds")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--reduce-range", action="store_true")
    parser.add_argument("--fp32", action="store_true")
    asked = parser.parse_args()
    export_embedder(
        to_state(load_base(asked.name)), asked.out, BASES[asked.name].pooling, asked.reduce_range, asked.fp32
    )
    print(f"{asked.out} {asked.out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
