"""Seed 004's metrics and levels over calibrated relevance, and the refusal that says what is nearest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from askbook.answer.confidence import (
    NOT_IN_BOOK,
    find_level,
    find_nearest,
    measure,
    measure_diversity,
    name_gate,
    refuse,
)
from askbook.domain import Chunk, Filters, Passage, SearchOutcome, Signals
from builders import make_chunks, make_lesson


def chunks(count: int) -> list[Chunk]:
    return [make_chunks(make_lesson(f"m/c/{n:02}.md", number=n), f"Text {n}.")[0] for n in range(count)]


def outcome(*relevances: float, unknown: tuple[str, ...] = (), coverage: float = 1.0) -> SearchOutcome:
    passages = tuple(
        Passage(chunk, score=0.5, rank=place, relevance=relevance)
        for place, (chunk, relevance) in enumerate(zip(chunks(len(relevances)), relevances, strict=True), start=1)
    )
    signals = Signals(coverage=coverage, unknown_words=unknown)
    return SearchOutcome("a question", Filters("book"), "hybrid", passages, len(passages), 1.0, 1.0, signals)


@pytest.mark.parametrize(
    ("average", "count", "level"),
    [
        (0.85, 5, "high"),
        (0.85, 4, "medium"),
        (0.849, 5, "medium"),
        (0.75, 3, "medium"),
        (0.75, 2, "low"),
        (0.6, 2, "low"),
        (1.0, 1, "insufficient"),
        (0.599, 5, "insufficient"),
        (0.0, 0, "insufficient"),
    ],
)
def test_levels_are_the_seeds(average: float, count: int, level: str) -> None:
    assert find_level(average, count) == level


def test_metrics() -> None:
    confidence = measure([0.9, 0.8, 0.7], [])
    assert confidence.average_similarity == pytest.approx(0.8)
    assert (confidence.min_similarity, confidence.max_similarity, confidence.num_chunks) == (0.7, 0.9, 3)
    assert confidence.confidence_level == "medium" and confidence.should_answer
    nothing = measure([], [])
    assert nothing.num_chunks == 0 and nothing.average_similarity == 0.0 and not nothing.should_answer


def test_diversity_is_one_less_the_mean_cosine_of_every_two() -> None:
    one, other = np.array([1, 0], dtype=np.float32), np.array([0, 1], dtype=np.float32)
    assert measure_diversity([one, one, other]) == pytest.approx(1 - 1 / 3)
    assert measure_diversity([one, one]) == 0.0
    assert measure_diversity([one]) == 0.0
    assert measure_diversity([one, -one]) == 1.0


def test_a_refusal_is_typed_and_names_the_nearest_sections() -> None:
    found = outcome(0.3, 0.2, 0.1, 0.1, unknown=("warp", "drive"))
    refusal = refuse(found, measure([0.3, 0.2, 0.1, 0.1], []))
    assert refusal is not None
    assert refusal.reason == "not_in_book" and refusal.text == NOT_IN_BOOK
    assert refusal.text == "I don't have information about that in the book content"
    assert refusal.nearest == found.passages[:3]
    assert "“warp”, “drive”" in refusal.advice


def test_advice_without_unknown_words() -> None:
    weak = measure([0.1], [])
    for found, said in (
        (outcome(), "Nothing was found"),
        (outcome(0.1, coverage=0.9), "Only one passage"),
        (outcome(0.1, 0.1, coverage=0.0), "no word to search by"),
        (outcome(0.1, 0.1, coverage=0.2), "more than half of your words"),
        (outcome(0.1, 0.1, coverage=0.9), "no passage is about this"),
    ):
        refusal = refuse(found, weak)
        assert refusal is not None and said in refusal.advice


def test_a_book_with_nothing_in_it_says_so() -> None:
    refusal = refuse(outcome(), measure([], []), book_is_empty=True)
    assert refusal is not None and refusal.reason == "index_empty" and "askbook ingest" in refusal.advice


def test_what_is_sure_enough_is_not_refused() -> None:
    assert refuse(outcome(0.7, 0.6), measure([0.7, 0.6], [])) is None


def test_one_section_is_named_once() -> None:
    first, second, third = outcome(0.3, 0.2, 0.1).passages
    again = replace(first, rank=2)
    assert find_nearest([first, again, second, third]) == (first, second, third)


@pytest.mark.parametrize(
    ("relevances", "chance", "said"),
    [
        ([], 0.9, "nothing was found"),
        ([0.1] * 5, 0.12, "chance that the book answers this is 0.12"),
        ([0.9] * 5, 0.99, "answered as high"),
        ([0.9], 0.99, "too few passages: 1"),
        ([0.4] * 5, None, "average 0.40 is below 0.60"),
    ],
)
def test_the_gate_that_decided_is_named(relevances: list[float], chance: float | None, said: str) -> None:
    assert said in name_gate(measure(relevances, []), chance)
