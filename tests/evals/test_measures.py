"""The figures, against values worked out by hand, and against the development sets' own score.py."""

from __future__ import annotations

import json
import math
import random
import runpy
from pathlib import Path

import pytest

from askbook.evals.measures import (
    area_under_curve,
    average,
    bin_reliability,
    calibration_error,
    compare_paired,
    find_threshold,
    fuse_ranks,
    refuse_below,
    score_ranking,
    trace_risk,
)

SCORER = Path(__file__).parents[3] / "shared" / "evals" / "score.py"


def test_a_ranking_is_scored_by_hand() -> None:
    score = score_ranking(["x", "a", "y", "z", "w", "b"], {"a", "b", "c"})
    assert (score.hit1, score.hit5, score.mrr10) == (0, 1, 0.5)
    ideal = 1 + 1 / math.log2(3) + 1 / math.log2(4)
    assert score.ndcg10 == pytest.approx((1 / math.log2(3) + 1 / math.log2(7)) / ideal)


def test_only_the_first_ten_count() -> None:
    pages = [f"p{number}" for number in range(10)] + ["a"]
    assert score_ranking(pages, {"a"}) == score_ranking([], {"a"})


def test_the_mean_of_nothing_is_nothing() -> None:
    assert average([]) is None
    both = average([score_ranking(["a"], {"a"}), score_ranking(["x"], {"a"})])
    assert both is not None and (both.n, both.hit1, both.ndcg10) == (2, 0.5, 0.5)


def test_rank_fusion_rewards_what_both_lists_have() -> None:
    # b: 1/62 + 1/61; a: 1/61; c: 1/62.
    assert fuse_ranks(["a", "b"], ["b", "c"]) == ["b", "a", "c"]
    assert fuse_ranks(["b"], ["a"]) == ["a", "b"], "a tie is broken by name"


def test_auc_counts_pairs_and_a_tie_as_half() -> None:
    assert area_under_curve([0.9, 0.5], [0.5, 0.1]) == pytest.approx((1 + 1 + 0.5 + 1) / 4)
    assert area_under_curve([0.1], [0.9]) == 0
    assert area_under_curve([], [0.1]) is None


def test_refusal_at_a_threshold() -> None:
    rates = refuse_below(0.5, answerable=[0.9, 0.8, 0.4, 0.5], unanswerable=[0.1, 0.6])
    assert (rates.precision, rates.recall, rates.false_refusal_rate) == (0.5, 0.5, 0.25)
    nothing = refuse_below(0.0, answerable=[0.9], unanswerable=[])
    assert (nothing.precision, nothing.recall, nothing.false_refusal_rate) == (None, None, 0)


def test_the_threshold_for_a_share_of_false_refusals() -> None:
    confidences = [number / 20 for number in range(20)]
    threshold = find_threshold(confidences, 0.05)
    assert refuse_below(threshold, confidences, []).false_refusal_rate == 0.05
    assert find_threshold([0.3, 0.4], 0.05) == 0.3, "too few to refuse any"


def test_reliability_and_its_error() -> None:
    bins = bin_reliability([0.05, 0.95, 0.93, 1.0], [False, True, True, False])
    assert [(one.low, one.count, round(one.confidence, 3), round(one.right, 3)) for one in bins] == [
        (0.0, 1, 0.05, 0.0),
        (0.9, 3, 0.96, 0.667),
    ]
    assert calibration_error(bins) == pytest.approx((0.05 + 3 * (0.96 - 2 / 3)) / 4)
    assert calibration_error([]) is None


def test_risk_grows_as_less_sure_answers_are_given() -> None:
    points = trace_risk([0.9, 0.7, 0.7, 0.1], [True, True, False, False])
    assert [(point.coverage, round(point.risk, 3)) for point in points] == [(0.25, 0), (0.75, 0.333), (1, 0.5)]


def test_a_paired_difference_has_the_same_interval_every_time() -> None:
    ours, theirs = [1.0, 1.0, 0.0, 1.0] * 10, [0.0, 1.0, 0.0, 1.0] * 10
    difference = compare_paired(ours, theirs)
    assert difference.mean == 0.25
    assert 0.10 <= difference.low < 0.25 < difference.high <= 0.40
    assert compare_paired(ours, theirs) == difference
    same = compare_paired(ours, ours)
    assert (same.mean, same.low, same.high) == (0, 0, 0)


@pytest.mark.skipif(not SCORER.is_file(), reason="../shared/evals is not here")
def test_the_same_figures_as_score_py(tmp_path: Path) -> None:
    """Random rankings with random gold pages, scored by both."""
    scorer = runpy.run_path(str(SCORER))
    rng = random.Random(3)
    pages = [f"p{number}" for number in range(30)]
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps({"id": page}) + "\n" for page in pages))
    queries, run = [], {}
    for number in range(120):
        answerable = number % 4 != 0
        gold = rng.sample(pages, rng.randint(1, 14)) if answerable else []
        name, kind = str(number), None if answerable else rng.choice(["off", "near"])
        queries.append({"id": name, "gold_ids": gold, "answers": [], "answerable": answerable, "neg_type": kind})
        run[name] = {"retrieved": rng.sample(pages, 12), "confidence": round(rng.random(), 1)}
    (tmp_path / "queries.jsonl").write_text("".join(json.dumps(query) + "\n" for query in queries))

    theirs = scorer["score"](str(tmp_path), run)
    ours = average([score_ranking(run[one["id"]]["retrieved"], one["gold_ids"]) for one in queries if one["gold_ids"]])
    assert ours is not None
    for name in ("n", "hit1", "hit5", "mrr10", "ndcg10"):
        assert round(getattr(ours, name), 3) == theirs["retrieval"][name]
    yes = [run[one["id"]]["confidence"] for one in queries if one["answerable"]]
    for kind in ("off", "near"):
        auc = area_under_curve(yes, [run[one["id"]]["confidence"] for one in queries if one["neg_type"] == kind])
        assert auc == pytest.approx(theirs["answerable_auc"][kind], abs=0.0006)
