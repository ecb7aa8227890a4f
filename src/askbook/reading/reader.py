"""Reads passages: does one answer the question, where, and do they support a statement?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from askbook.onnx import Lane, Weights
from askbook.reading.cache import Cache, key_of
from askbook.reading.model import Contract, Model, Output, open_model
from askbook.reading.spans import Span, find_spans, keep_apart, score_spans
from askbook.reading.windows import Window, split_batches, split_windows

CACHED_MAX = 4096

Value = TypeVar("Value")
Premise = tuple[str, ...]
"""Passages that are read as one text."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Of one question and one passage. A long passage is as good as its best window."""

    relevance: float
    """A logit: it puts passages in order, and means nothing alone."""
    answers: float
    """The chance that the answer is in the passage."""
    spans: tuple[Span, ...]
    """Where, the best first."""


@dataclass(frozen=True, slots=True)
class Task(Generic[Value]):
    """What is asked of a window, how the windows of a passage come together, and what is known already."""

    name: str
    judge: Callable[[Contract, Window, Output], Value]
    join: Callable[[list[Value]], Value]
    known: Cache[Value]


class Reader:
    """Loaded when it is first asked. A model and a thread of its own, which takes a batch of each asker in turn."""

    def __init__(self, weights: Weights, threads: int = 0) -> None:
        self._lane = Lane("read", partial(open_model, weights, threads))
        self._model: Model | None = None
        self._reading = Task("read", _to_reading, _join_readings, Cache[Reading](CACHED_MAX))
        self._checking = Task("check", _to_support, _best, Cache[float](CACHED_MAX))

    async def open(self) -> str:
        """Loads the model before it is needed; the name that it goes by."""
        return (await self._open()).contract.name

    async def read(self, question: str, passages: Sequence[str]) -> list[Reading]:
        return await self._judge(self._reading, question, [(passage,) for passage in passages])

    async def check(self, statement: str, passages: Sequence[str]) -> float:
        """The chance that the passages support it: one of them alone, or all together where a window holds them."""
        premises: list[Premise] = [(passage,) for passage in passages]
        if len(premises) > 1:
            premises.append(tuple(passages))
        return _best(await self._judge(self._checking, statement, premises))

    async def close(self) -> None:
        self._lane.close()

    async def _open(self) -> Model:
        if self._model is None:
            self._model = await self._lane.run(lambda model: model)
        return self._model

    async def _judge(self, task: Task[Value], text: str, premises: Sequence[Premise]) -> list[Value]:
        model = await self._open()
        text = text[: model.contract.question_characters]
        cut = [tuple(one[: model.contract.passage_characters] for one in premise) for premise in premises]
        keys = [key_of(model.sha256, task.name, text, *premise) for premise in cut]
        judged = {key: value for key in keys if (value := task.known.get(key)) is not None}
        unread = {key: premise for key, premise in zip(keys, cut, strict=True) if key not in judged}
        if unread:
            await self._read_anew(task, text, unread, judged)
        return [judged[key] for key in keys]

    async def _read_anew(
        self, task: Task[Value], text: str, unread: dict[bytes, Premise], judged: dict[bytes, Value]
    ) -> None:
        """Passage by passage into `judged`, and into what is known: of a call that is cancelled, the finished ones stay."""
        windows = await self._lane.run(partial(_split, text, unread))
        parts: defaultdict[bytes, list[Value]] = defaultdict(list)
        for key in (key for key, split in windows.items() if not split):
            judged[key] = task.known.put(key, task.join([]))
        # A batch at a time: askers take turns, and one who leaves has left the lane after the batch that runs.
        for batch in split_batches((key, window) for key, split in windows.items() for window in split):
            values = await self._lane.run(partial(_run, task, [window for _, window in batch]))
            for (key, _), value in zip(batch, values, strict=True):
                parts[key].append(value)
                if len(parts[key]) == len(windows[key]):
                    judged[key] = task.known.put(key, task.join(parts[key]))


def _split(text: str, unread: dict[bytes, Premise], model: Model) -> dict[bytes, list[Window]]:
    """Several passages are read together or not at all: what needs both is not in a window that holds a part of them."""
    pairs = model.encode(text, ["\n\n".join(premise) for premise in unread.values()])
    windows = (split_windows(pair, model.contract.pair_tokens) for pair in pairs)
    return {
        key: split if len(premise) == 1 or len(split) == 1 else []
        for (key, premise), split in zip(unread.items(), windows, strict=True)
    }


def _run(task: Task[Value], windows: list[Window], model: Model) -> list[Value]:
    outputs = model.run(windows)
    return [task.judge(model.contract, window, output) for window, output in zip(windows, outputs, strict=True)]


# --- what a window says ---------------------------------------------------------------------------


def _to_reading(contract: Contract, window: Window, output: Output) -> Reading:
    if window.is_empty:
        return Reading(output.relevance, 0.0, ())
    scores = score_spans(output.starts, output.ends)
    answers = contract.answering.chance(output.answerable + float(scores.max()) - output.null)
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
    return 0.0 if window.is_empty else contract.supporting.chance(output.supported)


def _best(chances: list[float]) -> float:
    return max(chances, default=0.0)
