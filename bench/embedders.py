"""Embedders on the development sets, same chunks: `python bench/embedders.py NAME=FOLDER[=PREFIX] …`.

A folder holds model.onnx and tokenizer.json, `bundled` alone is the model that ships, a prefix goes before a question.
nDCG@10 of pages by vectors alone, by reciprocal ranks of vectors and BM25, and by the product's ranking with cosines as
they are and on the book's own scale. The lists are exact; the chunks' vectors are kept below --cache.
`--cost` embeds the same texts by every model in turn and prints how many a CPU second takes, on one thread.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from askbook.book.chunker import split_lesson
from askbook.book.reader import read_book, read_lessons
from askbook.domain import LIMIT_MAX, Chunk
from askbook.evals.measures import fuse_ranks, score_ranking
from askbook.evals.sets import EvalQuestion, EvalSet, load_set
from askbook.index.embedders.minilm import MiniLM, folder_weights
from askbook.index.keywords import best_score, count_terms, keyword_text, weigh_chunk, weigh_query, weigh_terms
from askbook.index.ranking import Found, Scale, Words, rank
from askbook.index.search import CANDIDATES, SAMPLE

SETS = ("openstax_biology", "openstax_physics", "aws_docs_qa", "cranfield", "rust_book_quiz", "hf_llm_course_quiz")
SYSTEMS = ("vectors", "RRF", "as they are", "own scale")
COST_TEXTS, COST_ROUNDS = 120, 3

Matrix = npt.NDArray[np.float32]
Scores = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Model:
    name: str
    embedder: MiniLM
    prefix: str
    """What the model wants before a question."""


@dataclass(frozen=True)
class Asked:
    """A question with BM25's side of it."""

    question: EvalQuestion
    words: Words
    keyword: Scores
    """For each chunk."""


@dataclass(frozen=True)
class Shelf:
    """A set and its book, cut into chunks."""

    eval_set: EvalSet
    chunks: tuple[Chunk, ...]

    def ask(self) -> Iterator[Asked]:
        frequencies = count_terms(map(keyword_text, self.chunks))
        postings = self._post()
        for question in self.questions:
            keywords = weigh_query(question.question, frequencies, len(self.chunks))
            scores = np.zeros(len(self.chunks))
            for term, rarity in zip(keywords.indices, keywords.values, strict=True):
                for at, weight in postings[term]:
                    scores[at] += rarity * weight
            rarities = weigh_terms(question.question, frequencies, len(self.chunks))
            yield Asked(question, Words(rarities, (), best_score(keywords), len(self.chunks)), scores)

    def _post(self) -> Mapping[int, Sequence[tuple[int, float]]]:
        found: dict[int, list[tuple[int, float]]] = {}
        for at, chunk in enumerate(self.chunks):
            sparse = weigh_chunk(keyword_text(chunk))
            for term, weight in zip(sparse.indices, sparse.values, strict=True):
                found.setdefault(term, []).append((at, weight))
        return found

    @property
    def questions(self) -> list[EvalQuestion]:
        return [one for one in self.eval_set.questions if one.has_gold]

    def score(self, chunks: Sequence[Chunk], question: EvalQuestion) -> float:
        files = (chunk.source_file for chunk in chunks[:LIMIT_MAX])
        pages = dict.fromkeys(self.eval_set.pages.get(file, file) for file in files)
        return score_ranking(tuple(pages), question.gold).ndcg10


def open_shelf(folder: Path, cache: Path) -> Shelf:
    eval_set = load_set(folder, cache)
    assert eval_set.folder is not None
    lessons, _ = read_lessons(eval_set.folder, read_book(eval_set.folder, eval_set.name))
    chunks = [chunk for lesson in lessons for chunk in split_lesson(lesson)]
    return Shelf(eval_set, tuple({chunk.content_hash: chunk for chunk in chunks}.values()))


async def embed_shelf(model: Model, shelf: Shelf, cache: Path) -> tuple[Matrix, Matrix]:
    """Vectors of the chunks, and of the questions."""
    file = cache / model.embedder.name.replace("/", "-") / f"{shelf.eval_set.name}.npz"
    if not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True)
        chunks = await model.embedder.embed_passages([chunk.embed_text for chunk in shelf.chunks])
        np.savez(file, chunks=np.stack(chunks))
    questions = [await model.embedder.embed_query(model.prefix + one.question) for one in shelf.questions]
    return np.load(file)["chunks"].astype(np.float32), np.stack(questions)


def measure(shelf: Shelf, asked: Sequence[Asked], chunks: Matrix, questions: Matrix) -> dict[str, float]:
    sample = chunks[np.random.default_rng(0).permutation(len(chunks))[:SAMPLE]]
    scores: dict[str, list[float]] = {system: [] for system in SYSTEMS}
    for one, vector in zip(asked, questions, strict=True):
        cosines, unrelated = chunks @ vector, sample @ vector
        dense = _best(shelf, cosines, CANDIDATES)
        keyword = [at for at in _best(shelf, one.keyword, CANDIDATES) if one.keyword[at] > 0]
        found = [
            Found(shelf.chunks[at].id, shelf.chunks[at], float(cosines[at]), float(one.keyword[at]))
            for at in dict.fromkeys((*dense, *keyword))
        ]
        own = Scale(float(unrelated.mean()), float(unrelated.std()))
        ranked = {
            name: rank(found, one.words, False, None, scale)[0]
            for name, scale in zip(SYSTEMS[2:], (None, own), strict=True)
        }
        fused = fuse_ranks(*([str(at) for at in side[:LIMIT_MAX]] for side in (keyword, dense)))
        lists = {
            "vectors": [shelf.chunks[at] for at in dense],
            "RRF": [shelf.chunks[int(at)] for at in fused],
            **{name: [passage.chunk for passage in passages] for name, passages in ranked.items()},
        }
        for system, best in lists.items():
            scores[system].append(shelf.score(best, one.question))
    return {system: float(np.mean(values)) for system, values in scores.items()}


def _best(shelf: Shelf, scores: npt.NDArray[np.floating], count: int) -> list[int]:
    some = np.argpartition(-scores, min(count, len(scores) - 1))[:count]
    return sorted((int(at) for at in some), key=lambda at: (-scores[at], shelf.chunks[at].id))


def open_model(named: str) -> Model:
    name, folder, prefix = (*named.split("=", 2), "", "")[:3]
    return Model(name, MiniLM(folder_weights(Path(folder)) if folder else None, threads=1), prefix)


async def compare(models: Sequence[str], sets: Sequence[Path], cache: Path) -> None:
    opened, table = [open_model(one) for one in models], dict[tuple[str, str], list[float]]()
    for folder in sets:
        shelf = open_shelf(folder, cache)
        asked = list(shelf.ask())
        for model in opened:
            figures = measure(shelf, asked, *await embed_shelf(model, shelf, cache))
            told = (f"{system} {value:.4f}" for system, value in figures.items())
            print(shelf.eval_set.name, model.name, *told, flush=True)
            for system, value in figures.items():
                table.setdefault((model.name, system), []).append(value)
    for (name, system), values in table.items():
        row = " | ".join(f"{value:.3f}" for value in (*values, float(np.mean(values))))
        print(f"| {name} | {system} | {row} |")


async def measure_cost(models: Sequence[str], folder: Path, cache: Path) -> None:
    """In turns, so that what else the machine does falls on all alike."""
    chunks = open_shelf(folder, cache).chunks
    texts = [chunk.embed_text for chunk in chunks[:: max(1, len(chunks) // COST_TEXTS)]]
    opened = [open_model(one) for one in models]
    spent = {model.name: 0.0 for model in opened}
    for _ in range(COST_ROUNDS):
        for model in opened:
            await model.embedder.embed_passages(texts[:1])
            started = time.process_time()
            await model.embedder.embed_passages(texts)
            spent[model.name] += time.process_time() - started
    first = next(iter(spent.values()))
    for name, seconds in spent.items():
        print(
            f"{name}: {COST_ROUNDS * len(texts) / seconds:.1f} chunks a CPU second, {first / seconds:.2f} × the first"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["bundled"])
    parser.add_argument("--sets", type=Path, default=Path("../shared/evals"))
    parser.add_argument("--only", nargs="*", default=SETS, choices=SETS, metavar="SET")
    parser.add_argument("--cache", type=Path, default=Path(".train/embedders"))
    parser.add_argument("--cost", action="store_true")
    asked = parser.parse_args()
    folders = [asked.sets / name for name in asked.only]
    if asked.cost:
        asyncio.run(measure_cost(asked.models, folders[0], asked.cache))
    else:
        asyncio.run(compare(asked.models, folders, asked.cache))
