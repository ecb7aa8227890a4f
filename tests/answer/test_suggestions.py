"""Questions to begin with are questions that the book answers; they go when it changes."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from askbook.answer.ask import get_reply
from askbook.answer.suggestions import KEPT, Suggester, make_questions
from askbook.domain import Answer, Filters, OutlineLesson, OutlineSection, Question
from askbook.errors import EmbedderUnavailable
from askbook.settings import Settings
from askbook.wiring import Askbook, open_askbook
from builders import copy_home, make_chunks, make_lesson
from index.scripted_server import Received, Reply, stand_in

DEMO = "physical-ai-robotics"


@pytest_asyncio.fixture
async def askbook(ingested_demo: Path, tmp_path: Path) -> AsyncIterator[Askbook]:
    home = copy_home(ingested_demo, tmp_path)
    async with open_askbook(Settings.model_validate({"askbook_home": home})) as askbook:
        yield askbook


def build_suggester(askbook: Askbook) -> Suggester:
    return Suggester(askbook.ledger, askbook.searcher, askbook.index, askbook.reader, askbook.calibrations)


async def test_each_is_answered_well(askbook: Askbook) -> None:
    began = time.perf_counter()
    questions = await build_suggester(askbook).suggest(DEMO)
    print(f"{len(questions)} questions in {time.perf_counter() - began:.1f} s: {questions}")
    assert len(questions) == KEPT == len(set(questions))
    for question in questions:
        reply = (await get_reply(askbook.ask(Question(question, Filters(DEMO))))).reply
        assert isinstance(reply, Answer) and reply.confidence
        assert reply.confidence.confidence_level == "high", question


async def test_they_are_kept_with_the_book_and_void_when_it_changes(askbook: Askbook) -> None:
    ledger = askbook.ledger
    [(book_id, revision)] = await ledger.load_unsuggested()
    assert (book_id, await ledger.load_suggestions(DEMO)) == (DEMO, ())
    await ledger.save_suggestions(DEMO, revision, ["What is a node?"])
    assert await ledger.load_suggestions(DEMO) == ("What is a node?",)
    assert await ledger.load_unsuggested() == []
    # Nothing was good enough: that is known too, and not tried again.
    await ledger.save_suggestions(DEMO, revision, [])
    assert await ledger.load_unsuggested() == []
    await ledger.recount_terms(DEMO, await ledger.load_terms(DEMO))
    assert await ledger.load_suggestions(DEMO) == ()
    assert [book_id for book_id, _ in await ledger.load_unsuggested()] == [DEMO]


async def test_a_book_that_answers_nothing_suggests_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "book"
    folder.mkdir()
    (folder / "01-todo.md").write_text("# Todo\n\nLorem ipsum dolor sit amet.\n")
    async with open_askbook(Settings.model_validate({"askbook_home": tmp_path / "home"})) as askbook:
        job = await askbook.jobs.submit("todo", str(folder), "incremental")
        await askbook.worker.run_job(job.job_id)
        for question in await build_suggester(askbook).suggest("todo"):
            reply = (await get_reply(askbook.ask(Question(question, Filters("todo"))))).reply
            assert isinstance(reply, Answer), question


async def test_half_a_search_measures_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "book"
    folder.mkdir()
    (folder / "01-gear.md").write_text("# Gears\n\nA gear is a wheel with teeth.\n")

    def embed(number: int, request: Received) -> Reply:
        if number:
            return Reply(status=500)
        return Reply(body={"embeddings": {"float": [[1.0] + [0.0] * 1023 for _ in request.body["texts"]]}})

    with stand_in(embed) as embedder:
        remote = {"askbook_embedder": "cohere", "cohere_api_key": "key", "cohere_base_url": embedder.url}
        async with open_askbook(Settings.model_validate({"askbook_home": tmp_path / "home", **remote})) as askbook:
            job = await askbook.jobs.submit("gears", str(folder), "incremental")
            await askbook.worker.run_job(job.job_id)
            with pytest.raises(EmbedderUnavailable):
                await build_suggester(askbook).suggest("gears")


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("A **topic** is a named stream of messages.", "What is a topic?"),
        ("White noise is the part that has no memory. Some white noise stays.", "What is white noise?"),
        ("Xacro is a macro language.", "What is Xacro?"),
        ("`ros2_control` is a framework.", "What is ros2_control?"),
        ("Quality of service (QoS) is the set of promises.", "What is Quality of service?"),
        # A name holds no article: this sentence speaks of the driver, not of what “On Linux the driver” would be.
        ("On Linux the driver is a package.", None),
        ("This is a sentence. where x is the place. It is the best.", None),
    ],
)
def test_definitions_are_asked_for(text: str, asked: str | None) -> None:
    lesson = OutlineLesson("m", "M", 1, "C", 1, "Streams", "", "01.md", "id", ())
    made = list(make_questions(lesson, make_chunks(make_lesson(text=text), text)))
    assert made[:-1] == ([asked] if asked else [])
    assert made[-1] == "What does the book say about Streams?"


def test_headings_that_ask_are_asked() -> None:
    sections = (
        OutlineSection("How to spawn a robot", 1),
        OutlineSection("Why so slow?", 1),
        OutlineSection("Notes", 1),
    )
    lesson = OutlineLesson("m", "M", 1, "C", 1, "Spawning", "", "01.md", "id", sections)
    assert list(make_questions(lesson, []))[:2] == ["How do I spawn a robot?", "Why so slow?"]
