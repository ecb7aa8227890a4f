"""Reading models of a dozen nodes, written as ONNX files: what they say can be counted by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from askbook.onnx import INPUTS, TOKENIZER_SHA256
from onnx_files import FLOAT, INT32, SAME, Ends, Nodes, write_model

# Each token of the passage that the question has as well is a hit, and the [SEP] that both end with is one.
HITS: Nodes = (
    *SAME,
    ("Where", "same unit zero", "weights"),
    ("ReduceSum", "weights axis_1", "hits_of_rows"),
    ("Squeeze", "hits_of_rows axis_1", "hits"),
)
SCORES_OF_HITS: Nodes = (
    ("ReduceSum", "hits axis_1", "count"),
    ("Mul", "count score_slopes", "raised"),
    ("Add", "raised score_shifts", "scores"),
)
# A hit may start and end a span; any other token of the passage may hardly.
SPANS_OF_HITS: Nodes = (
    ("Where", "told low zero", "doubts"),
    ("Unsqueeze", "doubts axis_2", "doubt"),
    ("Unsqueeze", "hits axis_2", "hit"),
    ("Mul", "hit pointing", "pointed"),
    ("Add", "pointed doubt", "spans"),
)
COUNTING = HITS + SCORES_OF_HITS + SPANS_OF_HITS

# Each token has a start and an end of its own, made up once and for all; the scores are their sum.
MADE_UP: Nodes = (
    ("Gather", "table input_ids", "looked_up"),
    ("Equal", "attention_mask one", "present"),
    ("Unsqueeze", "present axis_2", "held"),
    ("Where", "held looked_up zero", "spans"),
    ("ReduceSum", "spans axes_1_2", "sums"),
    ("Squeeze", "sums axis_2", "sum"),
    ("Mul", "sum score_slopes", "scores"),
)

# Other scores each time it is run: two that are equal were read once.
MOODY: Nodes = (
    *HITS,
    ("ReduceSum", "hits axis_1", "count"),
    ("Mul", "count score_slopes", "counted"),
    ("RandomUniformLike", "counted", "mood"),
    ("Add", "counted mood", "scores"),
    *SPANS_OF_HITS,
)

# A tenth of a second or so for a window, whatever is in it.
SLOW: Nodes = (
    *HITS,
    ("ReduceSum", "hits axes_0_1", "all"),
    ("Mul", "all zero", "nothing_yet"),
    ("Expand", "nothing_yet large", "product_0"),
    *(("MatMul", f"product_{n} product_{n}", f"product_{n + 1}") for n in range(4)),
    ("ReduceSum", "product_4 axes_0_1", "nothing_still"),
    ("ReduceSum", "hits axis_1", "count"),
    ("Mul", "count score_slopes", "counted"),
    ("Add", "counted nothing_still", "scores"),
    *SPANS_OF_HITS,
)

NOT_A_NUMBER: Nodes = (*HITS, ("ReduceSum", "hits axis_1", "count"), ("Mul", "count nan", "scores"), *SPANS_OF_HITS)
TWO_SCORES: Nodes = (*HITS, ("ReduceSum", "hits axis_1", "count"), ("Mul", "count pointing", "scores"), *SPANS_OF_HITS)

CONSTANTS = {
    "one": np.array(1, np.int32),
    "two": np.array(2, np.int32),
    "none": np.array(-1, np.int32),
    "nothing": np.array(-2, np.int32),
    "axis_1": np.array([1], np.int64),
    "axis_2": np.array([2], np.int64),
    "axes_0_1": np.array([0, 1], np.int64),
    "axes_1_2": np.array([1, 2], np.int64),
    "large": np.array([1100, 1100], np.int64),
    "unit": np.array(1.0, np.float32),
    "zero": np.array(0.0, np.float32),
    "low": np.array(-4.0, np.float32),
    "nan": np.array([[np.nan] * 3], np.float32),
    "pointing": np.array([8.0, 6.0], np.float32),
    "score_slopes": np.array([[0.1, 0.2, 1.0]], np.float32),
    "score_shifts": np.array([[0.0, -1.0, -4.0]], np.float32),
    "short_table": np.zeros((10, 2), np.float32),
    "table": np.random.default_rng(13).normal(size=(30_522, 2)).astype(np.float32),
}

READER_INPUTS: Ends = dict.fromkeys(INPUTS, (INT32, ("rows", "columns")))
READER_OUTPUTS: Ends = {"scores": (FLOAT, ("rows", "three")), "spans": (FLOAT, ("rows", "columns", 2))}
CONTRACT: dict[str, Any] = {
    "name": "tiny",
    "pair_tokens": 320,
    "question_tokens": 80,
    "answers": [0.25, -0.5],
    "supports": [1.5, 0.25],
    "tokenizer": TOKENIZER_SHA256,
}


def write_reader(
    folder: Path,
    nodes: Nodes = COUNTING,
    metadata: dict[str, str] | None = None,
    inputs: Ends = READER_INPUTS,
    outputs: Ends = READER_OUTPUTS,
    **contract: Any,
) -> Path:
    """`contract`: what the file says of itself other than usual."""
    folder.mkdir(parents=True, exist_ok=True)
    told = {"askbook_reader": json.dumps(CONTRACT | contract)} if metadata is None else metadata
    write_model(folder / "reader.onnx", nodes, CONSTANTS, inputs, outputs, told)
    return folder
