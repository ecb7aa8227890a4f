"""Formulas are drawn as MathML by KaTeX, which comes with askbook, and only where there is one; bombs stay text."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from api.service import BOOK, Service, build_settings, ingest, serve
from web.browsing import DESKTOP, ON_BOTH, open_page
from web.chatting import ask, is_too_wide, open_chat

pytestmark = pytest.mark.asyncio(loop_scope="module")

KATEX = "fa140498b8cfc8302cbe5e7cb1bdbc1f952bc38b3fa258ede09e73edbf9a74bc"
"""Of dist/katex.min.js in the package katex 0.19.1."""
HUGE = "$$ " + " + ".join(f"x_{{{number}}}" for number in range(10_000)) + " $$"
BOMBS = (
    HUGE,
    r"$\def\a{xxxxxxxxxx}\def\b{\a\a\a\a\a\a\a\a\a\a}\def\c{\b\b\b\b\b\b\b\b\b\b}\def\d{\c\c\c\c\c\c\c\c\c\c}\d\d\d\d\d\d$",
    r"$\def\x{\x\x}\x$",
    "$" + r"\frac{1}{" * 300 + "2" + "}" * 300 + "$",
    "$" + r"\sqrt" * 900 + "2$",
    r"$\rule{99999em}{99999em}$",
)
LESSON = rf"""# Attention

Scaled dot-product attention weighs values by how well a query fits their keys. A head costs $5 and $10 an hour.

## The formula of attention

The attention of queries $Q$, keys $K$ and values \(V\) is

$$
\operatorname{{Attention}}(Q, K, V) = \operatorname{{softmax}}\left(\frac{{QK^\top}}{{\sqrt{{d_k}}}}\right) V
$$

where $d_k$ is the dimension of a key.

## The loss

\[
\ell(y) = \begin{{cases}}
  \tfrac{{1}}{{2}} y^2 & \text{{if }} |y| \le \delta \\
  \delta |y| & \text{{otherwise}}
\end{{cases}}
\]

\begin{{align}}
a &= b + c \\
  &= d
\end{{align}}

```math
R = \begin{{pmatrix}} \cos\varphi & -\sin\varphi \\ \sin\varphi & \cos\varphi \end{{pmatrix}}
```

## A long sum

{HUGE}
"""
COUNTS = """(root) => Object.fromEntries(["math", "mtable", "mtr", "mtd", "mfrac", "msqrt"].map((name) =>
  [name, root.querySelectorAll(name).length]))"""


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("papers") / "book"
    folder.mkdir()
    (folder / "01-attention.md").write_text(LESSON)
    settings = build_settings(tmp_path_factory.mktemp("home"))
    asyncio.run(ingest(settings, folder))
    with serve(settings) as service:
        yield service


async def draw(page: Page, text: str) -> None:
    await page.evaluate(
        """async (text) => {
          const { renderAnswer } = await import("/assets/answer.js");
          document.getElementById("thread").replaceChildren(renderAnswer(text, []));
        }""",
        text,
    )


async def test_katex_is_the_published_file() -> None:
    web = files("askbook").joinpath("web")
    assert hashlib.sha256(web.joinpath("katex.min.js").read_bytes()).hexdigest() == KATEX
    notice = (Path(__file__).parents[2] / "NOTICE").read_text()
    assert "KaTeX" in notice and "MIT" in notice and "Khan Academy" in notice


@pytest.mark.parametrize(
    ("text", "drawn", "left"),
    [
        ("$x$, $$y$$, \\(z\\), \\[w = 1\\] and the $n$th", 5, ""),
        ("$$\nx = 1\n- y\n= z\n$$", 1, ""),
        ("```math\nx\n```\n\n\\begin{gather*}\ny\n\\end{gather*}", 2, ""),
        ("It costs $5 and $10, US$5 or $5-$6; `$x$` is code.", 0, "$5 and $10"),
        ("```\n$x$\n```", 0, "$x$"),
        ("$a[1]$ is an entry [1]", 1, "[1]"),
        (
            "See \\[#12\\] and \\(the note\\), where \\(n - 1\\) and \\(x\\) are.\n\n\\[#13\\]",
            2,
            "See [#12] and (the note)",
        ),
        ("$\\notacommand{$ stays, $x$ is drawn", 1, "\\notacommand{"),
    ],
)
async def test_what_is_math(papers: Service, browser: Browser, text: str, drawn: int, left: str) -> None:
    async with open_page(browser, papers.url) as watched:
        page = watched.page
        await open_chat(page, papers.url)
        await draw(page, text)
        await expect(page.locator("#thread math")).to_have_count(drawn)
        if left:
            await expect(page.locator("#thread .answer")).to_contain_text(left)


@ON_BOTH
async def test_formulas_are_drawn_in_reader_answer_and_source(
    papers: Service, browser: Browser, size: tuple[int, int]
) -> None:
    async with open_page(browser, papers.url, size=size) as watched:
        page = watched.page
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        await open_chat(page, papers.url)
        await page.wait_for_load_state("networkidle")
        assert not [url for url in asked if "katex" in url]
        answer = await ask(page, "What is the formula of the attention of queries, keys and values?")
        await expect(answer.locator(".math.display math")).to_have_count(1)
        assert [url for url in asked if "katex" in url] == [f"{papers.url}/assets/katex.min.js"]
        await answer.locator("button.chip").first.click()
        await expect(page.locator("#panel mark math").first).to_be_visible()
        assert await is_too_wide(page) == []

        await page.goto(f"{papers.url}/read/{BOOK}")
        await expect(page.locator(".lesson math").nth(6)).to_be_attached()
        counts = await page.locator(".lesson").evaluate(COUNTS)
        # Cases, aligned and matrix have two rows of two cells each.
        assert counts == {"math": 8, "mtable": 3, "mtr": 6, "mtd": counts["mtd"], "mfrac": 2, "msqrt": 1}
        sides = "(one) => [...one.querySelectorAll('mtd')].map((cell) => getComputedStyle(cell).textAlign)"
        cases, aligned = (page.locator(".lesson mtable").nth(number) for number in (0, 1))
        assert await cases.evaluate(sides) == ["left"] * 4
        assert (await aligned.evaluate(sides))[:2] == ["right", "left"]
        await expect(page.locator(".lesson")).to_contain_text("costs $5 and $10 an hour")
        # The sum of 10,000 terms is there as it was written.
        await expect(page.locator(".lesson .math", has_text="x_{9999}").locator("math")).to_have_count(0)
        assert await is_too_wide(page) == []


async def test_a_formula_of_lines_is_drawn_on_lines(papers: Service, browser: Browser) -> None:
    rows = {
        "$$\na = b \\\\\nc = d\n$$": 2,
        "$$\na &= b \\\\[2pt]\n  &= c \\\\\n  &= \\{d \\tag{7}\n$$": 3,
        "\\[a \\\\ b \\\\\\]": 2,
        "$$\na = \\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}\n$$": 2,
        "$$\\begin{aligned} a \\\\ b \\\\ c \\end{aligned}$$": 3,
        "$$\\sum_{\\substack{a \\\\ b}} c = \\{1\\}$$": 2,
        "$$\na = b\n$$": 0,
        "$a \\\\ b$": 0,
    }
    async with open_page(browser, papers.url) as watched:
        page = watched.page
        await open_chat(page, papers.url)
        seen: dict[str, int] = {}
        for formula in rows:
            await draw(page, f"{formula}\n\nAnd $y$ so.")
            await expect(page.locator("#thread math")).to_have_count(2)
            drawn = page.locator("#thread math").first
            # What a formula with a number stands in is a table too.
            seen[formula] = await drawn.locator("mtr:not(:has(mtable))").count()
            if "tag" in formula:
                await expect(drawn).to_contain_text("(7)")
        assert seen == rows


async def test_bombs_stay_text(papers: Service, browser: Browser) -> None:
    async with open_page(browser, papers.url, size=DESKTOP) as watched:
        page = watched.page
        await open_chat(page, papers.url)
        await draw(page, "$x$")
        await expect(page.locator("#thread math")).to_have_count(1)
        for bomb in BOMBS:
            began = time.monotonic()
            await draw(page, f"{bomb} and $y$")
            await expect(page.locator("#thread math").last).to_be_visible()
            height = await page.locator("#thread .answer").evaluate("(one) => one.getBoundingClientRect().height")
            took = time.monotonic() - began
            print(f"{bomb[:30]}…: {took:.2f} s, {height:.0f} pixels")
            assert took < 3 and height < 5000
