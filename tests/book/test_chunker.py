"""A lesson is cut at headings and blocks; nothing is lost, nothing is torn."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from book_checks import check_lesson
from shelf import split, words

from askbook.domain import Chunk


def texts(chunks: list[Chunk]) -> list[str]:
    return [chunk.text for chunk in chunks]


def test_sections_are_cut_at_real_headings_only(tmp_path: Path) -> None:
    body = (
        f"# Build\n\n{words(120)}\n\n## Steps\n\n{words(120)}\n\n```bash\n## not a heading\nmake\n```\n\n"
        f"Last\n----\n\n{words(120)}\n"
    )
    lesson, chunks = split(tmp_path, body)
    check_lesson(lesson, chunks)
    assert [chunk.section_title for chunk in chunks] == [None, "Steps", "Last"]
    assert [chunk.url.partition("#")[2] for chunk in chunks] == ["", "steps", "last"]
    assert "## not a heading\nmake\n```" in chunks[1].text
    assert chunks[1].heading_path[-2:] == ("Build", "Steps")
    assert chunks[1].embed_text == f"Build › Steps\n{chunks[1].text}"


def test_the_heading_path_and_the_anchors(tmp_path: Path) -> None:
    part = words(120)
    body = (
        f"## A `node` & [more](x.md)\n\n{part}\n\n### Set up {{#own-id}}\n\n{part}\n\n## Notes\n\n{part}\n\n"
        f"## Notes\n\n{part}\n\n## Über ROS 2\n\n{part}"
    )
    _, chunks = split(tmp_path / "book", body, "module-1-ros2/chapter-3-fast-robots/02-swift.md")
    assert [chunk.url.partition("#")[2] for chunk in chunks] == [
        "a-node--more",
        "own-id",
        "notes",
        "notes-1",
        "%C3%BCber-ros-2",
    ]
    assert chunks[1].heading_path == ("Book", "Module 1: Ros2", "Chapter 3: Fast Robots", "A node & more", "Set up")


def test_small_sections_join_and_none_is_dropped(tmp_path: Path) -> None:
    body = "# T\n\n" + "".join(f"## Part {n}\n\nOnly a few words, number {n}.\n\n" for n in range(40))
    lesson, chunks = split(tmp_path, body)
    check_lesson(lesson, chunks)
    assert len(chunks) <= 3
    assert chunks[0].section_title == "Part 0"


def test_a_heading_goes_with_what_follows_it(tmp_path: Path) -> None:
    lesson, chunks = split(tmp_path, f"## One\n\n{words(300)}\n\n## Two\n\n### Inner\n\n{words(300)}")
    check_lesson(lesson, chunks)
    assert chunks[1].text.startswith("## Two\n\n### Inner\n\nThe robot")
    assert chunks[1].section_title == "Inner"


def test_neighbours_in_a_section_overlap_by_whole_sentences(tmp_path: Path) -> None:
    lesson, chunks = split(tmp_path, f"## One\n\n{words(1500)}\n\n## Two\n\n{words(200, 'arm')}")
    check_lesson(lesson, chunks)
    for left, right in pairwise(chunks[:-1]):
        shared = lesson.text[right.start : left.end]
        assert shared.startswith("The robot") and shared.endswith("waits.")
        assert 20 <= len(shared.split()) <= 60
    assert chunks[-1].text.startswith("## Two")


def test_a_listing_too_large_is_cut_at_lines_and_its_fence_opened_again(tmp_path: Path) -> None:
    code = "\n".join(f"    value_{n} = compute({n}) + other({n})" for n in range(300))
    lesson, chunks = split(tmp_path, f'Before.\n\n~~~~python title="x.py"\ndef main():\n{code}\n~~~~\n\nAfter.\n')
    check_lesson(lesson, chunks)
    assert len(chunks) > 3
    for chunk in chunks[1:-1]:
        assert chunk.text.startswith("~~~~python\n    value_")
        assert chunk.text.endswith(")\n~~~~")
    assert chunks[-1].text.endswith("After.")


def test_a_table_too_large_repeats_its_header(tmp_path: Path) -> None:
    rows = "".join(f"| {n} | the meaning of row number {n} in this table |\n" for n in range(200))
    lesson, chunks = split(tmp_path, f"# T\n\n| No | Meaning |\n|----|---------|\n{rows}")
    check_lesson(lesson, chunks)
    assert len(chunks) > 3
    assert all("| No | Meaning |\n|----|---------|\n| " in chunk.text for chunk in chunks)
    assert all(line.endswith("|") for chunk in chunks for line in chunk.text.split("\n")[2:])


def test_wide_padding_in_a_table_leaves_room_for_its_rows(tmp_path: Path) -> None:
    pad = " " * 700
    rows = "".join(f"| row {n} {pad}| <b>value</b> {n} |\n" for n in range(30))
    lesson, chunks = split(tmp_path, f"| Name {pad}| Value |\n| {'-' * 700} | ----- |\n{rows}")
    check_lesson(lesson, chunks)
    assert len(chunks) == 1
    assert "| --- | ----- |" in chunks[0].text


def test_a_block_that_fits_is_never_cut(tmp_path: Path) -> None:
    listing = "```py\n" + "\n".join(f"x = {n}  # {words(10)}" for n in range(25)) + "\n```"
    item = "- " + words(250)
    lesson, chunks = split(tmp_path, f"# T\n\n{words(300)}\n\n{listing}\n\n{words(100)}\n\n{item}\n- short\n")
    check_lesson(lesson, chunks)
    assert any(listing in text for text in texts(chunks))
    assert any(item in text for text in texts(chunks))


def test_a_list_item_too_large_is_cut_between_its_own_blocks(tmp_path: Path) -> None:
    listing = "   ```sh\n" + "\n".join(f"   run step {n} of the long procedure" for n in range(40)) + "\n   ```"
    lesson, chunks = split(tmp_path, f"1. First {words(250)}\n\n{listing}\n\n   Then {words(200)}\n2. Second\n")
    check_lesson(lesson, chunks)
    assert sum("run step 20" in text for text in texts(chunks)) == 1


@pytest.mark.parametrize(
    "text",
    ["```py\nopen for ever", "> ```\n> quoted\n\nafter", "- ~~~\n  in a list\n\nafter", "    ```\n    indented\n"],
)
def test_an_open_fence_is_closed(tmp_path: Path, text: str) -> None:
    lesson, chunks = split(tmp_path, text)
    check_lesson(lesson, chunks)
    assert len(chunks) == 1


def test_everything_else_in_a_body_is_text_too(tmp_path: Path) -> None:
    body = (
        "Intro[^1] and [a link][x].\n\n:::note Take care\n\nInside an admonition.\n\n:::\n\n<details>\n"
        "<summary>More</summary>\n\nHidden text\n\n</details>\n\n"
        "[x]: https://example.org 'title'\n[^1]: The footnote.\n\n***\n\nTerm\n: definition\n\n"
        "{{#include other.rs}}\n\n\\# no heading\n"
    )
    lesson, chunks = split(tmp_path, body)
    check_lesson(lesson, chunks)
    [chunk] = chunks
    for part in ("**Take care**", "admonition", "**More**", "Footnote 1: The", "[a link](https://example.org)", "***"):
        assert part in chunk.text


def test_html_comments_are_not_shown(tmp_path: Path) -> None:
    body = "One <!-- gone --> two.\n\n<!--\ngone too\n\n## no heading\n-->\n\nEnd <!-- never closed"
    lesson, chunks = split(tmp_path, body)
    check_lesson(lesson, chunks)
    assert [(chunk.text, chunk.section_title) for chunk in chunks] == [("One  two.\n\nEnd <!-- never closed", None)]


def test_mdx_leaves_its_prose_and_code(tmp_path: Path) -> None:
    body = """import Tabs from '@theme/Tabs';
import {
  One,
  Two,
} from "../parts";
import './style.css'

export const distro = 'jazzy';
export const Box = ({children}) => {
  return (
    <div className="box">{children}</div>
  );
};

# Install

import your data before you begin, and export default values with care.

<Tabs groupId="os" values={[{label: 'a > b', value: "x"}]}>
  <TabItem value="linux">

    ```bash
    import os  # <stays> {/* stays */}
## not a heading
    ```

    Prose inside a tab.

  </TabItem>
</Tabs>

{/* an author's
note */}

<Callout type="info">Press <kbd>Enter</kbd> if `a < b` and <b>wait</b>.<br/>Then go.</Callout>

A value of {distro} and 3 < 4 and a <https://example.org> address.
"""
    lesson, chunks = split(tmp_path, body, "m/01-a.mdx")
    check_lesson(lesson, chunks)
    text = "\n".join(texts(chunks))
    for gone in ("@theme", "parts", "style.css", "jazzy", "className", "TabItem", "author", "Callout", "kbd", "<b"):
        assert gone not in text
    for kept in (
        "import your data before you begin, and export default values with care.",
        "import os  # <stays> {/* stays */}\n## not a heading",
        "Prose inside a tab.",
        "Press Enter if `a < b` and wait. Then go.",
        "A value of {distro} and 3 < 4 and a <https://example.org> address.",
    ):
        assert kept in text
    assert chunks[0].section_title is None


def test_every_field_of_a_chunk(tmp_path: Path) -> None:
    front = "---\ntitle: Nodes\nhardware_tier: 2\nlayer: L3\nproficiency_level: B1\n---\n\n"
    lesson, [chunk] = split(
        tmp_path / "b", front + "# Nodes\n\n## What\n\nA node computes.\n", "module-1-ros2/chapter-1-x/04-nodes.md"
    )
    assert (chunk.book_id, chunk.module, chunk.chapter, chunk.lesson) == ("b", "ros2", 1, 4)
    assert (chunk.hardware_tier, chunk.layer, chunk.proficiency_level) == (2, "L3", "B1")
    assert (chunk.first_line, chunk.last_line) == (8, 12)
    assert lesson.text[chunk.start : chunk.end] == chunk.text == "# Nodes\n\n## What\n\nA node computes."
    assert (chunk.word_count, chunk.token_count, chunk.char_count) == (7, 10, 34)
    assert chunk.heading_path == ("B", "Module 1: Ros2", "Chapter 1: X", "Nodes", "What")
    assert chunk.source_file_hash == lesson.file_hash
    assert chunk.url == "/read/b/module-1-ros2/chapter-1-x/04-nodes#what"
