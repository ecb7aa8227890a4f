"""Writes what was measured: figures.json, run.jsonl, report.html, and a JUnit file for a docs site's CI."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from xml.etree import ElementTree

from askbook.errors import StorageError
from askbook.evals.figures import Figures
from askbook.evals.measures import DEPTH
from askbook.evals.page import build_page
from askbook.evals.run import ASKBOOK, Result, SetRun

FIGURES, RUN, PAGE = "figures.json", "run.jsonl", "report.html"
NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_report(folder: Path, figures: Figures, runs: Sequence[SetRun]) -> None:
    _write(folder / FIGURES, to_json(figures))
    _write(folder / RUN, "".join(json.dumps(row) + "\n" for row in _to_rows(runs)))
    _write(folder / PAGE, build_page(figures, runs))


def to_json(figures: Figures) -> str:
    return json.dumps(asdict(figures), indent=1) + "\n"


def load_last_run(folder: Path) -> dict[tuple[str, str], bool]:
    """Whether each question of the last run in this folder passed. Empty where there was no run."""
    try:
        rows = [json.loads(line) for line in (folder / RUN).read_text(encoding="utf-8").split("\n") if line]
        return {(row["set"], row["id"]): row["passed"] for row in rows if row["passed"] is not None}
    except (OSError, ValueError, LookupError, TypeError):
        return {}


def write_junit(path: Path, runs: Sequence[SetRun]) -> None:
    """One test case for each question: it fails where the question did not pass, and says why."""
    root = ElementTree.Element("testsuites", name="askbook eval")
    for run in runs:
        cases = [_to_case(run.name, result) for result in run.asked]
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=_xml(run.name),
            tests=str(len(cases)),
            failures=str(sum(case.find("failure") is not None for case in cases)),
            errors="0",
            skipped=str(sum(case.find("skipped") is not None for case in cases)),
            time=f"{sum(float(case.get('time', 0)) for case in cases):.3f}",
        )
        suite.extend(cases)
    ElementTree.indent(root)
    _write(path, ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n")


def _to_case(suite: str, result: Result) -> ElementTree.Element:
    seconds = result.timing.wall_ms / 1000 if result.timing else 0.0
    case = ElementTree.Element("testcase", classname=_xml(suite), name=_xml(result.question.id), time=f"{seconds:.3f}")
    if result.passed is None:
        ElementTree.SubElement(case, "skipped", message="nobody has judged whether the book answers this")
    elif not result.passed:
        failure = ElementTree.SubElement(case, "failure", message=_xml(_name_failure(result)))
        lines = [result.question.question, *filter(None, [result.question.note]), "found instead:"]
        found = [f"  {passage.rank}. {passage.chunk.way}" for passage in result.passages]
        failure.text = _xml("\n".join((*lines, *found)))
    return case


def _name_failure(result: Result) -> str:
    expected = ", ".join(sorted(result.question.gold))
    match result.failure:
        case "answered":
            return f"answered ({result.level}), though the book does not say"
        case "refused":
            return f"refused, though {expected} says it"
        case _:
            return f"not among the first five passages: {expected}"


def _to_rows(runs: Sequence[SetRun]) -> Iterator[dict[str, object]]:
    for run in runs:
        for result in run.asked:
            yield {
                "set": run.name,
                "id": result.question.id,
                "retrieved": result.rankings[ASKBOOK][:DEPTH],
                **{name: getattr(result, name) for name in ("confidence", "chance", "level", "refused", "passed")},
                "answer": result.answered.text if result.answered else None,
                "cited": result.answered.cited if result.answered else (),
                "passages": [
                    {"chunk_id": passage.chunk.id, "source_file": passage.chunk.source_file}
                    | {name: getattr(passage, name) for name in ("score", "similarity", "keyword_score")}
                    for passage in result.passages
                ],
            }


def _xml(text: str) -> str:
    """Without the characters that XML cannot hold at all."""
    return NOT_XML.sub("\ufffd", text)


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}", "Choose another place.") from error
