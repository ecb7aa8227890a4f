"""Tags, imports, exports and comments: a component shows its title, its label and the prose in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from askbook.book.markup.spans import (
    LABELS,
    Hidden,
    Lines,
    Span,
    find_blank_before,
    find_blank_behind,
    names,
    to_target,
)

ESM = r"(?=import[ \t{*\"']|export[ \t{*])\w++"
_EXPRESSION_END = re.compile(r"\*/\s*+\}")
_BLANK_LINE = re.compile(r"\n[ \t]*\n")

_NAME = r"[\w$]++"
_BRACES = r"\{[^{}]*+\}"
_FROM = r"from\s*+(?:\"[^\"\n]*+\"|'[^'\n]*+')"
_LINE_END = r"[ \t]*+;?[ \t]*+(?://[^\n]*+)?$"
_ONE_IMPORT = (
    rf"import\s*+(?:\"[^\"\n]*+\"|'[^'\n]*+'|(?:type\s++(?!from\b))?(?:{_NAME}|\*\s*+as\s++{_NAME}|{_BRACES})\s*+"
    rf"(?:,\s*+(?:\*\s*+as\s++{_NAME}|{_BRACES})\s*+)?{_FROM})"
)
_IMPORT = re.compile(rf"(?:{_ONE_IMPORT}[ \t]*+;[ \t]*+(?=import\b))*+{_ONE_IMPORT}{_LINE_END}", re.MULTILINE)
_EXPORT = re.compile(
    rf"export\s++(?:(?:const|let|var)\s++(?:{_NAME}\s*+(?::[^=\n]*+)?=|[{{\[])"
    rf"|(?:async\s++)?function\b\s*+\*?\s*+{_NAME}\s*+[(<]|class\s++{_NAME}\s*+(?:extends\b|\{{)"
    rf"|(?:type\s++{_NAME}[^=\n]*+=|interface\s++{_NAME}[^{{\n]*+\{{|enum\s++{_NAME}\s*+\{{)"
    rf"|default\s++(?:(?:async|function|class)\b|[({{\[\"'`<]|(?:{_NAME}\.?+)++[ \t]*+(?:[;(]|=>|$))"
    rf"|{_BRACES}(?:\s*+{_FROM})?{_LINE_END}|\*\s*+(?:as\s++{_NAME}\s*+)?{_FROM})",
    re.MULTILINE,
)
_SPACE = re.compile(r"\s{0,200}+")
_LOOK_AHEAD = 100_000
_CODE_STOP = re.compile(r"[\"'`{}()\[\]<>\n]")
_OPENERS, _CLOSERS = "{([", "})]"
_GOES_ON = ("=", "=>", ",", "+", "?", ":", "&&", "||", "(", "[", "{")

_HTML = names(
    """a abbr address article aside audio b bdi bdo blockquote br button canvas caption center cite code col colgroup dd
    del details dfn dialog div dl dt em embed fieldset figcaption figure font footer form h1 h2 h3 h4 h5 h6 header hr i
    iframe img input ins kbd label legend li link main map mark math menu meta nav noscript object ol optgroup option p
    param picture pre q s samp script section select small source span strike strong style sub summary sup svg table
    tbody td template textarea tfoot th thead title tr track tt u ul var video wbr path rect circle line polygon g"""
)
_PARTING = names(
    """br hr p div li ul ol td th tr table dt dd dl h1 h2 h3 h4 h5 h6 summary details section article figure figcaption
    blockquote option button"""
)
_ALONE = names("br hr img wbr p li td th tr dt dd")
_CODE = names("code tt samp pre")
_STRUCK = names("del s strike")
_BOLD = names("summary h1 h2 h3 h4 h5 h6 figcaption")
_SHOWN = re.compile(
    r"\b(?P<name>title|label|header|heading|summary|caption|text|alt|description|question|file-?name)\s*=\s*"
    r"(?:\{\s*)?(?P<quote>[\"'`])(?P<value>(?:(?!(?P=quote)|\n\s*\n).){1,500})(?P=quote)",
    re.DOTALL,
)
_VALUE = re.compile(r"\b(?P<name>value|name)\s*=\s*(?P<quote>[\"'])(?P<value>[^\"'\n]{1,100})(?P=quote)")
_SOURCE = re.compile(r"\bsrc\s*=\s*(?P<quote>[\"'])(?!\w+:|//)(?P<value>[^\n\"'<>\[\]{}`\\]{1,1000})(?P=quote)")
_ALT = re.compile(r"\balt\s*=\s*(?P<quote>[\"'])(?P<value>(?:(?!(?P=quote)|\n\s*\n).){1,1000})(?P=quote)", re.DOTALL)
_TYPE = re.compile(r"\b(?:type|kind|variant|intent)\s*=\s*[\"'](\w+)[\"']")
_ITEMS = re.compile(r"\bitems\s*=\s*\{\s*\[(?P<items>[^\[\]]{0,1000})\]")
_ITEM = re.compile(r"[\"'`]([^\"'`]{1,100})[\"'`]")
_ANY_TAG = re.compile(r"<[^<>\n]*+>|\{\{[<%][^{}\n]*+\}\}")
_LISTING_NUMBER = re.compile(r"<Listing\s+number=\"(?P<number>[\w.-]{1,20})\"")
_UNTITLED = names("callout aside admonition alert")
_TABS = names("tab tabitem tabs.tab tabpanel")


class Tags:
    """Shows tags as their words; of tabs that are named in a row it keeps the names that are still to come."""

    def __init__(self, text: str, lines: Lines) -> None:
        self._text, self._lines = text, lines
        self._rows: list[list[str]] = []
        self._closed: dict[str, bool] = {}
        self._code_ends: set[int] = set()
        """Where the tags stand that close a word of code."""

    def is_tag(self, begin: int, name: str, mdx: bool) -> bool:
        """In Markdown `Vec<T>` and `<path>` are prose: a tag is a component, or HTML's with attributes or closed."""
        if mdx or name.lower() in _ALONE:
            return True
        is_bare = self._text[begin + 1 + len(name)] == ">"
        if name.lower() in _HTML:
            if self._text[begin + 1] == "/" or not is_bare or self._is_closed(name):
                return True
            # A `<details>` on a line of its own that its author forgot to close.
            ends = find_blank_behind(self._text, begin + len(name) + 2) is not None
            return name.lower() in _PARTING and ends and self._opens_line(begin)
        if not name[:1].isupper() and "-" not in name:
            return False
        if self._text[begin + 1] == "/":
            return True
        return not is_bare or self._closes_soon(begin, name) or (self._opens_line(begin) and self._is_closed(name))

    def is_whole(self, begin: int, end: int, name: str) -> bool:
        """Among words a component has attributes, closes itself or is closed; `a <B and c> d` is not."""
        known = name.lower() in _HTML or not name or self._opens_line(begin) or self._text[begin + 1] == "/"
        return known or "=" in self._text[begin:end] or self._text[end - 2] == "/" or self._closes_soon(begin, name)

    def _closes_soon(self, begin: int, name: str) -> bool:
        """On its own line."""
        close = self._text.find(f"</{name}>", begin, begin + 300)
        return close >= 0 and "\n" not in self._text[begin:close]

    def _is_closed(self, name: str) -> bool:
        if name not in self._closed:
            self._closed[name] = f"</{name}>" in self._text
        return self._closed[name]

    def show(self, begin: int, end: int, name: str) -> Iterator[Hidden]:
        for hidden in self._show(begin, end, name):
            # Of a tag of many lines, what stands for it is on the line of the words that it opens.
            line = self._text.rfind("\n", begin, hidden.end) + 1
            if hidden.filler and hidden.start == begin < line:
                yield Hidden(begin, line)
                hidden = replace(hidden, start=line)
            yield hidden

    def _show(self, begin: int, end: int, name: str) -> Iterator[Hidden]:
        low, closing = name.lower(), self._text[begin + 1] == "/"
        if low in _HTML and not name[0].isupper():
            yield from self._show_html(begin, end, low, closing)
        elif closing:
            if low == "tabs" and self._rows:
                self._rows.pop()
            yield Hidden(begin, end)
        else:
            yield from self._show_component(begin, end, low)

    def _show_html(self, begin: int, end: int, name: str, closing: bool) -> Iterator[Hidden]:
        if name == "img":
            yield from self._show_picture(begin, end)
        elif name in _CODE and (begin in self._code_ends if closing else self._opens_code(end, name)):
            yield Hidden(begin, end, "`")
        elif name == "sup" and not closing and self._text[max(begin - 1, 0)].isalnum():
            # A power is no further digit: 10^6, not 106.
            yield Hidden(begin, end, "^")
        elif name in _STRUCK:
            yield Hidden(begin, end, "~~")
        elif name in _BOLD:
            # Bold begins and ends at a word.
            words = _SPACE.match(self._text, end).end()  # pyright: ignore[reportOptionalMemberAccess]
            said = len(self._text[max(0, begin - 200) : begin].rstrip()) - min(begin, 200) + begin
            if not closing:
                yield Hidden(begin, words, "**")
            elif said < begin:
                yield from (Hidden(said, said, f"**{self._gap(end)}", "**"), Hidden(begin, end))
            else:
                yield Hidden(begin, end, f"**{self._gap(end)}")
        elif name == "li" and not closing and self._opens_line(begin):
            yield Hidden(begin, end, "- ", "- ")
        else:
            yield Hidden(begin, end, " " if name in _PARTING else "")

    def _show_picture(self, begin: int, end: int) -> Iterator[Hidden]:
        """As Markdown has it where the file is the book's own; its words alone where it is elsewhere."""
        alt, source = _ALT.search(self._text, begin, end), _SOURCE.search(self._text, begin, end)
        words = alt["value"] if alt else ""
        if source and not any(sign in words for sign in "[]\n"):
            start, stop = alt.span("value") if alt else (begin, begin)
            if alt:
                yield Hidden(begin, start, "![")
            yield Hidden(stop, end, f"{']' if alt else '![]'}({to_target(source['value'])})")
        elif alt:
            yield from self._between(begin, end, [alt.span("value")], "")
        else:
            yield Hidden(begin, end, " ")

    def _opens_code(self, end: int, name: str) -> bool:
        close = self._text.find(f"</{name}>", end, end + 300)
        if close <= end or any(sign in self._text[end:close] for sign in "`<\n"):
            return False
        self._code_ends.add(close)
        return True

    def _show_component(self, begin: int, end: int, name: str) -> Iterator[Hidden]:
        if name == "tabs":
            items = _ITEMS.search(self._text, begin, end)
            self._rows.append(_ITEM.findall(items["items"])[::-1] if items else [])
        is_tab = name in _TABS
        shown = [said.span("value") for said in _SHOWN.finditer(self._text, begin, end)]
        numbered = _LISTING_NUMBER.match(self._text, begin, end) if shown else None
        if numbered:
            shown = [numbered.span("number"), *(span for span in shown if span[0] > numbered.end())]
        if not shown and is_tab and (value := _VALUE.search(self._text, begin, end)):
            shown = [value.span("value")]
        if shown and self._text.startswith("#", self._lines.start_of(begin)):
            # The heading's name and anchor are without it.
            words = self._text[slice(*shown[0])]
            yield Hidden(begin, end, f"({words})", "")
        elif shown:
            bold = "**" if is_tab or self._opens_line(begin) else ""
            above = break_above(self._text, self._lines, begin) if is_tab else ""
            yield from self._between(begin, end, shown, f"{bold}Listing " if numbered else bold, above)
        if shown:
            return
        label = ""
        if is_tab and self._rows and self._rows[-1]:
            label = self._rows[-1].pop()
        elif name in _UNTITLED and (kind := _TYPE.search(self._text, begin, end)):
            label = kind[1].capitalize()
        elif name in LABELS or name in _UNTITLED:
            label = "Note" if name in _UNTITLED else name.capitalize()
        if label and self._opens_line(begin):
            yield Hidden(begin, end, f"**{label}**{self._gap(end)}", f"**{label}**")
        else:
            yield Hidden(begin, end, " " if label else "")

    def _between(self, begin: int, end: int, shown: list[Span], bold: str, above: str = "") -> Iterator[Hidden]:
        """The first of the words is the title, in bold where the tag opens its line."""
        at, filler = begin, above + bold
        bold = bold[:2] if bold.startswith("**") else ""
        for number, (start, stop) in enumerate(shown):
            yield Hidden(at, start, filler if number == 0 else f"{bold if number == 1 else ''} ")
            at = stop
        last = bold if len(shown) == 1 else ""
        yield Hidden(at, end, f"{last}{self._gap(end)}" if bold else " ", last)

    def _gap(self, end: int) -> str:
        """Below a label stands a blank line."""
        return "\n\n" if find_blank_behind(self._text, end) is None else "\n"

    def _opens_line(self, begin: int) -> bool:
        return find_blank_before(self._text, begin, ">") is not None


def break_above(text: str, lines: Lines, begin: int) -> str:
    """What parts a tab from the words before it, on its line or on the one above."""
    line = lines.start_of(begin)
    if _ANY_TAG.sub("", text[max(line, begin - 300) : begin]).strip():
        return "\n\n"
    above = max(lines.start_of(max(line - 1, 0)), line - 300)
    return "\n" if _ANY_TAG.sub("", text[above:line]).strip() else ""


def comment_end(text: str, at: int, closing: str) -> int:
    close = text.find(closing, at)
    brace = _EXPRESSION_END.match(text, close) if closing == "*/" else None
    return brace.end() if brace else close + len(closing)


def tag_end(text: str, at: int) -> tuple[int | None, int]:
    """Just behind the `>` of a tag whose name ends at `at`, and how far was looked; attributes may hold anything."""
    depth, limit = 0, at + _LOOK_AHEAD
    while (stop := _CODE_STOP.search(text, at, limit)) is not None:
        char, at = stop.group(), stop.end()
        if char in "\"'`":
            at = _string_end(text, at, char, spans_lines=depth == 0 or char == "`")
        elif char in _OPENERS:
            depth += 1
        elif char in _CLOSERS:
            depth -= 1
            if depth < 0:
                return None, at
        elif depth == 0 and char == ">":
            return at, at
        elif depth == 0 and char == "<":
            return None, at
    return None, at


def _string_end(text: str, at: int, quote: str, spans_lines: bool) -> int:
    """Behind the closing quote; where there is none the quote was an apostrophe and only itself is passed."""
    close = text.find(quote, at, at + _LOOK_AHEAD)
    while close > 0 and text[close - 1] == "\\":
        close = text.find(quote, close + 1, at + _LOOK_AHEAD)
    if close < 0 or (not spans_lines and "\n" in text[at:close]):
        return at
    return close + 1


def statement_end(text: str, begin: int) -> int | None:
    """The end of a true `import` or `export`; None for a sentence that happens to begin with the word."""
    if statement := _IMPORT.match(text, begin):
        return statement.end()
    opening = _EXPORT.match(text, begin)
    if opening is None:
        return None
    depth, at, limit = 0, begin, begin + _LOOK_AHEAD
    while (stop := _CODE_STOP.search(text, at, limit)) is not None:
        char, at = stop.group(), stop.end()
        if char in "\"'`":
            at = _string_end(text, at, char, spans_lines=char == "`")
        elif char in _OPENERS:
            depth += 1
        elif char in _CLOSERS:
            depth -= 1
        elif char == "\n" and depth <= 0 and not text[max(begin, at - 200) : at - 1].rstrip().endswith(_GOES_ON):
            return at - 1
    blank = _BLANK_LINE.search(text, opening.end())
    return blank.start() if blank else len(text)
