"""The report as one HTML file: nothing is fetched, and whatever a book or a question says is shown as text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from askbook.answer.calibration import name_origin
from askbook.domain import Passage
from askbook.evals.figures import Changes, Figures, SetFigures
from askbook.evals.measures import Retrieval
from askbook.evals.plots import draw_bars, draw_reliability, draw_risk
from askbook.evals.run import ASKBOOK, Asked, Failure, SetRun

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

STYLE = """
:root { --ink: #1c2024; --soft: #60676e; --paper: #fff; --card: #f6f7f8; --rule: #dfe3e6;
  --c0: #1f6feb; --c1: #b0b7be; --c2: #d9a441; --c3: #5fa777; --c4: #a06fc4; --c5: #c66a6a; --bad: #b3261e; color-scheme: light dark; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8ea; --soft: #9aa3ab; --paper: #14171a; --card: #1d2125;
  --rule: #343a40; --c0: #589bff; --c1: #6b747c; --c2: #d0a04c; --c3: #6fbf8a; --c4: #b98fd8; --c5: #d98c8c; --bad: #ff8a80; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 68rem; margin: 0 auto; padding: 1.5rem; overflow-wrap: break-word; }
h1, h2, h3 { line-height: 1.2; } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--rule); padding-bottom: .3rem; }
p.note, .soft, td.soft { color: var(--soft); } .scroll { overflow-x: auto; margin: .8rem 0; } .plots { display: flex; flex-wrap: wrap; gap: 1.5rem 2.5rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; } th, td { padding: .25rem .7rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--rule); }
th { white-space: normal; vertical-align: bottom; min-width: 2.6rem; }
th.text, td.text { text-align: left; } td.best { font-weight: 700; } .bad { color: var(--bad); }
svg { width: 100%; height: auto; display: block; overflow: visible; } figure { margin: 0; width: 17rem; } figcaption { margin-top: .3rem; } svg text { font-size: 11px; fill: var(--soft); }
.grid { stroke: var(--rule); } .mark { stroke: var(--soft); stroke-dasharray: 4 4; } .frame { fill: none; stroke: var(--rule); }
.line { fill: none; stroke: var(--c0); stroke-width: 2; } .thread { fill: none; stroke: var(--c0); stroke-opacity: .35; } .dot { fill: var(--c0); fill-opacity: .75; }
rect.c0 { fill: var(--c0); } rect.c1 { fill: var(--c1); } rect.c2 { fill: var(--c2); } rect.c3 { fill: var(--c3); } rect.c4 { fill: var(--c4); } rect.c5 { fill: var(--c5); }
.legend { margin: .5rem 0; } .key { display: inline-block; margin-right: 1rem; } .key::before { content: ""; display: inline-block; width: .8em; height: .8em; margin-right: .4em; border-radius: 2px; }
.key.c0::before { background: var(--c0); } .key.c1::before { background: var(--c1); } .key.c2::before { background: var(--c2); } .key.c3::before { background: var(--c3); } .key.c4::before { background: var(--c4); } .key.c5::before { background: var(--c5); }
details { background: var(--card); border-radius: 6px; padding: .5rem .9rem; margin: .5rem 0; } summary { cursor: pointer; } blockquote { margin: .2rem 0 .7rem; padding-left: .8rem; border-left: 3px solid var(--rule); white-space: pre-wrap; overflow-wrap: anywhere; }
code { overflow-wrap: anywhere; }
@media (max-width: 40rem) { body { padding: 1rem; } table { font-size: 13px; } th, td { padding: .2rem .35rem; } h1 { font-size: 1.6rem; } }
"""


def build_page(figures: Figures, runs: Sequence[SetRun]) -> str:
    body = [
        "<h1>How well does askbook answer?</h1>",
        f'<p class="soft">askbook {escape(figures.askbook)}, {escape(figures.measured_at)}. A page counts at the place '
        "of its best passage. The search without reading, and the baselines, had the same chunks in the same run.</p>",
        _changes(figures.changes),
        _overview(figures),
        *(_set_section(one, run) for one, run in zip(figures.sets, runs, strict=True)),
    ]
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>askbook eval</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style><body>{''.join(body)}</body></html>\n"
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
    found = {one.name: one.retrieval for one in figures.sets if one.retrieval}
    if len(found) > 1 and figures.mean:
        found["mean"] = figures.mean
    latencies = {one.name: one.latency for one in figures.sets if one.latency}
    times = {
        name: {"wall p50": one.wall_p50_ms, "wall p95": one.wall_p95_ms, "CPU p50": one.cpu_p50_ms, "CPU p95": one.cpu_p95_ms}
        for name, one in latencies.items()
    }  # fmt: skip
    slowest = max((value for one in times.values() for value in one.values()), default=0.0)
    return "".join(
        [
            "<h2>Set by set</h2>",
            _checks(figures),
            _retrieval_table(found),
            "<h3>nDCG@10</h3>",
            draw_bars({name: {system: one.ndcg10 for system, one in by.items()} for name, by in found.items()}),
            "<h3>One question, in milliseconds</h3>",
            draw_bars(times, top=max(CPU_BAR_MS, math.ceil(slowest / 20) * 20), mark=CPU_BAR_MS),
            f'<p class="note">From the words to the reply, embedding included (in conversations, to the ranked passages); the '
            f"dashed line is the {CPU_BAR_MS:.0f} ms of CPU that p95 should stay below.</p>",
        ]
    )


def _checks(figures: Figures) -> str:
    checks = {one.name: one.check for one in figures.sets if one.check.questions}
    rows = [
        (name, _Best(_share(one.share)), f"{one.passed} of {one.questions}", f"{one.missed}", f"{one.refused}", f"{one.answered}")
        for name, one in checks.items()
    ]  # fmt: skip
    heads = ("set", "passed", "", "missed", "refused", "answered")
    note = (
        '<p class="note">A question passes when an expected page is among the first five passages and it is not '
        "refused; one that is not in the book, when it is refused. The others were missed, refused though the book answers, "
        "or answered though it does not.</p>"
    )
    return _table(heads, rows) + note if rows else ""


def _retrieval_table(found: Mapping[str, Mapping[str, Retrieval]]) -> str:
    rows: list[Sequence[str]] = []
    for name, by_system in found.items():
        best = max(one.ndcg10 for one in by_system.values())
        for system, one in by_system.items():
            figures = [f"{value:.3f}" for value in (one.hit1, one.hit5, one.mrr10)]
            ndcg = _Best(f"{one.ndcg10:.3f}") if one.ndcg10 == best else f"{one.ndcg10:.3f}"
            rows.append((name if system == ASKBOOK else "", system, str(one.n), *figures, ndcg))
    return _table(("set", "system", "n", "hit@1", "hit@5", "MRR@10", "nDCG@10"), rows, texts=2)


class _Best(str):
    """A figure to look at first."""


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> str:
    """The first columns are `texts`, the others numbers."""
    head, *body = (
        "".join(_cell(tag, cell, at < texts) for at, cell in enumerate(cells))
        for tag, cells in (("th", heads), *(("td", cells) for cells in rows))
    )
    return f'<div class="scroll"><table><tr>{head}</tr>{"".join(f"<tr>{row}</tr>" for row in body)}</table></div>'


def _cell(tag: str, cell: str, is_text: bool) -> str:
    kind = "text" if is_text else "best" if isinstance(cell, _Best) else "number"
    return f'<{tag} class="{kind}">{escape(cell)}</{tag}>'


# --- one set --------------------------------------------------------------------------------------


def _set_section(figures: SetFigures, run: SetRun) -> str:
    notice = f'<p class="bad">{escape(figures.notice)}</p>' if figures.notice else ""
    sample = f" (a sample: {figures.left_out} more were left out)" if figures.left_out else ""
    return "".join(
        [
            f"<h2>{escape(figures.name)}</h2>",
            f'<p class="soft">{figures.files} files, {figures.chunks} chunks, {figures.questions} questions{sample}, of which '
            f"{figures.answerable} have an expected page. Embedder: {escape(figures.embedder)}. "
            f"Calibration: {escape(name_origin(run.chosen.calibration))}.</p>{notice}",
            _gains(figures),
            _follow_ups(figures),
            _answers(figures),
            _trust(figures),
            *(_questions(title, [one for one in run.asked if one.failure == why]) for why, title in FAILURES.items()),
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


def _gains(figures: SetFigures) -> str:
    rows = [
        (system, f"{gain.mean:+.3f}", f"{gain.low:+.3f} to {gain.high:+.3f}") for system, gain in figures.gain.items()
    ]
    return _table(("nDCG@10, askbook less", "mean", "95 % of resamplings"), rows) if rows else ""


def _follow_ups(figures: SetFigures) -> str:
    found = {"follow-ups": figures.follow_ups, "context-dependent": figures.context_dependent}
    found = {name: by_system for name, by_system in found.items() if by_system}
    return (
        f"<h3>Follow-up questions: askbook in their thread, the others alone</h3>{_retrieval_table(found)}"
        if found
        else ""
    )


def _trust(figures: SetFigures) -> str:
    trust = figures.trust
    refused = {"all": trust.refusal.recall if trust.refusal else None, **trust.refused}
    counts = {"all": sum(trust.unanswerable.values()), **trust.unanswerable}
    rows = [(kind, str(counts[kind]), f"{auc:.3f}", _share(refused.get(kind))) for kind, auc in trust.auc.items()]
    return "".join(
        [
            "<h3>Confidence</h3>",
            _table(("against", "n", "AUC", "refused at 5 % false refusals"), rows) if rows else "",
            _gate(figures),
            f'<p class="note">Of what is shown, right is {RIGHT[trust.judged_by]}.</p>',
            _levels(figures),
            '<div class="plots">',
            f"<figure>{draw_reliability(trust.bins)}<figcaption>Reliability; expected calibration error "
            f"{_share(trust.calibration_error)}, of answerable questions {_share(trust.answerable_error)}. A larger dot is more answers.</figcaption></figure>",
            f"<figure>{draw_risk(trust.risk)}<figcaption>Risk and coverage: the share of wrong answers among the "
            "surest.</figcaption></figure>",
            "</div>",
        ]
    )


def _gate(figures: SetFigures) -> str:
    """What users meet, beside the seed's rule on raw cosines."""
    trust = figures.trust
    kinds = {"answerable, falsely": (trust.false_refusals, trust.raw_false_refusals)}
    kinds |= {kind: (share, trust.raw_refused.get(kind)) for kind, share in trust.own_refused.items()}
    rows = [(kind, _share(ours), _share(raw)) for kind, (ours, raw) in kinds.items()]
    return _table(("refused", "askbook", "raw cosines"), rows)


def _levels(figures: SetFigures) -> str:
    rows = [(level, str(count), _share(right)) for level, (count, right) in figures.trust.levels.items()]
    return _table(("level", "answers", "right"), rows) if rows else ""


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _questions(title: str, asked: Sequence[Asked]) -> str:
    if not asked:
        return ""
    surest = sorted(asked, key=lambda one: -one.confidence)[:WORST]
    of = f"{len(asked)}" if len(surest) == len(asked) else f"the surest {len(surest)} of {len(asked)}"
    return f"<h3>{title} ({of})</h3>{''.join(map(_question, surest))}"


def _question(asked: Asked) -> str:
    question = asked.question
    expected = ", ".join(f"<code>{escape(page)}</code>" for page in sorted(question.gold)[:NEAREST])
    more = f" and {len(question.gold) - NEAREST} more" if len(question.gold) > NEAREST else ""
    wanted = (
        f"Expected: {expected}{more}" if question.gold else f"Expected: nothing ({escape(question.neg_type or '')})"
    )
    found = "".join(map(_passage, asked.passages[:NEAREST])) or "<p>Nothing was found.</p>"
    before = "".join(f'<p class="soft">before: {escape(text)}</p>' for text in question.history[-3:])
    note = f'<p class="soft">{escape(question.note)}</p>' if question.note else ""
    return (
        f'<details><summary>{escape(question.question)} <span class="soft">{asked.confidence:.2f}</span></summary>'
        f"{before}{note}<p>{wanted}</p>{found}</details>"
    )


def _passage(passage: Passage) -> str:
    chunk = passage.chunk
    text = chunk.text if len(chunk.text) <= SNIPPET else f"{chunk.text[:SNIPPET]}…"
    place = f"{chunk.source_file}:{chunk.first_line}–{chunk.last_line}"
    return (
        f'<p>{passage.rank}. {escape(" › ".join(chunk.heading_path))} <span class="soft">{passage.score:.2f}, '
        f"<code>{escape(place)}</code></span></p><blockquote>{escape(text)}</blockquote>"
    )
