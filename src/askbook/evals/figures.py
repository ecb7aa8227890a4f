"""What the runs come to: figures set by set, their mean, and what changed since the last run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from askbook import __version__
from askbook.answer.calibration import Origin
from askbook.answer.confidence import LEVELS
from askbook.evals.answers import AnswerFigures, measure_answers
from askbook.evals.measures import (
    Bin,
    Difference,
    RefusalRates,
    Retrieval,
    RiskPoint,
    area_under_curve,
    average,
    bin_reliability,
    calibration_error,
    compare_paired,
    find_threshold,
    percentile,
    refuse_below,
    trace_risk,
)
from askbook.evals.run import ASKBOOK, Asked, SetRun

FALSE_REFUSALS = 0.05
RISK_POINTS = 60
FACTS_LEAST = 0.1
"""A set with fewer questions whose answer can be held word for word is judged by its pages."""


@dataclass(frozen=True, slots=True)
class Latency:
    wall_p50_ms: float
    wall_p95_ms: float
    cpu_p50_ms: float
    cpu_p95_ms: float


@dataclass(frozen=True, slots=True)
class Check:
    """How many of the judged questions passed, and why the others did not."""

    questions: int
    passed: int
    share: float | None
    """None where nothing was judged."""
    missed: int
    """Answered, but no expected page among the five passages."""
    refused: int
    """Though the book answers."""
    answered: int
    """Though the book does not say."""


@dataclass(frozen=True, slots=True)
class Trust:
    """How far the confidence can be trusted, by what a reader is shown; what is refused is not shown."""

    judged_by: Literal["text", "page"]
    """A right answer holds a known one word for word; or, where the set knows none, its first citation is on a gold page."""
    unanswerable: Mapping[str, int]
    """How many questions of each kind."""
    auc: Mapping[str, float]
    """Answerable against each kind of unanswerable question, and against all of them."""
    refusal: RefusalRates | None
    """At the threshold that refuses one answerable question in twenty."""
    refused: Mapping[str, float]
    """The share refused at that threshold, by kind."""
    false_refusals: float | None
    """Of answerable questions, at the gate that users meet; and beside it the seed's rule on raw cosines."""
    raw_false_refusals: float | None
    own_refused: Mapping[str, float]
    """The share refused at that gate, by kind of unanswerable question."""
    raw_refused: Mapping[str, float]
    levels: Mapping[str, tuple[int, float]]
    """Level → how many answers, and the share of them that is right."""
    calibration_error: float | None
    """Of the chance that the text shown answers; so are the bins and the risk."""
    answerable_error: float | None
    """The same without the questions that the book does not answer: a sample holds more of these than the set."""
    bins: tuple[Bin, ...]
    risk: tuple[RiskPoint, ...]


@dataclass(frozen=True, slots=True)
class SetFigures:
    name: str
    embedder: str
    calibration: Origin
    notice: str | None
    """Why it is not the calibration that was asked for."""
    files: int
    chunks: int
    questions: int
    left_out: int
    """By the sample that was taken."""
    answerable: int
    check: Check
    retrieval: Mapping[str, Retrieval]
    """System → its figures; nothing where no question has a gold page."""
    follow_ups: Mapping[str, Retrieval]
    context_dependent: Mapping[str, Retrieval]
    gain: Mapping[str, Difference]
    """Our nDCG@10 less each baseline's, paired."""
    trust: Trust
    answers: AnswerFigures | None
    """None for conversations, and where no answers were asked for."""
    latency: Latency | None


@dataclass(frozen=True, slots=True)
class Changes:
    """Questions that the last run into the same folder judged otherwise, each as set and id."""

    became_right: tuple[tuple[str, str], ...] = ()
    became_wrong: tuple[tuple[str, str], ...] = ()
    compared: int = 0


@dataclass(frozen=True, slots=True)
class Figures:
    askbook: str
    measured_at: str
    sets: tuple[SetFigures, ...]
    mean: Mapping[str, Retrieval]
    """Over the sets of single questions, each counted once: what a conversation asks, it asks in context."""
    changes: Changes


def build_figures(runs: Sequence[SetRun], last: Mapping[tuple[str, str], bool]) -> Figures:
    sets = tuple(measure_set(run) for run in runs)
    return Figures(
        askbook=__version__,
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        sets=sets,
        mean=_average_sets(sets),
        changes=find_changes(runs, last),
    )


def measure_set(run: SetRun) -> SetFigures:
    with_gold = [one for one in run.asked if one.question.has_gold]
    return SetFigures(
        name=run.name,
        embedder=run.embedder,
        calibration=run.chosen.calibration.origin,
        notice=run.chosen.notice,
        files=run.files,
        chunks=run.chunks,
        questions=len(run.asked),
        left_out=run.left_out,
        answerable=len(with_gold),
        check=check_questions(run.asked),
        retrieval=_average_systems(run.systems, with_gold),
        follow_ups=_average_systems(run.systems, [one for one in with_gold if one.question.follow]),
        context_dependent=_average_systems(run.systems, [one for one in with_gold if one.question.context_dependent]),
        gain=_compare_systems(run.systems, with_gold),
        trust=measure_trust(run.asked),
        answers=measure_answers([(one.question, one.answered) for one in run.asked if one.answered is not None]),
        latency=_measure_latency(run.asked),
    )


def check_questions(asked: Sequence[Asked]) -> Check:
    passed = [one.passed for one in asked if one.passed is not None]
    failures = Counter(one.failure for one in asked)
    return Check(
        questions=len(passed),
        passed=sum(passed),
        share=_share(passed),
        missed=failures["missed"],
        refused=failures["refused"],
        answered=failures["answered"],
    )


def measure_trust(asked: Sequence[Asked]) -> Trust:
    answerable = [one.confidence for one in asked if one.question.answerable]
    by_kind: dict[str, list[float]] = {}
    for one in asked:
        if one.question.answerable is False:
            by_kind.setdefault(one.question.neg_type or "unanswerable", []).append(one.confidence)
    every = [confidence for confidences in by_kind.values() for confidence in confidences]
    threshold = find_threshold(answerable, FALSE_REFUSALS)
    kinds = {"all": every, **by_kind}
    by_text = (_share([bool(one.question.facts) for one in asked if one.question.answerable]) or 0.0) >= FACTS_LEAST
    by_text = by_text and all(one.answered for one in asked)
    given = [one for one in asked if not one.refused and _can_judge(one, by_text)]
    chances, right = [one.chance for one in given], [one.is_right(by_text) for one in given]
    bins = tuple(bin_reliability(chances, right))
    in_book = [one for one in given if one.question.answerable]
    return Trust(
        judged_by="text" if by_text else "page",
        unanswerable={kind: len(some) for kind, some in by_kind.items()},
        auc={kind: auc for kind, some in kinds.items() if (auc := area_under_curve(answerable, some)) is not None},
        refusal=refuse_below(threshold, answerable, every) if answerable and every else None,
        refused={
            kind: share
            for kind, some in by_kind.items()
            if (share := refuse_below(threshold, answerable, some).recall) is not None and answerable
        },
        false_refusals=_share([one.refused for one in asked if one.question.answerable]),
        raw_false_refusals=_share([_raw_refused(one) for one in asked if one.question.answerable]),
        own_refused=_share_by_kind(asked, lambda one: one.refused),
        raw_refused=_share_by_kind(asked, _raw_refused),
        levels=_measure_levels([one.level for one in given], right),
        calibration_error=calibration_error(bins),
        answerable_error=calibration_error(
            bin_reliability([one.chance for one in in_book], [one.is_right(by_text) for one in in_book])
        ),
        bins=bins,
        risk=_thin_out(trace_risk(chances, right)),
    )


def _can_judge(asked: Asked, by_text: bool) -> bool:
    """An answer to what the book does not say is wrong, whatever it holds."""
    question = asked.question
    return question.answerable is False or bool(question.facts if by_text else question.answerable)


def _raw_refused(asked: Asked) -> bool:
    return asked.raw_level == "insufficient"


def _share(flags: Sequence[bool]) -> float | None:
    return sum(flags) / len(flags) if flags else None


def _share_by_kind(asked: Sequence[Asked], holds: Callable[[Asked], bool]) -> dict[str, float]:
    by_kind: dict[str, list[bool]] = {}
    for one in asked:
        if one.question.answerable is False:
            by_kind.setdefault(one.question.neg_type or "unanswerable", []).append(holds(one))
    return {kind: sum(flags) / len(flags) for kind, flags in by_kind.items()}


def _measure_levels(levels: Sequence[str], right: Sequence[bool]) -> dict[str, tuple[int, float]]:
    by_level = {
        level: [is_right for one, is_right in zip(levels, right, strict=True) if one == level] for level, _, _ in LEVELS
    }
    return {level: (len(flags), sum(flags) / len(flags)) for level, flags in by_level.items() if flags}


def find_changes(runs: Sequence[SetRun], last: Mapping[tuple[str, str], bool]) -> Changes:
    """`last` tells of each question of the last run whether it passed."""
    now = {(run.name, one.question.id): one.passed for run in runs for one in run.asked if one.passed is not None}
    both = [key for key in now if key in last]
    return Changes(
        became_right=tuple(key for key in both if now[key] and not last[key]),
        became_wrong=tuple(key for key in both if last[key] and not now[key]),
        compared=len(both),
    )


def _average_systems(systems: Sequence[str], asked: Sequence[Asked]) -> dict[str, Retrieval]:
    means = {system: average([one.score(system) for one in asked]) for system in systems}
    return {system: mean for system, mean in means.items() if mean is not None}


def _compare_systems(systems: Sequence[str], asked: Sequence[Asked]) -> dict[str, Difference]:
    scores = {system: [one.score(system).ndcg10 for one in asked] for system in systems}
    return {
        system: compare_paired(scores[ASKBOOK], theirs)
        for system, theirs in scores.items()
        if system != ASKBOOK and theirs
    }


def _average_sets(sets: Sequence[SetFigures]) -> dict[str, Retrieval]:
    found = [one.retrieval for one in sets if one.retrieval and not one.follow_ups]
    systems = [system for system in (found[0] if found else ()) if all(system in one for one in found)]
    means = {system: average([one[system] for one in found]) for system in systems}
    return {system: mean for system, mean in means.items() if mean is not None}


def _measure_latency(asked: Sequence[Asked]) -> Latency | None:
    timings = [one.timing for one in asked if one.timing is not None]
    wall, cpu = [timing.wall_ms for timing in timings], [timing.cpu_ms for timing in timings]
    figures = [percentile(values, share) for values in (wall, cpu) for share in (50, 95)]
    return Latency(*(figure for figure in figures if figure is not None)) if timings else None


def _thin_out(points: Sequence[RiskPoint]) -> tuple[RiskPoint, ...]:
    """Enough points to draw; always the last, which is the risk of answering everything."""
    step = max(1, len(points) // RISK_POINTS)
    return tuple(point for at, point in enumerate(points) if at % step == 0 or at == len(points) - 1)
