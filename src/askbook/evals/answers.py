"""What a reader is told: whether it holds the known answer, whether it cites the right page, to the letter."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median

from askbook.answer.confidence import measure
from askbook.domain import MARK, Answer, Confidence, Passage, Replied
from askbook.evals.measures import share_of
from askbook.evals.sets import EvalQuestion
from askbook.wiring import Askbook

_WORD = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Answered:
    """A reply as the reader gets it."""

    text: str
    refused: bool
    confidence: Confidence
    passages: tuple[Passage, ...]
    """In the order in which they answer."""
    cited: tuple[str, ...]
    """The pages it cites, in the order of their numbers."""
    citations: int
    verbatim: int
    """How many citations quote the file exactly at their offsets."""

    def contains(self, answers: Iterable[str]) -> bool:
        """One of the known answers, word for word, whatever the case and the marks between."""
        said = f" {' '.join(to_words(self.text))} "
        known = (" ".join(to_words(answer)) for answer in answers)
        return not self.refused and any(f" {words} " in said for words in known if words)


@dataclass(frozen=True, slots=True)
class AnswerFigures:
    answered: int
    words: float | None
    """The median."""
    contained: Mapping[str, tuple[int, float]]
    """Form of question → how many have a known answer, and the share of replies that hold it; a refusal does not."""
    first_citation: float | None
    """The share of answers whose first citation is on a gold page, where there is one."""
    citations: int
    verbatim: float | None


def to_words(text: str) -> list[str]:
    return _WORD.findall(MARK.sub(" ", text).lower())


async def read_reply(askbook: Askbook, replied: Replied, book_id: str, pages: Mapping[str, str]) -> Answered:
    """The reply to a question in a thread of its own, which is deleted."""
    reply, account = replied.reply, replied.account
    await askbook.threads.delete(account.thread_id)
    folder = Path((await askbook.ledger.load_book(book_id)).folder)
    files = [source.passage.chunk.source_file for source in reply.sources]
    return Answered(
        text=reply.text,
        refused=not isinstance(reply, Answer),
        confidence=reply.confidence or measure([], []),
        passages=tuple(replace(passage, rank=place) for place, passage in enumerate(account.passages, start=1)),
        cited=tuple(dict.fromkeys(pages.get(file, file) for file in files)),
        citations=len(files),
        verbatim=sum(
            (folder / file).read_text(encoding="utf-8-sig")[source.start : source.end] == source.quote
            for file, source in zip(files, reply.sources, strict=True)
        ),
    )


def measure_answers(replies: Sequence[tuple[EvalQuestion, Answered]]) -> AnswerFigures | None:
    if not replies:
        return None
    held: dict[str, list[bool]] = {}
    for question, answered in replies:
        for form in ("all", *filter(None, [question.form])) if question.answerable and question.answers else ():
            held.setdefault(form, []).append(answered.contains(question.answers))
    given = [(question, answered) for question, answered in replies if not answered.refused]
    placed = [not question.gold.isdisjoint(answered.cited[:1]) for question, answered in given if question.has_gold]
    citations = sum(answered.citations for _, answered in given)
    lengths = [len(to_words(answered.text)) for _, answered in given]
    return AnswerFigures(
        answered=len(given),
        words=median(lengths) if lengths else None,
        contained={form: (len(flags), fmean(flags)) for form, flags in held.items()},
        first_citation=share_of(placed),
        citations=citations,
        verbatim=sum(answered.verbatim for _, answered in given) / citations if citations else None,
    )
