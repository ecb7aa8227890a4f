"""Every row of the contracts is whole: it says where it lives, and a test proves it or a note says why not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from contracts.tables import SEEDS, Row, load_rows

ROOT = Path(__file__).parents[2]
ROWS = [(seed, row) for seed in SEEDS for row in load_rows(seed)]


def _to_case(seed: str, row: Row) -> object:
    """What is being mended must fail here, until somebody writes down its proof."""
    marks = [pytest.mark.xfail(reason=row.mending, strict=True)] if row.mending else []
    return pytest.param(row, id=f"{seed} {row.name}", marks=marks)


@pytest.mark.parametrize("row", [_to_case(seed, row) for seed, row in ROWS])
def test_row(row: Row) -> None:
    assert all(text.strip() for text in (row.name, row.place, row.needs, row.lives))
    assert row.proof or row.decided
    assert bool(row.decided) == bool(row.why)
    assert not row.decided or (ROOT / row.decided).is_file()


@pytest.mark.parametrize("seed", SEEDS)
def test_no_row_stands_twice(seed: str) -> None:
    names = [row.name for row in load_rows(seed)]
    assert [name for name in names if names.count(name) > 1] == []


def test_every_proof_is_a_test(request: pytest.FixtureRequest) -> None:
    """Of those that this run has collected, or else of those that pytest finds."""
    wanted = {proof for _, row in ROWS for proof in row.proof}
    known = _with_tests(item.nodeid for item in request.session.items)
    files = sorted({proof.partition("::")[0] for proof in wanted - known})
    assert [file for file in files if not (ROOT / file).is_file()] == []
    assert sorted(wanted - known - (_collect(files) if files else set())) == []


def _collect(files: list[str]) -> set[str]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *files]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout[-2000:]
    return _with_tests(line for line in found.stdout.splitlines() if "::" in line)


def _with_tests(cases: Iterable[str]) -> set[str]:
    """Each case, and the test that it is one of."""
    return {name for case in cases for name in (case, case.partition("[")[0])}
