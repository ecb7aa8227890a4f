"""What reading costs on this machine: `python bench/reader_bench.py [READER.onnx] [--against OTHER.onnx] [--rounds 9]`.

READER is the bundled model unless another is named. OTHER is the same model in another form, such as fp32, or int8 with
`reduce_range`; it needs no metadata of its own. All is measured in one run, on one thread, the two files in turn: CPU
time of this process, medians of the rounds. Loading is measured in processes of its own, with the libraries imported
already.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

from askbook.errors import ReaderUnavailable
from askbook.onnx import TOKENIZER, Weights, open_session, open_tokenizer, sha256_of
from askbook.reading.model import BUNDLED, Model, open_model
from askbook.reading.windows import Pair, Window

QUESTION = "How long does the tf2 buffer keep the transforms that it was given?"
SIZES = (160, 256)
COUNTS = (1, 8)
LOADS = 5

Figures = dict[str, list[float]]


def measure(reader: Path, against: Path | None, rounds: int) -> dict[Path, Figures]:
    model = open_model(Weights("bench", reader, TOKENIZER), threads=1)
    models = {reader: model}
    if against is not None:
        models[against] = replace(model, session=open_session(against, 1, ReaderUnavailable))
    told = _read_tokens(model)
    figures: dict[Path, Figures] = {file: defaultdict(list) for file in models}
    for at in range(rounds + 1):
        for size in SIZES:
            for count in COUNTS:
                windows = [_to_window(model, told[at * 97 + n * 311 :], size) for n in range(count)]
                for file, one in models.items():
                    took = _time_run(one, windows)
                    # The first round warms up.
                    if at:
                        figures[file][_name(size, count)].append(took)
    for _ in range(LOADS):
        for file in models:
            for name, figure in _load_elsewhere(file).items():
                figures[file][name].append(figure)
    return figures


def _name(size: int, count: int) -> str:
    return f"{'a pair' if count == 1 else f'{count} pairs'} of {size} tokens, CPU ms"


def _read_tokens(model: Model) -> list[int]:
    book = Path(str(files("askbook") / "demo" / "physical-ai-robotics"))
    text = "\n\n".join(file.read_text(encoding="utf-8") for file in sorted(book.rglob("*.md")))
    return model.tokenizer.encode(text, add_special_tokens=False).ids


def _to_window(model: Model, told: list[int], size: int) -> Window:
    asked = model.tokenizer.encode(QUESTION, add_special_tokens=False).ids
    return Window(Pair(asked, told, []), 0, size - 3 - len(asked))


def _time_run(model: Model, windows: list[Window]) -> float:
    """One at a time, as the reader runs them."""
    started = time.process_time()
    for window in windows:
        model.run(window)
    return (time.process_time() - started) * 1000


# --- loading --------------------------------------------------------------------------------------


def _load_elsewhere(file: Path) -> dict[str, float]:
    done = subprocess.run([sys.executable, __file__, str(file), "--load"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def load_once(file: Path) -> dict[str, float]:
    """What the first question waits for: the file's hash, the session, the tokenizer."""
    import onnxruntime  # noqa: F401
    import tokenizers  # noqa: F401

    before, wall, cpu = _resident_mb(), time.perf_counter(), time.process_time()
    sha256_of(file)
    session = open_session(file, 1, ReaderUnavailable)
    tokenizer = open_tokenizer(TOKENIZER, ReaderUnavailable)
    figures = {
        "loading, wall ms": (time.perf_counter() - wall) * 1000,
        "loading, CPU ms": (time.process_time() - cpu) * 1000,
        "memory added by loading, MB": _resident_mb() - before,
    }
    # Eight full windows, one after the other, as one passage after the other would be.
    import numpy as np

    names = [node.name for node in session.get_inputs()]
    given = np.ones((len(names), 1, 320), dtype=np.int32)
    for _ in range(8):
        session.run(None, dict(zip(names, given, strict=True)))
    assert tokenizer.get_vocab_size()
    return figures | {"memory added in all, eight pairs read, MB": _resident_mb() - before}


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


# --- the table ------------------------------------------------------------------------------------


def show(figures: dict[Path, Figures]) -> None:
    print(f"{_describe_cpu()}; one thread")
    names = {file: f"{file.parent.name}/{file.name}" for file in figures}
    for file, name in names.items():
        print(f"{name}: {file.stat().st_size / 1e6:.1f} MB, sha256 {sha256_of(file)}")
    first, *others = figures
    heads = [*names.values(), *["ratio"] * len(others)]
    print(f"\n{'median':<44}" + "".join(f"{head:>28}" for head in heads))
    for name in figures[first]:
        medians = [statistics.median(one[name]) for one in figures.values()]
        cells = [f"{median:.1f}" for median in medians]
        cells += [f"{medians[0] / median:.2f}" for median in medians[1:]]
        print(f"{name:<44}" + "".join(f"{cell:>28}" for cell in cells))


def _describe_cpu() -> str:
    told = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    model = re.search(r"^model name\s*: (.+)$", told, re.MULTILINE)
    flags = sorted({"avx512_vnni", "avx_vnni"} & set(told.split()))
    return f"{model[1] if model else 'unknown CPU'}, {'with ' + ', '.join(flags) if flags else 'without VNNI'}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reader", type=Path, nargs="?", default=BUNDLED)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--load", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.load:
        print(json.dumps(load_once(chosen.reader)))
    else:
        show(measure(chosen.reader, chosen.against, chosen.rounds))


if __name__ == "__main__":
    main()
