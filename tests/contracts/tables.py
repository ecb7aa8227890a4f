"""The five contracts as tables: every field and rule a row, with where it lives and what proves it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
SEEDS = ("000", "001", "002", "003", "004")


@dataclass(frozen=True)
class Row:
    name: str
    place: str
    """The section of the document."""
    needs: str
    lives: str
    proof: tuple[str, ...] = ()
    """Ids of tests, as pytest takes them; without brackets all of a test's cases."""
    decided: str = ""
    """The note that says why it is otherwise, …"""
    why: str = ""
    """… in one line."""
    mending: str = ""
    """What is missing still."""


def load_rows(seed: str) -> list[Row]:
    table = tomllib.loads((HERE / f"seed_{seed}.toml").read_text(encoding="utf-8"))
    return [Row(**{**row, "proof": tuple(row.get("proof", ()))}) for row in table["row"]]
