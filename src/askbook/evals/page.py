"""The report as one HTML file: nothing is fetched, and whatever a book or a question says is shown as text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple
from html import escape
from importlib.resources import files

from askbook.answer.calibration import name_origin
from askbook.domain import Passage
from askbook.evals.figures import Changes, Figures, SetFigures
from askbook.evals.measures import Retrieval
from askbook.evals.plots import draw_bars, draw_reliability, draw_risk
from askbook.evals.run import ASKBOOK, Failure, Result, SetRun

WORST, NEAREST, SNIPPET = 15, 3, 260
CPU_BAR_MS = 700.0
FAILURES: Mapping[Failure, str] = {
    "missed": "No expected page among the first five passages",
    "refused": "Refused, though the book answers",
    "answered": "Answered, though the book does not say",
}
RIGHT = {
    "text": "a text that holds a known answer word for word (other wordings count as wrong)",
    "page": "an answer whose first citation, or the first page found, is an expected one",
}


def build_page(figures: Figures, runs: Sequence[SetRun]) -> str:
    style = files("askbook.evals").joinpath("report.css").read_text(encoding="utf-8")
    body = [
        "<h1>How well does askbook answer?</h1>",
        f'<p class="soft">askbook {escape(figures.askbook)}, {escape(figures.measured_at)}. A page counts at the place '
        "of its best passage. The search without reading, and the baselines, had the same chunks in the same run.</p>",
        _changes(figures.changes),
        _overview(figures),
        *(_set_section(measured, run) for measured, run in zip(figures.sets, runs, strict=True)),
    ]
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>askbook eval</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>\n{style}</style><body>{''.join(body)}</body></html>\n"
    )


# --- overview -------------------------------------------------------------------------------------


def _changes(changes: Changes) -> str:
    if not changes.compared:
        return ""
    parts = [f"<h2>Since the last run</h2><p>{changes.compared} questions were asked in both.</p>"]
    for title, keys in (("Became right", changes.became_right), ("Became wrong", changes.became_wrong)):
        rows = "".join(f'<li>{escape(name)} <span class="soft">({escape(where)})</span></li>' for where, name in keys)
        parts.append(f"<details><summary>{title}: {len(keys)}</summary><ul>{rows}</ul></details>")
    return "".join(parts)


def _overview(figures: Figures) -> str:
    found = {measured.name: measured.retrieval for measured in figures.sets if measured.retrieval}
    if len(found) > 1 and figures.mean:
        found["mean"] = figures.mean
    latencies = {measured.name: measured.latency for measured in figures.sets if measured.latency}
    names = ["wall p50", "wall p95", "CPU p50", "CPU p95"]
    times = {name: dict(zip(names, astuple(latency), strict=True)) for name, latency in latencies.items()}
    slowest = max((value for by_name in times.values() for value in by_name.values()), default=0.0)
    ndcg = {
        name: {system: retrieval.ndcg10 for system, retrieval in by_system.items()} for name, by_system in found.items()
    }
    return "".join(
        [
            "<h2>Set by set</h2>",
            _checks(figures),
            _retrieval_table(found),
            "<h3>nDCG@10</h3>",
            draw_bars(ndcg),
            "<h3>One question, in milliseconds</h3>",
            draw_bars(times, top=max(CPU_BAR_MS, math.ceil(slowest / 20) * 20), mark=CPU_BAR_MS),
            '<p class="note">From the words to the reply, embedding included (in conversations, to the ranked '
            f"passages); the dashed line is the {CPU_BAR_MS:.0f} ms of CPU that p95 should stay below.</p>",
        ]
    )


def _checks(figures: Figures) -> str:
    checks = {measured.name: measured.check for measured in figures.sets if measured.check.questions}
    rows: list[Sequence[str]] = []
    for name, check in checks.items():
        failed = map(str, (check.missed, check.refused, check.answered))
        rows.append((name, _Best(_share(check.share)), f"{check.passed} of {check.questions}", *failed))
    heads = ("set", "passed", "", "missed", "refused", "answered")
    note = (
        '<p class="note">A question passes when an expected page is among the first five passages and it is not '
        "refused; one that is not in the book, when it is refused. The others were missed, refused though the book "
        "answers, or answered though it does not.</p>"
    )
    return _table(heads, rows) + note if rows else ""


def _retrieval_table(found: Mapping[str, Mapping[str, Retrieval]]) -> str:
    rows: list[Sequence[str]] = []
    for name, by_system in found.items():
        best = max(retrieval.ndcg10 for retrieval in by_system.values())
        for system, retrieval in by_system.items():
            n, *others, ndcg = astuple(retrieval)
            shown = [*map(_share, others), _Best(_share(ndcg)) if ndcg == best else _share(ndcg)]
            rows.append((name if system == ASKBOOK else "", system, str(n), *shown))
    return _table(("set", "system", "n", "hit@1", "hit@5", "MRR@10", "nDCG@10"), rows, texts=2)


class _Best(str):
    """A figure to look at first."""


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> str:
    """The first columns are `texts`, the others numbers."""
    written: list[str] = []
    for tag, cells in (("th", heads), *(("td", cells) for cells in rows)):
        kinds = (
            "text" if at < texts else "best" if isinstance(cell, _Best) else "number" for at, cell in enumerate(cells)
        )
        row = (f'<{tag} class="{kind}">{escape(cell)}</{tag}>' for kind, cell in zip(kinds, cells, strict=True))
        written.append(f"<tr>{''.join(row)}</tr>")
    return f'<div class="scroll"><table>{"".join(written)}</table></div>'


# --- one set --------------------------------------------------------------------------------------


def _set_section(figures: SetFigures, run: SetRun) -> str:
    notice = f'<p class="bad">{escape(figures.notice)}</p>' if figures.notice else ""
    sample = f" (a sample: {figures.left_out} more were left out)" if figures.left_out else ""
    gains = [(name, f"{of.mean:+.3f}", f"{of.low:+.3f} to {of.high:+.3f}") for name, of in figures.gain.items()]
    in_threads = {"follow-ups": figures.follow_ups, "context-dependent": figures.context_dependent}
    in_threads = {name: by_system for name, by_system in in_threads.items() if by_system}
    return "".join(
        [
            f"<h2>{escape(figures.name)}</h2>",
            f'<p class="soft">{figures.files} files, {figures.chunks} chunks, {figures.questions} questions{sample}, '
            f"of which {figures.answerable} have an expected page. Embedder: {escape(figures.embedder)}. "
            f"Calibration: {escape(name_origin(run.chosen.calibration))}.</p>{notice}",
            _table(("nDCG@10, askbook less", "mean", "95 % of resamplings"), gains) if gains else "",
            f"<h3>Follow-up questions: askbook in their thread, the others alone</h3>{_retrieval_table(in_threads)}"
            if in_threads
            else "",
            _answers(figures),
            _trust(figures),
            *(
                _questions(title, [result for result in run.asked if result.failure == why])
                for why, title in FAILURES.items()
            ),
        ]
    )


def _answers(figures: SetFigures) -> str:
    """What readers are told, beside what the set knows."""
    answers = figures.answers
    if answers is None:
        return ""
    rows = [
        (f"holds the known answer, {form}", str(n), _share(share)) for form, (n, share) in answers.contained.items()
    ]
    rows += [
        ("first citation on a gold page", str(answers.answered), _share(answers.first_citation)),
        ("citations verbatim in their file", str(answers.citations), _share(answers.verbatim)),
    ]
    return f"<h3>Answers</h3>{_table(('', 'n', 'share'), rows)}"


def _trust(figures: SetFigures) -> str:
    trust = figures.trust
    refused = {"all": trust.refusal.recall if trust.refusal else None, **trust.refused}
    counts = {"all": sum(trust.unanswerable.values()), **trust.unanswerable}
    rows = [(kind, str(counts[kind]), f"{auc:.3f}", _share(refused.get(kind))) for kind, auc in trust.auc.items()]
    kinds = {"answerable, falsely": (trust.false_refusals, trust.raw_false_refusals)}
    kinds |= {kind: (share, trust.raw_refused.get(kind)) for kind, share in trust.own_refused.items()}
    gate = [(kind, _share(ours), _share(raw)) for kind, (ours, raw) in kinds.items()]
    levels = [(level, str(count), _share(right)) for level, (count, right) in trust.levels.items()]
    return "".join(
        [
            "<h3>Confidence</h3>",
            _table(("against", "n", "AUC", "refused at 5 % false refusals"), rows) if rows else "",
            # What users meet, beside the seed's rule on raw cosines.
            _table(("refused", "askbook", "raw cosines"), gate),
            f'<p class="note">Of what is shown, right is {RIGHT[trust.judged_by]}.</p>',
            _table(("level", "answers", "right"), levels) if levels else "",
            '<div class="plots">',
            f"<figure>{draw_reliability(trust.bins)}<figcaption>Reliability; expected calibration error "
            f"{_share(trust.calibration_error)}, of answerable questions {_share(trust.answerable_error)}. "
            "A larger dot is more answers.</figcaption></figure>",
            f"<figure>{draw_risk(trust.risk)}<figcaption>Risk and coverage: the share of wrong answers among the "
            "surest.</figcaption></figure>",
            "</div>",
        ]
    )


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _questions(title: str, results: Sequence[Result]) -> str:
    if not results:
        return ""
    surest = sorted(results, key=lambda result: -result.confidence)[:WORST]
    of = f"{len(results)}" if len(surest) == len(results) else f"the surest {len(surest)} of {len(results)}"
    return f"<h3>{title} ({of})</h3>{''.join(map(_question, surest))}"


def _question(result: Result) -> str:
    question = result.question
    expected = ", ".join(f"<code>{escape(page)}</code>" for page in sorted(question.gold)[:NEAREST])
    more = f" and {len(question.gold) - NEAREST} more" if len(question.gold) > NEAREST else ""
    wanted = (
        f"Expected: {expected}{more}" if question.gold else f"Expected: nothing ({escape(question.neg_type or '')})"
    )
    found = "".join(map(_passage, result.passages[:NEAREST])) or "<p>Nothing was found.</p>"
    before = "".join(f'<p class="soft">before: {escape(text)}</p>' for text in question.history[-3:])
    note = f'<p class="soft">{escape(question.note)}</p>' if question.note else ""
    return (
        f'<details><summary>{escape(question.question)} <span class="soft">{result.confidence:.2f}</span></summary>'
        f"{before}{note}<p>{wanted}</p>{found}</details>"
    )


def _passage(passage: Passage) -> str:
    chunk = passage.chunk
    text = chunk.text if len(chunk.text) <= SNIPPET else f"{chunk.text[:SNIPPET]}…"
    place = f"{chunk.source_file}:{chunk.first_line}–{chunk.last_line}"
    return (
        f'<p>{passage.rank}. {escape(chunk.way)} <span class="soft">{passage.score:.2f}, '
        f"<code>{escape(place)}</code></span></p><blockquote>{escape(text)}</blockquote>"
    )
