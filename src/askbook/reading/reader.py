"""Reads passages: does one answer the question, where, and do they support a statement?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar

from askbook.cache import Cache, key_of
from askbook.onnx import Lane, Weights, share
from askbook.reading.model import Contract, Model, Output, bend, open_model
from askbook.reading.plain import Plain, read_out
from askbook.reading.spans import Span, find_spans, keep_apart, score_spans
from askbook.reading.windows import Asked, Window, split_windows

CACHED_MAX = 4096

Value = TypeVar("Value")
Premise = tuple[str, ...]
"""Passages that are read as one text."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What one passage says to one question. A long passage counts as its best window."""

    relevance: float
    """A logit: it orders passages, and means nothing alone."""
    answers: float
    """The chance that the answer is in the passage."""
    spans: tuple[Span, ...]
    """Where the answer is, best first."""


@dataclass(frozen=True, slots=True)
class Task(Generic[Value]):
    """How a window is judged, how windows are combined, and a cache."""

    name: str
    judge: Callable[[Contract, Window, Output], Value]
    join: Callable[[list[Value]], Value]
    known: Cache[bytes, Value]


class Reader:
    """Loads its model on first use. Its own thread takes a window of each asker in turn."""

    def __init__(self, weights: Weights, threads: int = 0) -> None:
        self._lane = Lane("read", partial(share, open_model, weights, threads))
        self._reading = Task("read", _to_reading, _join_readings, Cache[bytes, Reading](CACHED_MAX))
        self._checking = Task("check", _to_support, _best, Cache[bytes, float](CACHED_MAX))
        self.askers = 0
        """How many questions are being read now."""

    async def open(self) -> str:
        """Loads the model before it is needed, and returns its name."""
        return (await self._open()).contract.name

    async def read(self, question: str, passages: Sequence[str]) -> list[Reading]:
        self.askers += 1
        try:
            model = await self._open()
            plain = [_read_out(model, passage) for passage in passages]
            asked = model.encode_question(question)
            readings = await self._judge(self._reading, asked, [(text.text,) for text in plain])
            return [_place_in(text, reading) for text, reading in zip(plain, readings, strict=True)]
        finally:
            self.askers -= 1

    async def check(self, statement: str, passages: Sequence[str]) -> float:
        """The chance that the passages support it: one of them alone, or all together where a window holds them.

        A statement that is longer than the model reads at once goes in pieces, and is as good as its worst.
        What is longer than PIECES_MAX of them is not read and has no support.
        """
        model = await self._open()
        pieces = model.encode_statement(statement)
        premises: list[Premise] = [(_read_out(model, passage).text,) for passage in passages]
        if len(premises) > 1:
            premises.append(tuple(text for (text,) in premises))
        return min([_best(await self._judge(self._checking, piece, premises)) for piece in pieces], default=0.0)

    async def close(self) -> None:
        self._lane.close()

    async def _open(self) -> Model:
        return self._lane.loaded or await self._lane.run(lambda model: model)

    async def _judge(self, task: Task[Value], asked: Asked, premises: Sequence[Premise]) -> list[Value]:
        model = await self._open()
        cut = [tuple(text[: model.contract.passage_characters] for text in premise) for premise in premises]
        keys = [key_of(model.sha256, task.name, str(asked), *premise) for premise in cut]
        judged = {key: value for key in keys if (value := task.known.get(key)) is not None}
        for key, premise in zip(keys, cut, strict=True):
            if key not in judged:
                judged[key] = task.known.put(key, await self._read_anew(task, asked, premise))
        return [judged[key] for key in keys]

    async def _read_anew(self, task: Task[Value], asked: Asked, premise: Premise) -> Value:
        """A window at a time, so that askers take turns, and one who leaves frees the lane after the current window."""
        windows = await self._lane.run(partial(_split, asked, premise))
        return task.join([await self._lane.run(partial(_run, task, window)) for window in windows])


def _read_out(model: Model, passage: str) -> Plain:
    most = model.contract.passage_characters
    return read_out(passage[:most], most)


def _place_in(plain: Plain, reading: Reading) -> Reading:
    return replace(reading, spans=tuple(map(plain.to_source, reading.spans)))


def _split(asked: Asked, premise: Premise, model: Model) -> list[Window]:
    """Several passages are read in one window or not at all: a part of them may not support what all do."""
    windows = split_windows(model.encode(asked, "\n\n".join(premise)), model.contract.pair_tokens)
    return windows if len(premise) == 1 or len(windows) == 1 else []


def _run(task: Task[Value], window: Window, model: Model) -> Value:
    return task.judge(model.contract, window, model.run(window))


# --- what a window says ---------------------------------------------------------------------------


def _to_reading(contract: Contract, window: Window, output: Output) -> Reading:
    if window.is_empty:
        return Reading(output.relevance, 0.0, ())
    scores = score_spans(output.starts, output.ends)
    answers = bend(contract.answers, output.answerable + float(scores.max()) - output.null)
    words = window.words
    spans = (Span(words[first][0], words[last][1], chance) for first, last, chance in find_spans(scores, output.null))
    return Reading(output.relevance, answers, keep_apart(spans))


def _join_readings(readings: list[Reading]) -> Reading:
    return Reading(
        max(reading.relevance for reading in readings),
        max(reading.answers for reading in readings),
        keep_apart(span for reading in readings for span in reading.spans),
    )


def _to_support(contract: Contract, window: Window, output: Output) -> float:
    return 0.0 if window.is_empty else bend(contract.supports, output.supported)


def _best(chances: list[float]) -> float:
    return max(chances, default=0.0)
