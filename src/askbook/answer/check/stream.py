"""A model's text, as it comes, cut into what can be checked by itself: sentences, list items, table rows, listings.

A cut is made only where no further text could move it, so that the pieces in which a text comes never matter. What was
looked at once and ends nothing is not looked at again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from askbook.answer.check.marks import find_marks
from askbook.answer.units import ends_sentence

CutKind = Literal["text", "heading", "row", "code", "rule"]

DECIDES = 8
"""How many characters tell whether a line opens a list, heading, listing or table."""
OPEN_CHARS = 300
"""A longer line is no heading, and a sentence looks no further back or ahead."""
LONGEST = 2000
"""Longer sentences and lines are cut here."""

_PREFIX = re.compile(r"[ \t]*(?:>[ \t]?)*(?:(?:[-*+•]|\d{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?)?")
_FENCE = re.compile(r"(`{3,}|~{3,})")
_HEADING = re.compile(r"#{1,6}[ \t]")
_BOLD_LINE = re.compile(r"(\*\*|__)[^*_\n]+\1:?$|(\*\*|__)[^*_\n]+:\2$")
_RULE = re.compile(r"([-*_=])(?:[ \t]*\1){2,}[ \t]*$")
_CLOSERS = "\"'”’»)*_"
# Possessive, and never from inside a run, so that "!!!!" takes linear time.
_BREAK = re.compile(rf"\n|(?<![.!?…])[.!?…]++[{_CLOSERS}]*+(?=\s)|[。！？]++[」』”）]*+")
_WHOLE = re.compile(r"(?<!\d)[.!?…。！？][\"'”’»)*_]*(?:\s*[\[【][^\[\]【】]*[\]】])*$")


@dataclass(frozen=True, slots=True)
class Cut:
    """`lead + prefix + text` is what the model wrote."""

    kind: CutKind
    lead: str
    prefix: str
    """What makes its line a list item or a quotation."""
    text: str

    @property
    def is_item(self) -> bool:
        return bool(self.prefix.strip(" \t>"))

    @property
    def opens_line(self) -> bool:
        return "\n" in self.lead or bool(self.prefix)

    def goes_on(self, before: Cut | None) -> bool:
        """Whether it follows a row of the same table."""
        return before is not None and before.kind == "row" and self.lead.count("\n") == 1


def is_whole(cut: Cut) -> bool:
    """Whether it ends by itself: half a sentence may mean something else."""
    match cut.kind:
        case "text":
            return _WHOLE.search(cut.text.rstrip()[-OPEN_CHARS:]) is not None
        case "row":
            return cut.text.rstrip().endswith("|")
        case "code":
            return len(re.findall(r"^[ \t>]*(?:`{3}|~{3})", cut.text, re.MULTILINE)) > 1
        case "heading" | "rule":
            return True


def closes(line: str, opening: str) -> bool:
    """Whether a line ends the listing that this one, or its fence, begins."""
    fence = _FENCE.match(opening)
    bare = line.strip(" \t>")
    return fence is not None and len(bare) >= len(fence[0]) and not bare.strip(fence[0][0])


class Cutter:
    def __init__(self) -> None:
        self._rest = ""
        self._begun = False
        self._seen = 0
        """How far the text of the next cut was searched for its end in vain."""

    def feed(self, text: str) -> Iterator[Cut]:
        self._rest += text
        if len(self._rest) > LONGEST and self._rest.isspace():
            self._rest = "\n" * min(self._rest.count("\n"), 2)
        return self._cut_all(final=False)

    def finish(self) -> Iterator[Cut]:
        return self._cut_all(final=True)

    def _cut_all(self, final: bool) -> Iterator[Cut]:
        while (cut := self._cut(final)) is not None:
            self._begun, self._seen = True, 0
            self._rest = self._rest[len(cut.lead) + len(cut.prefix) + len(cut.text) :]
            yield cut

    def _cut(self, final: bool) -> Cut | None:
        body = self._rest.lstrip()
        lead, kind, start = self._rest[: len(self._rest) - len(body)], "text", 0
        if not body:
            return None
        if not self._begun or "\n" in lead:
            # The indent belongs to the line, not to the space before it.
            lead = lead[: lead.rfind("\n") + 1]
            body = self._rest[len(lead) :]
            opening = _open_line(body, final)
            if opening is None:
                return None
            kind, start = opening
        prefix, own = body[:start], body[start:]
        match kind:
            case "text":
                end, self._seen = _find_text_end(own, final, self._seen)
            case "code":
                end, self._seen = _find_listing_end(own, final, self._seen)
            case _:
                newline = own.find("\n")
                end = newline if newline >= 0 else len(own) if final or len(own) > LONGEST else None
        return None if end is None else Cut(kind, lead, prefix, own[:end])


def _open_line(text: str, final: bool) -> tuple[CutKind, int] | None:
    """The line's kind and where its own text begins; None while more text could change that."""
    stop = text.find("\n", 0, LONGEST)
    whole = final or stop >= 0
    line = text[: stop if stop >= 0 else LONGEST]
    if whole and _RULE.fullmatch(line.strip()):
        return "rule", len(line) - len(line.lstrip())
    prefix = _PREFIX.match(line)
    start = prefix.end() if prefix else 0
    own = line[start:]
    if not whole and len(own) < DECIDES:
        return None
    if not whole and (own.startswith(("**", "__")) or not own.strip("-*_= \t")):
        # Only the end tells a bold line, which is a heading, from a sentence that begins in bold.
        return None if len(own) < OPEN_CHARS else ("text", start)
    if _FENCE.match(own):
        return "code", start
    if own.startswith("|"):
        return "row", start
    if _HEADING.match(own) or (len(own) < OPEN_CHARS and _BOLD_LINE.fullmatch(own.rstrip())):
        return "heading", start
    return "text", start


End = tuple[int | None, int]
"""Where a cut ends, if that is certain, and how far the search need not look again."""


def _find_listing_end(body: str, final: bool, seen: int) -> End:
    """After the closing fence and the marks below it."""
    while (newline := body.find("\n", seen)) >= 0:
        stop = body.find("\n", newline + 1)
        if stop < 0 and not final:
            return None, newline
        line_end = stop if stop >= 0 else len(body)
        if closes(body[newline + 1 : line_end], body):
            return find_marks(body, line_end, final), newline
        seen = newline + 1
    return (len(body) if final else None), seen


def _find_text_end(body: str, final: bool, seen: int) -> End:
    """After the first sentence and its marks."""
    if len(body) > LONGEST:
        body, final = body[:LONGEST], True
    for found in _BREAK.finditer(body, seen):
        end = _end_at_line(body, found.start(), final) if found[0] == "\n" else _end_at_stop(body, found, final)
        if end is None:
            return None, found.start()
        if end >= 0:
            return end, 0
    if final:
        return len(body.rstrip()), 0
    return None, max(seen, len(body.rstrip(f".!?…。！？」』”）{_CLOSERS}")))


def _end_at_line(body: str, newline: int, final: bool) -> int | None:
    """Whether the line's end ends the text: before a blank line or an opening line; −1 if not."""
    marks = find_marks(body, newline, final)
    rest = body[newline:].lstrip()
    if marks is None or marks > newline or not rest:
        return marks
    if re.match(r"\n[ \t]*\n", body[newline:]) or rest[0] in "[【":
        return newline
    line = body[newline + 1 :]
    opening = _open_line(line, final)
    if opening is None:
        return None
    kind, start = opening
    return newline if kind != "text" or line[:start].strip() else -1


def _end_at_stop(body: str, found: re.Match[str], final: bool) -> int | None:
    """The end after a full stop and its marks; −1 if the sentence goes on."""
    end = find_marks(body, found.end(), final)
    if end is None or end > found.end():
        return end
    before, after = body[max(found.start() - OPEN_CHARS, 0) : found.start()], body[end : end + OPEN_CHARS].lstrip()
    if not after and not final:
        return None
    ends = ends_sentence(before, found[0], after, final)
    return None if ends is None else end if ends else -1
