"""A lesson's own markup as its readers see it: what is hidden of the source, and what stands in its place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest

from askbook.book.markup.blocks import read_blocks
from askbook.book.markup.inline import read_inline
from askbook.book.markup.spans import Hidden, Span, join_neighbours, whole_lines

MARKUP_VERSION = 2
"""Lessons are read again when it changes. How they are cut is CHUNKER_VERSION, which calibrations belong to."""

_COMPONENT = re.compile(
    r"^(?:import\s[^\n]{1,200}\sfrom\s|<(?:Tabs|TabItem|Steps|Step|Callout|Admonition|Aside)\b)", re.MULTILINE
)

_FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)
_BLANK = re.compile(r"[ \t>]*(?:\n|\Z)")
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
    found = _COMPONENT.search(text)
    return found is not None and len(_FENCE.findall(text, 0, found.start())) % 2 == 0


def read_markup(text: str, start: int, mdx: bool, titles: Mapping[str, str]) -> Markup:
    blocks = read_blocks(text, start, mdx)
    lines = sorted(blocks.hidden, key=lambda one: (one.start, -one.end))
    skip = _join([*((one.start, one.end) for one in lines), *blocks.code, *blocks.math])
    formulas = list(blocks.math)
    inline = list(read_inline(text, start, mdx, skip, formulas, titles))
    inline = [whole_lines(text, one) for one in join_neighbours(text, inline)]
    return Markup(_tighten(text, _apart([*lines, *inline])), sorted(formulas), blocks.math)


def _tighten(text: str, found: list[Hidden]) -> list[Hidden]:
    """One blank line is enough below a label; a line that is hidden is one too."""
    tight: list[Hidden] = []
    for one, after in zip_longest(found, found[1:]):
        at = one.end + (text[one.end : one.end + 1] == "\n")
        gone = after and after.start == at and not after.filler and text[after.end - 1 : after.end] == "\n"
        if one.filler.endswith(("\n", "\n>")) and _BLANK_REST.match(text, one.end) and (gone or _BLANK.match(text, at)):
            one = replace(one, filler=one.filler.rstrip("\n>"))
        tight.append(one)
    return tight


def _join(spans: list[Span]) -> list[Span]:
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start < joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        elif start < end:
            joined.append((start, end))
    return joined


def _apart(found: list[Hidden]) -> list[Hidden]:
    """In order, each beginning where the one before has ended."""
    apart: list[Hidden] = []
    for one in sorted(found, key=lambda one: (one.start, one.end)):
        last = apart[-1].end if apart else 0
        if one.start >= last:
            apart.append(one)
        elif one.end > last:
            apart.append(Hidden(last, one.end, one.filler, one.parsed))
    return apart
