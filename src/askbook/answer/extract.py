"""An answer without a model: the book's own words that answer the question, verbatim, and no more of them than that takes.

A passage is cut into units (units.py), each is weighed as an answer (weighing.py) of the kind that the question wants
(kinds.py), and the chosen ones are quoted with what they do not stand without (excerpts.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice

from askbook.answer.cleaning import keep_book_links
from askbook.answer.excerpts import Excerpt, widen
from askbook.answer.kinds import Asked, read_question
from askbook.answer.quotes import place_quote, to_source
from askbook.answer.units import Block, prefix_of, show, split_blocks
from askbook.answer.weighing import Candidate, Reading, find_candidates, read_passages, weigh_words
from askbook.domain import Passage, Source, Statement
from askbook.index.coverage import Rarities
from askbook.index.embedders.base import Embedder
from askbook.index.keywords import split_terms

UNITS_MAX, DEFINITIONS_MAX, WORDS_MAX = 3, 2, 80
GAP, BLOCK_GAP = 0.2, 0.1
"""How far behind the best another may be, and behind a whole list, listing or table."""
FLOOR, STRENGTH, STRENGTH_BESIDE = 0.1, 0.5, 0.65
"""How strong any must be, the first against the strongest of all, and each other against the first."""
SAME = 0.75
"""Two that share so much of their words say the same."""
OPENING_UNITS = 2


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer as it is shown. `deltas` joined are its text; each brings one whole statement."""

    statements: tuple[Statement, ...]
    sources: tuple[Source, ...]
    deltas: tuple[str, ...]

    @property
    def text(self) -> str:
        return "".join(self.deltas)


async def extract(
    question: str, passages: Sequence[Passage], rarities: Rarities, embedder: Embedder | None, said: str = ""
) -> tuple[Excerpt, ...]:
    """The best passage's words first, in the book's order within a passage; nothing where nothing answers.

    `said`: what earlier answers showed. It is not said again, so that "tell me more" tells more.
    """
    asked, readings = read_question(question), _leave_out(said, read_passages(passages))
    weights = weigh_words(asked, rarities)
    if not weights:
        return tuple(_arrange(list(_open_first(readings))))
    candidates = await find_candidates(asked, readings, weights, embedder)
    return tuple(_arrange(_choose(asked, candidates)))


def _leave_out(said: str, readings: list[Reading]) -> list[Reading]:
    shown = _collapse(said)
    return [replace(one, blocks=tuple(_find_unsaid(shown, one))) for one in readings] if shown else readings


def _find_unsaid(shown: str, reading: Reading) -> Iterator[Block]:
    for block in reading.blocks:
        units = tuple(one for one in block.units if _collapse(_tidy(reading.text[one.start : one.end])) not in shown)
        if units:
            yield replace(block, units=units)


def _collapse(text: str) -> str:
    return " ".join(text.split())


def _open_first(readings: Sequence[Reading]) -> Iterator[Excerpt]:
    """Where a question names nothing, "explain this", the first passage speaks from its beginning."""
    for reading in readings[:1]:
        units = [unit for block in reading.blocks if block.kind == "prose" for unit in block.units]
        for unit in units[:OPENING_UNITS]:
            if place_quote(reading.passage.chunk, unit.start, unit.end):
                yield Excerpt(reading.passage, unit.start, unit.end, "sentence")


# --- which are chosen -----------------------------------------------------------------------------


def _choose(asked: Asked, candidates: Sequence[Candidate]) -> list[Excerpt]:
    """The best, then others that are nearly as good and say something else."""
    strongest = max((one.strength for one in candidates), default=0.0)
    # A section's heading may speak of the question while a sentence of it does not.
    candidates = [one for one in candidates if one.strength >= max(FLOOR, STRENGTH * strongest)]
    chosen: list[Excerpt] = []
    for one in candidates:
        if chosen and (len(chosen) == _count_wanted(asked) or one.score < _least(candidates[0], chosen[0])):
            break
        if chosen and one.strength < STRENGTH_BESIDE * candidates[0].strength:
            continue
        excerpt = widen(asked, one)
        if excerpt is not None and _adds(excerpt, chosen):
            chosen.append(excerpt)
    return chosen if asked.kind != "comparison" else _add_missing_sides(asked, candidates, chosen)


def _count_wanted(asked: Asked) -> int:
    return DEFINITIONS_MAX if asked.kind == "definition" else UNITS_MAX


def _least(best: Candidate, first: Excerpt) -> float:
    # That the best has the wanted form is no reason to hide sentences that are as near to the question.
    whole = first.kind in ("code", "steps", "list", "table")
    return best.score - (BLOCK_GAP if whole else max(best.fit, 0.0) + GAP)


def _adds(excerpt: Excerpt, chosen: Sequence[Excerpt]) -> bool:
    """It says something else, and there is room for it; the first has all the room it needs."""
    if any(_repeats(excerpt, other) for other in chosen):
        return False
    return not chosen or sum(len(other.text.split()) for other in (*chosen, excerpt)) <= WORDS_MAX


def _add_missing_sides(asked: Asked, candidates: Sequence[Candidate], chosen: list[Excerpt]) -> list[Excerpt]:
    """Of two things compared, each is spoken of."""
    for side in asked.subjects:
        if side.issubset(split_terms(" ".join(one.text for one in chosen))):
            continue
        speaking = (widen(asked, one) for one in candidates if side.issubset(split_terms(one.text)))
        new = (one for one in speaking if one is not None and not any(_repeats(one, other) for other in chosen))
        chosen = [*chosen, *islice(new, 1)]
    return chosen


def _repeats(one: Excerpt, other: Excerpt) -> bool:
    """They overlap in the file, or have nearly the same words and numbers."""
    if one.passage.chunk.source_file == other.passage.chunk.source_file:
        places = [place_quote(each.passage.chunk, each.start, each.end) for each in (one, other)]
        if places[0] and places[1] and places[0][0] < places[1][1] and places[1][0] < places[0][1]:
            return True
    small, large = sorted((set(split_terms(each.text)) for each in (one, other)), key=len)
    alone = small - large
    # "Port 80 is open" and "Port 443 is open" share nearly all, and are not the same.
    return len(alone) <= (1 - SAME) * len(small) and not any(map(str.isdecimal, alone))


def _arrange(chosen: Sequence[Excerpt]) -> list[Excerpt]:
    """Passages in the order in which they were chosen; in each of them the book's order, neighbours as one."""
    places = {one.passage.chunk.id: at for at, one in reversed(list(enumerate(chosen)))}
    ordered = sorted(chosen, key=lambda one: (places[one.passage.chunk.id], one.start))
    arranged: list[Excerpt] = []
    for one in ordered:
        last = arranged[-1] if arranged else None
        if last is not None and _follows(last, one):
            arranged[-1] = replace(last, end=one.end)
        else:
            arranged.append(one)
    return arranged


def _follows(last: Excerpt, one: Excerpt) -> bool:
    chunk = one.passage.chunk
    if last.passage.chunk.id != chunk.id or {last.kind, one.kind} - {"sentence", "definition", "place"}:
        return False
    blank = chunk.text[last.end : one.start]
    return not blank.strip() and "\n\n" not in blank and place_quote(chunk, last.start, one.end) is not None


# --- how they are shown ---------------------------------------------------------------------------

_BARE_URL = re.compile(r"(?<![\w(<\[`/\"'])https?://[^\s<>`)\]]*[^\s<>`)\].,;:!?'\"]")
_LOOKS_LIKE_MARK = re.compile(r"\[(?=\d+(?:, ?\d+)*\](?![(\[]))")
_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)|^[ \t]*(~{3,})[^\n]*\n.*?^[ \t]*\2", re.DOTALL | re.MULTILINE)


def compose(excerpts: Sequence[Excerpt]) -> Draft:
    """Each excerpt a statement with its mark; where several sections speak, or the place was asked for, each is named."""
    cited = list(_cite(excerpts))
    named = len({source.title for _, source, _ in cited}) > 1 or any(one.kind == "place" for one in excerpts)
    deltas: list[str] = []
    for title, group in groupby(cited, key=lambda each: each[1].title):
        opening = f"**{title}**\n\n" if named else ""
        for _, _, statement in group:
            deltas.append(("\n\n" if deltas else "") + opening + statement.text)
            opening = ""
    return Draft(tuple(each[2] for each in cited), tuple(each[1] for each in cited), tuple(deltas))


def _cite(excerpts: Sequence[Excerpt]) -> Iterator[tuple[Excerpt, Source, Statement]]:
    number = 1
    for one in excerpts:
        source = to_source(number, one.passage, one.start, one.end)
        if source is not None:
            yield one, source, Statement(_show(one, number), (number,), "verbatim")
            number += 1


def _show(one: Excerpt, number: int) -> str:
    before, after = _find_frame(one)
    shown = show(before + one.text + after, prefix_of(one.passage.chunk.text, one.start))
    ends_in_block = one.kind in ("code", "table") or shown.endswith(("```", "~~~"))
    return _tidy(shown) + ("\n\n" if ends_in_block else " ") + f"[{number}]"


def _find_frame(one: Excerpt) -> tuple[str, str]:
    """What a part is shown in: of rows the two lines that head their table, of lines the fences of their listing."""
    text = one.passage.chunk.text
    units = (unit for block in split_blocks(text) for unit in block.units if unit.kind == one.kind)
    around = next((unit for unit in units if unit.start < one.start and one.end <= unit.end), None)
    if around is None:
        return "", ""
    lines = text[around.start : around.end].splitlines(keepends=True)
    return ("".join(lines[:2]), "") if one.kind == "table" else (lines[0], "\n" + lines[-1])


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
