"""What a source does not bear out: numbers, names and code it does not have, and words that it turns the other way."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import chain

from askbook.answer.check.claims import (
    Claim,
    Comparison,
    Counted,
    Sentence,
    Signs,
    find_multiples,
    read_claim,
    to_plain,
)
from askbook.answer.check.evidence import Evidence, are_close, nearness
from askbook.answer.check.mixtures import find_mixtures, find_strange_cells
from askbook.answer.check.words import SCALES

_NEGATIVE = re.compile(
    r"(?!inform|input|install|display|discov|discount|import|impress|improv|under|unit)(?:un|in|im|ir|il|dis|non-?)(\w{4,})"
)
_LOOSE_SCALES = ("~more", "~before", "~better", "~most")


def find_refutations(ours: Sentence, evidence: Evidence) -> Iterator[str]:
    """In words, the plainest first."""
    return chain(
        find_unsaid(ours, evidence),
        _find_other_counts(ours, evidence),
        _find_opposites(ours, evidence),
        _find_replaced(ours, evidence),
        _find_denials(ours, evidence),
        _find_negatives(ours.claim, evidence),
        _find_swaps(ours.claim, evidence),
        _find_overstatements(ours.claim, evidence),
        find_mixtures(ours, evidence),
        find_strange_cells(ours, evidence),
    )


# --- numbers, names, code -------------------------------------------------------------------------


def find_unsaid(ours: Sentence, evidence: Evidence) -> Iterator[str]:
    yield from (f"the source does not say {one}" for one in _find_unsaid_numbers(ours.claim, evidence))
    code, names, quotations = ours.literals.code, ours.literals.names, ours.literals.quotations
    yield from (f"the source does not have `{one}`" for one in code if not evidence.has_code(one))
    yield from (f"the source does not name {one}" for one in names if not evidence.has_name(one))
    yield from (f"the source does not have the words “{one}”" for one in quotations if not evidence.quotes(one))


def _find_unsaid_numbers(claim: Claim, evidence: Evidence) -> Iterator[str]:
    firm = [one for one in claim.counted if not one.number.loose]
    times = Counter((one.number.value, one.number.unit) for one in firm)
    # A row of a table answers for its own numbers alone.
    said = [one.claim for one in evidence.said if one.kind != "row" or one is evidence.nearest]
    claims = [*said, *(one.headings for one in evidence.readings)]
    for ours in firm:
        found = sum(_is_number(ours, theirs, around) for around in claims for theirs in around.counted)
        if found < times[ours.number.value, ours.number.unit]:
            yield ours.number.written


def _find_other_counts(ours: Sentence, evidence: Evidence) -> Iterator[str]:
    """ "Two services" where the source has three services, and two of something else."""
    nearest = evidence.nearest.claim
    for one in ours.claim.counted if evidence.nearest.kind == "prose" else ():
        beside = [other for other in nearest.counted if _is_beside_the_same(one, other)]
        others = [other for other in beside if other.number.unit == one.number.unit and not is_value(one, other)]
        # Where it has the number as well, only what follows tells of what it is said.
        if any(is_value(one, other) and (other in beside or not other.after) for other in nearest.counted):
            continue
        if others:
            yield f"the source says {others[0].number.written}, not {one.number.written}"
    units = ours.claim.units - _units_of(nearest)
    if units and nearest.counted and evidence.is_about(ours.claim):
        yield f"the source does not say it in {min(units)}"
    multiples = set(chain.from_iterable(find_multiples(one.text) for one in evidence.said))
    for word in find_multiples(ours.text):
        if word not in multiples and not read_claim(word).stems <= evidence.leant_on:
            yield f"the source does not say “{word}”"


def _is_number(ours: Counted, theirs: Counted, around: Claim) -> bool:
    if not is_value(ours, theirs):
        return False
    unit, other = ours.number.unit, theirs.number.unit
    if not unit or unit == other:
        return True
    # In a range, or under the head of a column, the unit stands elsewhere; not where the same number has another.
    same = {one.number.unit for one in around.counted if is_value(ours, one)}
    return not other and same == {""} and unit in _units_of(around)


def is_value(ours: Counted, theirs: Counted) -> bool:
    return math.isclose(ours.number.value, theirs.number.value)


def _is_beside_the_same(ours: Counted, theirs: Counted) -> bool:
    return bool({ours.before, ours.after} & {theirs.before, theirs.after} - {""})


def _units_of(claim: Claim) -> frozenset[str]:
    return claim.units | {one.number.unit for one in claim.counted}


# --- which way it points --------------------------------------------------------------------------


def _find_opposites(ours: Sentence, evidence: Evidence) -> Iterator[str]:
    """A word that is denied on one side alone, or stands at the other end of its scale."""
    claim = ours.claim
    compared = {one.scale for one in claim.comparisons if _find_comparison(one, evidence)}
    denied_before = any(one.claim.denies_back for one in evidence.said)
    for stem in _find_turned(ours, evidence):
        if stem not in compared and not (denied_before and stem in claim.denied):
            yield f"the source says the opposite of “{claim.written[stem]}”"
    unmatched = claim.denied - evidence.leant_on
    if unmatched and not any(one.claim.denials for one in evidence.said):
        yield f"the source does not deny “{claim.written[min(unmatched)]}”"


def _find_turned(ours: Sentence, evidence: Evidence) -> Iterator[str]:
    """Each word against the parts of sentences that have it and are nearest to its own."""
    pieces = [piece for said in evidence.said for piece in said.pieces]
    for piece in ours.pieces:
        for stem in sorted(piece.stems):
            near = [(len(piece.stems & other.stems), other.signs[stem]) for other in pieces if stem in other.stems]
            most = max((shared for shared, _ in near), default=0)
            theirs = sum((signs for shared, signs in near if shared == most), Signs())
            if near and not piece.signs[stem].agree(theirs):
                yield stem


def _find_replaced(ours: Sentence, evidence: Evidence) -> Iterator[str]:
    """One word for its opposite, in a sentence that is otherwise the same."""
    if not are_close(ours.claim, evidence.nearest.claim):
        return
    compared = {one.scale for one in ours.claim.comparisons if _find_comparison(one, evidence)}
    theirs, words = (re.findall(r"\w+", to_plain(text).lower()) for text in (evidence.nearest.text, ours.text))
    for kind, start, end, ours_start, ours_end in SequenceMatcher(None, theirs, words, autojunk=False).get_opcodes():
        if kind == "replace" and end - start == ours_end - ours_start == 1:
            word, other = words[ours_start], theirs[start]
            if _are_opposites(word, other) and SCALES.get(word, ("",))[0] not in compared:
                yield f"the source says “{other}”, not “{word}”"


def _are_opposites(one: str, other: str) -> bool:
    if one in SCALES and other in SCALES:
        return SCALES[one][0] == SCALES[other][0] and SCALES[one][1] != SCALES[other][1]
    return _find_base(one) in read_claim(other).stems or _find_base(other) in read_claim(one).stems


def _find_denials(ours: Sentence, evidence: Evidence) -> Iterator[str]:
    """One "not" more or less, where hardly another word differs."""
    said = [one for one in evidence.said if one.kind == "prose"]
    theirs = [piece for one in said for piece in (one.claim, *one.pieces)]
    for piece in (ours.claim, *ours.pieces):
        most = max((nearness(piece, other) for other in theirs), default=0.0)
        near = [other for other in theirs if nearness(piece, other) == most and are_close(piece, other)]
        if near and all(_is_denial_apart(piece, other) for other in near):
            yield "the source says it with one “not” more or less"


def _is_denial_apart(one: Claim, other: Claim) -> bool:
    """One of them denies once more, and that something which the other speaks of."""
    more, less = (one, other) if one.denials > other.denials else (other, one)
    apart = (more.denials - less.denials) % 2 == 1 and not (more.is_loose or less.is_loose)
    return apart and (not more.denied or bool(more.denied & less.stems))


def _find_negatives(claim: Claim, evidence: Evidence) -> Iterator[str]:
    """ "Unreliable" where the source has only "reliable", or the other way round."""
    written = {stem: word for one in reversed(evidence.said) for stem, word in one.claim.written.items()}
    denied = claim.denied.union(*(one.claim.denied for one in evidence.said))
    for ours, theirs in ((claim.written, written), (written, claim.written)):
        for stem in ours.keys() - theirs.keys():
            base = _find_base(ours[stem])
            if base and base in theirs and base not in ours and not denied & {base, stem}:
                yield f"the source says the opposite of “{claim.written.get(stem) or claim.written[base]}”"


@lru_cache(maxsize=4096)
def _find_base(word: str) -> str:
    """The stem of "reliable" for "unreliable"; empty for a word that denies nothing."""
    found = _NEGATIVE.fullmatch(word.lower())
    return next(iter(read_claim(found[1]).stems), "") if found else ""


def _find_comparison(ours: Comparison, evidence: Evidence) -> Comparison | None:
    """The source's own on the same scale, of the same things."""
    theirs = (one for said in evidence.said for one in said.claim.comparisons if one.scale == ours.scale)
    return next((one for one in theirs if (ours.left | ours.right) & (one.left | one.right)), None)


def _find_swaps(claim: Claim, evidence: Evidence) -> Iterator[str]:
    for ours in claim.comparisons:
        word, theirs = claim.written[ours.scale], _find_comparison(ours, evidence)
        if theirs is None:
            if ours.scale not in _LOOSE_SCALES and ours.scale not in evidence.leant_on:
                yield f"the source does not say “{word}”"
            continue
        straight = len(ours.left & theirs.left) + len(ours.right & theirs.right)
        if len(ours.left & theirs.right) + len(ours.right & theirs.left) > straight:
            yield f"the source compares the other way round: “{word}”"


def _find_overstatements(claim: Claim, evidence: Evidence) -> Iterator[str]:
    is_close = are_close(claim, evidence.nearest.claim)
    said = evidence.said[:1] if is_close else evidence.said
    theirs = frozenset().union(*(one.claim.quantifiers for one in said))
    denies = not is_close and any(one.claim.denials for one in said)
    if "only" in claim.quantifiers and not theirs & {"only", "alone"} and not denies:
        yield "the source does not say “only”"
    if "all" in claim.quantifiers and "some" in theirs and not theirs & {"all", "each"}:
        yield "the source says it of some, not of all"
