"""An answer in the book's own words, as it is shown: each excerpt under its heading, with its mark and its source."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from askbook.answer.check.marks import CODE
from askbook.answer.cleaning import keep_book_links
from askbook.answer.excerpts import Excerpt
from askbook.answer.quotes import to_source
from askbook.answer.units import prefix_of, show
from askbook.domain import Quote, Source, Statement


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer as it is shown. `deltas` joined are its text; each brings one whole statement."""

    statements: tuple[Statement, ...]
    sources: tuple[Source, ...]
    deltas: tuple[str, ...]

    @property
    def text(self) -> str:
        return "".join(self.deltas)


_BARE_URL = re.compile(r"(?<![\w(<\[`/\"'])https?://[^\s<>`)\]]*[^\s<>`)\].,;:!?'\"]")
_LOOKS_LIKE_MARK = re.compile(r"\[(?=\d+(?:, ?\d+)*\](?!\())")
_CODE = re.compile(CODE, re.DOTALL | re.MULTILINE)


def compose(excerpts: Sequence[Excerpt]) -> Draft:
    """Each excerpt is a statement under the name of its section, with the mark of its passage."""
    sources: dict[str, Source] = {}
    statements: list[Statement] = []
    deltas: list[str] = []
    title = ""
    for one in excerpts:
        number = _cite(one, sources)
        shown = _show(one, number)
        opening = f"**{one.section}**\n\n" if one.section != title else ""
        title = one.section
        deltas.append(("\n\n" if deltas else "") + opening + shown)
        statements.append(Statement(shown, (number,), "verbatim"))
    return Draft(tuple(statements), tuple(sources.values()), tuple(deltas))


def _cite(one: Excerpt, sources: dict[str, Source]) -> int:
    """Two excerpts of one passage are one source with two places, each named by its own section."""
    source = to_source(len(sources) + 1, one.passage, *one.quote)
    assert source is not None and one.place is not None, "an excerpt stands in its file"
    chunk = source.passage.chunk
    known = sources.setdefault(chunk.id, source)
    sources[chunk.id] = replace(known, shown=(*known.shown, Quote(one.text, *one.place, chunk.name, chunk.url)))
    return known.number


def _show(one: Excerpt, number: int) -> str:
    first, last = one.find_unit(one.start), one.find_unit(one.end - 1)
    ends_in_block = last is not None and last.kind in ("code", "table")
    before, after = one.frame
    start = first.start if before and first else one.start
    shown = show(before + one.text + after, prefix_of(one.passage.chunk.text, start))
    return _tidy(shown) + ("\n\n" if ends_in_block else " ") + f"[{number}]"


def _tidy(text: str) -> str:
    """Links lead nowhere from an answer, and a number in brackets is the answer's own sign."""
    pieces: list[str] = []
    at = 0
    for code in _CODE.finditer(text):
        pieces += _tidy_prose(text[at : code.start()]), code[0]
        at = code.end()
    pieces.append(_tidy_prose(text[at:]))
    return keep_book_links("".join(pieces), lambda _url: False)


def _tidy_prose(text: str) -> str:
    return _LOOKS_LIKE_MARK.sub(r"\\[", _BARE_URL.sub(lambda found: f"`{found[0]}`", text))
