"""Asks every question of a set through the search that a user has, and beside it through the plain baselines."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from askbook.answer.calibration import Chosen
from askbook.answer.confidence import JUDGED, measure
from askbook.answer.followups import Turn, search_thread, to_cited
from askbook.domain import LIMIT_MAX, ConfidenceLevel, Filters, Passage, SearchMode, SearchOutcome
from askbook.errors import JobFailed
from askbook.evals.answers import Answered, answer_question
from askbook.evals.measures import Retrieval, fuse_ranks, score_ranking
from askbook.evals.sets import EvalQuestion, EvalSet
from askbook.index.ranking import Relevance
from askbook.ingest.worker import Watcher, watch_nothing
from askbook.settings import Settings
from askbook.wiring import Askbook

ASKBOOK, ALONE, BM25, MINILM, RRF = "askbook", "last alone", "BM25", "MiniLM", "RRF"
SYSTEMS = (ASKBOOK, ALONE, BM25, MINILM, RRF)
CITED = 3
WARM_UP = "a question to load what is loaded late"

Ask = Callable[[EvalQuestion], Awaitable[SearchOutcome]]
"""How the system that is measured answers; the baselines always get the last question alone."""
Tick = Callable[[int, int], None]
Failure = Literal["missed", "refused", "answered"]


def tick_nothing(_done: int, _total: int) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Timing:
    """The whole path, the question's embedding included; CPU of all threads."""

    wall_ms: float
    cpu_ms: float


@dataclass(frozen=True, slots=True)
class Asked:
    """One question, what each system ranked, and what our own found."""

    question: EvalQuestion
    rankings: Mapping[str, tuple[str, ...]]
    """System → pages, best first."""
    passages: tuple[Passage, ...]
    """The five that a reader is shown and that the confidence is of, and …"""
    shown: tuple[str, ...]
    """… their pages."""
    confidence: float
    level: ConfidenceLevel
    raw_level: ConfidenceLevel
    """What the seed's rule makes of the raw cosines."""
    timing: Timing | None
    """None where the same words were asked before: their vector was at hand."""
    answered: Answered | None = None
    """None for a turn of a conversation, and where no answers were asked for."""

    def score(self, system: str = ASKBOOK) -> Retrieval:
        return score_ranking(self.rankings[system], self.question.gold)

    @property
    def right(self) -> bool:
        """The page shown first answers it."""
        return self.question.has_gold and self.score().hit1 == 1

    @property
    def refused(self) -> bool:
        return self.answered.refused if self.answered else self.level == "insufficient"

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
    asked: tuple[Asked, ...]

    @property
    def systems(self) -> tuple[str, ...]:
        return tuple(system for system in SYSTEMS if all(system in one.rankings for one in self.asked))


def set_home(settings: Settings, name: str) -> Path:
    return settings.askbook_home / "evals" / name


def settings_of_set(settings: Settings, name: str) -> Settings:
    """A home of its own for each set, kept from run to run; no shared database or server is filled with it."""
    own = {"askbook_home": set_home(settings, name), "database_url": None, "qdrant_url": None}
    return settings.model_copy(update=own)


async def run_set(askbook: Askbook, eval_set: EvalSet) -> SetRun:
    """The whole of it, in a home of the set's own."""
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
    await askbook.searcher.search(WARM_UP, filters)
    threads = any(question.history for question in eval_set.questions)
    chosen = await askbook.calibrations.choose(book_id)
    ask = ask or _ask_in_thread(askbook, filters, chosen.calibration.relevance)
    asker = _Asker(askbook, filters, eval_set.pages, ask, threads, answers and not threads)
    asked: list[Asked] = []
    for question in eval_set.questions:
        asked.append(await asker.ask_all(question))
        tick(len(asked), len(eval_set.questions))
    embedder = askbook.embedder.name if askbook.embedder else "none"
    return SetRun(eval_set.name, embedder, record.total_files, record.total_chunks, chosen, tuple(asked))


def _ask_in_thread(askbook: Askbook, filters: Filters, relevance: Relevance) -> Ask:
    """As a reader would: with the questions asked before, each citing the best passages that it found."""
    found: dict[tuple[str, ...], SearchOutcome] = {}

    async def ask_last(questions: tuple[str, ...]) -> SearchOutcome:
        turns = [
            Turn(questions[at], tuple(map(to_cited, (await ask_once(questions[: at + 1])).passages[:CITED])))
            for at in range(len(questions) - 1)
        ]
        return await search_thread(askbook.searcher, questions[-1], turns, filters, "hybrid", LIMIT_MAX, 0.0, relevance)

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
        self._modes = _choose_modes(threads, askbook.embedder is not None)
        self._filters = filters
        self._pages = pages
        self._ask = ask
        self._heard: set[str] = set()

    async def ask_all(self, question: EvalQuestion) -> Asked:
        # Ours comes first: the baselines may then use the vector that it made, and its time is whole.
        outcome, timing = await self._ask_timed(question)
        rankings = {ASKBOOK: self._to_pages(outcome.passages)}
        found = {system: await self._ask_plain(question, mode) for system, mode in self._modes.items()}
        rankings |= {system: self._to_pages(passages) for system, passages in found.items()}
        if MINILM in found:
            rankings[RRF] = self._to_pages(_fuse([found[BM25], found[MINILM]]))
        # A search for more would show the same five first: the limit only cuts.
        best = outcome.passages[:JUDGED]
        ours = measure([one.rating for one in best], [])
        raw = measure([max(one.similarity or 0.0, 0.0) for one in best], [])
        return Asked(
            question=question,
            rankings=rankings,
            passages=best,
            shown=self._to_pages(best),
            confidence=ours.average_similarity,
            level=ours.confidence_level,
            raw_level=raw.confidence_level,
            timing=timing,
            answered=await self._answer(question) if self._answers else None,
        )

    async def _answer(self, question: EvalQuestion) -> Answered:
        return await answer_question(self._askbook, question, self._filters.book_id, self._pages)

    async def _ask_timed(self, question: EvalQuestion) -> tuple[SearchOutcome, Timing | None]:
        wall, cpu = time.perf_counter(), time.process_time()
        outcome = await self._ask(question)
        timing = Timing((time.perf_counter() - wall) * 1000, (time.process_time() - cpu) * 1000)
        again = question.question in self._heard
        self._heard.add(question.question)
        return outcome, None if again else timing

    async def _ask_plain(self, question: EvalQuestion, mode: SearchMode) -> tuple[Passage, ...]:
        outcome = await self._askbook.searcher.search(question.question, self._filters, mode, LIMIT_MAX)
        return outcome.passages

    def _to_pages(self, passages: Iterable[Passage]) -> tuple[str, ...]:
        """Each page at the place of its best passage."""
        files = (passage.chunk.source_file for passage in passages)
        return tuple(dict.fromkeys(self._pages.get(file, file) for file in files))


def _choose_modes(threads: bool, embeds: bool) -> dict[str, SearchMode]:
    """The baselines; in threads also our own search of the last question without what was said before it."""
    modes: dict[str, SearchMode] = {ALONE: "hybrid"} if threads else {}
    modes[BM25] = "keyword"
    if embeds:
        modes[MINILM] = "dense"
    return modes


def _fuse(lists: Sequence[Sequence[Passage]]) -> list[Passage]:
    by_id = {passage.chunk.id: passage for passages in lists for passage in passages}
    return [by_id[one] for one in fuse_ranks(*([passage.chunk.id for passage in passages] for passages in lists))]
