"""From a unit to a quote: with what it does not stand without, as one run of the file's own characters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from askbook.answer.kinds import Asked, rate_definition
from askbook.answer.quotes import place_quote
from askbook.answer.units import Block, Unit, lies_close
from askbook.answer.weighing import LEANS_BACK, Candidate, Reading, find_lead
from askbook.domain import Passage

ExcerptKind = Literal["sentence", "definition", "place", "steps", "list", "code", "table"]
Span = tuple[int, int, ExcerptKind]

BLOCK_WORDS_MAX = 180
HELD = 0.7
"""An item that holds so much of the question answers without the rest of its list."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """`passage.chunk.text[start:end]`: one run of the book's own characters."""

    passage: Passage
    start: int
    end: int
    kind: ExcerptKind

    @property
    def text(self) -> str:
        return self.passage.chunk.text[self.start : self.end]


def widen(asked: Asked, one: Candidate) -> Excerpt | None:
    """The unit with what it does not stand without; alone where that is no single run of the file."""
    for start, end, kind in _find_spans(asked, one):
        if place_quote(one.reading.passage.chunk, start, end) is not None:
            return Excerpt(one.reading.passage, start, end, kind)
    return None


_INTRODUCES = re.compile(
    r":\W*$|\b(?:the|as) (?:\w+ )?follow(?:s|ing)\b|\bfollowing\b[^.]*\.$|^\*\*[^*]+\*\*$", re.IGNORECASE
)


def _find_spans(asked: Asked, one: Candidate) -> Iterator[Span]:
    """From the widest to the unit alone."""
    reading, block, unit = one.reading, one.block, one.unit
    alone: Span = (unit.start, unit.end, _name_kind(asked, one))
    match block.kind:
        case "table" if asked.kind not in ("list", "comparison") and not _is_whole(reading, block):
            yield from _span_row(reading, unit, one.text)
        case "code" | "table":
            if lead := find_lead(reading, one.block_at):
                yield lead[0], unit.end, alone[2]
        case "list" | "steps":
            if _is_asked_whole(asked, one):
                yield from _span_list(reading, one.block_at)
            elif _is_fragment(one):
                yield from _span_item(one)
                yield from _span_list(reading, one.block_at)
        case "prose":
            if unit is block.units[-1] and (asked.kind == "list" or _INTRODUCES.search(one.text)):
                yield from _span_led(reading, one.block_at, unit)
    if unit.kind in ("sentence", "item") and LEANS_BACK.match(one.text) and (before := _find_before(one)):
        yield before.start, unit.end, alone[2]
    yield alone
    if unit.kind == "table":
        yield from _span_row(reading, unit, one.text)
    if unit.kind == "code":
        yield from _span_lines(reading, unit)


def _is_asked_whole(asked: Asked, one: Candidate) -> bool:
    """Steps are followed from the first to the last; an entry under a label of its own may answer alone."""
    items = [one.reading.text[start:end] for start, end in one.block.items]
    labelled = sum(bool(_LABELLED.match(item)) for item in items) * 2 > len(items)
    if asked.kind == "list":
        return not (labelled and one.held >= HELD)
    return asked.kind == "how_to" and one.block.kind == "steps" and not labelled


_LABELLED = re.compile(r"(?:\w+ )?[*_`]")


def _span_item(one: Candidate) -> Iterator[Span]:
    """The item of the whole list that a nested one belongs to."""
    text = one.reading.text
    for start, end in one.block.items:
        inside = [unit for unit in one.block.units if start <= unit.start and unit.end <= end]
        if one.unit in inside and len(inside) > 1 and lies_close(text, inside, start, end):
            yield start, end, "list"


def _span_row(reading: Reading, table: Unit, read: str) -> Iterator[Span]:
    """The row that answers, of a table that is too large to quote or that the file does not hold in one run."""
    row = read.split("\n")[-1]
    at = reading.text.find(f"\n{row}", table.start, table.end)
    if row and at >= 0:
        yield at + 1, at + 1 + len(row.rstrip()), "table"


def _span_lines(reading: Reading, code: Unit) -> Iterator[Span]:
    """The lines between the fences, where a fence is not the file's: a long listing was cut."""
    lines = reading.text[code.start : code.end].split("\n")
    if len(lines) > 2:
        yield code.start + len(lines[0]) + 1, code.end - len(lines[-1]) - 1, "code"


def _name_kind(asked: Asked, one: Candidate) -> ExcerptKind:
    match one.unit.kind:
        case "code" | "table" | "definition" as kind:
            return kind
        case _:
            defines = asked.kind == "definition" and rate_definition(asked, one.text) > 0
            return "definition" if defines else "place" if asked.kind == "where" else "sentence"


def _is_fragment(one: Candidate) -> bool:
    """A list item that is no sentence says little without its list."""
    text = one.text
    return one.unit.kind == "item" and (len(text.split()) < 5 or text[0].islower() or text[-1] not in ".!)*`")


def _span_list(reading: Reading, block_at: int) -> Iterator[Span]:
    block = reading.blocks[block_at]
    if _is_whole(reading, block):
        lead, kind = find_lead(reading, block_at), _kind_of(block)
        start = lead[0] if lead else block.start
        if end := _find_led_end(reading, block_at):
            yield start, end, kind
        yield start, block.end, kind
        yield block.start, block.end, kind


def _find_led_end(reading: Reading, block_at: int) -> int | None:
    """Where the listing ends that the last item of a list introduces."""
    if block_at + 1 == len(reading.blocks):
        return None
    block, after = reading.blocks[block_at : block_at + 2]
    text = reading.text
    led = text[block.end - 1] == ":" and after.kind in ("code", "table") and not text[block.end : after.start].strip()
    return after.end if led else None


def _span_led(reading: Reading, block_at: int, unit: Unit) -> Iterator[Span]:
    """What a sentence with a colon at its end introduces."""
    if block_at + 1 == len(reading.blocks):
        return
    block, lead = reading.blocks[block_at + 1], find_lead(reading, block_at + 1)
    if lead is not None and lead[1] == unit.end and _is_whole(reading, block):
        yield lead[0], block.end, _kind_of(block)


def _kind_of(block: Block) -> ExcerptKind:
    return "sentence" if block.kind == "prose" else block.kind


def _is_whole(reading: Reading, block: Block) -> bool:
    """Short enough to quote, and nothing in it that may not be quoted."""
    fits = len(reading.text[block.start : block.end].split()) <= BLOCK_WORDS_MAX
    return fits and lies_close(reading.text, block.units, block.start, block.end)


def _find_before(one: Candidate) -> Unit | None:
    """The sentence that a pronoun speaks of: the one before it in its paragraph."""
    if not one.unit_at:
        return None
    before = one.block.units[one.unit_at - 1]
    between = one.reading.text[before.end : one.unit.start]
    return before if not between.strip() and before.kind in ("sentence", "item") else None
