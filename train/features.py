"""Rows → tokens, and tokens → batches of neighbours in length."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
import torch
from encoder import CLS, SEP
from rows import PARTS, Row
from tokenizers import Encoding, Tokenizer
from torch import Tensor

PAIR_TOKENS, QUESTION_TOKENS, SPAN_TOKENS = 512, 80, 40
TOKENIZER = Path(__file__).parent.parent / "src" / "askbook" / "data" / "tokenizer.json"
NONE = -100
"""What PyTorch's losses leave out."""


@dataclass(frozen=True, slots=True)
class Texts:
    """Token ids of many texts, one after the other."""

    ids: np.ndarray
    at: np.ndarray

    def __getitem__(self, number: int) -> np.ndarray:
        return self.ids[self.at[number] : self.at[number + 1]]


@dataclass(frozen=True, slots=True)
class Pairs:
    """A text and a window of a passage each, as columns. Places of spans are those in the joined sequence."""

    texts: Texts
    passages: Texts
    text: np.ndarray
    passage: np.ndarray
    first: np.ndarray
    """The passage's token that the window begins with."""
    start: np.ndarray
    end: np.ndarray
    label: np.ndarray
    is_question: np.ndarray
    group: np.ndarray
    part: np.ndarray
    """The number of the recipe's part in PARTS."""

    def __len__(self) -> int:
        return len(self.text)

    def lengths(self) -> np.ndarray:
        of_text, of_passage = np.diff(self.texts.at)[self.text], np.diff(self.passages.at)[self.passage]
        return np.minimum(of_text + of_passage - self.first + 3, PAIR_TOKENS)

    def ids(self, number: int) -> tuple[np.ndarray, int]:
        """The joined sequence, and where the passage begins in it."""
        text = self.texts[self.text[number]]
        room = PAIR_TOKENS - 3 - len(text)
        first = self.first[number]
        passage = self.passages[self.passage[number]][first : first + room]
        return np.concatenate(([CLS], text, [SEP], passage, [SEP])), len(text) + 2

    def select(self, chosen: np.ndarray) -> Pairs:
        columns = {one.name: getattr(self, one.name)[chosen] for one in fields(self)[2:]}
        return replace(self, **columns)


def open_tokenizer() -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(TOKENIZER))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def to_pairs(rows: Sequence[Row], seed: int = 0) -> Pairs:
    """One window a row: where the answer stands, or anywhere if there is none. What cannot be placed is left out."""
    rng = random.Random(seed)
    texts, passages = {}, {}
    for row in rows:
        texts.setdefault(row.text, len(texts))
        passages.setdefault(row.passage, len(passages))
    asked, found = _encode(texts), _encode(passages)
    columns = []
    for row in rows:
        text, passage = texts[row.text], passages[row.passage]
        size, tokens = min(QUESTION_TOKENS, len(asked[text].ids)), found[passage]
        room = PAIR_TOKENS - 3 - size
        spare = len(tokens.ids) - room
        start, end = _find_tokens(tokens, row.span) if row.span else (NONE, NONE)
        first = 0
        if spare > 0:
            if start != NONE:
                first = rng.randint(max(0, min(end - room + 1, start)), min(start, spare))
            elif row.label:
                continue
            else:
                first = rng.randint(0, spare)
        if start != NONE and end < first + room:
            start, end = start - first + size + 2, end - first + size + 2
        else:
            start = end = 0 if row.task == "question" and row.label == 0 else NONE
        label = NONE if row.label is None else row.label
        columns.append(
            (text, passage, first, start, end, label, row.task == "question", row.group, PARTS.index(row.part))
        )
    arrays = [np.array(column, dtype=np.float32) for column in zip(*columns, strict=True)]
    arrays = [one.astype(np.int32) if (one == one.astype(np.int32)).all() else one for one in arrays]
    return Pairs(_table([one.ids[:QUESTION_TOKENS] for one in asked]), _table([one.ids for one in found]), *arrays)


def to_windows(texts: Sequence[tuple[str, str]]) -> tuple[Pairs, np.ndarray]:
    """Every window of each pair of texts, as they are read when nothing is known, and which pair it is of."""
    asked, found = {a: n for n, (a, _) in enumerate(texts)}, {b: n for n, (_, b) in enumerate(texts)}
    asked, found = dict(zip(asked, range(len(asked)), strict=True)), dict(zip(found, range(len(found)), strict=True))
    text_table = _table([one.ids[:QUESTION_TOKENS] for one in _encode(asked)])
    passage_table = _table([one.ids for one in _encode(found)])
    columns = []
    for number, (a, b) in enumerate(texts):
        room, first = PAIR_TOKENS - 3 - len(text_table[asked[a]]), 0
        while True:
            columns.append((asked[a], found[b], first, number))
            if first + room >= len(passage_table[found[b]]):
                break
            first += room * 2 // 3
    text, passage, first, of = (np.array(column, dtype=np.int32) for column in zip(*columns, strict=True))
    none = np.full(len(text), NONE, dtype=np.int32)
    return Pairs(text_table, passage_table, text, passage, first, none, none, none, none, none, none), of


def _encode(texts: dict[str, int]) -> list[Encoding]:
    return open_tokenizer().encode_batch(list(texts), add_special_tokens=False)


def _table(sequences: Sequence[Sequence[int]]) -> Texts:
    ids = np.fromiter((token for one in sequences for token in one), dtype=np.uint16)
    return Texts(ids, np.cumsum([0, *map(len, sequences)]))


def _find_tokens(passage: Encoding, span: tuple[int, int]) -> tuple[int, int]:
    places = range(span[0], span[1])
    start = next((token for char in places if (token := passage.char_to_token(char)) is not None), NONE)
    end = next((token for char in reversed(places) if (token := passage.char_to_token(char)) is not None), NONE)
    return (start, end) if NONE < start <= end <= start + 120 else (NONE, NONE)


def save_pairs(pairs: Pairs, file: Path) -> None:
    columns = {one.name: getattr(pairs, one.name) for one in fields(pairs)[2:]}
    tables = {"texts": pairs.texts, "passages": pairs.passages}
    arrays = {f"{name}_{column}": getattr(table, column) for name, table in tables.items() for column in ("ids", "at")}
    np.savez_compressed(file, **arrays, **columns)


def load_pairs(file: Path) -> Pairs:
    with np.load(file) as stored:
        tables = [Texts(stored[f"{name}_ids"], stored[f"{name}_at"]) for name in ("texts", "passages")]
        return Pairs(*tables, *(stored[one.name] for one in fields(Pairs)[2:]))


# --- batches --------------------------------------------------------------------------------------


def make_batches(pairs: Pairs, tokens: int, seed: int | None, rows: int = 4096) -> list[list[int]]:
    """At most so many tokens each, padding included; rows of one group in one batch. No seed: in order of length."""
    lengths = pairs.lengths()
    # What has no group is a group of its own.
    alone = np.arange(len(pairs)) + 1 + max(0, pairs.group.max(initial=0))
    _, group = np.unique(np.where(pairs.group < 0, alone, pairs.group), return_inverse=True)
    longest = np.zeros(group.max() + 1)
    np.maximum.at(longest, group, lengths)
    if seed is not None:
        # Lengths are blurred, so that a batch is not the same each time.
        longest *= np.random.default_rng(seed).uniform(0.92, 1.08, len(longest))
    order = np.lexsort((np.arange(len(pairs)), group, longest[group]))
    batches: list[list[int]] = [[]]
    width, last = 0, -1
    for number in order.tolist():
        width = max(width, lengths[number])
        size = len(batches[-1]) + 1
        if batches[-1] and group[number] != last and (size * width > tokens or size > rows):
            batches.append([])
            width = lengths[number]
        batches[-1].append(number)
        last = group[number]
    if seed is not None:
        random.Random(seed).shuffle(batches)
    return batches


@dataclass(frozen=True, slots=True)
class Batch:
    pairs: Tensor
    """Their numbers."""
    tokens: Tensor
    """The place of each token among those of all pairs; padding has some place too."""
    ids: Tensor
    types: Tensor
    mask: Tensor
    start: Tensor
    end: Tensor
    label: Tensor
    is_question: Tensor
    group: Tensor


class Deck:
    """All pairs on the device, so that a batch is cut there and nothing waits for the CPU."""

    def __init__(self, pairs: Pairs, device: str) -> None:
        joined = [pairs.ids(number) for number in range(len(pairs))]
        sizes = np.array([len(ids) for ids, _ in joined])
        self.sizes = sizes
        self.at = np.concatenate([[0], np.cumsum(sizes)])

        def move(array: np.ndarray) -> Tensor:
            return torch.from_numpy(array).to(device)

        self._ids = move(np.concatenate([ids for ids, _ in joined]).astype(np.int16))
        self._begins, self._sizes = move(self.at[:-1].astype(np.int64)), move(sizes)
        self._passages = move(np.array([at for _, at in joined]))
        self._start, self._end, self._group = (
            move(column.astype(np.int64)) for column in (pairs.start, pairs.end, pairs.group)
        )
        self._label, self._is_question = move(pairs.label.astype(np.float32)), move(pairs.is_question == 1)
        self._device = device

    def deal(self, batches: Sequence[Sequence[int]]) -> Iterator[Batch]:
        # All numbers at once: a copy for each batch would wait until the device has done all that came before.
        numbers = torch.tensor([number for batch in batches for number in batch], device=self._device)
        yield from map(self._cut, batches, numbers.split([len(batch) for batch in batches]))

    def _cut(self, numbers: Sequence[int], pairs: Tensor) -> Batch:
        length = int(self.sizes[numbers].max())
        if len(numbers) > 1:
            # A multiple of sixteen: attention's fast kernels ask for it.
            length = -(-length // 16) * 16
        place = torch.arange(length, device=self._device)
        mask = place < self._sizes[pairs][:, None]
        tokens = (self._begins[pairs][:, None] + place).clamp(max=len(self._ids) - 1)
        return Batch(
            pairs,
            tokens,
            self._ids[tokens].long() * mask,
            ((place >= self._passages[pairs][:, None]) & mask).long(),
            mask,
            self._start[pairs],
            self._end[pairs],
            self._label[pairs],
            self._is_question[pairs],
            self._group[pairs],
        )
