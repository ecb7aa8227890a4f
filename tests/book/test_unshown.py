"""What a page cannot be shown as is told, with the name of its file, and no word of it is lost."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from book_checks import check_lesson
from shelf import read_all, write_book

from askbook.book.chunker import split_lesson
from askbook.book.unshown import find_unshown

TERMS = " + ".join(f"x_{{{number}}}" for number in range(10_000))
TABS = "".join("    " * depth + f'=== "Tab {depth}"\n\n' for depth in range(1_000)) + "    " * 1_000 + "The end.\n"
NOTES = "".join(f"{':' * (1_100 - depth)}note\n" for depth in range(1_000)) + "The end.\n"
DRAWING = b"<svg xmlns='http://www.w3.org/2000/svg'>%s<text>A</text></svg>"


@pytest.mark.row("B4")
@pytest.mark.parametrize(
    ("text", "said", "kept"),
    [
        (f"Sum:\n\n$$\n{TERMS}\n$$\n\nThe end.", "too long to be drawn", "x_{9999}"),
        (f"$${TERMS}$$ is long.", "too long to be drawn", "x_{9999}"),
        (f"Sum:\n\n\\[\n{TERMS}\n\\]\n\nThe end.", "too long to be drawn", "x_{9999}"),
        (f"Sum:\n\n```math\n{TERMS}\n```\n\nThe end.", "too long to be drawn", "x_{9999}"),
        (f"::::{{note}}\n```{{math}}\n:label: a\n\n{TERMS}\n```\n::::\n\nThe end.", "too long to be drawn", "x_{9999}"),
        (f"Sum: ${TERMS}$ is long.", "too long to be drawn", "x_{9999}"),
        (f"Sum: {{math}}`{TERMS}` is long.", "too long to be drawn", "x_{9999}"),
        (TABS, "nested deeper than 50", "**Tab 999**"),
        (NOTES, "nested deeper than 50", "The end."),
        ("::: tab\n\n" * 1_000 + "The end.\n\n" + ":::\n" * 1_000, "nested deeper than 50", "The end."),
        ("{{% tab %}}\n" * 1_000 + "The end.\n" + "{{% /tab %}}\n" * 1_000, "nested deeper than 50", "The end."),
        ("<details>\n" * 1_000 + "\nThe end.\n", "nested deeper than 50", "The end."),
        (">" * 20 + " The end.\n", "quotes are nested deeper than 19", "The end."),
    ],
    ids=[
        "formula",
        "formula on one line",
        "brackets",
        "fence",
        "directive",
        "dollars",
        "role",
        "tabs",
        "notes",
        "containers",
        "shortcodes",
        "details",
        "quotes",
    ],
)
def test_what_is_too_much_to_show_is_told(tmp_path: Path, text: str, said: str, kept: str) -> None:
    lessons, problems = read_all(write_book(tmp_path, {"a.md": text, "b.md": "# B\n\n$$\na + b\n$$\n\nText."}))
    assert [(one.source_file, one.skipped) for one in problems] == [("a.md", False)]
    assert said in problems[0].message
    chunks = split_lesson(lessons["a.md"])
    assert any(kept in chunk.text for chunk in chunks)
    check_lesson(lessons["a.md"], chunks)


def test_nested_components_are_told(tmp_path: Path) -> None:
    page = "<Tabs>\n<TabItem value='a'>\n\n" * 1_000 + "The end.\n\n" + "</TabItem>\n</Tabs>\n" * 1_000
    [problem] = read_all(write_book(tmp_path, {"a.mdx": page}))[1]
    assert "nested deeper than 50" in problem.message


@pytest.mark.parametrize(
    "text",
    [
        "```java\n" + "List<String> names; // costs $A\n" * 400 + "```\n\nText.",
        "A `List<T>` or List<T> holds.\n\n" * 100,
        "<details>\n\nOne.\n\n</details>\n\n{{< tab >}}\n\n::: tip\nText.\n:::\n\n" * 100,
        ">" * 19 + " Text.\n",
        f"It costs $5 here, {'and so on, ' * 500} and US$ there.",
        "```{note}\nText.\n```\n\n```bash\necho $A\n" + "cd there_and_back\n" * 400 + "echo -$B\n```\n",
    ],
    ids=["generics in a listing", "generics", "side by side", "quotes", "prices", "shell"],
)
def test_what_is_shown_well_is_not_told(tmp_path: Path, text: str) -> None:
    assert read_all(write_book(tmp_path, {"a.md": text}))[1] == []


@pytest.mark.parametrize(
    "text",
    ["\\[" * 200_000, "$a" * 200_000, "{math}`" * 100_000, "<A>" * 200_000, "```{math}\n" * 80_000, "</A><A>" * 80_000,
     "> " * 300_000, ":::{math}\n" * 80_000],
    ids=range(8),
)  # fmt: skip
def test_looking_takes_linear_time(tmp_path: Path, text: str) -> None:
    start = time.process_time()
    assert len(list(find_unshown(tmp_path, "a.md", text, set()))) < 2
    assert time.process_time() - start < 5


@pytest.mark.row("B4")
@pytest.mark.parametrize(
    "script",
    [
        b"<script>x()</script>",
        b"<svg:script>x()</svg:script>",
        b"<g onload='x()'/>",
        b"<a href='javascript:x()'>y</a>",
        b"<a href='java&#115;cript:x()'>y</a>",
        b"<a href='java&#x09;script&colon;x()'>y</a>",
        b"<foreignObject><iframe src='https://example.org'/></foreignObject>",
    ],
    ids=range(7),
)
def test_a_drawing_with_a_script_is_told_once(tmp_path: Path, script: bytes) -> None:
    page = "# {}\n\n![One](img/evil.svg) and ![two](img/fine.svg) and ![none](img/gone.svg)"
    files = {
        "img/evil.svg": DRAWING % script,
        "img/fine.svg": DRAWING % b"<foreignObject>&lt;script&gt;</foreignObject>",
    }
    problems = read_all(write_book(tmp_path, {"a.md": page.format("A"), "b.md": page.format("B"), **files}))[1]
    assert [one.source_file for one in problems] == ["a.md"]
    assert "“img/evil.svg” holds a script or a frame" in problems[0].message
