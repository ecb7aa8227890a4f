"""The third contract, field by field: the terminal, its sources footer, its settings; a scripted model behind it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from answer.scripted_model import ScriptedModel, Status, quote, scripted_model
from api.service import KEY, build_settings
from contracts.kinds import Kind, address, amount, many, nothing, one_of, share, table, text, utc_time, uuid4, whole
from contracts.terminal import Terminal
from contracts.textbook import QUESTION, REFUSAL, RIGHT, UNKNOWN

Ran = subprocess.CompletedProcess[str]
TYPED = [
    "How far does the lidar see?",
    "How much does the battery hold?",
    "When must it be charged?",
    "",
    UNKNOWN,
    "/help",
    "q",
]


def settings(model: ScriptedModel) -> dict[str, str]:
    return {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": model.url, "OPENAI_MODEL": "scripted"}


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    """It fails twice, then searches and quotes."""
    with scripted_model(lambda number, request: Status(500) if number < 2 else quote(number, request)) as model:
        yield model


@pytest.fixture(scope="module")
def asked(terminal: Terminal, model: ScriptedModel) -> Ran:
    return terminal.run("ask", QUESTION, "--json", "--verbose", AGENT_TOP_K="3", **settings(model))


@pytest.fixture(scope="module")
def reply(asked: Ran) -> dict[str, Any]:
    assert asked.returncode == 0, asked.stderr
    return json.loads(asked.stdout)


@pytest.fixture(scope="module")
def chatted(terminal: Terminal, reply: dict[str, Any]) -> Ran:
    """The same conversation, without the model: the book's own sentences."""
    told = terminal.run("chat", "--thread", reply["metadata"]["session_id"], typed="\n".join(TYPED) + "\n")
    assert told.returncode == 0, told.stderr
    return told


@pytest.fixture(scope="module")
def turns(chatted: Ran) -> list[str]:
    """What follows each prompt."""
    return chatted.stdout.split("You: ")[1:]


# --- one answer -----------------------------------------------------------------------------------

ANSWER: dict[str, Kind] = {
    "answer": lambda value: text(value) and RIGHT in value,
    "sources": many(table),
}
METADATA: dict[str, Kind] = {
    "model": one_of("scripted"),
    "tokens_used": lambda value: whole(value) and value > 0,
    "retrieval_count": lambda value: whole(value) and value >= 3,
    "created_at": utc_time,
}
RESULT: dict[str, Kind] = {"position": one_of(1, 2, 3), "similarity_score": share, "url": address, "content": text}


@pytest.mark.parametrize("name", ANSWER)
def test_answer(reply: dict[str, Any], name: str) -> None:
    assert ANSWER[name](reply[name])


@pytest.mark.parametrize("name", METADATA)
def test_metadata(reply: dict[str, Any], name: str) -> None:
    assert METADATA[name](reply["metadata"][name])


@pytest.mark.parametrize("name", RESULT)
def test_result(reply: dict[str, Any], name: str) -> None:
    assert [one[name] for one in reply["sources"] if not RESULT[name](one[name])] == []


def test_without_a_model_no_token_is_spent(client: httpx2.Client) -> None:
    told = client.post("/ask", json={"query": QUESTION}).json()
    assert (told["metadata"]["tokens_used"], nothing(told["metadata"]["model"])) == (0, True)
    assert amount(told["metadata"]["tokens_used"])


STATES = ["received", "validating", "processing", "retrieving", "generating", "completed"]


def test_every_state_of_a_request_is_told(asked: Ran) -> None:
    assert [line for line in asked.stderr.splitlines() if line in STATES] == STATES


def test_every_state_of_a_try_is_told(asked: Ran) -> None:
    tries = [line for line in asked.stderr.splitlines() if line.startswith("model call")]
    assert [re.sub(r"(model call \d: \w+).*", r"\1", line) for line in tries[:6]] == [
        "model call 1: pending",
        "model call 1: executing",
        "model call 1: retrying",
        "model call 2: executing",
        "model call 2: retrying",
        "model call 3: executing",
    ]
    assert tries[6] == "model call 3: succeeded"


def test_stdout_holds_the_answer_alone(asked: Ran, reply: dict[str, Any]) -> None:
    assert reply["refused"] is False and "received" not in asked.stdout


# --- a conversation -------------------------------------------------------------------------------

SOURCE_LINE = re.compile(r"^\[1\] (https://\S+) \(score: (\d\.\d\d)\)$", re.MULTILINE)


def test_a_reply_has_its_name_and_its_footer(turns: list[str]) -> None:
    for turn, fact in zip(turns[:3], ("12 meters", "5 ampere hours", "20 percent"), strict=True):
        said, line, footer = turn.partition("\n---\n**Sources:**\n")
        assert said.startswith("Agent: ") and fact in said and line
        found = SOURCE_LINE.search(footer)
        assert found and address(found[1]) and 0 <= float(found[2]) <= 1


def test_a_narrow_terminal_cuts_no_address(terminal: Terminal) -> None:
    shown = terminal.python(
        "import os, pty, sys\n"
        "os.environ |= {'COLUMNS': '40', 'TERM': 'dumb', 'NO_COLOR': '1'}\n"
        f"pty.spawn([sys.executable, '-c', 'from askbook.cli.main import run; run()', 'ask', {QUESTION!r}])"
    ).stdout
    assert SOURCE_LINE.search(shown.replace("\r", ""))


def test_a_refusal_has_no_footer(turns: list[str]) -> None:
    refusal = turns[4]
    assert refusal.startswith(f"Agent: {REFUSAL}") and "Sources" not in refusal


def test_an_empty_line_is_no_question(turns: list[str], chatted: Ran) -> None:
    assert (turns[3], "Type a question" in chatted.stderr) == ("", True)


@pytest.fixture(scope="module")
def thread(terminal: Terminal, turns: list[str]) -> dict[str, Any]:
    """As the terminal says that one goes on with it."""
    found = re.search(r"--thread (\S+)", turns[-1])
    assert found
    return json.loads(terminal.run("threads", found[1], "--json").stdout)


def test_the_conversation_is_kept_in_order(thread: dict[str, Any]) -> None:
    assert uuid4(thread["thread_id"]) and utc_time(thread["created_at"])
    assert [one["content"] for one in thread["messages"][::2]] == [QUESTION, *TYPED[:3], UNKNOWN]
    assert [one["role"] for one in thread["messages"]] == ["user", "assistant"] * 5
    assert all(utc_time(one["timestamp"]) for one in thread["messages"])
    assert [bool(one["tool_calls"]) for one in thread["messages"]] == [False, True] * 5


def test_the_model_of_a_conversation_is_kept(thread: dict[str, Any], reply: dict[str, Any]) -> None:
    assert thread["thread_id"] == reply["metadata"]["session_id"]
    assert (thread["model"], thread["tokens_used"]) == ("scripted", reply["metadata"]["tokens_used"])


def test_the_model_is_told_a_conversation_in_its_own_form(model: ScriptedModel, reply: dict[str, Any]) -> None:
    last = model.received[-1].items
    assert [one["role"] for one in last] == ["system", "user", "assistant", "tool"]
    assert last[3]["tool_call_id"] == last[2]["tool_calls"][0]["id"]


# --- settings -------------------------------------------------------------------------------------

LIMITS: dict[str, tuple[object, list[object], list[object]]] = {
    "openai_api_key": (None, [], []),
    "openai_model": ("gpt-4o-mini", ["gpt-4o"], [""]),
    "agent_top_k": (5, [1, 10], [0, 11]),
    "agent_score_threshold": (0.0, [0.0, 1.0], [-0.1, 1.1]),
    "agent_max_turns": (50, [1, 50], [0, 51]),
}


@pytest.mark.parametrize("name", LIMITS)
def test_setting(tmp_path: Path, name: str) -> None:
    default, good, bad = LIMITS[name]
    assert getattr(build_settings(tmp_path), name) == default
    for value in good:
        assert getattr(build_settings(tmp_path, **{name: value}), name) == value
    for value in bad:
        with pytest.raises(ValueError, match=name):
            build_settings(tmp_path, **{name: value})


def test_the_environment_is_read(reply: dict[str, Any], model: ScriptedModel) -> None:
    """AGENT_TOP_K was 3, and the key and the model were named there too."""
    assert reply["metadata"]["chunk_count"] == 3
    assert model.received[0].headers["authorization"] == f"Bearer {KEY}"
    assert model.received[0].tool["parameters"]["properties"]["top_k"]["default"] == 3
