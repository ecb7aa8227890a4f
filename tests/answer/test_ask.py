"""The one path, without a model: threads, selected text, readers, limits, deadlines, and how soon it speaks."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

from answer.robots import BOOK, open_with_model
from answer.scripted_model import quote
from askbook.answer.appraisal import READ_AT_ONCE
from askbook.answer.ask import HURRIED, get_reply
from askbook.domain import (
    Answer,
    Delta,
    Failed,
    Filters,
    PassagesFound,
    Question,
    Reader,
    Refusal,
    Replied,
    Searching,
    StateChanged,
)
from askbook.errors import DeadlinePassed, EmbedderUnavailable, InputError, NotFound
from askbook.index.embedders.base import Vector
from askbook.index.search import WORDS_ONLY, Searcher
from askbook.settings import Settings
from askbook.wiring import Askbook, open_askbook
from builders import copy_home
from figures import Figure

DEMO = "physical-ai-robotics"


@pytest.fixture
async def robots(ingested: Path, tmp_path: Path) -> AsyncIterator[Askbook]:
    async with open_askbook(Settings.model_validate({"askbook_home": copy_home(ingested, tmp_path)})) as askbook:
        yield askbook


async def ask(askbook: Askbook, text: str, **more: object) -> Replied:
    return await get_reply(askbook.ask(replace(Question(text, Filters(BOOK)), **more)))


# --- events ---------------------------------------------------------------------------------------


async def test_the_states_and_events_of_an_answer(robots: Askbook) -> None:
    events = [event async for event in robots.ask(Question("How far does the lidar see?", Filters(BOOK)))]

    states = [event.state for event in events if isinstance(event, StateChanged)]
    assert states == ["received", "validating", "processing", "retrieving", "generating", "completed"]
    kinds = [type(event) for event in events if not isinstance(event, StateChanged)]
    assert kinds[:2] == [Searching, PassagesFound]
    assert set(kinds[2:-1]) == {Delta} and kinds[-1] is Replied


async def test_a_failure_is_the_last_event(robots: Askbook) -> None:
    events = [event async for event in robots.ask(Question("x" * 1001, Filters(BOOK)))]

    assert isinstance(events[-1], Failed) and isinstance(events[-1].error, InputError)
    assert events[-2] == StateChanged("failed")


@pytest.mark.parametrize(
    "wrong",
    [
        {"text": "  "},
        {"text": "a" * 1001},
        {"top_k": 0},
        {"top_k": 11},
        {"threshold": 1.1},
        {"selected_text": " "},
        {"selected_text": "a" * 5001},
        {"thread_id": "not-a-uuid"},
    ],
)
async def test_what_is_out_of_its_limits_is_said(robots: Askbook, wrong: dict[str, object]) -> None:
    with pytest.raises(InputError):
        await get_reply(robots.ask(replace(Question("What is a lidar?", Filters(BOOK)), **wrong)))


async def test_a_book_that_is_not_there(robots: Askbook) -> None:
    with pytest.raises(NotFound):
        await get_reply(robots.ask(Question("What is a lidar?", Filters("nowhere"))))


async def test_a_threshold_that_nothing_reaches_refuses_and_names_it(robots: Askbook) -> None:
    replied = await ask(robots, "How far does the lidar see?", threshold=1.0)

    assert isinstance(replied.reply, Refusal)
    assert "threshold" in replied.reply.advice and replied.reply.nearest


async def test_the_account_tells_what_it_took(robots: Askbook) -> None:
    first = (await ask(robots, "How far does the lidar see?")).account
    again = (await ask(robots, "How far does the lidar see?")).account

    assert first.searched == "How far does the lidar see?"
    assert first.response_ms >= first.embedding_ms + first.retrieval_ms
    assert [one.results_count for one in first.retrievals] == [len(first.passages)] == [5]
    assert (first.cache_hit, again.cache_hit) == (False, True)


# --- threads --------------------------------------------------------------------------------------

TURNS = [
    ("How far does the lidar see?", "lidar"),
    ("Can it see glass?", "lidar"),
    ("Tell me more", "lidar"),
    ("How much does the battery hold?", "battery"),
    ("When must it be charged?", "battery"),
    ("What is the diameter of a wheel?", "wheel"),
    ("How many ticks does its encoder count?", "wheel"),
    ("How many pictures does the camera take?", "camera"),
    ("Does it see depth?", "camera"),
    ("What does the planner do without a map?", "planner"),
]


@pytest.mark.parametrize("with_model", [False, True], ids=["no model", "model"])
async def test_ten_turns_each_end_at_the_right_source(ingested: Path, tmp_path: Path, with_model: bool) -> None:
    home = copy_home(ingested, tmp_path)
    async with open_with_model(home, quote) as (askbook, _):
        askbook = askbook if with_model else replace(askbook, agent=None)
        thread_id = None
        for text, topic in TURNS:
            replied = await ask(askbook, text, thread_id=thread_id)
            thread_id = replied.account.thread_id
            assert isinstance(replied.reply, Answer), text
            assert topic in replied.reply.sources[0].passage.chunk.source_file, text
        assert thread_id is not None
        before = await askbook.threads.load(thread_id)
        assert (before.turn_count, len(before.messages)) == (10, 20)
        assert before.topic_summary

    async with open_askbook(Settings.model_validate({"askbook_home": home})) as askbook:
        assert await askbook.threads.load(thread_id) == before


async def test_sixty_messages_leave_fifty_live_and_all_readable(robots: Askbook) -> None:
    thread_id = None
    for _ in range(30):
        thread_id = (await ask(robots, "How far does the lidar see?", thread_id=thread_id)).account.thread_id

    assert thread_id is not None
    thread = await robots.threads.load(thread_id)
    assert (len(thread.messages), thread.archived_messages) == (50, 10)
    history = await robots.threads.load_history(thread_id)
    assert [message.archived for message in history] == [True] * 10 + [False] * 50


async def test_more_is_not_the_same_again(robots: Askbook) -> None:
    first = await ask(robots, "What is the range of the lidar?")
    more = await ask(robots, "Tell me more", thread_id=first.account.thread_id)

    assert isinstance(first.reply, Answer) and isinstance(more.reply, Answer)
    assert more.reply.sources[0].passage.chunk.source_file == first.reply.sources[0].passage.chunk.source_file
    assert all(source.quote not in first.reply.text for source in more.reply.sources)
    assert all(source.quote not in more.reply.text for source in first.reply.sources)


async def test_the_second_source(robots: Askbook) -> None:
    first = await ask(robots, "How often does the lidar turn, and how many pictures does the camera take?")
    assert isinstance(first.reply, Answer) and len(first.reply.sources) > 1
    second = first.reply.sources[1].passage.chunk.source_file
    more = await ask(robots, "Tell me more about the second source", thread_id=first.account.thread_id)

    assert isinstance(more.reply, Answer)
    assert more.reply.sources[0].passage.chunk.source_file == second
    none = await ask(robots, "Tell me more about the ninth source", thread_id=first.account.thread_id)
    assert isinstance(none.reply, Refusal) and none.reply.reason == "ambiguous"


@pytest.mark.parametrize("text", ["q" * 100, "q" * 1000, "asdfgh jklqwe", "How do I bake sourdough bread?"])
async def test_a_thread_does_not_carry_what_the_book_never_says(robots: Askbook, text: str) -> None:
    first = await ask(robots, "How far does the lidar see?")
    off = await ask(robots, text, thread_id=first.account.thread_id)
    assert isinstance(off.reply, Refusal) and off.reply.reason == "not_in_book"


@pytest.mark.parametrize("text", ["ok thanks", "hello", "😀😀😀", "$$$ %%% !!!"])
async def test_thanks_are_no_question(robots: Askbook, text: str) -> None:
    first = await ask(robots, "How far does the lidar see?")
    said = await ask(robots, text, thread_id=first.account.thread_id)
    assert isinstance(said.reply, Refusal) and said.reply.reason == "ambiguous"


@pytest.mark.parametrize("text", ["y", "n?", "?", "Q"])
async def test_a_letter_is_no_error(robots: Askbook, text: str) -> None:
    """Seeds 000 and 004 take one character; a search takes three, and a letter says nothing to search for."""
    before = await ask(robots, "How far does the lidar see?")
    for thread_id in (before.account.thread_id, None):
        said = await ask(robots, text, thread_id=thread_id)
        assert isinstance(said.reply, Refusal) and said.reply.reason == "ambiguous"


@pytest.mark.parametrize("text", ["go", "why"])
async def test_a_short_word_that_asks_for_more_is_answered(robots: Askbook, text: str) -> None:
    before = await ask(robots, "How far does the lidar see?")
    said = await ask(robots, text, thread_id=before.account.thread_id)
    assert isinstance(said.reply, Answer) and "lidar" in said.reply.sources[0].passage.chunk.text


# --- selected text, readers -----------------------------------------------------------------------


async def test_selected_text_is_all_the_book_there_is(robots: Askbook) -> None:
    selected = "Our lidar was changed. It now sees 30 meters far, and it turns slower."
    replied = await ask(robots, "How far does the lidar see?", selected_text=selected)

    assert isinstance(replied.reply, Answer)
    assert "30 meters" in replied.reply.text and "12 meters" not in replied.reply.text
    for source in replied.reply.sources:
        assert selected[source.start : source.end] == source.quote


async def test_selected_text_that_does_not_say(robots: Askbook) -> None:
    replied = await ask(robots, "How much does the battery hold?", selected_text="A robot needs a name.")

    assert isinstance(replied.reply, Refusal)


async def test_explain_this(robots: Askbook) -> None:
    replied = await ask(robots, "Explain this", selected_text="The planner replans twice a second.")

    assert isinstance(replied.reply, Answer)
    assert "twice a second" in replied.reply.text


async def test_a_reader_of_tier_one_is_shown_nothing_above(demo_home: Path) -> None:
    async with open_askbook(Settings.model_validate({"askbook_home": demo_home})) as askbook:
        question = Question("How is a policy trained in Isaac Lab?", Filters(DEMO))
        free = await get_reply(askbook.ask(question))
        bound = await get_reply(askbook.ask(replace(question, reader=Reader(hardware_tier=1, user_id="ada"))))
        thread = await askbook.threads.load(bound.account.thread_id or "")

    assert max(one.chunk.hardware_tier for one in free.account.passages) > 1
    assert all(one.chunk.hardware_tier == 1 for one in bound.account.passages)
    assert thread.metadata == {"user_id": "ada", "hardware_tier": 1}


# --- what fails, and how soon it speaks -----------------------------------------------------------


class Failing:
    """An embedder whose service is down."""

    name, dimension = "failing", 384

    async def embed_passages(self, texts: object) -> list[Vector]:
        raise EmbedderUnavailable("the embedding service does not answer", "Try again later.")

    async def embed_query(self, text: str) -> Vector:
        raise EmbedderUnavailable("the embedding service does not answer", "Try again later.")

    async def close(self) -> None: ...


async def test_a_question_that_names_its_place_is_answered_from_there(demo_home: Path) -> None:
    async with open_askbook(Settings.model_validate({"askbook_home": demo_home})) as askbook:
        replied = await get_reply(askbook.ask(Question("In the gazebo module, how is friction set?", Filters(DEMO))))
        assert {one.chunk.module for one in replied.account.passages} == {"gazebo"}


async def test_what_it_is_comes_from_the_passage_that_says_so(demo_home: Path) -> None:
    """Other passages speak of it more, and nearer to the question's words."""
    async with open_askbook(Settings.model_validate({"askbook_home": demo_home})) as askbook:
        replied = await get_reply(askbook.ask(Question("What is a URDF file?", Filters(DEMO))))
        assert "is an XML file that lists" in replied.reply.text


async def test_where_many_ask_at_once_the_search_answers_alone_and_says_so(robots: Askbook) -> None:
    assert robots.reader is not None
    robots.reader.askers += READ_AT_ONCE
    hurried = await get_reply(robots.ask(Question("How far does the lidar see?", Filters(BOOK))))
    robots.reader.askers -= READ_AT_ONCE
    read = await get_reply(robots.ask(Question("How far does the lidar see?", Filters(BOOK))))
    assert isinstance(hurried.reply, Answer) and HURRIED in hurried.reply.notices
    assert hurried.reply.confidence.chance is None
    assert isinstance(read.reply, Answer) and HURRIED not in read.reply.notices


async def test_without_an_embedder_that_answers_the_words_are_searched(robots: Askbook) -> None:
    down = Failing()
    askbook = replace(robots, embedder=down, searcher=Searcher(robots.index, down, robots.ledger))
    found = await ask(askbook, "How far does the lidar see?")
    selected = await ask(askbook, "How far does the lidar see?", selected_text="A lidar sees 12 meters far.")
    absent = await ask(askbook, "Which yeast do I need for sourdough bread?")

    assert isinstance(found.reply, Answer) and WORDS_ONLY in found.reply.notices
    assert isinstance(selected.reply, Answer) and WORDS_ONLY in selected.reply.notices
    assert isinstance(absent.reply, Refusal) and absent.reply.reason == "provider_down"


async def test_no_answer_in_time_is_an_error(robots: Askbook) -> None:
    settings = robots.settings.model_copy(update={"askbook_answer_seconds": 0.0001})
    with pytest.raises(DeadlinePassed):
        await ask(replace(robots, settings=settings), "How far does the lidar see?")


async def test_the_first_event_and_the_first_cited_sentence_come_soon(demo_home: Path, figure: Figure) -> None:
    questions = ("How are services different from topics?", "What does a launch file do?", "What is a costmap?")
    first_events: list[float] = []
    first_sentences: list[float] = []
    async with open_askbook(Settings.model_validate({"askbook_home": demo_home})) as askbook:
        # The first question loads the models.
        await get_reply(askbook.ask(Question("What is a node?", Filters(DEMO))))
        for text in questions:
            started, cpu = time.perf_counter(), time.process_time()
            async with aclosing(askbook.ask(Question(text, Filters(DEMO)))) as events:
                await anext(events)
                first_events.append((time.perf_counter() - started) * 1000)
                async for event in events:
                    if isinstance(event, Delta):
                        first_sentences.append((time.process_time() - cpu) * 1000)
                        assert "[1]" in event.text
                        break
    figure(
        f"first event after {max(first_events):.1f} ms; first cited sentence after "
        f"{median(first_sentences):.0f} ms CPU, at most {max(first_sentences):.0f}"
    )
    assert max(first_events) < 50
    assert median(first_sentences) < 450
