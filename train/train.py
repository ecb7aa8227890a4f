"""Trains the reader, step by step; each leaves a file in the work folder, and the next begins there.

python train/train.py all                   what `make train` does
python train/train.py rows                  data → pairs of tokens
python train/train.py teacher               MPNet learns from the labels
python train/train.py labels                what the teacher says of every pair
python train/train.py student               twelve small layers learn from labels and teacher
python train/train.py rounding              … and one epoch more with numbers as coarse as the file's
python train/train.py export                one ONNX file, int8, with its chances fitted
python train/train.py measure               figures of the file, by ONNX Runtime on the CPU
python train/train.py ablation              short runs, each without one part of the recipe
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from bases import load_base
from encoder import Bert, MPNet, Reader, compile_layers, load_bert, load_mpnet
from features import NONE, PAIR_TOKENS, QUESTION_TOKENS, TOKENIZER, Pairs, load_pairs, save_pairs, to_pairs
from fit import ROUNDING, STUDENT, TEACHER, Schedule, Taught, fit, teach
from rows import PARTS, Recipe, build_rows
from validate import Figures, fit_chances, measure, read_pairs

NAME = "askbook-reader-4"
STEPS = ("rows", "teacher", "labels", "student", "rounding", "export", "measure")


class Work:
    """A folder, and what lies in it."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.data: Path = asked.data
        self.folder: Path = asked.out
        self.bases: Path | None = asked.bases
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.seed: int = asked.seed
        self.folder.mkdir(parents=True, exist_ok=True)
        torch.manual_seed(self.seed)
        torch.backends.cuda.matmul.allow_tf32 = True

    # --- steps ---

    def rows(self) -> None:
        rows = build_rows(self.data, Recipe(seed=self.seed))
        pairs = to_pairs(rows, self.seed)
        save_pairs(pairs, self.folder / "pairs.npz")
        asked, label = pairs.is_question == 1, pairs.label
        print(
            f"{len(rows):,} rows, {len(pairs):,} pairs, {pairs.lengths().sum():,} tokens; "
            f"questions {(asked & (label == 1)).sum():,} answered, {(asked & (label >= 0) & (label < 1)).sum():,} not; "
            f"statements {(~asked & (label == 1)).sum():,} true, {(~asked & (label == 0)).sum():,} false",
            flush=True,
        )

    def teacher(self) -> None:
        teacher = load_mpnet(load_base("mpnet-base", self.bases)).to(self.device)
        pairs = self._pairs()
        self._fit(teacher, pairs.select(pairs.label != NONE), replace(TEACHER, seed=self.seed))
        self._save(teacher.state_dict(), "teacher")
        self._report(teacher, "teacher")

    def labels(self) -> None:
        teacher = self._load(MPNet(), "teacher")
        ranker = load_bert(load_base("msmarco-l12", self.bases)).to(self.device)
        if self.device == "cuda":
            compile_layers(teacher)
            compile_layers(ranker)
        taught = teach(teacher, ranker, self._pairs(), self.device)
        np.savez(self.folder / "labels.npz", scores=taught.scores, spans=taught.spans)

    def student(self) -> None:
        student = load_bert(load_base("msmarco-l12", self.bases), dropout=0.05).to(self.device)
        self._fit(student, self._pairs(), replace(STUDENT, seed=self.seed), self._taught(), "student")
        self._save(student.state_dict(), "student")
        self._report(student, "student")

    def rounding(self) -> None:
        student = self._load(Bert(dropout=0.05), "student")
        for layer in student.layers:
            layer.rounds = True
        self._fit(student, self._pairs(), replace(ROUNDING, seed=self.seed + 1), self._taught(), "rounded")
        self._save(student.state_dict(), "rounded")
        self._report(student, "rounded")

    def export(self) -> None:
        from export import export_reader
        from onnx_reading import read_with

        with np.load(self.folder / "rounded.npz") as stored:
            state = {name: stored[name].astype(np.float32) for name in stored.files}
        metadata = {
            "name": NAME,
            "pair_tokens": PAIR_TOKENS,
            "question_tokens": QUESTION_TOKENS,
            "tokenizer": hashlib.sha256(TOKENIZER.read_bytes()).hexdigest(),
        }
        shipped = self.folder / "reader.onnx"
        export_reader(state, shipped, metadata, reduce_range=True)
        metadata |= fit_chances(read_with(shipped), self.data)
        export_reader(state, shipped, metadata, reduce_range=True)
        export_reader(state, self.folder / "reader-8bit.onnx", metadata, reduce_range=False)
        export_reader(state, self.folder / "reader-fp32.onnx", metadata, reduce_range=False, fp32=True)
        size, digest = shipped.stat().st_size, hashlib.sha256(shipped.read_bytes()).hexdigest()
        print(f"reader.onnx {size / 1e6:.1f} MB, sha256 {digest}\n{json.dumps(metadata)}", flush=True)

    def measure(self) -> None:
        from onnx_reading import read_with

        for name in ("reader", "reader-fp32", "reader-8bit"):
            self._print(name, measure(read_with(self.folder / f"{name}.onnx"), self.data))

    def ablation(self) -> None:
        """The student from hard labels alone, one short run each: what a part of the data or of the loss is worth."""
        pairs = self._pairs()
        part = np.array(PARTS)[pairs.part]
        written = np.isin(part, ("contrast", "own"))
        # Half of the passages that were written about, by whole groups, and a fifth of the rest.
        some = np.where(written, pairs.group // 2 % 2 == 0, np.random.default_rng(self.seed).random(len(pairs)) < 0.2)
        some &= pairs.label != NONE
        runs = {"all": (), "no pairs held against each other": ()}
        runs |= {f"without {name}": (name,) for name in ("made", "neighbour", "own", "nli", "claim", "mined", "choice")}
        runs["without contrast and own"] = ("contrast", "own", "neighbour")
        for name, left_out in runs.items():
            student = load_bert(load_base("msmarco-l12", self.bases), dropout=0.05).to(self.device)
            schedule = replace(STUDENT, epochs=1, planned=1, average=0.99, seed=self.seed)
            schedule = replace(schedule, pairwise=0.0) if name.startswith("no ") else schedule
            self._fit(student, pairs.select(some & ~np.isin(part, left_out)), schedule)
            self._report(student, f"ablation: {name}")

    # --- parts ---

    def _fit(
        self, reader: Reader, pairs: Pairs, schedule: Schedule, taught: Taught | None = None, name: str | None = None
    ) -> None:
        if self.device == "cuda":
            compile_layers(reader)
        fit(reader, pairs, schedule, self.device, taught, (lambda state: self._save(state, name)) if name else None)

    def _taught(self) -> Taught:
        with np.load(self.folder / "labels.npz") as stored:
            return Taught(stored["scores"], stored["spans"])

    def _pairs(self) -> Pairs:
        return load_pairs(self.folder / "pairs.npz")

    def _save(self, state: dict[str, torch.Tensor], name: str) -> None:
        np.savez(self.folder / f"{name}.npz", **{key: value.half().cpu().numpy() for key, value in state.items()})

    def _load(self, reader: Reader, name: str) -> Reader:
        with np.load(self.folder / f"{name}.npz") as stored:
            reader.load_state_dict({key: torch.tensor(stored[key].astype(np.float32)) for key in stored.files})
        return reader.to(self.device).eval()

    def _report(self, reader: Reader, name: str) -> None:
        self._print(name, measure(lambda texts: read_pairs(reader, texts, self.device), self.data))

    def _print(self, name: str, figures: Figures) -> None:
        print(f"{name}: {json.dumps(figures)}", flush=True)
        with (self.folder / "figures.jsonl").open("a", encoding="utf-8") as opened:
            opened.write(json.dumps({"name": name, "seed": self.seed, **figures}) + "\n")


def main() -> None:
    here = Path(__file__).parent.parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", nargs="+", choices=(*STEPS, "ablation", "all"), metavar="STEP")
    parser.add_argument("--data", type=Path, default=here.parent / "shared" / "reader", help="the published sets")
    parser.add_argument("--out", type=Path, default=here / ".train", help="the work folder")
    parser.add_argument("--bases", type=Path, help="a folder that bases.py --out filled; else from the registries")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    work = Work(asked)
    for step in STEPS if asked.steps == ["all"] else asked.steps:
        started = time.monotonic()
        print(f"--- {step}", flush=True)
        getattr(work, step)()
        print(f"--- {step}: {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
