"""What a lesson's source holds that its readers do not see, and what they see in its place."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Span = tuple[int, int]

_TICKS = re.compile("`+")
# Code ends with its paragraph, and in a table with its row.
_BREAK = re.compile(r"\n(?=[ \t]*(?:\n|\|))")
_NEWLINE = re.compile("\n")
_BLANKS = re.compile(r"[^\S\n]*+")
_CONTAINER = re.compile(r"[ \t>]*")


def names(written: str) -> frozenset[str]:
    return frozenset(written.split())


LABELS = names(
    """note tip info warning danger caution important hint attention error success question failure bug example quote
    abstract summary tldr todo check help seealso definition theorem lemma proof corollary remark exercise solution
    proposition axiom algorithm property observation conjecture criterion assumption deprecated versionadded
    versionchanged margin sidebar"""
)
"""The kinds of admonitions that read as their own name where they have no title."""


@dataclass(frozen=True, slots=True)
class Hidden:
    """`text[start:end]` is not shown; `filler` stands in its place. The parser gets `parsed`, if that is another."""

    start: int
    end: int
    filler: str = ""
    parsed: str | None = None


def to_target(path: str) -> str:
    """A path as a link of Markdown has it."""
    return f"<{path}>" if re.search(r"[\s()]", path) else path


def to_parsed(text: str, hidden: Sequence[Hidden], parsed: Sequence[Hidden]) -> str:
    """What the parser of blocks is given: the same lines, without what is hidden, and `parsed` for what it is not to
    see."""
    parts: list[str] = []
    at = 0
    # What is put in stands before what is hidden from there on.
    for run in sorted([*hidden, *parsed], key=lambda run: (run.start, run.end > run.start, -run.end)):
        if run.start < at:
            continue
        stands = run.filler.replace("\n", " ").strip() if run.parsed is None else run.parsed
        lines = text.count("\n", run.start, run.end) - stands.count("\n")
        parts += text[at : run.start], stands, "\n" * lines
        at = run.end
    return "".join(parts) + text[at:]


def as_words(formula: str) -> str:
    """One paragraph, whatever its lines begin with."""
    heads = (_CONTAINER.match(line) for line in formula.split("\n")[1:])
    return "\n".join(["x", *(f"{head[0] if head else ''}x" for head in heads)])


def join_neighbours(text: str, found: Iterable[Hidden]) -> list[Hidden]:
    """`<Tabs> <TabItem>` on one line is one hidden run."""
    joined: list[Hidden] = []
    for hidden in found:
        last = joined[-1] if joined else None
        plain = last and not (last.filler + hidden.filler).strip() and last.parsed is None and hidden.parsed is None
        if last and plain and not text[last.end : hidden.start].strip(" \t"):
            among_words = (
                text[max(last.start - 1, 0) : last.start].strip() and text[hidden.end : hidden.end + 1].strip()
            )
            blank = " " if hidden.start > last.end and among_words else ""
            joined[-1] = Hidden(last.start, max(last.end, hidden.end), last.filler or hidden.filler or blank)
        else:
            joined.append(hidden)
    return joined


def whole_lines(text: str, hidden: Hidden) -> Hidden:
    """Where nothing else stands on its lines, the lines go as well."""
    if hidden.filler.strip() or hidden.parsed is not None:
        return hidden
    line_start, line_end = find_blank_before(text, hidden.start), find_blank_behind(text, hidden.end)
    if line_start is None or line_end is None:
        return hidden
    return Hidden(line_start, min(line_end + 1, len(text)))


def find_blank_before(text: str, at: int, signs: str = "") -> int | None:
    """Where the line begins, if only these stand before. A line may be as long as its file: the rest is not read."""
    while at and text[at - 1] != "\n":
        if not text[at - 1].isspace() and text[at - 1] not in signs:
            return None
        at -= 1
    return at


def find_blank_behind(text: str, at: int) -> int | None:
    """Where the line ends, if nothing else stands behind."""
    blanks = _BLANKS.match(text, at)
    end = blanks.end() if blanks else at
    return end if text[end : end + 1] in ("", "\n") else None


class Lines:
    """Where lines begin: looked up, for a line may be as long as its file."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(found.end() for found in _NEWLINE.finditer(text))]

    def start_of(self, place: int) -> int:
        return self._starts[bisect_right(self._starts, place) - 1]


class CodeSpans:
    """Inline code: a run of backticks up to the next run of the same length in the same paragraph."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self._runs = [(match.start(), match.end()) for match in _TICKS.finditer(text, start, end)]
        self._starts = [run[0] for run in self._runs]
        self._breaks = [match.start() for match in _BREAK.finditer(text, start, end)] if self._runs else []
        self._next_alike: list[int | None] = []
        following: dict[int, int] = {}
        for index in range(len(self._runs) - 1, -1, -1):
            length = self._runs[index][1] - self._runs[index][0]
            self._next_alike.append(following.get(length))
            following[length] = index
        self._next_alike.reverse()

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
