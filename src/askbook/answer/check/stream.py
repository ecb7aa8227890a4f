"""A model's text, as it comes, cut into what can be checked by itself: sentences, list items, table rows, listings.

A cut is made only where no further text could move it, so that the pieces in which a text comes never matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from askbook.answer.check.marks import find_marks_end, find_marks_line

CutKind = Literal["text", "heading", "row", "code", "rule"]

DECIDES = 8
"""So many characters of a line tell whether it opens a list, a heading, a listing or a table."""
OPEN_CHARS = 300
"""A bracket or code that is not closed after so many characters never will be."""
LABEL_WORDS = 6
LONGEST = 2000
"""A sentence that has not ended after so many characters is cut where it stands."""

_PREFIX = re.compile(r"[ \t]*(?:>[ \t]?)*(?:(?:[-*+•]|\d{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?)?")
_FENCE = re.compile(r"(`{3,}|~{3,})")
_HEADING = re.compile(r"#{1,6}[ \t]")
_BOLD_LINE = re.compile(r"(\*\*|__)[^*_\n]+\1:?$|(\*\*|__)[^*_\n]+:\2$")
_RULE = re.compile(r"([-*_=])(?:[ \t]*\1){2,}[ \t]*$")
_END = re.compile(r"[.!?…]+[\"'”’»)*_]*(?=\s)|[。！？]+[」』”）]*")
_LABEL = re.compile(r"(\*\*|__)[^*_]+\1$")
_WHOLE = re.compile(r"(?<!\d)[.!?…。！？][\"'”’»)*_]*(?:\s*[\[【][^\[\]【】]*[\]】])*$")
_LAST_WORD = re.compile(r"[\w.]+$")
_ABBREVIATIONS_TEXT = """
e.g i.e eg ie cf vs viz al approx ca resp incl dr mr mrs ms prof st jr sr inc ltd co corp fig figs eq eqs no nos sec
ch chap vol pp p ed eds ref refs art ver v
"""
_ABBREVIATIONS = frozenset(_ABBREVIATIONS_TEXT.split())


@dataclass(frozen=True, slots=True)
class Cut:
    """`lead + prefix + text` is what the model wrote."""

    kind: CutKind
    lead: str
    """White space before it."""
    prefix: str
    """What makes its line a list item or a quotation."""
    text: str

    @property
    def is_item(self) -> bool:
        return bool(self.prefix.strip(" \t>"))

    @property
    def opens_line(self) -> bool:
        return "\n" in self.lead or bool(self.prefix)


def is_whole(cut: Cut) -> bool:
    """Whether it has an end: what stands last in a text that was cut short may mean something else than all of it."""
    match cut.kind:
        case "text":
            return _WHOLE.search(cut.text.rstrip()) is not None
        case "row":
            return cut.text.rstrip().endswith("|")
        case "code":
            return len(re.findall(r"^[ \t>]*(?:`{3}|~{3})", cut.text, re.MULTILINE)) > 1
        case "heading" | "rule":
            return True


class Cutter:
    def __init__(self) -> None:
        self._rest = ""
        self._begun = False

    def feed(self, text: str) -> Iterator[Cut]:
        self._rest += text
        return self._take(final=False)

    def finish(self) -> Iterator[Cut]:
        return self._take(final=True)

    def _take(self, final: bool) -> Iterator[Cut]:
        while (cut := _cut(self._rest, not self._begun, final)) is not None:
            self._begun = True
            self._rest = self._rest[len(cut.lead) + len(cut.prefix) + len(cut.text) :]
            yield cut


def _cut(rest: str, first: bool, final: bool) -> Cut | None:
    body = rest.lstrip()
    lead = rest[: len(rest) - len(body)]
    if not body:
        return None
    if not first and "\n" not in lead:
        end = _find_text_end(body, final)
        return None if end is None else Cut("text", lead, "", body[:end])
    # The indent belongs to the line, not to the space before it.
    lead = lead[: lead.rfind("\n") + 1]
    cut = _cut_line(rest[len(lead) :], final)
    return cut and replace(cut, lead=lead)


def _cut_line(body: str, final: bool) -> Cut | None:
    opening = _open_line(body, 0, final)
    if opening is None:
        return None
    kind, start = opening
    prefix, body = body[:start], body[start:]
    line_end = body.find("\n")
    whole_line = line_end if line_end >= 0 else len(body) if final else None
    match kind:
        case "text":
            end = _find_text_end(body, final)
        case "code":
            end = _find_fence_end(body, final)
        case _:
            end = whole_line
    return None if end is None else Cut(kind, "", prefix, body[:end])


def _open_line(text: str, at: int, final: bool) -> tuple[CutKind, int] | None:
    """What the line that begins here is, and where its own text begins; None while that is open."""
    stop = text.find("\n", at)
    whole = final or stop >= 0
    line = text[at : stop if stop >= 0 else len(text)]
    if whole and _RULE.fullmatch(line.strip()):
        return "rule", at + len(line) - len(line.lstrip())
    prefix = _PREFIX.match(line)
    start = prefix.end() if prefix else 0
    own = line[start:]
    if not whole and len(own) < DECIDES:
        return None
    if not whole and (own.startswith(("**", "__")) or not own.strip("-*_= \t")):
        # Only its end tells a bold line, which is a heading, from a sentence that begins in bold.
        return None if len(own) < OPEN_CHARS else ("text", at + start)
    if _FENCE.match(own):
        return "code", at + start
    if own.startswith("|"):
        return "row", at + start
    if _HEADING.match(own) or (len(own) < OPEN_CHARS and _BOLD_LINE.fullmatch(own.rstrip())):
        return "heading", at + start
    return "text", at + start


def _find_fence_end(body: str, final: bool) -> int | None:
    fence = _FENCE.match(body)
    assert fence is not None
    closing = re.compile(rf"^[ \t>]*{re.escape(fence[0][0])}{{{len(fence[0])},}}[ \t]*(\n|$)", re.MULTILINE)
    found = closing.search(body, body.find("\n") + 1) if "\n" in body else None
    if found is None or (found[1] == "" and not final):
        return len(body) if final else None
    end = found.start(1)
    return find_marks_line(body, end, final)


# --- sentences ------------------------------------------------------------------------------------


def _find_text_end(body: str, final: bool) -> int | None:
    if len(body) > LONGEST:
        body, final = body[:LONGEST], True
    at = 0
    for found in _END.finditer(body):
        line = _find_line_end(body, at, found.end(), final)
        if line is None or line >= 0:
            return line
        at = found.end()
        end = _find_marks(body, at, final)
        if end is None:
            return None
        after = body[end:].lstrip()
        if not after and not final:
            return None
        if end > at or _ends_sentence(body, found, after):
            return end
    line = _find_line_end(body, at, len(body), final)
    return len(body.rstrip()) if line == -1 and final else None if line == -1 else line


def _find_line_end(body: str, at: int, stop: int, final: bool) -> int | None:
    """Where a line ends the text, between two places: at a blank line, or before a line that opens something; else −1."""
    while (newline := body.find("\n", at, stop)) >= 0:
        marks = find_marks_line(body, newline, final)
        if marks is None or marks > newline:
            return marks
        rest = body[newline:]
        if not rest.strip():
            return newline if final or rest.count("\n") > 1 else None
        if re.match(r"\n[ \t]*\n", rest) or rest.lstrip()[0] in "[【":
            return newline
        opening = _open_line(body, newline + 1, final)
        if opening is None:
            return None
        kind, start = opening
        if kind != "text" or body[newline + 1 : start].strip():
            return newline
        at = newline + 1
    return -1


def _find_marks(body: str, at: int, final: bool) -> int | None:
    """Marks behind a full stop belong to its sentence: on the same line, or alone on the next."""
    end = find_marks_end(body, at, final)
    if end is None or end > at or not body[at:].lstrip(" \t").startswith("\n"):
        return end
    return find_marks_line(body, at, final) if not re.match(r"[ \t]*\n[ \t]*\n", body[at:]) else at


def _ends_sentence(body: str, found: re.Match[str], after: str) -> bool:
    before = body[: found.start()]
    if found[0][0] in "。！？" or not after:
        return True
    if after[0].islower() or after[0] in ",;:)]–—":
        return False
    if _is_open(before + found[0]):
        return False
    if len(before.split()) <= LABEL_WORDS and _LABEL.fullmatch(before + found[0]):
        return False
    return not found[0].startswith(".") or found[0].startswith("..") or not _is_abbreviation(before)


def _is_open(text: str) -> bool:
    """Inside code, or inside brackets."""
    tail = text[-OPEN_CHARS:]
    return tail.count("`") % 2 == 1 or tail.rfind("(") > tail.rfind(")") or tail.rfind("[") > tail.rfind("]")


def _is_abbreviation(before: str) -> bool:
    found = _LAST_WORD.search(before)
    word = found[0] if found else ""
    if word.lower() in _ABBREVIATIONS:
        return True
    initial = len(word) == 1 and word.isupper() and word != "I"
    return initial or (word.isdigit() and len(word) <= 3 and len(before.split()) <= 2)
