"""How near the embedder is to its own matrix products: `python bench/limit.py [TOKENS …]`.

The products of one window, each alone and hot in cache, beside the whole model, all in one run on one thread and in
turns,
as CPU seconds: int8 (MatMulInteger) for the dense layers, fp32 for the two of attention. The graphs are written as
bytes: the
package that builds them is needed for training alone.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
import onnxruntime

from askbook.errors import EmbedderUnavailable
from askbook.index.embedders.minilm import MODEL
from askbook.onnx import open_session

LAYERS, HEADS, WIDTH = 6, 12, 384
DENSE = ((WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH))
FLOAT, UINT8, INT8, INT32 = 1, 2, 3, 6
ROUNDS, RUNS = 7, 12
LENGTHS = (128, 190, 254)
"""Tokens of a window."""


def _number(value: int) -> bytes:
    low = value & 0x7F
    return bytes([low]) if value == low else bytes([low | 0x80]) + _number(value >> 7)


def _field(at: int, value: bytes | str | int) -> bytes:
    """Of a protobuf message."""
    if isinstance(value, int):
        return _number(at << 3) + _number(value)
    data = value.encode() if isinstance(value, str) else value
    return _number(at << 3 | 2) + _number(len(data)) + data


def _product(
    kind: str, given: int, made: int, weights: np.ndarray | None = None
) -> Callable[[dict[str, np.ndarray]], object]:
    node = _field(1, "x") + _field(1, "w") + _field(2, "y") + _field(4, kind)
    graph = _field(1, node) + _field(2, "g")
    if weights is not None:
        dims = b"".join(_field(1, size) for size in weights.shape)
        graph += _field(5, dims + _field(2, INT8) + _field(8, "w") + _field(9, weights.tobytes()))
    for at, name, of in ((11, "x", given), (12, "y", made), *([] if weights is not None else [(11, "w", given)])):
        graph += _field(at, _field(1, name) + _field(2, _field(1, _field(1, of))))
    model = _field(1, 9) + _field(8, _field(1, "") + _field(2, 17)) + _field(7, graph)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda feed: session.run(None, feed)


def measure(tokens: int) -> tuple[float, float, float]:
    """Milliseconds of CPU for a window: its int8 products, those of attention in fp32, and the whole model."""
    rng = np.random.default_rng(0)
    works: list[tuple[int, int, Callable[[], object]]] = []
    for inner, outer in DENSE:
        multiply = _product("MatMulInteger", UINT8, INT32, rng.integers(-64, 64, (inner, outer), dtype=np.int8))
        feed = {"x": rng.integers(0, 255, (tokens, inner), dtype=np.uint8)}
        works.append((0, LAYERS, lambda multiply=multiply, feed=feed: multiply(feed)))
    multiply = _product("MatMul", FLOAT, FLOAT)
    for left, right in (
        ((tokens, WIDTH // HEADS), (WIDTH // HEADS, tokens)),
        ((tokens, tokens), (tokens, WIDTH // HEADS)),
    ):
        feed = {name: rng.normal(size=(1, HEADS, *of)).astype(np.float32) for name, of in (("x", left), ("w", right))}
        works.append((1, LAYERS, lambda feed=feed: multiply(feed)))
    ids = rng.integers(1000, 20000, (1, tokens), dtype=np.int32)
    session = open_session(MODEL, 1, EmbedderUnavailable)
    works.append((2, 1, lambda: session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})))
    best = [float("inf")] * len(works)
    for _ in range(ROUNDS):
        for at, (_, _, work) in enumerate(works):
            work()
            started = time.process_time()
            for _ in range(RUNS):
                work()
            best[at] = min(best[at], (time.process_time() - started) / RUNS * 1000)
    sums = [
        sum(times * took for (to, times, _), took in zip(works, best, strict=True) if to == kind) for kind in range(3)
    ]
    return sums[0], sums[1], sums[2]


if __name__ == "__main__":
    print("tokens  int8 ms  fp32 ms  model ms  int8 / model  both / model")
    for tokens in [int(one) for one in sys.argv[1:]] or LENGTHS:
        whole, attention, model = measure(tokens)
        shares = f"{whole / model:14.2f}{(whole + attention) / model:14.2f}"
        print(f"{tokens:6}{whole:9.2f}{attention:9.2f}{model:10.2f}{shares}")
