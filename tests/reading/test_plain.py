"""Markdown as it is read out, and where each of its characters stands in the source."""

from __future__ import annotations

import time

import pytest

from askbook.reading.plain import read_out
from askbook.reading.spans import Span

TABLE = """| | Topic | Service |
|---|:---:|---|
| Pattern | many **to** many | request, [response](reply.md) |
| Can `be` cancelled | no | |
"""


def test_a_row_is_read_with_the_names_of_its_columns() -> None:
    assert read_out(TABLE, 9999).text == (
        "Pattern: Topic: many to many; Service: request, response.\nCan be cancelled: Topic: no.\n"
    )


def test_a_first_column_with_a_name_is_a_column_like_the_others() -> None:
    assert read_out("Before\n\nA | B\n--|--\n1 | 2\n\nAfter", 9999).text == "Before\n\nA: 1; B: 2.\n\nAfter"


def test_a_table_in_a_quotation() -> None:
    assert read_out("> | A | B |\n> |---|---|\n> | 1 | x \\| y |\n", 9999).text == "A: 1; B: x \\| y.\n"


def test_an_empty_cell_keeps_its_place() -> None:
    assert read_out("|a|b|c|\n|-|-|-|\n|1||3|\n||2||\n", 9999).text == "a: 1; c: 3.\nb: 2.\n"


def test_a_long_head_is_not_read_out_without_end() -> None:
    head, rows = "|".join(["word " * 100] * 20), "|\n" * 4000
    plain = read_out(f"{head}\n-|-\n{rows}", 5000)
    assert len(plain.text) == len(plain.places) == 5000


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("It is **bold** and `code`.", "It is bold and code."),
        ("See [the **whole** page](https://x.org/a_(b)) and [that][one].", "See the whole page and that."),
        ("![A robot](robot.png) walks.", "A robot walks."),
        ("`a ** b` and `**kw`", "a ** b and **kw"),
        ("Bars | without a rule\nstay | here", "Bars | without a rule\nstay | here"),
        ("```\n| a | b |\n|---|---|\n| **1** | 2 |\n```\n", "```\n| a | b |\n|---|---|\n| **1** | 2 |\n```\n"),
        ("[1] is a mark, [x] too", "[1] is a mark, [x] too"),
        ("", ""),
    ],
)
def test_signs_are_not_read(written: str, read: str) -> None:
    assert read_out(written, 9999).text == read


@pytest.mark.parametrize("words", ["many to many", "response", "Pattern", "no", "many to many; Service: request"])
def test_what_is_pointed_at_has_its_place_in_the_source(words: str) -> None:
    plain = read_out(TABLE, 9999)
    assert len(plain.text) == len(plain.places)
    start = plain.text.index(words)
    span = plain.to_source(Span(start, start + len(words), 1.0))
    first, last = words.split()[0], words.split()[-1]
    assert TABLE[span.start : span.end].startswith(first) and TABLE[span.start : span.end].endswith(last)


HOSTILE = ["**a", "`a ", "[a", "|a", "a|b\n", "```\n", "[a](", "[a][", "-|", "> ", "![", "|\n", "a|b\n-|-\n"]


@pytest.mark.parametrize("part", HOSTILE)
def test_the_time_grows_with_the_text_and_no_faster(part: str) -> None:
    def take(count: int) -> float:
        times: list[float] = []
        for _ in range(3):
            started = time.process_time()
            read_out("a|b\n-|-\n" + part * count, 40_000)
            times.append(time.process_time() - started)
        return min(times)

    assert take(16_000) < 12 * take(4_000) + 0.02
