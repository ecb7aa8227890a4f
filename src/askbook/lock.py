"""One process at a time owns a data folder: Qdrant Edge and SQLite live inside it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from askbook.errors import DataInUse, StorageError


@contextlib.contextmanager
def own_folder(home: Path) -> Iterator[None]:
    """Hold the folder until the block ends or the process dies."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = (home / "owner").open("a+", encoding="utf-8")
    except OSError as error:
        raise StorageError(
            f"the data folder {home} cannot be used: {error.strerror}", "Set ASKBOOK_HOME to a folder you may write to."
        ) from error
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            handle.seek(0)
            raise DataInUse(
                f"the data in {home} is in use by {handle.read().strip() or 'another process'}",
                "A server is asked over HTTP, or stopped first; else wait, or set ASKBOOK_HOME to another folder.",
            ) from error
        handle.truncate(0)
        handle.write(f"`{' '.join(['askbook', *sys.argv[1:]])[:200]}` (process {os.getpid()})")
        handle.flush()
        yield
