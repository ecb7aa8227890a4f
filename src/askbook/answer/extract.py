"""An answer in the book's own words, as it is shown: each excerpt under its heading, with its mark and its source."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from askbook.answer.check.marks import CODE
from askbook.answer.cleaning import keep_book_links
from askbook.answer.excerpts import Excerpt
from askbook.answer.quotes import to_source
from askbook.answer.units import prefix_of, without_prefix
from askbook.domain import Quote, Source, Statement


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer as it is shown. Each delta adds one statement."""

    statements: tuple[Statement, ...]
    sources: tuple[Source, ...]
    deltas: tuple[str, ...]

    @property
    def text(self) -> str:
        return "".join(self.deltas)


_URL = r"(?<![\w(<\[`/\"'])https?://[^\s<>`)\]]*[^\s<>`)\].,;:!?'\"]"
_LOOKS_LIKE_MARK = r"\[(?=\d+(?:, ?\d+)*\](?!\())"
_TIDIED = re.compile(rf"(?P<code>{CODE})|(?P<url>{_URL})|{_LOOKS_LIKE_MARK}", re.DOTALL | re.MULTILINE)


def compose(excerpts: Sequence[Excerpt]) -> Draft:
    sources: dict[str, Source] = {}
    statements: list[Statement] = []
    deltas: list[str] = []
    title = ""
    for excerpt in excerpts:
        # Two excerpts of one passage make one source with two quotes, each named by its section.
        source = to_source(len(sources) + 1, excerpt.passage, *excerpt.quote)
        assert source is not None and excerpt.place is not None, "an excerpt stands in its file"
        chunk = source.passage.chunk
        known = sources.setdefault(chunk.id, source)
        quote = Quote(excerpt.text, *excerpt.place, chunk.name, chunk.url)
        sources[chunk.id] = replace(known, shown=(*known.shown, quote))
        text = _write(excerpt, known.number)
        opening = f"**{excerpt.section}**\n\n" if excerpt.section != title else ""
        title = excerpt.section
        deltas.append(("\n\n" if deltas else "") + opening + text)
        statements.append(Statement(text, (known.number,), "verbatim"))
    return Draft(tuple(statements), tuple(sources.values()), tuple(deltas))


def _write(excerpt: Excerpt, number: int) -> str:
    first, last = excerpt.find_unit(excerpt.start), excerpt.find_unit(excerpt.end - 1)
    ends_in_block = last is not None and last.kind in ("code", "table")
    before, after = excerpt.frame
    start = first.start if before and first else excerpt.start
    text = without_prefix(before + excerpt.text + after, prefix_of(excerpt.passage.chunk.text, start))
    tidied = keep_book_links(_TIDIED.sub(_tidy, text), lambda _url: False)
    return tidied + ("\n\n" if ends_in_block else " ") + f"[{number}]"


def _tidy(found: re.Match[str]) -> str:
    """Shows addresses as code, and escapes bracketed numbers, which would read as marks."""
    return found["code"] or (f"`{found['url']}`" if found["url"] else r"\[")
