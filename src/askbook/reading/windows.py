"""A question and a passage as the model sees them: pairs of tokens, windows where a passage is longer, batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

WINDOWS_MAX = 24
"""What one passage may cost: some 4,000 tokens of it are read, and the rest is not."""
BATCH_TOKENS = 320
"""With its padding. Short pairs gain by sharing a batch; beyond this none does, and whoever leaves would hold up the others."""

Place = tuple[int, int]
"""First character, and the one after the last."""

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Pair:
    """A question or statement, and the passage it is asked of."""

    asked: list[int]
    told: list[int]
    words: list[Place]
    """Of each token of the passage, where its whole word stands in the text."""


@dataclass(frozen=True, slots=True)
class Window:
    """[CLS] asked [SEP] a stretch of the passage [SEP]."""

    pair: Pair
    start: int
    end: int

    def __len__(self) -> int:
        return len(self.pair.asked) + self.end - self.start + 3

    @property
    def first(self) -> int:
        """Where the passage begins."""
        return len(self.pair.asked) + 2

    @property
    def is_empty(self) -> bool:
        return not self.pair.asked or self.start == self.end

    @property
    def words(self) -> list[Place]:
        return self.pair.words[self.start : self.end]


def split_windows(pair: Pair, pair_tokens: int) -> list[Window]:
    """Each goes on two thirds further, so that what one cuts the next holds whole; the last is as long as the others."""
    room, count = pair_tokens - 3 - len(pair.asked), len(pair.told)
    if count <= room:
        return [Window(pair, 0, count)]
    starts = (*range(0, count - room, room * 2 // 3), count - room)
    return [Window(pair, start, start + room) for start in starts[:WINDOWS_MAX]]


def split_batches(windows: Iterable[tuple[Item, Window]]) -> Iterator[list[tuple[Item, Window]]]:
    """Neighbours in length share a batch: little of it is padding."""
    batch: list[tuple[Item, Window]] = []
    for item, window in sorted(windows, key=lambda one: len(one[1])):
        if batch and (len(batch) + 1) * len(window) > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append((item, window))
    if batch:
        yield batch
