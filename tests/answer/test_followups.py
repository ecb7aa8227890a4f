"""What a question means in its thread: read without a model, then searched."""

from __future__ import annotations

import shutil
import time
from importlib.resources import files
from pathlib import Path

import pytest

from askbook.answer.calibration import Fingerprint, load_built_in
from askbook.answer.followups import TOPIC_WEIGHTS, Cited, Resolved, Turn, resolve_question, search_thread, to_cited
from askbook.book.chunker import CHUNKER_VERSION
from askbook.book.reader import read_book
from askbook.domain import LIMIT_MAX, QUERY_MAX, Filters, Passage, SearchMode, SearchOutcome, Signals
from askbook.index.ranking import Relevance
from askbook.ingest.worker import watch_nothing
from askbook.settings import Settings
from askbook.wiring import open_askbook
from builders import make_chunks, make_lesson

POLICIES = Cited("Quality of Service The policies", "Reliability: reliable sends again until it is acknowledged.")
OFFER = Cited("Quality of Service Offer and request", "A subscriber may ask for the same or less, never for more.")
IN_CODE = Cited("Quality of Service In code", "A latched profile is transient local with depth 1.")
ASKED = "Why does my subscriber get no messages from the lidar driver?"
THREAD = (Turn(ASKED, (POLICIES, OFFER, IN_CODE)),)


# --- reading --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "kind", "text"),
    [
        # Nothing is named: the earlier question is meant, and what is wanted of it.
        ("Tell me more", "bare", ASKED),
        ("go on", "bare", ASKED),
        ("Thanks! Anything else?", "bare", ASKED),
        ("and why?", "bare", f"{ASKED} why"),
        ("Can you give an example?", "bare", f"{ASKED} example"),
        ("What's the difference?", "bare", f"{ASKED} difference"),
        # A pronoun: the topic is put before it.
        ("Is it the same in simulation?", "refers", f"{POLICIES.title} Is it the same in simulation?"),
        ("How are they chosen?", "refers", f"{POLICIES.title} How are they chosen?"),
        ("Can I measure that without a network?", "refers", f"{POLICIES.title} Can I measure that without a network?"),
        ("Do those cost bandwidth?", "refers", f"{POLICIES.title} Do those cost bandwidth?"),
        ("What’s its default depth?", "refers", f"{POLICIES.title} What’s its default depth?"),
        # Half a question goes on where the last one stood.
        ("What about cameras?", "continues", f"{ASKED} What about cameras?"),
        ("and for arms?", "continues", f"{ASKED} and for arms?"),
        ("Transient local", "fragment", f"{POLICIES.title} Transient local"),
        ("any defaults?", "fragment", f"{POLICIES.title} any defaults?"),
        ("Which depth?", "fragment", f"{POLICIES.title} Which depth?"),
    ],
)
def test_a_follow_up_is_made_whole(question: str, kind: str, text: str) -> None:
    resolved = resolve_question(question, THREAD)
    assert (resolved.kind, resolved.text) == (kind, text)
    if kind != "bare":
        assert [(one.text, one.weight) for one in resolved.searches] == [
            (text, TOPIC_WEIGHTS[resolved.kind]),
            (question, 1.0),
        ]


@pytest.mark.parametrize(
    "question",
    [
        "How does a Nav2 controller follow a planned path?",
        "What is a VLA?",
        "Tell me about Whisper.",
        "Explain behaviour trees",
        "Is it possible to train a robot without a GPU?",
        "Which frame does a depth camera publish its pixels in, and how is that turned to the optical frame?",
        "Which planner that ships with Nav2 allows curves?",
        "Who should read this chapter?",
        "Which was the first one to walk upright, Atlas or Digit or Figure?",
        "What is the first source of drift in odometry?",
        "What does ranges[2] hold after filtering?",
    ],
)
def test_a_question_that_stands_alone_is_searched_as_it_is(question: str) -> None:
    resolved = resolve_question(question, THREAD)
    assert resolved.kind == "alone"
    assert [(one.text, one.weight) for one in resolved.searches] == [(question, 1.0)]


def test_a_whole_question_on_the_same_topic_only_leans_on_it() -> None:
    question = "Which subscriber profile fits a map that is published once?"
    resolved = resolve_question(question, THREAD)
    assert resolved.kind == "same_topic" and resolved.text == question
    assert TOPIC_WEIGHTS["same_topic"] < TOPIC_WEIGHTS["fragment"] < TOPIC_WEIGHTS["refers"] < 1
    assert [(one.text, one.weight) for one in resolved.searches] == [
        (question, 1.0),
        (f"{POLICIES.title} {question}", TOPIC_WEIGHTS["same_topic"]),
    ]


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


def test_what_is_asked_of_a_source_is_searched_with_it() -> None:
    assert resolve_question("Does source 1 mention deadlines?", THREAD).text.endswith("acknowledged. mention deadlines")


@pytest.mark.parametrize("question", ["the fourth source", "source 9", "the last one"])
def test_a_source_that_was_not_cited_is_not_meant(question: str) -> None:
    turns = (Turn(ASKED, ()),) if "last" in question else THREAD
    assert resolve_question(question, turns).meant is None


def test_a_first_question_is_never_a_follow_up() -> None:
    for question in ("Tell me more", "and why?", "the second one", "Is it safe?"):
        assert resolve_question(question, ()).kind == "alone"


def test_go_on_reaches_back_over_other_follow_ups() -> None:
    turns = (*THREAD, Turn("Is it the same in simulation?", (OFFER,)), Turn("go on", (OFFER,)))
    assert resolve_question("tell me more", turns).text == f"{POLICIES.title} Is it the same in simulation?"


def test_without_citations_the_earlier_question_is_the_topic() -> None:
    assert resolve_question("Is it free?", (Turn("What does Isaac Sim cost?"),)).text == (
        "What does Isaac Sim cost? Is it free?"
    )


def test_a_long_thread_of_refusals_stays_short_and_quick() -> None:
    turns = [Turn("What does Isaac Sim cost?"), *(Turn(f"And for robot {count}?") for count in range(60))]
    started = time.perf_counter()
    resolved = resolve_question("And why is it so?", turns)
    assert time.perf_counter() - started < 1.0
    assert len(resolved.text) <= QUERY_MAX and resolved.text.endswith("robot 59? why")


# --- searching ------------------------------------------------------------------------------------

CHUNKS = make_chunks(make_lesson(), *(f"passage {count}" for count in range(LIMIT_MAX + 2)))
BOOK = Filters("book")


class ScriptedSearcher:
    """Finds for each text the scores that it was given, best first."""

    def __init__(self, found: dict[str, dict[int, float]]) -> None:
        self.found = found
        self.asked: list[str] = []
        self.signals = Signals()

    async def search(
        self,
        text: str,
        filters: Filters,
        mode: SearchMode = "hybrid",
        limit: int = 5,
        threshold: float = 0.0,
        relevance: Relevance | None = None,
        *,
        rerank: bool = True,
    ) -> SearchOutcome:
        self.asked.append(text)
        ranked = sorted(self.found[text].items(), key=lambda pair: -pair[1])
        kept = [(at, score) for at, score in ranked if score >= threshold]
        passages = [Passage(CHUNKS[at], score, rank, score) for rank, (at, score) in enumerate(kept, start=1)]
        return SearchOutcome(text, filters, mode, tuple(passages[:limit]), len(kept), 1.0, 2.0, self.signals)

    async def rerank(self, outcome: SearchOutcome) -> SearchOutcome:
        return outcome


def scores_of(outcome: SearchOutcome) -> dict[int, float]:
    return {CHUNKS.index(passage.chunk): passage.score for passage in outcome.passages}


QUESTION = "How are they chosen?"
WHOLE = f"{POLICIES.title} {QUESTION}"


async def test_the_scores_of_both_searches_are_added() -> None:
    searcher = ScriptedSearcher({QUESTION: {0: 0.6, 1: 0.5}, WHOLE: {1: 0.8, 2: 0.9}})
    outcome = await search_thread(searcher, QUESTION, THREAD, BOOK)
    weight = TOPIC_WEIGHTS["refers"]
    added = {1: 0.5 + weight * 0.8, 2: weight * 0.9, 0: 0.6}
    assert scores_of(outcome) == pytest.approx({at: score / (1 + weight) for at, score in added.items()})
    assert [passage.rank for passage in outcome.passages] == [1, 2, 3]
    assert outcome.query == WHOLE and outcome.total_found == 3
    assert (outcome.embedding_ms, outcome.retrieval_ms) == (2.0, 4.0)
    # The raw scores are those of the question made whole, where it found the passage.
    assert [passage.similarity for passage in outcome.passages] == [0.8, 0.9, 0.6]


async def test_limit_and_threshold_hold_for_the_added_scores() -> None:
    searcher = ScriptedSearcher({QUESTION: {0: 0.6, 1: 0.5}, WHOLE: {1: 0.8, 2: 0.9}})
    one = await search_thread(searcher, QUESTION, THREAD, BOOK, limit=1)
    assert list(scores_of(one)) == [1] and one.total_found == 3
    strict = await search_thread(searcher, QUESTION, THREAD, BOOK, threshold=0.5)
    assert list(scores_of(strict)) == [1] and strict.total_found == 1


async def test_beyond_a_full_list_a_passage_counts_as_its_last() -> None:
    full = {at: 0.9 - at / 100 for at in range(LIMIT_MAX)}
    searcher = ScriptedSearcher({QUESTION: {LIMIT_MAX: 0.4}, WHOLE: full})
    outcome = await search_thread(searcher, QUESTION, THREAD, BOOK, limit=LIMIT_MAX)
    last, weight = full[LIMIT_MAX - 1], TOPIC_WEIGHTS["refers"]
    assert scores_of(outcome)[LIMIT_MAX] == pytest.approx((0.4 + weight * last) / (1 + weight))


async def test_a_topic_change_is_one_plain_search() -> None:
    question = "What is a VLA?"
    searcher = ScriptedSearcher({question: {3: 0.7}})
    assert scores_of(await search_thread(searcher, question, THREAD, BOOK)) == {3: 0.7}
    assert searcher.asked == [question]


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

        async def ask(question: str, *turns: Turn) -> tuple[SearchOutcome, Turn, Resolved]:
            outcome = await search_thread(askbook.searcher, question, turns, filters)
            cited = tuple(map(to_cited, outcome.passages[:3]))
            return outcome, Turn(question, cited), resolve_question(question, turns)

        def lesson(outcome: SearchOutcome, rank: int = 1) -> str:
            return Path(outcome.passages[rank - 1].chunk.source_file).stem

        first, imu, _ = await ask("Which two kinds of error does an IMU have?")
        assert lesson(first) == "03-imu-and-noise"
        _, depth, _ = await ask("How does a depth camera encode its depth?")

        # "It" is what the thread is about: the same question leads to another lesson.
        for thread, about in ((imu, "03-imu-and-noise"), (depth, "02-cameras-and-depth")):
            outcome, _, resolved = await ask("How is it simulated?", thread)
            assert resolved.kind == "refers" and lesson(outcome) == about
            assert all(0.0 <= passage.score <= 1.0 for passage in outcome.passages)

        more, _, _ = await ask("Tell me more", imu)
        assert [one.chunk.id for one in more.passages] == [one.chunk.id for one in first.passages]

        second, _, resolved = await ask("What does the second source say?", imu)
        assert resolved.meant == imu.cited[1]
        assert second.passages[0].chunk.id == first.passages[1].chunk.id

        change, _, _ = await ask("What does a launch file do?", imu)
        plain = await askbook.searcher.search("What does a launch file do?", filters)
        assert lesson(change) == "02-parameters-and-launch" and change.passages == plain.passages


async def test_what_a_thread_merges_keeps_the_confidence_of_its_question() -> None:
    """The mean of the relevances is the confidence, though the scores around it are new ones."""
    signals = Signals(similarity=0.5, coverage=0.9, score=0.4, mean_score=0.3, lead=0.0, chunks=200)
    calibration = load_built_in(Fingerprint("all-MiniLM-L6-v2-int8-fused/8x256", CHUNKER_VERSION))
    first = {0: 0.4, 1: 0.35, 2: 0.3, 3: 0.25, 4: 0.2}
    second = {0: 0.9, 1: 0.8, 2: 0.9, 3: 0.7, 4: 0.8}
    whole = resolve_question("Does it work on Jetson?", [Turn("What does Nav2 do?", ())])
    searcher = ScriptedSearcher({one.text: scores for one, scores in zip(whole.searches, (first, second), strict=True)})
    searcher.signals = signals
    outcome = await search_thread(
        searcher,
        "Does it work on Jetson?",
        [Turn("What does Nav2 do?", ())],
        Filters("book"),
        relevance=calibration.relevance,
    )
    relevances = [one.rating for one in outcome.passages]
    assert sum(relevances) / len(relevances) == pytest.approx(calibration.confidence(signals), abs=0.001)
    assert relevances == sorted(relevances, reverse=True)
    assert [one.rank for one in outcome.passages] == [1, 2, 3, 4, 5]
