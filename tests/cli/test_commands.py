"""The commands, as a person runs them: a real process, its output, its exit code."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import processes
from askbook.book.reader import read_book, read_lessons
from index.tiny_onnx import OVERLAP, write_cross_encoder
from reading.tiny_readers import write_reader

Run = Callable[..., subprocess.CompletedProcess[str]]
ASKBOOK = [sys.executable, "-c", "from askbook.cli.main import run; run()"]


@pytest.fixture
def book(tmp_path: Path) -> Path:
    folder = tmp_path / "tea"
    (folder / "module-1-leaves").mkdir(parents=True)
    (folder / "module-1-leaves" / "01-green.md").write_text(
        "---\ntitle: Green tea\nhardware_tier: 1\n---\n# Green tea\n\n"
        "Green tea is steeped at 75 degrees for two minutes.\n"
    )
    (folder / "module-1-leaves" / "02-black.md").write_text(
        "---\ntitle: Black tea\nhardware_tier: 3\n---\n# Black tea\n\nBlack tea wants boiling water and four minutes.\n"
    )
    return folder


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ASKBOOK", "QDRANT", "DATABASE"))}
    return {**kept, "ASKBOOK_HOME": str(tmp_path / "home"), "COLUMNS": "120"}


@pytest.fixture
def askbook(tmp_path: Path, environment: dict[str, str]) -> Run:
    def run(*arguments: str | Path, **changes: str) -> subprocess.CompletedProcess[str]:
        return processes.run([*ASKBOOK, *arguments], cwd=tmp_path, env=environment | changes)

    return run


def test_ingest_then_search(askbook: Run, book: Path) -> None:
    ingested = askbook("ingest", book)
    assert ingested.returncode == 0, ingested.stderr
    assert "tea is up to date: 2 files processed" in ingested.stdout

    found = askbook("search", "how hot is the water for green tea?")
    assert found.returncode == 0
    first = found.stdout.strip().splitlines()[0]
    assert first.startswith("1. Tea ›") and "Green tea" in first
    assert "module-1-leaves/01-green.md:5–7" in found.stdout
    assert "*Green* *tea* is steeped at 75 degrees" in found.stdout


def test_json_is_one_object_with_the_fields_of_the_http_body(askbook: Run, book: Path) -> None:
    job = json.loads(askbook("ingest", book, "--json").stdout)
    assert job["status"] == "completed"
    assert {
        "job_id",
        "book_id",
        "mode",
        "files_processed",
        "files_skipped",
        "chunks_created",
        "chunks_deleted",
    } <= job.keys()
    assert {"started_at", "completed_at", "duration_seconds", "error_message"} <= job.keys()

    response = json.loads(askbook("search", "green tea", "--json").stdout)
    assert {"query", "results", "total_found", "hardware_tier_filter", "module_filter", "book_id"} <= response.keys()
    result = response["results"][0]
    seed = (
        "text score source_file section_title module chapter lesson hardware_tier proficiency_level layer chunk_index "
        "total_chunks parent_doc_id prev_chunk_id next_chunk_id content_hash"
    )
    assert set(seed.split()) <= result.keys()
    assert result["source_file"] == "module-1-leaves/01-green.md"
    scores = [result["score"] for result in response["results"]]
    assert scores == sorted(scores, reverse=True)

    listed = json.loads(askbook("jobs", "--json").stdout)["jobs"]
    assert [one["job_id"] for one in listed] == [job["job_id"]]
    assert json.loads(askbook("jobs", str(job["job_id"]), "--json").stdout) == listed[0]
    assert json.loads(askbook("verify", "--json").stdout)["agrees"] is True
    assert all(finding["state"] == "ok" for finding in json.loads(askbook("doctor", "--json").stdout)["findings"])


def test_doctor_tries_the_reranker_that_is_set(askbook: Run, tmp_path: Path) -> None:
    folder = write_cross_encoder(tmp_path / "my-ranker", OVERLAP)
    chosen = {"ASKBOOK_EMBEDDER": "none", "ASKBOOK_RERANKER": "local", "ASKBOOK_RERANKER_FOLDER": str(folder)}
    assert re.search(r"ok +reranker +my-ranker, first passage in", askbook("doctor", **chosen).stdout)
    (folder / "model.onnx").write_bytes(b"nonsense")
    told = askbook("doctor", **chosen)
    assert told.returncode == 0 and re.search(r"warning +reranker .*searches are not reranked", told.stdout)
    assert " reranker " not in askbook("doctor", ASKBOOK_EMBEDDER="none").stdout


def test_doctor_reads_with_the_reader_that_is_set(askbook: Run, tmp_path: Path) -> None:
    folder = write_reader(tmp_path / "my-reader")
    chosen = {"ASKBOOK_EMBEDDER": "none", "ASKBOOK_READER": str(folder), "COLUMNS": "300"}
    told = askbook("doctor", **chosen)
    assert told.returncode == 0
    assert re.search(r"ok +reader +tiny \(.*my-reader\), loaded in \d+ ms, one passage read in \d+ ms", told.stdout)

    (folder / "reader.onnx").write_bytes(b"nonsense")
    told = askbook("doctor", **chosen)
    assert told.returncode == 1 and re.search(r"broken +reader +The model in `my-reader` cannot be loaded", told.stdout)

    told = askbook("doctor", **chosen | {"ASKBOOK_READER": str(tmp_path / "nowhere")})
    assert told.returncode == 1 and "There is no reader.onnx in the folder `nowhere`" in told.stdout

    told = askbook("doctor", **chosen | {"ASKBOOK_READER": "none"})
    assert told.returncode == 0
    assert re.search(r"ASKBOOK_READER is none: there is no reader\n +Set ASKBOOK_READER=bundled\.\n", told.stdout)


def test_filters_reach_the_search(askbook: Run, book: Path) -> None:
    askbook("ingest", book)
    for arguments, files in (
        (("--tier", "2"), {"module-1-leaves/01-green.md"}),
        (("--lesson", "2"), {"module-1-leaves/02-black.md"}),
        (("--module", "leaves"), {"module-1-leaves/01-green.md", "module-1-leaves/02-black.md"}),
        (("--chapter", "4-9"), set()),
        (("--level", "A2", "--layer", "L1"), {"module-1-leaves/01-green.md", "module-1-leaves/02-black.md"}),
    ):
        results = json.loads(askbook("search", "tea", *arguments, "--json").stdout)["results"]
        assert {result["source_file"] for result in results} == files, arguments


def test_verify_tells_what_differs_and_repair_mends_it(askbook: Run, book: Path) -> None:
    askbook("ingest", book)
    (book / "module-1-leaves" / "03-white.md").write_text("# White tea\n\nWhite tea is barely processed.\n")
    told = askbook("verify")
    assert told.returncode == 1
    assert "03-white.md is in the folder, but not indexed" in told.stdout
    mended = askbook("verify", "--repair")
    assert mended.returncode == 0
    assert "folder, ledger and index agree (3 files" in mended.stdout


LAYOUTS = {
    "modules": ("module-1-a/chapter-1-x/01-one.md", "module-2-b/chapter-2-y/01-two.md", "README.md"),
    "in docs": ("docs/module-1-a/01-one.md", "docs/module-2-b/01-two.md", "docs/drafts/01-three.md"),
    "chapters": ("chapter-1-one/01-a.md", "chapter-2-two/01-b.md"),
    "plain": ("guide/start.md", "guide/deep/er/more.md", "reference/api.md", "about.md"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_init_changes_nothing_about_the_book(askbook: Run, tmp_path: Path, layout: str) -> None:
    folder = tmp_path / "book"
    for file in LAYOUTS[layout]:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(f"# {file}\n\nSome text of {file}.\n")
    before = [lesson.identity for lesson in read_lessons(folder, read_book(folder))[0]]
    made = askbook("init", folder)
    assert made.returncode == 0, made.stderr
    assert [lesson.identity for lesson in read_lessons(folder, read_book(folder))[0]] == before


def test_init_says_what_it_found_and_keeps_it(askbook: Run, tmp_path: Path) -> None:
    folder = tmp_path / "robots"
    config = (
        "site_name: Robots\nsite_url: https://robots.example.org\nnav:\n- index.md\n"
        "- Arms: [arms/long.md, arms/short.md]\n"
    )
    files = {"mkdocs.yml": config, "README.md": "# The repository", "docs/loose.md": "# Loose"}
    files |= {f"docs/{name}.md": f"# {name}\n\nSome text." for name in ("index", "arms/long", "arms/short")}
    for file, text in files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text)
    before = [(lesson.identity, lesson.url) for lesson in read_lessons(folder, read_book(folder))[0]]
    made = askbook("init", folder)
    assert made.returncode == 0, made.stderr
    told = " ".join(made.stdout.split())
    assert "MkDocs: found by mkdocs.yml; its navigation has 3 pages, in docs/, which has 1 more." in told
    assert "4 lessons in 2 modules" in told
    assert 'base_url = "https://robots.example.org"' in (folder / "askbook.toml").read_text()
    assert [(lesson.identity, lesson.url) for lesson in read_lessons(folder, read_book(folder))[0]] == before


def test_init_writes_a_file_that_ingest_understands(askbook: Run, book: Path) -> None:
    made = askbook("init", book)
    assert made.returncode == 0, made.stderr
    assert 'book_id = "tea"' in (book / "askbook.toml").read_text()
    assert askbook("init", book).returncode == 1
    assert askbook("ingest", book).returncode == 0


def test_mistakes_get_a_message_and_a_way_on(askbook: Run, book: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    twin = tmp_path / "other" / "tea"
    twin.mkdir(parents=True)
    (twin / "a.md").write_text("# A\n\nNot about tea at all.\n")
    for arguments, changes, words in (
        (("search", "tea"), {}, "there is no book yet"),
        (("ingest", tmp_path / "nowhere"), {}, "nowhere"),
        (("ingest", empty), {}, "no Markdown"),
        (("ingest", book), {"ASKBOOK_EMBEDDER": "magic"}, "ASKBOOK_EMBEDDER"),
        (("ingest", book), {"ASKBOOK_EMBEDDER": "openai"}, "OPENAI_API_KEY is not set"),
        (("ingest", book), {"ASKBOOK_HOME": "/dev/null/x"}, "/dev/null/x"),
        (("ingest", book), {"DATABASE_URL": "mysql://x/y"}, "mysql"),
        (("jobs", "77"), {}, "there is no job 77"),
    ):
        failed = askbook(*arguments, **changes)
        assert failed.returncode == 1, (arguments, failed.stdout)
        assert words in failed.stderr, (arguments, failed.stderr)
        assert "Traceback" not in failed.stderr

    assert askbook("ingest", book).returncode == 0
    for arguments, words in (
        (("search", "te"), "3 to 1000"),
        (("search", "x" * 1001), "3 to 1000"),
        (("search", "tea", "--limit", "21"), "limit is 1 to 20"),
        (("search", "tea", "--facet", "colour=red"), "no facet 'colour'"),
        (("search", "tea", "--tier", "0"), "the hardware tier 0"),
        (("search", "tea", "--tier", "9"), "1, 2, 3, 4"),
        (("search", "tea", "--level", "Z9"), "A1, A2, B1, B2, C1, C2"),
        (("search", "tea", "--layer", "l1"), "L1, L2, L3, L4"),
        (("search", "tea", "--module", "nope"), "It may be: leaves"),
        (("search", "tea", "--chapter", "5-2"), "before they begin"),
        (("search", "tea", "--book", "coffee"), "there is no book coffee"),
        (("ingest", twin), "already made from"),
    ):
        failed = askbook(*arguments)
        assert failed.returncode == 1, (arguments, failed.stdout)
        assert words in failed.stderr
    assert askbook("search", "tea", "--chapter", "three").returncode == 2
    assert askbook("brew").returncode == 2

    body = json.loads(askbook("search", "te", "--json").stdout)
    assert (body["error"], body["status_code"]) == ("validation_error", 400)


def test_a_second_process_is_told_who_has_the_data(
    askbook: Run, book: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    for number in range(60):
        (book / f"{number:02}-more.md").write_text(f"# Page {number}\n\n" + f"Words of page {number} on tea. " * 200)
    first = subprocess.Popen(
        [*ASKBOOK, "ingest", str(book)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    owner = tmp_path / "home" / "owner"
    while not (owner.exists() and owner.read_text()):
        time.sleep(0.02)
    second = askbook("search", "tea")
    assert second.returncode == 1
    assert f"process {first.pid}" in second.stderr
    jobs = askbook("jobs")
    assert jobs.returncode == 0
    first.communicate(timeout=120)
    assert first.returncode == 0
    assert askbook("search", "tea").returncode == 0


def _wait_until_running(database: Path) -> None:
    """Until the job's row says so; before that there is nothing to interrupt."""
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        with (
            contextlib.suppress(sqlite3.OperationalError),
            contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection,
        ):
            if connection.execute("SELECT 1 FROM jobs WHERE phase = 'embedding'").fetchone():
                return
        time.sleep(0.02)
    raise AssertionError("the job did not start")


def test_an_interrupted_ingestion_goes_on(askbook: Run, book: Path, environment: dict[str, str]) -> None:
    import signal

    for number in range(200):
        (book / f"{number:03}-more.md").write_text(f"# Page {number}\n\n" + f"Words of page {number} on tea. " * 40)
    # Four batches, a second each for one thread.
    slow = environment | {"ASKBOOK_EMBEDDER_THREADS": "1"}
    first = subprocess.Popen(
        [*ASKBOOK, "ingest", str(book)],
        env=slow,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Whatever is started in the background of a shell, these tests too, does not hear Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    _wait_until_running(Path(environment["ASKBOOK_HOME"]) / "askbook.db")
    first.send_signal(signal.SIGINT)
    _, stderr = first.communicate(timeout=240)
    assert first.returncode == 1
    assert "the same command goes on from there" in stderr
    job = json.loads(askbook("ingest", book, "--json").stdout)
    assert (job["job_id"], job["status"]) == (2, "completed")
    assert json.loads(askbook("jobs", "1", "--json").stdout)["error_message"].startswith("stopped")
    assert askbook("verify").returncode == 0


def test_hostile_text_cannot_command_the_terminal(askbook: Run, book: Path) -> None:
    (book / "evil.md").write_text("# Evil \x1b[2J\n\nThe evil kettle \x1b]0;owned\x07 rings \u202etwice.\n")
    askbook("ingest", book)
    shown = askbook("search", "evil kettle")
    assert shown.returncode == 0
    assert not set(shown.stdout) & {"\x1b", "\x07", "\u202e"}


def test_help_lists_every_command(askbook: Run) -> None:
    helped = askbook("--help").stdout
    for command in ("demo", "init", "ingest", "search", "jobs", "verify", "doctor"):
        assert command in helped
        assert "--help" in askbook(command, "--help").stdout
    assert askbook("--version").stdout.startswith("askbook ")


def test_settings_come_from_the_askbook_toml_of_the_working_folder(askbook: Run, book: Path, tmp_path: Path) -> None:
    (tmp_path / "askbook.toml").write_text('[settings]\naskbook_embedder = "none"\n')
    assert "keywords only" in askbook("ingest", book).stderr
    assert "keywords only" not in askbook("ingest", book, ASKBOOK_EMBEDDER="local").stderr
    (tmp_path / "askbook.toml").write_text('[settings]\ncolour = "red"\n')
    told = askbook("ingest", book)
    assert (told.returncode, "'colour'" in told.stderr) == (1, True)


def test_explain_shows_what_decided(askbook: Run, book: Path) -> None:
    askbook("ingest", book)
    told = askbook("explain", "How long is green tea steeped, and how hot is the water?")
    assert told.returncode == 0, told.stderr
    assert "the book answers it" in told.stdout and "Green tea" in told.stdout
    refused = askbook("explain", "Who won the chess olympiad?")
    assert refused.stdout.startswith("insufficient: not in the book")
    assert "never uses" in refused.stdout and "chess" in refused.stdout
    for number in range(6):
        (book / f"{number:02}-cup.md").write_text(f"# Cup {number}\n\nCup {number} is for tea number {number}.\n")
    askbook("ingest", book)
    refused = askbook("explain", "Who won the chess olympiad?")
    body = json.loads(askbook("explain", "Who won the chess olympiad?", "--json").stdout)
    assert body["refusal"] == "not_in_book" and body["confidence"]["should_answer"] is False
    assert body["confidence"]["num_chunks"] == 5 and len(body["nearest"]) == 3, "the refusal's own nearest sections"
    assert len(refused.stdout.split("Nearest:\n")[1].splitlines()) == 3
    raw = json.loads(askbook("explain", "green tea", "--json", ASKBOOK_CONFIDENCE="raw").stdout)
    assert raw["signals"]["chance_in_book"] is None
    assert [one["score"] for one in raw["nearest"]] == [max(one["similarity"], 0) for one in raw["nearest"]]


def test_calibrate_declines_a_book_of_two_pages(askbook: Run, book: Path) -> None:
    askbook("ingest", book)
    done = askbook("calibrate")
    assert done.returncode == 1
    assert "too small to calibrate on: 2 lessons" in done.stderr and "nothing was changed" in done.stderr


def test_calibrate_compares_with_what_was_in_force(askbook: Run, tmp_path: Path) -> None:
    book = tmp_path / "parts"
    book.mkdir()
    for part in ("gripper", "elbow", "knee", "camera", "battery", "compass", "antenna", "wheel"):
        for side in ("left", "right", "upper", "lower"):
            text = f"The {side} {part} is a part of the robot. Clean the {side} {part} with water, and dry the {part}."
            (book / f"{side}-{part}.md").write_text(f"# The {side} {part}\n\n{text}\n")
    askbook("ingest", book, ASKBOOK_EMBEDDER="none")
    first = askbook("calibrate", ASKBOOK_EMBEDDER="none")
    assert first.returncode == 0, first.stderr
    assert "Before, the calibration was the one that ships for keywords." in first.stdout
    again = askbook("calibrate", ASKBOOK_EMBEDDER="none").stdout
    assert "Before, the calibration was this book's own, of" in again
    assert again.count(": unchanged") == 1, "fitted from the one that ships, it comes out the same"
