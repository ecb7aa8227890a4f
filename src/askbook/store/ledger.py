"""The ledger: what is indexed, file by file, and which points readers may see.

Its commit is the one moment at which a lesson changes. A point's id is written into `doomed_points` before the point is
written into the index, and struck out by the commit that makes it live; the points that the commit replaced are doomed
in its place. So whatever a killed process left in the index is known here, and `load_doomed` lists it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from datetime import UTC, datetime
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Row, RowMapping, Select, delete, func, select, true, type_coerce, update
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.types import NullType

from askbook.cache import Cache
from askbook.domain import (
    Book,
    BookRecord,
    Chunk,
    IngestMode,
    Lesson,
    LessonRecord,
    Outline,
    Piece,
    SectionStart,
    to_public_id,
)
from askbook.errors import NotFound
from askbook.store.database import Database
from askbook.store.outline import LessonRow, build_outline
from askbook.store.schema import books, calibrations, chunks, doomed_points, indexes, lessons, suggestions, terms

T = TypeVar("T")
Along = Callable[[AsyncConnection], contextlib.AbstractAsyncContextManager[object]]
"""Checks and writes around the rest of the same transaction; if it raises, all is undone."""

# The most values in one statement; SQLite takes 32,766, PostgreSQL 32,767.
STATEMENT_VALUES = 900
State = tuple[str, int, object, object]
"""A chunk's point, its book's revision, its last change and its embedding: its row is the same while these are."""
CHUNKS_KEPT = 4096


@dataclass(frozen=True, slots=True)
class DraftChunk:
    """A chunk as it was written into the index, and whether it has its dense vector."""

    point_id: str
    chunk: Chunk
    embedded: bool


@dataclass(frozen=True, slots=True)
class Embedded:
    """A live point that has its vector: since when, and by what."""

    point_id: str
    at: datetime | None
    model: str | None


@dataclass(frozen=True, slots=True)
class LessonChange:
    """A new version of a lesson; it takes the place of the files that it replaces."""

    lesson: Lesson
    drafts: tuple[DraftChunk, ...]
    replaces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unembedded:
    point_id: str
    embed_text: str
    embed_hash: str


_UNEMBEDDED = (
    select(func.count())
    .select_from(chunks)
    .where(chunks.c.book_id == books.c.book_id, ~chunks.c.embedded)
    .scalar_subquery()
    .label("unembedded_chunks")
)
_CHUNKS_IN_ORDER = select(chunks).order_by(chunks.c.source_file, chunks.c.chunk_index)


class Ledger:
    def __init__(self, database: Database) -> None:
        self.database = database
        self._chunks = Cache[State, Chunk](CHUNKS_KEPT)
        self._outlines: dict[str, Outline] = {}
        self._folders: dict[str, tuple[int, int, tuple[str, ...]]] = {}
        """For each book its revision, and the count of its files and its modules at that revision."""

    # --- what readers see -------------------------------------------------------------------------

    async def live_chunks(self, book_id: str, point_ids: Sequence[str]) -> dict[str, Chunk]:
        """The points that are live, with their chunks."""
        moments = _as_stored(chunks.c.updated_at), _as_stored(chunks.c.embedded_at)
        live = select(chunks.c.point_id, books.c.revision, *moments).join(books, books.c.book_id == chunks.c.book_id)
        found: dict[str, Chunk] = {}
        async with self.database.reading() as connection:
            for some in slices(point_ids):
                query = live.where(chunks.c.book_id == book_id, chunks.c.point_id.in_(some))
                states: dict[str, State] = {row[0]: tuple(row) for row in await connection.execute(query)}
                known = {point_id: self._chunks.get(state) for point_id, state in states.items()}
                if missing := [point_id for point_id, chunk in known.items() if chunk is None]:
                    rows = (await connection.execute(select(chunks).where(chunks.c.point_id.in_(missing)))).mappings()
                    known |= {row["point_id"]: self._chunks.put(states[row["point_id"]], to_chunk(row)) for row in rows}
                found |= {point_id: chunk for point_id, chunk in known.items() if chunk is not None}
        return found

    async def term_frequencies(self, book_id: str, term_ids: Sequence[int]) -> tuple[int, int, dict[int, int]]:
        """The book's revision, how many chunks it has, and how many of them hold each term."""
        its_terms = (terms.c.book_id == books.c.book_id) & terms.c.term_id.in_(list(term_ids))
        query = (
            select(books.c.revision, books.c.total_chunks, terms.c.term_id, terms.c.chunks)
            .select_from(books)
            .outerjoin(terms, its_terms)
            .where(books.c.book_id == book_id)
        )
        rows = await self.database.load(query)
        if not rows:
            return 0, 0, {}
        counts = {row["term_id"]: row["chunks"] for row in rows if row["term_id"] is not None}
        return rows[0]["revision"], rows[0]["total_chunks"], counts

    async def revision(self, book_id: str) -> int:
        """Grows with every commit to the book; 0 for a book that is not there."""
        return await self.database.load_value(select(books.c.revision).where(books.c.book_id == book_id)) or 0

    async def load_lesson(self, book_id: str, parent_doc_id: str) -> list[Chunk]:
        """A whole lesson, in order."""
        # While a job renumbers a book, two files may have the same place for a moment: the newer one counts.
        newest = (
            select(lessons.c.source_file)
            .where(lessons.c.book_id == book_id, lessons.c.parent_doc_id == parent_doc_id)
            .order_by(lessons.c.ingested_at.desc())
        )
        _, found = await self._load_around(book_id, newest)
        if not found:
            raise NotFound(f"there is no lesson {parent_doc_id} in the book {to_public_id(book_id)}")
        return found

    async def load_neighbours(self, book_id: str, chunk_id: str, reach: int = 1) -> list[Chunk]:
        """The chunk with up to `reach` chunks of its lesson before and after it, in order."""
        here = (
            select(chunks.c.source_file, chunks.c.chunk_index)
            .where(chunks.c.book_id == book_id, chunks.c.chunk_id == chunk_id)
            .order_by(chunks.c.updated_at.desc())
        )
        place, lesson = await self._load_around(book_id, here)
        if place is None:
            raise NotFound(f"there is no chunk {chunk_id} in the book {to_public_id(book_id)}")
        return lesson[max(0, place[1] - reach) : place[1] + reach + 1]

    async def _load_around(
        self, book_id: str, place: Select[*tuple[Any, ...]]
    ) -> tuple[Row[*tuple[Any, ...]] | None, list[Chunk]]:
        """The first row of a query for a source file, and the chunks of that file in order."""
        async with self.database.reading() as connection:
            found = (await connection.execute(place.limit(1))).first()
            if found is None:
                return None, []
            query = _CHUNKS_IN_ORDER.where(chunks.c.book_id == book_id, chunks.c.source_file == found[0])
            return found, [to_chunk(row) for row in (await connection.execute(query)).mappings()]

    async def load_outline(self, book_id: str) -> Outline:
        """Every lesson in book order, with its titles and headings; kept in memory until the book changes."""
        about = select(books.c.title, books.c.revision).where(books.c.book_id == book_id)
        async with self.database.reading() as connection:
            book = (await connection.execute(about)).first()
            if book is None:
                raise _no_book(book_id)
            known = self._outlines.get(book_id)
            if known is not None and (known.title, known.revision) == tuple(book):
                return known
            found = await _load_headings(connection, book_id)
        # Thousands of chunks take a while to read, so a thread does it.
        outline = await asyncio.to_thread(build_outline, book_id, book.title, book.revision, *found)
        self._outlines[book_id] = outline
        return outline

    # --- what is indexed --------------------------------------------------------------------------

    async def load_books(self) -> list[BookRecord]:
        return await self._load_books(select(books, _UNEMBEDDED).order_by(books.c.book_id))

    async def load_book(self, book_id: str) -> BookRecord:
        for record in await self._load_books(select(books, _UNEMBEDDED).where(books.c.book_id == book_id)):
            return record
        raise _no_book(book_id)

    async def count_chunks(self, book_id: str) -> int:
        total = await self.database.load_value(select(books.c.total_chunks).where(books.c.book_id == book_id))
        if total is None:
            raise _no_book(book_id)
        return total

    async def _load_books(self, query: Select[Any]) -> list[BookRecord]:
        async with self.database.reading() as connection:
            rows = (await connection.execute(query)).mappings().all()
            return [await self._to_record(connection, row) for row in rows]

    async def _to_record(self, connection: AsyncConnection, row: RowMapping) -> BookRecord:
        """Every question loads its book, so the counts of its lessons are read only after a change."""
        book_id, revision = row["book_id"], row["revision"]
        known = self._folders.get(book_id)
        if known is None or known[0] != revision:
            by_module = select(lessons.c.module, func.count()).where(lessons.c.book_id == book_id)
            counts = {row[0]: row[1] for row in await connection.execute(by_module.group_by(lessons.c.module))}
            known = self._folders[book_id] = (revision, sum(counts.values()), tuple(sorted(counts)))
        _, files, modules = known
        facets = {name: tuple(values) for name, values in row["facets"].items()}
        return BookRecord(**{**row, "facets": facets}, modules=modules, total_files=files)

    async def load_files(self, book_id: str) -> set[str]:
        """Every file that has a record or a chunk; the two agree unless something broke."""
        async with self.database.reading() as connection:
            recorded = await connection.scalars(select(lessons.c.source_file).where(lessons.c.book_id == book_id))
            cut = await connection.scalars(select(chunks.c.source_file).where(chunks.c.book_id == book_id).distinct())
            return {*recorded, *cut}

    async def load_records(self, book_id: str) -> dict[str, LessonRecord]:
        """Every indexed file of a book."""
        query = select(lessons).where(lessons.c.book_id == book_id).order_by(lessons.c.source_file)
        plain = [name for name in LessonRecord.__slots__ if name in lessons.c and name != "chunk_ids"]
        return {
            row["source_file"]: LessonRecord(
                **{name: row[name] for name in plain},
                chunk_ids=tuple(row["chunk_ids"]),
                chunk_count=len(row["chunk_ids"]),
            )
            for row in await self.database.load(query)
        }

    async def load_drafts(self, book_id: str, source_files: Sequence[str] | None = None) -> list[DraftChunk]:
        """The live chunks of some files, or of the whole book, with their points."""
        query = _CHUNKS_IN_ORDER.where(chunks.c.book_id == book_id)
        parts = (
            [chunks.c.source_file.in_(some) for some in slices(source_files)] if source_files is not None else [true()]
        )
        async with self.database.reading() as connection:
            return [
                DraftChunk(row["point_id"], to_chunk(row), row["embedded"])
                for part in parts
                for row in (await connection.execute(query.where(part))).mappings()
            ]

    # --- changing a book --------------------------------------------------------------------------

    async def save_book(self, book: Book, folder: str) -> None:
        facets = {facet.name: list(facet.values) for facet in book.facets}
        values = {"title": book.title, "folder": folder, "facets": facets}
        new = {"book_id": book.book_id, "revision": 0, "total_chunks": 0, **values}
        insert = self.database.insert(books).values(new)
        await self.database.save(insert.on_conflict_do_update(index_elements=["book_id"], set_=values))

    async def doom_points(self, book_id: str, point_ids: Sequence[str]) -> None:
        """Note points before they are written, so that a killed process leaves nothing unknown in the index."""
        async with self.database.writing() as connection:
            await self._doom(connection, book_id, point_ids)

    async def commit(
        self,
        book_id: str,
        changes: Sequence[LessonChange],
        removed_files: Sequence[str],
        term_changes: Mapping[int, int],
        along: Along = contextlib.nullcontext,
    ) -> None:
        """Make the changed lessons live and the removed ones gone, all at once."""
        now = datetime.now(UTC)
        gone = sorted({*removed_files, *(file for change in changes for file in change.replaces)})
        drafts = [draft for change in changes for draft in change.drafts]
        async with self.database.writing() as connection, along(connection):
            await self._remove_files(connection, book_id, gone)
            await _insert(connection, lessons, [_lesson_row(change, now) for change in changes])
            await _insert(connection, chunks, [_chunk_row(draft, now) for draft in drafts])
            await strike_doomed(connection, [draft.point_id for draft in drafts])
            await self._count_terms(connection, book_id, term_changes)
            await _bump(connection, book_id)

    async def forget_files(self, book_id: str, source_files: Sequence[str]) -> None:
        """Make the next job do these files again; until then readers see what they saw. Chunks without a record go."""
        async with self.database.writing() as connection:
            for some in slices(source_files):
                await connection.execute(
                    update(lessons)
                    .where(lessons.c.book_id == book_id, lessons.c.source_file.in_(some))
                    .values(fingerprint="")
                )
                recorded = select(lessons.c.source_file).where(lessons.c.book_id == book_id)
                stray = chunks.c.source_file.in_(some) & chunks.c.source_file.not_in(recorded)
                await connection.execute(delete(chunks).where(chunks.c.book_id == book_id, stray))

    async def stamp_book(self, book_id: str, mode: IngestMode) -> None:
        now = datetime.now(UTC)
        stamp = {"last_incremental_update": now} if mode == "incremental" else {"last_full_ingest": now}
        await self.database.save(update(books).where(books.c.book_id == book_id).values(stamp))

    async def load_terms(self, book_id: str) -> dict[int, int]:
        query = select(terms.c.term_id, terms.c.chunks).where(terms.c.book_id == book_id)
        return {row["term_id"]: row["chunks"] for row in await self.database.load(query)}

    async def recount_terms(self, book_id: str, counts: Mapping[int, int]) -> None:
        async with self.database.writing() as connection:
            await connection.execute(delete(terms).where(terms.c.book_id == book_id))
            await self._count_terms(connection, book_id, counts)
            await _bump(connection, book_id)

    # --- embedding --------------------------------------------------------------------------------

    async def find_embedded(self, book_id: str, embed_hashes: Sequence[str]) -> dict[str, Embedded]:
        """For each text that is embedded already, a live point that has its vector."""
        wanted = select(chunks.c.embed_hash, chunks.c.point_id, chunks.c.embedded_at, chunks.c.embedding_model)
        async with self.database.reading() as connection:
            found: dict[str, Embedded] = {}
            for some in slices(embed_hashes):
                query = wanted.where(chunks.c.book_id == book_id, chunks.c.embed_hash.in_(some), chunks.c.embedded)
                found.update((embed_hash, Embedded(*rest)) for embed_hash, *rest in await connection.execute(query))
            return found

    async def load_unembedded(self, book_id: str, source_files: Sequence[str], limit: int) -> list[Unembedded]:
        query = (
            select(chunks.c.point_id, chunks.c.embed_text, chunks.c.embed_hash)
            .where(chunks.c.book_id == book_id, chunks.c.source_file.in_(source_files), ~chunks.c.embedded)
            .order_by(chunks.c.source_file, chunks.c.chunk_index)
            .limit(limit)
        )
        return [Unembedded(**row) for row in await self.database.load(query)]

    async def count_unembedded(self, book_id: str) -> dict[str, int]:
        """How many chunks of each file wait to be embedded."""
        query = select(chunks.c.source_file, func.count().label("waiting")).group_by(chunks.c.source_file)
        waiting = query.where(chunks.c.book_id == book_id, ~chunks.c.embedded).order_by(chunks.c.source_file)
        return {row["source_file"]: row["waiting"] for row in await self.database.load(waiting)}

    async def mark_embedded(
        self, point_ids: Sequence[str], model: str | None, along: Along = contextlib.nullcontext
    ) -> None:
        """Note that the model has embedded them now; None: they have lost their vectors."""
        now = datetime.now(UTC) if model else None
        values = {"embedded": model is not None, "embedded_at": now, "embedding_model": model}
        async with self.database.writing() as connection, along(connection):
            for some in slices(point_ids):
                await connection.execute(update(chunks).where(chunks.c.point_id.in_(some)).values(values))

    # --- points to forget -------------------------------------------------------------------------

    async def load_doomed(self, book_id: str) -> list[str]:
        """Points that may lie in the index and must go. A live point is never among them."""
        query = (
            select(doomed_points.c.point_id)
            .where(doomed_points.c.book_id == book_id)
            .where(doomed_points.c.point_id.not_in(select(chunks.c.point_id).where(chunks.c.book_id == book_id)))
            .order_by(doomed_points.c.point_id)
        )
        return [row["point_id"] for row in await self.database.load(query)]

    async def strike_doomed(self, point_ids: Sequence[str]) -> None:
        """These are gone from the index."""
        async with self.database.writing() as connection:
            await strike_doomed(connection, point_ids)

    # --- which embedder made the index ------------------------------------------------------------

    async def load_embedder(self, collection: str) -> tuple[str | None, str]:
        """The embedder that made the index, and the collection that holds it."""
        query = select(indexes.c.embedder, indexes.c.stored_in).where(indexes.c.collection == collection)
        for row in await self.database.load(query):
            return row["embedder"], row["stored_in"] or collection
        return None, collection

    async def save_embedder(self, collection: str, embedder: str, dimension: int, stored_in: str = "") -> None:
        """Note which embedder made the index and which collection holds it."""
        row = {"collection": collection, "embedder": embedder, "dimension": dimension, "stored_in": stored_in}
        await self.database.save(self.database.upsert(indexes, row))

    # --- how sure a book's answers are ------------------------------------------------------------

    async def load_calibrations(self, book_id: str) -> dict[str, str]:
        """One for each embedder that the book was calibrated with, the newest last."""
        query = (
            select(calibrations.c.embedder, calibrations.c.calibration)
            .where(calibrations.c.book_id == book_id)
            .order_by(calibrations.c.made_at)
        )
        return {row["embedder"]: row["calibration"] for row in await self.database.load(query)}

    async def save_calibration(self, book_id: str, embedder: str, calibration: str) -> None:
        row = {"book_id": book_id, "embedder": embedder, "calibration": calibration, "made_at": datetime.now(UTC)}
        await self.database.save(self.database.upsert(calibrations, row))

    # --- what a book is asked to begin with -------------------------------------------------------

    async def load_suggestions(self, book_id: str) -> tuple[str, ...]:
        """Questions that the book answers in its current revision; empty while they are being made."""
        current = (suggestions.c.book_id == books.c.book_id) & (suggestions.c.revision == books.c.revision)
        query = select(suggestions.c.questions).join(books, current).where(books.c.book_id == book_id)
        return tuple(await self.database.load_value(query) or ())

    async def load_unsuggested(self) -> list[tuple[str, int]]:
        """The books that have changed since their questions were made, and their revisions."""
        current = (suggestions.c.book_id == books.c.book_id) & (suggestions.c.revision == books.c.revision)
        query = select(books.c.book_id, books.c.revision).outerjoin(suggestions, current)
        missing = query.where(suggestions.c.book_id.is_(None), books.c.total_chunks > 0).order_by(books.c.book_id)
        return [(row["book_id"], row["revision"]) for row in await self.database.load(missing)]

    async def save_suggestions(self, book_id: str, revision: int, questions: Sequence[str]) -> None:
        row = {"book_id": book_id, "revision": revision, "questions": list(questions)}
        await self.database.save(self.database.upsert(suggestions, row))

    # --- inside a transaction ---------------------------------------------------------------------

    async def _doom(self, connection: AsyncConnection, book_id: str, point_ids: Sequence[str]) -> None:
        rows = [{"point_id": point_id, "book_id": book_id} for point_id in point_ids]
        if rows:
            await connection.execute(self.database.insert(doomed_points).on_conflict_do_nothing(), rows)

    async def _remove_files(self, connection: AsyncConnection, book_id: str, source_files: Sequence[str]) -> None:
        for some in slices(source_files):
            those = (chunks.c.book_id == book_id) & chunks.c.source_file.in_(some)
            await self._doom(
                connection, book_id, list(await connection.scalars(select(chunks.c.point_id).where(those)))
            )
            await connection.execute(delete(chunks).where(those))
            await connection.execute(
                delete(lessons).where(lessons.c.book_id == book_id, lessons.c.source_file.in_(some))
            )

    async def _count_terms(self, connection: AsyncConnection, book_id: str, changes: Mapping[int, int]) -> None:
        # Sorted, so that two writers lock the rows in the same order.
        rows = [{"book_id": book_id, "term_id": term, "chunks": by} for term, by in sorted(changes.items()) if by]
        if not rows:
            return
        insert = self.database.insert(terms)
        await connection.execute(
            insert.on_conflict_do_update(
                index_elements=["book_id", "term_id"], set_={"chunks": terms.c.chunks + insert.excluded.chunks}
            ),
            rows,
        )
        if any(row["chunks"] < 0 for row in rows):
            await connection.execute(delete(terms).where(terms.c.book_id == book_id, terms.c.chunks <= 0))


def _no_book(book_id: str) -> NotFound:
    hint = "`askbook ingest FOLDER` makes one; `askbook doctor` lists them."
    return NotFound(f"there is no book {book_id}", hint, code="E002")


def _as_stored(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """As the driver gives it: a hundred times in each search, a date is only compared."""
    return type_coerce(column, NullType())


async def _load_headings(connection: AsyncConnection, book_id: str) -> tuple[list[LessonRow], dict[str, list[str]]]:
    """Each lesson with the way to it, and the texts of its chunks in order."""
    named = [lessons.c[field.name] for field in fields(LessonRow) if field.name in lessons.c]
    placed = (
        select(
            *named,
            chunks.c.details["heading_path"].label("path"),
            chunks.c.details["module_order"].label("module_order"),
        )
        .join(chunks, (chunks.c.book_id == lessons.c.book_id) & (chunks.c.source_file == lessons.c.source_file))
        .where(lessons.c.book_id == book_id, chunks.c.chunk_index == 0)
    )
    found = (await connection.execute(placed)).mappings()
    rows = [LessonRow(**{**row, "path": tuple(row["path"]), "module_order": row["module_order"] or 0}) for row in found]
    query = select(chunks.c.source_file, chunks.c.text).where(chunks.c.book_id == book_id)
    texts: dict[str, list[str]] = {}
    for source_file, text in await connection.execute(query.order_by(chunks.c.source_file, chunks.c.chunk_index)):
        texts.setdefault(source_file, []).append(text)
    return rows, texts


async def strike_doomed(connection: AsyncConnection, point_ids: Sequence[str]) -> None:
    for some in slices(point_ids):
        await connection.execute(delete(doomed_points).where(doomed_points.c.point_id.in_(some)))


async def _bump(connection: AsyncConnection, book_id: str) -> None:
    # Locked before the count, because another worker's commit may be ending.
    await connection.execute(select(books.c.book_id).where(books.c.book_id == book_id).with_for_update())
    total = select(func.count()).select_from(chunks).where(chunks.c.book_id == book_id).scalar_subquery()
    await connection.execute(
        update(books).where(books.c.book_id == book_id).values(revision=books.c.revision + 1, total_chunks=total)
    )


async def _insert(connection: AsyncConnection, table: Any, rows: list[dict[str, Any]]) -> None:
    if rows:
        await connection.execute(table.insert(), rows)


def slices(values: Sequence[T], size: int = STATEMENT_VALUES) -> Iterator[Sequence[T]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]


def _lesson_row(change: LessonChange, now: datetime) -> dict[str, Any]:
    own = {"chunk_ids": [draft.chunk.id for draft in change.drafts], "ingested_at": now}
    return own | {column.name: getattr(change.lesson, column.name) for column in lessons.c if column.name not in own}


# Chunk fields that have a column of their own; the rest is in `details`.
COLUMNS = frozenset(chunks.c.keys()) & {field.name for field in fields(Chunk)}
DETAILS = [field.name for field in fields(Chunk) if field.name not in COLUMNS and field.name != "id"]


def _chunk_row(draft: DraftChunk, now: datetime) -> dict[str, Any]:
    chunk = draft.chunk
    details = {name: getattr(chunk, name) for name in DETAILS}
    details["pieces"] = [(piece.text_at, piece.source_at, piece.length) for piece in chunk.pieces]
    details["sections"] = [astuple(section) for section in chunk.sections]
    details["facets"] = dict(chunk.facets)
    return {
        **{name: getattr(chunk, name) for name in COLUMNS},
        "point_id": draft.point_id,
        "chunk_id": chunk.id,
        "embedded": draft.embedded,
        "created_at": chunk.created_at or now,
        "updated_at": chunk.updated_at or now,
        "details": details,
    }


def to_chunk(row: RowMapping | dict[str, Any]) -> Chunk:
    details = dict(row["details"])
    details["pieces"] = tuple(Piece(*piece) for piece in details["pieces"])
    details["heading_path"] = tuple(details["heading_path"])
    details["sections"] = tuple(
        SectionStart(at, title, tuple(path), url) for at, title, path, url in details.get("sections", ())
    )
    return Chunk(id=row["chunk_id"], **{name: row[name] for name in COLUMNS}, **details)
