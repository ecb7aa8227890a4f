"""The commands, as a person runs them: a real process, its output, its exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
ASKBOOK = [sys.executable, "-c", "from askbook.cli.main import run; run()"]


@pytest.fixture
def book(tmp_path: Path) -> Path:
    folder = tmp_path / "tea"
    (folder / "module-1-leaves").mkdir(parents=True)
    (folder / "module-1-leaves" / "01-green.md").write_text(
        "---\ntitle: Green tea\nhardware_tier: 1\n---\n# Green tea\n\nGreen tea is steeped at 75 degrees for two minutes.\n"
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
        return subprocess.run(
            [*ASKBOOK, *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment | changes,
            stdin=subprocess.DEVNULL,
            timeout=120,
        )

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
    seed = "text score source_file section_title module chapter lesson hardware_tier proficiency_level layer chunk_index total_chunks parent_doc_id prev_chunk_id next_chunk_id content_hash"
    assert set(seed.split()) <= result.keys()
    assert result["source_file"] == "module-1-leaves/01-green.md"
    scores = [result["score"] for result in response["results"]]
    assert scores == sorted(scores, reverse=True)

    listed = json.loads(askbook("jobs", "--json").stdout)["jobs"]
    assert [one["job_id"] for one in listed] == [job["job_id"]]
    assert json.loads(askbook("jobs", str(job["job_id"]), "--json").stdout) == listed[0]
    assert json.loads(askbook("verify", "--json").stdout)["agrees"] is True
    assert all(finding["state"] == "ok" for finding in json.loads(askbook("doctor", "--json").stdout)["findings"])


def test_filters_reach_the_search(askbook: Run, book: Path) -> None:
    askbook("ingest", book)
    for arguments, files in (
        (("--tier", "2"), {"module-1-leaves/01-green.md"}),
        (("--lesson", "2"), {"module-1-leaves/02-black.md"}),
        (("--module", "no-such"), set()),
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


def test_an_interrupted_ingestion_goes_on(askbook: Run, book: Path, environment: dict[str, str]) -> None:
    import signal

    for number in range(80):
        (book / f"{number:02}-more.md").write_text(f"# Page {number}\n\n" + f"Words of page {number} on tea. " * 200)
    first = subprocess.Popen(
        [*ASKBOOK, "ingest", str(book)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    time.sleep(3)
    first.send_signal(signal.SIGINT)
    _, stderr = first.communicate(timeout=60)
    assert first.returncode == 1
    assert "the same command goes on from there" in stderr
    job = json.loads(askbook("ingest", book, "--json").stdout)
    assert (job["job_id"], job["status"]) == (1, "completed")
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
