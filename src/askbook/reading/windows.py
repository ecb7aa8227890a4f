"""A question and a passage as the model sees them: pairs of tokens, and windows where a passage is longer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

WINDOWS_MAX = 24
"""How much of one passage is read: with pairs of 512 tokens, its first 7,000 to 8,300."""

Place = tuple[int, int]
"""First character, and the end."""

Asked = list[int]
"""The tokens of a question, a statement or a piece of one."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A question or statement, and the passage it is asked of."""

    asked: Asked
    told: list[int]
    words: list[Place]
    """For each token of the passage, where its whole word is in the text."""


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
        """The index at which the passage begins."""
        return len(self.pair.asked) + 2

    @property
    def is_empty(self) -> bool:
        return not self.pair.asked or self.start == self.end

    @property
    def words(self) -> list[Place]:
        return self.pair.words[self.start : self.end]


def split_windows(pair: Pair, pair_tokens: int) -> list[Window]:
    """Windows overlap by a third, so that the next holds whole what one cuts; all are of one length."""
    room, count = pair_tokens - 3 - len(pair.asked), len(pair.told)
    if count <= room:
        return [Window(pair, 0, count)]
    starts = (*range(0, count - room, _step(room)), count - room)
    return [Window(pair, start, start + room) for start in starts[:WINDOWS_MAX]]


def count_read(pair_tokens: int) -> int:
    """The most tokens of a passage that its windows can hold."""
    room = pair_tokens - 3
    return room + (WINDOWS_MAX - 1) * _step(room)


def _step(room: int) -> int:
    return room * 2 // 3


def split_pieces(ids: list[int], words: Sequence[int | None], limit: int) -> Iterator[Asked]:
    """Pieces of about equal length, cut between words; only longer words are cut."""
    start = 0
    while (left := len(ids) - start) > limit:
        end = full = start + math.ceil(left / math.ceil(left / limit))
        while end > start and words[end] == words[end - 1]:
            end -= 1
        end = end if end > start else full
        yield ids[start:end]
        start = end
    yield ids[start:]
