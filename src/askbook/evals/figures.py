"""The figures of the runs: set by set, their mean, and what changed since the last run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from statistics import fmean
from typing import Literal, get_args

import numpy as np

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
    refuse_below,
    share_of,
    trace_risk,
)
from askbook.evals.run import ASKBOOK, Failure, Result, SetRun

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
    """Refused, though the book answers."""
    answered: int
    """Answered, though the book does not say."""


@dataclass(frozen=True, slots=True)
class Trust:
    """How far the confidence can be trusted, by what a reader is shown; what is refused is not shown."""

    judged_by: Literal["text", "page"]
    """A right answer holds a known one word for word; or, where none is known, its first citation is on a gold page."""
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
    """askbook's nDCG@10 minus each baseline's, paired."""
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
    found = [figures.retrieval for figures in sets if figures.retrieval and not figures.follow_ups]
    systems = [system for system in (found[0] if found else ()) if all(system in retrieval for retrieval in found)]
    mean = {system: score for system in systems if (score := average([retrieval[system] for retrieval in found]))}
    return Figures(
        askbook=__version__,
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        sets=sets,
        mean=mean,
        changes=find_changes(runs, last),
    )


def measure_set(run: SetRun) -> SetFigures:
    with_gold = [result for result in run.asked if result.question.has_gold]
    dependent = [result for result in with_gold if result.question.context_dependent]
    return SetFigures(
        **{name: getattr(run, name) for name in ("name", "embedder", "files", "chunks", "left_out")},
        calibration=run.chosen.calibration.origin,
        notice=run.chosen.notice,
        questions=len(run.asked),
        answerable=len(with_gold),
        check=check_questions(run.asked),
        retrieval=_average_systems(run.systems, with_gold),
        follow_ups=_average_systems(run.systems, [result for result in with_gold if result.question.follow]),
        context_dependent=_average_systems(run.systems, dependent),
        gain=_compare_systems(run.systems, with_gold),
        trust=measure_trust(run.asked),
        answers=measure_answers([(result.question, result.answered) for result in run.asked if result.answered]),
        latency=_measure_latency(run.asked),
    )


def check_questions(results: Sequence[Result]) -> Check:
    passed = [result.passed for result in results if result.passed is not None]
    failures = Counter(result.failure for result in results if result.failure)
    by_failure = {failure: failures[failure] for failure in get_args(Failure)}
    return Check(questions=len(passed), passed=sum(passed), share=share_of(passed), **by_failure)


def measure_trust(results: Sequence[Result]) -> Trust:
    answerable = [result for result in results if result.question.answerable]
    by_kind: dict[str, list[Result]] = {}
    for result in results:
        if result.question.answerable is False:
            by_kind.setdefault(result.question.neg_type or "unanswerable", []).append(result)
    sure = [result.confidence for result in answerable]
    unsure = {kind: [result.confidence for result in some] for kind, some in by_kind.items()}
    every = [confidence for confidences in unsure.values() for confidence in confidences]
    judged = {"all": every, **unsure} if sure and every else dict[str, list[float]]()
    threshold = find_threshold(sure, FALSE_REFUSALS)
    known = share_of([bool(result.question.facts) for result in answerable]) or 0.0
    by_text = known >= FACTS_LEAST and all(result.answered for result in results)
    given = [result for result in results if not result.refused and _can_judge(result, by_text)]
    chances, right = [result.chance for result in given], [result.is_right(by_text) for result in given]
    bins = tuple(bin_reliability(chances, right))
    in_book = [result for result in given if result.question.answerable]
    risk = trace_risk(chances, right)
    step = max(1, len(risk) // RISK_POINTS)
    return Trust(
        judged_by="text" if by_text else "page",
        unanswerable={kind: len(some) for kind, some in by_kind.items()},
        auc={kind: area_under_curve(sure, some) or 0.0 for kind, some in judged.items()},
        refusal=refuse_below(threshold, sure, every) if sure and every else None,
        refused={
            kind: refuse_below(threshold, sure, some).recall or 0.0 for kind, some in judged.items() if kind != "all"
        },
        false_refusals=share_of([result.refused for result in answerable]),
        raw_false_refusals=share_of([result.refused_raw for result in answerable]),
        own_refused={kind: fmean(result.refused for result in some) for kind, some in by_kind.items()},
        raw_refused={kind: fmean(result.refused_raw for result in some) for kind, some in by_kind.items()},
        levels={
            level: (len(flags), fmean(flags))
            for level, _, _ in LEVELS
            if (flags := [is_right for result, is_right in zip(given, right, strict=True) if result.level == level])
        },
        calibration_error=calibration_error(bins),
        answerable_error=calibration_error(
            bin_reliability([result.chance for result in in_book], [result.is_right(by_text) for result in in_book])
        ),
        bins=bins,
        # Enough points to draw; always the last, which is the risk of answering everything.
        risk=tuple(point for at, point in enumerate(risk) if at % step == 0 or at == len(risk) - 1),
    )


def _can_judge(result: Result, by_text: bool) -> bool:
    """An answer to what the book does not say is wrong, whatever it holds."""
    question = result.question
    return question.answerable is False or bool(question.facts if by_text else question.answerable)


def find_changes(runs: Sequence[SetRun], last: Mapping[tuple[str, str], bool]) -> Changes:
    """`last`: whether each question of the last run passed."""
    judged = ((run.name, result) for run in runs for result in run.asked)
    now = {(name, result.question.id): result.passed for name, result in judged if result.passed is not None}
    both = [key for key in now if key in last]
    return Changes(
        became_right=tuple(key for key in both if now[key] and not last[key]),
        became_wrong=tuple(key for key in both if last[key] and not now[key]),
        compared=len(both),
    )


def _average_systems(systems: Sequence[str], results: Sequence[Result]) -> dict[str, Retrieval]:
    return {system: mean for system in systems if (mean := average([result.score(system) for result in results]))}


def _compare_systems(systems: Sequence[str], results: Sequence[Result]) -> dict[str, Difference]:
    scores = {system: [result.score(system).ndcg10 for result in results] for system in systems}
    return {
        system: compare_paired(scores[ASKBOOK], theirs)
        for system, theirs in scores.items()
        if system != ASKBOOK and theirs
    }


def _measure_latency(results: Sequence[Result]) -> Latency | None:
    timings = [astuple(result.timing) for result in results if result.timing is not None]
    if not timings:
        return None
    wall, cpu = np.percentile(timings, [50, 95], axis=0).T.tolist()
    return Latency(*wall, *cpu)
