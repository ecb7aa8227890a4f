"""The ledger decides what readers see, on SQLite and on PostgreSQL."""

from __future__ import annotations

import pytest

from askbook.domain import Book, Lesson
from askbook.errors import NotFound
from askbook.store.database import Database
from askbook.store.ledger import DraftChunk, Ledger, LessonChange
from builders import make_chunks, make_lesson

BOOK = Book(book_id="book", title="Book")


@pytest.fixture
async def ledger(database: Database) -> Ledger:
    ledger = Ledger(database)
    await ledger.save_book(BOOK, "folder")
    return ledger


def change(lesson: Lesson, *texts: str, points: str = "p", replaces: tuple[str, ...] = ()) -> LessonChange:
    chunks = make_chunks(lesson, *texts)
    drafts = tuple(DraftChunk(f"{points}{at}", chunk, embedded=False) for at, chunk in enumerate(chunks))
    return LessonChange(lesson, drafts, replaces)


async def test_a_committed_lesson_reads_back_as_it_was_written(ledger: Ledger) -> None:
    lesson = make_lesson(facets={"robot": "arm"})
    written = change(lesson, "One é 🤖.", "Two.")
    await ledger.commit("book", [written], [], {7: 2, 9: 1})

    assert await ledger.load_lesson("book", lesson.parent_doc_id) == [draft.chunk for draft in written.drafts]
    assert (await ledger.term_frequencies("book", [7, 8, 9]))[1:] == (2, {7: 2, 9: 1})
    record = (await ledger.load_records("book"))[lesson.source_file]
    assert record.chunk_count == 2
    assert record.chunk_ids == tuple(draft.chunk.id for draft in written.drafts)


async def test_a_new_version_takes_the_place_of_the_old_in_one_commit(ledger: Ledger) -> None:
    lesson = make_lesson()
    await ledger.commit("book", [change(lesson, "One.", "Two.", points="old")], [], {1: 2})
    before = await ledger.revision("book")

    await ledger.doom_points("book", ["new0"])
    assert set(await ledger.live_chunks("book", ["old0", "old1", "new0"])) == {"old0", "old1"}
    await ledger.commit("book", [change(lesson, "Three.", points="new", replaces=(lesson.source_file,))], [], {1: -1})

    assert set(await ledger.live_chunks("book", ["old0", "old1", "new0"])) == {"new0"}
    assert await ledger.load_doomed("book") == ["old0", "old1"]
    assert (await ledger.term_frequencies("book", [1]))[1:] == (1, {1: 1})
    assert await ledger.revision("book") > before


async def test_points_noted_but_never_committed_stay_doomed(ledger: Ledger) -> None:
    await ledger.doom_points("book", ["lost"])
    await ledger.doom_points("book", ["lost"])
    assert await ledger.load_doomed("book") == ["lost"]
    await ledger.strike_doomed(["lost"])
    assert await ledger.load_doomed("book") == []


async def test_a_live_point_is_never_doomed(ledger: Ledger) -> None:
    """A full ingestion writes the same points again; killed halfway, they must not be swept away."""
    await ledger.commit("book", [change(make_lesson(), "One.")], [], {})
    await ledger.doom_points("book", ["p0"])
    assert await ledger.load_doomed("book") == []


async def test_removed_files_and_their_words_are_gone(ledger: Ledger) -> None:
    lesson = make_lesson()
    await ledger.commit("book", [change(lesson, "One.")], [], {1: 1})
    await ledger.commit("book", [], [lesson.source_file], {1: -1})

    assert await ledger.load_records("book") == {}
    assert await ledger.load_terms("book") == {}
    assert (await ledger.term_frequencies("book", [1]))[1:] == (0, {})
    with pytest.raises(NotFound):
        await ledger.load_lesson("book", lesson.parent_doc_id)


async def test_neighbours_come_in_order(ledger: Ledger) -> None:
    written = change(make_lesson(), "One.", "Two.", "Three.", "Four.")
    await ledger.commit("book", [written], [], {})
    chunks = [draft.chunk for draft in written.drafts]

    assert await ledger.load_neighbours("book", chunks[0].id) == chunks[:2]
    assert await ledger.load_neighbours("book", chunks[2].id, reach=2) == chunks
    with pytest.raises(NotFound):
        await ledger.load_neighbours("other", chunks[0].id)


async def test_an_embedded_text_is_found_by_its_hash(ledger: Ledger) -> None:
    written = change(make_lesson(), "One.", "Two.")
    await ledger.commit("book", [written], [], {})
    assert [item.point_id for item in await ledger.load_unembedded("book", ["m/c/01-a.md"], 10)] == ["p0", "p1"]

    await ledger.mark_embedded(["p1"], "minilm")
    hashes = [draft.chunk.embed_hash for draft in written.drafts]
    found = await ledger.find_embedded("book", hashes)
    assert {one: (at.point_id, at.model, at.at is not None) for one, at in found.items()} == {
        hashes[1]: ("p1", "minilm", True)
    }
    assert await ledger.count_unembedded("book") == {"m/c/01-a.md": 1}
    [record] = await ledger.load_books()
    assert (record.total_files, record.total_chunks, record.unembedded_chunks) == (1, 2, 1)


async def test_two_files_that_hold_one_place_for_a_moment_are_not_mixed(ledger: Ledger) -> None:
    first, second = make_lesson("a.md", text="a"), make_lesson("b.md", text="b")
    assert first.parent_doc_id == second.parent_doc_id
    await ledger.commit("book", [change(first, "Old one.", "Old two.", points="a")], [], {})
    newer = change(second, "New one.", points="b")
    await ledger.commit("book", [newer], [], {})
    assert await ledger.load_lesson("book", first.parent_doc_id) == [draft.chunk for draft in newer.drafts]


async def test_more_points_than_one_statement_takes(ledger: Ledger) -> None:
    many = [f"Text {n}." for n in range(2000)]
    await ledger.commit("book", [change(make_lesson(), *many)], [], dict.fromkeys(range(40000), 1))
    assert len(await ledger.live_chunks("book", [f"p{n}" for n in range(2000)])) == 2000
    await ledger.commit("book", [], [make_lesson().source_file], dict.fromkeys(range(40000), -1))
    assert len(await ledger.load_doomed("book")) == 2000
    assert await ledger.load_terms("book") == {}
