"""What a question means in its thread: read without a model, then searched."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from askbook.answer.calibration import SMALL_BOOK, Fingerprint, load_built_in
from askbook.answer.followups import (
    EARLIER,
    FADING,
    LEANING,
    Turn,
    asks_nothing,
    names_missing_source,
    resolve_question,
    search_thread,
    to_cited,
)
from askbook.book.chunker import CHUNKER_VERSION
from askbook.book.reader import read_book
from askbook.domain import (
    LIMIT_MAX,
    QUERY_MAX,
    QUERY_MIN,
    Chunk,
    Cited,
    Filters,
    Passage,
    SearchMode,
    SearchOutcome,
    Signals,
)
from askbook.index.coverage import Rarities
from askbook.index.keywords import rarity_of
from askbook.index.ranking import Relevance
from askbook.index.search import Searcher
from askbook.ingest.worker import watch_nothing
from askbook.settings import Settings
from askbook.wiring import open_askbook
from builders import make_chunks, make_lesson

POLICIES = Cited("Quality of Service The policies", "Reliability: reliable sends again until it is acknowledged.")
OFFER = Cited("Quality of Service Offer and request", "A subscriber may ask for the same or less, never for more.")
IN_CODE = Cited("Quality of Service In code", "A latched profile is transient local with depth 1.")
ASKED = "Why does my subscriber get no messages from the lidar driver?"
THREAD = (Turn(ASKED, (POLICIES, OFFER, IN_CODE)),)


# --- what is meant --------------------------------------------------------------------------------


def test_a_follow_up_is_read_as_it_stands_and_with_what_came_before_it() -> None:
    resolved = resolve_question("and delete one?", (Turn("How do I create a user?", (POLICIES,)),))
    assert resolved.text == f"{POLICIES.title} How do I create a user? and delete one?"
    assert resolved.meanings == ("and delete one?", resolved.text)


def test_it_is_searched_as_it_is_read_and_as_it_stands_counts_most() -> None:
    resolved = resolve_question("Is it the same in simulation?", THREAD)
    assert resolved.searches == {resolved.text: LEANING, "Is it the same in simulation?": 1.0}
    assert LEANING < 1


def test_the_earlier_questions_count_less_the_older_they_are() -> None:
    turns = (*THREAD, Turn("ok"), Turn("And why?", (OFFER,)), Turn("Is it the same in simulation?", (OFFER,)))
    earlier = resolve_question("For cameras too?", turns).earlier
    assert list(earlier) == ["Is it the same in simulation?", ASKED]
    assert earlier[ASKED] == pytest.approx(FADING * earlier["Is it the same in simulation?"])
    assert sum(earlier.values()) == pytest.approx(1)


def test_a_question_asked_again_is_not_earlier_than_itself() -> None:
    assert not resolve_question(ASKED, THREAD).earlier


def test_an_earlier_message_of_any_length_can_be_followed() -> None:
    long, short = "Tell me about lidar drivers. " * 100, "R  "
    for question in ("Is it safe?", "Tell me more."):
        resolved = resolve_question(question, (Turn(long, ()), Turn(short, ())))
        assert all(QUERY_MIN <= len(text) <= QUERY_MAX for text in (*resolved.searches, *resolved.earlier))
        resolved = resolve_question(question, (Turn(long, ()),))
        assert all(QUERY_MIN <= len(text) <= QUERY_MAX for text in (*resolved.searches, *resolved.earlier))


def test_after_a_refusal_it_is_still_about_what_was_cited_last() -> None:
    turns = (*THREAD, Turn("Does it fly?"))
    assert resolve_question("And swim?", turns).text == f"{POLICIES.title} Does it fly? And swim?"


def test_without_citations_the_earlier_question_is_the_topic() -> None:
    resolved = resolve_question("Is it free?", (Turn("What does Isaac Sim cost?"),))
    assert resolved.text == "What does Isaac Sim cost? Is it free?"


@pytest.mark.parametrize(
    "question", ["Tell me more", "go on", "Thanks! Anything else?", "and why?", "Can you give an example?", "how so?"]
)
def test_what_names_nothing_is_looked_for_where_the_last_question_was(question: str) -> None:
    resolved = resolve_question(question, THREAD)
    assert resolved.kind == "bare" and list(resolved.searches) == [ASKED]
    assert resolved.meanings == (f"{ASKED} {question}",)


def test_go_on_reaches_back_over_other_follow_ups() -> None:
    turns = (*THREAD, Turn("Is it the same in simulation?", (OFFER,)), Turn("go on", (OFFER,)))
    resolved = resolve_question("tell me more", turns)
    assert resolved.searches == resolve_question("Is it the same in simulation?", THREAD).searches


def test_after_tell_me_more_a_question_follows_the_one_before() -> None:
    turns = (*THREAD, Turn("tell me more", (OFFER,)))
    assert resolve_question("And for cameras?", turns).text == f"{OFFER.title} {ASKED} And for cameras?"


@pytest.mark.parametrize(
    ("question", "meant"),
    [
        ("Tell me more about the second one", OFFER),
        ("What does the first source say?", POLICIES),
        ("Expand on the last source", IN_CODE),
        ("source 2", OFFER),
        ("Can you explain [3]?", IN_CODE),
        ("Does the third passage mention lifespan, deadline and liveliness?", IN_CODE),
    ],
)
def test_a_cited_passage_can_be_named(question: str, meant: Cited) -> None:
    resolved = resolve_question(question, THREAD)
    assert resolved.kind == "source" and resolved.meant == meant
    assert resolved.text.startswith(f"{meant.title} {meant.text}")


@pytest.mark.parametrize(
    ("question", "missing"),
    [
        ("Tell me more about the ninth source", True),
        ("What does source 4 say?", True),
        ("source 12", True),
        ("What does the third source say?", False),
        ("And the last source?", False),
        ("How does the fourth one work?", False),
        ("What is in [4]?", False),
        ("Which source of noise is worst?", False),
    ],
)
def test_a_source_that_was_not_cited_is_missing(question: str, missing: bool) -> None:
    assert names_missing_source(question, THREAD) is missing
    assert not names_missing_source(question, ())


def test_what_is_asked_of_a_source_is_searched_with_it() -> None:
    assert resolve_question("Does source 1 mention deadlines?", THREAD).text.endswith("acknowledged. mention deadlines")


@pytest.mark.parametrize(
    "question",
    [
        "the fourth source",
        "source 9",
        "What does [0] hold?",
        "What does ranges[2] hold after filtering?",
        "Which was the first one to walk upright, Atlas or Digit?",
        "What is the first source of drift in odometry?",
    ],
)
def test_what_is_no_source_is_not_taken_for_one(question: str) -> None:
    assert resolve_question(question, THREAD).meant is None


def test_where_nothing_was_cited_no_source_is_meant() -> None:
    assert resolve_question("the last one", (Turn(ASKED),)).meant is None


def test_a_first_question_is_never_a_follow_up() -> None:
    for question in ("Tell me more", "and why?", "the second one", "Is it safe?"):
        assert resolve_question(question, ()).kind == "alone"


def test_a_long_thread_of_refusals_stays_short_and_quick() -> None:
    turns = [Turn("What does Isaac Sim cost?"), *(Turn("And why is it so?") for _ in range(600))]
    started = time.perf_counter()
    resolved = resolve_question("tell me more", turns)
    assert time.perf_counter() - started < 1.0
    assert resolved.text == "What does Isaac Sim cost?"
    assert len(resolve_question("x" * QUERY_MAX, turns).text) == QUERY_MAX


# --- searching ------------------------------------------------------------------------------------

CHUNKS = make_chunks(make_lesson(), *(f"passage {count}" for count in range(LIMIT_MAX + 2)))
BOOK = Filters("book")
ALONE = Turn("What does Nav2 do?")


NAMES_MUCH: Rarities = {word: rarity_of(0, SMALL_BOOK) for word in range(4)}
"""Four words that the book never uses: such a question stands alone."""


class ScriptedSearcher(Searcher):
    """Finds for each text the scores that it was given, best first."""

    def __init__(
        self, found: dict[str, dict[int, float]], signals: Signals | None = None, rarities: Rarities | None = None
    ) -> None:
        self.found = found
        self.signals = signals or Signals(chunks=SMALL_BOOK)
        self.rarities = NAMES_MUCH if rarities is None else rarities

    async def search(
        self,
        text: str,
        filters: Filters,
        mode: SearchMode = "hybrid",
        limit: int = 5,
        threshold: float = 0.0,
        relevance: Relevance | None = None,
        hide: Callable[[Chunk], bool] | None = None,
        rerank: bool | None = None,
    ) -> SearchOutcome:
        ranked = sorted(self.found[text].items(), key=lambda pair: -pair[1])
        passages = [Passage(CHUNKS[at], score, rank, score) for rank, (at, score) in enumerate(ranked, start=1)]
        return SearchOutcome(
            text, filters, mode, tuple(passages[:limit]), len(ranked), 1.0, 2.0, self.signals, rarities=self.rarities
        )

    async def rerank(self, outcome: SearchOutcome, on_request: bool = False) -> SearchOutcome:
        return outcome


def scores_of(outcome: SearchOutcome) -> dict[int, float]:
    return {CHUNKS.index(passage.chunk): passage.score for passage in outcome.passages}


QUESTION = "Does it work on Jetson?"
WHOLE = f"{ALONE.question} {QUESTION}"


async def test_the_scores_of_all_searches_are_added() -> None:
    searcher = ScriptedSearcher({QUESTION: {0: 0.6, 1: 0.5}, WHOLE: {1: 0.8, 2: 0.9}})
    outcome = await search_thread(searcher, resolve_question(QUESTION, [ALONE]), BOOK, 5, None)
    added = {1: 0.5 + LEANING * 0.8, 0: 0.6, 2: LEANING * 0.9}
    assert scores_of(outcome) == pytest.approx({at: score / (1 + LEANING) for at, score in added.items()})
    assert [passage.rank for passage in outcome.passages] == [1, 2, 3]
    assert outcome.query == WHOLE and outcome.total_found == 3
    assert (outcome.embedding_ms, outcome.retrieval_ms) == (2.0, 4.0)
    # The raw scores are those of the question made whole, where it found the passage.
    assert [passage.similarity for passage in outcome.passages] == [0.8, 0.6, 0.9]
    one = await search_thread(searcher, resolve_question(QUESTION, [ALONE]), BOOK, 1, None)
    assert list(scores_of(one)) == [1] and one.total_found == 3


async def test_a_question_that_names_nothing_rare_is_found_with_the_earlier_ones() -> None:
    found = {QUESTION: {0: 0.6, 1: 0.5}, WHOLE: {1: 0.8}, ALONE.question: {2: 0.9}}
    resolved = resolve_question(QUESTION, [ALONE])
    leaning = await search_thread(ScriptedSearcher(found, rarities={}), resolved, BOOK, 5, None)
    total = 1 + 2 * LEANING + EARLIER
    added = {0: 0.6, 1: 0.5 + 2 * LEANING * 0.8, 2: EARLIER * 0.9}
    assert scores_of(leaning) == pytest.approx({at: score / total for at, score in added.items()})
    alone = await search_thread(ScriptedSearcher(found), resolved, BOOK, 5, None)
    assert 2 not in scores_of(alone)


async def test_in_a_small_book_no_word_is_rare_and_a_question_leans_the_less() -> None:
    found = {QUESTION: {0: 0.6}, WHOLE: {1: 0.8}, ALONE.question: {2: 0.9}}
    shares: list[float] = []
    for chunks in (0, SMALL_BOOK // 2, SMALL_BOOK, 9 * SMALL_BOOK):
        searcher = ScriptedSearcher(found, Signals(chunks=chunks), {})
        scores = scores_of(await search_thread(searcher, resolve_question(QUESTION, [ALONE]), BOOK, 5, None))
        shares.append(scores.get(2, 0.0) / scores[0])
    assert shares == pytest.approx([0.0, EARLIER / 2 * 0.9 / 0.6, EARLIER * 0.9 / 0.6, EARLIER * 0.9 / 0.6])


async def test_the_signals_are_of_the_question_as_it_stands() -> None:
    class Telling(ScriptedSearcher):
        async def search(self, text: str, *args: Any, **options: Any) -> SearchOutcome:
            outcome = await super().search(text, *args, **options)
            return replace(outcome, signals=Signals(coverage=0.1 if text == QUESTION else 0.9, chunks=SMALL_BOOK))

    searcher = Telling({QUESTION: {0: 0.6}, WHOLE: {1: 0.8}, ALONE.question: {2: 0.9}}, rarities={})
    outcome = await search_thread(searcher, resolve_question(QUESTION, [ALONE]), BOOK, 5, None)
    assert outcome.signals.coverage == 0.1


async def test_beyond_a_full_list_a_passage_counts_as_its_last() -> None:
    full = {at: 0.9 - at / 100 for at in range(LIMIT_MAX)}
    searcher = ScriptedSearcher({QUESTION: {LIMIT_MAX: 0.9}, WHOLE: full})
    outcome = await search_thread(searcher, resolve_question(QUESTION, [ALONE]), BOOK, LIMIT_MAX, None)
    assert scores_of(outcome)[LIMIT_MAX] == pytest.approx((0.9 + LEANING * full[LIMIT_MAX - 1]) / (1 + LEANING))


async def test_what_a_thread_merges_keeps_the_confidence_of_its_question() -> None:
    """The mean of the relevances is the confidence, though the scores around it are new ones."""
    signals = Signals(similarity=0.5, coverage=0.9, score=0.4, mean_score=0.3, lead=0.0, chunks=200)
    calibration = load_built_in(Fingerprint("all-MiniLM-L6-v2-int8-fused/8x256", CHUNKER_VERSION))
    first = {0: 0.4, 1: 0.35, 2: 0.3, 3: 0.25, 4: 0.2}
    second = {0: 0.9, 1: 0.8, 2: 0.9, 3: 0.7, 4: 0.8}
    searcher = ScriptedSearcher({WHOLE: first, QUESTION: second}, signals)
    outcome = await search_thread(searcher, resolve_question(QUESTION, [ALONE]), BOOK, 5, calibration.relevance)
    relevances = [one.rating for one in outcome.passages]
    assert sum(relevances) / len(relevances) == pytest.approx(calibration.confidence(signals), abs=0.001)
    assert relevances == sorted(relevances, reverse=True)
    assert [one.rank for one in outcome.passages] == [1, 2, 3, 4, 5]


# --- the real parts -------------------------------------------------------------------------------


LESSONS = (
    "module-1-ros2/chapter-2-building/02-parameters-and-launch.md",
    "module-2-simulation/chapter-5-sensors-simulation/02-cameras-and-depth.md",
    "module-2-simulation/chapter-5-sensors-simulation/03-imu-and-noise.md",
)


def small_book(folder: Path) -> Path:
    demo = Path(str(files("askbook"))) / "demo" / "physical-ai-robotics"
    for lesson in LESSONS:
        (folder / lesson).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(demo / lesson, folder / lesson)
    return folder


async def test_a_thread_on_the_demo_book(tmp_path: Path) -> None:
    folder = small_book(tmp_path / "robots")
    filters = Filters(read_book(folder).book_id)
    async with open_askbook(Settings.model_validate({"askbook_home": tmp_path / "home"})) as askbook:
        job = await askbook.jobs.submit(filters.book_id, str(folder), "incremental")
        assert (await askbook.worker.run_job(job.job_id, watch_nothing)).status == "completed"

        async def ask(question: str, *turns: Turn) -> tuple[SearchOutcome, Turn]:
            outcome = await search_thread(askbook.searcher, resolve_question(question, turns), filters, 5, None)
            return outcome, Turn(question, tuple(map(to_cited, outcome.passages[:3])))

        def lesson(outcome: SearchOutcome) -> str:
            return Path(outcome.passages[0].chunk.source_file).stem

        first, imu = await ask("Which two kinds of error does an IMU have?")
        assert lesson(first) == "03-imu-and-noise"
        _, depth = await ask("How does a depth camera encode its depth?")

        # "It" is what the thread is about: the same question leads to another lesson.
        for thread, about in ((imu, "03-imu-and-noise"), (depth, "02-cameras-and-depth")):
            outcome, _ = await ask("How is it simulated?", thread)
            assert lesson(outcome) == about
            assert all(0.0 <= passage.score <= 1.0 for passage in outcome.passages)

        more, _ = await ask("Tell me more", imu)
        assert [one.chunk.id for one in more.passages] == [one.chunk.id for one in first.passages]

        second, _ = await ask("What does the second source say?", imu)
        assert second.passages[0].chunk.id == first.passages[1].chunk.id

        change, _ = await ask("What does a launch file do?", imu)
        assert lesson(change) == "02-parameters-and-launch"


@pytest.mark.parametrize("text", ["hello", "ok thanks", "Thank you very much!", "😀😀😀", "$$$ %%% !!!"])
def test_nobody_waits_for_an_answer_to_it(text: str) -> None:
    assert asks_nothing(text)


@pytest.mark.parametrize("text", ["why?", "tell me more", "go on", "and then?", "How do I say hello?", "示例"])
def test_what_is_short_may_ask_something(text: str) -> None:
    assert not asks_nothing(text)
