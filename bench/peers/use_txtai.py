"""txtai: one index for vectors and words (`hybrid=True`), which also keeps the texts.

It compares nothing with what it has, so everything is indexed again each time. It cuts texts only with packages that
it does not bring,
so paragraphs are joined here as long as they fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from peer import BEST, CHUNK_CHARACTERS, Search, model_folder, read_files, run
from txtai import Embeddings


def ingest(folder: Path, store: Path) -> dict[str, float]:
    chunks = [(f"{file}#{n}", text) for file, whole in read_files(folder).items() for n, text in enumerate(_cut(whole))]
    embeddings = Embeddings(path=model_folder(), hybrid=True, content=True, gpu=False)
    embeddings.index(chunks)
    embeddings.save(str(store))
    return {"chunks": embeddings.count()}


@contextmanager
def open_search(store: Path) -> Iterator[Search]:
    embeddings = Embeddings(gpu=False)
    embeddings.load(str(store))
    one_at_a_time = Lock()

    def search(question: str) -> list[str]:
        # Its database has one cursor, which two threads may not use at once.
        with one_at_a_time:
            return [found["id"].partition("#")[0] for found in embeddings.search(question, BEST)]

    yield search


def _cut(text: str) -> Iterator[str]:
    joined = ""
    for paragraph in filter(str.strip, text.split("\n\n")):
        if joined and len(joined) + len(paragraph) > CHUNK_CHARACTERS:
            yield joined
            joined = ""
        joined += paragraph + "\n\n"
    if joined:
        yield joined


run(ingest, open_search)
