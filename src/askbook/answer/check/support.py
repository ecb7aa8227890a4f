"""Whether passages say what a sentence says: found by its words first, then refuted by whatever differs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from askbook.answer.check.claims import Claim, Sentence, read_sentence
from askbook.answer.check.evidence import Evidence, align, share
from askbook.answer.check.reading import Reading, Said, Span, read_passage
from askbook.answer.check.refutation import find_refutations, find_unsaid
from askbook.domain import Chunk

UNRELATED = 0.35
SHORT = 3
"""A sentence of so few words with content must have all of them in its source."""
MISSING_NAMED = 4


@dataclass(frozen=True, slots=True)
class Bar:
    """How much of a sentence's content must be there, headings included."""

    passage: float
    """Anywhere in the passage, …"""
    leant_on: float
    """… in the few sentences that it leans on, …"""
    nearest: float
    """… and in the nearest of them."""


CITED = Bar(0.6, 0.5, 0.5)
UNCITED = Bar(0.75, 0.7, 0.6)
"""For a passage that was found, but that the model did not name."""


@dataclass(frozen=True, slots=True)
class Place:
    """`chunks[chunk].text[start:end]` bears the sentence out."""

    chunk: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Support:
    places: tuple[Place, ...]
    verbatim: bool = False
    why: str = ""
    """Why there are no places."""
    share: float = 0.0
    """How much of the sentence's content the chunks have."""
    contradicts: bool = False
    """They say nearly the same, and something else."""


def find_support(text: str, chunks: Sequence[Chunk], bar: Bar = CITED) -> Support:
    """Where these chunks, taken together, say what the sentence says."""
    readings = [read_passage(chunk.text, chunk.heading_path) for chunk in chunks]
    runs = [Place(at, *run) for at, reading in enumerate(readings) if (run := reading.find_run(text))]
    for run in runs:
        if _is_whole(run, readings[run.chunk]):
            return Support((run,), verbatim=True, share=1.0)
    ours = read_sentence(text)
    aligned = [align(ours, reading) for reading in readings]
    evidence = Evidence(tuple(readings), tuple(chain.from_iterable(aligned)))
    why = _refute(ours, evidence, bar)
    if not why and runs and all(_is_denied(run, readings[run.chunk]) for run in runs):
        why = "the source denies it in the words before"
    found = share(ours.claim, evidence.stems)
    if why:
        return Support((), why=why, share=found, contradicts=evidence.is_about(ours.claim))
    places = [Place(at, *_span_of(said, readings[at])) for at, said in enumerate(aligned) if said]
    return Support(tuple(runs[:1] or places), verbatim=bool(runs), share=found)


def says_something(text: str) -> bool:
    """More than one word that carries content, or a name, a number, code."""
    ours = read_sentence(text)
    return len(ours.claim.stems) > 1 or bool(ours.claim.counted or ours.literals.all)


def may_open(text: str, chunks: Sequence[Chunk], said_of_anything: frozenset[str]) -> bool:
    """Whether a heading or the opening of a list speaks of what these chunks are about. It claims nothing by itself."""
    readings = tuple(read_passage(chunk.text, chunk.heading_path) for chunk in chunks)
    ours = read_sentence(text)
    everything = Evidence(readings, tuple(said for reading in readings for said in reading.said))
    if next(find_unsaid(ours, everything), None) is not None:
        return False
    own = {stem for stem in ours.claim.stems if ours.claim.written[stem].lower() not in said_of_anything}
    return not own or any(len(own & reading.stems) >= CITED.leant_on * len(own) for reading in readings)


def _refute(ours: Sentence, evidence: Evidence, bar: Bar) -> str:
    """What the source does not bear out, in words; empty where nothing was found."""
    claim, found = ours.claim, share(ours.claim, evidence.stems)
    if not evidence.said or found < UNRELATED:
        return "the source does not speak of this"
    why = next(find_refutations(ours, evidence), None)
    if why is not None:
        return why
    nearest = evidence.headings | evidence.nearest.claim.stems | evidence.nearest.context
    enough = found >= bar.passage and share(claim, nearest) >= bar.nearest
    if enough and share(claim, evidence.leant_on) >= (1.0 if len(claim.stems) <= SHORT else bar.leant_on):
        return ""
    missing = _name_missing(claim, evidence.leant_on)
    return f"the source does not speak of {missing}" if missing else "the source has these words, but says this nowhere"


def _name_missing(claim: Claim, stems: frozenset[str]) -> str:
    return ", ".join(sorted(f"“{claim.written[stem]}”" for stem in claim.stems - stems)[:MISSING_NAMED])


def _span_of(said: Sequence[Said], reading: Reading) -> Span:
    """All of them where they stand side by side, else the nearest alone."""
    places = sorted(reading.said.index(one) for one in said)
    if places[-1] - places[0] == len(places) - 1:
        return min(one.start for one in said), max(one.end for one in said)
    return said[0].start, said[0].end


# --- the very words -------------------------------------------------------------------------------

_CUTS_OFF = re.compile(r"[;:,(]|\b(?:but|and|while|whereas|because|so)\b", re.IGNORECASE)
_DENIES = re.compile(r"\b(?:not|never|no|cannot|without|hardly|false|wrong|myth|doubt)\b|n't\b", re.IGNORECASE)


def _is_whole(run: Place, reading: Reading) -> bool:
    """From the beginning of a sentence to the end of one: nothing before or behind it can turn its meaning."""
    opens = any(one.start <= run.start < one.end and not _has_words(one.before(run.start)) for one in reading.said)
    closes = any(one.start < run.end <= one.end and not _has_words(one.behind(run.end)) for one in reading.said)
    return opens and closes


def _has_words(text: str) -> bool:
    return re.search(r"\w", text) is not None


def _is_denied(run: Place, reading: Reading) -> bool:
    """ "It is not true that …": what was left out before the run turns it."""
    before = next((one.before(run.start) for one in reading.said if one.start <= run.start < one.end), "")
    return _DENIES.search(_CUTS_OFF.split(before)[-1]) is not None
