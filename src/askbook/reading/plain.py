"""Markdown as it would be read out: a table row by row with the names of its columns, a link by its words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from askbook.reading.spans import Span

_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})")
_RULE = re.compile(r"[|:\- \t>]*")
_BAR = re.compile(r"(?<!\\)\|")
_OPENS_ROW = re.compile(r"[ \t>]*\|?")
_SIGNS = re.compile(
    r"(?P<ticks>`{1,2})(?!`)(?P<code>[^\n]{1,300}?)(?<!`)(?P=ticks)(?!`)"
    r"|!?\[(?P<words>[^\[\]]{0,300})\](?:\([^()\n]{0,300}(?:\([^()\n]{0,300}\)[^()\n]{0,300})?\)|\[[^\[\]\n]{0,300}\])"
    r"|\*\*(?=\S)|(?<=\S)\*\*"
)

NAME_MAX = 80
"""Of a column's name, which is read with each of its cells."""

Piece = tuple[str, Sequence[int]]
"""Text, and each character's place in the source; added text has the place of what follows it."""
Run = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Plain:
    text: str
    places: list[int]
    """Each character's place in the source."""

    def to_source(self, span: Span) -> Span:
        return Span(self.places[span.start], self.places[span.end - 1] + 1, span.chance)


def read_out(text: str, most: int) -> Plain:
    """At most this many characters: a table's head is repeated with every row."""
    pieces: list[Piece] = []
    left = most
    for piece, places in _read_lines(text):
        pieces.append((piece[:left], places[:left]))
        left -= len(piece)
        if left <= 0:
            break
    return Plain("".join(piece for piece, _ in pieces), list(chain.from_iterable(places for _, places in pieces)))


def _read_lines(text: str) -> Iterator[Piece]:
    """Code stays as it is. A table is a line with bars, a rule, and the lines with bars after it."""
    fence = ""
    names: list[str] = []
    rule = -1
    for start, end in _find_lines(text):
        line = text[start:end]
        opens = _FENCE.match(line)
        if fence:
            fence = "" if opens and opens[1].startswith(fence) else fence
            yield _take(text, start, end)
        elif opens:
            fence, names = opens[1], []
            yield _take(text, start, end)
        elif names and "|" in line:
            if start != rule:
                yield from _read_row(text, names, start, end)
        elif "|" in line and _is_rule(text, end):
            names = [_read_words(text, *cell)[:NAME_MAX] for cell in _find_cells(text, start, end)]
            rule = end
        else:
            names = []
            yield from _read_prose(text, start, end)


def _find_lines(text: str) -> Iterator[Run]:
    starts = (found.end() for found in re.finditer(r"\n", text))
    yield from pairwise([0, *starts, len(text)])


def _is_rule(text: str, start: int) -> bool:
    stop = text.find("\n", start)
    line = text[start : stop if stop >= 0 else len(text)]
    return "|" in line and "-" in line and _RULE.fullmatch(line) is not None


def _read_row(text: str, names: list[str], start: int, end: int) -> Iterator[Piece]:
    """Where the first column has no name, its cell is what the row is about."""
    before = ""
    for column, cell in enumerate(_find_cells(text, start, end)):
        name = names[column] if column < len(names) else ""
        if cell[0] < cell[1]:
            yield _put(before + (f"{name}: " if name else ""), cell[0])
            yield from _read_prose(text, *cell)
            before = ": " if column == 0 and not name else "; "
    yield _put(".\n", end - 1)


def _read_words(text: str, start: int, end: int) -> str:
    return "".join(piece for piece, _ in _read_prose(text, start, end))


def _find_cells(text: str, start: int, end: int) -> list[Run]:
    """With empty cells, so that each stays under its column's name."""
    opening = _OPENS_ROW.match(text, start, end)
    first, last = opening.end() if opening else start, start + len(text[start:end].rstrip())
    bars = [found.start() for found in _BAR.finditer(text, first, last)]
    ends = bars if bars and bars[-1] == last - 1 else [*bars, last]
    return [_trim(text, *cell) for cell in zip([first, *(bar + 1 for bar in bars)], ends, strict=False)]


def _trim(text: str, start: int, end: int) -> Run:
    inside = text[start:end]
    return min(start + len(inside) - len(inside.lstrip()), end), start + len(inside.rstrip())


def _read_prose(text: str, start: int, end: int) -> Iterator[Piece]:
    """Without emphasis, backticks and link targets."""
    at = start
    for found in _SIGNS.finditer(text, start, end):
        yield _take(text, at, found.start())
        if found["words"]:
            yield from _read_prose(text, *found.span("words"))
        elif found["code"]:
            yield _take(text, *found.span("code"))
        at = found.end()
    yield _take(text, at, end)


def _take(text: str, start: int, end: int) -> Piece:
    return text[start:end], range(start, end)


def _put(text: str, place: int) -> Piece:
    return text, [place] * len(text)
