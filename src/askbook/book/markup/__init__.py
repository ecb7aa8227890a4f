"""A lesson's own markup as its readers see it: what is hidden of the source, and what stands in its place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest

from askbook.book.markup.blocks import read_blocks
from askbook.book.markup.inline import read_inline
from askbook.book.markup.spans import Hidden, Span, join_neighbours, whole_lines

MARKUP_VERSION = 4
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
    blocks: list[Span]
    """Those of the formulas that take lines of their own."""


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
    lines = sorted(blocks.hidden, key=lambda one: (one.start, -one.end))
    skip = _join([*((one.start, one.end) for one in lines), *blocks.code, *blocks.math])
    formulas = list(blocks.math)
    inline = list(read_inline(text, start, mdx, skip, formulas, titles, blocks.targets))
    inline = [_lead_lines(text, whole_lines(text, one), blocks.leads) for one in join_neighbours(text, inline)]
    hidden = [_in_frame(text, one, blocks.leads) for one in _tighten(text, _apart(text, [*lines, *inline]))]
    return Markup(hidden, sorted(formulas), blocks.math)


def _tighten(text: str, found: list[Hidden]) -> list[Hidden]:
    """One blank line is enough below a label; a line that is hidden is one too."""
    tight: list[Hidden] = []
    for one, after in zip_longest(found, found[1:]):
        at = one.end + (text[one.end : one.end + 1] == "\n")
        gone = after and after.start == at and not after.filler and text[after.end - 1 : after.end] == "\n"
        ends = _BLANK_LAST.search(one.filler)
        if ends and gone and after and ">" in ends[0]:
            # In a frame a line that is hidden is none.
            gone = _BLANK.match(text, after.end)
        if ends and _BLANK_REST.match(text, one.end) and (gone or _BLANK.match(text, at)):
            one = replace(one, filler=one.filler[: ends.start()])
        tight.append(one)
    return tight


def _is_line(text: str, one: Hidden) -> bool:
    """All of a line is hidden, and its end."""
    whole = not one.filler and one.parsed is None and one.start < one.end and text[one.end - 1] == "\n"
    return whole and text[one.start - 1 : one.start] in ("", "\n")


def _in_frame(text: str, one: Hidden, leads: Mapping[int, str]) -> Hidden:
    """Lines that are hidden in a frame do not end it."""
    lead = leads.get(one.end) if leads and _is_line(text, one) else None
    return replace(one, parsed=lead.rstrip()) if lead else one


def _lead_lines(text: str, one: Hidden, leads: Mapping[int, str]) -> Hidden:
    """What is put in stays in the frame that its line stands in."""
    lead = leads.get(text.rfind("\n", 0, one.start) + 1) if leads and "\n" in one.filler else None
    parsed = one.filler.replace("\n", " ").strip() if one.parsed is None else one.parsed
    return (
        one if lead is None else replace(one, filler=one.filler.replace("\n", f"\n{lead}").rstrip(" "), parsed=parsed)
    )


def _join(spans: list[Span]) -> list[Span]:
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start < joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        elif start < end:
            joined.append((start, end))
    return joined


def _apart(text: str, found: list[Hidden]) -> list[Hidden]:
    """In order, each beginning where the one before has ended."""
    apart: list[Hidden] = []
    for one in sorted(found, key=lambda one: (one.start, one.end)):
        if _is_line(text, one):
            # What would stand before its words is gone with them.
            while apart and apart[-1].start >= one.start:
                apart.pop()
        last = apart[-1].end if apart else 0
        if one.start >= last:
            apart.append(one)
        elif one.end > last:
            apart.append(Hidden(last, one.end, one.filler, one.parsed))
    return apart
