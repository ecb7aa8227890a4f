"""`askbook eval`, as a docs site's CI runs it: a small book, its questions, a report, an exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

import processes

ASKBOOK = [sys.executable, "-c", "from askbook.cli.main import run; run()"]
Run = Callable[..., subprocess.CompletedProcess[str]]

HOSTILE = '</title><script>alert("x")</script><img src=x onerror=alert(1)>'
LESSONS = {
    "green": "Green tea is steeped at 75 degrees for two minutes; boiling water makes it bitter.",
    "black": "Black tea is fully oxidised and wants boiling water and four minutes.",
    "white": "White tea is made of young buds and is barely processed at all.",
    "oolong": "Oolong is half oxidised and can be steeped many times in a small pot.",
    "matcha": "Matcha is ground to a powder and beaten with a bamboo whisk.",
    "rooibos": "Rooibos comes from a South African shrub and holds no caffeine.",
    "storage": "Keep leaves in a tin: light, air and moisture spoil them within weeks.",
    "hostile": f"The kettle says {HOSTILE} when it whistles.",
}
QUESTIONS = f"""
- {{id: bitter, question: "Why does my green tea taste bitter?", lesson: green.md}}
- {{id: powder, question: "Which one is whisked?", lesson: matcha.md}}
- {{id: tin, question: "How do I keep the leaves fresh?", lesson: [storage.md, white.md]}}
- {{id: kettle, question: 'What does the kettle say? {HOSTILE}', lesson: hostile.md, note: '{HOSTILE}'}}
- {{id: wrong, question: 'What says the kettle when it whistles {HOSTILE}', lesson: storage.md}}
- {{id: cup, question: "Who won the world cup in 1998?", not_in_book: true}}
"""


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the book `tea` ingested and its questions beside it."""
    folder = tmp_path_factory.mktemp("shelf")
    (folder / "tea").mkdir()
    for name, text in LESSONS.items():
        (folder / "tea" / f"{name}.md").write_text(f"# {name.title()}\n\n{text}\n")
    (folder / "questions.yaml").write_text(QUESTIONS)
    done = _run(folder, "ingest", "tea")
    assert done.returncode == 0, done.stderr
    return folder


def _run(folder: Path, *arguments: str | Path, **changes: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ASKBOOK", "QDRANT", "DATABASE"))}
    return processes.run(
        [*ASKBOOK, *arguments],
        cwd=folder,
        env=kept | {"ASKBOOK_HOME": str(folder / "home"), "COLUMNS": "160"} | changes,
    )


@pytest.fixture(scope="module")
def first_run(shelf: Path) -> subprocess.CompletedProcess[str]:
    return _run(shelf, "eval", "questions.yaml", "--junit", "ci/junit.xml", "--fail-under", "0.6")


def test_one_table_beside_the_baselines(shelf: Path, first_run: subprocess.CompletedProcess[str]) -> None:
    assert first_run.returncode == 0, first_run.stderr
    for system in ("askbook", "search", "BM25", "MiniLM", "RRF"):
        assert system in first_run.stdout
    figures = json.loads((shelf / "askbook-eval" / "figures.json").read_text())
    (tea,) = figures["sets"]
    assert (tea["questions"], tea["answerable"], tea["files"]) == (6, 5, 8)
    assert tea["retrieval"]["askbook"]["hit5"] >= 0.8
    assert tea["trust"]["auc"]["not_in_book"] > 0.9
    assert (tea["trust"]["judged_by"], tea["left_out"]) == ("page", 0)
    assert tea["latency"]["cpu_p95_ms"] > 0
    rows = [json.loads(line) for line in (shelf / "askbook-eval" / "run.jsonl").read_text().splitlines()]
    assert rows[0]["retrieved"][0] == "green.md"
    assert {"score", "similarity", "keyword_score"} <= rows[0]["passages"][0].keys()


def test_junit_has_a_case_for_each_question(shelf: Path, first_run: subprocess.CompletedProcess[str]) -> None:
    suite = ElementTree.parse(shelf / "ci" / "junit.xml").getroot()[0]
    assert (suite.get("name"), suite.get("tests"), suite.get("skipped")) == ("questions", "6", "0")
    cases = {case.get("name"): case for case in suite}
    assert cases["bitter"].find("failure") is None
    assert cases["cup"].find("failure") is None, "refused, as it should be"
    assert int(suite.get("failures", "0")) == sum(case.find("failure") is not None for case in suite)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def test_the_page_is_whole_and_runs_nothing(shelf: Path, first_run: subprocess.CompletedProcess[str]) -> None:
    html = (shelf / "askbook-eval" / "report.html").read_text()
    tags = _Tags()
    tags.feed(html)
    assert not {"script", "img", "link", "iframe"} & {tag for tag, _ in tags.seen}
    assert not [name for _, attributes in tags.seen for name in attributes if name.startswith(("on", "src", "href"))]
    assert sum(tag == "svg" for tag, _ in tags.seen) == 4, "bars, latency, reliability, risk and coverage"
    assert "&lt;script&gt;" in html
    assert "raw cosines" in html
    assert any(f'<td class="text">{level}</td>' in html for level in ("high", "medium", "low"))


def test_what_changed_since_the_last_run(shelf: Path, first_run: subprocess.CompletedProcess[str]) -> None:
    out = shelf / "askbook-eval"
    rows = [json.loads(line) for line in (out / "run.jsonl").read_text().splitlines()]
    for row in rows:
        if row["id"] == "bitter":
            row["passed"] = False
    (out / "run.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    again = _run(shelf, "eval", "questions.yaml")
    assert "Since the last run: 1 became right, 0 became wrong, of 6." in again.stdout
    assert "+ questions: bitter" in again.stdout


def test_a_sample_says_that_it_is_one(shelf: Path, first_run: subprocess.CompletedProcess[str]) -> None:
    done = _run(shelf, "eval", "questions.yaml", "--sample", "2", "--out", "sample")
    assert "questions: a sample of 3 questions, 3 were left out" in done.stdout
    assert "3 questions (a sample: 3 more were left out)" in (shelf / "sample" / "report.html").read_text()


def test_below_the_bar_is_exit_1_with_the_reason(shelf: Path, first_run: subprocess.CompletedProcess[str]) -> None:
    (shelf / "hard.yaml").write_text("- {question: Which tea is whisked with bamboo, lesson: tea.md}\n")
    missing = _run(shelf, "eval", "hard.yaml", "--out", "hard")
    assert missing.returncode == 1
    assert "tea.md, which is not in the book" in missing.stderr
    (shelf / "tea" / "far.md").write_text("# Far\n\nQuarterly results of a steel company.\n")
    (shelf / "hard.yaml").write_text("- {question: Which tea is whisked with bamboo, lesson: far.md}\n")
    assert _run(shelf, "ingest", "tea").returncode == 0
    failed = _run(shelf, "eval", "hard.yaml", "--out", "hard", "--fail-under", "0.5", "--json")
    assert failed.returncode == 1
    assert "hard: 0.000 of the questions passed, fewer than 0.5" in failed.stderr
    assert json.loads(failed.stdout)["sets"][0]["name"] == "hard"


def test_a_check_is_about_answers_and_refusals_too(shelf: Path, first_run: subprocess.CompletedProcess[str]) -> None:
    """Every expected lesson is found: what fails is what is said, or not said, with it."""
    (shelf / "said.yaml").write_text(
        """
- {id: found, question: "Why does my green tea taste bitter?", lesson: green.md}
- id: refused
  question: "Who won the green world cup final in 1998?"
  lesson: [green.md, black.md, white.md, hostile.md, oolong.md, matcha.md]
- {id: answered, question: "How long is green tea steeped at 75 degrees?", not_in_book: true}
"""
    )
    done = _run(shelf, "eval", "said.yaml", "--out", "said", "--junit", "said/junit.xml", "--fail-under", "0.5")
    (said,) = json.loads((shelf / "said" / "figures.json").read_text())["sets"]
    assert said["retrieval"]["askbook"]["hit5"] == 1
    check = {"questions": 3, "passed": 1, "share": pytest.approx(1 / 3), "missed": 0, "refused": 1, "answered": 1}
    assert said["check"] == check
    told = "1 of 3 questions passed (0.333): 1 refused though the book answers, 1 answered though it does not"
    assert told in done.stdout
    assert done.returncode == 1 and "said: 0.333 of the questions passed, fewer than 0.5" in done.stderr
    cases = {case.get("name"): case for case in ElementTree.parse(shelf / "said" / "junit.xml").getroot()[0]}
    messages = {
        name: failure.get("message", "")
        for name, case in cases.items()
        if (failure := case.find("failure")) is not None
    }
    assert messages.keys() == {"refused", "answered"}
    assert messages["refused"].startswith("refused, though black.md") and "does not say" in messages["answered"]
    assert _run(shelf, "eval", "said.yaml", "--out", "said", "--fail-under", "0.3").returncode == 0


def test_the_calibration_in_force_is_told(shelf: Path, first_run: subprocess.CompletedProcess[str]) -> None:
    (tea,) = json.loads((shelf / "askbook-eval" / "figures.json").read_text())["sets"]
    assert (tea["calibration"], tea["notice"]) == ("built-in", None)
    assert "Calibration: the one that ships for all-MiniLM" in (shelf / "askbook-eval" / "report.html").read_text()
    other = _run(shelf, "eval", "questions.yaml", "--out", "raw", ASKBOOK_EMBEDDER="none", ASKBOOK_CONFIDENCE="raw")
    assert "questions: ASKBOOK_CONFIDENCE is raw, but without an embedder" in other.stderr
    (tea,) = json.loads((shelf / "raw" / "figures.json").read_text())["sets"]
    assert tea["notice"].startswith("ASKBOOK_CONFIDENCE is raw")
    assert "ASKBOOK_CONFIDENCE is raw" in (shelf / "raw" / "report.html").read_text()


def test_mistakes_get_a_message(shelf: Path) -> None:
    for arguments, words in (
        (("nowhere.yaml",), "nowhere.yaml cannot be read"),
        (("tea/green.md",), "neither a folder nor a .yaml file"),
        (("tea",), "queries.jsonl cannot be read"),
        (("questions.yaml", "--book", "coffee"), "there is no book coffee"),
    ):
        failed = _run(shelf, "eval", *arguments, "--out", "mistakes")
        assert failed.returncode == 1
        assert words in failed.stderr
        assert "Traceback" not in failed.stderr
