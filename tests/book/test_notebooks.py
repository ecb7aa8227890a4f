"""Notebooks are lessons: their text, their code, and the first lines of what it printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from book_checks import check_lesson
from shelf import read_all, write_book

from askbook.book.chunker import split_lesson


def notebook(*cells: dict[str, Any], **more: Any) -> str:
    metadata = {"kernelspec": {"language": "julia"}}
    return json.dumps({"cells": list(cells), "metadata": metadata, "nbformat": 4} | more)


def code(source: str, *outputs: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "source": source.splitlines(keepends=True),
        "outputs": list(outputs),
        "metadata": metadata,
    }


def test_a_notebook_is_a_lesson(tmp_path: Path) -> None:
    cells = (
        {"cell_type": "markdown", "source": ["# Waves\n", "\n", "A wave $x_1$ moves."]},
        code("plot(x)", {"output_type": "display_data", "data": {"image/png": "AAAA", "text/plain": "<Figure>"}}),
        code("1 + 1", {"output_type": "execute_result", "data": {"text/plain": ["2"]}}),
        code("run()", {"output_type": "stream", "text": "".join(f"line {n}\n" for n in range(500))}),
        code("fail()", {"output_type": "error", "ename": "KeyError", "evalue": "'x'", "traceback": ["\x1b[31m"]}),
        code("hidden()", tags=["remove-cell"]),
        {"cell_type": "raw", "source": "raw"},
    )
    lessons, problems = read_all(write_book(tmp_path, {"m/01-waves.ipynb": notebook(*cells)}))
    lesson = lessons["m/01-waves.ipynb"]
    chunks = split_lesson(lesson)
    check_lesson(lesson, chunks)
    text = "\n".join(chunk.text for chunk in chunks)
    assert lesson.title == "Waves" and not [one for one in problems if one.skipped]
    assert "```julia\nplot(x)\n```\n\n```julia\n1 + 1\n```\n\n```text\n2\n```" in text
    assert "line 19\n…\n```" in text and "line 20" not in text
    assert "KeyError: 'x'" in text
    assert not any(gone in text for gone in ("AAAA", "Figure", "hidden()", "raw", "\x1b"))


def test_the_third_version_of_notebooks(tmp_path: Path) -> None:
    old = {
        "worksheets": [
            {"cells": [{"cell_type": "heading", "level": 2, "source": "Old"}, {"cell_type": "code", "input": "x"}]}
        ]
    }
    lesson = read_all(write_book(tmp_path, {"a.ipynb": json.dumps(old)}))[0]["a.ipynb"]
    assert lesson.text == "## Old\n\n```python\nx\n```\n"


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "7",
        '{"cells": 3}',
        '{"cells": [{"cell_type": "code", "outputs": 5, "source": "x"}]}',
        "[" * 100_000,
    ],
    ids=["empty", "broken", "a list", "a number", "no cells", "odd outputs", "deep"],
)
def test_a_broken_notebook_is_a_named_problem(tmp_path: Path, content: str) -> None:
    lessons, problems = read_all(write_book(tmp_path, {"a.md": "# A\n\nText.", "b.ipynb": content}))
    assert list(lessons) == ["a.md"]
    assert [(one.source_file, one.skipped) for one in problems] == [("b.ipynb", True)]


def test_a_fence_left_open_ends_with_its_cell(tmp_path: Path) -> None:
    cells = [{"cell_type": "markdown", "source": text} for text in ("```py\nx = 1", "## After\n\nThe rod is brass.")]
    lessons, _ = read_all(write_book(tmp_path, {"b.ipynb": notebook(*cells)}))
    assert "x = 1\n```\n\n## After" in lessons["b.ipynb"].text


def test_what_no_text_file_could_hold_is_replaced(tmp_path: Path) -> None:
    content = '{"cells": [{"cell_type": "markdown", "source": "# A \\ud800 b\\u0000c\\r\\nText."}]}'
    lessons, _ = read_all(write_book(tmp_path, {"b.ipynb": content}))
    text = lessons["b.ipynb"].text
    assert "\0" not in text and "\r" not in text and "Text." in text
    text.encode()


def test_a_notebook_of_fifty_megabytes_is_a_named_problem(tmp_path: Path) -> None:
    huge = notebook({"cell_type": "markdown", "source": "x" * 50_000_000})
    lessons, problems = read_all(write_book(tmp_path, {"a.md": "# A\n\nText.", "b.ipynb": huge}))
    assert list(lessons) == ["a.md"]
    assert [one.source_file for one in problems] == ["b.ipynb"] and "16 MB" in problems[0].message
