"""The report as one HTML file: nothing is fetched, and whatever a book or a question says is shown as text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple
from html import escape
from importlib.resources import files

from askbook.answer.calibration import name_origin
from askbook.domain import Passage
from askbook.evals.figures import Changes, Figures, SetFigures
from askbook.evals.plots import draw_bars, draw_reliability, draw_risk
from askbook.evals.run import Failure, Result, SetRun
from askbook.evals.tables import RIGHT, Table, build_tables, tell_check

WORST, NEAREST, SNIPPET = 15, 3, 260
CPU_BAR_MS = 700.0
FAILURES: Mapping[Failure, str] = {
    "missed": "No expected page among the first five passages",
    "refused": "Refused, though the book answers",
    "answered": "Answered, though the book does not say",
}


def build_page(figures: Figures, runs: Sequence[SetRun]) -> str:
    style = files("askbook.evals").joinpath("report.css").read_text(encoding="utf-8")
    body = [
        "<h1>How well does askbook answer?</h1>",
        f'<p class="soft">askbook {escape(figures.askbook)}, {escape(figures.measured_at)}. A page counts at the place '
        "of its best passage. The search without reading, and the baselines, had the same chunks in the same run.</p>",
        _changes(figures.changes),
        "<h2>Set by set</h2>",
        *_checks(figures),
        *map(_table, build_tables(figures)),
        _plots(figures),
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


def _checks(figures: Figures) -> Iterator[str]:
    for measured in figures.sets:
        if measured.check.questions:
            yield f"<p>{escape(tell_check(measured.name, measured.check))}</p>"
    yield (
        '<p class="note">A question passes when an expected page is among the first five passages and it is not '
        "refused; one that is not in the book, when it is refused.</p>"
    )


def _table(table: Table) -> str:
    kinds = ["text"] * len(table.texts) + ["number"] * len(table.numbers)
    written: list[str] = []
    for tag, cells in (("th", (*table.texts, *table.numbers)), *(("td", row) for row in table.rows)):
        row = (f'<{tag} class="{kind}">{escape(cell)}</{tag}>' for kind, cell in zip(kinds, cells, strict=True))
        written.append(f"<tr>{''.join(row)}</tr>")
    return f'<div class="scroll"><table>{"".join(written)}</table></div>'


def _plots(figures: Figures) -> str:
    found = {measured.name: measured.retrieval for measured in figures.sets if measured.retrieval}
    if len(found) > 1 and figures.mean:
        found["mean"] = figures.mean
    ndcg = {name: {system: of.ndcg10 for system, of in by_system.items()} for name, by_system in found.items()}
    names = ["wall p50", "wall p95", "CPU p50", "CPU p95"]
    latencies = {measured.name: measured.latency for measured in figures.sets if measured.latency}
    times = {name: dict(zip(names, astuple(latency), strict=True)) for name, latency in latencies.items()}
    slowest = max((value for by_name in times.values() for value in by_name.values()), default=0.0)
    top = max(CPU_BAR_MS, math.ceil(slowest / 20) * 20)
    return (
        f"<h3>nDCG@10</h3>{draw_bars(ndcg)}"
        f"<h3>One question, in milliseconds</h3>{draw_bars(times, top=top, mark=CPU_BAR_MS)}"
        '<p class="note">From the words to the reply, embedding included (in conversations, to the ranked passages); '
        f"the dashed line is the {CPU_BAR_MS:.0f} ms of CPU that p95 should stay below.</p>"
    )


# --- one set --------------------------------------------------------------------------------------


def _set_section(figures: SetFigures, run: SetRun) -> str:
    trust = figures.trust
    notice = f'<p class="bad">{escape(figures.notice)}</p>' if figures.notice else ""
    sample = f" (a sample: {figures.left_out} more were left out)" if figures.left_out else ""
    failures = (
        _questions(title, [result for result in run.asked if result.failure == why]) for why, title in FAILURES.items()
    )
    return (
        f'<h2>{escape(figures.name)}</h2><p class="soft">{figures.files} files, {figures.chunks} chunks, '
        f"{figures.questions} questions{sample}, of which {figures.answerable} have an expected page. Embedder: "
        f"{escape(figures.embedder)}. Calibration: {escape(name_origin(run.chosen.calibration))}. Of what is shown, "
        f'right is {RIGHT[trust.judged_by]}.</p>{notice}<div class="plots">'
        f"<figure>{draw_reliability(trust.bins)}<figcaption>Reliability: how often answers are right, by how sure they "
        "are. A larger dot is more answers.</figcaption></figure>"
        f"<figure>{draw_risk(trust.risk)}<figcaption>Risk and coverage: the share of wrong answers among the surest."
        f"</figcaption></figure></div>{''.join(failures)}"
    )


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
