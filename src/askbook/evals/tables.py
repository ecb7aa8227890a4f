"""The figures as tables of words, which the terminal and the report both show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from askbook.evals.figures import Check, Figures, SetFigures
from askbook.evals.measures import Retrieval
from askbook.evals.run import ASKBOOK

RIGHT = {
    "text": "a text that holds a known answer word for word (other wordings count as wrong)",
    "page": "an answer whose first citation, or the first page found, is an expected one",
}

Row = Sequence[str]


@dataclass(frozen=True, slots=True)
class Table:
    texts: Row
    """The heads of its first columns, which hold words, and …"""
    numbers: Row
    """… of the others."""
    rows: Sequence[Row]


def build_tables(figures: Figures) -> list[Table]:
    """Those that have something to tell. The first row of a set has its name, and what is of the whole set."""
    tables = [
        Table(
            ("set", "system"),
            ("n", "hit@1", "hit@5", "MRR@10", "nDCG@10", "AUC", "p50 ms", "p95 ms", "CPU p95"),
            [*_each(figures, _tell_retrieval), *_tell_systems("mean", figures.mean if len(figures.sets) > 1 else {})],
        ),
        Table(("set", "nDCG@10, askbook less"), ("mean", "95 % of resamplings"), _each(figures, _tell_gain)),
        Table(
            ("set", "asked"),
            ("n", "AUC", "refused at 5 % false refusals", "refused", "by raw cosines"),
            _each(figures, _tell_refusals),
        ),
        Table(
            ("set", "level"),
            ("answers", "right", "calibration error", "of answerable questions", "judged by"),
            _each(figures, _tell_levels),
        ),
        Table(
            ("set", "form"),
            ("n", "holds the answer", "first citation", "verbatim", "words"),
            _each(figures, _tell_answers),
        ),
    ]
    return [table for table in tables if table.rows]


def tell_check(name: str, check: Check) -> str:
    reasons = {
        "not among the first five passages": check.missed,
        "refused though the book answers": check.refused,
        "answered though it does not": check.answered,
    }
    failed = ", ".join(f"{count} {reason}" for reason, count in reasons.items() if count)
    passed = f"{name}: {check.passed} of {check.questions} questions passed ({_share(check.share)})"
    return f"{passed}: {failed}" if failed else passed


def _each(figures: Figures, tell: Callable[[SetFigures], Iterable[Row]]) -> list[Row]:
    return [row for measured in figures.sets for row in tell(measured)]


def _tell_retrieval(figures: SetFigures) -> Iterator[Row]:
    latency = figures.latency
    times = (latency.wall_p50_ms, latency.wall_p95_ms, latency.cpu_p95_ms) if latency else (None, None, None)
    own = (_share(figures.trust.auc.get("all")), *map(_whole, times))
    yield from _tell_systems(figures.name, figures.retrieval, own)
    yield from _tell_systems("  follow-ups", figures.follow_ups)
    yield from _tell_systems("  in context", figures.context_dependent)


def _tell_systems(name: str, found: Mapping[str, Retrieval], own: Row = ("",) * 4) -> Iterator[Row]:
    for system, of in found.items():
        ours = system == ASKBOOK
        shares = map(_share, (of.hit1, of.hit5, of.mrr10, of.ndcg10))
        yield (name if ours else "", system, str(of.n), *shares, *(own if ours else ("",) * 4))


def _tell_gain(figures: SetFigures) -> Iterator[Row]:
    rows = [(name, f"{of.mean:+.3f}", f"{of.low:+.3f} to {of.high:+.3f}") for name, of in figures.gain.items()]
    return _group(figures.name, rows)


def _tell_refusals(figures: SetFigures) -> Iterator[Row]:
    """How well the confidence tells what the book does not answer, and the gate that users meet beside the seed's."""
    trust = figures.trust
    rows = [
        (kind, str(n), *map(_share, (trust.auc.get(kind), trust.refused.get(kind), refused, trust.raw_refused[kind])))
        for kind, n in trust.unanswerable.items()
        for refused in [trust.own_refused[kind]]
    ]
    if trust.false_refusals is not None:
        falsely = map(_share, (trust.false_refusals, trust.raw_false_refusals))
        rows.append(("answerable, falsely", "", "", "", *falsely))
    return _group(figures.name, rows)


def _tell_levels(figures: SetFigures) -> Iterator[Row]:
    trust = figures.trust
    rows = [(level, str(n), _share(right)) for level, (n, right) in trust.levels.items()]
    errors = map(_share, (trust.calibration_error, trust.answerable_error))
    return _group(figures.name, rows, (*errors, trust.judged_by))


def _tell_answers(figures: SetFigures) -> Iterator[Row]:
    """What readers are told: whether it holds the known answer, and where its first citation leads."""
    answers = figures.answers
    if answers is None:
        return iter(())
    rows = [(form, str(n), _share(held)) for form, (n, held) in answers.contained.items()] or [("", "", "")]
    return _group(figures.name, rows, (*map(_share, (answers.first_citation, answers.verbatim)), _whole(answers.words)))


def _group(name: str, rows: Iterable[Row], own: Row = ()) -> Iterator[Row]:
    for at, row in enumerate(rows):
        yield ("", *row, *("" for _ in own)) if at else (name, *row, *own)


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _whole(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f}"
