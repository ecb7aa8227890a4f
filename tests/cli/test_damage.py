"""F7: index, database and weights damaged or deleted. It is seen, it is said what to do, and what SQL holds stays.

Never is a question answered with "not in the book" because the index is broken.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import askbook
import processes
from askbook.answer.ask import NOT_BY_WORDS
from askbook.answer.confidence import NOT_IN_BOOK
from cli.serving import ASKBOOK, build_environment
from figures import Figure

pytestmark = pytest.mark.row("F7")

QUESTION, ANSWER = "With what force does the gripper close?", "40 newtons"
VECTOR = 384 * 4
DENSE = "vectors/askbook/segments/*/vector_storage-dense/vectors/chunk_0.mmap"
HELD = (
    "segments/*/mutable_*",
    "segments/*/*.json",
    "segments/*/*/*/*.mmap",
    "segments/*/*/page_*",
    "segments/*/*/store/page_*",
    "wal/*",
)
"""What of an index is more than a shortcut to the rest."""
WORDS = "vectors/askbook/segments/*/vector_storage-keywords/store/page_0.dat"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a book, and a home in which it is ingested."""
    place = tmp_path_factory.mktemp("whole")
    (place / "robots").mkdir()
    for number in range(1, 7):
        text = (
            f"# Gear {number}\n\nGear {number} of the arm turns {number}0 times a minute and wants oil once a week.\n"
        )
        (place / "robots" / f"{number:02}-gear.md").write_text(text)
    (place / "robots" / "07-gripper.md").write_text("# Gripper\n\nThe gripper closes with a force of 40 newtons.\n")
    assert _run(place, "ingest", "robots").returncode == 0
    return place


@pytest.fixture
def place(whole: Path, tmp_path: Path) -> Path:
    """A copy of the home; the folder is the same, for the ledger knows it by its name."""
    (tmp_path / "robots").symlink_to(whole / "robots")
    shutil.copytree(whole / "home", tmp_path / "home")
    return tmp_path


def _run(place: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Where the environment names another askbook, it is that one that runs, and nothing forked of this."""
    command, env = [*ASKBOOK, *arguments], build_environment(place / "home", **environment)
    if environment:
        quiet = subprocess.DEVNULL
        done = subprocess.run(command, capture_output=True, text=True, cwd=place, env=env, stdin=quiet, timeout=120)
    else:
        done = processes.run(command, cwd=place, env=env)
    assert "Traceback" not in done.stderr and done.returncode in (0, 1), done.stderr
    return done


def _write_over(place: Path, pattern: str, at: int, content: bytes) -> None:
    [file] = (place / "home").glob(pattern)
    with file.open("r+b") as opened:
        opened.seek(at)
        opened.write(content)


def _zero(place: Path) -> None:
    _write_over(place, DENSE, 0, bytes(7 * VECTOR))


def _garble(place: Path) -> None:
    _write_over(place, DENSE, 0, b"\xff" * 3 * VECTOR + random.Random(5).randbytes(4 * VECTOR))


def _swap(place: Path) -> None:
    """Each vector is whole, and another chunk's."""
    [file] = (place / "home").glob(DENSE)
    stored = file.read_bytes()[: 7 * VECTOR]
    _write_over(place, DENSE, 0, stored[VECTOR:] + stored[:VECTOR])


def _spoil_words(place: Path) -> None:
    [file] = (place / "home").glob(WORDS)
    held = len(file.read_bytes().rstrip(b"\0"))
    _write_over(place, WORDS, held // 2, b"\x07" * 64)


def _delete(place: Path) -> None:
    shutil.rmtree(place / "home" / "vectors")


def _take_part(place: Path) -> None:
    [part] = (place / "home").glob("vectors/askbook/segments/*/segment.json")
    part.unlink()


@pytest.mark.parametrize(
    ("damage", "mend"),
    [
        (_zero, ("verify", "--repair")),
        (_garble, ("ingest", "robots", "--mode", "full")),
        (_garble, ("ingest", "robots", "--mode", "recreate")),
        (_delete, ("verify", "--repair")),
        (_delete, ("ingest", "robots", "--mode", "full")),
        (_take_part, ("ingest", "robots", "--mode", "recreate")),
    ],
)
def test_a_broken_index_is_an_error_that_says_what_mends_it(
    place: Path, damage: Callable[[Path], None], mend: tuple[str, ...]
) -> None:
    damage(place)
    asked = _run(place, "ask", QUESTION)
    assert asked.returncode == 1 and "askbook verify --repair" in asked.stderr, asked.stderr
    assert _run(place, "verify").returncode == 1
    assert _run(place, *mend).returncode == 0
    assert _run(place, "verify").returncode == 0
    assert ANSWER in _run(place, "ask", QUESTION).stdout


@pytest.mark.parametrize("damage", [_swap, _spoil_words])
def test_verify_proves_what_the_index_holds(place: Path, damage: Callable[[Path], None]) -> None:
    assert _run(place, "verify").returncode == 0
    damage(place)
    assert _run(place, "verify").returncode == 1
    assert _run(place, "verify", "--repair").returncode == 0
    assert ANSWER in _run(place, "ask", QUESTION).stdout


def test_a_lost_index_is_not_up_to_date(place: Path) -> None:
    _delete(place)
    again = _run(place, "ingest", "robots")
    assert again.returncode == 1 and "askbook verify --repair" in again.stderr


def test_the_other_books_of_a_broken_index_are_named_too(place: Path) -> None:
    (place / "tea").mkdir()
    (place / "tea" / "01-green.md").write_text("# Green tea\n\nGreen tea is steeped at 75 degrees.\n")
    assert _run(place, "ingest", "tea").returncode == 0
    _take_part(place)
    assert "for each of the other books" in _run(place, "verify", "--repair", "--book", "robots").stderr
    lost = _run(place, "ask", "How hot is green tea steeped?", "--book", "tea")
    assert lost.returncode == 1 and "askbook verify --repair" in lost.stderr
    assert _run(place, "verify", "--repair", "--book", "tea").returncode == 0
    assert ANSWER in _run(place, "ask", QUESTION, "--book", "robots").stdout


def _spoil(file: Path, chance: random.Random) -> None:
    """Some bytes, of those that hold something."""
    content = bytearray(file.read_bytes())
    filled = [at for at in range(0, len(content), 64) if any(content[at : at + 64])]
    at, size = chance.choice(filled or [0]), chance.choice([1, 16, 64, 256])
    content[at : at + size] = chance.randbytes(min(size, len(content) - at))
    file.write_bytes(content)


def test_byte_ranges_of_the_index(place: Path, whole: Path, torture: bool, figure: Figure) -> None:
    chance, seen, count = random.Random(7), 0, 20 if torture else 3
    for _ in range(count):
        shutil.rmtree(place / "home")
        shutil.copytree(whole / "home", place / "home")
        held = [one for pattern in HELD for one in (place / "home/vectors/askbook").glob(pattern)]
        _spoil(chance.choice(sorted(held)), chance)
        told = _run(place, "verify")
        seen += told.returncode
        asked = _run(place, "ask", QUESTION)
        told_so = told.returncode == 1 and NOT_IN_BOOK not in asked.stdout
        assert ANSWER in asked.stdout or asked.returncode == 1 or told_so, asked.stdout
        assert _run(place, "verify", "--repair").returncode == 0
        assert ANSWER in _run(place, "ask", QUESTION).stdout
    figure(
        f"F7: {count} byte ranges of the index: {seen} seen by verify, {count - seen} without effect; all mended", count
    )


def test_byte_ranges_of_the_database(place: Path, whole: Path, torture: bool, figure: Figure) -> None:
    chance, told, count = random.Random(11), 0, 20 if torture else 3
    for _ in range(count):
        shutil.copy(whole / "home/askbook.db", place / "home/askbook.db")
        _spoil(place / "home/askbook.db", chance)
        asked, verified = _run(place, "ask", QUESTION), _run(place, "verify")
        told += asked.returncode or verified.returncode
        told_so = verified.returncode == 1 and NOT_IN_BOOK not in asked.stdout
        assert ANSWER in asked.stdout or asked.returncode == 1 or told_so, asked.stdout
    figure(
        f"F7: {count} byte ranges of the database: {told} told, {count - told} without effect, no wrong refusal", count
    )


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """askbook as it was installed, in which a file can be damaged and no other is touched."""
    installed = Path(askbook.__file__).parent
    return Path(shutil.copytree(installed, tmp_path / "installed" / "askbook", copy_function=os.symlink))


@pytest.mark.parametrize(
    "name", ["index/embedders/data/minilm.onnx", "reading/data/reader.onnx", "data/tokenizer.json"]
)
def test_byte_ranges_of_the_weights(name: str, package: Path, place: Path, torture: bool, figure: Figure) -> None:
    file, chance, count, refused = package / name, random.Random(13), 20 if torture else 2, 0
    whole = file.resolve()
    for number in range(count):
        file.unlink()
        if number:
            shutil.copy(whole, file)
            with file.open("r+b") as opened:
                opened.seek(chance.randrange(whole.stat().st_size - 64))
                opened.write(chance.randbytes(64))
        asked = _run(place, "ask", QUESTION, PYTHONPATH=str(package.parent))
        refused += ANSWER not in asked.stdout
        assert NOT_IN_BOOK not in asked.stdout
        told = NOT_BY_WORDS in asked.stdout or "Install askbook anew" in asked.stderr
        assert ANSWER in asked.stdout or told, asked.stdout + asked.stderr
        file.touch()
    figure(f"F7: {count} times {whole.name} was gone or damaged: {refused} told so, {count - refused} answered", count)


def test_a_database_that_is_gone_is_not_an_absent_answer(place: Path) -> None:
    """Nobody can tell it from a new home; but a new home knows no book, and says so."""
    for file in (place / "home").glob("askbook.db*"):
        file.unlink()
    asked = _run(place, "ask", QUESTION)
    assert NOT_IN_BOOK not in asked.stdout
    assert _run(place, "ingest", "robots").returncode == 0
    assert ANSWER in _run(place, "ask", QUESTION).stdout
