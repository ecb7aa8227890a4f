"""A lesson's own markup as its readers see it: what is hidden of the source, and what stands in its place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest

from askbook.book.markup.blocks import read_blocks
from askbook.book.markup.inline import InlineScan
from askbook.book.markup.spans import Hidden, Span, as_words, join_neighbours, whole_lines

MARKUP_VERSION = 5
"""Lessons are read again when it changes. How they are cut is CHUNKER_VERSION, which calibrations belong to."""

_COMPONENT = re.compile(
    r"^(?:import\s[^\n]{1,200}\sfrom\s|<(?:Tabs|TabItem|Steps|Step|Callout|Admonition|Aside)\b)", re.MULTILINE
)

_FENCE = re.compile(r"^[ \t]*(?P<mark>`{3,}(?=[^`\n]*$)|~{3,})(?P<info>[^\n]*)$", re.MULTILINE)
_BLANK = re.compile(r"[ \t>]*(?:\n|\Z)")
_BLANK_LAST = re.compile(r"\n[ >]*\Z")
_BLANK_REST = re.compile(r"[ \t]*(?:\n|\Z)")


@dataclass(frozen=True, slots=True)
class Markup:
    hidden: list[Hidden]
    math: list[Span]
    """Never cut in the middle."""
    parsed: list[Hidden]
    """What the parser of blocks is given for formulas that take lines of their own, and around listings of HTML."""


def has_components(source_file: str, text: str) -> bool:
    """Docusaurus reads every .md as MDX: imports and components at the head of a line tell."""
    if source_file.lower().endswith(".mdx"):
        return True
    return _COMPONENT.search(text) is not None and _COMPONENT.search(_without_listings(text)) is not None


def _without_listings(text: str) -> str:
    shown: list[str] = []
    at, mark = 0, ""
    for fence in _FENCE.finditer(text):
        if not mark:
            shown.append(text[at : fence.start()])
            mark, at = fence["mark"], len(text)
        elif fence["mark"].startswith(mark) and not fence["info"].strip():
            mark, at = "", fence.end()
    return "".join([*shown, text[at:]])


def read_markup(text: str, start: int, mdx: bool, titles: Mapping[str, str]) -> Markup:
    blocks = read_blocks(text, start, mdx, titles)
    lines = sorted(blocks.hidden, key=lambda hidden: (hidden.start, -hidden.end))
    skip = _join([*((hidden.start, hidden.end) for hidden in lines), *blocks.code, *blocks.math])
    formulas = list(blocks.math)
    inline = InlineScan(text, start, mdx, skip, formulas, titles, blocks.targets).read(start)
    joined = [_lead_lines(text, whole_lines(text, run), blocks.leads) for run in join_neighbours(text, inline)]
    hidden = [_in_frame(text, run, blocks.leads) for run in _tighten(text, _apart(text, [*lines, *joined]))]
    lines_of_math = [Hidden(*span, parsed=as_words(text[slice(*span)])) for span in blocks.math]
    return Markup(hidden, sorted(formulas), lines_of_math + blocks.parsed)


def _tighten(text: str, found: list[Hidden]) -> list[Hidden]:
    """One blank line is enough below a label; a line that is hidden is one too."""
    tight: list[Hidden] = []
    for run, after in zip_longest(found, found[1:]):
        at = run.end + (text[run.end : run.end + 1] == "\n")
        gone = after and after.start == at and not after.filler and text[after.end - 1 : after.end] == "\n"
        ends = _BLANK_LAST.search(run.filler)
        if ends and gone and after and ">" in ends[0]:
            # In a frame a line that is hidden is none.
            gone = _BLANK.match(text, after.end)
        if ends and _BLANK_REST.match(text, run.end) and (gone or _BLANK.match(text, at)):
            run = replace(run, filler=run.filler[: ends.start()])
        tight.append(run)
    return tight


def _is_line(text: str, run: Hidden) -> bool:
    """All of a line is hidden, and its end."""
    whole = not run.filler and run.parsed is None and run.start < run.end and text[run.end - 1] == "\n"
    return whole and text[run.start - 1 : run.start] in ("", "\n")


def _in_frame(text: str, run: Hidden, leads: Mapping[int, str]) -> Hidden:
    """Lines that are hidden in a frame do not end it."""
    lead = leads.get(run.end) if leads and _is_line(text, run) else None
    return replace(run, parsed=lead.rstrip()) if lead else run


def _lead_lines(text: str, run: Hidden, leads: Mapping[int, str]) -> Hidden:
    """What is put in stays in the frame that its line stands in."""
    lead = leads.get(text.rfind("\n", 0, run.start) + 1) if leads and "\n" in run.filler else None
    if lead is None:
        return run
    parsed = run.filler.replace("\n", " ").strip() if run.parsed is None else run.parsed
    return replace(run, filler=run.filler.replace("\n", f"\n{lead}").rstrip(" "), parsed=parsed)


def _join(spans: list[Span]) -> list[Span]:
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start < joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        elif start < end:
            joined.append((start, end))
    return joined


def _apart(text: str, found: list[Hidden]) -> list[Hidden]:
    """In order, each beginning where the run before has ended."""
    apart: list[Hidden] = []
    for run in sorted(found, key=lambda run: (run.start, run.end)):
        if _is_line(text, run):
            # What would stand before its words is gone with them.
            while apart and apart[-1].start >= run.start:
                apart.pop()
        last = apart[-1].end if apart else 0
        if run.start >= last:
            apart.append(run)
        elif run.end > last:
            apart.append(Hidden(last, run.end, run.filler, run.parsed))
    return apart
