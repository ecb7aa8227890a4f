"""While a server has the data, the terminal goes through it: the same words, the same exit codes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import signal
import sqlite3
import stat
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.async_api import Page

import processes
from answer.robots import BOOK, LESSONS, ingest_books, write_lessons
from api.service import QUESTION, RIGHT, UNKNOWN, build_settings, wait_until
from askbook import __version__
from askbook.domain import Job
from askbook.ingest.pipeline import Step, Tally
from askbook.lock import own_folder
from askbook.python import open_book
from askbook.wiring import open_askbook, open_store
from builders import copy_home
from cli.serving import ASKBOOK, Server, build_environment, serve
from index.tiny_onnx import write_embedder
from web.browsing import find_chromium, open_browser, open_page
from web.chatting import ask

MINILM = "all-MiniLM-L6-v2-int8-fused/8x256"
QUESTIONS = """
- {id: force, question: "With what force does the gripper close?", lesson: 01-gripper.md}
- {id: glass, question: "What can the lidar not see?", lesson: 02-lidar.md}
- {id: yeast, question: "Which yeast do I need for sourdough bread?", not_in_book: true}
"""
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("search", "force of the gripper"),
    ("search", "force of the gripper", "--json"),
    ("search", "x"),
    ("ask", QUESTION),
    ("ask", QUESTION, "--json"),
    ("ask", UNKNOWN, "--verbose"),
    ("ask", QUESTION, "--book", "nowhere", "--json"),
    ("chat",),
    ("explain", QUESTION, "--json"),
    ("ingest", "robots", "--json"),
    ("ingest", "robots", "--mode", "recreate"),
    ("ingest", "nowhere"),
    ("jobs", "--json"),
    ("verify",),
    ("verify", "--repair", "--json"),
    ("calibrate",),
    ("eval", "questions.yaml", "--out", "report"),
    ("threads",),
    ("gaps", "--json"),
    ("backup", "all.askbook"),
)
"""A lesson was changed before `verify --repair`."""
VARIES = (
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?Z?)?",
    r'"(\w+_time_ms|duration_seconds)": [\d.e-]+',
    r"(embedding|retrieval|generation) \d+ ms",
    r"\d+\.\d s\b|\d+ s$",
    r" +\d+ +\d+ +\d+$",  # The times of `eval`.
    r"^[0-9a-f]{8}  ",  # A thread's short id.
)


def run(
    home: Path, *arguments: str, typed: str = "", cwd: Path | None = None, **more: str
) -> subprocess.CompletedProcess[str]:
    return processes.run(
        [*ASKBOOK, *arguments],
        typed=typed,
        cwd=cwd or home.parent,
        env=build_environment(home, COLUMNS="160", **more),
    )


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shelf")
    ingest_books(folder / "home", {BOOK: write_lessons(folder / "robots", LESSONS)})
    return folder


@pytest.fixture
def home(shelf: Path, tmp_path: Path) -> Path:
    return copy_home(shelf / "home", tmp_path)


@pytest.fixture
def server(home: Path) -> Iterator[Server]:
    with serve(home) as server:
        yield server


# --- the same words -------------------------------------------------------------------------------


def test_every_command_says_the_same(tmp_path: Path) -> None:
    """One home without a server and one with, from the same beginning; all commands, one after the other."""
    places = [_settle(tmp_path / name) for name in ("alone", "beside")]
    with serve(places[1] / "home"), ThreadPoolExecutor(2) as pool:
        alone, beside = pool.map(_run_all, places)
    for command, without, with_it in zip(COMMANDS, alone, beside, strict=True):
        assert with_it == without, command
    codes = {command: told[0] for command, told in zip(COMMANDS, beside, strict=True)}
    assert {command[0] for command, code in codes.items() if code} == {"search", "ask", "ingest", "verify", "calibrate"}


def _settle(place: Path) -> Path:
    """Both have their book in a folder of the same name, at the same depth."""
    place.mkdir()
    ingest_books(place / "home", {BOOK: write_lessons(place / "robots", LESSONS)})
    (place / "questions.yaml").write_text(QUESTIONS)
    return place


def _run_all(place: Path) -> list[tuple[int, str, str]]:
    told: list[tuple[int, str, str]] = []
    for command in COMMANDS:
        if command == ("verify",):
            (place / "robots" / "03-battery.md").write_text("# The battery\n\nIt holds 7 ampere hours.\n")
        done = run(place / "home", *command, typed=f"{QUESTION}\ntell me more\nq\n", cwd=place)
        assert "Traceback" not in done.stderr, done.stderr
        told.append((done.returncode, _steady(done.stdout, place), _steady(done.stderr, place)))
    return told


def _steady(text: str, place: Path) -> str:
    text = text.replace(str(place), "PLACE")
    text = re.sub(r"`askbook \w+.*?` \(process \d+\)", "SOMEBODY", text)
    for pattern in VARIES:
        text = re.sub(pattern, "~", text, flags=re.MULTILINE)
    return text


# --- who may --------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_the_owner_needs_no_key_and_nobody_else_gets_in(home: Path, host: str) -> None:
    async def make_keys() -> list[str]:
        async with open_store(build_settings(home)) as store:
            return [(await store.keys.create("ann", role))[1] for role in ("reader", "admin")]

    keys = asyncio.run(make_keys())
    with serve(home, "--host", host) as server, server.client() as client:
        found = run(
            home, "search", "force of the gripper", HTTP_PROXY="http://127.0.0.1:9", ALL_PROXY="http://127.0.0.1:9"
        )
        assert found.returncode == 0 and "newtons" in found.stdout, found.stderr
        for key in ("", "wrong", "é", *keys):
            for work in ("find", "vectors", "points", "ping", "jobs"):
                refused = client.post(f"/owner/{work}", headers={b"X-API-Key": key.encode()}, json=[])
                assert refused.status_code == 401, (work, key)
    assert stat.S_IMODE((home / "owner").stat().st_mode) == 0o600


def test_what_needs_the_data_for_itself_says_why(home: Path, server: Server) -> None:
    for command in (("serve", "--port", "0"), ("restore", "all.askbook")):
        if command[0] == "restore":
            assert run(home, "backup", "all.askbook").returncode == 0
        refused = run(home, *command)
        assert refused.returncode == 1 and "Traceback" not in refused.stderr
        assert f"`askbook serve --port 0` (process {server.process.pid}), at {server.url}" in refused.stderr
        assert "End that process" in refused.stderr


def test_an_index_that_the_server_uses_is_not_replaced(home: Path, server: Server, shelf: Path, tmp_path: Path) -> None:
    other = str(write_embedder(tmp_path / "embedder"))
    refused = run(home, "ingest", str(shelf / "robots"), "--mode", "recreate", ASKBOOK_EMBEDDER_FOLDER=other)
    assert refused.returncode == 1
    assert f"the server at {server.url} uses the index that is to be made anew" in refused.stderr
    assert "End it, run this again" in refused.stderr


def test_doctor_says_who_has_the_index(home: Path, server: Server) -> None:
    told = run(home, "doctor", "--json")
    findings = {one["part"]: one for one in json.loads(told.stdout)["findings"]}
    assert told.returncode == 0 and {one["state"] for one in findings.values()} == {"ok"}
    assert findings["index"]["message"].startswith(f"Qdrant Edge in the server at {server.url}")


def test_the_demo_leads_to_the_server_that_runs(home: Path, server: Server, shelf: Path) -> None:
    shown = run(home, "demo", str(shelf / "robots"), "--port", server.url.rpartition(":")[2])
    assert shown.returncode == 0, shown.stderr
    assert f"The page where readers ask is at {server.url}" in shown.stdout


# --- what may go wrong ----------------------------------------------------------------------------


def test_a_server_that_was_killed_is_not_looked_for(home: Path) -> None:
    with serve(home) as server:
        server.process.kill()
        server.process.wait()
        asked = run(home, "ask", QUESTION)
    assert asked.returncode == 0 and RIGHT in asked.stdout


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"version": "0.0.1"}, "is askbook 0.0.1, and this is"),
        ({"embedder": "another"}, "embeds with another, and the settings here name"),
        ({"collection": "other"}, "serves other, and the settings here name"),
        ({"more": 1}, "does not answer"),
    ],
)
def test_a_server_that_will_not_do_is_told(home: Path, told: dict[str, object], said: str) -> None:
    with own_folder(home):
        true = {"url": "http://127.0.0.1:9", "token": "x", "version": __version__, "collection": "askbook"}
        with (home / "owner").open("a") as handle:
            handle.write(json.dumps({**true, "embedder": MINILM, **told}))
        asked = run(home, "ask", QUESTION, "--json")
    assert asked.returncode == 1 and said in asked.stderr
    assert said in json.loads(asked.stdout)["message"], "one object on stdout, also of an error"


def test_jobs_that_the_server_does_not_do(home: Path, shelf: Path) -> None:
    with serve(home, ASKBOOK_WORKER="0"):
        refused = run(home, "ingest", str(shelf / "robots"))
    assert refused.returncode == 1 and "ASKBOOK_WORKER is 0. End the server, and run this again." in refused.stderr


def test_the_server_dies_during_an_ingestion(home: Path, demo_folder: Path) -> None:
    with serve(home) as server:
        ingesting = _start(home, "ingest", str(demo_folder))
        wait_until(lambda: _job_of(home).get("phase") == "embedding", 60)
        server.process.kill()
        _, said = ingesting.communicate(timeout=30)
    assert ingesting.returncode == 1
    assert f"the server at {server.url}, which has the data, does not answer" in said
    assert "run this again" in said and "Traceback" not in said
    again = run(home, "ingest", str(demo_folder))
    assert again.returncode == 0 and "is up to date" in again.stdout, again.stderr
    assert run(home, "verify", "--book", demo_folder.name).returncode == 0


def test_ctrl_c_leaves_the_job_to_the_server(home: Path, demo_folder: Path) -> None:
    with serve(home):
        ingesting = _start(home, "ingest", str(demo_folder))
        wait_until(lambda: _job_of(home).get("status") == "running", 60)
        ingesting.send_signal(signal.SIGINT)
        _, said = ingesting.communicate(timeout=30)
        assert ingesting.returncode == 1 and "stopped" in said and "Traceback" not in said
        again = run(home, "ingest", str(demo_folder))
        assert again.returncode == 0 and "is up to date" in again.stdout
        assert len(json.loads(run(home, "jobs", "--book", demo_folder.name, "--json").stdout)["jobs"]) <= 2


def _start(home: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [*ASKBOOK, *arguments]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=build_environment(home),
        # Whoever runs the tests in the background has Ctrl+C ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def _job_of(home: Path) -> dict[str, object]:
    """The newest."""
    with contextlib.closing(sqlite3.connect(home / "askbook.db")) as database:
        database.row_factory = sqlite3.Row
        row = database.execute("SELECT * FROM jobs ORDER BY job_id DESC").fetchone()
    return dict(row)


# --- in a program ---------------------------------------------------------------------------------


async def test_progress_is_seen_from_outside(home: Path, server: Server, demo_folder: Path) -> None:
    seen: list[tuple[str, int, int]] = []

    def watch(_job: Job, step: Step, tally: Tally) -> None:
        seen.append((step, tally.chunks_embedded, tally.chunks_to_embed))

    async with open_askbook(build_settings(home)) as askbook:
        assert askbook.server is not None and askbook.server.url == server.url
        job = await askbook.jobs.submit(demo_folder.name, str(demo_folder), "full")
        done = await askbook.worker.run_job(job.job_id, watch)
    assert done.status == "completed"
    embedded = [count for _, count, _ in seen]
    assert embedded == sorted(embedded) and len({*embedded}) > 2, "it grows"


async def test_python_goes_through_the_server_too(home: Path, server: Server) -> None:
    async with open_book(BOOK, home=home) as book:
        reply = await book.ask(QUESTION)
        assert RIGHT in reply.text and (await book.ingest()).status == "completed"
    assert server.process.poll() is None


# --- two people at once ---------------------------------------------------------------------------


async def test_two_terminals_and_a_page_at_once(home: Path, server: Server, demo_folder: Path) -> None:
    """Must show 3: server on, a terminal asking, a second one ingesting, the page open: all work, nothing is lost."""
    path = find_chromium()
    if path is None:
        pytest.skip("no chromium: apt-get install chromium")
    questions = ["With what force does the gripper close?", "What can the lidar not see?", "How many ticks in a turn?"]
    async with open_browser(path) as browser, open_page(browser, server.url) as watched:
        page = watched.page
        await page.goto(f"{server.url}/?book={BOOK}")
        await page.get_by_role("heading", name="What would you like to know?").wait_for()
        ingesting = asyncio.to_thread(run, home, "ingest", str(demo_folder), "--json")
        asking = asyncio.to_thread(lambda: [run(home, "ask", one, "--book", BOOK, "--json") for one in questions])
        reading = _ask_on_page(page, questions)
        ingested, asked, _ = await asyncio.gather(ingesting, asking, reading)
    job = json.loads(ingested.stdout)
    assert job["status"] == "completed" and job["chunks_embedded"] == job["chunks_created"] > 100
    answers = [json.loads(one.stdout) for one in asked]
    assert all(one.returncode == 0 for one in asked) and RIGHT in answers[0]["answer"]
    async with open_store(build_settings(home)) as store:
        kept = [await store.threads.load_history(one.thread_id) for one in await store.threads.load_all()]
    said = sorted(message.content for history in kept for message in history if message.role == "user")
    assert said == sorted(questions * 2), "every question of the terminal and of the page is kept"
    verified = run(home, "verify", "--book", demo_folder.name, "--json")
    assert json.loads(verified.stdout)["agrees"], verified.stdout
    found = run(home, "ask", "What is a URDF file?", "--book", demo_folder.name)
    assert found.returncode == 0 and "URDF" in found.stdout


async def _ask_on_page(page: Page, questions: Sequence[str]) -> None:
    for question in questions:
        await ask(page, question)
