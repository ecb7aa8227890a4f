"""What a good librarian would read out: of the passages that were found, the excerpts that answer."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain
from statistics import fmean

from askbook.answer.excerpts import Excerpt, join, leave_out, narrow, split_passage
from askbook.domain import Passage
from askbook.index.coverage import Rarities
from askbook.index.keywords import find_terms, split_terms
from askbook.reading.chances import to_chance, to_logit
from askbook.reading.reader import Reader
from askbook.reading.spans import Span

PASSAGES, READ_MOST, READ_LEAST, READ_CHARS = 10, 6, 3, 4500
"""Of so many passages so much is read: the time of an answer is spent here."""
WORDS, SCORE, PLACE_BEFORE = 2.5, 3.2, 0.33
"""Which are read: the question's words in one and above it, the score of its passage and its place weigh this much."""
ANSWERS, RELEVANCE, PLACE = 0.72, 0.23, 0.75
"""Which answer best: the chance that one answers, its relevance, the place of its passage (docs/decisions/0011)."""
EXCERPTS, BEHIND, TOGETHER_MAX = 3, 1.25, 300
"""How many are shown, how far the others may be behind the first, and how many words all may have."""
BESIDE_BEHIND = 2.0
"""How far what stands beside one that is shown, in its section, may be behind: it completes it."""
SIDE, SIDE_BEHIND = 0.25, 4.0
"""What holds so much of the question that is in none shown is its other side, and may be so far behind."""
MORE_BEHIND = 3.0
"""How far something new may be behind what was said already."""
FACT_CHANCE, FACT_WORDS = 0.9, 8
"""A span so sure and so short is a fact, and its paragraph is enough."""
SAME = 0.75
"""Two that share so much of their words say the same."""

_LINK_TARGET = re.compile(r"\]\([^()\n]*\)")


@dataclass(frozen=True, slots=True)
class Read:
    """An excerpt that was read."""

    excerpt: Excerpt
    score: float
    """What it is chosen by."""
    answers: float = 0.0
    """A logit: how likely it answers; even odds where there is no reader."""
    relevance: float = 0.0
    span: Span | None = None
    """Where in the chunk's text."""
    holds: Mapping[int, float] = field(default_factory=dict[int, float])
    """The question's words in it and in the headings above it, each with its share of the question."""


async def read_passages(
    reader: Reader | None, question: str, passages: Sequence[Passage], rarities: Rarities
) -> list[Read]:
    """The likeliest first. Without a reader those come first that hold most of the question's words."""
    promising = sorted(_weigh_excerpts(passages, rarities), key=lambda each: -each[1].score)[:READ_MOST]
    if reader is None:
        return [unread for _, unread in promising]
    lengths = accumulate(len(unread.excerpt.text) for _, unread in promising)
    count = sum(number < READ_LEAST or length <= READ_CHARS for number, length in enumerate(lengths))
    heads = [f"{unread.excerpt.section}\n{unread.excerpt.frame[0]}" for _, unread in promising[:count]]
    texts = [head + unread.excerpt.text for head, (_, unread) in zip(heads, promising, strict=False)]
    reads: list[Read] = []
    for (place, unread), head, reading in zip(promising, heads, await reader.read(question, texts), strict=False):
        answers = to_logit(reading.answers)
        score = ANSWERS * answers + RELEVANCE * reading.relevance - PLACE * math.log1p(place)
        by = unread.excerpt.start - len(head)
        spans = (Span(one.start + by, one.end + by, one.chance) for one in reading.spans if one.start >= len(head))
        relevance, span = reading.relevance, next(spans, None)
        reads.append(replace(unread, score=score, answers=answers, relevance=relevance, span=span))
    return sorted(reads, key=lambda read: -read.score)


def stands_alone(reads: Sequence[Read]) -> bool:
    """The best excerpt is relevant to what was asked, at better than even odds."""
    return bool(reads) and reads[0].relevance > 0


def keep_lesson(reads: Sequence[Read], doc_id: str) -> tuple[Read, ...]:
    """Who asks about one source is told of its lesson; of all where nothing of it was read."""
    return tuple(one for one in reads if one.excerpt.passage.chunk.parent_doc_id == doc_id) or tuple(reads)


def merge_reads(meanings: Sequence[Sequence[Read]]) -> list[Read]:
    """What a question may mean was read in the same excerpts: each counts by its mean, so that it suits them all."""
    found: dict[tuple[str, int], list[Read]] = {}
    for read in chain.from_iterable(meanings):
        found.setdefault((read.excerpt.passage.chunk.id, read.excerpt.start), []).append(read)
    merged = [
        replace(
            max(reads, key=lambda read: read.score),
            score=fmean(read.score for read in reads),
            answers=fmean(read.answers for read in reads),
            relevance=fmean(read.relevance for read in reads),
        )
        for reads in found.values()
    ]
    return sorted(merged, key=lambda read: -read.score)


def choose_excerpts(reads: Sequence[Read], said: str = "") -> tuple[Excerpt, ...]:
    """The best, and those that are nearly as good and say something else. What was `said` is not said again."""
    if not reads:
        return ()
    new = _leave_out(reads, said) if said else reads
    if not new or new[0].score < reads[0].score - MORE_BEHIND:
        # Who asks for more of something is not told something else.
        new = reads
    best, *others = new
    chosen = [best]
    for read in others:
        shown = [other.excerpt for other in chosen]
        is_near = read.score >= best.score - _find_leeway(read, chosen)
        is_short = len(chosen) < EXCERPTS and read.excerpt.words + sum(one.words for one in shown) <= TOGETHER_MAX
        if is_near and is_short and not any(_say_the_same(read.excerpt, one) for one in shown):
            chosen.append(read)
    if len(chosen) > 1 or said:
        return tuple(_join_neighbours([read.excerpt for read in chosen]))
    if best.span is None or best.span.chance < FACT_CHANCE:
        return (best.excerpt,)
    words = len(best.excerpt.passage.chunk.text[best.span.start : best.span.end].split())
    return (narrow(best.excerpt, best.span.start) if words <= FACT_WORDS else best.excerpt,)


def rank_passages(reads: Sequence[Read], passages: Sequence[Passage]) -> list[float]:
    """A chance for each of the first passages, to be ordered by: that of its best excerpt."""
    best: dict[str, float] = {}
    for one in reversed(reads):
        best[one.excerpt.passage.chunk.id] = one.score
    least = min(best.values(), default=0.0) - 1
    return [to_chance(best.get(one.chunk.id, least)) for one in passages[:PASSAGES]]


def _weigh_excerpts(passages: Sequence[Passage], rarities: Rarities) -> Iterator[tuple[int, Read]]:
    """The place of its passage, and how promising each is before it is read."""
    total = sum(rarities.values()) or 1.0
    seen: list[Excerpt] = []
    for place, passage in enumerate(passages[:PASSAGES]):
        for excerpt in split_passage(passage):
            # Chunks overlap: what stands in two of them is read once.
            if any(excerpt.overlaps(other) for other in seen):
                continue
            seen.append(excerpt)
            above = (*excerpt.passage.chunk.heading_path, *excerpt.headings)
            terms = find_terms(" ".join((*above, excerpt.text)), rarities)
            holds = {term: rarities[term] / total for term in terms}
            score = WORDS * sum(holds.values()) + SCORE * passage.score - PLACE_BEFORE * math.log1p(place)
            yield place, Read(excerpt, score, holds=holds)


def _find_leeway(one: Read, chosen: Sequence[Read]) -> float:
    """How far one may be behind the best: further where it completes what is shown."""
    held = {term for other in chosen for term in other.holds}
    if sum(share for term, share in one.holds.items() if term not in held) >= SIDE:
        return SIDE_BEHIND
    return BESIDE_BEHIND if any(one.excerpt.lies_beside(other.excerpt) for other in chosen) else BEHIND


def _say_the_same(one: Excerpt, other: Excerpt) -> bool:
    small, large = sorted((set(split_terms(each.text)) for each in (one, other)), key=len)
    return len(small - large) <= (1 - SAME) * len(small)


def _join_neighbours(chosen: Sequence[Excerpt]) -> list[Excerpt]:
    joined: list[Excerpt] = []
    for one in chosen:
        at, both = next(
            ((at, both) for at, other in enumerate(joined) if (both := join(other, one))), (len(joined), one)
        )
        joined[at : at + 1] = [both]
    return joined


def _leave_out(reads: Sequence[Read], said: str) -> list[Read]:
    told = _to_phrases(said)

    def is_known(text: str) -> bool:
        phrases = _to_phrases(text)
        return len(phrases & told) >= SAME * len(phrases)

    rests = ((one, leave_out(one.excerpt, is_known)) for one in reads)
    return [replace(one, excerpt=rest) for one, rest in rests if rest]


def _to_phrases(text: str) -> set[tuple[str, ...]]:
    """Every three words in a row. What was shown has lost where its links lead."""
    words = split_terms(_LINK_TARGET.sub("]", text))
    return set(zip(words, words[1:], words[2:], strict=False)) or {tuple(words)}
