"""What a page takes from other files of its book, and what it may not take."""

from __future__ import annotations

from pathlib import Path

import pytest
from book_checks import check_coverage
from shelf import read_all, write_book

from askbook.book.chunker import split_lesson
from askbook.book.reader import read_book, read_lessons
from askbook.domain import Lesson

RUST = "fn main() {\n// ANCHOR: body\n    let x = 1;\n// ANCHOR_END: body\n}\n"


def read(folder: Path, page: str, **files: str) -> Lesson:
    named = {name.replace("__", "/").replace("_DOT_", "."): text for name, text in files.items()}
    return read_all(write_book(folder, {"src/a.md": page, **named}))[0]["src/a.md"]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("```rust\n{{#include ../code/m.rs}}\n```", "```rust\nfn main() {\n    let x = 1;\n}\n```"),
        ("```rust\n{{#rustdoc_include ../code/m.rs:body}}\n```", "```rust\n    let x = 1;\n```"),
        ("```rust\n{{#playground ../code/m.rs editable}}\n```", "```rust\nfn main() {\n    let x = 1;\n}\n```"),
        ("{{#playground ../code/m.rs editable}}", "```rust\nfn main() {\n    let x = 1;\n}\n```"),
        ("{!src/part.txt!}", "Part of it."),
        ("```rust\n{!> ../code/m.rs[ln:1]!}\n```", "```rust\nfn main() {\n```"),
        ('{% include-markdown "./part.txt" %}', "Part of it."),
        ('```html\n{% include "part.txt" %}\n```', '```html\n{% include "part.txt" %}\n```'),
        ("Before.\n\n{!src/gone.txt!}", "Before."),
        ("```rust\n{{#include ../code/m.rs:1:1}}\n```", "```rust\nfn main() {\n```"),
        ('--8<-- "src/part.txt"', "Part of it."),
        ('!!! note\n    --8<-- "part.txt"', "> **Note**\n>\n> Part of it."),
        ("--8<--\npart.txt\n--8<--", "Part of it."),
        ("<<< ../code/m.rs{1}", "```rust\nfn main() {\n    let x = 1;\n}\n```"),
        ("<!--@include: ./part.txt-->", "Part of it."),
        ("```{include} part.txt\n```", "Part of it."),
        ("!!!include(src/part.txt)!!!", "Part of it."),
        ("Before.\n\n!!!include(src/gone.txt)!!!", "Before."),
        ("```{literalinclude} ../code/m.rs\n:language: rust\n:lines: 1\n```", "```rust\nfn main() {\n```"),
        ('{{< readfile file="part.txt" >}}', "Part of it."),
        ("{* ./part.txt *}", "```txt\nPart of it.\n```"),
        ("import P from './_p.mdx'\n\n<P />", "Part of it."),
        ("import P from './\\_p.mdx';\n\n<P />", "Part of it."),
        ("import T from '@t/T'; import P from './_p.mdx'; import Q from 'q';\n\n<P />", "Part of it."),
        ("Write `\\{{#include a.rs}}` so.", "Write `\\{{#include a.rs}}` so."),
    ],
)
def test_includes_of_every_generator(tmp_path: Path, line: str, shown: str) -> None:
    files = {"code__m_DOT_rs": RUST, "src__part_DOT_txt": "Part of it.\n", "src___p_DOT_mdx": "Part of it.\n"}
    chunks = split_lesson(read(tmp_path, line, **files))
    assert [chunk.text for chunk in chunks] == [shown]


@pytest.mark.parametrize(
    "extensions",
    [
        "[{pymdownx.snippets: {base_path: [inc, parts/small]}}]",
        "{pymdownx.snippets: {base_path: [inc, parts/small]}}",
        (
            "[toc, {pymdownx.snippets: {base_path: !relative $config_dir/inc}}, "
            "{pymdownx.snippets: {base_path: parts/small}}]"
        ),
    ],
)
def test_mkdocs_says_where_its_snippets_are(tmp_path: Path, extensions: str) -> None:
    page = '--8<-- "shared.md"\n\n--8<--\ndeep/own.txt\n--8<--\n\n```\n--8<-- "s.py:b"\n```\n\n--8<-- "beside.md"'
    files = {
        "mkdocs.yml": f"markdown_extensions: {extensions}",
        "docs/a.md": page,
        "docs/shared.md": "Not this one.",
        "docs/beside.md": "Beside the page.",
        "inc/shared.md": "Shared words.",
        "inc/deep/own.txt": "Own words.",
        "parts/small/s.py": "a = 1\n# --8<-- [start:b]\nb = 2\n# --8<-- [end:b]\n",
    }
    lessons, problems = read_all(write_book(tmp_path, files))
    [chunk] = split_lesson(lessons["docs/a.md"])
    assert chunk.text == "Shared words.\n\nOwn words.\n\n```\nb = 2\n```\n\nBeside the page."
    assert problems == []


@pytest.mark.row("B4")
def test_snippets_outside_the_book_are_not_taken(tmp_path: Path) -> None:
    write_book(tmp_path, {"out/secret.txt": "the secret"})
    config = "markdown_extensions: [{pymdownx.snippets: {base_path: ['../out', inc]}}]"
    files = {"mkdocs.yml": config, "docs/a.md": 'Text.\n\n--8<-- "secret.txt"'}
    lessons, problems = read_all(write_book(tmp_path / "book", files))
    assert [chunk.text for chunk in split_lesson(lessons["docs/a.md"])] == ["Text."]
    assert [one.source_file for one in problems] == ["mkdocs.yml", "docs/a.md"]
    assert "`base_path` names '../out', which leads out of the book" in problems[0].message


PART = "# Part\n\nOne.\n<!-- begin -->\nTwo, and [ here ] it goes on.\n<!-- end -->\nThree.\n"
CODE = """import os

ONE = 1
# begin
TWO = 2
# end
THREE = 3


@cached
def first(
    a: int,
) -> int:
    return a


class Robot:
    def walk(self) -> str:
# A comment at the margin.
        return "walks"

    def run(self) -> str:
        return "runs"


LAST = "def broken():"
"""


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (":start-line: 2\n:end-line: 3", "One."),
        (":start-line: -1", "Three."),
        (":end-line: -4", "# Part\n\nOne."),
        ("---\nstart-line: 6\n---", "Three."),
        (":start-after: <!-- begin -->\n:end-before: '<!-- end -->'", "Two, and [ here ] it goes on."),
        (':start-after: "[ here ]"\n:end-before: <!-- end', "it goes on."),
        (":start-line: 4\n:start-after: it", "goes on.\n\nThree."),
    ],
)
def test_an_include_takes_what_its_options_say(tmp_path: Path, options: str, shown: str) -> None:
    [chunk] = split_lesson(read(tmp_path, f"```{{include}} part.txt\n{options}\n```", src__part_DOT_txt=PART))
    assert chunk.text == shown


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (":start-after: begin\n:end-before: end", "TWO = 2"),
        (":start-at: ONE\n:end-at: TWO", "ONE = 1\n# begin\nTWO = 2"),
        (":start-after: begin\n:lines: 3", "THREE = 3"),
        (":start-at: '# begin'\n:end-before: '#'", "# begin\nTWO = 2"),
        (":pyobject: first", "@cached\ndef first(\n    a: int,\n) -> int:\n    return a"),
        (":pyobject: first  ", "@cached\ndef first(\n    a: int,\n) -> int:\n    return a"),
        (":pyobject: Robot.run", '    def run(self) -> str:\n        return "runs"'),
        (":pyobject: Robot.walk", '    def walk(self) -> str:\n# A comment at the margin.\n        return "walks"'),
    ],
)
def test_a_listing_takes_what_its_options_say(tmp_path: Path, options: str, shown: str) -> None:
    [chunk] = split_lesson(read(tmp_path, f"```{{literalinclude}} c.py\n{options}\n```", src__c_DOT_py=CODE))
    assert chunk.text == f"```python\n{shown}\n```"


@pytest.mark.parametrize(
    ("directive", "option", "named"),
    [
        ("include", ":start-after: gone", "`start-after` is 'gone'"),
        ("include", ":end-before: gone", "`end-before` is 'gone'"),
        ("include", ":start-line: two", "`start-line` is 'two'"),
        ("literalinclude", ":start-after: gone", "`start-after` is 'gone'"),
        ("literalinclude", ":end-at: gone", "`end-at` is 'gone'"),
        ("literalinclude", ":pyobject: gone", "`pyobject` is 'gone'"),
        ("literalinclude", ":pyobject: Robot.first", "`pyobject` is 'Robot.first'"),
        ("literalinclude", ":pyobject: quoting", "`pyobject` is 'quoting'"),
        ("literalinclude", ":pyobject: decorated", "`pyobject` is 'decorated'"),
    ],
)
def test_nothing_is_included_where_an_option_names_what_is_not_found(
    tmp_path: Path, directive: str, option: str, named: str
) -> None:
    hard = 'def quoting():\n    return """\nat the margin\n"""\n\n\n@mark(\n    1\n)\ndef decorated():\n    pass\n'
    page = f"Before.\n\n```{{{directive}}} c.py\n{option}\n```"
    lessons, problems = read_all(write_book(tmp_path, {"a.md": page, "c.py": CODE + hard}))
    assert [chunk.text for chunk in split_lesson(lessons["a.md"])] == ["Before."]
    said = f"“c.py” was not included: {named}, which cannot be found in it"
    assert [(one.source_file, one.message) for one in problems] == [("a.md", said)]


def test_the_lines_are_those_of_the_file_and_an_include_stands_on_its_own(tmp_path: Path) -> None:
    part = "\n\n".join(
        f"Paragraph {n} of what is included, with words enough to fill more than one chunk." for n in range(90)
    )
    page = "# Page\n\nBefore.\n\n{{#include part.txt}}\n\n## After\n\nThe last words."
    lesson = read(tmp_path, page, src__part_DOT_txt=part)
    chunks = split_lesson(lesson)
    check_coverage(lesson, chunks)
    assert len(chunks) > 2
    assert (chunks[0].first_line, chunks[0].last_line) == (1, 5)
    assert all((chunk.first_line, chunk.last_line) == (5, 5) for chunk in chunks[1:-1])
    assert chunks[-1].last_line == page.count("\n") + 1
    for chunk in chunks:
        for piece in chunk.pieces:
            said = chunk.text[piece.text_at : piece.text_at + piece.length]
            assert said == lesson.text[piece.source_at : piece.source_at + piece.length]


def test_a_lesson_changes_with_what_it_includes(tmp_path: Path) -> None:
    before = read(tmp_path, "{{#include part.txt}}", src__part_DOT_txt="One.")
    same = read(tmp_path, "{{#include part.txt}}", src__part_DOT_txt="One.")
    after = read(tmp_path, "{{#include part.txt}}", src__part_DOT_txt="Two.")
    assert before.fingerprint == same.fingerprint != after.fingerprint
    assert before.file_hash != after.file_hash


@pytest.mark.row("B4")
@pytest.mark.parametrize(
    "target", ["../../secret.txt", "/etc/passwd", "link.txt", "folder/secret.txt", "../../../../etc/passwd"]
)
def test_nothing_outside_the_folder_is_included(tmp_path: Path, target: str) -> None:
    (tmp_path / "secret.txt").write_text("the secret")
    book = write_book(tmp_path / "book", {"src/a.md": f'Text.\n\n{{{{#include {target}}}}}\n\n--8<-- "{target}"'})
    (book / "src" / "link.txt").symlink_to(tmp_path / "secret.txt")
    (book / "src" / "folder").symlink_to(tmp_path)
    lessons, problems = read_lessons(book, read_book(book))
    assert [chunk.text for lesson in lessons for chunk in split_lesson(lesson)] == ["Text."]
    assert any(problem.source_file == "src/a.md" and target in problem.message for problem in problems)


@pytest.mark.row("B4")
@pytest.mark.parametrize("target", ["../.env", "../.git/config", "../x/../.env", "link.txt"])
def test_no_hidden_file_is_included(tmp_path: Path, target: str) -> None:
    page = f'Text.\n\n{{{{#include {target}}}}}\n\n--8<-- "{target}"'
    book = write_book(tmp_path, {"src/a.md": page, ".env": "the secret", ".git/config": "the secret"})
    (book / "src" / "link.txt").symlink_to(book / ".env")
    lessons, problems = read_lessons(book, read_book(book))
    assert [chunk.text for lesson in lessons for chunk in split_lesson(lesson)] == ["Text."]
    assert any(target in problem.message for problem in problems)


@pytest.mark.parametrize("page", ["{{#include big.txt:" + "1:," * 80 + "1:}}", " " * 5_000 + '--8<-- "lines.txt"'])
def test_what_is_included_many_times_counts_each_time(tmp_path: Path, page: str) -> None:
    files = {"a.md": page, "big.txt": "x" * 900_000, "lines.txt": "x\n" * 20_000}
    lessons, problems = read_all(write_book(tmp_path, files))
    assert len(lessons["a.md"].text) < 20_000_000
    assert any("too much" in problem.message for problem in problems)


def test_loops_and_towers_end(tmp_path: Path) -> None:
    tower = {
        f"t{n}.txt": f"Floor {n}.\n{{{{#include t{n + 1}.txt}}}}\n{{{{#include t{n + 1}.txt}}}}" for n in range(40)
    }
    pages = {"a.md": "A.\n\n{{#include b.txt}}", "b.txt": "B.\n\n{{#include a.md}}", "c.md": "{{#include t0.txt}}"}
    lessons, problems = read_all(write_book(tmp_path, {**pages, **tower}))
    assert "A.\n\nB." in split_lesson(lessons["a.md"])[0].text
    assert any(one.source_file == "a.md" and "“a.md” includes itself" in one.message for one in problems)
    assert any(one.source_file == "c.md" and "too much" in one.message for one in problems)
    assert len(lessons["c.md"].text) < 1_000_000
