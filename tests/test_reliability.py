"""docs/reliability.md: every row that was promised is there, has tests, and says whether it ran."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reliability import ROWS, read_lines

HERE = Path(__file__).parent
PROMISED = HERE.parents[1] / "shared" / "RELIABILITY.md"


def test_every_row_has_tests() -> None:
    marks = "".join(" ".join(re.findall(r"mark\.row\(.*", file.read_text())) for file in HERE.rglob("test_*.py"))
    assert [row for row in ROWS if f'"{row}"' not in marks] == []


def test_every_row_has_a_line_of_its_own() -> None:
    told = read_lines()
    assert list(told) == list(ROWS)
    assert {row: cells[:1] + cells[2:3] for row, cells in told.items()} == {
        row: [one.tries, one.bar] for row, one in ROWS.items()
    }


@pytest.mark.skipif(not PROMISED.is_file(), reason="skipped: shared/RELIABILITY.md is not there")
def test_every_row_that_was_promised_is_one() -> None:
    promised = re.findall(r"^\| ([A-Z]\d) \|", PROMISED.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(promised) > 20 and set(promised) <= ROWS.keys()
