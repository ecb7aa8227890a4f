"""How far a reply can be trusted: the chance that the book answers at all, and the chance that the text shown does.

Logistic curves over what the reader and the search found, fitted on books that the reader was not trained on
(docs/decisions/0006). The seeds' scale (insufficient below .60, low, medium from .75, high from .85) is laid over them,
so that a level says how often the text shown answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from askbook.answer.calibration import GATE, SPREAD, Calibration
from askbook.answer.librarian import Read
from askbook.domain import Passage
from askbook.index.ranking import average_score
from askbook.reading.chances import to_chance, to_logit

GATE_CHANCE = 0.5
MEDIUM, HIGH = 0.70, 0.90
"""A text of medium confidence answers seven times in ten, one of high confidence nine times."""
STEPS = ((0.0, GATE), (MEDIUM, 0.75), (HIGH, 0.85), (1.0, 1.0))
"""The chance that the text shown answers, and the confidence that this is called."""

# A constant; then the weights of what is named in each curve.
ON_TOPIC = (2.5, 0.77, 1.33, 0.07)
ANSWERED = (2.15, 0.45, 0.5)
SHOWN = (0.45, 0.43, 0.41, 0.14)
LEAD_MOST = 4.0
THREAD = 3.0
"""What a thread on the book's subject adds: its questions seldom leave it, and name it seldom (docs/decisions/0007)."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of a question and the text that would be shown. Logits, but for `found` and `span`."""

    found: float
    """The search's chance that the book speaks of it."""
    answers: float
    """That the text shown answers."""
    span: float
    """The chance of the place in it that the reader points at."""
    most: float
    """That the excerpt answers which is the likeliest to, …"""
    three: float
    """… and the mean of the three likeliest: a book that speaks of something seldom does so once."""
    relevance: float
    lead: float
    """How far the text shown is ahead of the next."""
    follows: bool = False
    """It is asked in a thread."""

    @property
    def chance_on_topic(self) -> float:
        constant, *weights = ON_TOPIC
        prior = constant + THREAD * self.follows
        return _curve((prior, *weights), to_logit(self.found), self.three, self.relevance)

    @property
    def chance_answered(self) -> float:
        return _curve(ANSWERED, self.most, self.three)

    @property
    def chance_in_book(self) -> float:
        """Both must hold: it speaks of this, and says what is asked."""
        return min(self.chance_on_topic, self.chance_answered)

    @property
    def chance_shown(self) -> float:
        return _curve(SHOWN, self.answers, self.span, self.lead)

    @property
    def confidence(self) -> float:
        """On the seeds' scale; below the gate where the book does not seem to answer."""
        if self.chance_in_book < GATE_CHANCE:
            return GATE * self.chance_in_book / GATE_CHANCE
        chance = self.chance_shown
        (low, least), (high, most) = next(step for step in pairwise(STEPS) if chance <= step[1][0])
        return least + (most - least) * (chance - low) / (high - low)


def gather_evidence(reads: Sequence[Read], found: float, follows: bool = False) -> Evidence:
    best = reads[0]
    likeliest = sorted((one.answers for one in reads), reverse=True)[:3]
    return Evidence(
        found=found,
        answers=best.answers,
        span=best.span.chance if best.span else 0.0,
        most=likeliest[0],
        three=sum(likeliest) / len(likeliest),
        relevance=max(one.relevance for one in reads),
        lead=min(best.score - reads[1].score, LEAD_MOST) if len(reads) > 1 else LEAD_MOST,
        follows=follows,
    )


def rate_passages(
    passages: Sequence[Passage], evidence: Evidence, calibration: Calibration, always: bool = False
) -> list[Passage]:
    """The mean relevance of the five best is the confidence; a better score is a higher relevance."""
    if calibration.origin == "raw":
        return list(passages)
    confidence = max(evidence.confidence, GATE) if always else evidence.confidence
    mean = average_score(passages)
    spread = SPREAD * confidence * (1 - confidence)
    return [replace(one, relevance=min(max(confidence + spread * (one.score - mean), 0.0), 1.0)) for one in passages]


def _curve(weights: Sequence[float], *values: float) -> float:
    return to_chance(sum(weight * value for weight, value in zip(weights, (1.0, *values), strict=True)))
