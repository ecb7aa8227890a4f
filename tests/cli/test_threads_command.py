"""`askbook threads`, as a person runs it, on conversations that were kept before."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import processes
from askbook.domain import Cited, Message, Retrieval
from askbook.settings import Settings
from askbook.store.threads import Threads
from askbook.wiring import open_store

Run = Callable[..., subprocess.CompletedProcess[str]]
SHORT = "550e8400-e29b-41d4-a716-446655440000"
LONG = "550e9999-e29b-41d4-a716-446655440000"
SOURCE = Cited("URDF › Links and joints", "A joint joins two links.", "https://example.org/urdf#joints", "c1")


async def _talk(threads: Threads, thread_id: str, book_id: str, turns: int, at: datetime) -> None:
    for number in range(1, turns + 1):
        question = Message("user", f"What is joint {number} \x1b[2J of URDF?", at)
        search = (Retrieval("joint", 3, 0.5, at),)
        answer = Message("assistant", f"Joint {number} moves [1].", at, 0.9, cited=(SOURCE,), tool_calls=search)
        thread = await threads.open(thread_id, book_id)
        await threads.save_exchange(thread, question, answer, tokens_used=7, metadata={"tags": ["ros2"]})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A long conversation of just now, and a short one of yesterday."""

    async def talk() -> None:
        now = datetime.now(UTC)
        async with open_store(Settings.model_validate({"askbook_home": tmp_path / "home"})) as store:
            await _talk(store.threads, SHORT, "tea", 1, now - timedelta(days=1))
            await _talk(store.threads, LONG, "robots", 30, now)

    asyncio.run(talk())
    return tmp_path / "home"


@pytest.fixture
def askbook(tmp_path: Path) -> Run:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return processes.run(
            [sys.executable, "-c", "from askbook.cli.main import run; run()", "threads", *arguments],
            cwd=tmp_path,
            env=os.environ | {"ASKBOOK_HOME": str(tmp_path / "home")},
        )

    return run


def test_without_a_conversation_it_says_how_to_start_one(askbook: Run) -> None:
    told = askbook()
    assert (told.returncode, "askbook ask" in told.stdout) == (0, True)
    assert json.loads(askbook("--json").stdout) == {"threads": []}


def test_the_list_shows_the_latest_first(askbook: Run, home: Path) -> None:
    first, of_first, second, of_second = askbook().stdout.splitlines()
    assert first.startswith("550e9999  What is joint 1") and "archived" not in first
    assert of_first.startswith(f"  {LONG} · robots · 30 turns · 20")
    assert second.startswith("550e8400  What is joint 1") and second.endswith("archived")
    assert of_second.startswith(f"  {SHORT} · tea · 1 turn · 20")
    assert [one["thread_id"] for one in json.loads(askbook("--json").stdout)["threads"]] == [LONG, SHORT]
    assert [one["thread_id"] for one in json.loads(askbook("--book", "tea", "--json").stdout)["threads"]] == [SHORT]


def test_a_thread_is_shown_whole_by_the_beginning_of_its_id(askbook: Run, home: Path) -> None:
    shown = askbook("550e9").stdout
    assert LONG in shown and "30 turns" in shown and "10 older messages archived" in shown and "210 tokens" in shown
    assert "Topics: Links and joints; URDF" in shown
    assert shown.index("You: What is joint 1 ") < shown.index("Agent: Joint 1 moves [1].") < shown.index("joint 30")
    assert "[1] URDF › Links and joints  https://example.org/urdf#joints" in shown
    assert "\x1b" not in shown


def test_json_is_the_conversation_thread_of_the_seed(askbook: Run, home: Path) -> None:
    body = json.loads(askbook(LONG, "--json").stdout)
    seed = "thread_id messages created_at updated_at topic_summary metadata"
    assert {*seed.split(), "title", "tokens_used", "retrieval_history", "archived_messages"} <= body.keys()
    assert (len(body["messages"]), body["archived_messages"], len(body["earlier_messages"])) == (50, 10, 10)
    assert {"role", "content", "timestamp", "confidence"} <= body["messages"][0].keys()
    assert [one["role"] for one in body["messages"]] == ["user", "assistant"] * 25
    assert [one["confidence"] for one in body["messages"][:2]] == [None, 0.9]
    assert (len(body["retrieval_history"]), body["metadata"]) == (30, {"tags": ["ros2"]})
    assert body["created_at"].endswith("Z") and body["updated_at"] == body["messages"][-1]["timestamp"]


def test_rename_and_delete(askbook: Run, home: Path) -> None:
    assert "Walking robots" in askbook("550e9", "--rename", "Walking robots").stdout
    assert json.loads(askbook("550e9", "--json").stdout)["title"] == "Walking robots"
    assert "deleted: Walking robots (30 turns)" in askbook("550e9", "--delete").stdout
    gone = askbook(LONG)
    assert (gone.returncode, f"there is no thread {LONG}" in gone.stderr) == (1, True)
    assert json.loads(askbook("550e8", "--delete", "--json").stdout) == {"thread_id": SHORT, "deleted": True}
    assert json.loads(askbook("--json").stdout) == {"threads": []}


def test_mistakes_get_a_message_and_a_way_on(askbook: Run, home: Path) -> None:
    for arguments, code, words in (
        (("550e",), 1, "several threads begin with 550e"),
        (("77",), 1, "there is no thread 77"),
        (("550e8", "--rename", ""), 1, "1 to 80 characters"),
        (("--delete",), 2, "say which thread"),
        (("550e8", "--delete", "--rename", "x"), 2, "do not go together"),
    ):
        told = askbook(*arguments)
        assert told.returncode == code, (arguments, told.stdout)
        assert words in told.stderr, (arguments, told.stderr)
        assert "Traceback" not in told.stderr
    assert len(json.loads(askbook("--json").stdout)["threads"]) == 2
