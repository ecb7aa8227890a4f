"""`make bench`: how fast a book is ingested, and how fast it is searched, on this machine.

Each ingestion runs in a process of its own, so that its CPU seconds and its peak memory are its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from importlib.resources import files
from pathlib import Path

from search_bench import measure_search, show_search

from askbook.book.reader import read_book
from askbook.settings import Settings
from askbook.wiring import open_askbook

SHARED = Path(__file__).parents[2] / "shared"
BOOKS = {
    "demo book": Path(str(files("askbook") / "demo" / "physical-ai-robotics")),
    "openstax_biology": SHARED / "evals" / "openstax_biology" / "md",
}
SEARCH_SIZES = (4_000, 20_000, 100_000)


async def ingest_once(folder: Path, home: Path) -> dict[str, float]:
    started = time.perf_counter()
    searchable = 0.0

    def watch(_job: object, step: str, _tally: object) -> None:
        nonlocal searchable
        if step == "embedding" and not searchable:
            searchable = time.perf_counter() - started

    async with open_askbook(Settings.model_validate({"askbook_home": home})) as askbook:
        job = await askbook.jobs.submit(read_book(folder).book_id, str(folder), "incremental")
        done = await askbook.worker.run_job(job.job_id, watch)
    assert done.status == "completed", done.error_message
    wall = time.perf_counter() - started
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "files": done.files_processed,
        "chunks": done.chunks_created,
        "wall": wall,
        "cpu": usage.ru_utime + usage.ru_stime,
        "rss": usage.ru_maxrss / 1024,
        "searchable": searchable,
    }


def measure_ingestion(name: str, folder: Path) -> None:
    if not folder.is_dir():
        print(f"{name:<18} skipped: {folder.name} is not there")
        return
    with tempfile.TemporaryDirectory() as home:
        child = subprocess.run(
            [sys.executable, __file__, "ingest", str(folder), home], capture_output=True, text=True, check=False
        )
    if child.returncode:
        sys.exit(child.stderr)
    figures = json.loads(child.stdout)
    print(
        f"{name:<18} {figures['files']:>6.0f} {figures['chunks']:>7.0f} {figures['wall']:>7.1f} {figures['cpu']:>7.1f}"
        f" {figures['chunks'] / figures['wall']:>9.1f} {figures['files'] / figures['wall']:>8.1f}"
        f" {figures['rss']:>8.0f} {figures['searchable']:>11.1f}"
    )


def main() -> None:
    print(f"{os.cpu_count()} cores\n\ningestion, from nothing")
    print(f"{'book':<18}  files  chunks  wall s   CPU s  chunks/s  files/s  RSS MB  keywords s")
    for name, folder in BOOKS.items():
        measure_ingestion(name, folder)
    print("\nsearch, hybrid, the embedding of the question included")
    show_search(measure_search(SEARCH_SIZES))


if __name__ == "__main__":
    if sys.argv[1:2] == ["ingest"]:
        print(json.dumps(asyncio.run(ingest_once(Path(sys.argv[2]), Path(sys.argv[3])))))
    else:
        main()
