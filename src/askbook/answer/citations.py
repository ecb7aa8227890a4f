"""Every sentence that a model writes is checked against the passages it cites before a reader sees it."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from askbook.answer.check.listings import check_listing, read_listing, write_listing
from askbook.answer.check.marks import (
    Mark,
    Part,
    cited_numbers,
    resolve_marks,
    split_marks,
    unlink_marks,
    without_marks,
    write_marks,
)
from askbook.answer.check.phrases import OPENING_WORDS, is_courtesy, is_footer, is_opening, says_absent, strip_frame
from askbook.answer.check.stream import Cut, Cutter, is_whole
from askbook.answer.check.support import CITED, UNCITED, Support, find_support, may_open, says_something
from askbook.answer.cleaning import IsBookLink, clean, drop_invisible, keep_book_links
from askbook.answer.quotes import to_source
from askbook.domain import Chunk, Passage, Source, Statement, UnsupportedChoice, Verdict

TOGETHER = 4
"""So many cited passages may bear a sentence out together."""
SECRET_WORDS = 8
UNSUPPORTED = " [unsupported]"
LEAKED = "it repeats the assistant's instructions"
HALF = "it breaks off"

Numbered = Mapping[int, Passage]


@dataclass(frozen=True, slots=True)
class Quote:
    """`passage.chunk.text[start:end]`, which stands in the file in one run."""

    number: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Checked:
    """A sentence and what was found for it; marks and cites by the numbers that the model was given."""

    statement: Statement
    quotes: tuple[Quote, ...]
    parts: tuple[Part, ...]
    """The text with its marks apart, to be written again with the numbers shown."""


def check_sentence(text: str, numbered: Numbered, before: Sequence[int] = ()) -> Checked:
    """A sentence, list item or table row with its marks; `before` is what the sentence before it cites."""
    parts = resolve_marks(split_marks(unlink_marks(text)), numbered)
    bare = without_marks(parts)
    support, numbers = _find_best(strip_frame(bare), cited_numbers(parts), before, numbered)
    if not support.places:
        bare = bare.strip()
        return Checked(Statement(bare, (), "unsupported", support.why), (), (bare,))
    quotes = tuple(_to_quote(numbers[one.chunk], numbered, one.start, one.end) for one in support.places)
    verdict: Verdict = "verbatim" if support.verbatim else "supported"
    return _to_checked(parts, verdict, quotes)


def _to_checked(parts: Sequence[Part], verdict: Verdict, quotes: tuple[Quote, ...]) -> Checked:
    """Marks of passages that bear it out stay where they are; if none is left, one is put at the end."""
    cites = tuple(dict.fromkeys(quote.number for quote in quotes))
    kept = tuple(_keep(part, cites) for part in parts)
    unmarked = tuple(one for one in cites if one not in cited_numbers(kept))
    if unmarked:
        kept = _append_mark(kept, Mark("", unmarked))
    return Checked(Statement(write_marks(kept, dict(zip(cites, cites, strict=True))), cites, verdict), quotes, kept)


def _keep(part: Part, cites: Sequence[int]) -> Part:
    return part if isinstance(part, str) else Mark(part.written, tuple(one for one in part.numbers if one in cites))


def _append_mark(parts: tuple[Part, ...], mark: Mark) -> tuple[Part, ...]:
    """Before the full stop, or in the last cell of a row."""
    if cited_numbers(parts):
        return (*parts, mark)
    text = without_marks(parts)
    end = re.search(r"\s*(?:\|\s*|[.!?]*)$", text) if text.startswith("|") else re.search(r"[.!?…]*[*_]*$", text)
    at = end.start() if end else len(text)
    tail = f" {text[at:].strip()}" if text.startswith("|") else text[at:]
    return (f"{text[:at]} ", mark, tail)


def _find_best(
    text: str, cited: Sequence[int], before: Sequence[int], numbered: Numbered
) -> tuple[Support, tuple[int, ...]]:
    """By one of the cited passages, by all of them, or else by one that was found and not cited."""
    if not numbered:
        return Support((), why="nothing was found in the book"), ()
    alone = [(number, find_support(text, [numbered[number].chunk])) for number in cited]
    good = [(number, one) for number, one in alone if one.places]
    if good:
        places = tuple(replace(one.places[0], chunk=at) for at, (_, one) in enumerate(good))
        return replace(good[0][1], places=places), tuple(number for number, _ in good)
    if 1 < len(cited) <= TOGETHER:
        together = find_support(text, [numbered[number].chunk for number in cited])
        if together.places:
            return together, tuple(cited)
    bars = {number: CITED if number in before else UNCITED for number in numbered if number not in cited}
    others = [(number, find_support(text, [numbered[number].chunk], bar)) for number, bar in bars.items()]
    number, best = max(others, key=lambda one: _rate(one[1]), default=(0, Support(())))
    # What the cited passage contradicts must stand elsewhere word by word.
    if best.places and (best.verbatim or not any(one.contradicts for _, one in alone)):
        return best, (number,)
    return max((one for _, one in alone or others), key=lambda one: (one.contradicts, one.share)), ()


def _rate(support: Support) -> tuple[bool, bool, float]:
    return bool(support.places), support.verbatim, support.share


def _to_quote(number: int, numbered: Numbered, start: int, end: int) -> Quote:
    """As much of it as the file has in one run."""
    chunk = numbered[number].chunk
    runs = [(max(start, one.text_at), min(end, one.text_at + one.length)) for one in chunk.pieces]
    first, last = max(_join(chunk, runs), key=lambda run: run[1] - run[0], default=(start, end))
    return Quote(number, first, last)


def _join(chunk: Chunk, runs: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    return ((first, last) for first, last in runs if chunk.text[first:last].strip() and first < last)


# --- the stream -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Gap:
    """What stands between two sentences that are shown, whatever was taken out between them."""

    newlines: int = 0
    prefix: str = ""
    blank: bool = False

    def widen(self, other: _Gap) -> _Gap:
        if other.newlines or other.prefix:
            return _Gap(max(self.newlines, other.newlines), other.prefix)
        return _Gap(self.newlines, self.prefix, self.blank or other.blank)

    def write(self, first: bool) -> str:
        if first:
            return self.prefix
        return "\n" * self.newlines + self.prefix if self.newlines else " "


def _gap_before(cut: Cut) -> _Gap:
    # Indented further, a fence would be no fence where the list around it was taken out.
    prefix = " " * min(len(cut.prefix), 3) if cut.kind == "code" and not cut.is_item else cut.prefix
    return _Gap(min(cut.lead.count("\n"), 2), prefix, bool(cut.lead))


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A heading, the opening of a list or the head of a table: shown if anything under it is."""

    cut: Cut
    gap: _Gap
    checked: Checked


class Checking:
    """Holds a model's text back until a sentence, list item, row or listing of it is whole and checked."""

    def __init__(
        self, numbered: Numbered, unsupported: UnsupportedChoice, is_book_link: IsBookLink, secret: str = ""
    ) -> None:
        self._numbered = numbered
        self._unsupported: UnsupportedChoice = unsupported
        self._is_book_link = is_book_link
        self._secret = _Secret(secret)
        self._cutter = Cutter()
        self._gap = _Gap()
        self._waiting: list[_Waiting] = []
        self._before: Cut | None = None
        self._in_footer = False
        self._said = ""
        """The last that was shown."""
        self._last_cites: tuple[int, ...] = ()
        self._cited: dict[int, Quote] = {}
        """By the numbers that the model was given, in the order in which they are shown."""
        self.text = ""
        """All that was sent on."""
        self.statements: list[Statement] = []
        self.removed: list[Statement] = []
        self.absent: list[str] = []
        """What the book does not say, as the model says."""

    @property
    def said_not_in_book(self) -> bool:
        return bool(self.absent)

    def feed(self, delta: str) -> str:
        """What may be sent on now; all of it, put together, is the answer."""
        return self._send(self._cutter.feed(drop_invisible(delta)))

    def finish(self, cut_short: bool = False) -> str:
        """`cut_short`: the model was stopped, and did not end by itself."""
        cuts = list(self._cutter.finish())
        half = cuts.pop() if cut_short and cuts and not is_whole(cuts[-1]) else None
        sent = self._send(cuts)
        if half is not None:
            self.removed.append(Statement(clean(half.text), (), "unsupported", HALF))
        return sent

    def sources(self) -> tuple[Source, ...]:
        quotes = enumerate(self._cited.values(), start=1)
        found = (to_source(shown, self._numbered[one.number], one.start, one.end) for shown, one in quotes)
        return tuple(source for source in found if source is not None)

    def _send(self, cuts: Iterable[Cut]) -> str:
        sent = len(self.text)
        for cut in cuts:
            self._gap = self._gap.widen(_gap_before(cut))
            self._close_openings(cut)
            if self._secret.leaks(cut.text) and not says_absent(cut.text):
                self.removed.append(Statement(clean(cut.text), (), "unsupported", LEAKED))
            else:
                self._take(cut)
            self._before = cut
        return self.text[sent:]

    def _take(self, cut: Cut) -> None:
        match cut.kind:
            case "code":
                self._take_listing(cut)
            case "heading":
                self._take_heading(cut)
            case "row":
                self._take_row(cut)
            case "text":
                self._take_sentence(cut)
            case "rule":
                pass

    def _take_sentence(self, cut: Cut) -> None:
        text = self._make_safe(cut.text)
        bare = without_marks(split_marks(text)).strip()
        self._in_footer = is_footer(bare) or (self._in_footer and (cut.is_item or text.startswith(("[", "【"))))
        if self._in_footer or not _has_words(bare):
            return
        if is_opening(bare):
            self._take_opening(cut, text, bare)
            return
        checked = check_sentence(text, self._numbered, self._last_cites)
        says = cut.is_item or checked.statement.verdict == "verbatim" or says_something(bare)
        if checked.quotes and says:
            self._show(cut, checked)
        elif says_absent(bare):
            self.absent.append(bare)
        elif says and not is_courtesy(bare):
            self._refuse(cut, checked)

    def _take_opening(self, cut: Cut, text: str, bare: str) -> None:
        checked = check_sentence(text, self._numbered, self._last_cites)
        if checked.quotes and cited_numbers(split_marks(text)):
            self._wait(cut, checked)
        elif self._may_open(bare):
            self._wait(cut, _uncited(bare))
        elif not is_courtesy(bare):
            self._refuse(cut, checked)

    def _take_heading(self, cut: Cut) -> None:
        bare = without_marks(split_marks(self._make_safe(cut.text)))
        self._in_footer = is_footer(bare)
        if not self._in_footer and self._may_open(bare):
            self._wait(cut, _uncited(bare))

    def _take_row(self, cut: Cut) -> None:
        text = self._make_safe(cut.text)
        if not self._goes_on(cut) or not _has_words(text):
            self._wait(cut, _uncited(text))
            return
        checked = check_sentence(text, self._numbered, self._last_cites)
        if checked.quotes:
            self._show(cut, checked)
        else:
            self._refuse(cut, checked)

    def _take_listing(self, cut: Cut) -> None:
        listing = read_listing(clean(cut.text), cut.prefix, self._numbered)
        indent = " " * len(_gap_before(cut).prefix)
        text = write_listing(listing, indent)
        found, why = check_listing(listing, self._numbered)
        if why:
            self._refuse(cut, Checked(Statement(text, (), "unsupported", why), (), (text,)))
            return
        quotes = tuple(_to_quote(number, self._numbered, *span) for number, span in found.items())
        marked = (f"{text}\n{indent}", Mark("", tuple(found)))
        self._show(cut, Checked(Statement(text, tuple(found), "supported"), quotes, marked))

    def _make_safe(self, text: str) -> str:
        return keep_book_links(unlink_marks(clean(text)), self._is_book_link)

    def _may_open(self, text: str) -> bool:
        return may_open(text, [one.chunk for one in self._numbered.values()], OPENING_WORDS)

    # --- showing and refusing -----------------------------------------------------------------------

    def _show(self, cut: Cut, checked: Checked) -> None:
        said = without_marks(checked.parts)
        if said == self._said:
            # A model that is stuck says it again and again.
            return
        self._said = said
        for waiting in self._waiting:
            self._write(waiting.gap, waiting.checked)
        self._waiting = []
        self._write(self._gap, checked)
        self._gap = _Gap()

    def _write(self, gap: _Gap, checked: Checked) -> None:
        for quote in sorted(checked.quotes, key=lambda one: cited_numbers(checked.parts).index(one.number)):
            self._cited.setdefault(quote.number, quote)
        shown = {number: at for at, number in enumerate(self._cited, start=1)}
        text = write_marks(checked.parts, shown)
        self.text += gap.write(first=not self.text) + text
        self._last_cites = checked.statement.cites or self._last_cites
        if checked.quotes or checked.statement.verdict == "unsupported":
            cites = tuple(shown[number] for number in checked.statement.cites)
            self.statements.append(replace(checked.statement, text=text, cites=cites))

    def _refuse(self, cut: Cut, checked: Checked) -> None:
        if self._unsupported == "drop":
            self.removed.append(checked.statement)
            return
        text = checked.statement.text
        is_row = cut.kind == "row" and text.endswith("|")
        marked = f"{text[:-1].rstrip()}{UNSUPPORTED} |" if is_row else text + UNSUPPORTED
        marked = f"{text}\n{UNSUPPORTED.strip()}" if cut.kind == "code" else marked
        self._show(cut, Checked(checked.statement, (), (marked,)))

    # --- what waits for something under it ----------------------------------------------------------

    def _wait(self, cut: Cut, checked: Checked) -> None:
        self._waiting.append(_Waiting(cut, self._gap, checked))
        self._gap = _Gap()

    def _goes_on(self, cut: Cut) -> bool:
        """A further row of the same table."""
        return self._before is not None and self._before.kind == "row" and cut.lead.count("\n") == 1

    def _close_openings(self, cut: Cut) -> None:
        """What waits in vain: nothing under it was kept, and now something else begins."""
        gap, kept = _Gap(), list[_Waiting]()
        for waiting in self._waiting:
            if self._is_over(waiting.cut, cut):
                gap = gap.widen(waiting.gap)
            else:
                kept.append(replace(waiting, gap=gap.widen(waiting.gap)))
                gap = _Gap()
        self._waiting, self._gap = kept, gap.widen(self._gap)

    def _is_over(self, opening: Cut, cut: Cut) -> bool:
        match opening.kind, cut.kind:
            case "heading", "heading":
                return _level(cut) <= _level(opening)
            case "heading", _:
                return False
            case "row", "row":
                return not self._goes_on(cut)
            case _, "heading":
                return True
            case "row", _:
                return True
        again = is_opening(without_marks(split_marks(cut.text))) and (opening.is_item or not cut.is_item)
        after_block = self._before is not None and (self._before.is_item or self._before.kind != "text")
        return cut.kind == "text" and (again or (not cut.is_item and cut.opens_line and after_block))


def _uncited(text: str) -> Checked:
    return Checked(Statement(text, (), "supported"), (), (text,))


def _has_words(text: str) -> bool:
    return re.search(r"\w", text) is not None


def _level(cut: Cut) -> int:
    """A bold line is a heading below all others."""
    return len(cut.text) - len(cut.text.lstrip("#")) or 7


class _Secret:
    """Finds runs of the instructions in a text that comes sentence by sentence, also in Base64."""

    def __init__(self, secret: str) -> None:
        self._runs = set(_runs_of(_to_words(secret)))
        self._last: list[str] = []

    def leaks(self, text: str) -> bool:
        words = [*self._last, *_to_words(text)]
        self._last = words[1 - SECRET_WORDS :]
        return not self._runs.isdisjoint((*_runs_of(words), *_runs_of(_to_words(_decode(text)))))


def _to_words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _runs_of(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return (tuple(words[at : at + SECRET_WORDS]) for at in range(len(words) - SECRET_WORDS + 1))


def _decode(text: str) -> str:
    decoded = (_decode_run(run) for run in re.findall(r"[A-Za-z0-9+/]{24,}={0,2}", text))
    return " ".join(decoded)


def _decode_run(run: str) -> str:
    try:
        return base64.b64decode(run[: len(run) // 4 * 4]).decode("utf-8", "ignore")
    except binascii.Error:
        return ""
