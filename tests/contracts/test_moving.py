"""What docs/contracts.md shows of moving over is what askbook says today."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import httpx2

from builders import copy_home
from contracts.moving import Example, load_examples, record

TIMES = r"""(_time_ms": )[\d.]+|("timestamp": ")[^"]+|( · )[\d.]+(?= s · )"""
SCORES = r"""("(?:similarity_)?score": )[\d.]+|("confidence": )[\d.]+|(\(score: )[\d.]+|(confidence \w+ \()[\d.]+"""


def test_the_examples_are_true(client: httpx2.Client, ingested_textbook: Path, tmp_path: Path) -> None:
    """But for times and scores; where they differ, `python tests/contracts/moving.py` makes them anew."""
    now = record(client, copy_home(ingested_textbook, tmp_path), tmp_path)
    assert [_steady(one) for one in now] == [_steady(one) for one in load_examples()]


def _steady(example: Example) -> Example:
    return replace(example, response=re.sub(f"{TIMES}|{SCORES}", _hide, example.response))


def _hide(found: re.Match[str]) -> str:
    return f"{found[found.lastindex or 0]}…"
