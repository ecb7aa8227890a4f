"""Spans, against a plain count of every stretch."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from askbook.reading.spans import SPAN_TOKENS, SPANS_MAX, Span, find_spans, keep_apart, score_spans

LOW = -20.0


def logits(count: int, **raised: float) -> np.ndarray:
    """`t3=5`: token 3 has 5, and the others next to nothing."""
    made = np.full(count, LOW)
    for name, value in raised.items():
        made[int(name[1:])] = value
    return made


@pytest.mark.parametrize("count", [1, 2, SPAN_TOKENS - 1, SPAN_TOKENS, SPAN_TOKENS + 1, 150])
def test_every_stretch_has_the_sum_of_its_start_and_its_end(count: int) -> None:
    starts, ends = np.random.default_rng(count).normal(size=(2, count))
    scores = score_spans(starts, ends)
    for first in range(count):
        for further in range(SPAN_TOKENS):
            inside = first + further < count
            assert scores[first, further] == (starts[first] + ends[first + further] if inside else -np.inf)


def test_the_best_stretch_comes_first_with_its_chance() -> None:
    scores = score_spans(logits(60, t10=4.0, t30=1.0), logits(60, t12=3.0, t30=2.0))
    (first, last, chance), (other, *_), *_ = find_spans(scores, null=5.0)
    assert (first, last) == (10, 12)
    total = math.exp(7) + math.exp(3) + math.exp(6) + math.exp(5)  # 10-12, 30-30, 10-30, and "not here"
    assert chance == pytest.approx((math.exp(7) + math.exp(6)) / total, rel=1e-6)
    assert other == 30


def test_an_end_before_its_start_or_too_far_behind_it_is_no_stretch() -> None:
    scores = score_spans(logits(100, t50=9.0), logits(100, t49=9.0, t90=9.0, t89=1.0))
    assert next(find_spans(scores, null=-30.0))[:2] == (50, 89)


def test_what_overlaps_is_one_answer_and_chances_add_up_to_one() -> None:
    starts, ends = np.random.default_rng(4).normal(size=(2, 12)) * 3
    found = list(find_spans(score_spans(starts, ends), null=0.0))
    assert 1 <= len(found) <= SPANS_MAX
    places = sorted((first, last) for first, last, _ in found)
    assert all(last < first for (_, last), (first, _) in pairwise(places))
    assert sum(chance for *_, chance in found) <= 1.0


def test_where_the_answer_is_not_here_no_stretch_has_a_chance() -> None:
    scores = score_spans(logits(30, t3=1.0), logits(30, t4=1.0))
    assert all(chance < 1e-6 for *_, chance in find_spans(scores, null=30.0))


@pytest.mark.parametrize("size", [1e3, 1e30])
def test_huge_logits_give_chances_all_the_same(size: float) -> None:
    starts, ends = np.random.default_rng(5).normal(size=(2, 50)) * size
    for null in (-size, size):
        assert all(0.0 <= chance <= 1.0 for *_, chance in find_spans(score_spans(starts, ends), null))


def test_of_spans_that_share_a_word_the_better_is_kept() -> None:
    told = [Span(0, 5, 0.1), Span(4, 9, 0.6), Span(9, 12, 0.3), *(Span(20 + n, 21 + n, 0.01) for n in range(9))]
    kept = keep_apart(told)
    assert kept[:2] == (Span(4, 9, 0.6), Span(9, 12, 0.3))
    assert len(kept) == SPANS_MAX
