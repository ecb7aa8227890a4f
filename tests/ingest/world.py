"""A small book to ingest, change and ingest again, and everything that is stored of it, to compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from askbook.book.reader import read_book
from askbook.domain import Chunk, IngestMode, Job
from askbook.index.embedders.base import Embedder, Vector
from askbook.ingest.worker import Watcher, watch_nothing
from askbook.settings import Settings
from askbook.wiring import Askbook

TOPICS = ("gripper", "lidar", "wheel", "sonar", "gyro", "motor", "bumper")


def write_book(folder: Path) -> Path:
    """Seven lessons of three sections each."""
    for number, topic in enumerate(TOPICS, start=1):
        sections = [f"# The {topic}\n\nLesson {number} is about the {topic}.\n"]
        for part in ("purpose", "wiring", "care"):
            # Long enough that each section is a chunk of its own.
            text = " ".join(f"The {part} of a {topic} needs remark {number}.{count}." for count in range(20))
            sections.append(f"## The {part} of the {topic}\n\n{text}\n")
        file = folder / "module-1-parts" / f"chapter-{1 + number // 4}-more" / f"{number:02}-{topic}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(sections))
    return folder


def file_of(folder: Path, topic: str) -> Path:
    return next(folder.rglob(f"*-{topic}.md"))


def change_book(folder: Path) -> None:
    """One paragraph edited, one file renamed, one deleted, one new, one moved to another chapter."""
    lidar = file_of(folder, "lidar")
    lidar.write_text(
        lidar.read_text().replace("purpose of a lidar needs remark 2.7.", "purpose of a lidar is to see 2.7.")
    )
    sonar = file_of(folder, "sonar")
    sonar.rename(sonar.with_name(sonar.name.replace("sonar", "ultrasound")))
    file_of(folder, "wheel").unlink()
    bumper = file_of(folder, "bumper")
    bumper.rename(folder / "module-1-parts" / "chapter-1-more" / bumper.name)
    new = folder / "module-1-parts" / "chapter-1-more" / "09-antenna.md"
    new.write_text("# The antenna\n\nAn antenna listens.\n\n## Care\n\n" + "Keep the antenna dry. " * 60)


def change_again(folder: Path) -> None:
    """What somebody does while an ingestion lies dead: the new file goes, the edited one is edited once more."""
    file_of(folder, "antenna").unlink()
    lidar = file_of(folder, "lidar")
    lidar.write_text(lidar.read_text().replace("is to see 2.7.", "is to look 2.7."))


class CountingEmbedder:
    """The real embedder, with a count of what it was asked for."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.texts: list[str] = []

    @property
    def name(self) -> str:
        return self.embedder.name

    @property
    def dimension(self) -> int:
        return self.embedder.dimension

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        self.texts += texts
        return await self.embedder.embed_passages(texts)

    async def embed_query(self, text: str) -> Vector:
        return await self.embedder.embed_query(text)

    async def close(self) -> None:
        await self.embedder.close()


def settings_for(home: Path, **changes: object) -> Settings:
    return Settings.model_validate({"askbook_home": home, **changes})


async def ingest(
    askbook: Askbook, folder: Path, mode: IngestMode = "incremental", watch: Watcher = watch_nothing
) -> Job:
    book = read_book(folder)
    job = await askbook.jobs.submit(book.book_id, str(folder), mode)
    return await askbook.worker.run_job(job.job_id, watch)


@dataclass(frozen=True)
class State:
    """All that is stored of a book, less the times."""

    files: dict[str, tuple[str, tuple[str, ...]]]
    chunks: dict[str, Chunk]
    terms: dict[int, int]
    doomed: list[str]
    points: dict[str, bool]
    vectors: dict[str, Vector]

    def differs_from(self, other: State) -> list[str]:
        names = [
            name
            for name in ("files", "chunks", "terms", "doomed", "points")
            if getattr(self, name) != getattr(other, name)
        ]
        if self.vectors.keys() != other.vectors.keys() or not all(
            np.allclose(vector, other.vectors[point], atol=1e-3) for point, vector in self.vectors.items()
        ):
            names.append("vectors")
        return names


async def dump_state(askbook: Askbook, book_id: str) -> State:
    drafts = await askbook.ledger.load_drafts(book_id)
    points = {point: has_vector async for point, has_vector in askbook.index.scroll_points(book_id)}
    records = await askbook.ledger.load_records(book_id)
    return State(
        files={file: (record.fingerprint, record.chunk_ids) for file, record in records.items()},
        chunks={draft.point_id: draft.chunk for draft in drafts},
        terms=await askbook.ledger.load_terms(book_id),
        doomed=await askbook.ledger.load_doomed(book_id),
        points=points,
        vectors=await askbook.index.load_vectors(sorted(points)),
    )
