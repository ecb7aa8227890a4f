"""Run as a process: ingests a changed book beside a reader, and kills itself at the named step.

victim.py HOME FOLDER STEP NTH DELAY_MS READER_LOG
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from pathlib import Path

from world import ingest, settings_for

from askbook.book.reader import read_book
from askbook.domain import Filters, Job
from askbook.errors import NotFound
from askbook.ingest.pipeline import Sizes, Step, Tally
from askbook.wiring import Askbook, open_askbook


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def main(home: Path, folder: Path, deadly: str, nth: int, delay: float, log: Path) -> None:
    async with open_askbook(settings_for(home)) as askbook:
        askbook.worker.sizes = Sizes(commit=2, embed=1, write=1)
        met = 0

        def watch(_job: Job, step: Step, _tally: Tally) -> None:
            nonlocal met
            met += step == deadly
            if step == deadly and met == nth:
                threading.Timer(delay / 1000, die).start() if delay else die()

        started = asyncio.Event()
        reading = asyncio.create_task(read_on(askbook, read_book(folder).book_id, log, started))
        await asyncio.wait([reading, asyncio.create_task(started.wait())], return_when=asyncio.FIRST_COMPLETED)
        await ingest(askbook, folder, watch=watch)
        if met >= nth:
            await asyncio.sleep(10)  # The kill is on its way.
        if reading.done():
            reading.result()
        sys.exit(f"the step {deadly!r} came {met} times, not {nth}")


async def read_on(askbook: Askbook, book_id: str, log: Path, started: asyncio.Event) -> None:
    """Log every reading that is not one whole version of a lesson."""
    with log.open("a", buffering=1) as lines:
        while True:
            outcome = await askbook.searcher.search("remark on the care of the lidar", Filters(book_id), limit=20)
            for parent in {passage.chunk.parent_doc_id for passage in outcome.passages}:
                try:
                    lesson = await askbook.ledger.load_lesson(book_id, parent)
                except NotFound:
                    continue
                lines.write("read\n")
                ids = [chunk.id for chunk in lesson]
                hashes = {chunk.source_file_hash for chunk in lesson}
                whole = [chunk.chunk_index for chunk in lesson] == list(range(lesson[0].total_chunks))
                chained = [chunk.next_chunk_id for chunk in lesson] == [*ids[1:], None]
                if not whole or not chained or len(hashes) != 1:
                    lines.write(f"torn {lesson[0].source_file} {ids} {hashes}\n")
            started.set()
            await asyncio.sleep(0)


if __name__ == "__main__":
    home, folder, step, nth, delay, log = sys.argv[1:]
    asyncio.run(main(Path(home), Path(folder), step, int(nth), float(delay), Path(log)))
