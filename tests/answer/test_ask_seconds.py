"""ASKBOOK_ASK_SECONDS: how long a reader waits for a model before the book's own sentences answer."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from answer.robots import BOOK, LESSONS, ingest_books, open_with_model, write_lessons
from answer.scripted_model import Broken, Call, Reply, Request, Script, Turn, search
from askbook.answer.ask import MODEL_DOWN, TOO_LONG, TOO_SLOW
from askbook.domain import Answer, Filters, Question, Replied
from builders import copy_home
from figures import Figure

QUESTION = "With what force does the gripper close?"
RIGHT = "The gripper closes with a force of 40 newtons"
LOOK = search("force of the gripper")
SECONDS = 1.5


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_lessons(tmp_path_factory.mktemp("robots"), LESSONS)
    return ingest_books(tmp_path_factory.mktemp("home"), {BOOK: folder})


@pytest.fixture
def home(ingested: Path, tmp_path: Path) -> Path:
    return copy_home(ingested, tmp_path)


@dataclass
class Seen:
    answer: Answer
    seconds: float


async def ask(home: Path, script: Script, streamed: bool = False, times: int = 1) -> list[Seen]:
    seen: list[Seen] = []
    async with open_with_model(home, script, askbook_ask_seconds=SECONDS) as (askbook, _):
        await askbook.warm()
        for _ in range(times):
            started = time.monotonic()
            *_, replied = [one async for one in askbook.ask(Question(QUESTION, Filters(BOOK), streamed=streamed))]
            assert isinstance(replied, Replied) and isinstance(replied.reply, Answer)
            seen.append(Seen(replied.reply, time.monotonic() - started))
    return seen


@pytest.mark.parametrize(
    "script",
    [
        [Broken(how="hang")],
        [LOOK, Broken(how="hang")],
        [Turn(calls=(Call('{"query": "force of the gripper"}'),), pace=5.0)],
    ],
    ids=["silent", "silent after its search", "slow to search"],
)
async def test_a_model_that_has_not_begun_by_then_is_left(home: Path, script: Script, figure: Figure) -> None:
    [seen] = await ask(home, script)
    assert RIGHT in seen.answer.text and seen.answer.answered_by == "extractive"
    assert TOO_SLOW in seen.answer.notices
    assert SECONDS <= seen.seconds < SECONDS + 1
    figure(f"5: a model that hangs, budget {SECONDS:g} s: the book's own sentences after {seen.seconds:.2f} s")


async def test_a_model_that_hangs_again_and_again_is_left_alone(home: Path) -> None:
    *early, last = await ask(home, [Broken(how="hang")], times=6)
    assert all(TOO_SLOW in one.answer.notices for one in early)
    assert MODEL_DOWN in last.answer.notices and last.seconds < 1


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("words", ["", "The"], ids=["after its search", "after a word"])
async def test_a_model_that_falls_silent_again_and_again_is_left_alone(home: Path, words: str, streamed: bool) -> None:
    def search_and_hang(_number: int, request: Request) -> Reply:
        return Broken(words, how="hang") if request.tool_outputs else LOOK

    *early, last = await ask(home, search_and_hang, streamed, times=6)
    assert all(TOO_SLOW in one.answer.notices for one in early)
    assert MODEL_DOWN in last.answer.notices and last.seconds < 1


async def test_a_whole_answer_has_as_long_again_and_what_was_checked_stands(home: Path) -> None:
    words = f"{RIGHT} [1]. " + "A gripper must not lift more than 2 kilograms [1]. " * 40
    [seen] = await ask(home, [LOOK, Turn(words, pace=0.05)])
    assert seen.answer.answered_by == "model" and seen.answer.text.startswith(RIGHT)
    assert TOO_LONG in seen.answer.notices
    assert 2 * SECONDS <= seen.seconds < 2 * SECONDS + 1


async def test_a_streamed_answer_goes_on_while_the_model_writes(home: Path) -> None:
    words = f"{RIGHT} [1]. " + "A gripper must not lift more than 2 kilograms [1]. " * 8
    [seen] = await ask(home, [LOOK, Turn(words, pace=0.05)], streamed=True)
    assert seen.seconds > 2 * SECONDS
    assert (seen.answer.answered_by, seen.answer.notices) == ("model", ())


async def test_a_streamed_answer_that_falls_silent_ends_with_what_was_checked(home: Path) -> None:
    [seen] = await ask(home, [LOOK, Broken(f"{RIGHT} [1]. A gripper must", how="hang")], streamed=True)
    assert seen.answer.text.startswith(RIGHT) and TOO_LONG in seen.answer.notices
    assert seen.seconds < 3 * SECONDS
