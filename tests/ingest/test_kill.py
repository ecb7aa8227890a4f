"""kill -9 at every named point of an ingestion; run again, it ends where a clean run would have (F1)."""

from __future__ import annotations

import random
import shutil
import signal
import sys
from pathlib import Path

import pytest
import pytest_asyncio
from world import State, change_again, change_book, dump_state, ingest, settings_for, write_book

import processes
from askbook.ingest.verify import verify_book
from askbook.wiring import open_askbook
from builders import copy_home
from figures import Figure

pytestmark = pytest.mark.row("F1")

POINTS = (
    "planned",
    "points noted",
    "points half written",
    "points written",
    "committed",
    "embedding",
    "embedded",
    "vectors written",
    "vectors committed",
    "forgetting",
    "points forgotten",
)
# The others come at least twice in the changed book.
ONCE = ("planned", "points forgotten")
VICTIM = Path(__file__).with_name("victim.py")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def first_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which the unchanged book is ingested."""
    root = tmp_path_factory.mktemp("first")
    write_book(root / "book")
    async with open_askbook(settings_for(root / "home")) as askbook:
        assert (await ingest(askbook, root / "book")).status == "completed"
    return root


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def clean_states(tmp_path_factory: pytest.TempPathFactory) -> tuple[State, State]:
    """What a home holds in which the changed book was ingested in one go; and the book that was changed twice."""
    root = tmp_path_factory.mktemp("clean")
    states: list[State] = []
    for name, changes in (("once", [change_book]), ("twice", [change_book, change_again])):
        folder = write_book(root / name / "book")
        for change in changes:
            change(folder)
        async with open_askbook(settings_for(root / name / "home")) as askbook:
            assert (await ingest(askbook, folder)).status == "completed"
            states.append(await dump_state(askbook, "book"))
    return states[0], states[1]


@pytest.mark.parametrize("point", POINTS)
async def test_killed_and_run_again_equals_a_clean_run(
    point: str, first_home: Path, clean_states: tuple[State, State], tmp_path: Path, torture: bool, figure: Figure
) -> None:
    chance = random.Random(point)
    reads = 0
    rounds = 25 if torture else 3
    for round_ in range(rounds):
        root = tmp_path / str(round_)
        copy_home(first_home / "home", root)
        change_book(write_book(root / "book"))
        log = root / "reader.log"
        nth = 1 if point in ONCE else chance.randint(1, 2)
        # At the point itself, or a moment into what follows it.
        delay = chance.choice([0, 0, chance.uniform(0.1, 20)])
        victim = processes.run([sys.executable, VICTIM, root / "home", root / "book", point, str(nth), str(delay), log])
        assert victim.returncode == -signal.SIGKILL, victim.stderr
        # Every other time the folder goes on changing: what the dead process wrote is then of no version at all.
        changed_twice = round_ % 2 == 1
        if changed_twice:
            change_again(root / "book")
        async with open_askbook(settings_for(root / "home")) as askbook:
            again = await ingest(askbook, root / "book")
            assert again.status == "completed", again.error_message
            assert (await dump_state(askbook, "book")).differs_from(clean_states[changed_twice]) == []
            verdict = await verify_book("book", askbook.ledger, askbook.index, embeds=True)
            assert verdict.agrees, verdict.differences
        lines = log.read_text().splitlines() if log.exists() else []
        assert [line for line in lines if line.startswith("torn")] == []
        reads += lines.count("read")
        shutil.rmtree(root)
    assert reads > 0
    figure(f"F1: {point}: {reads} whole lessons read, none torn", cases=rounds)
