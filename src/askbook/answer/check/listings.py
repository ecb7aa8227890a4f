"""A listing in an answer: every line of it must be the book's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from askbook.answer.check.marks import cited_numbers, resolve_marks, split_marks
from askbook.answer.check.reading import Span, read_passage, squeeze_code
from askbook.domain import Chunk, Passage

_FENCE = re.compile(r"(`{3,}|~{3,})[ \t]*([\w+#.-]*)[^\n]*\n?")
_NO_CODE = re.compile(r"[\W_]*")


@dataclass(frozen=True, slots=True)
class Listing:
    language: str
    lines: tuple[str, ...]
    cited: tuple[int, ...]


def read_listing(text: str, prefix: str, numbered: Mapping[int, Passage]) -> Listing:
    """From its fence to the marks behind it; `prefix` is what stood before the fence."""
    opening = _FENCE.match(text)
    assert opening is not None
    lines = text[opening.end() :].split("\n")
    closing = next((at for at, line in enumerate(lines) if _closes(line, opening[1])), len(lines))
    marks = resolve_marks(split_marks(" ".join(lines[closing + 1 :])), numbered)
    indent = re.compile(rf"[ \t>]{{0,{len(prefix)}}}")
    return Listing(opening[2], tuple(indent.sub("", line, count=1) for line in lines[:closing]), cited_numbers(marks))


def _closes(line: str, fence: str) -> bool:
    bare = line.strip(" \t>")
    return len(bare) >= len(fence) and not bare.strip(fence[0])


def write_listing(listing: Listing, indent: str) -> str:
    """Fenced anew, so that no line of it can end it."""
    longest = max((len(run) for line in listing.lines for run in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    rest = "".join(f"\n{indent}{line}" if line.strip() else "\n" for line in (*listing.lines, fence))
    return f"{fence}{listing.language}{rest}"


def check_listing(listing: Listing, numbered: Mapping[int, Passage]) -> tuple[dict[int, Span], str]:
    """The passages that have its lines, the cited before the others, and where; or why not.

    One line more makes it another listing, and nobody can tell by looking which one that is.
    """
    wanted = [line for line in listing.lines if not _NO_CODE.fullmatch(line)]
    if not wanted:
        return {}, "it says nothing that can be checked"
    has = {number: _find_lines(wanted, one.chunk) for number, one in numbered.items()}
    found: dict[int, Span] = {}
    missing = set(wanted)
    for number in sorted(has, key=lambda one: (one not in listing.cited, -len(has[one]))):
        if missing & has[number].keys():
            spans = has[number].values()
            found[number] = min(start for start, _ in spans), max(end for _, end in spans)
            missing -= has[number].keys()
    if missing:
        return {}, f"the source does not have `{next(line for line in wanted if line in missing).strip()}`"
    return found, ""


def _find_lines(lines: Sequence[str], chunk: Chunk) -> dict[str, Span]:
    code = read_passage(chunk.text, chunk.heading_path).code
    forms = ((line, form) for line in reversed(lines) for form in squeeze_code(line) if form in code)
    return {line: code[form] for line, form in forms}
