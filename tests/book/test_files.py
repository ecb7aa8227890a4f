"""Nothing outside the book is read; a bad file is reported, and the rest is ingested."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from shelf import read_all, write_book

from askbook.book.chunker import split_lesson
from askbook.book.reader import MAX_BYTES, find_files, read_book
from askbook.domain import Problem
from askbook.errors import BookError


def found(folder: Path) -> tuple[list[str], list[Problem]]:
    files, problems = find_files(folder, read_book(folder))
    return list(files), problems


def test_what_is_a_lesson_and_what_is_not(tmp_path: Path) -> None:
    names = [
        *("b.md", "a.MDX", "sub/c.markdown", "_index.md", "sub/_colon_/d.md"),
        *(
            ".hidden.md",
            ".git/x.md",
            "node_modules/p/README.md",
            "_partial.mdx",
            "_partials/x.md",
            "SUMMARY.md",
            "notes.txt",
            "drafts/x.md",
            "sub/old.draft.md",
        ),
    ]
    folder = write_book(tmp_path, {**dict.fromkeys(names, "x"), "askbook.toml": 'ignore = ["drafts/**", "*.draft.md"]'})
    assert found(folder) == (["_index.md", "a.MDX", "b.md", "sub/_colon_/d.md", "sub/c.markdown"], [])


@pytest.mark.parametrize(
    ("pattern", "left"),
    [
        ("drafts/", ["a.md", "x/y/a.md"]),
        ("/a.md", ["drafts/a.md", "x/drafts/b.md", "x/y/a.md"]),
        ("**/drafts/**", ["a.md", "x/y/a.md"]),
        ("x/**/a.md", ["a.md", "drafts/a.md", "x/drafts/b.md"]),
        ("x", ["a.md", "drafts/a.md"]),
        ("?.md", []),
    ],
)
def test_ignore_patterns_are_those_of_gitignore(tmp_path: Path, pattern: str, left: list[str]) -> None:
    names = ["a.md", "drafts/a.md", "x/drafts/b.md", "x/y/a.md"]
    assert found(write_book(tmp_path, {**dict.fromkeys(names, "x"), "askbook.toml": f'ignore = ["{pattern}"]'})) == (
        left,
        [],
    )


@pytest.mark.parametrize(
    "pattern", ["**/" * 8 + "b", "**/a/" * 12 + "b", "*a" * 20 + "b", "a**" * 20 + "b", "?*" * 30 + "b"]
)
def test_a_pattern_with_many_stars_takes_no_longer(tmp_path: Path, pattern: str) -> None:
    names = ["/".join("a" * 60) + "/c.md", "a" * 200 + ".md"]
    folder = write_book(tmp_path, {**dict.fromkeys(names, "x"), "askbook.toml": f'ignore = ["{pattern}"]'})
    started = time.process_time()
    assert found(folder) == (sorted(names), [])
    assert time.process_time() - started < 2


@pytest.mark.row("B4")
def test_links_out_of_the_book_are_never_followed(tmp_path: Path) -> None:
    outside = write_book(tmp_path / "outside", {"secret.md": "# Secret", "more/secret.md": "# Secret"})
    folder = write_book(tmp_path / "book", {"a.md": "# A", "deep/b.md": "# B"})
    (folder / "file.md").symlink_to(outside / "secret.md")
    (folder / "folder").symlink_to(outside / "more")
    (folder / "up.md").symlink_to("../outside/secret.md")
    (folder / "loop.md").symlink_to("loop.md")
    (folder / "deep" / "circle").symlink_to(folder)
    (folder / "again.md").symlink_to("a.md")
    (folder / "passwd.md").symlink_to("/etc/passwd")

    files, problems = found(folder)
    assert files == ["a.md", "deep/b.md"]
    assert [problem.source_file for problem in problems] == ["file.md", "folder", "loop.md", "passwd.md", "up.md"]
    assert all(problem.skipped for problem in problems)
    lessons, _ = read_all(folder)
    assert not any("Secret" in lesson.text for lesson in lessons.values())


@pytest.mark.row("B4")
def test_pipes_and_devices_are_never_opened(tmp_path: Path) -> None:
    folder = write_book(tmp_path, {"a.md": "# A"})
    os.mkfifo(folder / "pipe.md")
    (folder / "zero.md").symlink_to("/dev/zero")
    os.mkfifo(folder / "_category_.json")
    os.mkfifo(folder / "SUMMARY.md")
    lessons, problems = read_all(folder)
    assert list(lessons) == ["a.md"]
    assert {problem.source_file for problem in problems} == {"pipe.md", "zero.md", "SUMMARY.md"}

    os.mkfifo(folder / "askbook.toml")
    with pytest.raises(BookError, match="not a regular file"):
        read_book(folder)


@pytest.mark.row("B4")
@pytest.mark.parametrize("slug", ["/../../etc/passwd", "..%2f..%2fetc", "/%2e%2e/x", "../x"])
def test_an_address_stays_below_the_book(tmp_path: Path, slug: str) -> None:
    lesson = read_all(write_book(tmp_path / "b", {"m/a.md": f"---\nslug: {slug}\n---\nx"}))[0]["m/a.md"]
    assert lesson.url.startswith("/read/b/")
    assert "/../" not in lesson.url and not lesson.url.endswith("/..")


def test_bad_files_are_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    folder = write_book(
        tmp_path, {"good.md": "# Good", "latin.md": "caf\xe9".encode("latin-1"), "huge.md": b"x" * (MAX_BYTES + 1)}
    )
    (folder / os.fsdecode(b"caf\xe9.md")).write_text("x")
    lessons, problems = read_all(folder)
    assert list(lessons) == ["good.md"]
    assert {problem.source_file: problem.message.split(";")[0] for problem in problems} == {
        "latin.md": "this file is not UTF-8 (byte 3)",
        "huge.md": "this file is larger than 16 MB",
        "caf\ufffd.md": "the file's name is not valid UTF-8",
    }
    assert all(problem.skipped for problem in problems)


def test_names_with_control_characters_are_read_and_their_addresses_are_plain(tmp_path: Path) -> None:
    names = ["\x1b[31mred/a.md", "tab\there.md", "line\nbreak.md", "\u202egnp.md"]
    lessons, problems = read_all(write_book(tmp_path, dict.fromkeys(names, "# A\n\nText.")))
    assert set(lessons) == set(names) and problems == []
    assert all(lesson.url.isascii() and lesson.url.isprintable() for lesson in lessons.values())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_reported(tmp_path: Path) -> None:
    folder = write_book(tmp_path, {"good.md": "# Good", "locked.md": "x"})
    (folder / "locked.md").chmod(0)
    assert [(problem.source_file, problem.skipped) for problem in read_all(folder)[1]] == [("locked.md", True)]


def test_line_endings_marks_and_nul(tmp_path: Path) -> None:
    raw = b"\xef\xbb\xbf---\r\ntitle: T\r\n---\r\n# One\r\rtwo\0three\r\n"
    lesson = read_all(write_book(tmp_path, {"a.md": raw}))[0]["a.md"]
    assert lesson.text == "---\ntitle: T\n---\n# One\n\ntwo\ufffdthree\n"
    [chunk] = split_lesson(lesson)
    assert (chunk.text, chunk.first_line, chunk.last_line) == ("# One\n\ntwo\ufffdthree", 4, 6)


def test_an_empty_lesson_has_no_chunks(tmp_path: Path) -> None:
    lessons, problems = read_all(
        write_book(tmp_path, {"a.md": "", "b.md": "---\ntitle: x\n---\n", "c.mdx": "import A from 'a'\n\n<A />\n"})
    )
    assert [split_lesson(lesson) for lesson in lessons.values()] == [[], [], []]
    assert problems == []
