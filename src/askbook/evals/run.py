"""Asks every question of a set as a reader does, and beside it the search alone and the plain baselines."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from askbook.answer.ask import get_reply
from askbook.answer.calibration import Chosen
from askbook.answer.confidence import JUDGED, measure
from askbook.answer.followups import Turn, resolve_question, search_thread, to_cited
from askbook.domain import LIMIT_MAX, ConfidenceLevel, Filters, Passage, Question, SearchMode, SearchOutcome
from askbook.errors import JobFailed
from askbook.evals.answers import Answered, read_reply
from askbook.evals.measures import Retrieval, fuse_ranks, score_ranking
from askbook.evals.sets import EvalQuestion, EvalSet
from askbook.index.ranking import Relevance
from askbook.ingest.worker import Watcher, watch_nothing
from askbook.settings import Settings
from askbook.wiring import Askbook

ASKBOOK, SEARCH, ALONE, BM25, MINILM, RRF = "askbook", "search", "last alone", "BM25", "MiniLM", "RRF"
SYSTEMS = (ASKBOOK, SEARCH, ALONE, BM25, MINILM, RRF)
CITED = 3
WARM_UP = "a question to load what is loaded late"

Ask = Callable[[EvalQuestion], Awaitable[SearchOutcome]]
"""Asks askbook's search; the baselines always get the last question alone."""
Tick = Callable[[int, int], None]
T = TypeVar("T")
Failure = Literal["missed", "refused", "answered"]


def tick_nothing(_done: int, _total: int) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Timing:
    """The whole path, the question's embedding included; CPU of all threads."""

    wall_ms: float
    cpu_ms: float


@dataclass(frozen=True, slots=True)
class Result:
    """One question, what each system ranked, and what a reader gets: the reply; in conversations what was found."""

    question: EvalQuestion
    rankings: Mapping[str, tuple[str, ...]]
    """System → pages, best first."""
    passages: tuple[Passage, ...]
    """The five that a reader is shown and that the confidence is of, and …"""
    shown: tuple[str, ...]
    """… their pages."""
    confidence: float
    """That the book answers, and …"""
    chance: float
    """… that the text shown does; the same where no text is shown."""
    level: ConfidenceLevel
    raw_level: ConfidenceLevel
    """What the seed's rule makes of the raw cosines."""
    timing: Timing | None
    """None where the same words were asked before: their vector was at hand."""
    answered: Answered | None = None
    """None for a turn of a conversation, and where no answers were asked for."""

    def score(self, system: str = ASKBOOK) -> Retrieval:
        return score_ranking(self.rankings[system], self.question.gold)

    def is_right(self, by_text: bool) -> bool:
        """The text shown holds a known answer; or the page cited first, without a text found first, is a gold page."""
        if by_text:
            return self.answered is not None and self.answered.contains(self.question.facts)
        first = self.answered.cited[:1] if self.answered else self.rankings[ASKBOOK][:1]
        return self.question.has_gold and not self.question.gold.isdisjoint(first)

    @property
    def refused(self) -> bool:
        return self.answered.refused if self.answered else self.level == "insufficient"

    @property
    def refused_raw(self) -> bool:
        return self.raw_level == "insufficient"

    @property
    def passed(self) -> bool | None:
        """Answered, with an expected page among the five passages; or refused, where the book does not say.

        None where nobody has judged it.
        """
        if self.question.answerable is False:
            return self.refused
        found = not self.question.gold.isdisjoint(self.shown)
        return (found and not self.refused) if self.question.has_gold else None

    @property
    def failure(self) -> Failure | None:
        """Why it did not pass."""
        if self.passed is not False:
            return None
        if self.question.answerable is False:
            return "answered"
        return "refused" if self.refused else "missed"


@dataclass(frozen=True, slots=True)
class SetRun:
    name: str
    embedder: str
    files: int
    chunks: int
    chosen: Chosen
    """The calibration in force."""
    asked: tuple[Result, ...]
    left_out: int = 0
    """How many questions the sample leaves out."""

    @property
    def systems(self) -> tuple[str, ...]:
        return tuple(system for system in SYSTEMS if all(system in result.rankings for result in self.asked))


def set_home(settings: Settings, name: str) -> Path:
    return settings.askbook_home / "evals" / name


def settings_of_set(settings: Settings, name: str) -> Settings:
    """A data folder for each set, kept between runs; shared databases and servers are not filled with sets."""
    own = {"askbook_home": set_home(settings, name), "database_url": None, "qdrant_url": None}
    return settings.model_copy(update=own)


async def run_set(askbook: Askbook, eval_set: EvalSet) -> SetRun:
    """Ingest the set's book and ask all of its questions."""
    await ingest_set(askbook, eval_set)
    return await ask_set(askbook, eval_set, eval_set.name)


async def ingest_set(askbook: Askbook, eval_set: EvalSet, watch: Watcher = watch_nothing) -> None:
    """Bring the set's own book up to date: nothing is embedded twice."""
    assert eval_set.folder is not None
    job = await askbook.jobs.submit(eval_set.name, str(eval_set.folder.resolve()), "incremental")
    job = await askbook.worker.run_job(job.job_id, watch)
    if job.status != "completed":
        raise JobFailed(f"{eval_set.name} could not be ingested: {job.error_message}")


async def ask_set(
    askbook: Askbook,
    eval_set: EvalSet,
    book_id: str,
    tick: Tick = tick_nothing,
    ask: Ask | None = None,
    answers: bool = True,
) -> SetRun:
    """Ask a book that is ingested already."""
    record = await askbook.ledger.load_book(book_id)
    filters = Filters(book_id=book_id)
    threads = any(question.history for question in eval_set.questions)
    chosen = await askbook.calibrations.choose(book_id)
    ask = ask or _ask_in_thread(askbook, filters, chosen.calibration.relevance)
    asker = _Asker(askbook, filters, eval_set.pages, ask, threads, answers and not threads)
    await asker.ask_all(EvalQuestion("", WARM_UP))
    asked: list[Result] = []
    for question in eval_set.questions:
        asked.append(await asker.ask_all(question))
        tick(len(asked), len(eval_set.questions))
    embedder = askbook.embedder.name if askbook.embedder else "none"
    counts = record.total_files, record.total_chunks
    return SetRun(eval_set.name, embedder, *counts, chosen, tuple(asked), eval_set.left_out)


def _ask_in_thread(askbook: Askbook, filters: Filters, relevance: Relevance) -> Ask:
    """As a reader would: with the questions asked before, each citing the best passages that it found."""
    found: dict[tuple[str, ...], SearchOutcome] = {}

    async def ask_last(questions: tuple[str, ...]) -> SearchOutcome:
        turns = [
            Turn(questions[at], tuple(map(to_cited, (await ask_once(questions[: at + 1])).passages[:CITED])))
            for at in range(len(questions) - 1)
        ]
        return await search_thread(
            askbook.searcher, resolve_question(questions[-1], turns), filters, LIMIT_MAX, relevance
        )

    async def ask_once(questions: tuple[str, ...]) -> SearchOutcome:
        if questions not in found:
            found[questions] = await ask_last(questions)
        return found[questions]

    async def ask(question: EvalQuestion) -> SearchOutcome:
        return await ask_once((*question.history, question.question))

    return ask


class _Asker:
    def __init__(
        self, askbook: Askbook, filters: Filters, pages: Mapping[str, str], ask: Ask, threads: bool, answers: bool
    ) -> None:
        self._askbook = askbook
        self._answers = answers
        # The baselines; in threads also our own search of the last question without what was said before it.
        modes: dict[str, SearchMode] = {ALONE: "hybrid", BM25: "keyword", MINILM: "dense"}
        if not threads:
            del modes[ALONE]
        if askbook.embedder is None:
            del modes[MINILM]
        self._modes = modes
        self._filters = filters
        self._pages = pages
        self._ask = ask
        self._heard: set[str] = set()

    async def ask_all(self, question: EvalQuestion) -> Result:
        # askbook's search comes first, so that its time includes the embedding; the others reuse the vector.
        again = question.question in self._heard
        self._heard.add(question.question)
        answered, timing = None, None
        if self._answers:
            replied, timing = await _time(get_reply(self._askbook.ask(Question(question.question, self._filters))))
            answered = await read_reply(self._askbook, replied, self._filters.book_id, self._pages)
        outcome, search_timing = await _time(self._ask(question))
        found = {SEARCH: outcome.passages} if answered else {}
        for system, mode in self._modes.items():
            plain = await self._askbook.searcher.search(question.question, self._filters, mode, LIMIT_MAX)
            found[system] = plain.passages
        if MINILM in found:
            by_id = {passage.chunk.id: passage for passage in (*found[BM25], *found[MINILM])}
            fused = fuse_ranks(*([passage.chunk.id for passage in found[system]] for system in (BM25, MINILM)))
            found[RRF] = tuple(by_id[chunk_id] for chunk_id in fused)
        # The limit only cuts: a search for five finds the same.
        best = outcome.passages[:JUDGED]
        raw = measure([max(passage.similarity or 0.0, 0.0) for passage in best], [])
        sure = answered.confidence if answered else measure([passage.rating for passage in best], [])
        shown = answered.passages if answered else best
        # A reader is shown five passages; further down, the order is the search's.
        found[ASKBOOK] = (*shown, *outcome.passages)
        return Result(
            question=question,
            rankings={system: self._to_pages(passages) for system, passages in found.items()},
            passages=shown,
            shown=self._to_pages(shown),
            confidence=sure.average_similarity,
            chance=sure.average_similarity if sure.chance is None else sure.chance,
            level=sure.confidence_level,
            raw_level=raw.confidence_level,
            timing=None if again else timing or search_timing,
            answered=answered,
        )

    def _to_pages(self, passages: Iterable[Passage]) -> tuple[str, ...]:
        """Each page at the place of its best passage."""
        files = (passage.chunk.source_file for passage in passages)
        return tuple(dict.fromkeys(self._pages.get(file, file) for file in files))


async def _time(work: Awaitable[T]) -> tuple[T, Timing]:
    wall, cpu = time.perf_counter(), time.process_time()
    done = await work
    return done, Timing((time.perf_counter() - wall) * 1000, (time.process_time() - cpu) * 1000)
