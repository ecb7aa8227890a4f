"""From what a search found to how sure we are: a few weights, and what they were measured with.

Two logistic curves. `in_book` is the chance that the book answers the question at all; `right_place` the chance that,
if it does, the first passage is from the lesson that does. A calibration belongs to one embedder, one chunker and,
where `askbook calibrate` made it, one state of one book; elsewhere its numbers would mean nothing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib import resources
from typing import Literal

from pydantic import TypeAdapter

from askbook.domain import Passage, Signals
from askbook.reading.chances import to_chance
from askbook.store.ledger import Ledger

Origin = Literal["built-in", "book", "raw"]
Weights = tuple[float, ...]

GATE = 0.60
"""The seeds' limit: below it the book counts as not answering."""
ABOVE_GATE = 0.05
"""How far a clear place moves a question above the gate."""
SPREAD = 2.0
"""How far a passage's own score moves its relevance from the question's."""
SMALL_BOOK = 100
"""Chunks; smaller books were not measured."""
KEYWORDS = "keywords"
NO_COSINES = "ASKBOOK_CONFIDENCE is raw, but without an embedder there are no cosines: calibrated scores are shown"


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What a calibration was measured with; without a revision it is for any book."""

    embedder: str
    chunker: int
    revision: int | None = None


@dataclass(frozen=True, slots=True)
class Curves:
    in_book: Weights
    """Weights of a constant, the coverage, the book's size and, where there are vectors, the mean cosine."""
    right_place: Weights
    """Weights of a constant, the lead and the score."""


@dataclass(frozen=True, slots=True)
class Calibration:
    origin: Origin
    fingerprint: Fingerprint
    words: Curves
    """For a search that found no vectors."""
    meaning: Curves | None = None
    """None for an embedder whose cosines were never measured."""
    questions: int = 0
    """The number it was fitted on."""

    def choose_curves(self, signals: Signals) -> Curves:
        return self.words if self.meaning is None or signals.similarity is None else self.meaning

    def chance_in_book(self, signals: Signals) -> float:
        return to_chance(find_logit(self.choose_curves(signals).in_book, in_book_values(signals)))

    def chance_right_place(self, signals: Signals) -> float:
        return to_chance(find_logit(self.choose_curves(signals).right_place, right_place_values(signals)))

    def confidence(self, signals: Signals) -> float:
        """The chance that the first passage answers; never below the gate if the book answers at all."""
        in_book = self.chance_in_book(signals)
        both = in_book * self.chance_right_place(signals)
        return max(both, GATE + ABOVE_GATE * both) if in_book >= GATE else min(both, GATE - 0.01)

    def relevance(self, signals: Signals, passage: Passage) -> float:
        """The mean over the five best passages is the confidence; a better score is a higher relevance."""
        if self.origin == "raw" and signals.similarity is not None:
            return min(max(passage.similarity or 0.0, 0.0), 1.0)
        confidence = self.confidence(signals)
        moved = SPREAD * confidence * (1 - confidence) * (passage.score - signals.mean_score)
        return min(max(confidence + moved, 0.0), 1.0)

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2)

    @staticmethod
    def from_json(text: str) -> Calibration:
        return _ADAPTER.validate_json(text)


_ADAPTER = TypeAdapter(Calibration)


def in_book_values(signals: Signals) -> Weights:
    # The best of many chunks is good by chance: a large book must show more than a small one.
    return (1.0, signals.coverage, math.log(max(signals.chunks, SMALL_BOOK)), signals.similarity or 0.0)


def right_place_values(signals: Signals) -> Weights:
    return (1.0, signals.lead, signals.score)


def find_logit(weights: Sequence[float], values: Sequence[float]) -> float:
    """Values without a weight do not count."""
    return sum(weight * value for weight, value in zip(weights, values, strict=False))


# --- choosing -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Chosen:
    calibration: Calibration
    notice: str | None = None
    """Why it is not the expected one."""


class Calibrations:
    """Which calibration a book has now: its own while nothing changed, else the embedder's, else the one for words."""

    def __init__(self, ledger: Ledger, embedder: str | None, chunker: int, raw: bool = False) -> None:
        self._ledger = ledger
        self._raw = raw
        self._embeds = embedder is not None
        self.now = Fingerprint(embedder or KEYWORDS, chunker)

    async def choose(self, book_id: str) -> Chosen:
        built_in = load_built_in(self.now)
        if self._raw and self._embeds:
            return Chosen(replace(built_in, origin="raw"))
        saved = await self._ledger.load_calibrations(book_id)
        if saved:
            own = Calibration.from_json(saved.get(self.now.embedder) or list(saved.values())[-1])
            changed = name_change(own.fingerprint, replace(self.now, revision=await self._ledger.revision(book_id)))
            why = f"{changed} since `askbook calibrate`: its figures no longer hold; run it again"
        else:
            own = built_in
            changed = name_change(replace(own.fingerprint, embedder=self.now.embedder), self.now)
            why = f"{changed} since the calibration that ships was measured"
        notices = [*([NO_COSINES] if self._raw else []), *([why] if changed else [])]
        return Chosen(built_in if changed else own, "; ".join(notices) or None)


def name_change(then: Fingerprint, now: Fingerprint) -> str | None:
    if then.embedder != now.embedder:
        return f"the embedder changed from {then.embedder} to {now.embedder}"
    if then.chunker != now.chunker:
        return "the way that chunks are cut changed"
    return "the book changed" if then.revision != now.revision else None


@cache
def load_built_in(now: Fingerprint) -> Calibration:
    """The one measured with this embedder; for an unmeasured embedder the one for words."""
    folder = resources.files("askbook.answer").joinpath("calibrations")
    texts = (file.read_text(encoding="utf-8") for file in folder.iterdir() if file.name.endswith(".json"))
    built_in = {calibration.fingerprint.embedder: calibration for calibration in map(Calibration.from_json, texts)}
    return built_in.get(now.embedder, built_in[KEYWORDS])


def name_origin(calibration: Calibration) -> str:
    match calibration.origin:
        case "built-in":
            return f"the one that ships for {calibration.fingerprint.embedder}"
        case "book":
            return f"this book's own, of {calibration.questions} probes"
        case "raw":
            return "none: raw cosines decide"
