"""What the upper layers learn from. Skipped where torch or onnx is absent: training needs them, askbook does not."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="skipped: torch is not installed; see train/README.md")
onnx = pytest.importorskip("onnx", reason="skipped: onnx is not installed; see train/README.md")

sys.path.insert(0, str(Path(__file__).parents[2] / "train"))

choosing = pytest.importorskip("choosing")
export = pytest.importorskip("export")


def test_a_file_whose_weights_are_read_is_exported_the_same_again(tmp_path: Path) -> None:
    from test_export import random_state

    export.export_reader(random_state(), tmp_path / "first.onnx", {}, reduce_range=True)
    export.export_reader(choosing.read_state(tmp_path / "first.onnx"), tmp_path / "again.onnx", {}, reduce_range=True)
    first, again = (onnx.load(str(tmp_path / name)).graph.initializer for name in ("first.onnx", "again.onnx"))
    known = {one.name: onnx.numpy_helper.to_array(one) for one in first}
    for one in again:
        np.testing.assert_allclose(onnx.numpy_helper.to_array(one), known[one.name], rtol=1e-6)


def test_no_book_of_choices_is_trained_on_and_measured() -> None:
    held, trained = choosing.read_choices(held=True), choosing.read_choices(held=False)
    assert len(held) > 500
    assert len(trained) > 5000
    assert not {row.text for group in held for row in group} & {row.text for group in trained for row in group}


def test_a_reader_that_knows_the_answer_picks_it_and_refuses_what_is_absent() -> None:
    row = choosing.Row
    groups = [
        *([row("asked", "elsewhere", 0.0, is_sure=False), row("asked", "here", 1.0, place=3)] for _ in range(20)),
        [row("absent", "near", 0.0)],
    ]
    rows = [one for group in groups for one in group]
    knows = np.array([40.0 if one.label else -40.0 for one in rows])
    told = choosing.measure_choices(groups, knows, np.zeros(len(rows)))
    assert (told["first answers"], told["absent refused where .05 are refused by mistake"]) == (1.0, 1.0)
    blind = choosing.measure_choices(groups, np.zeros(len(rows)), np.zeros(len(rows)))
    assert blind["first answers"] == 0.0
