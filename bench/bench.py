"""`make bench`: askbook beside other libraries, alone, and as it grows; writes docs/speed.md.

`python bench/bench.py [PART …]` measures only these parts: peers, alone, limit, growth, mdn. What was measured is kept
in .askbook/bench.json, and the
page is written from all that is there.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any

import limit
import mdn
import speed_page
from beside import HERE, ROOT, build, installed_megabytes, make_questions, measure, measure_peers
from search_bench import measure_growth

DEMO = Path(str(files("askbook") / "demo" / "physical-ai-robotics"))
SHARED = ROOT.parent / "shared"
BOOKS = SHARED / "evals" / "openstax_biology" / "md", DEMO
"""The first that is there."""
KEPT = ROOT / ".askbook" / "bench.json"
SAMPLE = 20
TRIES = 3


def measure_alone(folder: Path, environments: Path) -> dict[str, Any]:
    """The whole text, and what a person starts in a terminal."""
    python = build("askbook", environments)
    command, script = str(python.with_name("askbook")), str(HERE / "peers" / "use_askbook.py")
    question = make_questions(folder)[0]
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        book = shutil.copytree(folder, work / "book")
        home = {"ASKBOOK_HOME": str(work / "home")}
        ingested = measure([command, "ingest", str(book)], home)
        again = measure([command, "ingest", str(book)], home)
        asked = [measure([command, "ask", question], home) for _ in range(TRIES)]
        helped = [measure([command, "--help"], home) for _ in range(TRIES)]
        # Measured apart: what is asked meanwhile costs CPU too.
        first = measure([str(python), script, "first", str(book), str(work / "second"), question])
    return {
        "name": folder.parent.name if folder.name == "md" else folder.name,
        "files": sum(1 for _ in folder.rglob("*.md")),
        "ingest_cpu": ingested.cpu,
        "ingest_wall": ingested.wall,
        "ingest_rss": ingested.rss,
        "again_cpu": again.cpu,
        "again_wall": again.wall,
        "ask_cpu": [one.cpu for one in asked],
        "ask_rss": max(one.rss for one in asked),
        "help_cpu": [one.cpu for one in helped],
        "installed": installed_megabytes(python),
        **first.told,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--book", type=Path, default=next(one for one in BOOKS if one.is_dir()), metavar="FOLDER")
    parser.add_argument("--files", type=int, default=SAMPLE, help="how many of its files are read beside the others")
    parser.add_argument("--environments", type=Path, help="a folder in which they are kept; else they are thrown away")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        environments = (options.environments or Path(temporary)).resolve()
        parts: dict[str, Callable[[], Any]] = {
            "peers": lambda: measure_peers(options.book, options.files, environments),
            "alone": lambda: measure_alone(options.book, environments),
            "limit": lambda: [[tokens, *limit.measure(tokens)] for tokens in limit.LENGTHS],
            "growth": lambda: [asdict(one) for one in measure_growth()],
            "mdn": lambda: mdn.measure_mdn(SHARED / "corpora" / "mdn.tar.gz"),
        }
        for part in options.parts or parts:
            before = os.getloadavg()[0]
            figures = json.loads(KEPT.read_text()) if KEPT.exists() else {}
            measured = parts[part]()
            KEPT.parent.mkdir(exist_ok=True)
            KEPT.write_text(json.dumps({**figures, part: {"load": before, "measured": measured}}, indent=1))
            print(f"{part}: done", flush=True)
            speed_page.write(json.loads(KEPT.read_text()), ROOT / "docs")


if __name__ == "__main__":
    main()
