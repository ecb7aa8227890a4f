"""What is measured: rows among which nothing but reading tells the true from the false. Skipped without torch."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="skipped: torch is not installed; see train/README.md")

sys.path.insert(0, str(Path(__file__).parents[2] / "train"))

validate = pytest.importorskip("validate")
rows = pytest.importorskip("rows")


def test_a_style_of_true_statements_is_found_and_balanced_away() -> None:
    told = [
        rows.Row(f"The arm stops{' only' * (label == (number % 4 > 0))} here.", f"Arm {number}.", "statement", label)
        for number in range(60)
        for label in (1, 0)
    ]
    labels = np.array([row.label for row in told])
    style = validate._guess_by_style(told)
    found = validate.auc(style, labels)
    kept = validate._balance(labels, [bool(score > np.median(style)) for score in style])
    assert abs(found - 0.5) > 0.2
    assert len(kept) >= 20
    assert abs(validate.auc(style[kept], labels[kept]) - 0.5) < 0.1
