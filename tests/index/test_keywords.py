"""Words into terms, terms into BM25."""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from index_points import small_scope

from askbook.index.keywords import (
    AVERAGE_TERMS,
    K1,
    B,
    count_terms,
    find_unknown_words,
    keyword_text,
    split_terms,
    term_id,
    weigh_chunk,
    weigh_query,
)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("The robots were running", ["robot", "run"]),
        ("max_depth", ["max_depth", "max", "depth"]),
        ("LaunchDescription", ["launchdescription", "launch", "descript"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("colcon-build", ["colcon-build", "colcon", "build"]),
        ("rclpy.node.Node", ["rclpy.node.node", "rclpi", "node", "node"]),
        ("std::vec::Vec", ["std::vec::vec", "std", "vec", "vec"]),
        ("ROS2", ["ros2", "ros", "2"]),
        ("ROS 2", ["ros", "2"]),
        ("A1 and x86", ["a1", "x86"]),
        ("the robot's arm isn’t moving", ["robot", "arm", "move"]),
        ("__init__", ["init"]),
        ("ＦＵＬＬ width ﬁle", ["full", "width", "file"]),
        ("STRASSE Straße", ["strass", "strass"]),
        ("日本語 🤖", ["日本語"]),
        ("what is it?", []),
        ("", []),
    ],
)
def test_terms(text: str, terms: list[str]) -> None:
    assert split_terms(text) == terms


def test_ids_are_the_same_in_every_process_and_fit_32_bits() -> None:
    assert term_id("robot") == 0x25284D2C
    assert max(term_id(f"word{n}") for n in range(20_000)) < 2**32


def test_a_chunk_weighs_by_bm25() -> None:
    sparse = weigh_chunk("robot robot arm")
    length = 1 - B + B * 3 / AVERAGE_TERMS
    weights = dict(zip(sparse.indices, sparse.values, strict=True))
    assert weights[term_id("robot")] == pytest.approx(2 * (K1 + 1) / (2 + K1 * length))
    assert weights[term_id("arm")] == pytest.approx((K1 + 1) / (1 + K1 * length))
    assert list(sparse.indices) == sorted(weights)


def test_a_question_weighs_by_rarity_and_leaves_out_what_no_chunk_has() -> None:
    frequencies = {term_id("robot"): 10, term_id("arm"): 1}
    sparse = weigh_query("robot arm zeppelin", frequencies, 100)
    weights = dict(zip(sparse.indices, sparse.values, strict=True))
    assert weights == {
        term_id("robot"): pytest.approx(math.log(1 + 90.5 / 10.5)),
        term_id("arm"): pytest.approx(math.log(1 + 99.5 / 1.5)),
    }


def test_a_word_that_people_ask_with_is_not_told_as_missing() -> None:
    text = "How many examples of Alembic are usually robots?"
    assert find_unknown_words(text, {term_id("robot"): 3}) == ["Alembic"]


def test_counts_that_lag_behind_never_make_a_weight_negative() -> None:
    assert weigh_query("robot", {term_id("robot"): 9}, 3).values[0] > 0


def test_terms_are_counted_once_a_chunk() -> None:
    counts = count_terms(["robot robot arm", "the robot", ""])
    assert counts == {term_id("robot"): 2, term_id("arm"): 1}


def test_a_chunk_is_found_by_its_headings_too() -> None:
    chunk = small_scope()[0]
    assert keyword_text(chunk) == "Book Module Chapter 1 Alpha alpha topic number 0"


@given(st.text(max_size=200))
def test_any_text_has_terms_that_can_be_weighed(text: str) -> None:
    sparse = weigh_chunk(text)
    assert set(sparse.indices) == {term_id(term) for term in split_terms(text)}
    assert all(0 < value < K1 + 1 for value in sparse.values)


def test_a_thousand_chunks_take_less_than_a_second() -> None:
    words = [
        f"{stem}{end}" for stem in ("robot", "sensor", "launch", "topic") for end in ("", "s", "ing", "_id", "Name")
    ]
    text = " ".join(words[n % len(words)] for n in range(300))
    started = time.process_time()
    for _ in range(1000):
        weigh_chunk(text)
    assert time.process_time() - started < 1.0
