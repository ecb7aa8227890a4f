"""A model's text, as it comes, cut into what can be checked by itself: sentences, list items, table rows, listings.

A cut is made only where no further text could move it, so that the pieces in which a text comes never matter. What was
looked at once and ends nothing is not looked at again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from askbook.answer.check.marks import find_marks_end, find_marks_line
from askbook.answer.units import ABBREVIATIONS, BEFORE_NUMBERS

CutKind = Literal["text", "heading", "row", "code", "rule"]

DECIDES = 8
"""How many characters tell whether a line opens a list, heading, listing or table."""
OPEN_CHARS = 300
"""After so many characters, an open bracket or code span counts as never closed."""
WORD_CHARS = 30
LABEL_CHARS, LABEL_WORDS = 80, 6
LONGEST = 2000
"""Longer sentences and lines are cut here."""

_PREFIX = re.compile(r"[ \t]*(?:>[ \t]?)*(?:(?:[-*+•]|\d{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?)?")
_FENCE = re.compile(r"(`{3,}|~{3,})")
_HEADING = re.compile(r"#{1,6}[ \t]")
_BOLD_LINE = re.compile(r"(\*\*|__)[^*_\n]+\1:?$|(\*\*|__)[^*_\n]+:\2$")
_RULE = re.compile(r"([-*_=])(?:[ \t]*\1){2,}[ \t]*$")
_CLOSERS = "\"'”’»)*_"
_STOPS = f".!?…{_CLOSERS}"
# Possessive, and never from inside a run, so that "!!!!" takes linear time.
_BREAK = re.compile(rf"\n|(?<![.!?…])[.!?…]++[{_CLOSERS}]*+(?=\s)|[。！？]++[」』”）]*+")
_LABEL = re.compile(r"(\*\*|__)[^*_]+\1$")
_WHOLE = re.compile(r"(?<!\d)[.!?…。！？][\"'”’»)*_]*(?:\s*[\[【][^\[\]【】]*[\]】])*$")

_WORDS_TOO = frozenset({"no", "art", "app", "tab"})


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


class Cutter:
    def __init__(self) -> None:
        self._rest = ""
        self._begun = False
        self._seen = 0
        """How far `_rest` was searched for an end in vain."""
        self._listing: Cut | None = None
        """An open listing, and …"""
        self._lines: list[str] = []
        """… its lines so far."""

    def feed(self, text: str) -> Iterator[Cut]:
        before, self._rest = self._rest[-1:], self._rest + text
        if len(self._rest) > LONGEST and self._rest.isspace() and self._listing is None:
            self._rest = "\n" * min(self._rest.count("\n"), 2)
        # In a run of full stops nothing ends before something else comes.
        waits = before and before in _STOPS and not text.strip(_STOPS) and len(self._rest) < LONGEST
        return iter(()) if waits else self._cut_all(final=False)

    def finish(self) -> Iterator[Cut]:
        return self._cut_all(final=True)

    def _cut_all(self, final: bool) -> Iterator[Cut]:
        while (cut := self._end_listing(final) if self._listing else self._cut(final)) is not None:
            self._begun = True
            yield cut

    def _cut(self, final: bool) -> Cut | None:
        body = self._rest.lstrip()
        lead = self._rest[: len(self._rest) - len(body)]
        if not body:
            return None
        if self._begun and "\n" not in lead:
            return self._cut_text(lead, "", body, final)
        # The indent belongs to the line, not to the space before it.
        lead = lead[: lead.rfind("\n") + 1]
        body = self._rest[len(lead) :]
        opening = _open_line(body, final)
        if opening is None:
            return None
        kind, start = opening
        if kind == "text":
            return self._cut_text(lead, body[:start], body[start:], final)
        if kind == "code":
            self._listing, self._lines, self._rest = Cut(kind, lead, body[:start], ""), [], body[start:]
            return self._end_listing(final)
        end = body.find("\n", start)
        if end < 0 and not final and len(body) <= LONGEST:
            return None
        return self._cut_off(kind, lead, body[:start], body[start : len(body) if end < 0 else end])

    def _cut_text(self, lead: str, prefix: str, body: str, final: bool) -> Cut | None:
        end, self._seen = _find_text_end(body, final, self._seen)
        return None if end is None else self._cut_off("text", lead, prefix, body[:end])

    def _cut_off(self, kind: CutKind, lead: str, prefix: str, text: str) -> Cut:
        self._rest = self._rest[len(lead) + len(prefix) + len(text) :]
        self._seen = 0
        return Cut(kind, lead, prefix, text)

    def _end_listing(self, final: bool) -> Cut | None:
        """Up to the closing fence and the marks after it."""
        assert self._listing is not None
        while True:
            newline = self._rest.find("\n")
            if newline < 0 and not final:
                if len(self._rest) > LONGEST:
                    # Too long for a closing fence, whatever follows on this line.
                    self._lines.append(self._rest)
                    self._rest = ""
                return None
            line = self._rest if newline < 0 else self._rest[:newline]
            ends = bool(self._lines) and self._lines[-1].endswith("\n") and closes(line, self._lines[0])
            if ends or newline < 0:
                break
            self._lines.append(self._rest[: newline + 1])
            self._rest = self._rest[newline + 1 :]
        end = find_marks_line(self._rest, len(line), final) if ends else len(line)
        if end is None:
            return None
        opened, self._listing = self._listing, None
        text = "".join(self._lines) + self._rest[:end]
        self._rest = self._rest[end:]
        return Cut("code", opened.lead, opened.prefix, text)


def closes(line: str, opening: str) -> bool:
    """Whether a line ends the listing that this one, or its fence, begins."""
    fence = _FENCE.match(opening)
    bare = line.strip(" \t>")
    return fence is not None and len(bare) >= len(fence[0]) and not bare.strip(fence[0][0])


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


# --- sentences ------------------------------------------------------------------------------------


def _find_text_end(body: str, final: bool, seen: int) -> tuple[int | None, int]:
    """Where the first sentence ends, if that is certain, and how far the search need not look again."""
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
    marks = find_marks_line(body, newline, final)
    if marks is None or marks > newline:
        return marks
    rest = body[newline:]
    if not rest.strip():
        return newline if final or rest.count("\n") > 1 else None
    if re.match(r"\n[ \t]*\n", rest) or rest.lstrip()[0] in "[【":
        return newline
    line = rest[1:]
    opening = _open_line(line, final)
    if opening is None:
        return None
    kind, start = opening
    return newline if kind != "text" or line[:start].strip() else -1


def _end_at_stop(body: str, found: re.Match[str], final: bool) -> int | None:
    """The end after a full stop and its marks; −1 if the sentence goes on."""
    end = _find_marks(body, found.end(), final)
    if end is None:
        return None
    after = body[end : end + OPEN_CHARS].lstrip()
    if not after and not final:
        return None
    return end if end > found.end() or _ends_sentence(body, found, after) else -1


def _find_marks(body: str, at: int, final: bool) -> int | None:
    """Marks after a full stop belong to its sentence: on the same line, or alone on the next."""
    end = find_marks_end(body, at, final)
    if end is None or end > at or not body[at:].lstrip(" \t").startswith("\n"):
        return end
    return find_marks_line(body, at, final) if not re.match(r"[ \t]*\n[ \t]*\n", body[at:]) else at


def _ends_sentence(body: str, found: re.Match[str], after: str) -> bool:
    before = body[max(found.start() - OPEN_CHARS, 0) : found.start()]
    if found[0][0] in "。！？" or not after:
        return True
    if after[0].islower() or after[0] in ",;:)]–—" or _is_open(before + found[0]):
        return False
    if found.start() < LABEL_CHARS and len(before.split()) <= LABEL_WORDS and _LABEL.fullmatch(before + found[0]):
        return False
    return not found[0].startswith(".") or found[0].startswith("..") or not _is_abbreviation(before, after)


def _is_open(tail: str) -> bool:
    """Inside code or brackets."""
    return tail.count("`") % 2 == 1 or tail.rfind("(") > tail.rfind(")") or tail.rfind("[") > tail.rfind("]")


def _is_abbreviation(before: str, after: str) -> bool:
    word = re.split(r"[^\w.]", before[-WORD_CHARS:])[-1]
    is_initial = len(word) == 1 and word.isupper() and word != "I"
    is_ordinal = word.isdigit() and len(word) <= 3 and len(before.split()) <= 2
    # "No.", "app." and the like also end a sentence; "eq." and "vol." hardly do.
    names_number = word.lower() in BEFORE_NUMBERS - _WORDS_TOO or (word.lower() in _WORDS_TOO and after[0].isdigit())
    return word.lower() in ABBREVIATIONS or names_number or is_initial or is_ordinal
