"""A lesson's text as blocks and sections: what belongs together, and where it may be cut."""

from __future__ import annotations

import html
import re
import unicodedata
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import quote

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token

from askbook.book.markup import read_markup
from askbook.book.markup.spans import Hidden, to_parsed

Kind = Literal["heading", "prose", "fence", "table", "list", "item", "quote", "code", "html", "rule", "plain"]

# Only the place of a block is asked of the parser, so it sees the head of a very long line and no more.
MAX_LINE = 2_000
# The parser is given this many lines at a time, so that its tokens never fill the memory.
WINDOW = 50_000
# A file of very many very short lines would keep the parser busy for minutes; it is cut by lines alone.
MANY_LINES, SHORT_LINE = 20_000, 16
MAX_TITLE = 200
MAX_MARK = 100
LARGE_TABLE = 2_000

_OPEN: dict[str, Kind] = {
    "blockquote_open": "quote",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "list_item_open": "item",
}
_CLOSE = {name.replace("_open", "_close") for name in _OPEN}
_LEAF: dict[str, Kind] = {
    "heading_open": "heading",
    "paragraph_open": "prose",
    "fence": "fence",
    "table_open": "table",
    "code_block": "code",
    "html_block": "html",
    "hr": "rule",
}
_PADDING = re.compile(r" {4,}")
_LONG_RULE = re.compile(r"-{10,}")
_CUSTOM_ID = re.compile(
    r"(?<!\s)\s*+(?:\{:?[ ]*#([^{}\s]+)[^{}]*\}|\{/\*\s*#([^{}\s]+)\s*\*/\}|\[\[([^\[\]\s]+)\]\]|\[#([^\[\]\s]+)\])\s*$"
)
_ROLE = re.compile(r"(?<!`)\{[A-Za-z][\w:+.-]*\}`([^`<\n]+)(?:<[^`<>\n]*>)?`")
_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()\n]*\)|\[[^\[\]]*\])")
_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
# A comment that nothing closes is text, and looked through once.
_TAG = re.compile(r"(?<!\\)</?[A-Za-z][^<>]*>|<!--.*?-->|(<!--.*)", re.DOTALL)
_CLOSING_MARKS = re.compile(r"(?<!\s)\s++#++\s*$")
_EMPHASIS = re.compile(r"`+|\*+|~~|(?<!\w)_+(?=\S)|(?<=\S)_+(?!\w)")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")


_FIRST_TITLE = re.compile(
    r"^ {0,3}(?P<fence>`{3,}|~{3,})|^ {0,3}#[ \t]++(?P<atx>[^\n]++)|^ {0,3}(?P<setext>[^\s#>`~-][^\n]*+)\n=++[ \t]*+$",
    re.MULTILINE,
)
_OPENING_HEADING = re.compile(r"\s*+#{2,6}[ \t]++([^\n]++)")


@dataclass(slots=True)
class Block:
    """Lines `first` up to, not including, `end`. `mark` and `info` are a fence's, `title` and `level` a heading's."""

    kind: Kind
    first: int
    end: int
    children: list[Block] = field(default_factory=list)
    level: int = 0
    title: str = ""
    mark: str = ""
    info: str = ""
    closed: bool = True


@dataclass(frozen=True, slots=True)
class Section:
    """The blocks under one heading. The page's own title is no section heading."""

    headings: tuple[str, ...]
    anchor: str | None
    blocks: list[Block]


class Source:
    """A lesson's text with its lines, what is hidden in it, and where a fence that was left open must be closed."""

    def __init__(self, text: str, body_start: int, mdx: bool, titles: Mapping[str, str] | None = None) -> None:
        self.text = text
        self.mdx = mdx
        self.starts = array("q", [0, *(newline.end() for newline in re.finditer("\n", text))])
        self.first_line = bisect_right(self.starts, body_start) - 1
        markup = read_markup(text, body_start, mdx, titles or {})
        self.hidden, self._math = markup.hidden, markup.math
        self._math_starts = [formula[0] for formula in self._math]
        self._hidden_starts = [hidden.start for hidden in self.hidden]
        shown = to_parsed(text, self.hidden, markup.parsed) if self.hidden or markup.parsed else text
        self._lines = [line[:MAX_LINE] for line in shown[body_start:].split("\n")]
        self.closers: dict[int, str] = {}
        self.blocks = self._filled(self._read_blocks(len(shown)), self.first_line, len(self.starts))
        padding = [hidden for block in self.blocks if block.kind == "table" for hidden in self._padding(block)]
        if padding:
            self.hidden = sorted([*self.hidden, *padding], key=lambda hidden: hidden.start)
            self._hidden_starts = [hidden.start for hidden in self.hidden]
        for block in open_fences(self.blocks):
            prefix = fence_prefix(self.first_line_of(block), block.mark)
            self.closers[self.span(block.first, block.end)[1]] = f"\n{prefix}{block.mark}"
        self._closer_places = sorted(self.closers)

    def span(self, first: int, end: int) -> tuple[int, int]:
        """The characters of these lines, without white space or hidden text behind the last."""
        start = self.starts[first]
        stop = self.starts[end] if end < len(self.starts) else len(self.text)
        while True:
            stop = _without_space(self.text, start, stop)
            index = bisect_right(self._hidden_starts, stop - 1) - 1
            hidden = self.hidden[index] if index >= 0 else None
            if hidden is None or hidden.start < start or hidden.end < stop or hidden.filler.strip():
                return start, stop
            stop = hidden.start

    def line_of(self, place: int) -> int:
        return bisect_right(self.starts, place)

    def shown(self, start: int, end: int) -> Iterator[tuple[int, int] | str]:
        """The parts of `text[start:end]` that readers see, and the few characters that stand for what they do not."""
        for index in range(bisect_right(self._closer_places, start), len(self._closer_places)):
            place = self._closer_places[index]
            if place > end:
                break
            yield from self._unhidden(start, place)
            yield self.closers[place]
            start = place
        yield from self._unhidden(start, end)

    def shown_text(self, start: int, end: int) -> str:
        if not self.hidden and not self.closers:
            return self.text[start:end]
        return "".join(
            part if isinstance(part, str) else self.text[part[0] : part[1]] for part in self.shown(start, end)
        )

    def _unhidden(self, start: int, end: int) -> Iterator[tuple[int, int] | str]:
        begin = start
        for index in range(max(0, bisect_left(self._hidden_starts, start) - 1), len(self.hidden)):
            hidden = self.hidden[index]
            # What is put in belongs to the words before it, but at the head of a line to those behind it.
            opens = hidden.start == hidden.end and self.text[hidden.start - 1 : hidden.start] in ("\n", "")
            if hidden.start > end or (hidden.start == end and (hidden.end > end or opens)):
                break
            if hidden.end < start or (hidden.end == start and not opens):
                continue
            if hidden.start > start:
                yield start, hidden.start
            # What is hidden over many lines has its filler in the first of them.
            if hidden.filler and hidden.start >= begin:
                yield hidden.filler
            start = min(hidden.end, end)
        if start < end:
            yield start, end

    def _read_blocks(self, size: int) -> list[Block]:
        lines = self._lines
        if len(self.starts) > MANY_LINES and size < SHORT_LINE * len(lines):
            return []
        blocks: list[Block] = []
        at, window = 0, WINDOW
        while at < len(lines):
            found = parse_blocks(lines[at : at + window], self.mdx, self.first_line + at)
            if at + window >= len(lines):
                return blocks + found
            if len(found) < 2:
                window *= 4
                continue
            blocks += found[:-1]
            at, window = found[-1].first - self.first_line, WINDOW
        return blocks

    def _filled(self, blocks: list[Block], first: int, end: int) -> list[Block]:
        """No line is lost: what the parser gave to no block becomes a block of its own."""
        filled: list[Block] = []
        for block in blocks:
            filled += self._between(first, block.first)
            block.first, block.end = max(block.first, first), min(block.end, end)
            if len(block.mark) > MAX_MARK:
                block.kind = "plain"
            if block.children:
                block.children = self._filled(block.children, block.first, block.end)
            filled.append(block)
            first = max(first, block.end)
        return filled + self._between(first, end)

    def _between(self, first: int, end: int) -> list[Block]:
        if first >= end:
            return []
        start, stop = self.span(first, end)
        return [Block("plain", first, end)] if stop > start else []

    def _padding(self, block: Block) -> Iterator[Hidden]:
        """What only lines up the columns: it would leave no room for the rows of a large table, and an embedder
        reads a token for each dash."""
        start, end = self.span(block.first, block.end)
        rule = self.span(block.first + 1, block.first + 2)
        for part in self._unhidden(start, end):
            if isinstance(part, str):
                continue
            if end - start > LARGE_TABLE:
                yield from (Hidden(run.start() + 1, run.end()) for run in _PADDING.finditer(self.text, *part))
            runs = _LONG_RULE.finditer(self.text, max(part[0], rule[0]), min(part[1], rule[1]))
            yield from (Hidden(run.start() + 3, run.end()) for run in runs)

    def first_line_of(self, block: Block) -> str:
        """As the parser saw it."""
        return self._lines[block.first - self.first_line]

    def is_in_formula(self, place: int) -> bool:
        index = bisect_right(self._math_starts, place - 1) - 1
        return index >= 0 and place < self._math[index][1]


def open_fences(blocks: list[Block]) -> Iterator[Block]:
    for block in blocks:
        yield from open_fences(block.children)
        if block.kind == "fence" and not block.closed:
            yield block


def fence_prefix(opening: str, mark: str) -> str:
    """What stands before a fence on its line, as its next lines have it: a list marker becomes spaces."""
    return re.sub(r"[^>\s]", " ", opening[: max(0, opening.find(mark))])


def _without_space(text: str, start: int, stop: int) -> int:
    while stop > start:
        tail = text[max(start, stop - 1_000) : stop]
        if kept := len(tail.rstrip()):
            return stop - len(tail) + kept
        stop -= len(tail)
    return start


def _build_parser(mdx: bool) -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable("table").disable("reference")
    if mdx:
        parser.disable(["code", "html_block"]).block.ruler.at("paragraph", _read_paragraph)
    return parser


def _read_paragraph(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """In MDX nothing is code for its indent: what ends a paragraph ends it at any depth, as a listing below a tag."""
    rules = state.md.block.ruler.getRules("paragraph")
    before, state.parentType, state.line = state.parentType, "paragraph", start + 1
    while state.line < state.lineMax and not state.isEmpty(state.line):
        goes_on = state.sCount[state.line] < 0
        if not goes_on and any(rule(state, state.line, state.lineMax, True) for rule in rules):
            break
        state.line += 1
    state.parentType = before
    state.push("paragraph_open", "p", 1).map = [start, state.line]
    state.push("paragraph_close", "p", -1)
    return True


_MARKDOWN, _MDX = _build_parser(mdx=False), _build_parser(mdx=True)


def parse_blocks(lines: list[str], mdx: bool = False, offset: int = 0) -> list[Block]:
    """Block structure alone: inline Markdown is never parsed, so brackets or backticks by the thousand cost nothing."""
    parser = _MDX if mdx else _MARKDOWN
    tokens: list[Token] = []
    parser.block.parse("\n".join(lines) + "\n", parser, {}, tokens)
    root: list[Block] = []
    open_lists = [root]
    for index, token in enumerate(tokens):
        if token.type in _CLOSE:
            open_lists.pop()
        elif token.map and (kind := _OPEN.get(token.type) or _LEAF.get(token.type)):
            block = Block(kind, token.map[0] + offset, token.map[1] + offset)
            open_lists[-1].append(block)
            if token.type in _OPEN:
                open_lists.append(block.children)
            elif kind == "heading":
                block.level, block.title = int(token.tag[1]), tokens[index + 1].content
            elif kind == "fence":
                block.mark, block.info = token.markup, token.info
                block.closed = token.map[1] - token.map[0] - 2 == token.content.count("\n")
    return root


def split_sections(blocks: list[Block], anchor_style: str = "github") -> list[Section]:
    anchors = Anchors(anchor_style)
    sections: list[Section] = []
    path: list[tuple[int, str]] = []
    anchor: str | None = None
    seen_heading = False
    for block in blocks:
        if block.kind == "heading":
            title, found = clean_heading(block.title), anchors.take(block.title)
            path = [above for above in path if above[0] < block.level]
            if seen_heading or block.level > 1:
                path.append((block.level, title))
                anchor = found
            seen_heading = True
        if block.kind == "heading" or not sections:
            sections.append(Section(tuple(title for _, title in path), anchor, []))
        sections[-1].blocks.append(block)
    return sections


def clean_heading(raw: str) -> str:
    """A heading as it is read aloud: no links, emphasis, tags or ids."""
    text = _CUSTOM_ID.sub("", _ROLE.sub(r"\1", raw) if "}`" in raw else raw)
    text = _TAG.sub(r"\1", _LINK.sub(r"\1", text))
    text = " ".join(html.unescape(_ESCAPED.sub(r"\1", _EMPHASIS.sub("", text))).split())
    return text if len(text) <= MAX_TITLE else text[: MAX_TITLE - 1] + "…"


class Anchors:
    """Heading → the id that its generator gives it.

    `github`: GitHub, Docusaurus, mdBook, Hugo, Nextra, Starlight; `python` and `pymdownx`: MkDocs; `vue`: VitePress and
    VuePress; `docutils`: Sphinx.
    """

    def __init__(self, style: str = "github") -> None:
        self._style = style
        self._taken: dict[str, int] = {}

    def take(self, raw_heading: str) -> str:
        if custom := _CUSTOM_ID.search(raw_heading):
            return quote(next(filter(None, custom.groups())), safe="-_.~!*'()")
        plain = _SLUGS[self._style](_heading_words(raw_heading))
        name = plain
        while name in self._taken or (not name and self._style not in ("github", "vue")):
            # docutils counts all that need a number together, the others each name for itself.
            counted = "" if self._style == "docutils" else plain
            self._taken[counted] = number = self._taken.get(counted, 0) + 1
            name = _REPEATED[self._style].format(plain, number)
        self._taken.setdefault(name, 0)
        return quote(name, safe="-_.~")


def _heading_words(raw: str) -> str:
    """As `clean_heading`, but code is kept to the letter: `<Badge>` in it is no tag, `__init__` no emphasis."""
    if "`" not in raw:
        return clean_heading(raw)
    codes: list[str] = []

    def hold(match: re.Match[str]) -> str:
        codes.append(match[2].strip())
        return f"\ue000{len(codes) - 1}\ue001"

    cleaned = clean_heading(_CODE.sub(hold, re.sub("[\ue000\ue001]", "", raw)))
    return re.sub("\ue000(\\d+)\ue001", lambda match: codes[int(match[1])], cleaned)


def _slug_github(text: str) -> str:
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def _slug_python(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def _slug_vue(text: str) -> str:
    # The name of an emoji (`:tada:`) is no part of the id.
    named = re.sub(r":[a-z0-9_+-]+:", "", text)
    plain = re.sub(r"[\u0300-\u036f\u0000-\u001f]", "", unicodedata.normalize("NFKD", named))
    joined = re.sub(r"[\s~`!@#$%^&*()\-_+=\[\]{}|\\;:\"'“”‘’<>,.?/]+", "-", plain).strip("-")
    return re.sub(r"^(\d)", r"_\1", joined).lower()


def _slug_docutils(text: str) -> str:
    plain = unicodedata.normalize("NFKD", " ".join(text.lower().split())).encode("ascii", "ignore").decode()
    return re.sub(r"^[-0-9]+|-+$", "", re.sub(r"[^a-z0-9]+", "-", plain))


_SLUGS = {
    "github": _slug_github,
    "python": _slug_python,
    "pymdownx": _slug_github,
    "vue": _slug_vue,
    "docutils": _slug_docutils,
}
_REPEATED = {"github": "{}-{}", "python": "{}_{}", "pymdownx": "{}_{}", "vue": "{}-{}", "docutils": "id{1}"}


def find_title(text: str, body_start: int) -> str | None:
    """The first top heading outside code, else a lesser heading that opens the body. Quick, for thousands of files."""
    at, end = body_start, body_start + 100_000
    while match := _FIRST_TITLE.search(text, at, end):
        if not match["fence"]:
            return clean_heading(_CLOSING_MARKS.sub("", match["atx"] or match["setext"])) or None
        closing = re.compile(rf"^ {{0,3}}{re.escape(match['fence'])}+[ \t]*+$", re.MULTILINE).search(
            text, match.end(), end
        )
        if closing is None:
            break
        at = closing.end()
    opening = _OPENING_HEADING.match(text, body_start)
    return clean_heading(_CLOSING_MARKS.sub("", opening.group(1))) or None if opening else None
