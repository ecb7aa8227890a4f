"""`askbook keys` and `askbook gaps`, as a person runs them."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

import processes
from askbook.domain import Confidence, Message, Passage, Refusal
from askbook.settings import Settings
from askbook.wiring import Store, open_store
from builders import make_chunks, make_lesson

Run = Callable[..., subprocess.CompletedProcess[str]]
KEY = r"askbook_[0-9a-f]{12}_[A-Za-z0-9_-]{43}"


@pytest.fixture
def askbook(tmp_path: Path) -> Run:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return processes.run(
            [sys.executable, "-c", "from askbook.cli.main import run; run()", *arguments],
            cwd=tmp_path,
            env=os.environ | {"ASKBOOK_HOME": str(tmp_path / "home"), "ASKBOOK_EMBEDDER": "none"},
        )

    return run


# --- keys -----------------------------------------------------------------------------------------


def test_a_key_is_shown_once(askbook: Run) -> None:
    made = askbook("keys", "create", "--name", "Ann", "--role", "admin", "--tenant", "acme", "--book", "robots")
    assert made.returncode == 0, made.stderr
    assert re.fullmatch(KEY + "\n", made.stdout)
    assert "not shown again" in made.stderr and "askbook ingest FOLDER --book acme/robots" in made.stderr
    key = made.stdout.strip()
    listed = askbook("keys", "list")
    assert "“Ann”: admin, robots of acme" in listed.stdout and "never used" in listed.stdout
    for told in (listed.stdout, askbook("keys", "list", "--json").stdout):
        assert key not in told and key.split("_", 2)[2] not in told and key.split("_")[1] in told


def test_json_is_one_object(askbook: Run) -> None:
    made = json.loads(askbook("keys", "create", "--book", "tea", "--book", "robots", "--json").stdout)
    assert re.fullmatch(KEY, made.pop("key"))
    assert (made["role"], made["tenant"], made["books"]) == ("reader", "", ["tea", "robots"])
    assert json.loads(askbook("keys", "list", "--json").stdout) == {"keys": [made]}
    revoked = json.loads(askbook("keys", "revoke", made["key_id"], "--json").stdout)
    assert revoked["revoked_at"] is not None
    assert "revoked" in askbook("keys", "list").stdout


def test_mistakes_get_a_message_and_a_way_on(askbook: Run) -> None:
    assert "askbook keys create" in askbook("keys", "list").stdout
    for arguments, code, words in (
        (("create", "--tenant", "Ac me"), 1, "cannot be a tenant"),
        (("create", "--name", ""), 1, "1 to 80 characters"),
        (("create", "--book", "acme/robots"), 1, "without its tenant"),
        (("create", "--role", "king"), 2, "king"),
        (("revoke", "nobody"), 1, "there is no key nobody"),
        (("revoke",), 2, "key_id"),
    ):
        told = askbook("keys", *arguments)
        assert (told.returncode, words in told.stderr) == (code, True), (arguments, told.stderr)
        assert "Traceback" not in told.stderr


# --- gaps -----------------------------------------------------------------------------------------

PASSAGE = Passage(make_chunks(make_lesson(), "Leaves.")[0], 0.2, 1)
UNSURE = Confidence(0.2, 0.1, 0.3, 3, 0.5, "insufficient", False)


async def _refuse(store: Store, text: str, book_id: str, searched: str | None = None) -> None:
    now = datetime.now(UTC)
    refusal = Refusal("not_in_book", "I do not know", (PASSAGE,), "", UNSURE)
    thread = await store.threads.open(None, book_id)
    exchange = Message("user", text, now), Message("assistant", refusal.text, now)
    thread = await store.threads.save_exchange(
        thread,
        *exchange,
        along=lambda connection, saved: store.questions.save_asked(
            connection, saved, text, searched or text, refusal, False
        ),
    )
    if "price" in text:
        await store.questions.save_feedback(thread.thread_id, "", False, "It *costs*\nsomething [1]")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    async def ask() -> None:
        async with open_store(Settings.model_validate({"askbook_home": tmp_path / "home"})) as store:
            for text in ("How do I brew oolong?", "brew oolong how", "What is the price of \x1b[2J tea?"):
                await _refuse(store, text, "tea")
            await _refuse(store, "And by *whom*?", "acme/robots", searched="Who wrote it? And by *whom*?")

    asyncio.run(ask())
    return tmp_path / "home"


def test_without_an_open_question(askbook: Run) -> None:
    assert "No open question" in askbook("gaps").stdout
    assert json.loads(askbook("gaps", "--json").stdout) == {"gaps": [], "total": 0, "questions": 0}
    assert "Nothing" in askbook("gaps", "--markdown").stdout


def test_what_was_asked_most_is_told_first(askbook: Run, home: Path) -> None:
    told = askbook("gaps").stdout
    assert told.startswith("1. ") and "oolong" in told.splitlines()[0]
    assert "asked 2 times" in told and "1 thumb down" in told and "acme/robots" in told
    assert f"nearest: {' › '.join(PASSAGE.chunk.heading_path[1:])} · {PASSAGE.chunk.source_file}" in told
    assert "   in a thread: And by *whom*?" in told.splitlines()
    assert "\x1b" not in told


def test_gaps_as_json(askbook: Run, home: Path) -> None:
    body = json.loads(askbook("gaps", "--json", "--limit", "1").stdout)
    assert (body["total"], body["questions"], len(body["gaps"])) == (3, 4, 1)
    assert (body["gaps"][0]["count"], body["gaps"][0]["book_id"]) == (2, "tea")
    assert body["gaps"][0]["section"]["source_file"] == PASSAGE.chunk.source_file


def test_gaps_as_a_page_of_markdown(askbook: Run, home: Path) -> None:
    page = askbook("gaps", "--markdown").stdout
    assert page.startswith("# What the book could not answer\n\n## ")
    assert r"said of the answer: It \*costs\* something \[1\]" in page
    assert r"- in a thread: And by \*whom\*?" in page
    assert page.count("\n## ") == 3


def test_which_gaps(askbook: Run, home: Path) -> None:
    unknown = askbook("gaps", "--book", "nothing")
    assert (unknown.returncode, "there is no book nothing" in unknown.stderr) == (1, True)
    both = askbook("gaps", "--json", "--markdown")
    assert (both.returncode, "do not go together" in both.stderr) == (2, True)
