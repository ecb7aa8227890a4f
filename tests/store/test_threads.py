"""Conversations are kept whole, in order, and for their owner alone; on SQLite and on PostgreSQL."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select

from askbook.domain import LIVE_MESSAGES, Cited, Message, Quote, Retrieval, Thread
from askbook.errors import InputError, NotFound
from askbook.store.database import Database, open_database
from askbook.store.schema import messages as message_rows
from askbook.store.schema import threads as thread_rows
from askbook.store.threads import Threads

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ID = "550e8400-e29b-41d4-a716-446655440000"


@dataclass
class Clock:
    now: datetime = NOON

    def __call__(self) -> datetime:
        return self.now

    def pass_time(self, **time: float) -> None:
        self.now += timedelta(**time)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def threads(database: Database, clock: Clock) -> Threads:
    return Threads(database, clock)


def asked(text: str, at: datetime = NOON) -> Message:
    return Message("user", text, at)


def said(text: str, at: datetime = NOON, **more: Any) -> Message:
    return Message("assistant", text, at, **more)


async def talk(threads: Threads, thread: Thread, turns: int, start: int = 1) -> Thread:
    now = threads.clock
    for number in range(start, start + turns):
        thread = await threads.save_exchange(thread, asked(f"Q{number}", now()), said(f"A{number}", now()))
    return thread


async def count_rows(database: Database) -> tuple[int, int]:
    async with database.reading() as connection:
        counts = [await connection.scalar(select(func.count()).select_from(one)) for one in (thread_rows, message_rows)]
    return counts[0] or 0, counts[1] or 0


# --- a conversation -------------------------------------------------------------------------------


async def test_nothing_is_written_before_the_first_exchange(threads: Threads, database: Database) -> None:
    thread = await threads.open(None, "book")
    assert uuid.UUID(thread.thread_id).version == 4
    assert (thread.messages, thread.turn_count, thread.archived_at) == ((), 0, None)
    assert await count_rows(database) == (0, 0)
    with pytest.raises(NotFound):
        await threads.load(thread.thread_id)


async def test_an_exchange_reads_back_as_it_was_said(threads: Threads) -> None:
    search = Retrieval("urdf format", 3, 0.71, NOON)
    question = asked("What is URDF?")
    answer = said(
        "An XML format [1].",
        NOON + timedelta(seconds=2.15),
        confidence=0.91,
        cited=(Cited("Chapter 4 › URDF", "URDF is XML.", "https://example.org/urdf#x", "chunk"), Cited("B", "b")),
        tool_calls=(search,),
    )
    thread = await threads.open(None, "book", metadata={"user_id": "u1"})
    saved = await threads.save_exchange(thread, question, answer, tokens_used=120, model="gpt-4o-mini")

    assert saved.messages == (question, answer)
    assert saved.retrieval_history == (search,)
    assert (saved.title, saved.turn_count, saved.tokens_used) == ("What is URDF?", 1, 120)
    assert (saved.model, saved.metadata, saved.topic_summary) == ("gpt-4o-mini", {"user_id": "u1"}, None)
    assert (saved.created_at, saved.updated_at) == (question.timestamp, answer.timestamp)
    assert await threads.load(thread.thread_id) == saved
    assert await threads.open(thread.thread_id, "book") == saved


async def test_a_refusal_is_an_answer_like_others(threads: Threads) -> None:
    refusal = said("I don't have information about that in the book content", refusal="not_in_book")
    saved = await threads.save_exchange(await threads.open(None, "book"), asked("Who won?"), refusal)
    assert saved.messages[1].refusal == "not_in_book"


async def test_tokens_and_searches_add_up_and_the_last_model_stays(threads: Threads) -> None:
    thread = await threads.open(None, "book")
    for number in range(30):
        search = Retrieval(f"query {number}", number, 0.5, NOON)
        thread = await threads.save_exchange(
            thread, asked("Q"), said("A", tool_calls=(search,)), tokens_used=10, model="m" if number == 3 else None
        )
    assert (thread.tokens_used, thread.turn_count, thread.model) == (300, 30, "m")
    assert [one.query for one in thread.retrieval_history] == [f"query {number}" for number in range(30)]


async def test_a_client_may_choose_the_id(threads: Threads) -> None:
    thread = await threads.open(ID.upper(), "book")
    assert thread.thread_id == ID
    await talk(threads, thread, 1)
    assert (await threads.load(ID)).turn_count == 1


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "7",
        "not-an-id",
        "../../etc/passwd",
        "550e8400-e29b-11d4-a716-446655440000",
        ID.replace("-", ""),
        f"{{{ID}}}",
    ],
)
async def test_an_id_that_is_no_uuid4_is_refused(threads: Threads, wrong: str) -> None:
    for call in (threads.open(wrong, "book"), threads.load(wrong), threads.load_history(wrong), threads.delete(wrong)):
        with pytest.raises(InputError):
            await call


async def test_the_title_is_the_first_question_cut(threads: Threads) -> None:
    long = "How does\n a robot " + "really " * 30 + "walk?"
    thread = await threads.save_exchange(await threads.open(None, "book"), asked(long), said("A"))
    assert len(thread.title) <= 80
    assert thread.title.startswith("How does a robot really") and thread.title.endswith("…")
    assert (await talk(threads, thread, 1)).title == thread.title


# --- alternation ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (said("A"), asked("Q")),
        (asked("Q"), asked("Q")),
        (asked(" "), said("A")),
        (asked("Q"), said("")),
        (replace(asked("Q"), confidence=0.5), said("A")),
    ],
)
async def test_only_a_question_with_its_answer_is_an_exchange(
    threads: Threads, database: Database, question: Message, answer: Message
) -> None:
    with pytest.raises(InputError):
        await threads.save_exchange(await threads.open(None, "book"), question, answer)
    assert await count_rows(database) == (0, 0)


async def test_an_exchange_that_fails_halfway_leaves_nothing(threads: Threads, database: Database) -> None:
    thread = await talk(threads, await threads.open(None, "book"), 1)
    with pytest.raises(InputError):
        await threads.save_exchange(thread, asked("Q2"), said("A2"), metadata={"note": "x" * 5000})
    assert await count_rows(database) == (1, 2)
    assert await threads.load(thread.thread_id) == thread


async def test_twenty_exchanges_at_once_are_all_kept_and_alternate(threads: Threads) -> None:
    """All of them found the thread empty, and all think that they are the first."""
    opened = [await threads.open(ID, "book") for _ in range(20)]
    await asyncio.gather(
        *(
            threads.save_exchange(
                thread, asked(f"Q{n}"), said(f"A{n}", NOON + timedelta(seconds=20 - n)), tokens_used=1
            )
            for n, thread in enumerate(opened)
        )
    )
    history = await threads.load_history(ID)
    assert len(history) == 40
    assert [one.role for one in history] == ["user", "assistant"] * 20
    assert {(q.content[1:], a.content[1:]) for q, a in zip(history[::2], history[1::2], strict=True)} == {
        (str(n), str(n)) for n in range(20)
    }
    assert [one.timestamp for one in history] == sorted(one.timestamp for one in history)
    thread = await threads.load(ID)
    assert (thread.turn_count, thread.tokens_used, thread.title) == (20, 20, history[0].content)
    assert thread.updated_at == history[-1].timestamp


async def test_a_cancelled_save_leaves_whole_exchanges(threads: Threads) -> None:
    thread = await talk(threads, await threads.open(ID, "book"), 1)
    for pause in range(10):
        task = asyncio.create_task(threads.save_exchange(thread, asked("Q"), said("A")))
        await asyncio.sleep(pause / 1000)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    history = await threads.load_history(ID)
    assert [one.role for one in history] == ["user", "assistant"] * (await threads.load(ID)).turn_count


# --- fifty live messages --------------------------------------------------------------------------


async def test_sixty_messages_leave_fifty_live_and_ten_archived(threads: Threads) -> None:
    thread = await talk(threads, await threads.open(None, "book"), 30)
    assert (len(thread.messages), thread.archived_messages) == (LIVE_MESSAGES, 10)
    assert (thread.messages[0].content, thread.messages[-1].content) == ("Q6", "A30")
    assert not any(one.archived for one in thread.messages)

    history = await threads.load_history(thread.thread_id)
    assert [one.content for one in history[::2]] == [f"Q{number}" for number in range(1, 31)]
    assert [one.archived for one in history] == [True] * 10 + [False] * 50
    assert history[10:] == thread.messages


async def test_fifty_messages_are_all_live(threads: Threads) -> None:
    thread = await talk(threads, await threads.open(None, "book"), 25)
    assert (len(thread.messages), thread.archived_messages) == (50, 0)


# --- an hour of silence ---------------------------------------------------------------------------


async def test_a_silent_thread_is_archived_and_the_next_exchange_resumes_it(threads: Threads, clock: Clock) -> None:
    quiet = await talk(threads, await threads.open(None, "book"), 2)
    clock.pass_time(minutes=59)
    busy = await talk(threads, await threads.open(None, "book"), 1)
    assert await threads.archive_idle() == 0
    clock.pass_time(minutes=2)
    assert await threads.archive_idle() == 1
    assert await threads.archive_idle() == 0
    assert (await threads.load(quiet.thread_id)).archived_at == clock.now
    assert (await threads.load(busy.thread_id)).archived_at is None

    opened = await threads.open(quiet.thread_id, "book")
    assert opened.archived_at is not None and opened.messages == quiet.messages
    resumed = await talk(threads, opened, 1, start=3)
    assert (resumed.archived_at, resumed.turn_count) == (None, 3)
    assert [one.content for one in resumed.messages] == ["Q1", "A1", "Q2", "A2", "Q3", "A3"]


async def test_silence_archives_whether_or_not_the_job_ran(threads: Threads, clock: Clock) -> None:
    thread = await talk(threads, await threads.open(None, "book"), 1)
    clock.pass_time(hours=1)
    assert (await threads.load(thread.thread_id)).archived_at is None
    clock.pass_time(seconds=1)
    for seen in (
        await threads.load(thread.thread_id),
        await threads.open(thread.thread_id, "book"),
        *(await threads.load_all()),
    ):
        assert seen.archived_at == NOON + timedelta(hours=1)


# --- whose it is ----------------------------------------------------------------------------------


async def test_a_foreign_thread_is_not_there(threads: Threads, database: Database) -> None:
    mine = await talk(threads, await threads.open(None, "book", owner="me"), 1)
    calls: list[Callable[[], Any]] = [
        lambda: threads.open(mine.thread_id, "book", owner="you"),
        lambda: threads.open(mine.thread_id, "other book", owner="me"),
        lambda: threads.load(mine.thread_id, "you"),
        lambda: threads.load(mine.thread_id),
        lambda: threads.load_history(mine.thread_id, "you"),
        lambda: threads.change(mine.thread_id, "you", "yours"),
        lambda: threads.delete(mine.thread_id, "you"),
        lambda: threads.find_id(mine.thread_id, "you"),
    ]
    for call in calls:
        with pytest.raises(NotFound) as refused:
            await call()
        assert refused.value.message == f"there is no thread {mine.thread_id}"
    assert await threads.load_all("you") == []
    assert await threads.load(mine.thread_id, "me") == mine


async def test_two_owners_who_choose_one_id_do_not_share_a_thread(threads: Threads) -> None:
    mine, yours = await threads.open(ID, "book", "me"), await threads.open(ID, "book", "you")
    await talk(threads, mine, 1)
    with pytest.raises(NotFound):
        await talk(threads, yours, 1)
    assert (await threads.load(ID, "me")).turn_count == 1


async def test_deleting_takes_every_row(threads: Threads, database: Database) -> None:
    kept = await talk(threads, await threads.open(None, "book"), 1)
    gone = await talk(threads, await threads.open(None, "book"), 30)
    await threads.delete(gone.thread_id)
    assert await count_rows(database) == (1, 2)
    for call in (threads.load(gone.thread_id), threads.load_history(gone.thread_id), threads.delete(gone.thread_id)):
        with pytest.raises(NotFound):
            await call
    assert await threads.load_all() == [replace(kept, messages=())]


async def test_an_answer_under_way_does_not_bring_a_deleted_thread_back(threads: Threads, database: Database) -> None:
    thread = await talk(threads, await threads.open(None, "book"), 1)
    await threads.delete(thread.thread_id)
    with pytest.raises(NotFound):
        await talk(threads, thread, 1)
    assert await count_rows(database) == (0, 0)


async def test_deleted_words_are_not_left_in_the_file(tmp_path: Path) -> None:
    database = await open_database(f"sqlite:///{tmp_path / 'askbook.db'}")
    threads = Threads(database)
    thread = await threads.save_exchange(await threads.open(None, "b"), asked("my s3cret question"), said("A" * 9000))
    await threads.delete(thread.thread_id)
    await database.close()
    for file in tmp_path.iterdir():
        assert b"s3cret" not in file.read_bytes()


async def test_a_name_takes_the_place_of_the_first_question(threads: Threads) -> None:
    thread = await talk(threads, await threads.open(None, "book"), 1)
    renamed = await threads.change(thread.thread_id, title="  Walking\nrobots ")
    assert renamed == replace(thread, title="Walking robots")
    assert (await talk(threads, renamed, 1)).title == "Walking robots"
    for wrong in ("", " \n", "x" * 81):
        with pytest.raises(InputError):
            await threads.change(thread.thread_id, title=wrong)


async def test_threads_are_listed_the_latest_first(threads: Threads, clock: Clock) -> None:
    ids = []
    for number in range(4):
        clock.pass_time(minutes=1)
        book = "tea" if number == 1 else "book"
        ids.append((await talk(threads, await threads.open(None, book, "me"), 1)).thread_id)
    clock.pass_time(minutes=1)
    await talk(threads, await threads.load(ids[0], "me"), 30)

    listed = await threads.load_all("me")
    assert [one.thread_id for one in listed] == [ids[0], ids[3], ids[2], ids[1]]
    assert (listed[0].messages, listed[0].turn_count, listed[0].archived_messages) == ((), 31, 12)
    assert [one.thread_id for one in await threads.load_all("me", "tea")] == [ids[1]]
    assert len(await threads.load_all("me", limit=2)) == 2


async def test_a_thread_is_found_by_the_beginning_of_its_id(threads: Threads) -> None:
    other = "550e9999-e29b-41d4-a716-446655440000"
    for thread_id in (ID, other):
        await talk(threads, await threads.open(thread_id, "book"), 1)
    assert await threads.find_id("550E8") == ID
    assert await threads.find_id(other) == other
    with pytest.raises(InputError, match="several"):
        await threads.find_id("550e")
    for wrong in ("", " ", "%", "_", "550e7", f"{ID}0", "\x00"):
        with pytest.raises(NotFound):
            await threads.find_id(wrong)


# --- metadata -------------------------------------------------------------------------------------


async def test_metadata_is_merged_and_what_comes_later_counts(threads: Threads) -> None:
    thread = await threads.open(ID, "book", metadata={"user_id": "u1", "hardware_tier": 2})
    await threads.save_exchange(thread, asked("Q"), said("A"), metadata={"tags": ["ros2", "urdf"], "hardware_tier": 3})
    opened = await threads.open(ID, "book", metadata={"layer": "L2"})
    expected = {"user_id": "u1", "hardware_tier": 3, "tags": ["ros2", "urdf"]}
    assert (await threads.load(ID)).metadata == expected
    assert opened.metadata == {**expected, "layer": "L2"}
    assert (await talk(threads, opened, 1)).metadata == {**expected, "layer": "L2"}


@pytest.mark.parametrize("wrong", [{"note": "é" * 2100}, {"score": float("nan")}, {"who": object()}])
async def test_metadata_that_is_too_large_or_no_json_is_refused_at_the_door(
    threads: Threads, wrong: dict[str, Any]
) -> None:
    with pytest.raises(InputError):
        await threads.open(None, "book", metadata=wrong)


async def test_metadata_may_not_grow_without_end(threads: Threads) -> None:
    thread = await threads.open(None, "book")
    with pytest.raises(InputError, match="4096"):
        for number in range(5):
            thread = await threads.save_exchange(thread, asked("Q"), said("A"), metadata={f"note {number}": "x" * 1000})
    assert (await threads.load(thread.thread_id)).turn_count == 4


# --- topics ---------------------------------------------------------------------------------------


async def test_topics_are_told_from_the_fifth_exchange_on_and_follow_the_talk(threads: Threads) -> None:
    urdf, sensors = Cited("Describing a robot › URDF", "…"), Cited("Simulating sensors › LiDAR", "…")
    thread = await threads.open(None, "book")
    for _ in range(4):
        thread = await threads.save_exchange(thread, asked("What is URDF?"), said("A", cited=(urdf,)))
    assert thread.topic_summary is None
    thread = await threads.save_exchange(thread, asked("And the joints?"), said("A", cited=(urdf,)))
    assert thread.topic_summary == "URDF; Describing a robot"
    for _ in range(6):
        thread = await threads.save_exchange(thread, asked("How does a lidar work?"), said("A", cited=(sensors,)))
    assert thread.topic_summary == "LiDAR; URDF; Simulating sensors; Describing a robot"
    assert (await threads.load_all())[0].topic_summary == thread.topic_summary


# --- after a restart ------------------------------------------------------------------------------


async def test_after_a_restart_everything_is_as_it_was(threads: Threads, clock: Clock) -> None:
    thread = await talk(threads, await threads.open(None, "book", metadata={"tags": ["a"]}), 30)
    history = await threads.load_history(thread.thread_id)
    url = threads.database.engine.url.render_as_string(hide_password=False)
    await threads.database.close()

    again = await open_database(url)
    reopened = Threads(again, clock)
    assert await reopened.load(thread.thread_id) == thread
    assert await reopened.load_history(thread.thread_id) == history
    await again.close()


async def test_times_come_back_in_utc(threads: Threads) -> None:
    there = datetime(2026, 3, 1, 23, 30, 0, 123456, tzinfo=timezone(timedelta(hours=9)))
    thread = await threads.save_exchange(await threads.open(None, "book"), asked("Q", there), said("A", there))
    loaded = await threads.load(thread.thread_id)
    for time in (loaded.created_at, loaded.updated_at, *(one.timestamp for one in loaded.messages)):
        assert time == there and time.tzinfo is UTC


# --- any text -------------------------------------------------------------------------------------


UNSTORABLE = {0, *range(0xD800, 0xE000)}
any_text = st.text(st.characters(codec=None), max_size=60)


def storable(text: str) -> str:
    return "".join("\ufffd" if ord(character) in UNSTORABLE else character for character in text)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(question=any_text, answer=any_text, cited=any_text, tag=any_text)
async def test_any_text_comes_back_and_what_cannot_be_stored_is_replaced(
    threads: Threads, question: str, answer: str, cited: str, tag: str
) -> None:
    """NUL and half characters would break PostgreSQL; they become U+FFFD, on both engines alike."""
    source, search = Cited(cited, cited, cited, cited, quotes=(Quote(cited, 3, 9),)), Retrieval(cited, 1, 0.5, NOON)
    reply = said(f".{answer}", cited=(source,), tool_calls=(search,))
    thread = await threads.open(None, "book", owner=tag, metadata={tag: [tag]})
    saved = await threads.save_exchange(thread, asked(f".{question}"), reply, model=tag)

    assert [one.content for one in saved.messages] == [storable(f".{question}"), storable(f".{answer}")]
    kept = storable(cited)
    assert saved.messages[1].cited == (Cited(kept, kept, kept, kept, quotes=(Quote(kept, 3, 9),)),)
    assert saved.retrieval_history == (Retrieval(kept, 1, 0.5, NOON),)
    assert (saved.metadata, saved.model) == ({storable(tag): [storable(tag)]}, storable(tag))
    assert await threads.load(saved.thread_id, tag) == saved
    assert await threads.change(saved.thread_id, tag, f".{tag}"[:80])
    assert saved.thread_id in [one.thread_id for one in await threads.load_all(tag, limit=1000)]
