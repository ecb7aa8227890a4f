"""Windows hold the whole of a passage, up to what one may cost; pieces hold the whole of a statement."""

from __future__ import annotations

from itertools import pairwise

import pytest

from askbook.reading.windows import WINDOWS_MAX, Pair, count_read, split_pieces, split_windows

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


def test_no_more_of_a_passage_is_counted_as_read_than_its_windows_hold() -> None:
    for pair_tokens in (16, 320, 512):
        windows = split_windows(pair(0, 20_000), pair_tokens)
        assert windows[-1].end == count_read(pair_tokens)


@pytest.mark.parametrize("count", [0, 1, 79, 80, 81, 160, 161, 500])
@pytest.mark.parametrize("word", [1, 3, 7, 90, 1000], ids=lambda length: f"words of {length}")
def test_pieces_hold_every_token_and_whole_words(count: int, word: int) -> None:
    words = [n // word for n in range(count)]
    pieces = list(split_pieces(list(range(count)), words, 80))
    assert [n for piece in pieces for n in piece] == list(range(count))
    assert all(len(piece) <= 80 for piece in pieces)
    assert len(pieces) <= max(1, -(-count // 70)) + (count // 40 if word > 80 else 0)
    if word <= 80:
        assert all(words[before[-1]] != words[after[0]] for before, after in pairwise(pieces))
