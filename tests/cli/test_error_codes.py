"""Seed 002's error codes, in the terminal: what is wrong can be looked up, and told apart by a script."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import processes
from api.service import KEY
from askbook.errors import (
    CODES,
    EmbedderUnavailable,
    IndexUnavailable,
    InputError,
    ModelUnavailable,
    RerankerUnavailable,
)
from index.scripted_server import Reply, stand_in

ASK = ("ask", "How far does the lidar see?")


def run(home: Path, *arguments: str, **changes: str) -> str:
    """What it says on stderr; it fails."""
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": os.environ.get("PYTHONPATH", ""), "ASKBOOK_HOME": str(home)}
    command = [sys.executable, "-c", "from askbook.cli import run; run()", *arguments]
    done = processes.run(command, env={**env, **changes})
    assert done.returncode == 1, done.stdout
    return done.stderr


def test_configuration_is_e001(tmp_path: Path) -> None:
    assert "error E001: the setting AGENT_TOP_K is wrong" in run(tmp_path, *ASK, AGENT_TOP_K="99")
    assert "error E001: COHERE_API_KEY is not set" in run(tmp_path, *ASK, ASKBOOK_EMBEDDER="cohere")


def test_nothing_ingested_is_e002(tmp_path: Path) -> None:
    assert "error E002: there is no book yet" in run(tmp_path, *ASK)
    assert "error E002: there is no book nope" in run(tmp_path, *ASK, "--book", "nope")


def test_qdrant_is_e003(tmp_path: Path) -> None:
    with stand_in(lambda _number, _request: Reply(500)) as qdrant:
        assert "error E003: " in run(tmp_path, *ASK, QDRANT_URL=qdrant.url)


def test_an_empty_question_is_e005(ingested_demo: Path) -> None:
    assert "error E005: The question is empty" in run(ingested_demo, "ask", " ")
    assert "error E005: The question is empty" in run(ingested_demo, "chat", "-q", "")


@pytest.mark.parametrize(
    ("embedder", "code"), [("openai", "E004"), ("cohere", "E006")], ids=["OpenAI is E004", "Cohere is E006"]
)
def test_a_vendor_has_its_code(tmp_path: Path, embedder: str, code: str) -> None:
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "gears.md").write_text("# Gears\n\nGear one turns four times a minute.\n", encoding="utf-8")
    with stand_in(lambda _number, _request: Reply(401)) as vendor:
        chosen = {
            "ASKBOOK_EMBEDDER": embedder,
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": vendor.url,
            "OPENAI_EMBEDDING_MODEL": "unknown",
            "COHERE_API_KEY": KEY,
            "COHERE_BASE_URL": vendor.url,
            "COHERE_MODEL": "unknown",
        }
        assert "refused the key" in run(tmp_path / "home", "ingest", str(tmp_path / "book"), **chosen)
        said = run(tmp_path / "home", "search", "gear one", "--mode", "dense", **chosen)
    assert f"error {code}: " in said


def test_other_errors_have_none_and_each_code_is_told() -> None:
    assert InputError("top_k is 1 to 10").code is None
    assert EmbedderUnavailable("the weights are damaged").code is None
    assert (ModelUnavailable("down").code, IndexUnavailable("down").code) == ("E004", "E003")
    assert RerankerUnavailable("down", code="E006").code == "E006"
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    assert all(f"| `{code}` | {what} |" in page for code, what in CODES.items())
