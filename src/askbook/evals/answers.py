"""What a reader is told: whether it holds the known answer, whether it cites the right page, to the letter."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from askbook.answer.confidence import measure
from askbook.domain import Answer, Confidence, Passage, Replied, Source
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
    """Of the citations, those whose quote stands in the file at its offsets."""

    def contains(self, answers: Iterable[str]) -> bool:
        """One of the known answers, word for word, whatever the case and the marks between."""
        said = f" {' '.join(to_words(self.text))} "
        return not self.refused and any(f" {' '.join(to_words(one))} " in said for one in answers if to_words(one))


@dataclass(frozen=True, slots=True)
class AnswerFigures:
    answered: int
    words: float | None
    """Of the answer in the middle."""
    contained: Mapping[str, tuple[int, float]]
    """Form of question → how many have a known answer, and the share of replies that hold it; a refusal does not."""
    first_citation: float | None
    """The share of answers whose first citation is on a gold page, where there is one."""
    citations: int
    verbatim: float | None


def to_words(text: str) -> list[str]:
    return _WORD.findall(re.sub(r"\[\d+\]", " ", text).lower())


async def read_reply(askbook: Askbook, replied: Replied, book_id: str, pages: Mapping[str, str]) -> Answered:
    """What came of a question in a thread of its own, which is forgotten."""
    reply, account = replied.reply, replied.account
    await askbook.threads.delete(account.thread_id)
    folder = Path((await askbook.ledger.load_book(book_id)).folder)
    sources = reply.sources if isinstance(reply, Answer) else ()
    files = [source.passage.chunk.source_file for source in sources]
    return Answered(
        text=reply.text,
        refused=not isinstance(reply, Answer),
        confidence=reply.confidence or measure([], []),
        passages=tuple(replace(one, rank=place) for place, one in enumerate(account.passages, start=1)),
        cited=tuple(dict.fromkeys(pages.get(file, file) for file in files)),
        citations=len(files),
        verbatim=sum(_stands_in_file(source, folder) for source in sources),
    )


def _stands_in_file(source: Source, folder: Path) -> bool:
    text = (folder / source.passage.chunk.source_file).read_text(encoding="utf-8-sig")
    return text[source.start : source.end] == source.quote


def measure_answers(replies: Sequence[tuple[EvalQuestion, Answered]]) -> AnswerFigures | None:
    if not replies:
        return None
    given = [(question, one) for question, one in replies if not one.refused]
    placed = [one.cited[:1] and one.cited[0] in question.gold for question, one in given if question.has_gold]
    citations = sum(one.citations for _, one in given)
    lengths = [len(to_words(one.text)) for _, one in given]
    return AnswerFigures(
        answered=len(given),
        words=median(lengths) if lengths else None,
        contained=_measure_contained(replies),
        first_citation=_share([bool(one) for one in placed]),
        citations=citations,
        verbatim=sum(one.verbatim for _, one in given) / citations if citations else None,
    )


def _measure_contained(replies: Sequence[tuple[EvalQuestion, Answered]]) -> dict[str, tuple[int, float]]:
    held: dict[str, list[bool]] = {}
    for question, one in replies:
        if question.answerable and question.answers:
            for form in ("all", *filter(None, [question.form])):
                held.setdefault(form, []).append(one.contains(question.answers))
    return {form: (len(flags), sum(flags) / len(flags)) for form, flags in held.items()}


def _share(flags: Sequence[bool]) -> float | None:
    return sum(flags) / len(flags) if flags else None
