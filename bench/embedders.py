"""Embedders on the development sets, same chunks: `python bench/embedders.py NAME=FOLDER …`.

A folder holds model.onnx and tokenizer.json; `bundled` needs none. nDCG@10 of pages by vectors alone, by reciprocal
ranks of vectors and BM25, and by the product's own ranking, all over exact lists. Each book is embedded once for each
model: its vectors are kept below --cache.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from askbook.book.chunker import split_lesson
from askbook.book.reader import read_book, read_lessons
from askbook.domain import Chunk
from askbook.evals.sets import EvalSet, load_set
from askbook.index.embedders.minilm import MiniLM, folder_weights
from askbook.index.keywords import keyword_text, term_ids, weigh_chunk

SETS = ("openstax_biology", "openstax_physics", "aws_docs_qa", "cranfield", "rust_book_quiz", "hf_llm_course_quiz")

Matrix = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Shelf:
    """A set, its book cut into chunks, and BM25's side of them."""

    eval_set: EvalSet
    chunks: tuple[Chunk, ...]

    @cached_property
    def frequencies(self) -> Counter[int]:
        counts: Counter[int] = Counter()
        for chunk in self.chunks:
            counts.update(term_ids(keyword_text(chunk)).keys())
        return counts

    @cached_property
    def postings(self) -> dict[int, list[tuple[int, float]]]:
        found: dict[int, list[tuple[int, float]]] = {}
        for at, chunk in enumerate(self.chunks):
            sparse = weigh_chunk(keyword_text(chunk))
            for term, weight in zip(sparse.indices, sparse.values, strict=True):
                found.setdefault(term, []).append((at, weight))
        return found


def open_shelf(folder: Path, cache: Path) -> Shelf:
    eval_set = load_set(folder, cache)
    assert eval_set.folder is not None
    lessons, _ = read_lessons(eval_set.folder, read_book(eval_set.folder, eval_set.name))
    chunks = [chunk for lesson in lessons for chunk in split_lesson(lesson)]
    return Shelf(eval_set, tuple({chunk.content_hash: chunk for chunk in chunks}.values()))


async def embed_shelf(embedder: MiniLM, shelf: Shelf, cache: Path) -> tuple[Matrix, Matrix]:
    """Vectors of the chunks and of the questions that have an answer."""
    file = cache / embedder.name.replace("/", "-") / f"{shelf.eval_set.name}.npz"
    if not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True)
        started, texts = time.process_time(), [chunk.embed_text for chunk in shelf.chunks]
        chunks = [v for at in range(0, len(texts), 64) for v in await embedder.embed_passages(texts[at : at + 64])]
        took = time.process_time() - started
        questions = [await embedder.embed_query(one.question) for one in shelf.eval_set.questions if one.has_gold]
        np.savez(file, chunks=np.stack(chunks), questions=np.stack(questions))
        print(f"{embedder.name} {shelf.eval_set.name}: {len(texts)} chunks, {len(texts) / took:.1f} a CPU second", flush=True)
    kept = np.load(file)
    return kept["chunks"].astype(np.float32), kept["questions"].astype(np.float32)


async def main(models: Sequence[str], sets: Sequence[Path], cache: Path) -> None:
    for folder_of_set in sets:
        shelf = open_shelf(folder_of_set, cache)
        for model in models:
            _, _, folder = model.partition("=")
            embedder = MiniLM(folder_weights(Path(folder)) if folder else None, threads=1)
            await embed_shelf(embedder, shelf, cache)
            await embedder.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["bundled"])
    parser.add_argument("--sets", type=Path, default=Path("../shared/evals"))
    parser.add_argument("--only", nargs="*", default=SETS, choices=SETS, metavar="SET")
    parser.add_argument("--cache", type=Path, default=Path(".train/embedders"))
    asked = parser.parse_args()
    asyncio.run(main(asked.models, [asked.sets / name for name in asked.only], asked.cache))
