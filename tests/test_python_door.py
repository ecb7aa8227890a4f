"""`from askbook import open_book`: the book in Python, with a loop and without, as docs/python.md shows it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import assert_type
from uuid import uuid4

import pytest

from answer.robots import LESSONS, write_lessons
from api.service import wait_until
from askbook import open_book
from askbook.domain import Answer, Delta, Passage, Refusal, Replied, Reply
from askbook.errors import AskbookError, DataInUse, InputError, NotFound
from askbook.lock import own_folder

ROOT = Path(__file__).parents[1]
QUESTION = "With what force does the gripper close?"


@pytest.fixture
def robots(tmp_path: Path) -> Path:
    return write_lessons(tmp_path / "robots", LESSONS)


@pytest.fixture
def home(robots: Path, tmp_path: Path) -> Path:
    with open_book(robots, home=tmp_path / "home") as book:
        book.ingest()
    return tmp_path / "home"


def test_importing_askbook_is_cheap() -> None:
    """Whoever reads its version pays for nothing else."""
    program = (
        "import sys, time; started = time.perf_counter(); import askbook; took = time.perf_counter() - started\n"
        "heavy = {'onnxruntime', 'sqlalchemy', 'pydantic', 'numpy', 'fastapi', 'askbook.python', 'asyncio'}\n"
        "print(f'{took * 1000:.0f} ms', sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    print(f"import askbook: {done.stdout.strip()}")
    assert done.stdout.strip().endswith(" []")


async def test_a_door_may_be_entered_again(home: Path) -> None:
    door = open_book("robots", home=home)
    for _ in range(2):
        async with door as book:
            assert isinstance(await book.ask(QUESTION), Answer)


def test_a_door_may_be_entered_again_without_a_loop(home: Path) -> None:
    door = open_book("robots", home=home)
    for _ in range(2):
        with door as book:
            assert isinstance(book.ask(QUESTION), Answer)


def test_a_mode_that_is_none_is_refused(home: Path) -> None:
    with open_book("robots", home=home) as book, pytest.raises(InputError, match="hybrid, dense, keyword"):
        book.search("gripper", mode="x")  # pyright: ignore[reportArgumentType]


async def test_with_a_loop(robots: Path, home: Path) -> None:
    async with open_book("robots", home=home) as book:
        reply = await book.ask(QUESTION)
        assert_type(reply, Reply)
        assert isinstance(reply, Answer) and "40 newtons" in reply.text
        source = reply.sources[0]
        page = (robots / source.passage.chunk.source_file).read_text(encoding="utf-8")
        assert page[source.start : source.end] == source.quote

        passages = await book.search("What does it do?", limit=3, lesson=2)
        assert_type(passages, tuple[Passage, ...])
        assert {one.chunk.source_file for one in passages} == {"02-lidar.md"}

        events = [event async for event in book.stream(QUESTION)]
        assert isinstance(events[-1], Replied)
        assert "".join(one.text for one in events if isinstance(one, Delta)) == events[-1].reply.text

        assert isinstance(await book.ask("Which yeast do I need for sourdough bread?"), Refusal)


async def test_without_await_and_in_a_notebook(home: Path) -> None:
    """A notebook has a loop that runs, as this test has; the book's own is in another thread."""
    before = set(threading.enumerate())
    thread_id = str(uuid4())
    with open_book("robots", home=home) as book:
        reply = book.ask(QUESTION, thread_id=thread_id)
        assert_type(reply, Reply)
        more = book.ask("Tell me more", thread_id=thread_id)
        assert isinstance(reply, Answer) and isinstance(more, Answer) and "gripper" in more.text
        assert len(book.search("lidar", limit=3)) == 3
        for event in book.stream(QUESTION):
            if isinstance(event, Delta):
                break
        assert isinstance([*book.stream(QUESTION)][-1], Replied)
    with own_folder(home):
        # A model's thread ends once it has read what the last question gave it.
        wait_until(lambda: not set(threading.enumerate()) - before)


def test_a_folder_becomes_a_book(robots: Path, tmp_path: Path) -> None:
    with open_book(robots, home=tmp_path, askbook_embedder="none") as book:
        with pytest.raises(NotFound, match="there is no book robots"):
            book.ask(QUESTION)
        assert book.ingest().files_total == len(LESSONS)
        assert book.ingest().chunks_created == 0
        assert "12 meters" in book.search("range of the lidar")[0].chunk.text
        (robots / "07-radio.md").write_text("# The radio\n\nThe radio reaches 300 meters.\n")
        assert book.ingest().chunks_created == 1
        assert book.search("radio")


def test_what_is_wrong_is_said_and_nothing_stays_open(robots: Path, tmp_path: Path) -> None:
    other = write_lessons(tmp_path / "other" / "robots", {"arm": "The arm has six joints."})
    home = tmp_path / "home"
    with open_book(robots, home=home, askbook_embedder="none") as book:
        book.ingest()
        with pytest.raises(InputError):
            book.search("lidar", module="cooking")
        with pytest.raises(DataInUse, match="in use"), open_book(robots, home=home, askbook_embedder="none"):
            pass
    wrong: list[tuple[type[AskbookError], str, str | Path, dict[str, object]]] = [
        (InputError, "no setting embedder", robots, {"embedder": "none"}),
        (InputError, "AGENT_TOP_K is wrong", robots, {"agent_top_k": 99}),
        (NotFound, "neither a folder nor a book novels", "novels", {}),
        (InputError, "already made from", other, {}),
    ]
    for kind, said, book, settings in wrong:
        with pytest.raises(kind, match=said), open_book(book, home=home, **{"askbook_embedder": "none", **settings}):
            pass
        with own_folder(home):
            pass


def test_the_examples_of_the_docs_run(tmp_path: Path) -> None:
    """In order, on one folder, as somebody would who types them in."""
    write_lessons(tmp_path / "your" / "folder", LESSONS)
    examples = re.findall(
        r"^```python\n(.*?)^```", (ROOT / "docs" / "python.md").read_text(encoding="utf-8"), re.M | re.S
    )
    assert len(examples) == 4
    said = _run("\nprint('=====')\n".join(examples), tmp_path).split("=====")
    assert "40 newtons" in said[0] and "01-gripper" in said[0]
    assert "The lidar turns ten times a second" in said[1]
    assert said[2].count("lidar") > 1
    assert "4096 ticks" in said[3]


def _run(example: str, folder: Path) -> str:
    environment = {**os.environ, "ASKBOOK_HOME": str(folder / "home")}
    done = subprocess.run(
        [sys.executable, "-c", example], capture_output=True, text=True, cwd=folder, env=environment, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
