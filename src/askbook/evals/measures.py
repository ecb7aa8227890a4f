"""The figures, as pure functions: of a ranking, of a confidence, and how sure we are of a difference."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import astuple, dataclass
from statistics import fmean

import numpy as np

DEPTH = 10
BOOTSTRAP_ROUNDS, BOOTSTRAP_SEED = 2000, 20_240_117
BINS = 10


@dataclass(frozen=True, slots=True)
class Retrieval:
    """One ranking against its gold pages, or the mean over `n` of them."""

    n: int
    hit1: float
    hit5: float
    mrr10: float
    ndcg10: float


@dataclass(frozen=True, slots=True)
class Difference:
    """The mean of a paired difference, and the interval that holds it in 95 % of resamplings."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class RefusalRates:
    """What a threshold on the confidence would refuse; a rate without anything to divide by is None."""

    threshold: float
    precision: float | None
    recall: float | None
    false_refusal_rate: float | None


@dataclass(frozen=True, slots=True)
class Bin:
    """The answers whose confidence lies in [low, high): how sure they were, and how often they were right."""

    low: float
    high: float
    count: int
    confidence: float
    right: float


@dataclass(frozen=True, slots=True)
class RiskPoint:
    """Answering the surest `coverage` of all questions, `risk` of these answers are wrong."""

    coverage: float
    risk: float


# --- ranking --------------------------------------------------------------------------------------


def score_ranking(pages: Sequence[str], gold: Collection[str]) -> Retrieval:
    """Binary gain, the first ten pages; the same definitions as the development sets' own score.py."""
    top = pages[:DEPTH]
    found = [at for at, page in enumerate(top) if page in gold]
    gains = [1 / math.log2(at + 2) for at in range(DEPTH)]
    ideal = sum(gains[: len(gold)])
    return Retrieval(
        n=1,
        hit1=float(0 in found),
        hit5=float(any(at < 5 for at in found)),
        mrr10=1 / (found[0] + 1) if found else 0.0,
        ndcg10=sum(gains[at] for at in found) / ideal if ideal else 0.0,
    )


def average(scores: Sequence[Retrieval]) -> Retrieval | None:
    if not scores:
        return None
    _, *columns = zip(*map(astuple, scores), strict=True)
    return Retrieval(len(scores), *map(fmean, columns))


def fuse_ranks(*rankings: Sequence[str], k: int = 60) -> list[str]:
    """Reciprocal rank fusion; ties by name."""
    scores: dict[str, float] = {}
    for ranking in rankings:
        for rank, name in enumerate(ranking, start=1):
            scores[name] = scores.get(name, 0.0) + 1 / (k + rank)
    return sorted(scores, key=lambda name: (-scores[name], name))


def compare_paired(ours: Sequence[float], theirs: Sequence[float]) -> Difference:
    """`ours - theirs`, question by question, resampled with a fixed seed."""
    differences = np.asarray(ours, dtype=float) - np.asarray(theirs, dtype=float)
    rng, count = np.random.default_rng(BOOTSTRAP_SEED), len(differences)
    rounds = rng.integers(0, count, size=(BOOTSTRAP_ROUNDS, count))
    low, high = np.percentile(differences[rounds].mean(axis=1), [2.5, 97.5])
    return Difference(float(differences.mean()), float(low), float(high))


# --- confidence -----------------------------------------------------------------------------------


def area_under_curve(answerable: Sequence[float], unanswerable: Sequence[float]) -> float | None:
    """How often an answerable question gets the higher confidence of a random pair; a tie counts one half."""
    if not answerable or not unanswerable:
        return None
    higher = np.sign(np.subtract.outer(np.asarray(answerable), np.asarray(unanswerable)))
    return float(higher.mean() + 1) / 2


def refuse_below(threshold: float, answerable: Sequence[float], unanswerable: Sequence[float]) -> RefusalRates:
    """The rates if every question with a confidence below the threshold were refused."""
    caught = sum(confidence < threshold for confidence in unanswerable)
    wronged = sum(confidence < threshold for confidence in answerable)
    return RefusalRates(
        threshold=threshold,
        precision=caught / (caught + wronged) if caught + wronged else None,
        recall=caught / len(unanswerable) if unanswerable else None,
        false_refusal_rate=wronged / len(answerable) if answerable else None,
    )


def find_threshold(answerable: Sequence[float], rate: float = 0.05) -> float:
    """The highest threshold that refuses at most this share of the answerable questions."""
    if not answerable:
        return 0.0
    return sorted(answerable)[math.floor(rate * len(answerable))]


def bin_reliability(confidences: Sequence[float], right: Sequence[bool]) -> list[Bin]:
    """Bins of equal width over 0 to 1; the empty ones are left out."""
    members: defaultdict[int, list[tuple[float, bool]]] = defaultdict(list)
    for confidence, is_right in zip(confidences, right, strict=True):
        members[min(max(int(confidence * BINS), 0), BINS - 1)].append((confidence, is_right))
    return [
        Bin(number / BINS, (number + 1) / BINS, len(answers), *map(fmean, zip(*answers, strict=True)))
        for number, answers in sorted(members.items())
    ]


def calibration_error(bins: Sequence[Bin]) -> float | None:
    """The expected calibration error: how far confidence is from the share that was right, on average."""
    total = sum(group.count for group in bins)
    return sum(group.count * abs(group.confidence - group.right) for group in bins) / total if total else None


def trace_risk(confidences: Sequence[float], right: Sequence[bool]) -> list[RiskPoint]:
    """From the surest answer on; answers of the same confidence are given or held back together."""
    ordered = sorted(zip(confidences, right, strict=True), key=lambda pair: -pair[0])
    points: list[RiskPoint] = []
    wrong = 0
    for count, (confidence, is_right) in enumerate(ordered, start=1):
        wrong += not is_right
        if count == len(ordered) or ordered[count][0] != confidence:
            points.append(RiskPoint(count / len(ordered), wrong / count))
    return points


def share_of(flags: Sequence[bool]) -> float | None:
    return sum(flags) / len(flags) if flags else None
