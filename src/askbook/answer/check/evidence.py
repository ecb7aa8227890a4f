"""What passages offer to a sentence: the few sentences of theirs that are nearest to it, and all that stands around."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from askbook.answer.check.claims import Claim, Sentence, read_claim
from askbook.answer.check.reading import Reading, Said
from askbook.index.keywords import STOPWORDS

LEANS_ON = 3
_IN_NAMES = frozenset(("of", "and", "for"))
CLOSE = 0.75
"""Two sentences that share so much of their content say the same, or one denies the other."""


@dataclass(frozen=True, slots=True)
class Evidence:
    readings: tuple[Reading, ...]
    said: tuple[Said, ...]
    """What the sentence leans on, the nearest first."""

    @property
    def nearest(self) -> Said:
        return self.said[0]

    @property
    def everything(self) -> list[Said]:
        return [said for reading in self.readings for said in reading.said]

    @property
    def stems(self) -> frozenset[str]:
        return frozenset().union(*(reading.stems for reading in self.readings))

    @property
    def headings(self) -> frozenset[str]:
        return frozenset().union(*(reading.headings.stems for reading in self.readings))

    @property
    def leant_on(self) -> frozenset[str]:
        return self.headings.union(*(one.claim.stems for one in self.said))

    def is_about(self, claim: Claim) -> bool:
        """The nearest sentence has most of its words."""
        return bool(self.said) and share(claim, self.nearest.claim.stems) >= CLOSE

    def has_code(self, code: str) -> bool:
        wanted = " ".join(code.replace("‹", "<").split()).removesuffix("()").strip("`")
        is_word = wanted.isalpha() and (wanted.islower() or wanted.istitle())
        left = r"(?<!\w)" if wanted[:1].isalnum() else ""
        found = re.compile(rf"{left}{re.escape(wanted)}(?!\w)", re.IGNORECASE if is_word else 0)
        return any(found.search(one.literal) or found.search(one.plain) for one in self.readings)

    def has_name(self, name: str) -> bool:
        return any(_has_name(reading, name) for reading in self.readings)

    def quotes(self, words: str) -> bool:
        return any(one.find_run(words) or words.lower() in one.plain.lower() for one in self.readings)


def _has_name(reading: Reading, name: str) -> bool:
    """Itself, another form of it ("American" for "America"), or the words that an acronym stands for."""
    stems = read_claim(name.lower()).stems
    if set(re.findall(r"[^\W_]+", name.lower())) <= set(reading.words) or (stems and stems <= reading.stems):
        return True
    if len(name) > 2 and name.isupper():
        return _stands_for(name.lower(), reading.words)
    return len(name) > 6 and any(word.startswith(name[:-2].lower()) for word in reading.words)


def _stands_for(acronym: str, words: Sequence[str]) -> bool:
    initials = "".join(word[0] for word in words)
    places = (found.start() for found in re.finditer(f"(?={re.escape(acronym)})", initials))
    return any(STOPWORDS.isdisjoint(set(words[at : at + len(acronym)]) - _IN_NAMES) for at in places)


def share(claim: Claim, stems: frozenset[str]) -> float:
    """How much of a claim's content these stems have."""
    return len(claim.stems & stems) / len(claim.stems) if claim.stems else 0.0


def nearness(one: Claim, other: Claim) -> float:
    return len(one.stems & other.stems) / max(len(one.stems | other.stems), 1)


def are_close(one: Claim, other: Claim) -> bool:
    return len(one.stems & other.stems) > 1 and nearness(one, other) >= CLOSE


# --- alignment ------------------------------------------------------------------------------------


def align(ours: Sentence, reading: Reading) -> list[Said]:
    """The sentence that has most of the claim, and up to two that have what it lacks, the next before the distant."""
    # Code names what prose explains: it bears out a sentence that names code itself.
    eligible = [at for at, said in enumerate(reading.said) if ours.literals.code or said.kind != "code"]
    rated = [(_overlap(ours.claim, reading.said[at], reading.headings), at) for at in eligible]
    (shared, *_), best = max(rated, default=((0.0,), 0))
    if not shared:
        return []
    chosen = [best]
    missing = ours.claim.stems - reading.said[best].claim.stems - reading.headings.stems
    while missing and len(chosen) < LEANS_ON:
        gains = _rate_gains(missing, reading.said, [at for at in eligible if at not in chosen], chosen)
        gain, is_next, at = max(gains, default=(0, False, 0))
        if gain < (1 if is_next else 2):
            break
        chosen.append(-at)
        missing -= reading.said[-at].claim.stems
    return [reading.said[at] for at in chosen]


def _overlap(claim: Claim, said: Said, headings: Claim) -> tuple[float, ...]:
    shared = claim.stems & said.claim.stems
    known = len(shared & headings.stems)
    # A question claims nothing by itself.
    weight = 0.5 if said.kind == "code" or said.text.rstrip().endswith("?") else 1.0
    numbers = {one.number.value for one in claim.counted} & {one.number.value for one in said.claim.counted}
    return weight * (len(shared) - known / 2), len(numbers), len(shared) / max(len(said.claim.stems), 1)


def _rate_gains(
    missing: frozenset[str], said: Sequence[Said], left: Sequence[int], chosen: Sequence[int]
) -> Iterator[tuple[int, bool, int]]:
    for at in left:
        yield len(missing & said[at].claim.stems), any(abs(at - other) == 1 for other in chosen), -at
