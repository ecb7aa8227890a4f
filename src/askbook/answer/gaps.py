"""Gaps: questions that a book left open, grouped by meaning, each group with its nearest section."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from askbook.domain import Gap, OpenQuestion
from askbook.errors import EmbedderUnavailable
from askbook.index.embedders.base import Embedder
from askbook.index.keywords import split_terms

logger = logging.getLogger("askbook.gaps")

SAME_MEANING = 0.6
"""The least mean cosine between a wording and its group."""
SAME_WORDS = 0.5
"""Without an embedder: the least share of words in common."""
VARIANTS = 5
COMMENTS = 3

Wording = Sequence[OpenQuestion]
"""Questions with the same words, latest first."""
Likeness = npt.NDArray[np.float32]
"""Of every two wordings; 1 or more puts them in one group."""


async def find_gaps(open_questions: Sequence[OpenQuestion], embedder: Embedder | None) -> list[Gap]:
    """The most asked first, then the latest. No group spans two books."""
    gaps: list[Gap] = []
    for book_id in sorted({question.book_id for question in open_questions}):
        by_words: dict[str, list[OpenQuestion]] = {}
        for asked in sorted(open_questions, key=lambda question: question.asked_at, reverse=True):
            if asked.book_id == book_id:
                by_words.setdefault(" ".join(asked.text.casefold().split()).rstrip("?!. "), []).append(asked)
        # The most asked first, so that groups form around them.
        wordings = sorted(by_words.values(), key=lambda wording: (-len(wording), wording[0].text))
        likeness = await _compare([wording[0].text for wording in wordings], embedder)
        groups = await asyncio.to_thread(_group, likeness)
        gaps += [_to_gap(wordings, group, likeness) for group in groups]
    return sorted(gaps, key=lambda gap: (-gap.count, -gap.last_asked.timestamp(), gap.question))


# --- what belongs together ------------------------------------------------------------------------


async def _compare(texts: Sequence[str], embedder: Embedder | None) -> Likeness:
    if embedder is not None:
        try:
            vectors = np.stack(await embedder.embed_passages(texts))
            return await asyncio.to_thread(lambda: vectors @ vectors.T / SAME_MEANING)
        except EmbedderUnavailable as error:
            logger.warning("grouped by words: %s", error.message)
    return await asyncio.to_thread(_compare_words, texts)


def _compare_words(texts: Sequence[str]) -> Likeness:
    """The share of words in common."""
    words = [set(split_terms(text)) or {text} for text in texts]
    places = {word: place for place, word in enumerate(sorted(set().union(*words)))}
    holds = np.zeros((len(texts), len(places)), dtype=np.float32)
    for row, of_text in enumerate(words):
        holds[row, [places[word] for word in of_text]] = 1
    sizes = holds.sum(axis=1)
    return 2 * (holds @ holds.T) / (sizes[:, None] + sizes[None, :]) / SAME_WORDS


def _group(likeness: Likeness) -> list[list[int]]:
    """Greedy: each wording joins the group with the highest mean likeness, or begins one."""
    groups: list[list[int]] = []
    sums = np.zeros_like(likeness)
    for place in range(len(likeness)):
        means = sums[: len(groups), place] / [len(group) for group in groups] if groups else np.zeros(1)
        best = int(np.argmax(means))
        if means[best] < 1:
            best = len(groups)
            groups.append([])
        groups[best].append(place)
        sums[best] += likeness[place]
    return groups


# --- what is told of a group ----------------------------------------------------------------------


def _to_gap(wordings: Sequence[Wording], group: Sequence[int], likeness: Likeness) -> Gap:
    middle = max(group, key=lambda place: (len(wordings[place]), float(likeness[place, list(group)].mean())))
    asked = sorted(
        (question for place in group for question in wordings[place]),
        key=lambda question: question.asked_at,
        reverse=True,
    )
    own_words = dict.fromkeys(question.own_words for question in asked if question.own_words != question.text)
    comments = dict.fromkeys(question.comment for question in asked if question.comment)
    # The section that was nearest most often; the latest of several.
    nearest = Counter(question.nearest for question in asked if question.nearest is not None).most_common(1)
    return Gap(
        book_id=asked[0].book_id,
        question=wordings[middle][0].text,
        count=len(asked),
        refused=sum(question.refused is not None for question in asked),
        unhelpful=sum(question.unhelpful for question in asked),
        last_asked=asked[0].asked_at,
        variants=tuple(wordings[place][0].text for place in group if place != middle)[:VARIANTS],
        own_words=tuple(own_words)[:VARIANTS],
        comments=tuple(comments)[:COMMENTS],
        section=nearest[0][0] if nearest else None,
    )
