"""What may be quoted of a passage's text: sentences, listings and tables, each of them whole."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode

from askbook.answer.cleaning import clean
from askbook.formulas import add_formulas
from askbook.index.keywords import STOPWORDS

UnitKind = Literal["sentence", "code", "table"]
BlockKind = Literal["prose", "list", "steps", "code", "table"]

Span = tuple[int, int]

LABEL_WORDS = 6
SENTENCE_CHARS = 300
"""How far around a full stop is looked whether it ends a sentence."""
REMEMBERED = 128
"""Passage texts; each is needed several times for one question and parsed once."""
WORD_CHARS = 60

_PARSER = add_formulas(MarkdownIt("commonmark").enable("table"))

_CONTAINER = re.compile(r"[ \t>]*")
_NEXT_LINE = re.compile(r"(?<=\n)[ \t>]+")
_FENCE = re.compile(r"`{3,}|~{3,}")
_MARKER = re.compile(r"(?:[-*+]|\d{1,9}[.)])[ \t]+")
_CHECKBOX = re.compile(r"\[[ xX]\][ \t]+")
_BETWEEN = re.compile(r"[\s>*+\-\d.)\[\]xX]*")
_WORD = re.compile(r"\w[\w'’.-]*")
_HIDES = re.compile(r"<!--|<\||!\[|(?:java|vb)script:|</?[A-Z][\w.-]*(?=[\s/>])", re.IGNORECASE)
"""The book's reader has taken out the tags that it knows."""


@dataclass(frozen=True, slots=True)
class Unit:
    """`text[start:end]`, without a list marker."""

    kind: UnitKind
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, a whole list, a listing or a table, with its units."""

    kind: BlockKind
    start: int
    end: int
    units: tuple[Unit, ...]
    headings: tuple[str, ...] = ()
    """Those above it in this text, nearest last."""
    items: tuple[Span, ...] = ()
    """Of a list: each whole item with its marker."""


@lru_cache(REMEMBERED)
def split_blocks(text: str) -> tuple[Block, ...]:
    """In order. Headings, link definitions, lone images and lone tags are in no block."""
    reader = _BlockReader(text)
    return tuple(block for block in reader.read(reader.root) if block.units)


def may_quote(text: str) -> bool:
    """Nothing in it is hidden from a reader's eye, loads a picture, or runs."""
    return clean(text) == text and not _HIDES.search(_CODE_SPAN.sub("", text))


def without_prefix(text: str, prefix: str) -> str:
    """Removes a container's prefix from each line: a list item's indent, a quotation's sign."""
    return re.sub(rf"\n[ \t>]{{0,{len(prefix)}}}", "\n", text) if prefix else text


def prefix_of(text: str, start: int) -> str:
    """The container's prefix on the quote's first line."""
    opening = text[text.rfind("\n", 0, start) + 1 : start]
    return opening if not _CONTAINER.sub("", opening) or _MARKER.search(opening) else ""


def inside_of(text: str, unit: Unit) -> Span:
    """The lines of a listing without its fences, the rows of a table without its head."""
    lines = text[unit.start : unit.end].split("\n")
    fence = _FENCE.match(lines[0])
    closing = _CONTAINER.sub("", lines[-1], count=1)
    above = 2 if unit.kind == "table" else 1 if fence else 0
    below = 1 if fence and closing.startswith(fence[0]) and not closing.strip("`~") else 0
    start = unit.start + sum(len(line) + 1 for line in lines[:above])
    return min(start, unit.end), unit.end - sum(len(line) + 1 for line in lines[-1:] * below)


def lies_close(text: str, units: Sequence[Unit], start: int, end: int) -> bool:
    """Only list signs lie between the units: anything else would be quoted with them."""
    ends = [start, *(unit.end for unit in units)]
    starts = [*(unit.start for unit in units), end]
    return all(_BETWEEN.fullmatch(text, *gap) for gap in zip(ends, starts, strict=True))


# --- blocks ---------------------------------------------------------------------------------------


class _BlockReader:
    """One pass over the parser's tree."""

    def __init__(self, text: str) -> None:
        tokens: list[Token] = []
        _PARSER.block.parse(text, _PARSER, {}, tokens)
        self.root = SyntaxTreeNode(tokens)
        self._text = text
        self._starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
        self._path: list[tuple[int, str]] = []

    def read(self, node: SyntaxTreeNode) -> Iterator[Block]:
        headings = tuple(title for _, title in self._path)
        match node.type:
            case "root" | "blockquote":
                for child in node.children:
                    yield from self.read(child)
            case "heading":
                level = int(node.tag[1])
                above = [heading for heading in self._path if heading[0] < level]
                self._path = [*above, (level, node.children[0].content)]
            case "bullet_list" | "ordered_list":
                units = tuple(unit for inner in node.walk() for unit in self._read_units(inner))
                items = tuple(self._lines_of(item) for item in node.children)
                kind: BlockKind = "list" if node.type == "bullet_list" else "steps"
                yield Block(kind, *self._lines_of(node), units, headings, items)
            case _ if units := tuple(self._read_units(node)):
                kind = "prose" if units[0].kind == "sentence" else units[0].kind
                yield Block(kind, units[0].start, units[-1].end, units, headings)
            case _:
                pass

    def _read_units(self, node: SyntaxTreeNode) -> Iterator[Unit]:
        text = self._text
        match node.type:
            case "paragraph":
                inline = node.children[0]
                start, end = self._span_of(inline)
                # Without its container's prefix.
                start = text.find(inline.content.split("\n", 1)[0], start)
                yield from _split_prose(text, start, end)
            case "fence" | "code_block" | "math":
                # Formulas stay whole, with their signs.
                start, end = self._lines_of(node)
                if node.content.strip() and clean(text[start:end]) == text[start:end]:
                    yield Unit("code", text.find(node.markup, start, end), end)
            case "table":
                start, end = self._lines_of(node)
                if may_quote(text[start:end]):
                    yield Unit("table", start, end)
            case _:
                return

    def _lines_of(self, node: SyntaxTreeNode) -> Span:
        """A block's characters, without its container's prefix and trailing white space."""
        start, end = self._span_of(node)
        prefix = None if node.type == "code_block" else _CONTAINER.match(self._text, start, end)
        start = prefix.end() if prefix else start
        return start, start + len(self._text[start:end].rstrip())

    def _span_of(self, node: SyntaxTreeNode) -> Span:
        assert node.map is not None
        return self._starts[node.map[0]], min(self._starts[node.map[1]], len(self._text))


# --- sentences ------------------------------------------------------------------------------------

_ABBREVIATED = """
e.g i.e eg ie cf vs viz al approx ca resp incl dr mr mrs ms prof st jr sr inc ltd co corp mt rev gen col sgt
jan feb mar apr jun jul aug sep sept oct nov dec
"""
_NUMBERED = "fig figs eq eqs no nos sec secs ch chap vol pp p ed eds ref refs tab art app ver v"
_ABBREVIATIONS, _BEFORE_NUMBERS = frozenset(_ABBREVIATED.split()), frozenset(_NUMBERED.split())
_NUMBER = re.compile(r"[*_]*(?:[\"'“‘(\[`\d]|[A-Z]\d|[IVXLC]{2})")

_CODE_SPAN = re.compile(r"(?<!`)(`++).+?(?<!`)\1(?!`)", re.DOTALL)
_IMAGE = re.compile(
    r"!\[(?:\\.|[^\[\]\\]|\[[^\[\]]*\])*\]"
    r"(?:\(\s*(?:<[^<>\n]*>|[^\s()]*(?:\([^\s()]*\)[^\s()]*)*)(?:\s+(?:\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'))?\s*\)|\[[^\[\]]*\])?"
)
_OPAQUE = re.compile(
    r"(?:\[[^\[\]]*)?\]\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)|<[^<>\n]+>|https?://\S+|\$\$.+?\$\$|\$[^\s$][^$\n]*\$",
    re.DOTALL,
)
_END = re.compile(r"(?<![.!?…])(?<!\.\s)(?:\.(?:\s\.)++|[.!?…]++)[\"'”’»)\]*_]*+(?=\s)|[。！？]++[」』”）]*+")
_HARD_BREAK = re.compile(r"(?:(?<! ) {2,}+|\\)\n")
_TRIMMED = re.compile(r"[\s>]*+(\S(?:.*\S)?)", re.DOTALL)
_LAST_WORD = re.compile(r"(?<![\w.])[\w.]++$")
_INITIALS = re.compile(r"[A-Z](?:\.[A-Za-z])*")
_ORDINAL = re.compile(r"\(?\d{1,3}[.)]?")
_LABEL = re.compile(r"(?:\*\*|__)[^*_]+(?:\*\*|__)")


def ends_sentence(before: str, stops: str, after: str, final: bool = True) -> bool | None:
    """Whether a sentence ends with these stops and what closes behind them; None while more text could change it.

    A bracket, a quotation mark, code, emphasis or a digit may open the next sentence; a small letter does not.
    """
    said = before + stops
    if stops[0] in "。！？" or not after:
        return True
    if after[0].islower() or after[0] in ",;:)]–—" or said.count("`") % 2 or said.rfind("(") > said.rfind(")"):
        return False
    if said.rfind("[") > said.rfind("]") or (len(said.split()) <= LABEL_WORDS and _LABEL.fullmatch(said.lstrip())):
        return False  # "**Reuse.** The driver serves both." A label says nothing without what it names.
    found = _LAST_WORD.search(before[-WORD_CHARS:])
    word = found[0] if found else ""
    if stops[0] != "." or stops.startswith("..") or not word:
        return True
    is_initial = _INITIALS.fullmatch(word) is not None
    if not final and (is_initial or word.lower() in _BEFORE_NUMBERS) and not re.match(r"\W*\w+\W", after):
        return None
    if is_initial:
        following = re.match(r"\W*(\w*)", after)
        return following is not None and following[1].lower() in STOPWORDS
    if word.lower() in _BEFORE_NUMBERS:
        return not _NUMBER.match(after)
    return word.lower() not in _ABBREVIATIONS and not _ORDINAL.fullmatch(before.strip())


def split_sentences(text: str) -> list[Span]:
    """A full stop inside code, a link, a number, an abbreviation or brackets ends nothing."""
    masked = _mask(text)
    images = (place for found in _IMAGE.finditer(text) for place in found.span() if _is_line_edge(text, place))
    breaks = (found.end() for found in _HARD_BREAK.finditer(masked))
    cuts = sorted({0, *_find_ends(masked), *images, *breaks, len(text)})
    return [found.span(1) for cut in pairwise(cuts) if (found := _TRIMMED.match(text, *cut))]


def _is_line_edge(text: str, place: int) -> bool:
    """Nothing stands before it on its line, or nothing after it."""
    line_end = text.find("\n", place)
    before = text[text.rfind("\n", 0, place) + 1 : place]
    return not before.strip() or not text[place : len(text) if line_end < 0 else line_end].strip()


def _mask(text: str) -> str:
    """The text at the same length, with code, images, links and tags blanked out."""
    for pattern in (_CODE_SPAN, _IMAGE, _OPAQUE):
        text = pattern.sub(lambda found: "X" * len(found[0]), text)
    return _NEXT_LINE.sub(lambda found: " " * len(found[0]), text)


def _find_ends(text: str) -> Iterator[int]:
    begin = 0
    for found in _END.finditer(text):
        before = text[max(begin, found.start() - SENTENCE_CHARS) : found.start()]
        if ends_sentence(before, found[0], text[found.end() : found.end() + SENTENCE_CHARS].lstrip()):
            yield found.end()
            begin = found.end()


def _split_prose(text: str, start: int, end: int) -> Iterator[Unit]:
    if opening := _CHECKBOX.match(text, start, end):
        start = opening.end()
    paragraph = text[start:end]
    for first, stop in split_sentences(paragraph):
        said = paragraph[first:stop]
        if may_quote(said) and _WORD.search(said):
            yield Unit("sentence", start + first, start + stop)
