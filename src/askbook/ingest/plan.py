"""What has to be done so that the index says what the folder says."""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from askbook.domain import IngestMode, Lesson, LessonRecord

ChangeKind = Literal["new", "modified", "renamed", "moved", "again"]


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """`modified`: the text changed; `moved`: only its place in the book did; `again`: asked for by a full ingestion."""

    kind: ChangeKind
    lesson: Lesson
    replaces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    changes: tuple[PlannedChange, ...]
    deleted: tuple[str, ...]
    unchanged: tuple[str, ...]

    def files(self, kind: ChangeKind) -> list[str]:
        return [change.lesson.source_file for change in self.changes if change.kind == kind]


def plan_changes(
    lessons: Sequence[Lesson],
    records: Mapping[str, LessonRecord],
    unreadable: Collection[str],
    mode: IngestMode,
) -> Plan:
    """Compare the folder with the ledger. A file that cannot be read just now keeps what was last known of it."""
    here = {lesson.source_file for lesson in lessons}
    gone = {file: record for file, record in records.items() if file not in here and file not in unreadable}
    gone_by_hash: dict[str, list[str]] = {}
    for file, record in gone.items():
        gone_by_hash.setdefault(record.file_hash, []).append(file)

    changes: list[PlannedChange] = []
    unchanged: list[str] = []
    for lesson in lessons:
        record = records.get(lesson.source_file)
        old_names = gone_by_hash.get(lesson.file_hash)
        if record is None and old_names:
            changes.append(PlannedChange("renamed", lesson, (old_names.pop(0),)))
        elif record is None:
            changes.append(PlannedChange("new", lesson, (lesson.source_file,)))
        elif mode == "incremental" and record.fingerprint == lesson.fingerprint:
            unchanged.append(lesson.source_file)
        else:
            changes.append(PlannedChange(_kind_of(lesson, record), lesson, (lesson.source_file,)))
    renamed = {file for change in changes for file in change.replaces}
    deleted = tuple(file for file in gone if file not in renamed)
    return Plan(tuple(changes), deleted, tuple(unchanged))


def _kind_of(lesson: Lesson, record: LessonRecord) -> ChangeKind:
    if record.file_hash != lesson.file_hash:
        return "modified"
    return "moved" if record.fingerprint != lesson.fingerprint else "again"


@dataclass(frozen=True, slots=True)
class Parcel:
    """What one shard of a plan writes: it goes through the database to whichever worker takes it."""

    changes: tuple[PlannedChange, ...] = ()
    deleted: tuple[str, ...] = ()


def pack(parcel: Parcel) -> bytes:
    return zlib.compress(json.dumps(asdict(parcel)).encode(), level=1)


def unpack(content: bytes) -> Parcel:
    parcel = json.loads(zlib.decompress(content))
    changes = (PlannedChange(c["kind"], Lesson(**c["lesson"]), tuple(c["replaces"])) for c in parcel["changes"])
    return Parcel(tuple(changes), tuple(parcel["deleted"]))
