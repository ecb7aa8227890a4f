"""AGENT_MAX_TURNS: so many earlier turns count, those that are archived too."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from answer.robots import BOOK, open_with_model
from answer.scripted_model import say, search
from askbook.answer.ask import get_reply
from askbook.domain import Filters, Message, Question
from builders import copy_home

ASKED = 40


@pytest.mark.parametrize("most", [10, 25, 26, 35, 50])
async def test_so_many_turns_are_told(ingested: Path, tmp_path: Path, most: int) -> None:
    home = copy_home(ingested, tmp_path)
    script = [search("gripper"), say("The gripper closes with a force of 40 newtons [1].")]
    async with open_with_model(home, script, agent_max_turns=most) as (askbook, model):
        thread = await askbook.threads.open(None, BOOK)
        for number in range(ASKED):
            asked = Message("user", f"Question {number}?", datetime.now(UTC))
            thread = await askbook.threads.save_exchange(thread, asked, Message("assistant", "No.", datetime.now(UTC)))
        question = Question("With what force does the gripper close?", Filters(BOOK), thread.thread_id)
        await get_reply(askbook.ask(question))
    told = [text for role, text in model.received[0].messages if role == "user"]
    assert told[:-1] == [f"Question {number}?" for number in range(ASKED - min(most, ASKED), ASKED)]
