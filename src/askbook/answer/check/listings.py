"""Checks a listing in an answer: it must be the book's lines, in order, with their indentation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from askbook.answer.check.literals import CODE_SPAN
from askbook.answer.check.marks import cited_numbers, read_marks
from askbook.answer.check.stream import closes
from askbook.answer.units import Span
from askbook.domain import Passage

_FENCE = re.compile(r"(`{3,}|~{3,})[ \t]*([\w+#.-]*)[^\n]*\n?")
_ANYTHING = re.compile(r".+")
_FILLED_LINE = re.compile(r"^[^\S\n]*+\S[^\n]*+", re.MULTILINE)
_PROMPT = re.compile(r"^\s*(?:\$|>|>>>)\s+(?=\S)")


@dataclass(frozen=True, slots=True)
class Listing:
    language: str
    lines: tuple[str, ...]
    cited: tuple[int, ...]


def read_listing(text: str, prefix: str, numbered: Mapping[int, Passage]) -> Listing:
    """From the fence to the marks after it; `prefix` stood before the fence."""
    opening = _FENCE.match(text)
    assert opening is not None
    lines = text[opening.end() :].split("\n")
    closing = next((at for at, line in enumerate(lines) if closes(line, opening[1])), len(lines))
    marks = read_marks(" ".join(lines[closing + 1 :]), numbered)
    indent = re.compile(rf"[ \t>]{{0,{len(prefix)}}}")
    return Listing(opening[2], tuple(indent.sub("", line, count=1) for line in lines[:closing]), cited_numbers(marks))


def write_listing(listing: Listing, indent: str) -> str:
    """With a new fence that no line of it can close."""
    longest = max((len(run) for line in listing.lines for run in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    rest = "".join(f"\n{indent}{line}" if line.strip() else "\n" for line in (*listing.lines, fence))
    return f"{fence}{listing.language}{rest}"


def check_listing(listing: Listing, numbered: Mapping[int, Passage]) -> tuple[dict[int, Span], str]:
    """The passage that has its lines, a cited one before the others, and where; or why there is none.

    All of a line counts, what stands behind a comment mark as well: nobody runs half of it. One foreign line refuses
    the listing, for nobody can see which one it was.
    """
    wanted = [line for line in listing.lines if line.strip()]
    if not any(re.search(r"\w", line) for line in wanted):
        return {}, "it says nothing that can be checked"
    for number in sorted(numbered, key=lambda number: number not in listing.cited):
        if place := _find_lines(wanted, numbered[number].chunk.text):
            return {number: place}, ""
    known = {_squeeze(line) for passage in numbered.values() for line in passage.chunk.text.split("\n")}
    foreign = next((line for line in wanted if _squeeze(line) not in known), None)
    if foreign is not None:
        return {}, f"the source does not have `{foreign.strip()}`"
    return {}, "the source has these lines in another order, or indented in another way"


def _find_lines(wanted: Sequence[str], text: str) -> Span | None:
    """The lines in order, all shifted by the same indentation."""
    found = sorted((*_FILLED_LINE.finditer(text), *_find_spans(text)), key=lambda line: line.start())
    lines = [(_squeeze(line[0]), _indent(line[0]), line) for line in found]
    wants = [(_squeeze(line), _indent(line)) for line in wanted]
    # If the lines do not follow the first match of an indentation, they do not follow a later one.
    firsts = {indent: at for at, (opening, indent, _) in reversed([*enumerate(lines)]) if opening == wants[0][0]}
    for indent, at in sorted(firsts.items(), key=lambda first: first[1]):
        rest = iter(lines[at:])
        shifted = ((opening, deep + indent - wants[0][1]) for opening, deep in wants)
        last = [next((found for *line, found in rest if tuple(line) == want), None) for want in shifted][-1]
        if last is not None:
            first = lines[at][2]
            return first.end() - len(first[0].lstrip()), last.end()
    return None


def _find_spans(text: str) -> Iterator[re.Match[str]]:
    """Code inside sentences counts too."""
    return (span for found in CODE_SPAN.finditer(text) if (span := _ANYTHING.match(text, *found.span(2))))


def _squeeze(line: str) -> str:
    """A line for comparison: without prompt, white space and the escapes made for the model."""
    return re.sub(r"\s+", "", _PROMPT.sub("", line)).replace("‹", "<")


def _indent(line: str) -> int:
    bare = line.expandtabs(4)
    return len(bare) - len(bare.lstrip(" >"))
