"""The generators' own markup, read as the readers of the site see it; every word of it at its own place in the file."""

from __future__ import annotations

from pathlib import Path

import pytest
from book_checks import check_lesson, check_pieces
from shelf import read_all, split, words, write_book

from askbook.book.chunker import split_lesson

SHOWN = {
    # MkDocs and Material
    "note": ('!!! note "Take care"\n    One.\n\n    Two.\n\nAfter.', "**Take care**\n\nOne.\n\nTwo.\n\nAfter."),
    "no title": ("!!! warning\n    Hot.", "**Warning**\n\nHot."),
    "an empty title": ('!!! note ""\n    Bare.', "Bare."),
    "a kind of one's own": ("??? api\n    `f(x)` adds.", "**Api**\n\n`f(x)` adds."),
    "opened": ('???+ tip "Try"\n    It.', "**Try**\n\nIt."),
    "beside": ("!!! info inline end\n    Aside.", "**Info**\n\nAside."),
    "a list in it": ("!!! note\n\n    - one\n        - two", "**Note**\n\n- one\n    - two"),
    "a listing in it": ("!!! note\n\n    ```py\n    x = 1\n    ```", "**Note**\n\n```py\nx = 1\n```"),
    "in a list": ("- one\n\n    !!! note\n        in it\n- two", "- one\n\n    **Note**\n\n    in it\n- two"),
    "tabs": (
        '=== "Python"\n\n    ```py\n    x\n    ```\n\n=== "Rust"\n\n    Text.',
        "**Python**\n\n```py\nx\n```\n\n**Rust**\n\nText.",
    ),
    "a note in a tab": ('=== "A"\n\n    !!! tip\n        Deep.\n\n    Less.', "**A**\n\n**Tip**\n\nDeep.\n\nLess."),
    "by indent it is code": ("Text.\n\n    !!! note\n        x <b>y</b>", "Text.\n\n    !!! note\n        x <b>y</b>"),
    "attributes": ("[Go](x.md){ .md-button } now.\n{: .lead }", "[Go](x.md) now."),
    "keys, marks, icons": ("Press ++ctrl+c++, ==now==, :material-check: done.", "Press ctrl+c, now, done."),
    "abbreviation": ("*[HTML]: Hyper Text", "HTML: Hyper Text"),
    "definition": ("Term\n:   First.\n\n    Second.", "Term\n:   First.\n\nSecond."),
    "definition below a blank line": (
        '<!-- md:option x -->\n\n:   First.\n\n    === "A"\n\n        Text.',
        ":   First.\n\n**A**\n\nText.",
    ),
    "changes": (
        "It is {--gone--}, {++new++}, {~~old~>fresh~~}, {==marked==}{>>a remark<<}.",
        "It is ~~gone~~, new, ~~old~~ fresh, marked (a remark).",
    ),
    "changed blocks": ("{==\n\nText.\n\n==}", "Text."),
    "API page": ("::: package.module\n    options:\n      a: 1\n\nText.", "`package.module`\n\nText."),
    # Docusaurus, VitePress, Starlight, Quarto
    "colons": (":::tip[My title]\n\nText.\n\n:::", "**My title**\n\nText."),
    "colons, title behind": ("::: info Read this {open}\nText.\n:::", "**Read this**\n\nText."),
    "colons, no title": (":::danger\nText.\n:::", "**Danger**\n\nText."),
    "slashes": ("/// warning | Hot surface\n\nText.\n\n///\n\nMore.", "**Hot surface**\n\nText.\n\nMore."),
    "slashes with options": ("/// details | Read on\n    open: True\n\nText.\n\n///", "**Read on**\n\nText."),
    "slashes, a tab": ("/// tab | Python\n\n```py\nx = 1\n```\n\n///", "**Python**\n\n```py\nx = 1\n```"),
    "slashes that are text": ("/// no block\n\nText.", "/// no block\n\nText."),
    "colons in colons": ("::::note\n:::tip\nIn.\n:::\nOut.\n::::", "**Note**\n\n**Tip**\n\nIn.\n\nOut."),
    "callout": ('::: {.callout-note title="Said"}\nText.\n:::', "**Said**\n\nText."),
    "code group": ("::: code-group\n\n```sh [npm]\nnpm i\n```\n\n:::", "**npm**\n\n```sh\nnpm i\n```"),
    "title of a listing": ('```js title="a.js" {1,3} showLineNumbers\nx\n```', "**a.js**\n\n```js\nx\n```"),
    "a listing in a listing": (
        '```\n=== "A"\n\n    ``` py\n    x\n    ```\n\n<b>y</b>\n```\n\n!!! note\n    Text.',
        '```\n=== "A"\n\n    ``` py\n    x\n    ```\n\n<b>y</b>\n```\n\n**Note**\n\nText.',
    ),
    "title without a language": ('``` title="a.txt"\nx\n```', "**a.txt**\n\n```\nx\n```"),
    "lines to highlight": ("```js{1,3}\n// highlight-next-line\nx\n```", "```js\nx\n```"),
    "words of a listing's own": ("```js live-sample\nx\n```", "```js live-sample\nx\n```"),
    "heading id": ("## Set up {#own}\n\nText.", "## Set up\n\nText."),
    "heading id as an attribute": ('## 9.1 {id="9.1"}\n\nText.', "## 9.1\n\nText."),
    "badge": ('### Mode <Badge type="info" text="beta" />\n\nText.', "### Mode (beta)\n\nText."),
    "a component around words": (
        "## Mode <Version>4.1.0</Version>\n\nText since <Version>4</Version> and Vec<T>.",
        "## Mode 4.1.0\n\nText since 4 and Vec<T>.",
    ),
    # MyST and Sphinx
    "directive": ("```{note} Title\n:class: x\nText.\n```", "**Title**\n\nText."),
    "directive of colons": (":::{admonition} Own\n:class: tip\nText.\n:::", "**Own**\n\nText."),
    "version": ("```{versionadded} 1.2\nNew.\n```", "**New in version 1.2**\n\nNew."),
    "code-block": (
        "```{code-block} python\n:linenos:\n:caption: Adds\nx = 1\n```",
        "**Adds**\n\n```python\nx = 1\n```",
    ),
    "code-cell": ("```{code-cell} ipython3\n---\ntags: [hide]\n---\nx\n```", "```ipython3\nx\n```"),
    "figure": ("```{figure} a.png\n:name: f\n\nThe caption.\n```", "![](a.png)\n\nThe caption."),
    "figure with words": (
        ":::{figure} a.png\n:name: f\n:alt: A fish\n:width: 2\n\nThe caption.\n:::",
        "![A fish](a.png)\n\nThe caption.",
    ),
    "figure elsewhere": ("```{figure} https://x.example/a.png\n:alt: A fish\n\nThe caption.\n```", "The caption."),
    "image": ("```{image} a.png\n:class: x\n:alt: A fish\n:width: 2\n```", "![A fish](a.png)"),
    "image below words": ("Look:\n```{image} a.png\n```", "Look:\n\n![](a.png)"),
    "formula with a label": ("$$\na\n$$ (eq:x)\n\nSee {eq}`x`.", "$$\na\n$$\n\nSee x."),
    "tab-set": ("::::{tab-set}\n:::{tab-item} One\n1\n:::\n::::", "**One**\n\n1"),
    "classes": ("::::{grid} 1 1 2 2\n:::{div} wide\nText.\n:::\n::::", "Text."),
    "toctree": ("Before.\n\n```{toctree}\n:maxdepth: 2\na\nb\n```\n\nAfter.", "Before.\n\nAfter."),
    "for the web only": ("```{only} html\nSeen.\n```\n\n:::{only} latex\nUnseen.\n:::", "Seen."),
    "raw HTML": (":::{raw} html\n<div>Words <b>x</b></div>\n:::", "Words x"),
    "a listing that is not there": ("Source:\n\n```{literalinclude} ../../a.py\n```", "Source:"),
    "roles": (
        "See {ref}`the words <t>`, {math}`x_1`, {py:func}`f`, {kbd}`Esc`.",
        "See the words, $x_1$, `f`, Esc.",
    ),
    "label": ("(here)=\n## Part\n\nText.", "## Part\n\nText."),
    "math directive": ("```{math}\n:label: e\na = b\n```", "$$\na = b\n$$"),
    # GitHub, Hugo, GitBook, d2l
    "alert": ("> [!NOTE]\n> Text.", "> **Note**\n>\n> Text."),
    "alert with a title": ("> [!tip]- Look\n> Text.", "> **Look**\n>\n> Text."),
    "shortcode": ('{{< alert title="Heads up" >}}\nText.\n{{< /alert >}}', "**Heads up**\n\nText."),
    "shortcode of Markdown": ("{{% pageinfo %}}\nText.\n{{% /pageinfo %}}", "Text."),
    "shortcode among words": ('Run {{< glossary_tooltip text="pods" term_id="pod" >}} here.', "Run pods here."),
    "shortcode shown": ("Write `{{< a >}}` or {{</* b */>}}.", "Write `{{< a >}}` or {{< b >}}."),
    "Docsy's tabs are code": (
        '{{< tabpane >}}\n{{< tab header="File:" disabled=true />}}\n{{< tab header="x.toml" lang="toml" >}}\n[[a]]\n{{< /tab >}}\n{{< /tabpane >}}',
        "**File:**\n\n**x.toml**\n\n```toml\n[[a]]\n```",
    ),
    "notice": ('{{% notice tip "Take care" %}}\nText.\n{{% /notice %}}', "**Take care**\n\nText."),
    "notice without a title": ("{{% notice warning %}}\nText.\n{{% /notice %}}", "**Warning**\n\nText."),
    "hint of hugo-book": ("{{< hint info >}}\nText.\n{{< /hint >}}", "**Info**\n\nText."),
    "tabs of Hugo": (
        '{{< tabs "id" >}}\n{{< tab "macOS" >}}\n1\n{{< /tab >}}\n{{< tab name="Linux" >}}\n2\n{{< /tab >}}\n{{< /tabs >}}',
        "**macOS**\n\n1\n\n**Linux**\n\n2",
    ),
    "details of Hugo": ('{{% expand "Read on" %}}Text.{{% /expand %}}', "**Read on**\n\nText."),
    "hint": ('{% hint style="info" %}\nText.\n{% endhint %}', "**Info**\n\nText."),
    "tab of GitBook": ('{% tabs %}\n{% tab title="One" %}\n1\n{% endtab %}\n{% endtabs %}', "**One**\n\n1"),
    "tab of d2l": (":begin_tab:`mxnet`\nText.\n:end_tab:", "**mxnet**\n\nText."),
    "footnote": ("Said[^1].\n\n[^1]: A note.\n\n    More.", "Said.\n\nFootnote 1: A note.\n\nMore."),
    "wiki links": ("See [[Page]] and [[Page|words]].", "See Page and words."),
    "details": ("<details>\n<summary>More</summary>\n\nIn.\n\n</details>", "**More**\n\nIn."),
    "picture": ('<p align="center"><img src="x.png" alt="The robot"></p>', "![The robot](x.png)"),
    "picture from elsewhere": ('<p><img src="https://a.example/x.png" alt="The robot"></p>', "The robot"),
    "a power": ("It has 10<sup>6</sup> ohm.", "It has 10^6 ohm."),
    "words side by side": ("Press <kbd>A</kbd> <kbd>B</kbd> or <b>1</b> <b>2</b>.", "Press A B or 1 2."),
    "struck out": ("Never <del>do</del> this.", "Never ~~do~~ this."),
    "no footnote": ("The class [^abc] and a[^b]c.", "The class [^abc] and a[^b]c."),
    "no marks": ("a==b==c, x[[0]] and f([[5]])", "a==b==c, x[[0]] and f([[5]])"),
    "a tag of two lines": ('Say <code\nclass="x"># T</code> now.', "Say `# T` now."),
    "HTML code": ("Type <code>a_b</code> now.", "Type `a_b` now."),
    "no tags": ("`Vec<T>` is Vec<T>, <path> is a path.", "`Vec<T>` is Vec<T>, <path> is a path."),
    "a script of one tag": ("<script\n  src='x.js'\n  label='Say'\n/>\n\nText.", "Text."),
    "script": ("<script setup>\nlet x = 1\n\n</script>\n\nText.", "Text."),
    # mdBook
    "hidden lines": ("```rust\n# use a;\nfn f() {}\n#[test]\n```", "```rust\nfn f() {}\n#[test]\n```"),
    "title of the page": ("{{#title Other}}\n\nText.", "Text."),
    # formulas
    "formula of lines": ("$$\ny\n=\n\n- x\n$$", "$$\ny\n=\n\n- x\n$$"),
    "signs in formulas": ("A $x_{a}[^b]$, $5 and $6.", "A $x_{a}[^b]$, $5 and $6."),
}
IN_MDX = {
    "tab items": (
        '<Tabs>\n<TabItem value="l" label="Linux">\n\nText.\n\n</TabItem>\n</Tabs>',
        "**Linux**\n\nText.",
    ),
    "tab items on one line": (
        '<Tabs><TabItem value="l" label="Linux">One.</TabItem><TabItem value="m" label="macOS">Two.</TabItem></Tabs>',
        "**Linux**\n\nOne.\n\n**macOS**\n\nTwo.",
    ),
    "each tab item on its line": (
        '<Tabs>\n  <TabItem label="Linux">One.</TabItem>\n  <TabItem label="macOS">Two.</TabItem>\n</Tabs>',
        "**Linux**\n\nOne.\n\n**macOS**\n\nTwo.",
    ),
    "tabs in a row": (
        "<Tabs items={['npm', 'yarn']}>\n<Tabs.Tab>\na\n</Tabs.Tab>\n<Tabs.Tab>\nb\n</Tabs.Tab>\n</Tabs>",
        "**npm**\n\na\n\n**yarn**\n\nb",
    ),
    "card": ('<Card title="Fast" icon="x">\n  It is.\n</Card>', "**Fast**\n\nIt is."),
    "cards of many lines": (
        '<CardGrid>\n\t<LinkCard\n\t\thref="https://x.org"\n\t\ttitle="One"\n\t\tdescription="It is."\n\t/>\n</CardGrid>',
        "**One** It is.",
    ),
    "expressions": ("A {value} and {'<'}this{' '}one.\n\n{toc}\n\nText.", "A {value} and <this one.\n\nText."),
    "callout": ('<Callout type="info">Text.</Callout>', "**Info**\n\nText."),
    "named by itself": ("<Tip>\nText.\n</Tip>", "**Tip**\n\nText."),
    "branches": ("{#if fw === 'pt'}\nOne.\n{:else}\nTwo.\n{/if}", "One.\n\nTwo."),
    "a program": ("export function A() {\n  return `\n~~~\n${x}`\n}\n\n:::note\nText.\n:::", "**Note**\n\nText."),
    "MDX as code": ("```mdx-code-block\n<Box>\n```\n\nText.", "Text."),
}


@pytest.mark.parametrize("kind", SHOWN)
def test_markup_reads_as_its_readers_see_it(tmp_path: Path, kind: str) -> None:
    text, shown = SHOWN[kind]
    lesson, chunks = split(tmp_path, text)
    assert [chunk.text for chunk in chunks] == [shown]
    check_lesson(lesson, chunks)


def test_the_words_of_a_figure_may_stand_between_dashes(tmp_path: Path) -> None:
    text = "```{figure} a.png\n---\nname: f\nalt: A fish\nwidth: 2\n---\nThe caption.\n```\n"
    lesson, chunks = split(tmp_path, text)
    assert [chunk.text for chunk in chunks] == ["![A fish](a.png)\n\nThe caption."]
    check_pieces(lesson, chunks)


@pytest.mark.parametrize("suffix", ["md", "mdx"])
def test_what_is_indented_in_a_component_is_no_code(tmp_path: Path, suffix: str) -> None:
    """A chunk is plain Markdown: the answer and the page read the blocks that the chunker read, and need not be told."""
    text = (
        "import Tabs from 'tabs'\n\n<Tabs>\n  <TabItem label=\"Linux\">\n      Run it at night.\n\n"
        '      - once\n        - or twice\n  </TabItem>\n  <TabItem label="Mac">\n    ```sh\n    run\n      --now\n    ```\n'
        "  </TabItem>\n</Tabs>\n"
    )
    lesson, chunks = split(tmp_path, text, f"m/01-a.{suffix}")
    assert [chunk.text for chunk in chunks] == [
        "**Linux**\n\nRun it at night.\n\n- once\n  - or twice\n\n**Mac**\n\n```sh\nrun\n  --now\n```"
    ]
    check_lesson(lesson, chunks)


@pytest.mark.parametrize("kind", IN_MDX)
def test_components_read_as_their_titles_and_their_prose(tmp_path: Path, kind: str) -> None:
    text, shown = IN_MDX[kind]
    lesson, chunks = split(tmp_path, text, "m/01-a.mdx")
    assert [chunk.text for chunk in chunks] == [shown]
    check_lesson(lesson, chunks)


def test_a_listing_too_large_in_a_tab_is_opened_again_without_its_indent(tmp_path: Path) -> None:
    code = "\n".join(f"    value_{n} = compute({n}) + other({n})" for n in range(200))
    lesson, chunks = split(tmp_path, f'=== "Python"\n\n    ```python\n{code}\n    ```\n')
    check_lesson(lesson, chunks)
    assert len(chunks) > 3
    assert all(chunk.text.startswith("```python\nvalue_") for chunk in chunks[1:])


def test_an_anchor_of_the_authors_own_is_kept_though_it_is_not_shown(tmp_path: Path) -> None:
    _, chunks = split(
        tmp_path,
        f'## One {{#first .big}}\n\n{words(120)}\n\n## Two {{: #second }}\n\n{words(120)}\n\n## Three {{ id="third" }}\n\n{words(120)}',
    )
    assert [chunk.url.partition("#")[2] for chunk in chunks] == ["first", "second", "third"]
    assert [chunk.section_title for chunk in chunks] == ["One", "Two", "Three"]


def test_references_without_words_read_as_titles(tmp_path: Path) -> None:
    pages = {
        "a.md": "# First\n\nSee [](b.md), {doc}`b`, {ref}`deep`, [](#own) and [](gone.md).\n\n## Own part {#own}\n\nText.",
        "b.md": "# Second page\n\n(deep)=\n## Deep part\n\nText.",
    }
    chunks = split_lesson(read_all(write_book(tmp_path, pages))[0]["a.md"])
    assert "See [Second page](b.md), Second page, Deep part, [Own part](#own) and ." in chunks[0].text


def test_a_formula_is_never_cut(tmp_path: Path) -> None:
    formulas = [f"$$a_{n} = \\text{{mass. Of}} \\cdot {n}. B$$" for n in range(60)]
    lesson, chunks = split(tmp_path, " ".join(f"It is so. {one}" for one in formulas))
    check_lesson(lesson, chunks)
    assert len(chunks) > 1
    assert all(any(one in chunk.text for chunk in chunks) for one in formulas)
    assert all(chunk.text.count("$$") % 2 == 0 for chunk in chunks)


def test_each_section_of_a_merged_chunk_has_its_name_and_address(tmp_path: Path) -> None:
    text = "# Page\n\nIntro.\n\n## Arms\n\nArms lift.\n\n## Legs\n\nLegs walk."
    lesson, [chunk] = split(tmp_path, text)
    named = [(one.section_title, one.url.partition("#")[2]) for one in chunk.sections]
    assert named == [(None, ""), ("Arms", "arms"), ("Legs", "legs")]
    for word, title in (("Intro", None), ("Arms lift", "Arms"), ("Legs walk", "Legs")):
        there = chunk.at(lesson.text.index(word))
        assert there.section_title == title and there.id == chunk.id
