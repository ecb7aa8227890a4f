"""ASKBOOK_ASK_SECONDS: how long a reader waits for a model before the book's own sentences answer."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from answer.robots import BOOK, open_with_model
from answer.scripted_model import Broken, Call, Reply, Request, Script, Turn, search
from askbook.answer.ask import MODEL_DOWN, SEARCH_SLOW, TOO_LONG, TOO_SLOW
from askbook.breaker import Breaker
from askbook.domain import Answer, Filters, Question, Replied
from askbook.wiring import Askbook
from figures import Figure
from index.scripted_server import Received, stand_in
from index.scripted_server import Reply as ServiceReply

QUESTION = "With what force does the gripper close?"
RIGHT = "The gripper closes with a force of 40 newtons"
LOOK = search("force of the gripper")
SECONDS, ENOUGH = 1.0, 1.5
"""The second where a model must have begun, or had its time, on busy cores too."""
BUSY = 5.0
"""So much longer may it take where the cores are busy. A model that hangs does so for a minute."""


@dataclass
class Seen:
    answer: Answer
    seconds: float


async def ask(askbook: Askbook, streamed: bool = False) -> Seen:
    started = time.monotonic()
    *_, replied = [one async for one in askbook.ask(Question(QUESTION, Filters(BOOK), streamed=streamed))]
    assert isinstance(replied, Replied) and isinstance(replied.reply, Answer)
    return Seen(replied.reply, time.monotonic() - started)


async def ask_once(
    home: Path, script: Script, streamed: bool = False, seconds: float = ENOUGH, **settings: Any
) -> Seen:
    async with open_with_model(home, script, askbook_ask_seconds=seconds, **settings) as (askbook, _):
        await askbook.warm()
        return await ask(askbook, streamed)


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
    seen = await ask_once(home, script)
    assert RIGHT in seen.answer.text and seen.answer.answered_by == "extractive"
    assert TOO_SLOW in seen.answer.notices
    assert ENOUGH <= seen.seconds < ENOUGH + BUSY
    figure(f"5: a model that hangs, budget {ENOUGH:g} s: the book's own sentences after {seen.seconds:.2f} s")


@pytest.mark.parametrize("delay", [0.7 * SECONDS, 1.2 * SECONDS], ids=["most of it", "all of it"])
@pytest.mark.parametrize("slow", [0, 1], ids=["the first search", "its own search"])
async def test_a_search_that_took_the_time_is_to_blame_for_it(home: Path, slow: int, delay: float) -> None:
    def rerank(number: int, request: Received) -> ServiceReply:
        scores = [{"index": at, "relevance_score": 0.5} for at in range(len(request.body["documents"]))]
        return ServiceReply(body={"results": scores}, delay=delay if number == slow else 0.0)

    with stand_in(rerank) as reranker:
        service: dict[str, Any] = {"askbook_reranker": "cohere", "cohere_api_key": "k", "cohere_base_url": reranker.url}
        script = [LOOK, Broken(how="hang")]
        seen = await ask_once(home, script, seconds=SECONDS, askbook_reranker_seconds=BUSY, **service)
    assert RIGHT in seen.answer.text and seen.answer.answered_by == "extractive"
    assert SEARCH_SLOW in seen.answer.notices and TOO_SLOW not in seen.answer.notices


def search_and_hang(words: str) -> Script:
    def play(_number: int, request: Request) -> Reply:
        return Broken(words, how="hang") if request.tool_outputs else LOOK

    return play


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    "script",
    [[Broken(how="hang")], search_and_hang(""), search_and_hang("The")],
    ids=["at once", "after its search", "after a word"],
)
async def test_a_model_that_hangs_again_and_again_is_left_alone(home: Path, script: Script, streamed: bool) -> None:
    breaker = Breaker(failures=2)
    async with open_with_model(home, script, breaker=breaker, askbook_ask_seconds=SECONDS) as (askbook, _):
        await askbook.warm()
        while not breaker.is_open:
            hung = await ask(askbook, streamed)
            assert {TOO_SLOW, SEARCH_SLOW} & {*hung.answer.notices}
        last = await ask(askbook, streamed)
    assert MODEL_DOWN in last.answer.notices


async def test_a_whole_answer_has_as_long_again_and_what_was_checked_stands(home: Path) -> None:
    words = f"{RIGHT} [1]. " + "A gripper must not lift more than 2 kilograms [1]. " * 40
    seen = await ask_once(home, [LOOK, Turn(words, pace=0.05)])
    assert seen.answer.answered_by == "model" and seen.answer.text.startswith(RIGHT)
    assert TOO_LONG in seen.answer.notices
    assert 2 * ENOUGH <= seen.seconds < 2 * ENOUGH + BUSY


async def test_a_streamed_answer_goes_on_while_the_model_writes(home: Path) -> None:
    words = f"{RIGHT} [1]. " + "A gripper must not lift more than 2 kilograms [1]. " * 7
    seen = await ask_once(home, [LOOK, Turn(words, pace=0.05)], streamed=True)
    assert seen.seconds > 2 * ENOUGH
    assert (seen.answer.answered_by, seen.answer.notices) == ("model", ())


async def test_a_streamed_answer_that_falls_silent_ends_with_what_was_checked(home: Path) -> None:
    seen = await ask_once(home, [LOOK, Broken(f"{RIGHT} [1]. A gripper must", how="hang")], streamed=True)
    assert seen.answer.text.startswith(RIGHT) and TOO_LONG in seen.answer.notices
    assert seen.seconds < 2 * ENOUGH + BUSY
