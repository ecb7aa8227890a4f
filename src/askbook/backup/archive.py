"""A backup file: a zip with the header, one JSON line a row in a member a table, and the SHA-256 of each member.

Ordinary tools open it: `unzip -p FILE chunks.jsonl | head -1`, and unpacked, `sha256sum -c SHA256SUMS`.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import struct
import zipfile
import zlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import IO

from sqlalchemy import Table

from askbook.backup.holdings import CARRIED, FORMAT, ROWS_AT_ONCE, VECTOR, Header, Holdings, Row, Watcher
from askbook.errors import InputError, StorageError
from askbook.index.vectors.checks import split_batches
from askbook.store.database import HEAD

HEADER, SUMS = "askbook.json", "SHA256SUMS"
BLOCK = 1 << 20
# What zipfile raises on a wrong byte, depending on its place.
DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    RuntimeError,
    ValueError,
    KeyError,
    TypeError,
)


class Archive:
    """A backup that was found whole and of this askbook's form."""

    def __init__(self, opened: zipfile.ZipFile, header: Header) -> None:
        self._zip = opened
        self.header = header

    async def rows(self, table: Table) -> AsyncIterator[list[Row]]:
        with self._zip.open(_member(table)) as lines:
            for some in split_batches(lines, ROWS_AT_ONCE):
                yield [json.loads(line) for line in some]


# --- writing --------------------------------------------------------------------------------------


async def save_archive(file: Path, holdings: Holdings, watch: Watcher) -> int:
    """The file is there when it is whole, or not at all; an older backup of the same name is kept until then.

    Returns how many chunks had no vector to save.
    """
    if file.exists():
        _refuse_to_replace(file)
    with _written_whole(file) as handle, zipfile.ZipFile(handle, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as target:
        head = json.dumps(asdict(holdings.header), indent=2).encode()
        target.writestr(HEADER, head)
        sums = [_sum_line(hashlib.sha256(head).hexdigest(), HEADER)]
        done = bare = 0
        for table in CARRIED:
            digest = hashlib.sha256()
            with target.open(_member(table), "w", force_zip64=True) as member:
                async for rows in holdings.rows(table):
                    lines = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
                    digest.update(lines)
                    member.write(lines)
                    done += len(rows)
                    bare += sum(row.get(VECTOR, "") is None for row in rows)
                    watch("saving", done, holdings.header.total)
            sums.append(_sum_line(digest.hexdigest(), _member(table)))
        target.writestr(SUMS, "".join(sums))
    return bare


@contextlib.contextmanager
def _written_whole(file: Path) -> Iterator[IO[bytes]]:
    """Beside the file, and renamed at the end. For its owner's eyes: conversations and hashes of keys are in it."""
    part = file.with_name(f"{file.name}.part")
    try:
        with os.fdopen(os.open(part, os.O_RDWR | os.O_CREAT, 0o600), "wb") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            try:
                # What a killed run has left.
                handle.truncate(0)
                yield handle
                handle.flush()
                os.fsync(handle.fileno())
                part.replace(file)
            except BaseException:
                part.unlink(missing_ok=True)
                raise
    except BlockingIOError as error:
        raise InputError(f"another askbook is writing {file}", "Wait for it to end, or name another file.") from error
    except OSError as error:
        raise StorageError(
            f"{file} cannot be written: {error.strerror}",
            "Name a file on a disk with room, in a folder you may write to.",
        ) from error


def _refuse_to_replace(file: Path) -> None:
    """A backup gives way to a newer one; a file of any other kind was named by mistake."""
    with contextlib.suppress(zipfile.BadZipFile, OSError), zipfile.ZipFile(file) as opened:
        if SUMS in opened.namelist() and HEADER in opened.namelist():
            return
    raise InputError(f"{file} is there already, and is no backup of askbook", "Name another file.")


# --- reading --------------------------------------------------------------------------------------


@contextlib.contextmanager
def open_archive(file: Path, watch: Watcher) -> Iterator[Archive]:
    """Read once from end to end before anything else is done with it."""
    with contextlib.ExitStack() as stack:
        try:
            opened = stack.enter_context(zipfile.ZipFile(file))
            header = _read_header(file, opened)
            _check_sums(file, opened, watch)
        except (FileNotFoundError, PermissionError, IsADirectoryError) as error:
            raise InputError(
                f"{file} cannot be read: {error.strerror}", "Check its name, and whether you may."
            ) from error
        except DAMAGED as error:
            raise _damaged(file) from error
        yield Archive(opened, header)


def _read_header(file: Path, opened: zipfile.ZipFile) -> Header:
    header = Header(**json.loads(opened.read(HEADER)))
    if (header.format, header.schema) == (FORMAT, HEAD):
        return header
    age = "newer" if (header.format, header.schema) > (FORMAT, HEAD) else "older"
    raise InputError(
        f"{file} was made by askbook {header.askbook} with a database of version {header.schema},"
        f" which is {age} than this one's {HEAD}",
        "Upgrade askbook, then restore it."
        if age == "newer"
        else "Restore it with the askbook that made it; the database is brought up to date when this one opens it.",
    )


def _check_sums(file: Path, opened: zipfile.ZipFile, watch: Watcher) -> None:
    wanted = sorted([HEADER, SUMS, *map(_member, CARRIED)])
    if sorted(opened.namelist()) != wanted:
        raise _damaged(file)
    total = sum(info.file_size for info in opened.infolist())
    done, sums = 0, ""
    for name in [HEADER, *map(_member, CARRIED)]:
        digest = hashlib.sha256()
        with opened.open(name) as member:
            while block := member.read(BLOCK):
                digest.update(block)
                done += len(block)
                watch("checking", done, total)
        sums += _sum_line(digest.hexdigest(), name)
    if opened.read(SUMS).decode(errors="replace") != sums:
        raise _damaged(file)


def _damaged(file: Path) -> InputError:
    return InputError(
        f"{file} is no whole backup of askbook: it was cut short, altered, or is something else",
        "Take another copy of it, or an earlier backup. Nothing was written.",
    )


def _member(table: Table) -> str:
    return f"{table.name}.jsonl"


def _sum_line(digest: str, name: str) -> str:
    return f"{digest}  {name}\n"
