"""Windows hold the whole of a passage, up to what one may cost; batches hold every window once."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from askbook.reading.windows import BATCH_TOKENS, WINDOWS_MAX, Pair, Window, split_batches, split_windows

PAIR_TOKENS = 320


def pair(asked: int, told: int) -> Pair:
    return Pair(list(range(asked)), list(range(told)), [(n, n + 1) for n in range(told)])


@pytest.mark.parametrize("asked", [0, 1, 20, 80])
@pytest.mark.parametrize("told", [0, 1, 236, 237, 238, 297, 400, 700, 3000])
def test_windows_hold_every_token_and_overlap_by_a_third(asked: int, told: int) -> None:
    windows = split_windows(pair(asked, told), PAIR_TOKENS)
    assert {n for window in windows for n in range(window.start, window.end)} == set(range(told))
    assert all(len(window) <= PAIR_TOKENS for window in windows)
    room = PAIR_TOKENS - 3 - asked
    for before, after in pairwise(windows):
        assert before.end - after.start >= room // 3
        assert after.end - after.start == room


def test_a_passage_costs_no_more_than_so_many_windows() -> None:
    windows = split_windows(pair(80, 20_000), PAIR_TOKENS)
    assert len(windows) == WINDOWS_MAX
    assert windows[-1].end > 3_500


def test_batches_hold_every_window_once_and_little_padding() -> None:
    lengths = [random.Random(7).randint(1, 237) for _ in range(60)]
    given = [(n, Window(pair(80, length), 0, length)) for n, length in enumerate(lengths)]
    batches = list(split_batches(given))
    assert sorted(n for batch in batches for n, _ in batch) == list(range(60))
    for batch in batches:
        assert len(batch) * max(len(window) for _, window in batch) <= BATCH_TOKENS
    padded = sum(len(batch) * max(len(window) for _, window in batch) for batch in batches)
    assert padded < 1.1 * sum(len(window) for _, window in given)
