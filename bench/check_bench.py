"""How well a model's sentences are checked: `python bench/check_bench.py [DATA] [--held] [--sample 400] [--others]`.

True and false statements about passages, written by careful reading (`train/rows.py`), go the whole way of a model's
answer, each citing its passage, without a judge. Without `--held`: passages on which the reader's chances were fitted,
to choose the bar by. With it: the sources that no reader was trained on, as many true as false statements of each share
of common words. `--others`: three more passages of the same source were found beside the cited one.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "train"))

from rows import HELD_SOURCES, Contrast, Row, is_for_calibration, read_contrast  # noqa: E402

from askbook.answer.check.support import BAR, find_support, find_verbatim  # noqa: E402
from askbook.answer.citations import Checking  # noqa: E402
from askbook.answer.selection import to_selection  # noqa: E402
from askbook.domain import Passage  # noqa: E402
from askbook.reading.model import bundled_weights  # noqa: E402
from askbook.reading.reader import Reader  # noqa: E402

DATA = ROOT.parent / "shared" / "reader"
BARS = (0.2, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7, 0.8)
OTHERS = 3


@dataclass(frozen=True)
class Result:
    row: Row
    twin: bool
    kept: bool
    chance: float
    why: str


def to_passage(one: Contrast) -> Passage:
    """The source's name stands for the book's title."""
    passage = to_selection(one.text, "bench")
    headings = (one.source.replace("/", " "), one.title, *one.heading.split(" › "))
    return replace(passage, chunk=replace(passage.chunk, heading_path=tuple(dict.fromkeys(headings))))


async def check(reader: Reader, row: Row, numbered: Mapping[int, Passage], twin: bool) -> Result:
    text = row.text.rstrip()
    checking = Checking(numbered, "drop", lambda _: False, reader=reader)
    await checking.feed(f"{text[:-1]} [1]{text[-1]}" if text.endswith((".", "!")) else f"{text} [1]")
    await checking.finish()
    verbatim = find_verbatim(text, (1,), numbered)
    support = verbatim or await find_support(text, (1,), numbered, reader)
    kept = bool(checking.statements) and not checking.removed
    return Result(row, twin, kept, support.chance, "; ".join(one.why for one in checking.removed))


def balance(rows: Sequence[tuple[Contrast, Row]]) -> list[tuple[Contrast, Row]]:
    """As many true as false statements of each share of words that the passage has too."""
    bins: dict[int, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for at, (_, row) in enumerate(rows):
        bins[round(overlap(row) * 20)][row.label == 1].append(at)
    chosen = [
        at for false, true in bins.values() for side in (false, true) for at in side[: min(len(false), len(true))]
    ]
    return [rows[at] for at in sorted(chosen)]


def overlap(row: Row) -> float:
    """As train/validate.py counts it."""
    words, theirs = (set(re.findall(r"[a-z0-9_]{3,}", text.lower())) for text in (row.text, row.passage))
    return len(words & theirs) / max(1, len(words))


def share(results: Sequence[Result], right: bool) -> str:
    return f"{sum(one.kept == right for one in results) / len(results):.3f} of {len(results)}" if results else "–"


def report(results: Sequence[Result]) -> Iterator[str]:
    true, false = ([one for one in results if one.row.label == label] for label in (1, 0))
    yield f"true kept     {share(true, True)}"
    yield f"false caught  {share(false, False)}"
    kinds: dict[str, list[Result]] = defaultdict(list)
    for one in false:
        kinds[one.row.kind].append(one)
    yield from (f"  {kind:12}{share(some, False)}" for kind, some in sorted(kinds.items()))
    yield "bar   true kept   false caught, by the chance alone"
    for bar in BARS:
        shares = [sum(one.chance >= bar for one in side) / max(len(side), 1) for side in (true, false)]
        yield f"{bar:.2f}{'*' if bar == BAR else ' '} {shares[0]:.3f}       {1 - shares[1]:.3f}"


async def measure(contrast: Sequence[Contrast], rows: Sequence[tuple[Contrast, Row]], others: bool) -> list[Result]:
    reader, chance = Reader(bundled_weights(), threads=1), random.Random(1)
    by_source: dict[str, list[Contrast]] = defaultdict(list)
    for one in contrast:
        by_source[one.source].append(one)
    results: list[Result] = []
    for one, row in rows:
        beside = [other for other in by_source[one.source] if other.text != one.text] if others else []
        found = [one, *chance.sample(beside, min(OTHERS, len(beside)))]
        numbered = {at: to_passage(passage) for at, passage in enumerate(found, start=1)}
        results.append(await check(reader, row, numbered, bool(one.twins)))
    await reader.close()
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=Path, default=DATA)
    parser.add_argument("--held", action="store_true")
    parser.add_argument("--others", action="store_true")
    parser.add_argument("--sample", type=int)
    asked = parser.parse_args()
    if not (asked.data / "contrast.jsonl.gz").is_file():
        print(f"skipped: {asked.data / 'contrast.jsonl.gz'} is not there")
        return
    everything = read_contrast(asked.data)
    contrast = [one for one in everything if (one.source in HELD_SOURCES if asked.held else is_for_calibration(one))]
    rows = balance([(one, row) for one in contrast for row in one.rows() if row.task == "statement"])
    if asked.sample:
        rows = random.Random(1).sample(rows, min(asked.sample, len(rows)))
    results = asyncio.run(measure(contrast, rows, asked.others))
    for name, twin in (("passages with statements of their own", False), ("twins: alike but for one thing", True)):
        some = [one for one in results if one.twin == twin]
        print(f"\n{name}\n" + "\n".join(report(some)))
    print("\nall\n" + "\n".join(report(results)))


if __name__ == "__main__":
    main()
