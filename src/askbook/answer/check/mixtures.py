"""What a source says of one thing, said of another that stands beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from askbook.answer.check.claims import Claim, Sentence, read_claim, read_literals, split_contrasts, to_plain
from askbook.answer.check.evidence import Evidence, share

CELL = 0.5
"""So much of a cell's content must be there."""

_ANSWERS = ("yes", "no", "true", "false", "✓", "✔", "✗", "✘", "✅", "❌")
_DEFINES = re.compile(r"(?:(?:an?|the)\s+)?[*_]", re.IGNORECASE)


def find_mixtures(ours: Sentence, evidence: Evidence) -> Iterator[str]:
    if evidence.nearest.kind == "row" and len(split_contrasts(ours.text)) == 1:
        yield from _find_other_rows(ours, evidence)
    # A sentence of several parts may speak of several things.
    if evidence.nearest.kind == "prose" and len(ours.pieces) == 1:
        yield from _find_other_things(ours.claim, evidence)
        yield from _find_other_sides(ours, evidence)
        yield from _find_other_names(ours, evidence)
        yield from _find_other_subjects(ours.claim, evidence)


def _find_other_things(claim: Claim, evidence: Evidence) -> Iterator[str]:
    """Of the "local costmap" in the nearest sentence, where there is a "global costmap" in another."""
    nearest = evidence.nearest.claim
    known = frozenset().union(*(one.claim.pairs for one in evidence.everything))
    for kind, thing in claim.pairs & known:
        kinds = {one for one, other in nearest.pairs if other == thing}
        if kinds and kind not in nearest.stems and kinds.isdisjoint(claim.stems):
            yield f"the source says this of another “{claim.written[thing]}”"


def _find_other_sides(ours: Sentence, evidence: Evidence) -> Iterator[str]:
    """ "A does this, while B does that": the name of one side with the words or numbers of the other."""
    sides = [side for side in split_contrasts(evidence.nearest.text) if not read_claim(side).points_back]
    named = [_places(_mentions(side, one) for side in sides) for one in ours.literals.all]
    words = [_places(stem in read_claim(side).stems for side in sides) for stem in ours.claim.stems]
    values = [{one.number.value for one in read_claim(side).counted} for side in sides]
    numbers = [_places(one.number.value in value for value in values) for one in ours.claim.counted]
    if any(one and other and not one & other for one in named for other in (*named, *words, *numbers)):
        yield "the source says this of something else"


def _places(found: Iterator[bool]) -> set[int]:
    return {at for at, one in enumerate(found) if one}


def _find_other_names(ours: Sentence, evidence: Evidence) -> Iterator[str]:
    """The nearest sentence names something, points back to nothing, and lacks what our sentence names."""
    nearest = evidence.nearest
    strange = [one for one in read_literals(nearest.text).all if not _mentions(ours.text, one)]
    lacks = any(not _mentions(nearest.text, one) for one in ours.literals.all)
    if strange and lacks and not nearest.claim.points_back:
        yield f"the source says this of {strange[0]}"


def _find_other_subjects(claim: Claim, evidence: Evidence) -> Iterator[str]:
    """What the claim begins with is not in the nearest sentence, nor before it; or that one defines something else."""
    nearest, subject = evidence.nearest, claim.subject
    if not subject or subject in nearest.claim.stems or subject not in evidence.stems:
        return
    before = (one.claim.stems for one in evidence.everything if one.start < nearest.start)
    named = subject in evidence.headings | nearest.context or any(subject in stems for stems in before)
    defines = _DEFINES.match(nearest.text) is not None and nearest.claim.subject not in claim.stems
    if defines or not named:
        yield f"the source does not say this of “{claim.written[subject]}”"


# --- tables ---------------------------------------------------------------------------------------


def _find_other_rows(ours: Sentence, evidence: Evidence) -> Iterator[str]:
    """What one row says, said of what another row is about."""
    rows = [one.text for one in evidence.everything if one.kind == "row"]
    for one in ours.literals.all:
        if not _mentions(evidence.nearest.text, one) and any(_mentions(row, one) for row in rows):
            yield f"the source does not say this of {one}"


def find_strange_cells(ours: Sentence, evidence: Evidence) -> Iterator[str]:
    """In a table every cell is a claim; a "yes" is one about the row that it stands in."""
    cells = _split_cells(ours.text)
    for cell in cells:
        if read_claim(cell).stems and share(read_claim(cell), evidence.leant_on) < CELL:
            yield f"the source does not have “{cell}” there"
    answers = [cell for cell in cells if cell in _ANSWERS]
    rows = [_split_cells(one.text) for one in evidence.everything if one.kind == "row"]
    if answers and not any(_are_same_row(cells, row) for row in rows):
        yield f"the source does not say “{answers[0]}” there"


def _split_cells(text: str) -> list[str]:
    row = re.fullmatch(r"\s*\|(.*)\|\s*", text, re.DOTALL)
    return [to_plain(cell).lower() for cell in row[1].split("|")] if row else []


def _are_same_row(ours: Sequence[str], theirs: Sequence[str]) -> bool:
    return len(ours) == len(theirs) and all(_are_same_cell(*pair) for pair in zip(ours, theirs, strict=True))


def _are_same_cell(ours: str, theirs: str) -> bool:
    if ours in _ANSWERS:
        return theirs.partition(",")[0] == ours
    return not ours or ours == theirs or share(read_claim(ours), read_claim(theirs).stems) >= CELL


def _mentions(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None
