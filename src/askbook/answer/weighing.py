"""What each unit of the passages is worth as an answer: its words, its meaning, where it stands, and its form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

import numpy as np

from askbook.answer.kinds import Asked, find_content, rate_fit
from askbook.answer.units import Block, Unit, lies_close, split_blocks
from askbook.domain import Passage
from askbook.index.coverage import Rarities
from askbook.index.embedders.base import Embedder
from askbook.index.keywords import find_terms, split_terms, term_id

# A unit's words and its meaning; what its heading, the headings above and the paragraph around it lend of their words.
WORDS, MEANING = 0.5, 0.5
HEADING, HEADINGS, AROUND = 0.7, 0.5, 0.25
# The passage, and the best other passage of its page.
PASSAGE, PAGE = 0.4, 0.1
# A choice that the question offers; a heading that names the task; what points elsewhere or asks; what is no sentence.
OPTION, TASK, ASIDE, FRAGMENT = 0.15, 0.2, 0.25, 0.08

READ_CHARS, READ_CHARS_EACH = 900, 160
"""How much is embedded for one question: the time of an answer is spent here."""
LEAD_WORDS = 40


@dataclass(frozen=True, slots=True)
class Reading:
    """A passage cut into blocks, and what it is worth before a word of it is read."""

    passage: Passage
    blocks: tuple[Block, ...]
    prior: float

    @property
    def text(self) -> str:
        return self.passage.chunk.text


@dataclass(frozen=True, slots=True)
class Candidate:
    """A unit, where it stands, and what it is worth as an answer."""

    reading: Reading
    block_at: int
    unit_at: int
    text: str
    """As it is read: the unit's own words, with those that introduce a listing or head a table."""
    held: float
    """The share of the question's words that it holds itself."""
    strength: float
    """What its words, with those of its section's heading, and its meaning are worth, wherever it stands."""
    fit: float
    """What its form is worth."""
    score: float

    @property
    def block(self) -> Block:
        return self.reading.blocks[self.block_at]

    @property
    def unit(self) -> Unit:
        return self.block.units[self.unit_at]


def read_passages(passages: Sequence[Passage]) -> list[Reading]:
    return [Reading(one, split_blocks(one.chunk.text), _rate_passage(one, passages)) for one in passages]


def _rate_passage(passage: Passage, passages: Sequence[Passage]) -> float:
    """A page of which other passages were found too is the likelier one."""
    source = passage.chunk.source_file
    beside = (one.score for one in passages if one is not passage and one.chunk.source_file == source)
    return PASSAGE * passage.score + PAGE * max(beside, default=0.0)


def weigh_words(asked: Asked, rarities: Rarities) -> Rarities:
    """The words that name what is asked about, each with its share of them all."""
    content = set(map(term_id, find_content(asked)))
    kept = {term: rarity for term, rarity in rarities.items() if term in content}
    return {term: rarity / sum(kept.values()) for term, rarity in kept.items()}


async def find_candidates(
    asked: Asked, readings: Sequence[Reading], weights: Rarities, embedder: Embedder | None
) -> list[Candidate]:
    """The best first; with an embedder, only those that there is time to embed."""
    candidates = sorted(_read_units(asked, readings, weights), key=lambda one: -one.score)
    return candidates if embedder is None else await _weigh_meaning(asked, candidates, embedder)


# --- by its words ---------------------------------------------------------------------------------


def _read_units(asked: Asked, readings: Sequence[Reading], weights: Rarities) -> Iterator[Candidate]:
    for reading in readings:
        text = reading.text
        path = find_terms(" ".join(reading.passage.chunk.heading_path), weights)
        for block_at, block in enumerate(reading.blocks):
            titles = find_terms(" ".join(block.headings), weights)
            nearest = find_terms(_find_heading(reading, block), weights)
            around = find_terms(text[block.start : block.end], weights)
            for unit_at, unit in enumerate(block.units):
                read, own = _read(reading, block_at, unit, weights)
                before = block.units[unit_at - 1] if unit_at and LEANS_BACK.match(read) else None
                meant = find_terms(text[before.start : before.end], weights) if before else set[int]()
                lent = ((own, 1.0), (nearest | meant, HEADING), (path | titles, HEADINGS), (around, AROUND))
                fit = _rate_manner(asked, read, unit, block, _find_heading(reading, block))
                fit += TASK * _share(nearest, weights) if _does(asked, unit, block) else 0.0
                score = WORDS * _add_up(lent, weights) + reading.prior + fit
                held, strength = _share(own, weights), WORDS * _add_up(lent[:2], weights)
                yield Candidate(reading, block_at, unit_at, read, held, strength, fit, score)


def _does(asked: Asked, unit: Unit, block: Block) -> bool:
    """A section is named after what its steps or its listing do."""
    return asked.kind in ("how_to", "code") and (unit.kind == "code" or block.kind == "steps")


def _find_heading(reading: Reading, block: Block) -> str:
    return block.headings[-1] if block.headings else reading.passage.chunk.section_title or ""


def _add_up(lent: Iterable[tuple[AbstractSet[int], float]], weights: Rarities) -> float:
    """Each word of the question once, for as much as the nearest place that holds it lends."""
    seen: set[int] = set()
    total = 0.0
    for terms, part in lent:
        total += part * _share(terms - seen, weights)
        seen |= terms
    return total


def _share(terms: AbstractSet[int], weights: Rarities) -> float:
    return sum(weights[term] for term in terms)


def _read(reading: Reading, block_at: int, unit: Unit, weights: Rarities) -> tuple[str, set[int]]:
    text = reading.text[unit.start : unit.end]
    match unit.kind:
        case "code":
            lead = find_lead(reading, block_at)
            text = f"{reading.text[lead[0] : lead[1]]}\n{text}" if lead else text
            # A long listing holds every word there is; what it opens with says what it is for.
            return text, find_terms(text[:READ_CHARS_EACH], weights)
        case "table":
            head, *rows = text.split("\n")
            heads = find_terms(head, weights)
            found = [(find_terms(row, weights) | heads, row) for row in rows[1:]]
            terms, row = max(found, key=lambda one: _share(one[0], weights), default=(heads, ""))
            return f"{head}\n{row}", terms
        case _:
            return text, find_terms(text, weights)


def find_lead(reading: Reading, block_at: int) -> tuple[int, int] | None:
    """What introduces a block: the paragraph directly before it where that is short, else its last sentence."""
    if not block_at or (before := reading.blocks[block_at - 1]).kind != "prose":
        return None
    text, last = reading.text, before.units[-1]
    if text[last.end : reading.blocks[block_at].start].strip("\n\t >"):
        return None
    short = len(text[before.start : before.end].split()) <= LEAD_WORDS
    whole = short and lies_close(text, before.units, before.start, before.end)
    return (before.start if whole else last.start), last.end


# --- by its form ----------------------------------------------------------------------------------

_POINTS_ELSEWHERE = re.compile(
    r"^\W*(?:to learn more|learn more|see\b|refer to\b|next:|visit\b|read more|go to the\b)"
    r"|^\W*for\b.{0,40}\b(?:information|instructions|details|descriptions?|examples?|list)\b.*\b(?:see|visit)\b"
    r"|^\W*to\b.*, see \[|^\W*\[[^\[\]]+\]\([^()]*\)\W*$",
    re.IGNORECASE | re.DOTALL,
)
_SETS_TASKS = re.compile(
    r"^\W*(?:by the end of|in this (?:section|chapter|lesson|module|course)|(?:after|upon) (?:reading|completing)"
    r"|you will (?:learn|be able)|(?:explain|describe|discuss|define|summarize|identify|compare|list|understand)\s)",
    re.IGNORECASE,
)
_TASK_HEADING = re.compile(
    r"\b(?:exercises?|quiz|review questions?|further reading|references|see also|next steps)\b", re.I
)
LEANS_BACK = re.compile(
    r"^\W*(?!this (?:book|module|chapter|section|lesson|page|course)\b)(?:it|its|this|these|those|they|them|their|he|she"
    r"|his|her|such|that|both|the (?:former|latter)|however|therefore|thus|hence|instead|otherwise|then|so|but|and|also"
    r"|if (?:so|not)|\w+ (?:it|them|this|these|those))\b",
    re.IGNORECASE,
)


def _rate_manner(asked: Asked, text: str, unit: Unit, block: Block, heading: str) -> float:
    rate = rate_fit(asked, text, unit.kind, block.kind)
    if _POINTS_ELSEWHERE.search(text) or _SETS_TASKS.match(text) or text.endswith("?") or _TASK_HEADING.search(heading):
        rate -= ASIDE
    if unit.kind == "sentence" and (len(text.split()) < 5 or (text.startswith("**") and text.endswith("**"))):
        rate -= FRAGMENT
    return rate + OPTION * _rate_options(asked, text)


def _rate_options(asked: Asked, text: str) -> float:
    """How much of one of the choices it holds."""
    held = split_terms(text) if asked.options else ()
    return max((len(option.intersection(held)) / len(option) for option in asked.options), default=0.0)


# --- by its meaning -------------------------------------------------------------------------------

_LINK_TARGET = re.compile(r"\]\([^()\s]*\)|\]\[[^\[\]]*\]|<[^<>]*>")


async def _weigh_meaning(asked: Asked, candidates: Sequence[Candidate], embedder: Embedder) -> list[Candidate]:
    read = list(_take_most(candidates))
    question = await embedder.embed_query(asked.text)
    vectors = await embedder.embed_passages([_shorten(one.text) for one in read])
    cosines = [max(float(np.dot(question, vector)), 0.0) for vector in vectors]
    scored = [_add(one, MEANING * cosine) for one, cosine in zip(read, cosines, strict=True)]
    return sorted(scored, key=lambda one: -one.score)


def _add(one: Candidate, meaning: float) -> Candidate:
    return replace(one, strength=one.strength + meaning, score=one.score + meaning)


def _take_most(candidates: Sequence[Candidate]) -> Iterator[Candidate]:
    """The most promising by their words, as many as there is time to embed; the same text once."""
    room = READ_CHARS
    seen: set[str] = set()
    for one in candidates:
        text = _shorten(one.text)
        room -= len(text) if text not in seen else 0
        if room < 0:
            return
        if text not in seen:
            seen.add(text)
            yield one


def _shorten(text: str) -> str:
    return " ".join(_LINK_TARGET.sub("]", text[: 2 * READ_CHARS_EACH]).split())[:READ_CHARS_EACH]
