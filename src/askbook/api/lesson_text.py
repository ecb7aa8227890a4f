"""A lesson as HTML, made from its chunks. Nothing of its own HTML gets through, and no link runs a script."""

from __future__ import annotations

import html
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from typing import Any
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from askbook.book.pictures import read_attributes
from askbook.book.sections import Anchors, clean_heading
from askbook.domain import Chunk, Piece
from askbook.formulas import DISPLAY, MATH, add_formulas

Span = tuple[int, int]
"""Offsets in the lesson's file."""
Resolve = Callable[[str], str | None]
"""A link of the lesson → where it leads; None where it leads nowhere that a reader may go."""

# Stand in the text where the cited words begin and end, and become marks: no parser takes them for Markdown.
BEGIN, END = "\ue000", "\ue001"
CITED_ID = "cited-passage"

_LINE_MARKUP = re.compile(r"(?:[ \t>|]|(?:[-*+]|\d{1,9}[.)])[ \t]+|#{1,6}[ \t]+)*[*_~`]*")
LEAST_MARKUP = 20
"""Characters between two listings that a generator's markup makes."""
_FENCE_LINE = re.compile(r"[ \t>]*+(?:`{3,}+|~{3,}+)[^\n]*+\n")
_HTML_TAGS = (
    "a abbr address article aside audio b blockquote body br button canvas caption center cite code col colgroup dd "
    "del details dfn dialog div dl dt em embed fieldset figcaption figure font footer form frame h1 h2 h3 h4 h5 h6 "
    "head header hr html i iframe img input ins kbd label legend li link main map mark math menu meta nav noscript "
    "object ol optgroup option p param picture pre q s samp script section select small source span strong style sub "
    "summary sup svg table tbody td template textarea tfoot th thead title tr track u ul var video wbr"
)
_TAG = re.compile(rf"<!--.*?-->|(<!--.*)|</?(?:{'|'.join(_HTML_TAGS.split())})\b[^<>]*>", re.IGNORECASE | re.DOTALL)
_CUSTOM_ID = re.compile(r"(?<!\s)\s*+(?:\{#[^{}\s]+\}|\[\[[^\[\]\s]+\]\])\s*$")
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_PICTURE = re.compile(r"<img\b([^<>]{0,2000})>", re.IGNORECASE)
_FOOTNOTE = re.compile(r"\[\^([^\[\]\s]{1,40})\]:?")
_TITLE = re.compile(rf"[{BEGIN}{END}]*\*\*(?P<words>(?:(?!\*\*)[^\n])+)\*\*[{BEGIN}{END}]*")
_TASK = re.compile(rf"({BEGIN}?)\[([ xX])\] ")


# --- chunks to text -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A lesson as its readers see it, from its chunks. `pieces` say where the file's own characters stand in it."""

    text: str
    pieces: tuple[Piece, ...]
    anchors: Mapping[int, str]
    """The anchor of the heading on a line, as the addresses of the chunks have it."""

    def find(self, span: Span) -> Span:
        """Where characters of the file stand in the text."""
        if not self.pieces:
            return 0, 0
        return self._place(span[0]), self._place(span[1] - 1) + 1

    def _place(self, place: int) -> int:
        index = max(0, bisect_right(self.pieces, place, key=lambda piece: piece.source_at) - 1)
        piece = self.pieces[index]
        return piece.text_at + max(0, min(place - piece.source_at, piece.length - 1))


def rebuild_text(chunks: Sequence[Chunk]) -> Rebuilt:
    """Each part of the file once, with the labels that stand for its markup. A listing in two chunks is one again."""
    parts: list[str] = []
    pieces: list[Piece] = []
    starts: dict[int, str] = {}
    size = covered = last_line = 0
    tail = ""
    for chunk in chunks:
        starts |= {section.at: section.url for section in chunk.sections} or {chunk.start: chunk.url}
        at, begun = 0, False
        for piece in chunk.pieces:
            known = max(0, min(covered - piece.source_at, piece.length))
            between, at = chunk.text[at : piece.text_at], piece.text_at + piece.length
            if known == piece.length:
                continue
            closing = ""
            if not begun:
                lines = chunk.first_line - last_line
                gap = piece.source_at - covered
                # One listing in two chunks, closed and opened anew where nothing but white space stands in the file.
                opened = _FENCE_LINE.match(between) is not None
                goes_on = opened and bool(tail) and gap - lines < LEAST_MARKUP
                closing = "" if goes_on else tail
                between = _space_between(gap, lines, goes_on) + ("" if goes_on else between)
            between = closing + ("" if known else between)
            text = chunk.text[piece.text_at + known : at]
            parts += between, text
            pieces.append(Piece(size + len(between), piece.source_at + known, len(text)))
            size += len(between) + len(text)
            covered, begun = piece.source_at + piece.length, True
        tail = chunk.text[at:] if begun else tail
        last_line = chunk.last_line
    parts.append(tail)
    whole = "".join(parts)
    rebuilt = Rebuilt(whole, tuple(pieces), {})
    ends = [found.start() for found in re.finditer("\n", whole)]
    lines = {bisect_left(ends, rebuilt.find((at, at + 1))[0]): url for at, url in starts.items()}
    return replace(rebuilt, anchors={line: unquote(url.partition("#")[2]) for line, url in lines.items()})


def _space_between(length: int, lines: int, in_listing: bool) -> str:
    """The white space between two chunks."""
    if length <= 0:
        return ""
    # All of an include has one line number: its parts are separate blocks if more than a space is between them.
    return "\n" * min(length, max(lines, int(in_listing))) or ("\n\n" if length > 1 else " ")


# --- text to HTML ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Heading:
    level: int
    title: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Rendered:
    html: str
    headings: tuple[Heading, ...]


def render_lesson(
    text: str,
    resolve: Resolve,
    cited: Sequence[Span] = (),
    anchors: Mapping[int, str] | None = None,
    place: Resolve = lambda _src: None,
) -> Rendered:
    """`cited`: the words to mark; the blocks that hold them are marked too. `anchors` of headings, by their lines.
    `place`: where a picture is shown."""
    text = text.replace(BEGIN, "\ufffd").replace(END, "\ufffd")
    text, lines = _mark_cited(text, cited)
    tokens = _PARSER.parse(text)
    headings = tuple(_name_headings(tokens, anchors or {}))
    _mark_blocks(tokens, lines)
    _style_admonitions_and_tasks(tokens)
    for token in tokens:
        if token.type == "inline" and token.children:
            token.children = list(_keep_safe_links(token.children, resolve))
    shown = _Renderer(lines, place).render(tokens, _PARSER.options, {})
    return Rendered(shown.replace(BEGIN, "").replace(END, ""), headings)


def _read_footnote(state: StateInline, silent: bool) -> bool:
    found = _FOOTNOTE.match(state.src, state.pos, state.posMax) if state.src[state.pos] == "[" else None
    if found is None:
        return False
    if not silent:
        state.push("footnote", "sup", 0).content = found[1]
    state.pos = found.end()
    return True


_PARSER = add_formulas(MarkdownIt("commonmark").enable(["table", "strikethrough"]))
_PARSER.inline.ruler.before("link", "footnote", _read_footnote)


def _mark_cited(text: str, cited: Sequence[Span]) -> tuple[str, list[range]]:
    """The text with a sign where cited words begin and end, and the lines of these words."""
    parts: list[str] = []
    lines: list[range] = []
    at = 0
    for start, end in sorted(_trim_markup(text, *span) for span in cited):
        start = max(start, at)
        if start < end:
            lines.append(range(text.count("\n", 0, start), text.count("\n", 0, end) + 1))
            parts += text[at:start], BEGIN, text[start:end], END
            at = end
    return "".join(parts) + text[at:], lines


def _trim_markup(text: str, start: int, end: int) -> Span:
    """Without the markup around the words: a mark before `- ` or behind `|` would be no list and no table."""
    start, end = min(start, len(text)), min(end, len(text))
    # The words of a listing with a title begin behind its marks.
    if fence := _FENCE_LINE.match(text, text.rfind("\n", 0, start) + 1, end):
        start = max(start, fence.end())
    start = _LINE_MARKUP.match(text, start, end).end()  # pyright: ignore[reportOptionalMemberAccess]
    return start, start + len(text[start:end].rstrip(" \t\n*_~`|>"))


def _name_headings(tokens: list[Token], known: Mapping[int, str]) -> Iterator[Heading]:
    """Gives headings the anchors that the addresses of the chunks have."""
    anchors = Anchors()
    for at, token in enumerate(tokens):
        if token.type == "heading_open" and token.level == 0:
            raw = tokens[at + 1].content.replace(BEGIN, "").replace(END, "")
            made = unquote(anchors.take(raw))
            anchor = known.get(token.map[0] if token.map else -1) or made
            token.attrSet("id", anchor)
            for last in (tokens[at + 1].children or [])[-1:]:
                last.content = _CUSTOM_ID.sub("", last.content)
            yield Heading(int(token.tag[1]), clean_heading(raw), anchor)


_BLOCKS = ("paragraph_open", "heading_open", "list_item_open", "fence", "code_block", "table_open", "html_block", MATH)


def _mark_blocks(tokens: list[Token], lines: list[range]) -> None:
    blocks = [(token, *token.map) for token in tokens if token.type in _BLOCKS and token.map]
    cited = [token for token, start, stop in blocks if any(start < part.stop and part.start < stop for part in lines)]
    for token in cited:
        token.meta["first"] = token is cited[0]
        if token.type != "list_item_open":
            token.attrJoin("class", "cited")


def _style_admonitions_and_tasks(tokens: list[Token]) -> None:
    """A quotation under a title in bold is an admonition; `[ ]` in a list is a box."""
    for before, paragraph, inline in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if paragraph.type != "paragraph_open" or not inline.children:
            continue
        first = inline.children[0]
        if before.type == "list_item_open" and (task := _TASK.match(first.content)):
            first.content = task[1] + ("☐ " if task[2] == " " else "☑ ") + first.content[task.end() :]
        elif before.type == "blockquote_open" and (found := _TITLE.fullmatch(inline.content)):
            kind = re.sub(rf"[{BEGIN}{END}]", "", found["words"]).lower()
            before.attrs |= {"class": "admonition", "role": "note", "data-kind": kind if kind.isalpha() else "titled"}
            paragraph.attrJoin("class", "title")


def _keep_safe_links(children: list[Token], resolve: Resolve) -> Iterator[Token]:
    """Links that lead nowhere become their words."""
    linked = False
    for token in children:
        token.meta["linked"] = linked
        if token.type == "link_open":
            target = resolve(str(token.attrGet("href") or ""))
            linked = target is not None
            if target is not None:
                token.attrs = {"href": target}
                if urlsplit(target).netloc:
                    token.attrSet("rel", "noopener noreferrer nofollow")
                yield token
        elif token.type != "link_close" or linked:
            yield token
            linked = linked and token.type != "link_close"


class _Renderer(RendererHTML):
    """markdown-it's renderer, without the book's own HTML and with the cited words marked."""

    def __init__(self, cited_lines: list[range], place: Resolve) -> None:
        super().__init__()
        self._place = place
        self._cited_lines = cited_lines
        self._marking = False

    def text(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return self._mark(tokens[idx].content)

    def softbreak(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return "<mark>\n</mark>" if self._marking else "\n"

    def code_inline(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return f"<code>{self._mark(tokens[idx].content)}</code>"

    def fence(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        token = tokens[idx]
        language = re.split(r"[\s{,]", token.info.strip().removeprefix("{"))[0].removesuffix("}") if token.info else ""
        if language == MATH:
            return f"{self._formula(token, 'div', shown=True)}\n"
        return self._listing(token, html.escape(language))

    def code_block(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return self._listing(tokens[idx], "")

    def _listing(self, token: Token, language: str) -> str:
        """As markdown.js makes them; read.js adds colours and a button."""
        classes, anchor = "code cited" if token.attrGet("class") else "code", self._anchor(token)
        head = f'<div class="code-head"><span>{language or "text"}</span></div>'
        code = f'<code data-language="{language}">{self._mark(token.content.rstrip(chr(10)))}</code>'
        label = f"Code, {language}" if language else "Code"
        pre = f'<pre tabindex="0" role="region" aria-label="{label}">{code}</pre>'
        return f'<div class="{classes}"{anchor}>{head}{pre}</div>\n'

    def math(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return self._formula(tokens[idx], tokens[idx].tag, shown=tokens[idx].info == DISPLAY)

    def _formula(self, token: Token, tag: str, shown: bool) -> str:
        """The TeX, which math.js draws. It is marked whole or not at all."""
        classes = " ".join(filter(None, (MATH, DISPLAY if shown else "", str(token.attrGet("class") or ""))))
        marked = self._marking or BEGIN in token.content
        self._mark(token.content)
        tex = html.escape(token.content.replace(BEGIN, "").replace(END, "").strip())
        return f'<{tag} class="{classes}"{self._anchor(token)}>{f"<mark>{tex}</mark>" if marked else tex}</{tag}>'

    def footnote(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return f"<sup>{html.escape(tokens[idx].content)}</sup>"

    def table_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        classes = "table cited" if tokens[idx].attrGet("class") else "table"
        return (
            f'<div class="{classes}"{self._anchor(tokens[idx])} tabindex="0" role="region" aria-label="Table"><table>\n'
        )

    def table_close(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return "</table></div>\n"

    def image(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        words = self.renderInlineAsText(tokens[idx].children, options, env)
        return self._picture(words, str(tokens[idx].attrGet("src") or ""), tokens[idx])

    def _picture(self, words: str, src: str, token: Token) -> str:
        """A picture of the book's own folder is shown. Of any other the words are, as a link to it on the web."""
        marked, plain = self._mark(words), html.escape(words.replace(BEGIN, "").replace(END, ""))
        if address := self._place(src):
            return f'<img class="shown" src="{html.escape(address)}" alt="{plain}" loading="lazy">'
        if src.lower().startswith(("http://", "https://")) and not token.meta.get("linked"):
            leave = 'rel="noopener noreferrer nofollow"'
            return f'<a class="picture" href="{html.escape(src)}" {leave}>{marked or html.escape(src)}</a>'
        return f'<span class="picture">{marked}</span>'

    def html_inline(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        if _BREAK.fullmatch(tokens[idx].content):
            return "<br>"
        return self._show_tags(tokens[idx])

    def html_block(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        shown = self._show_tags(tokens[idx]).strip()
        return f"<p{self._anchor(tokens[idx])}>{shown}</p>\n" if shown else ""

    def _show_tags(self, token: Token) -> str:
        """The words between the tags, and the pictures."""
        parts = _PICTURE.split(token.content.strip())
        words = (self._mark(_TAG.sub(r"\1", part)) for part in parts[::2])
        pictures = (self._picture(*read_attributes(tag), token) for tag in parts[1::2])
        return "".join(chain.from_iterable(zip_longest(words, pictures, fillvalue="")))

    def renderToken(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        shown, token = super().renderToken(tokens, idx, options, env), tokens[idx]
        if token.map and not any(token.map[0] in cited for cited in self._cited_lines):
            # The end of the cited words was in markup that is not shown.
            self._marking = False
        # A span, because a heading has an id already.
        return f'<span id="{CITED_ID}"></span>{shown}' if token.meta.get("first") else shown

    def _anchor(self, token: Token) -> str:
        return f' id="{CITED_ID}"' if token.meta.get("first") else ""

    def _mark(self, text: str) -> str:
        """Each stretch of text by itself: marks never cross the elements around them."""
        parts: list[str] = []
        for part in re.split(f"([{BEGIN}{END}])", text):
            if part in (BEGIN, END):
                self._marking = part == BEGIN
            elif part:
                words = html.escape(part)
                parts.append(f"<mark>{words}</mark>" if self._marking and part.strip() else words)
        return "".join(parts)
