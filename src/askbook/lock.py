"""One process at a time owns a data folder, because of Qdrant Edge. Others go through it where it is a server."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO

from askbook.errors import DataInUse, StorageError


@dataclass(frozen=True, slots=True)
class Server:
    """A server that owns a data folder."""

    url: str
    token: str = field(repr=False)
    """Proof that the caller may read the folder."""
    version: str
    collection: str
    embedder: str
    """Empty where it has none."""


@contextlib.contextmanager
def own_folder(home: Path) -> Iterator[None]:
    """Hold the folder until the block ends or the process dies."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = _open(home)
    except OSError as error:
        raise StorageError(
            f"the data folder {home} cannot be used: {error.strerror}", "Set ASKBOOK_HOME to a folder you may write to."
        ) from error
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            who, server = _read(handle)
            where = f", at {server.url}" if server else ""
            raise DataInUse(
                f"the data in {home} is in use by {who or 'another process'}{where}",
                "End that process or wait for it, then run this again; or set ASKBOOK_HOME to another folder.",
            ) from error
        try:
            handle.truncate(0)
            # One line, whatever was typed: the next one names a server.
            command = " ".join(" ".join(["askbook", *sys.argv[1:]]).split())
            handle.write(f"`{command[:200]}` (process {os.getpid()})\n")
            handle.flush()
        except OSError as error:
            raise StorageError(
                f"the data folder {home} cannot be written to: {error.strerror}",
                "Free some disk space, then run the same command again.",
            ) from error
        try:
            yield
        finally:
            # A name left behind does no harm: the lock ends with this process.
            with contextlib.suppress(OSError):
                handle.truncate(0)


def announce(home: Path, server: Server) -> None:
    """Called by the folder's owner: `find_server` finds the server until another process owns the folder."""
    with _open(home) as handle:
        handle.write(json.dumps(asdict(server)) + "\n")


def find_server(home: Path) -> Server | None:
    """The server that owns the folder; for a process that could not lock it."""
    if not (home / "owner").is_file():
        return None
    with _open(home) as handle:
        return _read(handle)[1]


def is_taken(home: Path) -> bool:
    """Some process has the folder now."""
    try:
        with own_folder(home):
            return False
    except DataInUse:
        return True


def _read(handle: IO[str]) -> tuple[str, Server | None]:
    """Who owns the folder, and where it serves."""
    handle.seek(0)
    who, _, told = handle.read().partition("\n")
    named = json.loads(told) if told.strip() else None
    # Another version may tell more, or less.
    return who, Server(**{name: named.get(name, "") for name in Server.__slots__}) if named else None


def _open(home: Path) -> IO[str]:
    """A server's token is in it: for its owner's eyes alone."""
    handle = os.fdopen(os.open(home / "owner", os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), "a+", encoding="utf-8")
    os.fchmod(handle.fileno(), 0o600)
    return handle
