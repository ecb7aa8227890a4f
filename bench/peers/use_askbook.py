"""askbook, as it comes. `first FOLDER STORE QUESTION` asks from the start of an ingestion until there is an answer."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from peer import BEST, BOOK, Search, run

from askbook import open_book
from askbook.domain import Answer
from askbook.errors import NotFound

ASKED_EVERY = 0.1


def ingest(folder: Path, store: Path) -> dict[str, float]:
    with open_book(folder, home=store) as book:
        return {"chunks": book.ingest().chunks_created}


@contextmanager
def open_search(store: Path) -> Iterator[Search]:
    with open_book(BOOK, home=store) as book:
        yield lambda question: [found.chunk.source_file for found in book.search(question, limit=BEST)]


def wait_for_answer(folder: Path, store: Path, question: str) -> None:
    with open_book(folder, home=store) as book:
        started = time.perf_counter()
        ingestion = threading.Thread(target=book.ingest)
        ingestion.start()
        while ingestion.is_alive():
            # Until the first lessons are in, there is no book.
            with contextlib.suppress(NotFound):
                reply = book.ask(question)
                if isinstance(reply, Answer) and reply.sources:
                    break
            time.sleep(ASKED_EVERY)
        else:
            sys.exit("there was no answer before the end")
        print(json.dumps({"first": time.perf_counter() - started}), flush=True)
        # Of the rest nothing is measured, and its store is thrown away.
        os._exit(0)


if sys.argv[1] == "first":
    wait_for_answer(Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
else:
    run(ingest, open_search)
