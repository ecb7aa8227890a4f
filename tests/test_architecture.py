"""Imports go down only, and rooms on one shelf do not see each other."""

from __future__ import annotations

import ast
from pathlib import Path

import askbook

ROOT = Path(askbook.__file__).parent

# What each room may import, besides itself.
WORDS = {"domain", "errors"}
MAY_SEE = {
    "domain": set(),
    "errors": set(),
    "cache": set(),
    "docstrings": set(),
    "onnx": {"errors"},
    "breaker": set(),
    "formulas": set(),
    "lock": {"errors"},
    "settings": WORDS | {"docstrings"},
    "book": WORDS,
    "index": WORDS | {"cache", "onnx", "breaker"},
    "reading": WORDS | {"cache", "onnx"},
    "store": WORDS | {"cache"},
    "answer": WORDS | {"formulas", "breaker", "index", "reading", "store"},
    "ingest": WORDS | {"book", "index", "store"},
    "backup": WORDS | {"index", "store"},
    "wiring": WORDS
    | {"breaker", "settings", "lock", "book", "index", "reading", "store", "ingest", "answer", "backup"},
    "shapes": WORDS | {"docstrings", "answer", "book"},
    "python": WORDS | {"settings", "wiring", "answer", "book", "index"},
    "api": WORDS
    | {"formulas", "breaker", "settings", "wiring", "shapes", "answer", "book", "index", "store", "ingest"},
    "evals": WORDS | {"settings", "wiring", "answer", "book", "index", "store", "ingest"},
    "cli": WORDS
    | {
        "formulas",
        "lock",
        "settings",
        "wiring",
        "shapes",
        "evals",
        "answer",
        "book",
        "index",
        "store",
        "ingest",
        "backup",
    },
}


SERVES = {"serve", "mcp", "worker"}
"""The commands that start what `api` builds; every other one prints the same shapes and knows nothing of HTTP."""


def _room(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def _imported_modules(path: Path) -> list[str]:
    modules: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules += [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            module = node.module or ""
            modules += [f"askbook.{name.name}" for name in node.names] if module == "askbook" else [module]
    return modules


def _imported_rooms(path: Path) -> set[str]:
    return {module.split(".")[1] for module in _imported_modules(path) if module.startswith("askbook.")}


def _may_see(path: Path) -> set[str]:
    starts = path.parent.name == "cli" and path.stem in SERVES
    return MAY_SEE[_room(path)] | ({"api"} if starts else set())


def test_every_import_goes_down() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {room}"
        for path in sorted(ROOT.rglob("*.py"))
        if _room(path) != "__init__"
        for room in sorted(_imported_rooms(path) - {_room(path), "__version__"} - _may_see(path))
    ]
    assert wrong == []


def test_every_room_is_on_a_shelf() -> None:
    rooms = {_room(path) for path in ROOT.rglob("*.py")} - {"__init__"}
    assert rooms == set(MAY_SEE)


def test_only_wiring_and_the_doors_read_settings() -> None:
    readers = {_room(path) for path in ROOT.rglob("*.py") if "settings" in _imported_rooms(path)}
    assert readers <= {"wiring", "cli", "api", "evals", "python"}


def test_only_one_file_knows_mcp() -> None:
    """It is an extra, and takes half a second to import: all else goes without."""
    knowing = [
        path for path in ROOT.rglob("*.py") if any(one.split(".")[0] == "mcp" for one in _imported_modules(path))
    ]
    assert knowing == [ROOT / "api" / "mcp.py"]
