"""Questions to books, each with the excerpts that askbook would read for it: which one answers?"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from askbook.reading.plain import read_out

CHOICES = Path(__file__).parent / "choices.jsonl.gz"
HELD_BOOKS = ("PX4/PX4-user_guide", "pola-rs/polars", "webpack/webpack.js.org")
"""Books that are validated on, and never trained on."""
UNREAD = 0.1
"""Nobody has read whether the excerpt answers; without the words of the answer it seldom does."""
PART = 0.4
"""It holds some of the words of the answer."""
ANSWERS, RELEVANT, PLACE = 0.72, 0.23, 0.75
"""As the product weighs them when it chooses (`answer/librarian.py`)."""
USUAL_SLOPE = 0.2
"""Of the curve from a logit to a chance, about; each file has its own."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    text: str
    place: int
    """Of its passage in the search."""
    label: float
    """1: it answers; 0: it does not; PART, UNREAD."""


@dataclass(frozen=True, slots=True)
class Choice:
    question: str
    absent: bool
    """It asks for what the book does not say."""
    excerpts: tuple[Excerpt, ...]


def read_choices(held: bool) -> Iterator[Choice]:
    with gzip.open(CHOICES, "rt", encoding="utf-8") as lines:
        texts = json.loads(next(lines))
        for choice in map(json.loads, lines):
            if (choice["source"] in HELD_BOOKS) == held:
                yield Choice(
                    choice["question"],
                    choice["absent"],
                    tuple(
                        Excerpt(speak(texts[text]), place, _label(share, bool(same and choice["absent"])))
                        for text, place, share, same in choice["excerpts"]
                    ),
                )


def _label(share: float, was_read: bool) -> float:
    """`share`: of the strings that a right answer must show."""
    if share == 1:
        return 1.0
    if share:
        return PART
    return 0.0 if was_read else UNREAD


@cache
def speak(text: str) -> str:
    """As the product reads it."""
    return read_out(text, most=10**6).text


def measure_choices(choices: Sequence[Choice], answerable: np.ndarray, relevance: np.ndarray) -> dict[str, float]:
    """Of questions that an excerpt answers, how often the first one does; how well absent facts are told apart.

    `answerable` and `relevance` are logits of all excerpts, in their order.
    """
    place = np.log1p([one.place for choice in choices for one in choice.excerpts])
    order = ANSWERS * USUAL_SLOPE * answerable + RELEVANT * relevance - PLACE * place
    ends = np.cumsum([len(choice.excerpts) for choice in choices])
    first, answered, absent = [], [], []
    for end, choice in zip(ends, choices, strict=True):
        members = slice(end - len(choice.excerpts), end)
        likeliest = np.sort(answerable[members])[::-1][:3]
        evidence = likeliest[0] + likeliest.mean()
        labels = [one.label for one in choice.excerpts]
        if 1 in labels:
            first.append(labels[int(order[members].argmax())] == 1)
            answered.append(evidence)
        elif choice.absent:
            absent.append(evidence)
    bar = np.quantile(answered, 0.05)
    return {
        "questions": len(first),
        "first answers": float(np.mean(first)),
        "absent": len(absent),
        "absent refused where .05 are refused by mistake": float(np.mean(np.array(absent) < bar)),
    }
