"""Every sentence that a model writes is checked against the passages it cites before a reader sees it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from itertools import zip_longest
from typing import Literal

from askbook.answer.check.listings import check_listing, read_listing, write_listing
from askbook.answer.check.literals import find_wrong_answer
from askbook.answer.check.marks import (
    Part,
    cited_numbers,
    keep_marks,
    read_marks,
    unlink_marks,
    without_marks,
    write_marks,
)
from askbook.answer.check.page import Page, gap_before
from askbook.answer.check.phrases import is_courtesy, is_footer, is_opening, says_absent
from askbook.answer.check.stream import Cut, Cutter, is_whole
from askbook.answer.check.support import BAR, OPENS, UNSAID, Numbered, Support, find_support, find_verbatim
from askbook.answer.cleaning import IsBookLink, Secret, clean, drop_invisible, keep_book_links
from askbook.answer.quotes import find_longest_run, to_source
from askbook.answer.units import Span
from askbook.domain import Passage, Source, Statement, UnsupportedChoice, Verdict
from askbook.reading.reader import Reader

UNSUPPORTED = " [unsupported]"
LEAKED = "it repeats the assistant's instructions"
HALF = "it breaks off"
_YES = re.compile(r"\W*(?:yes|no|true|false|[✓✔✗✘✅❌])\W*", re.IGNORECASE)
_COUNTS = ("One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")

Fate = Literal["show", "wait", "refuse", "remove", "drop"]


@dataclass(frozen=True, slots=True)
class Doubt:
    """A sentence that the reader is unsure of, and the passages that may support it."""

    sentence: str
    passages: tuple[Passage, ...]


Judge = Callable[[Sequence[Doubt]], Awaitable[Sequence[bool]]]
"""Which of these sentences their passages support; when unsure, False."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A cut and what becomes of it. It cites by the numbers that the model was given."""

    cut: Cut
    fate: Fate
    text: str = ""
    why: str = UNSAID
    parts: tuple[Part, ...] = ()
    """The text and its marks; written again with the numbers that readers see."""
    places: Mapping[int, Span] = field(default_factory=dict[int, Span])
    verdict: Verdict = "supported"
    is_doubted: bool = False


def say_left_out(removed: Sequence[Statement]) -> tuple[str, ...]:
    """The notice for an answer from which sentences were removed."""
    match sum(statement.why not in (HALF, LEAKED) for statement in removed):
        case 0:
            return ()
        case 1:
            return ("One sentence was left out: the book does not support it.",)
        case count:
            number = _COUNTS[count - 1] if count <= len(_COUNTS) else str(count)
            return (f"{number} sentences were left out: the book does not support them.",)


@dataclass
class Checking:
    """Holds a model's text back until a sentence, list item, row or listing of it is whole and checked.

    From the first sentence on that the reader is not sure of, all is held back until the model has ended: then the
    judge is asked once, for all such sentences together.
    """

    numbered: Numbered
    unsupported: UnsupportedChoice
    is_book_link: IsBookLink
    secret: InitVar[str] = ""
    reader: Reader | None = None
    judge: Judge | None = None
    question: str = ""
    statements: list[Statement] = field(default_factory=list[Statement])
    removed: list[Statement] = field(default_factory=list[Statement])
    said_not_in_book: bool = False

    def __post_init__(self, secret: str) -> None:
        self._secret, self._cutter, self._page = Secret(secret), Cutter(), Page()
        self._held: list[Checked] = []
        self._before: Cut | None = None
        self._head: list[str] = []
        """The table head's cells."""
        self._in_footer = False
        self._said = ""
        """The text that was shown last."""
        self._cited: dict[int, Span] = {}
        """By the numbers that the model was given, in the order shown."""

    @property
    def text(self) -> str:
        return self._page.text

    async def feed(self, delta: str) -> str:
        """The next part of the answer that may be sent."""
        return await self._check_all(self._cutter.feed(drop_invisible(delta)))

    async def finish(self, cut_short: bool = False) -> str:
        """`cut_short`: the model was stopped before it ended."""
        cuts = list(self._cutter.finish())
        half = cuts.pop() if cut_short and cuts and not is_whole(cuts[-1]) else None
        sent = await self._check_all(cuts)
        start = len(self.text)
        for checked in await self._ask_judge():
            self._apply(checked)
        self._page.finish()
        if half is not None:
            self._leave_out(clean(half.text), HALF)
        return sent + self.text[start:]

    def sources(self) -> tuple[Source, ...]:
        cited = enumerate(self._cited.items(), start=1)
        return tuple(filter(None, (to_source(at, self.numbered[number], *span) for at, (number, span) in cited)))

    async def _check_all(self, cuts: Iterable[Cut]) -> str:
        start = len(self.text)
        for cut in cuts:
            checked = await self._check(cut)
            # A model may send everything at once: others get a turn after each sentence.
            await asyncio.sleep(0)
            self._before = cut
            if self._held or checked.is_doubted:
                self._held.append(checked)
            else:
                self._apply(checked)
        return self.text[start:]

    async def _ask_judge(self) -> list[Checked]:
        """The held sentences, after the judge has decided on the doubted ones."""
        doubted = [checked for checked in self._held if checked.is_doubted]
        if not doubted or self.judge is None:
            return self._held
        everything = tuple(self.numbered)
        doubts = [
            Doubt(checked.text, tuple(self.numbered[number] for number in tuple(checked.places) or everything))
            for checked in doubted
        ]
        verdicts = iter([*await self.judge(doubts), *(False for _ in doubts)])
        return [replace(held, fate="refuse") if held.is_doubted and not next(verdicts) else held for held in self._held]

    # --- what becomes of a cut ----------------------------------------------------------------------

    async def _check(self, cut: Cut) -> Checked:
        if self._secret.leaks(cut.text):
            return Checked(cut, "remove", clean(cut.text), LEAKED)
        if cut.kind == "code":
            # Listings, unlike sentences, may be of any length.
            return await asyncio.to_thread(self._check_listing, cut)
        text = keep_book_links(unlink_marks(clean(cut.text)), self.is_book_link)
        parts = read_marks(text, self.numbered)
        bare = without_marks(parts).strip()
        in_sources = self._in_footer and (cut.is_item or text.startswith(("[", "【")))
        self._in_footer = cut.kind != "row" and (is_footer(bare) or in_sources)
        if self._in_footer or cut.kind == "rule":
            return Checked(cut, "drop")
        if not re.search(r"\w", bare):
            return Checked(cut, "wait", bare, parts=(bare,)) if cut.kind == "row" else Checked(cut, "drop")
        return await (self._check_row if cut.kind == "row" else self._check_sentence)(cut, bare, parts)

    async def _check_sentence(self, cut: Cut, bare: str, parts: Sequence[Part]) -> Checked:
        opens, cited = cut.kind == "heading" or is_opening(bare), cited_numbers(parts)
        support = find_verbatim(bare, cited, self.numbered)
        if support is None and says_absent(bare):
            self.said_not_in_book = True
            return Checked(cut, "drop")
        if support is None and not opens and is_courtesy(bare):
            return Checked(cut, "drop")
        if why := find_wrong_answer(bare, self.question):
            return Checked(cut, "refuse", bare, why)
        support = support or await find_support(bare, cited, self.numbered, self.reader)
        if opens and not cited:
            return Checked(cut, "wait" if support.chance >= OPENS else "refuse", bare, support.why, (bare,))
        return self._decide(cut, "wait" if opens else "show", bare, parts, support)

    async def _check_row(self, cut: Cut, bare: str, parts: Sequence[Part]) -> Checked:
        cells = [cell.strip() for cell in bare.strip("|").split("|")]
        support = find_verbatim(f"| {' | '.join(cells)} |", cited_numbers(parts), self.numbered)
        if not cut.goes_on(self._before):
            self._head = cells
            support = support or await find_support(", ".join(cells), (), self.numbered, self.reader)
            if support.chance < OPENS:
                self._leave_out(bare, support.why)
                bare = "|" + " |" * len(cells)
            return Checked(cut, "wait", bare, parts=(bare,))
        if support is None and (answer := next(filter(_YES.fullmatch, cells), None)):
            return Checked(cut, "refuse", bare, f"the source does not say “{answer}” there")
        named = zip_longest(self._head, cells, fillvalue="")
        claim = "; ".join(f"{head}: {cell}" if head else cell for head, cell in named if cell)
        support = support or await find_support(claim, cited_numbers(parts), self.numbered, self.reader)
        return self._decide(cut, "show", bare, parts, support)

    def _check_listing(self, cut: Cut) -> Checked:
        listing = read_listing(clean(cut.text), cut.prefix, self.numbered)
        indent = " " * len(gap_before(cut).prefix)
        text = write_listing(listing, indent)
        found, why = check_listing(listing, self.numbered)
        marked = (f"{text}\n{indent}", tuple(found))
        return Checked(cut, "refuse" if why else "show", text, why, marked, found)

    def _decide(self, cut: Cut, fate: Fate, bare: str, parts: Sequence[Part], support: Support) -> Checked:
        doubted = support.is_unsure and self.judge is not None
        if support.chance < BAR and not doubted:
            return Checked(cut, "refuse", bare, support.why)
        verdict: Verdict = "verbatim" if support.verbatim else "supported"
        marked = keep_marks(parts, tuple(support.places))
        return Checked(cut, fate, bare, UNSAID, marked, support.places, verdict, doubted)

    # --- the page -----------------------------------------------------------------------------------

    def _apply(self, checked: Checked) -> None:
        self._page.enter(checked.cut)
        match checked.fate:
            case "show":
                self._show(checked)
            case "wait":
                self._page.wait(checked.cut, lambda: self._write(checked))
            case "refuse" if self.unsupported == "mark":
                self._show(replace(checked, parts=(_mark(checked),), places={}, verdict="unsupported"))
            case "refuse" | "remove":
                self._leave_out(checked.text, checked.why)
                self._page.leave_out()
            case "drop":
                pass

    def _leave_out(self, text: str, why: str) -> None:
        self.removed.append(Statement(text, (), "unsupported", why))

    def _show(self, checked: Checked) -> None:
        said = without_marks(checked.parts)
        # A stuck model repeats itself.
        if said != self._said:
            self._said = said
            self._page.show(lambda: self._write(checked))

    def _write(self, checked: Checked) -> str:
        """The text with the marks that readers see."""
        for number in sorted(checked.places, key=cited_numbers(checked.parts).index):
            quote = find_longest_run(self.numbered[number].chunk, *checked.places[number])
            self._cited.setdefault(number, quote)
        shown = {number: at for at, number in enumerate(self._cited, start=1)}
        text = write_marks(checked.parts, shown)
        if checked.places or checked.verdict == "unsupported":
            cites = tuple(shown[number] for number in checked.places)
            why = checked.why if checked.verdict == "unsupported" else ""
            self.statements.append(Statement(text, cites, checked.verdict, why))
        return text


def _mark(checked: Checked) -> str:
    if checked.cut.kind == "code":
        return f"{checked.text}\n{UNSUPPORTED.strip()}"
    if checked.cut.kind == "row" and checked.text.endswith("|"):
        return f"{checked.text[:-1].rstrip()}{UNSUPPORTED} |"
    return checked.text + UNSUPPORTED
