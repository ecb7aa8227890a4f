"""S6: the secrets that tests use look like secrets, so that one that got where it should not is seen there."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from pathlib import Path

from sqlalchemy import select

from askbook.store.database import Database
from askbook.store.schema import metadata

SECRET = re.compile(r"askbook_[0-9a-f]{12}_[A-Za-z0-9_-]{43}|(?:sk|pg)-(?:secret-)?canary[\w-]*")
CLIENTS = ("http", "urllib3", "schemathesis")
"""These tell what a test itself did."""


class Listener(logging.Handler):
    """Hears every line that is logged in the process of a test, with its traceback."""

    def __init__(self) -> None:
        super().__init__()
        self.lines = 0
        self.told: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if not record.name.startswith(CLIENTS):
            self.lines += 1
            line = self.format(record)
            if SECRET.search(line):
                self.told.append(line)


async def find_stored(database: Database, home: Path, parts: Iterable[str] = ()) -> list[str]:
    """Every secret that lies in a table or in a file, and each of the parts of one."""
    texts = [path.read_bytes().decode("latin-1") for path in home.rglob("*") if path.is_file()]
    async with database.reading() as connection:
        for table in metadata.sorted_tables:
            texts += [str(tuple(row)) for row in await connection.execute(select(table))]
    assert texts
    return [found[0] for text in texts for found in SECRET.finditer(text)] + [
        part for part in parts if any(part in text for text in texts)
    ]
