"""The answer as it grows: what is shown, what waits for something below it, and what marks a gap."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from askbook.answer.check.stream import Cut

LEFT_OUT = "*(left out: the book does not support it)*"


@dataclass(frozen=True, slots=True)
class Gap:
    """The white space between two shown sentences, whatever was taken out between them."""

    newlines: int = 0
    prefix: str = ""

    def widen(self, other: Gap) -> Gap:
        return Gap(max(self.newlines, other.newlines), other.prefix) if other.newlines or other.prefix else self

    def write(self, first: bool) -> str:
        if first:
            return self.prefix
        return "\n" * self.newlines + self.prefix if self.newlines else " "


def gap_before(cut: Cut) -> Gap:
    # Indented further, it would be no fence if the list around it was taken out.
    prefix = " " * min(len(cut.prefix), 3) if cut.kind == "code" and not cut.is_item else cut.prefix
    return Gap(min(cut.lead.count("\n"), 2), prefix)


Write = Callable[[], str]
"""Writes the text when it is shown: marks are numbered in the order shown."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    cut: Cut
    gap: Gap
    write: Write
    is_hole: bool = False
    """It stands for an item or row that was left out."""


class Page:
    def __init__(self) -> None:
        self.text = ""
        self._gap = Gap()
        self._waiting: list[_Waiting] = []
        """Headings, openings and table heads: shown once something below them is."""
        self._before: Cut | None = None
        self._line: Cut | None = None
        """The current list item or row, …"""
        self._missing = self._shown = False
        """… whether something of it was left out, and whether something is shown."""
        self._in_list = False
        """Whether something of this list or table is shown."""

    def enter(self, cut: Cut) -> None:
        """Announces the next cut, before it is shown, waits or is left out."""
        goes_on = cut.goes_on(self._before)
        if cut.opens_line and (cut.is_item or cut.kind == "row" or not _is_inside(cut)):
            self._close_line()
            self._line = cut if cut.is_item or cut.kind == "row" else None
            self._shown = False
            self._in_list = self._in_list and (goes_on if cut.kind == "row" else cut.is_item)
        self._close_openings(cut, goes_on)
        self._gap = self._gap.widen(gap_before(cut))
        self._before = cut

    def show(self, write: Write) -> None:
        for waiting in self._waiting:
            self._put(waiting.gap, waiting.write)
        self._waiting = []
        self._put(self._gap, write)
        self._gap = Gap()
        self._shown, self._in_list = True, self._line is not None

    def wait(self, cut: Cut, write: Write, is_hole: bool = False) -> None:
        self._waiting.append(_Waiting(cut, self._gap, write, is_hole))
        self._gap = Gap()

    def leave_out(self) -> None:
        self._missing = True

    def finish(self) -> None:
        self._close_line()

    def _put(self, gap: Gap, write: Write) -> None:
        text = write()
        self.text += gap.write(first=not self.text) + text

    def _close_line(self) -> None:
        """Marks an item or row of which nothing was shown."""
        line, missing, self._missing = self._line, self._missing and not self._shown, False
        if line is None or not missing:
            return
        for own in [waiting for waiting in self._waiting if waiting.cut is line]:
            self._waiting.remove(own)
            self._gap = own.gap
        cells = line.text.strip().strip("|").count("|") if line.kind == "row" else 0
        text = f"| {LEFT_OUT} |{' |' * cells}" if line.kind == "row" else LEFT_OUT
        if self._in_list:
            self.show(lambda: text)
        else:
            self.wait(line, lambda: text, is_hole=True)

    def _close_openings(self, cut: Cut, goes_on: bool) -> None:
        """Drops openings under which nothing was kept."""
        gap, kept = Gap(), list[_Waiting]()
        for waiting in self._waiting:
            gap = gap.widen(waiting.gap)
            if not self._is_over(waiting, cut, goes_on):
                kept.append(replace(waiting, gap=gap))
                gap = Gap()
        self._waiting, self._gap = kept, gap.widen(self._gap)

    def _is_over(self, waiting: _Waiting, cut: Cut, goes_on: bool) -> bool:
        opening = waiting.cut
        match opening.kind, cut.kind:
            case "heading", "heading":
                return _level(cut) <= _level(opening)
            case "heading", _:
                return False
            case "row", "row":
                return not goes_on
            case ("row", _) | (_, "heading"):
                return True
        if waiting.is_hole:
            return cut.opens_line and not cut.is_item and not _is_inside(cut)
        after_block = self._before is not None and (self._before.is_item or self._before.kind != "text")
        return cut.kind == "text" and not cut.is_item and cut.opens_line and after_block


def _is_inside(cut: Cut) -> bool:
    """An indented line belongs to the item above it."""
    return cut.prefix[:1] in (" ", "\t")


def _level(cut: Cut) -> int:
    """A bold line ranks below all headings."""
    return len(cut.text) - len(cut.text.lstrip("#")) or 7
