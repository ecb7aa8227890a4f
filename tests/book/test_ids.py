"""Ids are a promise: the same text in the same place has the same id on every machine, for ever."""

from __future__ import annotations

import hashlib
import uuid
from pathlib import Path

from shelf import read_all, split, words, write_book

from askbook.book.chunker import split_lesson

NAMESPACE = uuid.UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
TEXT = "# Nodes\n\nA node is a process that computes."


def test_golden_ids(tmp_path: Path) -> None:
    """The literals were computed once, by hand, from the rule of the specification."""
    folder = write_book(tmp_path / "physical-ai", {"module-1-ros2/chapter-2-building/03-nodes.md": TEXT})
    lesson = read_all(folder)[0]["module-1-ros2/chapter-2-building/03-nodes.md"]
    [chunk] = split_lesson(lesson)

    assert lesson.identity == "physical-ai:ros2:2:3"
    assert chunk.content_hash == "e8b22f9d177a3ff098429f262fa21058053544b8865550b8fde9724866649584"
    assert chunk.id == "41fff2f0-2b8f-5b5b-be80-c33404bddbf6"
    assert chunk.parent_doc_id == "1f49ff20-e991-5ab1-9a70-270e9047e7db"


def test_the_rule_in_other_words(tmp_path: Path) -> None:
    lesson, chunks = split(tmp_path, f"# T\n\n{words(2000)}")
    assert len(chunks) > 3
    for chunk in chunks:
        digest = hashlib.sha256(chunk.text.encode()).hexdigest()
        assert chunk.content_hash == digest
        assert chunk.id == str(uuid.uuid5(NAMESPACE, f"{lesson.identity}:{digest[:16]}"))
        assert chunk.parent_doc_id == str(uuid.uuid5(NAMESPACE, f"{lesson.identity}:parent"))


def test_the_same_file_twice_gives_the_same_ids_and_an_edit_changes_one(tmp_path: Path) -> None:
    before = f"# T\n\n## One\n\n{words(150)}\n\n## Two\n\n{words(150, 'arm')}\n\n## Three\n\n{words(150, 'leg')}\n"
    first = [chunk.id for chunk in split(tmp_path, before)[1]]
    again = [chunk.id for chunk in split(tmp_path, before)[1]]
    edited = [chunk.id for chunk in split(tmp_path, before.replace("The arm number 3", "One arm number 3"))[1]]

    assert first == again
    assert len(first) == len(edited) == 3
    assert [old == new for old, new in zip(first, edited, strict=True)] == [True, False, True]


def test_the_same_section_twice_in_one_lesson_has_two_ids(tmp_path: Path) -> None:
    section = f"## Safety\n\n{words(200)}\n\n"
    lesson, chunks = split(tmp_path, section * 3)
    key = f"{lesson.identity}:{chunks[0].content_hash[:16]}"

    assert len({chunk.text for chunk in chunks}) == 1
    assert [chunk.id for chunk in chunks] == [
        str(uuid.uuid5(NAMESPACE, name)) for name in (key, f"{key}:2", f"{key}:3")
    ]


def test_two_files_that_claim_one_lesson_are_told_apart(tmp_path: Path) -> None:
    folder = write_book(tmp_path / "b", {"m/01-a.md": "# A\n\nSame words.", "m/01-b.md": "# A\n\nSame words."})
    lessons, problems = read_all(folder)
    first, second = lessons["m/01-a.md"], lessons["m/01-b.md"]

    assert first.identity == "b:m:0:1"
    assert second.identity == "b:m:0:1:m/01-b.md"
    assert first.parent_doc_id != second.parent_doc_id
    assert split_lesson(first)[0].id != split_lesson(second)[0].id
    [problem] = problems
    assert (problem.source_file, problem.skipped) == ("m/01-b.md", False)
    assert "m/01-a.md" in problem.message


def test_a_renamed_file_embeds_the_same_text(tmp_path: Path) -> None:
    one = split(tmp_path / "x", f"## Start\n\n{words(900)}", "m/01-a.md")[1]
    other = split(tmp_path / "y", f"## Start\n\n{words(900)}", "other/07-zebra.md")[1]
    assert [chunk.embed_hash for chunk in one] == [chunk.embed_hash for chunk in other]
    assert {chunk.id for chunk in one}.isdisjoint(chunk.id for chunk in other)


def test_the_fingerprint_changes_with_whatever_a_chunk_carries(tmp_path: Path) -> None:
    page = {"m/01-a.md": "---\nlayer: L2\n---\n# A\n\ntext"}
    plain = read_all(write_book(tmp_path / "b", page))[0]["m/01-a.md"].fingerprint
    again = read_all(tmp_path / "b")[0]["m/01-a.md"].fingerprint
    published = read_all(write_book(tmp_path / "b", {"askbook.toml": 'base_url = "https://example.org"'}))[0][
        "m/01-a.md"
    ]
    assert plain == again != published.fingerprint
