"""Formulas in a terminal: readable, whatever they hold, and never in code."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import processes
from askbook.cli.formulas import read_aloud, show_formulas


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (r"$\frac{a+b}{2}$ and $\frac12$", "(a+b)/2 and 1/2"),
        (r"$\sqrt{x}$, $\sqrt[3]{x^2+1}$", "√x, ³√(x²+1)"),
        (r"$x_{i+1}^{n}$, $e^{i\pi}$, $90^\circ$", "xᵢ₊₁ⁿ, e^(iπ), 90°"),
        (r"\(\alpha \leq \beta\) \[\sum_{k=1}^n k\]", "α ≤ β ∑ₖ₌₁ⁿ k"),
        (r"$$f = \begin{cases} x & x > 0 \\ 0 & \text{else} \end{cases}$$", "f = { x, x > 0; 0, else"),
        (r"$$\begin{pmatrix} a & b \\ c & d \end{pmatrix}$$", "[a b; c d]"),
        (r"$$\begin{aligned} a &= b \\ &= c \end{aligned}$$", "a = b\n= c"),
        (r"$\left(\hat{y} - \mathbf{x}\right)$, $\lVert v \rVert$", "(ŷ - x), ‖ v ‖"),
        (r"$\unknowncommand{x} + \foo$", "unknowncommand x + foo"),
        (r"See \[#12\] and \(the note\), \(n - 1\)", r"See \[#12\] and \(the note\), n - 1"),
        ("It costs $5 and $10, or $5-$6.", "It costs $5 and $10, or $5-$6."),
        ("`$x_1$` and\n```sh\necho $a$b\n```", "`$x_1$` and\n```sh\necho $a$b\n```"),
        ("```math\nx^2\n```", "x²"),
    ],
)
def test_formulas_are_read(text: str, shown: str) -> None:
    assert show_formulas(text) == shown


def test_what_markdown_would_take_for_its_own_is_escaped() -> None:
    assert show_formulas(r"$p_\theta * q$", escaped=True) == r"p\_θ \* q"


@pytest.mark.parametrize("piece", [r"\frac", "{", "^", r"\begin{cases}", r"\sqrt[", "x_{", r"\left("])
def test_a_formula_that_never_ends_is_read_all_the_same(piece: str) -> None:
    assert read_aloud(piece * (4000 // len(piece)))
    assert len(read_aloud("x + " * 10_000)) > 10_000


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from([r"\frac", r"\sqrt", "{", "}", "^", "_", "&", r"\\", r"\begin{array}", "[", "x", r"\|", "\\"])
    )
)
def test_any_tex_is_read(pieces: list[str]) -> None:
    read_aloud("".join(pieces))


def test_an_answer_and_a_search_show_them(tmp_path: Path) -> None:
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "01-attention.md").write_text(
        "# Attention\n\nThe attention of queries $Q$, keys $K$ and values $V$ is\n\n"
        "$$\n\\frac{QK^T}{\\sqrt{d_k}} V\n$$\n\nwhere $d_k$ is the dimension of a key. A head costs $5 and $10.\n"
    )
    environment = {**os.environ, "ASKBOOK_HOME": str(tmp_path / "home"), "COLUMNS": "120"}

    def askbook(*arguments: str) -> str:
        command = [sys.executable, "-c", "from askbook.cli.main import run; run()", *arguments]
        done = processes.run(command, cwd=tmp_path, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    askbook("ingest", str(folder))
    asked = "What is the attention of queries, keys and values?"
    for shown in (askbook("ask", asked), askbook("search", "dimension head").replace("*", "")):
        assert "QKᵀ/√dₖ V" in shown
        assert "where dₖ is the dimension of a key. A head costs $5 and $10." in shown
    assert json.loads(askbook("ask", asked, "--json"))["answer"].count("$$") == 2
