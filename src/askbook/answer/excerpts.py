"""A passage cut into what can be read out: whole paragraphs and blocks of one section, with what they introduce."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby, pairwise
from typing import Literal

from askbook.answer.quotes import find_longest_run, find_stretch, place_quote
from askbook.answer.units import Block, Span, Unit, inside_of, lies_close, split_blocks
from askbook.domain import Passage

ExcerptKind = Literal["text", "code", "table"]

WORDS = 110
"""A section with no more words is one excerpt."""
BLOCK_WORDS, STEPS_WORDS = 145, 250
"""Longer blocks are cut; steps may be longer."""
LINES, ROWS = 40, 12
"""Longer listings and tables are cut; each part is shown in its frame."""
_LABEL = re.compile(r"\*\*[^*\n]{0,80}[^*\n.!?…]\*\*:?")
_FORMULA_NEXT = re.compile(r"[\s>]*(?:\$\$|\\\[|\\begin\{)")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """`passage.chunk.text[start:end]`: one run of the book's own characters."""

    passage: Passage
    start: int
    end: int
    kind: ExcerptKind = "text"
    headings: tuple[str, ...] = ()
    """Those above it in the chunk's own text."""

    @property
    def text(self) -> str:
        return self.passage.chunk.text[self.start : self.end]

    @property
    def words(self) -> int:
        return len(self.text.split())

    @property
    def section(self) -> str:
        place = place_quote(self.passage.chunk, *self.quote)
        return self.passage.chunk.at(place[0]).name if place else self.passage.chunk.name

    @property
    def place(self) -> Span | None:
        """Its characters in the file; None where the file has them in another order. Labels and markup may differ."""
        return find_stretch(self.passage.chunk, self.start, self.end)

    @property
    def quote(self) -> Span:
        """The longest part of it that the file has in one run."""
        return find_longest_run(self.passage.chunk, self.start, self.end)

    @property
    def frame(self) -> tuple[str, str]:
        """What a part is shown in: the head of a table, the fences of a listing."""
        around = None if self.kind == "text" else self.find_unit(self.start)
        if around is None:
            return "", ""
        text = self.passage.chunk.text
        start, end = inside_of(text, around)
        return text[around.start : start], text[end : around.end]

    def find_unit(self, place: int) -> Unit | None:
        units = (unit for block in split_blocks(self.passage.chunk.text) for unit in block.units)
        return next((unit for unit in units if unit.start <= place < unit.end), None)

    def lies_beside(self, other: Excerpt) -> bool:
        """In one section, with nothing between them but the signs of a list."""
        one, two = sorted((self, other), key=lambda each: each.start)
        same = one.passage.chunk.id == two.passage.chunk.id and one.headings == two.headings
        return same and not one.passage.chunk.text[one.end : two.start].strip("\n\t >*+-0123456789.)")

    def overlaps(self, other: Excerpt) -> bool:
        """Chunks of one lesson overlap in the file."""
        if self.passage.chunk.source_file != other.passage.chunk.source_file:
            return False
        one, two = self.place, other.place
        return one is not None and two is not None and one[0] < two[1] and two[0] < one[1]


def split_passage(passage: Passage) -> list[Excerpt]:
    """All that may be shown of it, in order. What the file does not have in one run is cut at blocks or left out."""
    text = passage.chunk.text
    groups: list[list[Block]] = []
    for block in split_blocks(text):
        if groups and _belongs(text, groups[-1], block):
            groups[-1].append(block)
        elif groups and _is_label(text, groups[-1][-1]) and _belongs(text, groups[-1][-1:], block):
            groups.append([groups[-1].pop(), block])
        else:
            groups.append([block])
    excerpts: list[Excerpt] = []
    for blocks in groups:
        if all(_is_label(text, block) for block in blocks):
            continue
        whole = Excerpt(passage, blocks[0].start, blocks[-1].end, headings=blocks[0].headings)
        is_one = len(blocks) > 1 and whole.place is not None
        excerpts += [whole] if is_one else (part for block in blocks for part in _split_block(passage, block))
    return excerpts


def join(first: Excerpt, second: Excerpt) -> Excerpt | None:
    """Two neighbours in one section as one excerpt."""
    if {first.kind, second.kind} != {"text"} or not first.lies_beside(second):
        return None
    joined = replace(first, start=min(first.start, second.start), end=max(first.end, second.end))
    return joined if joined.place is not None else None


def narrow(excerpt: Excerpt, place: int) -> Excerpt:
    """Only the paragraph that holds the place; lists, listings and tables stay with what introduces them."""
    inside = [block for block in split_blocks(excerpt.passage.chunk.text) if excerpt.start <= block.start < excerpt.end]
    holding = next((block for block in inside if block.start <= place < block.end), None)
    if holding is None or holding.kind != "prose" or _introduces(excerpt.passage.chunk.text, holding):
        return excerpt
    alone = replace(excerpt, start=max(holding.start, excerpt.start), end=min(holding.end, excerpt.end))
    return alone if alone.place is not None else excerpt


def leave_out(excerpt: Excerpt, is_known: Callable[[str], bool]) -> Excerpt | None:
    """Its longest run of unknown blocks; None where all are known."""
    text = excerpt.passage.chunk.text
    if excerpt.kind != "text":
        return None if is_known(excerpt.text) else excerpt
    inside = [(max(block.start, excerpt.start), min(block.end, excerpt.end)) for block in split_blocks(text)]
    blocks = [(start, end) for start, end in inside if start < end]
    new = [list(run) for known, run in groupby(blocks, lambda run: is_known(text[slice(*run)])) if not known]
    longest = max(new, key=lambda runs: runs[-1][1] - runs[0][0], default=None)
    if longest is None:
        return None
    rest = replace(excerpt, start=longest[0][0], end=longest[-1][1])
    return rest if rest.place is not None else excerpt


# --- blocks that stand together -------------------------------------------------------------------


def _belongs(text: str, group: Sequence[Block], block: Block) -> bool:
    """In the same section, with nothing unquotable between, and not too long together."""
    last = group[-1]
    between = text[last.end : block.start].strip("\n\t >")
    if between or last.headings != block.headings or not (_is_short(text, last) and _is_short(text, block)):
        return False
    opens = _introduces(text, last) or (len(group) == 1 and _is_label(text, last))
    return opens or len(text[group[0].start : block.end].split()) <= WORDS


def _is_label(text: str, block: Block) -> bool:
    """Of a tab, or a title in bold."""
    return block.kind == "prose" and _LABEL.fullmatch(text, block.start, block.end) is not None


def _introduces(text: str, block: Block) -> bool:
    return text[: block.end].rstrip("*_` ").endswith(":") or _FORMULA_NEXT.match(text, block.end) is not None


def _is_short(text: str, block: Block) -> bool:
    """And all of it may be quoted."""
    if not lies_close(text, block.units, block.start, block.end):
        return False
    lines = text.count("\n", block.start, block.end)
    match block.kind:
        case "code":
            return lines < LINES
        case "table":
            return lines < ROWS
        case kind:
            most = STEPS_WORDS if kind == "steps" else BLOCK_WORDS
            return len(text[block.start : block.end].split()) <= most


# --- blocks that are cut --------------------------------------------------------------------------


def _split_block(passage: Passage, block: Block) -> Iterator[Excerpt]:
    text = passage.chunk.text
    whole = Excerpt(passage, block.start, block.end, headings=block.headings)
    if _is_short(text, block) and whole.place is not None:
        yield whole
        return
    match block.kind:
        case "code" | "table" as kind:
            # Without the fences or the table head, which frame each part.
            start, end = inside_of(text, block.units[0])
            starts = [start, *accumulate((len(line) + 1 for line in text[start:end].split("\n")), initial=start)][1:]
            for start, next_start in pairwise([*starts[: -1 : LINES if kind == "code" else ROWS], starts[-1]]):
                part = Excerpt(passage, start, next_start - 1, kind, block.headings)
                if part.text.strip() and part.place is not None:
                    yield part
        case _:
            items = [run for run in block.items if _is_quotable(text, block, run)]
            units = [(unit.start, unit.end) for unit in block.units]
            for start, end in _fill(text, block, items or units):
                part = Excerpt(passage, start, end, headings=block.headings)
                if part.place is not None:
                    yield part


def _fill(text: str, block: Block, parts: Iterable[Span]) -> Iterator[Span]:
    """Runs of sentences or items, each as long as an excerpt may be."""
    run: Span | None = None
    for start, end in parts:
        longer = (run[0], end) if run else (start, end)
        if run and (len(text[slice(*longer)].split()) > WORDS or not _is_quotable(text, block, longer)):
            yield run
            longer = (start, end)
        run = longer
    if run:
        yield run


def _is_quotable(text: str, block: Block, run: Span) -> bool:
    inside = [unit for unit in block.units if run[0] <= unit.start and unit.end <= run[1]]
    return bool(inside) and lies_close(text, inside, *run)
