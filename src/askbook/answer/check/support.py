"""Whether passages say what a sentence says: literals by rule, everything else by reading."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from askbook.answer.check.literals import (
    find_denial,
    find_unsaid,
    fold_lookalikes,
    read_stems,
    strip_answer,
    to_plain,
)
from askbook.answer.check.passages import Read, read_passage
from askbook.answer.units import Span
from askbook.domain import Passage
from askbook.reading.reader import Reader

BAR = 0.5
"""From this chance on a sentence is shown. Chosen and measured in docs/decisions/0010."""
UNSURE, SURE = 0.2, 0.8
"""Between the two, the judge is asked, if there is one."""
OPENS = 0.35
"""For headings, openings and table heads, which say little; contradictions score far lower."""
WORDS = 0.7
"""Without a reader: the share of a sentence's content words that the passage must hold."""
TRIED = 3
"""How many uncited passages are read for a sentence."""
UNSAID = "the source does not say this"

Numbered = Mapping[int, Passage]


@dataclass(frozen=True, slots=True)
class Support:
    chance: float
    places: Mapping[int, Span] = field(default_factory=dict[int, Span])
    """By passage: where its text says it, or may."""
    why: str = UNSAID
    verbatim: bool = False

    @property
    def is_unsure(self) -> bool:
        return UNSURE <= self.chance < SURE


def find_verbatim(statement: str, cited: Sequence[int], numbered: Numbered) -> Support | None:
    """A whole sentence of the book, preferably of a cited passage."""
    for number in sorted(numbered, key=lambda number: number not in cited):
        if place := read_passage(numbered[number].chunk).find_verbatim(statement):
            return Support(1.0, {number: place}, verbatim=True)
    return None


async def find_support(statement: str, cited: Sequence[int], numbered: Numbered, reader: Reader | None) -> Support:
    """From the cited passages, alone or together, or else from an uncited one."""
    if not numbered:
        return Support(0.0, why="nothing was found in the book")
    reads = {number: read_passage(passage.chunk) for number, passage in numbered.items()}
    others = [number for number in reads if number not in cited]
    claim = fold_lookalikes(re.sub(r"\*\*|__", "", strip_answer(statement)).strip())
    tried = [await _weigh(claim, {number: reads[number]}, reader) for number in cited]
    if good := [support for support in tried if support.chance >= BAR]:
        places = {number: place for support in good for number, place in support.places.items()}
        return Support(max(support.chance for support in good), places)
    if len(cited) > 1:
        tried.append(await _weigh(claim, {number: reads[number] for number in cited}, reader))
    if not tried or tried[-1].chance < BAR:
        words = read_stems(to_plain(claim))
        near = sorted(others, key=lambda other: -len(words & read_stems(reads[other].literal)))
        tried += [await _weigh(claim, {number: reads[number]}, reader) for number in near[:TRIED]]
    best = max(tried, key=lambda support: support.chance)
    return replace(best, why=tried[0].why)


async def _weigh(claim: str, reads: Mapping[int, Read], reader: Reader | None) -> Support:
    """What these passages together say of it."""
    source = " ".join(read.literal for read in reads.values())
    sentences = [read.text[slice(*span)] for read in reads.values() for span in read.sentences]
    if why := find_unsaid(claim, source) or find_denial(claim, sentences):
        return Support(0.0, why=why)
    places = {number: read.find_nearest(claim) for number, read in reads.items()}
    if reader is None:
        words = read_stems(to_plain(claim))
        return Support(float(len(words & read_stems(source)) >= WORDS * max(len(words), 1)), places)
    whole = await reader.check(claim, [read.premise for read in reads.values()])
    near = await reader.check(claim, ["\n".join(read.narrow(claim) for read in reads.values())])
    return Support(max(whole, near), places)
