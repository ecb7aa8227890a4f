"""What a reader is told: whether it holds the known answer, whether it cites the right page, to the letter."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from askbook.answer.ask import get_reply
from askbook.domain import Answer, Filters, Question, Reply, Source
from askbook.evals.measures import percentile
from askbook.evals.sets import EvalQuestion
from askbook.wiring import Askbook

_WORD = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Answered:
    """A reply as the reader gets it."""

    text: str
    refused: bool
    cited: tuple[str, ...]
    """The pages it cites, in the order of their numbers."""
    citations: int
    verbatim: int
    """Of the citations, those whose quote stands in the file at its offsets."""
    cpu_ms: float

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
    false_refusals: float | None
    refused: Mapping[str, float]
    """The share of unanswerable questions that is refused, by kind."""
    cpu_p95_ms: float | None


def to_words(text: str) -> list[str]:
    return _WORD.findall(re.sub(r"\[\d+\]", " ", text).lower())


async def answer_question(askbook: Askbook, question: EvalQuestion, book_id: str, pages: Mapping[str, str]) -> Answered:
    """Through the path of every reader, in a thread of its own that is forgotten afterwards."""
    folder = Path((await askbook.ledger.load_book(book_id)).folder)
    started = time.process_time()
    replied = await get_reply(askbook.ask(Question(question.question, Filters(book_id))))
    took = (time.process_time() - started) * 1000
    if replied.account.thread_id is not None:
        await askbook.threads.delete(replied.account.thread_id)
    return _to_answered(replied.reply, folder, pages, took)


def _to_answered(reply: Reply, folder: Path, pages: Mapping[str, str], cpu_ms: float) -> Answered:
    if not isinstance(reply, Answer):
        return Answered(reply.text, True, (), 0, 0, cpu_ms)
    files = [source.passage.chunk.source_file for source in reply.sources]
    cited = tuple(dict.fromkeys(pages.get(file, file) for file in files))
    verbatim = sum(_stands_in_file(source, folder) for source in reply.sources)
    return Answered(reply.text, False, cited, len(files), verbatim, cpu_ms)


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
        false_refusals=_share([one.refused for question, one in replies if question.answerable]),
        refused=_measure_refused(replies),
        cpu_p95_ms=percentile([one.cpu_ms for _, one in replies], 95),
    )


def _measure_contained(replies: Sequence[tuple[EvalQuestion, Answered]]) -> dict[str, tuple[int, float]]:
    held: dict[str, list[bool]] = {}
    for question, one in replies:
        if question.answerable and question.answers:
            for form in ("all", *filter(None, [question.form])):
                held.setdefault(form, []).append(one.contains(question.answers))
    return {form: (len(flags), sum(flags) / len(flags)) for form, flags in held.items()}


def _measure_refused(replies: Sequence[tuple[EvalQuestion, Answered]]) -> dict[str, float]:
    by_kind: dict[str, list[bool]] = {}
    for question, one in replies:
        if question.answerable is False:
            by_kind.setdefault(question.neg_type or "unanswerable", []).append(one.refused)
    return {kind: sum(flags) / len(flags) for kind, flags in by_kind.items()}


def _share(flags: Sequence[bool]) -> float | None:
    return sum(flags) / len(flags) if flags else None
