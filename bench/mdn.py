"""All of MDN at once: `python bench/mdn.py [TAR]`. Keywords for every file, vectors for a sample, and a second run that
finds nothing changed.
"""

from __future__ import annotations

import shutil
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from beside import measure

SAMPLE = 2_000


def measure_mdn(archive: Path) -> dict[str, Any] | None:
    """None where the archive is not there."""
    if not archive.is_file():
        print(f"skipped: {archive.name} is not there")
        return None
    askbook = str(Path(sys.executable).with_name("askbook"))
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        with tarfile.open(archive) as opened:
            opened.extractall(work / "mdn", filter="data")
        pages = sorted((work / "mdn").rglob("*.md"))
        for page in pages[:: len(pages) // SAMPLE][:SAMPLE]:
            copy = work / "sample" / page.relative_to(work / "mdn")
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(page, copy)
        home = {"ASKBOOK_HOME": str(work / "home")}
        words = {**home, "ASKBOOK_EMBEDDER": "none"}
        steps = {
            "keywords": ([askbook, "ingest", str(work / "mdn")], words),
            "again": ([askbook, "ingest", str(work / "mdn")], words),
            "sample": ([askbook, "ingest", str(work / "sample")], home),
        }
        figures: dict[str, dict[str, float]] = {}
        for name, (command, surroundings) in steps.items():
            done = measure(command, surroundings)
            figures[name] = {"wall": done.wall, "cpu": done.cpu, "rss": done.rss}
            print(f"{name}: {done.cpu:.0f} CPU s, {done.wall:.0f} s, {done.rss:.0f} MB", flush=True)
        return {"files": len(pages), "sample": SAMPLE, "steps": figures}


if __name__ == "__main__":
    shared = Path(__file__).parents[2] / "shared" / "corpora" / "mdn.tar.gz"
    print(measure_mdn(Path(sys.argv[1]) if sys.argv[1:] else shared))
