"""What a reader gets of each kind of model: one that cites, one that invents, one that fails. Real HTTP, both wires."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, Literal

import pytest

from answer.robots import BOOK, LESSONS, open_with_model
from answer.scripted_model import Broken, Call, Raw, Reply, Script, Status, Turn, say, search
from askbook.answer.ask import BROKEN_OFF, MODEL_DOWN, get_reply
from askbook.answer.citations import HALF
from askbook.domain import Answer, Delta, Filters, Question, Refusal, Replied, Tried
from builders import is_verbatim

Api = Literal["chat", "responses"]
QUESTION = "With what force does the gripper close?"
RIGHT = "The gripper closes with a force of 40 newtons"
LOOK = search("force of the gripper")


@pytest.fixture(params=["chat", "responses"])
def api(request: pytest.FixtureRequest) -> Api:
    return request.param


async def ask(home: Path, script: Script, api: Api, **settings: Any) -> tuple[Replied, list[object]]:
    """The reply, and every event before it; what was streamed is the text of the reply."""
    async with open_with_model(home, script, api, **settings) as (askbook, _):
        events = [event async for event in askbook.ask(Question(QUESTION, Filters(BOOK)))]
    replied = events[-1]
    assert isinstance(replied, Replied)
    if isinstance(replied.reply, Answer):
        assert "".join(event.text for event in events if isinstance(event, Delta)) == replied.reply.text
        assert all(is_verbatim(source) for source in replied.reply.sources)
    else:
        assert not any(isinstance(event, Delta) for event in events)
    return replied, list(events)


# --- what is right, and what is not ---------------------------------------------------------------


async def test_a_cited_answer(home: Path, api: Api) -> None:
    replied, _ = await ask(home, [LOOK, say(f"{RIGHT} [1].")], api)

    answer, account = replied.reply, replied.account
    assert isinstance(answer, Answer)
    assert answer.text.startswith(RIGHT) and "[1]" in answer.text
    assert (answer.answered_by, answer.removed, account.model) == ("model", (), "scripted")
    [source] = answer.sources
    assert source.quote.startswith(RIGHT)
    assert account.tokens_used > 0
    assert [one.query for one in account.retrievals] == [QUESTION, "force of the gripper"]


async def test_not_streamed_is_the_same(home: Path, api: Api) -> None:
    async with open_with_model(home, [LOOK, say(f"{RIGHT} [1].")], api) as (askbook, _):
        replied = await get_reply(askbook.ask(Question(QUESTION, Filters(BOOK))))

    assert isinstance(replied.reply, Answer)
    assert replied.reply.text.startswith(RIGHT)


async def test_a_citation_of_what_was_never_retrieved_is_replaced(home: Path, api: Api) -> None:
    replied, _ = await ask(home, [LOOK, say(f"{RIGHT} [99].")], api)

    assert isinstance(replied.reply, Answer)
    assert "[99]" not in replied.reply.text and "[1]" in replied.reply.text


WRONG = {
    "another number": "The gripper closes with a force of 45 newtons [1].",
    "another unit": "The gripper closes with a force of 40 kilograms [1].",
    "not, dropped": "A gripper must lift more than 2 kilograms [1].",
    "the other way round": "The soft gripper is faster than the vacuum gripper [1].",
    "another function": "Call `open_gripper()` to close it [1].",
    "an invention": "Its fingers were cut by hand in a small workshop near Osaka [1].",
}


@pytest.mark.parametrize("sentence", WRONG.values(), ids=WRONG)
async def test_a_sentence_that_its_source_does_not_support_is_taken_out(home: Path, api: Api, sentence: str) -> None:
    replied, _ = await ask(home, [LOOK, say(f"{RIGHT} [1]. {sentence}")], api)

    answer = replied.reply
    assert isinstance(answer, Answer)
    assert answer.text.startswith(RIGHT)
    assert len(answer.statements) == 1
    [removed] = answer.removed
    assert removed.verdict == "unsupported" and removed.why


@pytest.mark.parametrize("sentence", WRONG.values(), ids=WRONG)
async def test_an_answer_of_which_nothing_is_left_is_a_refusal(home: Path, sentence: str) -> None:
    replied, _ = await ask(home, [LOOK, say(sentence)], "chat")

    assert isinstance(replied.reply, Refusal)
    assert replied.reply.reason == "unverified"
    assert replied.reply.nearest


async def test_what_is_said_again_at_once_is_shown_once(home: Path, api: Api) -> None:
    replied, _ = await ask(home, [LOOK, say(f"{RIGHT} [1]. " * 9)], api)

    assert isinstance(replied.reply, Answer)
    assert replied.reply.text.count(RIGHT) == len(replied.reply.statements) == 1
    assert replied.reply.removed == ()


async def test_what_was_left_out_is_said(home: Path, api: Api) -> None:
    replied, _ = await ask(home, [LOOK, say(f"{RIGHT} [1]. {WRONG['an invention']} {WRONG['another number']}")], api)

    assert isinstance(replied.reply, Answer)
    assert "Two sentences were left out: the book does not support them." in replied.reply.notices


UNSURE = "It closes with 40 newtons of force when it is told to [1]."
YES, NO = (f'{{"verdicts": [{{"sentence": 1, "supported": {word}}}]}}' for word in ("true", "false"))


@pytest.mark.parametrize("said", [YES, NO, "Yes, it does.", '{"verdicts": []}', "", None])
async def test_the_model_judges_what_the_reader_is_not_sure_of(home: Path, api: Api, said: str | None) -> None:
    """Asked once, without tools, for JSON; whatever is no clear yes means no."""
    judgement: Reply = Status(500) if said is None else say(said)
    async with open_with_model(home, [LOOK, say(f"{RIGHT} [1]. {UNSURE}"), judgement], api) as (askbook, model):
        replied = await get_reply(askbook.ask(Question(QUESTION, Filters(BOOK))))

    assert isinstance(replied.reply, Answer)
    assert ("when it is told to" in replied.reply.text) == (said == YES)
    assert len(model.received) == 3
    asked = model.received[-1]
    assert "tools" not in asked.body
    case = json.loads(asked.messages[-1][1])
    assert [one["text"] for one in case["sentences"]] == [UNSURE.replace(" [1]", "")]
    [number] = case["sentences"][0]["passages"]
    assert LESSONS["gripper"] in next(one["text"] for one in case["passages"] if one["number"] == number)


async def test_the_reader_decides_alone_by_setting(home: Path, api: Api) -> None:
    script = [LOOK, say(f"{RIGHT} [1]. {UNSURE}"), say(NO)]
    async with open_with_model(home, script, api, askbook_check="reader") as (askbook, model):
        replied = await get_reply(askbook.ask(Question(QUESTION, Filters(BOOK))))

    assert isinstance(replied.reply, Answer)
    assert len(model.received) == 2


async def test_marked_by_setting(home: Path, api: Api) -> None:
    script = [LOOK, say(f"{RIGHT} [1]. {WRONG['an invention']}")]
    replied, _ = await ask(home, script, api, askbook_unsupported="mark")

    answer = replied.reply
    assert isinstance(answer, Answer)
    assert "Osaka" in answer.text and "[unsupported]" in answer.text
    assert [statement.verdict for statement in answer.statements] == ["verbatim", "unsupported"]


async def test_the_model_says_that_the_book_does_not(home: Path, api: Api) -> None:
    replied, _ = await ask(home, [LOOK, say("I don't have information about that in the book content")], api)

    assert isinstance(replied.reply, Refusal)
    assert replied.reply.reason == "not_in_book"


async def test_a_foreign_link_and_an_image_are_gone(home: Path, api: Api) -> None:
    text = f"{RIGHT} [1]. ![x](https://evil.example/p.png) See [this](https://evil.example/?q=1)."
    replied, _ = await ask(home, [LOOK, say(text)], api)

    assert isinstance(replied.reply, Answer)
    assert "evil.example" not in replied.reply.text


async def test_a_model_that_answers_without_searching_is_searched_for(home: Path, api: Api) -> None:
    replied, _ = await ask(home, [say("It closes with 99 newtons."), say(f"{RIGHT} [1].")], api)

    assert isinstance(replied.reply, Answer)
    assert "99" not in replied.reply.text and replied.reply.text.startswith(RIGHT)


async def test_the_gate_comes_before_the_model(home: Path, api: Api) -> None:
    async with open_with_model(home, [say("Sourdough needs wild yeast.")], api) as (askbook, model):
        question = Question("Which yeast do I need for sourdough bread?", Filters(BOOK))
        replied = await get_reply(askbook.ask(question))

    assert isinstance(replied.reply, Refusal)
    assert model.received == []


async def test_selected_text_is_all_that_the_model_is_told(home: Path, api: Api) -> None:
    selected = "The gripper of this robot closes with a force of 7 newtons."
    said = say("The gripper of this robot closes with 7 newtons [1].")
    async with open_with_model(home, [LOOK, said], api) as (askbook, model):
        replied = await get_reply(askbook.ask(Question(QUESTION, Filters(BOOK), selected_text=selected)))

    assert isinstance(replied.reply, Answer)
    assert "7 newtons" in replied.reply.text
    assert [result["chunk_text"] for result in model.received[-1].results] == [selected]


# --- what fails -----------------------------------------------------------------------------------

BAD_CALL = Turn(calls=(Call("{not json"),))
FAILING: dict[str, list[Reply]] = {
    "loops on the tool": [LOOK],
    "says nothing": [LOOK, say("")],
    "bad JSON": [LOOK, Raw(b"data: {oops\n\n")],
    "wrong schema": [LOOK, Raw(b'data: {"hello": "world"}\n\ndata: [DONE]\n\n')],
    "500": [Status(500)],
    "429 for longer than we wait": [Status(429, retry_after="3600")],
    "cut at once": [LOOK, Broken(how="cut")],
    "reset": [Broken(how="reset")],
    "the key is wrong": [Status(401)],
    "hangs": [LOOK, Broken(how="hang")],
}


@pytest.mark.parametrize("script", FAILING.values(), ids=FAILING)
async def test_the_book_answers_when_the_model_does_not(home: Path, api: Api, script: list[Reply]) -> None:
    started = time.monotonic()
    replied, events = await ask(home, script, api, askbook_generation_seconds=2)

    answer = replied.reply
    assert isinstance(answer, Answer)
    assert answer.answered_by == "extractive"
    assert MODEL_DOWN in answer.notices
    assert RIGHT in answer.text
    assert time.monotonic() - started < 8
    failed = [event for event in events if isinstance(event, Tried) and event.state == "failed_permanent"]
    assert failed or script[0] is LOOK


@pytest.mark.parametrize("retry_after", ["1", None])
async def test_a_model_that_comes_back_answers(home: Path, api: Api, retry_after: str | None) -> None:
    replied, events = await ask(home, [Status(429, retry_after=retry_after), LOOK, say(f"{RIGHT} [1].")], api)

    assert isinstance(replied.reply, Answer)
    assert replied.reply.answered_by == "model"
    states = [event.state for event in events if isinstance(event, Tried)]
    assert "retrying" in states and states[-1] == "succeeded"


async def test_half_a_stream_keeps_what_was_checked(home: Path, api: Api) -> None:
    replied, _ = await ask(home, [LOOK, Broken(f"{RIGHT} [1]. And it opens with", how="cut")], api)

    answer = replied.reply
    assert isinstance(answer, Answer)
    assert answer.text.startswith(RIGHT) and "opens" not in answer.text
    assert BROKEN_OFF in answer.notices


HALVES = {
    "no end": f"{RIGHT} [1]. A gripper must not lift",
    "half a number": f"{RIGHT} [1]. A gripper must not lift more than 2.",
    "half an item": f"{RIGHT} [1].\n\n- A gripper must not lift",
    "half a listing": f"{RIGHT} [1].\n\n```\nclose_gripper()",
}


@pytest.mark.parametrize("text", HALVES.values(), ids=HALVES)
async def test_half_a_sentence_is_not_shown(home: Path, api: Api, text: str) -> None:
    for reply in (Turn(text, too_long=True), Broken(text, how="cut")):
        replied, _ = await ask(home, [LOOK, reply], api)

        answer = replied.reply
        assert isinstance(answer, Answer)
        assert answer.text.startswith(RIGHT) and "lift" not in answer.text and "close_gripper()" not in answer.text
        assert [one.why for one in answer.removed] == [HALF]
        assert BROKEN_OFF in answer.notices


async def test_what_was_whole_when_the_tokens_ran_out_is_shown(home: Path, api: Api) -> None:
    replied, _ = await ask(home, [LOOK, Turn(f"{RIGHT} [1].", too_long=True)], api)

    assert isinstance(replied.reply, Answer)
    assert replied.reply.text.startswith(RIGHT)


async def test_arguments_that_cannot_be_read_are_told_to_the_model(home: Path, api: Api) -> None:
    replied, _ = await ask(home, [BAD_CALL, LOOK, say(f"{RIGHT} [1].")], api)

    assert isinstance(replied.reply, Answer)
    assert replied.reply.answered_by == "model"


async def test_a_reader_who_leaves_stops_the_model_and_leaves_nothing_behind(home: Path, api: Api) -> None:
    slow = Turn(f"{RIGHT} [1]. " + "And so on. " * 200, pace=0.05)
    async with open_with_model(home, [LOOK, slow], api) as (askbook, model):
        events = askbook.ask(Question(QUESTION, Filters(BOOK)))
        async for event in events:
            if isinstance(event, Delta):
                break
        left = time.monotonic()
        await events.aclose()
        while not model.left and time.monotonic() - left < 2:
            time.sleep(0.01)
        assert model.left and model.left[0] - left < 2
        assert await askbook.threads.load_all() == []
