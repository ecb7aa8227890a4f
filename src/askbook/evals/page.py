"""The report as one HTML file: nothing is fetched, and whatever a book or a question says is shown as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from askbook.domain import Passage
from askbook.evals.figures import Changes, Figures, SetFigures
from askbook.evals.measures import Retrieval
from askbook.evals.plots import draw_bars, draw_reliability, draw_risk
from askbook.evals.run import ASKBOOK, Asked, SetRun

WORST, NEAREST, SNIPPET = 15, 3, 260
CPU_BAR_MS = 60.0

STYLE = """
:root { --ink: #1c2024; --soft: #60676e; --paper: #fff; --card: #f6f7f8; --rule: #dfe3e6;
  --c0: #1f6feb; --c1: #b0b7be; --c2: #d9a441; --c3: #5fa777; --bad: #b3261e; color-scheme: light dark; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8ea; --soft: #9aa3ab; --paper: #14171a; --card: #1d2125;
  --rule: #343a40; --c0: #589bff; --c1: #6b747c; --c2: #d0a04c; --c3: #6fbf8a; --bad: #ff8a80; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 68rem; margin: 0 auto; padding: 1.5rem; }
h1, h2, h3 { line-height: 1.2; } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--rule); padding-bottom: .3rem; }
p.note, .soft, td.soft { color: var(--soft); } .scroll { overflow-x: auto; } .plots { display: flex; flex-wrap: wrap; gap: 1.5rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; } th, td { padding: .25rem .7rem; text-align: right; border-bottom: 1px solid var(--rule); }
th:first-child, td:first-child { text-align: left; } td.best { font-weight: 700; } .bad { color: var(--bad); }
svg { width: 100%; height: auto; display: block; } figure { margin: 0; min-width: 16rem; } svg text { font-size: 11px; fill: var(--soft); }
.grid { stroke: var(--rule); } .mark { stroke: var(--soft); stroke-dasharray: 4 4; } .frame { fill: none; stroke: var(--rule); }
.line { fill: none; stroke: var(--c0); stroke-width: 2; } .dot { fill: var(--c0); fill-opacity: .75; }
rect.c0 { fill: var(--c0); } rect.c1 { fill: var(--c1); } rect.c2 { fill: var(--c2); } rect.c3 { fill: var(--c3); }
.legend { margin: .5rem 0; } .key { margin-right: 1rem; } .key::before { content: ""; display: inline-block; width: .8em; height: .8em; margin-right: .4em; border-radius: 2px; }
.key.c0::before { background: var(--c0); } .key.c1::before { background: var(--c1); } .key.c2::before { background: var(--c2); } .key.c3::before { background: var(--c3); }
details { background: var(--card); border-radius: 6px; padding: .5rem .9rem; margin: .5rem 0; } summary { cursor: pointer; } blockquote { margin: .2rem 0 .7rem; padding-left: .8rem; border-left: 3px solid var(--rule); white-space: pre-wrap; overflow-wrap: anywhere; }
code { overflow-wrap: anywhere; }
"""


def build_page(figures: Figures, runs: Sequence[SetRun]) -> str:
    body = [
        "<h1>How well does askbook find?</h1>",
        f'<p class="soft">askbook {escape(figures.askbook)}, {escape(figures.measured_at)}. A page counts at the place '
        "of its best passage. The baselines searched the same chunks in the same run.</p>",
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
            _retrieval_table(found),
            "<h3>nDCG@10</h3>",
            draw_bars({name: {system: one.ndcg10 for system, one in by.items()} for name, by in found.items()}),
            "<h3>One search, in milliseconds</h3>",
            draw_bars(times, top=max(CPU_BAR_MS, slowest * 1.05), mark=CPU_BAR_MS),
            f'<p class="note">From the words to the ranked passages, embedding included; the dashed line is the '
            f"{CPU_BAR_MS:.0f} ms of CPU that p95 should stay below.</p>",
        ]
    )


def _retrieval_table(found: Mapping[str, Mapping[str, Retrieval]]) -> str:
    rows = []
    for name, by_system in found.items():
        best = max(one.ndcg10 for one in by_system.values())
        for system, one in by_system.items():
            figures = "".join(f"<td>{value:.3f}</td>" for value in (one.hit1, one.hit5, one.mrr10))
            kind = ' class="best"' if one.ndcg10 == best else ""
            first = escape(name) if system == ASKBOOK else ""
            rows.append(f"<tr><td>{first}</td><td>{escape(system)}</td><td>{one.n}</td>{figures}<td{kind}>{one.ndcg10:.3f}</td></tr>")  # fmt: skip
    return _table(("set", "system", "n", "hit@1", "hit@5", "MRR@10", "nDCG@10"), rows)


def _table(heads: Sequence[str], rows: Iterable[str]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    return f'<div class="scroll"><table><tr>{head}</tr>{"".join(rows)}</table></div>'


# --- one set --------------------------------------------------------------------------------------


def _set_section(figures: SetFigures, run: SetRun) -> str:
    gold = [one for one in run.asked if one.question.has_gold]
    missed = [one for one in gold if one.score().hit5 == 0]
    refused = [one for one in gold if one.refused and one.score().hit5 == 1]
    invented = [one for one in run.asked if one.question.answerable is False and not one.refused]
    return "".join(
        [
            f"<h2>{escape(figures.name)}</h2>",
            f'<p class="soft">{figures.files} files, {figures.chunks} chunks, {figures.questions} questions, of which '
            f"{figures.answerable} have an expected page. Embedder: {escape(figures.embedder)}.</p>",
            _gains(figures),
            _follow_ups(figures),
            _trust(figures),
            _questions("Not among the first five, the surest first", missed),
            _questions("Found, but refused", refused),
            _questions("Not in the book, and not refused, the surest first", invented),
        ]
    )


def _gains(figures: SetFigures) -> str:
    rows = [
        f"<tr><td>{escape(system)}</td><td>{gain.mean:+.3f}</td><td>{gain.low:+.3f} to {gain.high:+.3f}</td></tr>"
        for system, gain in figures.gain.items()
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
    rows = [
        f"<tr><td>{escape(kind)}</td><td>{auc:.3f}</td><td>{f'{trust.refused[kind]:.3f}' if kind in trust.refused else ''}</td></tr>"
        for kind, auc in trust.auc.items()
    ]
    error = f"{trust.calibration_error:.3f}" if trust.calibration_error is not None else "–"
    return "".join(
        [
            "<h3>Confidence</h3>",
            _table(("against", "AUC", "refused at 5 % false refusals"), rows) if rows else "",
            _gate(figures),
            _levels(figures),
            '<div class="plots">',
            f"<figure>{draw_reliability(trust.bins)}<figcaption>Reliability; expected calibration error {error}.</figcaption></figure>",
            f"<figure>{draw_risk(trust.risk)}<figcaption>Risk and coverage: the share of wrong answers among the surest.</figcaption></figure>",
            "</div>",
        ]
    )


def _gate(figures: SetFigures) -> str:
    """What users meet, beside the seed's rule on raw cosines."""
    trust = figures.trust
    kinds = {"answerable, falsely": (trust.false_refusals, trust.raw_false_refusals)}
    kinds |= {kind: (share, trust.raw_refused.get(kind)) for kind, share in trust.own_refused.items()}
    rows = [
        f"<tr><td>{escape(kind)}</td><td>{_share(ours)}</td><td>{_share(raw)}</td></tr>"
        for kind, (ours, raw) in kinds.items()
    ]
    return _table(("refused", "askbook", "raw cosines"), rows)


def _levels(figures: SetFigures) -> str:
    rows = [
        f"<tr><td>{escape(level)}</td><td>{count}</td><td>{_share(right)}</td></tr>"
        for level, (count, right) in figures.trust.levels.items()
    ]
    return _table(("level", "answers", "right"), rows) if rows else ""


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _questions(title: str, asked: Sequence[Asked]) -> str:
    if not asked:
        return ""
    surest = sorted(asked, key=lambda one: -one.confidence)[:WORST]
    return f"<h3>{title} ({len(surest)} of {len(asked)})</h3>{''.join(map(_question, surest))}"


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
