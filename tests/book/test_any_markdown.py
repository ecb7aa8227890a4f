"""Markdown that nobody wrote: generated, hostile, and enormous."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from pathlib import Path

import pytest
from book_checks import check_chain, check_coverage, check_fences, check_limits, check_pieces
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from shelf import read_all, split, write_book

from askbook.book.chunker import split_lesson
from figures import Figure

pytestmark = pytest.mark.row("B2")

WORDS = st.sampled_from(
    [
        "robot",
        "`x`",
        "**bold**",
        "naïve",
        "机器人。",
        "<b>t</b>",
        "a|b",
        "[l](u)",
        "{{x}}",
        "1.",
        "#",
        "~~~s",
        "``",
        "\\",
        "é\u0301",
        "x" * 60,
    ]
)
SENTENCE = st.lists(WORDS, min_size=1, max_size=12).map(" ".join)
PROSE = st.lists(SENTENCE, min_size=1, max_size=12).map(". ".join)
HEADING = st.tuples(st.integers(1, 6), SENTENCE).map(lambda pair: f"{'#' * pair[0]} {pair[1]}")
SETEXT = st.tuples(SENTENCE, st.sampled_from(["===", "---"])).map("\n".join)
CODE_LINE = st.sampled_from(
    ["## no heading", "x = 1", "", "    indented", "| a | b |", "<!-- c -->", "- item", "y " * 40, "`", "> q"]
)
FENCE = st.builds(
    lambda mark, info, lines, closed: "\n".join([mark + info, *lines, *([mark] if closed else [])]),
    st.sampled_from(["```", "~~~", "````", "   ```"]),
    st.sampled_from(["", "py", "js title=x"]),
    st.lists(CODE_LINE, max_size=60),
    st.sampled_from([True, True, True, False]),
)
TABLE = st.lists(st.tuples(SENTENCE, SENTENCE), max_size=40).map(
    lambda rows: "\n".join(
        ["| a | b |", "|---|:-:|", *(f"| {left} | {right} |".replace("\\", "") for left, right in rows)]
    )
)
LIST = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["-", "1.", "*"]), PROSE), min_size=1, max_size=15).map(
    lambda items: "\n".join(f"{'  ' * depth}{mark} {text}" for depth, mark, text in items)
)
NESTED = st.tuples(st.sampled_from(["> ", "  ", "    ", "- "]), st.one_of(FENCE, TABLE, PROSE)).map(
    lambda pair: "\n".join(pair[0] + line for line in pair[1].split("\n"))
)
HTML = st.sampled_from(
    [
        "<div>\ntext\n</div>",
        "<details><summary>s</summary>\n\ninside\n\n</details>",
        "<pre>\n```\n</pre>",
        "<!-- c -->",
        "<!-- open",
        "a <!-- c --> b",
    ]
)
MARKUP = st.sampled_from(
    [
        '!!! note "A *title*"\n    text\n\n    - item\n\n    ```py\n    x\n    ```',
        '=== "Tab"\n\n    text\n\n    !!! tip\n        deep',
        ":::tip[Title]\ntext\n:::",
        "::: info\ntext",
        "```{note} Title\n:class: x\ntext\n```",
        ":::{figure} a.png\n:alt: b\n\ncaption\n:::",
        "> [!NOTE]\n> text",
        '{{< alert title="A" >}}\ntext\n{{< /alert >}}',
        "{% hint %}\ntext\n{% endhint %}",
        "text[^1] {math}`x` {ref}`words <to>` [[Page|words]]",
        "[^1]: note\n\n    more",
        "$$\na\n=\n\nb\n$$",
        '```js title="a" {1}\nx\n```',
        "## Own {#id}",
        "term\n:   text\n\n    more",
        ":::",
        "    !!! note\n        text",
    ]
)
BLOCK = st.one_of(MARKUP, PROSE, HEADING, SETEXT, FENCE, TABLE, LIST, NESTED, HTML, st.text(max_size=200))
MARKDOWN = st.tuples(st.lists(BLOCK, max_size=20), st.sampled_from(["\n\n", "\n", "\r\n\r\n"])).map(
    lambda pair: pair[1].join(pair[0])
)


@pytest.mark.timeout(3600)
def test_any_markdown(tmp_path: Path, torture: bool, figure: Figure) -> None:
    count = 5_000 if torture else 150

    @settings(
        max_examples=count,
        deadline=None,
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(MARKDOWN)
    def cut(text: str) -> None:
        lesson, chunks = split(tmp_path, text.encode("utf-8", "replace").decode())
        check_pieces(lesson, chunks)
        check_coverage(lesson, chunks)
        check_chain(chunks)
        for chunk in chunks:
            check_limits(chunk)
            check_fences(chunk.text)
        assert split_lesson(lesson) == chunks

    cut()
    figure(f"B2: {count} generated files, every character in a chunk", count)


def test_a_line_of_ten_megabytes_takes_half_a_gigabyte_at_most(tmp_path: Path, figure: Figure) -> None:
    """In a process of its own, which has the memory of nothing else."""
    folder = write_book(tmp_path, {"m/01-a.md": "# Long\n\n" + "aardvark " * (10 * 2**20 // 9)})
    told = subprocess.run([sys.executable, "-c", MEASURED, folder], capture_output=True, text=True, timeout=300)
    assert told.returncode == 0, told.stderr
    megabytes, seconds = map(float, told.stdout.split())
    figure(f"B2: a line of 10 MB: {megabytes:.0f} MB, {seconds:.1f} s", 1)
    assert megabytes <= 512
    assert seconds <= 20


MEASURED = """
import re, sys, time
from pathlib import Path
from askbook.book.chunker import split_lesson
from askbook.book.reader import read_book, read_lessons
folder = Path(sys.argv[1])
lessons, _ = read_lessons(folder, read_book(folder))
chunks = [chunk for lesson in lessons for chunk in split_lesson(lesson)]
assert len(chunks) > 1000
most = re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())
print(int(most[1]) / 1024, time.process_time())
"""
HOSTILE = {
    "a line of 2 MB": "word " * 400_000,
    "a run of 2 MB": "x" * 2_000_000,
    "spaces": "a" + " " * 2_000_000 + "b",
    "blank lines": "a" + "\n" * 2_000_000 + "b",
    "1,000 quotes": ">" * 1000 + " deep\n",
    "1,000 lists": "".join("  " * depth + "- a\n" for depth in range(1000)),
    "open brackets": "[" * 100_000,
    "open backticks": "`" * 100_000,
    "backticks of every length": " ".join("`" * (n % 300 + 1) for n in range(5000)),
    "open tags": "<a {" * 100_000,
    "open comments": "<!-- " * 50_000 + "{/* " * 50_000,
    "open fence": "```\n" + "code line\n" * 50_000,
    "fence with a huge info": "```" + "x" * 500_000 + "\ncode\n",
    "short lines": "a\n\n" * 200_000,
    "headings": "# a\n" * 100_000,
    "a wide table": "|" + "a|" * 20_000 + "\n|" + "-|" * 20_000 + "\n" + "|x" * 20_000,
    "imports that are none": "import a\n" * 50_000,
    "exports without an end": "export const a = {\n" * 20_000 + "\n\ntext",
    "nested tabs": "".join("    " * n + '=== "t"\n\n' for n in range(1000)) + "    " * 1000 + "text\n",
    "closing colons": ":::\n" * 10_000,
    "opening colons": ":::note\n" * 10_000,
    "colons of every length": "".join(":" * (n % 200 + 3) + "note\n" for n in range(10_000)),
    "colons that close nothing": "::::::::x\n" + ":::x\n" * 5_000 + "::::\n" * 5_000,
    "directives without an end": "```{note}\n" * 10_000,
    "listings of tables of contents": "```{toctree}\n```\n" * 10_000,
    "alerts": "> [!NOTE]\n" * 10_000,
    "dollars": "$a " * 50_000,
    "formulas without an end": "\\begin{align}\n" * 10_000,
    "a formula of 10,000 terms": "$$" + " + ".join(f"x_{n}" for n in range(10_000)) + "$$",
    "shortcodes without an end": "{{< a " * 50_000,
    "code of shortcodes without an end": "{{< highlight go >}}\n" * 20_000,
    "roles without an end": "{a}`" * 50_000,
    "attributes without an end": "{.a" + " .a" * 50_000,
    "attributes on one line": "a{.a} " * 150_000,
    "shortcodes on one line": "{{< a >}} " * 80_000,
    "footnotes": "[^1]: x\n" * 20_000,
    "attributes of tags": '<Card title="' * 20_000,
    "conditions in conditions": "{a && <b>" * 20_000 + "</b>}" * 20_000,
    "conditions and their others": "{a ? <b>x</b> : <i>y</i>} " * 5_000,
    "others without an end": "{a ? <b>" + "</b> : <b>" * 5_000 + "</b>}",
    "includes": "{{#include a}}\n" * 5_000,
    "nested fences": "".join("> " * (n % 30) + "```\n" for n in range(10_000)),
}


@pytest.mark.parametrize("extension", ["md", "mdx"])
@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_markdown_is_cut_in_time(tmp_path: Path, kind: str, extension: str) -> None:
    """At most two seconds of work for a megabyte (one second where there is less)."""
    text = HOSTILE[kind]
    name = f"m/01-a.{extension}"
    lesson = read_all(write_book(tmp_path, {name: text}))[0][name]
    gc.collect()
    gc.freeze()  # What five thousand files before this one left behind is not its work to look through.
    started = time.process_time()
    chunks = split_lesson(lesson)
    gc.unfreeze()
    assert time.process_time() - started < max(1.0, 2.0 * len(text) / 1_000_000)

    check_chain(chunks)
    for chunk in chunks:
        check_limits(chunk)
    for chunk in chunks[:50]:
        check_fences(chunk.text)
    if extension == "md":
        check_coverage(lesson, chunks)
