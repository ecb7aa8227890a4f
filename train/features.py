"""Rows → tokens, and tokens → batches of neighbours in length."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
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


@dataclass(frozen=True, slots=True)
class Batch:
    pairs: Sequence[int]
    ids: Tensor
    types: Tensor
    mask: Tensor
    start: Tensor
    end: Tensor
    label: Tensor
    is_question: Tensor
    group: Tensor
    soft: Tensor | None = None

    def each(self, change: Callable[[Tensor], Tensor]) -> Batch:
        tensors = {n: change(v) for n in self.__slots__ if isinstance(v := getattr(self, n), Tensor)}
        return replace(self, **tensors)


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
    arrays = [np.array(column, dtype=np.int32) for column in zip(*columns, strict=True)]
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


def collate(pairs: Pairs, batch: Sequence[int], soft: Callable[[int], np.ndarray] | None = None) -> Batch:
    joined = [pairs.ids(number) for number in batch]
    length = max(len(one) for one, _ in joined)
    if len(batch) > 1:
        # A multiple of sixteen: attention's fast kernels ask for it.
        length = -(-length // 16) * 16
    ids = np.zeros((len(batch), length), dtype=np.int64)
    types = np.zeros_like(ids)
    mask = np.zeros_like(ids, dtype=bool)
    taught = np.full((len(batch), length, 2), -1e4, dtype=np.float32) if soft else None
    for row, (number, (one, at)) in enumerate(zip(batch, joined, strict=True)):
        size = len(one)
        ids[row, :size] = one
        types[row, at:size] = 1
        mask[row, :size] = True
        if taught is not None and soft is not None and pairs.is_question[number] == 1:
            taught[row, :size] = soft(number)
    columns = (
        torch.from_numpy(getattr(pairs, name)[batch].astype(np.int64))
        for name in ("start", "end", "label", "is_question", "group")
    )
    start, end, label, is_question, group = columns
    given = (torch.from_numpy(array) for array in (ids, types, mask))
    soft_spans = torch.from_numpy(taught) if taught is not None else None
    return Batch(batch, *given, start, end, label, is_question == 1, group, soft_spans)


def load_ahead(
    make: Callable[[Sequence[int]], Batch], batches: Sequence[Sequence[int]], device: str
) -> Iterator[Batch]:
    """Batches on the device, the next ones made meanwhile."""

    def prepare(batch: Sequence[int]) -> Batch:
        made = make(batch)
        return made.each(Tensor.pin_memory) if device == "cuda" else made

    with ThreadPoolExecutor(6) as threads:
        waiting = deque()
        for batch in batches:
            waiting.append(threads.submit(prepare, batch))
            if len(waiting) >= 24:
                yield waiting.popleft().result().each(lambda tensor: tensor.to(device, non_blocking=True))
        while waiting:
            yield waiting.popleft().result().each(lambda tensor: tensor.to(device, non_blocking=True))
