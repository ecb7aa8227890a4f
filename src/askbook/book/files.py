"""Files of a book's folder, opened with care."""

from __future__ import annotations

import os
import stat
from pathlib import Path

EXTENSIONS = (".md", ".mdx", ".markdown", ".ipynb")
MAX_SMALL_BYTES = 1024 * 1024


class Unreadable(Exception):
    """Why one file cannot be used."""


def read_bytes(path: Path, limit: int) -> bytes:
    """The bytes of a regular file; a link, pipe or device is never opened for reading."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise Unreadable("is not a regular file; it was not opened")
        with os.fdopen(os.open(path, flags), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise Unreadable("is not a regular file; it was not opened")
            if status.st_size > limit:
                raise Unreadable(f"is larger than {limit // 1024 // 1024} MB; split it")
            return file.read(limit)
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}") from error
