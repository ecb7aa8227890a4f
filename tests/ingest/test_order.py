"""What is on disk before what: the order that a power cut would ask for, and that kill -9 cannot show."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from world import change_book, ingest, settings_for, write_book

from askbook.index.vectors.base import VectorIndex
from askbook.store.ledger import Ledger
from askbook.wiring import open_askbook

LETTERS = {
    "doom_points": "D",
    "save_points": "P",
    "flush": "F",
    "commit": "C",
    "save_vectors": "V",
    "mark_embedded": "M",
    "forget_points": "X",
    "strike_doomed": "S",
}


class Recorder:
    """Hands every call on to the real thing, and keeps the order of those that write."""

    def __init__(self, real: VectorIndex | Ledger, calls: list[str]) -> None:
        self.real, self.calls = real, calls

    def __getattr__(self, name: str) -> Any:
        self.calls.append(LETTERS.get(name, ""))
        return getattr(self.real, name)


async def test_nothing_is_called_done_before_it_is_on_disk(tmp_path: Path) -> None:
    folder = write_book(tmp_path / "book")
    async with open_askbook(settings_for(tmp_path / "home")) as askbook:
        await ingest(askbook, folder)
        change_book(folder)
        calls: list[str] = []
        askbook.worker.index = Recorder(askbook.index, calls)  # pyright: ignore[reportAttributeAccessIssue]
        askbook.worker.ledger = Recorder(askbook.ledger, calls)  # pyright: ignore[reportAttributeAccessIssue]
        await ingest(askbook, folder)
    replaced, removed, embedded, forgotten = "(DP+FC)+", "C", "(VFM)+", "X+FS"
    assert re.fullmatch(replaced + removed + embedded + forgotten, "".join(calls)), "".join(calls)
