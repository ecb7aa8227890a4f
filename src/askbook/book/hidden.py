"""What an MDX file holds but no reader sees: imports, exports, tags and comments."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_FENCE = r"^[ \t]*+(?:(?:>|[-*+]|\d{1,9}[.)])[ \t]*+)*+(?P<fence>`{3,}+(?=[^`\n]*+$)|~{3,}+)[^\n]*+$"
_ESM = r"^(?=import[ \t{*\"']|export[ \t{*])(?P<esm>\w++)"
_SIGHT = re.compile(
    rf"{_FENCE}|{_ESM}|\\(?P<escape>.)|(?P<ticks>`++)|(?P<comment>\{{\s*+/\*|<!--)|(?P<tag></?(?:[A-Za-z][\w.-]*+(?::[\w-]++)?(?=[\s/>])|(?=>)))",
    re.MULTILINE,
)
_TICKS = re.compile("`+")
_EXPRESSION_END = re.compile(r"\*/\s*+\}")
_BLANK_LINE = re.compile(r"\n[ \t]*\n")

_NAME = r"[\w$]++"
_BRACES = r"\{[^{}]*+\}"
_FROM = r"from\s*+(?:\"[^\"\n]*+\"|'[^'\n]*+')"
_LINE_END = r"[ \t]*+;?[ \t]*+(?://[^\n]*+)?$"
_IMPORT = re.compile(
    rf"import\s*+(?:\"[^\"\n]*+\"|'[^'\n]*+'|(?:type\s++(?!from\b))?(?:{_NAME}|\*\s*+as\s++{_NAME}|{_BRACES})\s*+"
    rf"(?:,\s*+(?:\*\s*+as\s++{_NAME}|{_BRACES})\s*+)?{_FROM}){_LINE_END}",
    re.MULTILINE,
)
_EXPORT = re.compile(
    rf"export\s++(?:(?:const|let|var)\s++(?:{_NAME}\s*+(?::[^=\n]*+)?=|[{{\[])"
    rf"|(?:async\s++)?function\b\s*+\*?\s*+{_NAME}\s*+[(<]|class\s++{_NAME}\s*+(?:extends\b|\{{)"
    rf"|(?:type\s++{_NAME}[^=\n]*+=|interface\s++{_NAME}[^{{\n]*+\{{|enum\s++{_NAME}\s*+\{{)"
    rf"|default\s++(?:(?:async|function|class)\b|[({{\[\"'`<]|(?:{_NAME}\.?+)++[ \t]*+(?:[;(]|=>|$))"
    rf"|{_BRACES}(?:\s*+{_FROM})?{_LINE_END}|\*\s*+(?:as\s++{_NAME}\s*+)?{_FROM})",
    re.MULTILINE,
)
_LOOK_AHEAD = 100_000
_CODE_STOP = re.compile(r"[\"'`{}()\[\]<>\n]")
_OPENERS, _CLOSERS = "{([", "})]"
_GOES_ON = ("=", "=>", ",", "+", "?", ":", "&&", "||", "(", "[", "{")
_PARTING = re.compile(r"</?(?:br|hr|p|div|li|ul|ol|t[drh]|table|d[tdl]|h[1-6]|summary|details)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Hidden:
    """`text[start:end]` is not shown; `filler` stands in its place so that two words do not run together."""

    start: int
    end: int
    filler: str = ""


def find_hidden_mdx(text: str, start: int) -> list[Hidden]:
    return [_whole_lines(text, hidden) for hidden in _join_neighbours(text, _scan_mdx(text, start))]


def blank_out(text: str, hidden: list[Hidden]) -> str:
    """The same text, same length and same lines, with spaces for what is hidden."""
    parts: list[str] = []
    at = 0
    for run in hidden:
        parts += text[at : run.start], re.sub(r"[^\n]", " ", text[run.start : run.end])
        at = run.end
    return "".join(parts) + text[at:]


def _scan_mdx(text: str, start: int) -> Iterator[Hidden]:
    code = _CodeSpans(text, start, len(text))
    last_comment_end = {"-->": text.rfind("-->"), "*/": text.rfind("*/")}
    # A tag or export that never ends costs a look ahead; when all of them have cost this much, the rest stay as text.
    patience = 2 * len(text) + 10_000
    at = start
    while match := _SIGHT.search(text, at):
        at, begin, kind = match.end(), match.start(), match.lastgroup
        end: int | None = None
        if kind == "fence":
            at = _fence_end(text, match)
        elif kind == "ticks":
            at = code.end_of(begin) or at
        elif kind == "comment":
            closing = "-->" if match["comment"] == "<!--" else "*/"
            end = _comment_end(text, at, closing) if at <= last_comment_end[closing] else None
        elif kind == "tag" and patience > 0:
            end, looked_to = _tag_end(text, at)
            patience -= 0 if end else looked_to - at
        elif kind == "esm":
            end = _statement_end(text, begin)
        if end is not None:
            yield Hidden(begin, end, " " if kind == "tag" and _PARTING.match(text, begin) else "")
            at = end


def _join_neighbours(text: str, found: Iterable[Hidden]) -> list[Hidden]:
    """`<Tabs> <TabItem>` on one line is one hidden run."""
    joined: list[Hidden] = []
    for hidden in found:
        if joined and not text[joined[-1].end : hidden.start].strip(" \t"):
            joined[-1] = Hidden(joined[-1].start, hidden.end, joined[-1].filler or hidden.filler)
        else:
            joined.append(hidden)
    return joined


def _comment_end(text: str, at: int, closing: str) -> int:
    close = text.find(closing, at)
    brace = _EXPRESSION_END.match(text, close) if closing == "*/" else None
    return brace.end() if brace else close + len(closing)


def _fence_end(text: str, opening: re.Match[str]) -> int:
    mark = opening["fence"]
    closing = re.compile(rf"^[ \t>]*+{re.escape(mark[0])}{{{len(mark)},}}+[ \t]*+$", re.MULTILINE)
    found = closing.search(text, opening.end())
    return found.end() if found else len(text)


def _tag_end(text: str, at: int) -> tuple[int | None, int]:
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


def _statement_end(text: str, begin: int) -> int | None:
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


def _whole_lines(text: str, hidden: Hidden) -> Hidden:
    """Where nothing else stands on its lines, the lines go as well."""
    line_start = text.rfind("\n", 0, hidden.start) + 1
    line_end = text.find("\n", hidden.end)
    line_end = len(text) if line_end < 0 else line_end
    if text[line_start : hidden.start].strip() or text[hidden.end : line_end].strip():
        return hidden
    return Hidden(line_start, min(line_end + 1, len(text)))


class _CodeSpans:
    """Inline code: a run of backticks up to the next run of the same length in the same paragraph."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self._runs = [(match.start(), match.end()) for match in _TICKS.finditer(text, start, end)]
        self._starts = [run[0] for run in self._runs]
        self._breaks = [match.start() for match in _BLANK_LINE.finditer(text, start, end)]
        self._next_alike = self._pair()

    def _pair(self) -> list[int | None]:
        following: dict[int, int] = {}
        alike: list[int | None] = [None] * len(self._runs)
        for index in range(len(self._runs) - 1, -1, -1):
            length = self._runs[index][1] - self._runs[index][0]
            alike[index] = following.get(length)
            following[length] = index
        return alike

    def end_of(self, start: int) -> int | None:
        """Where the code that opens at `start` ends, if it does."""
        index = bisect_right(self._starts, start) - 1
        closing = self._next_alike[index] if index >= 0 else None
        if closing is None:
            return None
        break_at = bisect_right(self._breaks, start)
        if break_at < len(self._breaks) and self._breaks[break_at] < self._runs[closing][0]:
            return None
        return self._runs[closing][1]

    def around(self, place: int, since: int) -> int | None:
        """The end of the code span, opened after `since`, that holds this place."""
        index = bisect_right(self._starts, since - 1)
        while index < len(self._runs) and self._runs[index][0] < place:
            end = self.end_of(self._runs[index][0])
            if end is not None and end > place:
                return end
            index = index + 1 if end is None else bisect_right(self._starts, end - 1)
        return None
