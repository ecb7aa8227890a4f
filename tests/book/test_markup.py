"""The generators' own markup, read as the readers of the site see it; every word of it at its own place in the file."""

from __future__ import annotations

from pathlib import Path

import pytest
from book_checks import check_lesson, check_pieces
from shelf import read_all, split, words, write_book

from askbook.book.chunker import split_lesson

SHOWN = {
    # MkDocs and Material
    "note": ('!!! note "Take care"\n    One.\n\n    Two.\n\nAfter.', "> **Take care**\n>\n> One.\n>\n> Two.\n\nAfter."),
    "no title": ("!!! warning\n    Hot.", "> **Warning**\n>\n> Hot."),
    "an empty title": ('!!! note ""\n    Bare.', "> Bare."),
    "a kind of one's own": ("??? api\n    `f(x)` adds.", "> **Api**\n>\n> `f(x)` adds."),
    "opened": ('???+ tip "Try"\n    It.', "> **Try**\n>\n> It."),
    "beside": ("!!! info inline end\n    Aside.", "> **Info**\n>\n> Aside."),
    "a list in it": ("!!! note\n\n    - one\n        - two", "> **Note**\n>\n> - one\n>     - two"),
    "a listing in it": ("!!! note\n\n    ```py\n    x = 1\n    ```", "> **Note**\n>\n> ```py\n> x = 1\n> ```"),
    "in a list": ("- one\n\n    !!! note\n        in it\n- two", "- one\n\n    > **Note**\n    >\n    > in it\n- two"),
    "tabs": (
        '=== "Python"\n\n    ```py\n    x\n    ```\n\n=== "Rust"\n\n    Text.',
        "**Python**\n\n```py\nx\n```\n\n**Rust**\n\nText.",
    ),
    "a note in a tab": (
        '=== "A"\n\n    !!! tip\n        Deep.\n\n    Less.',
        "**A**\n\n> **Tip**\n>\n> Deep.\n\nLess.",
    ),
    "by indent it is code": ("Text.\n\n    !!! note\n        x <b>y</b>", "Text.\n\n    !!! note\n        x <b>y</b>"),
    "a formula without its delimiters": ("Sum \\sum_{i=1}^{n=3} v.", "Sum \\sum_{i=1}^{n=3} v."),
    "attributes in single quotes": (
        "## Blocked {#own data-toc-label='In short'}\n\nText.\n\n[Go](x.md){target='_blank'} now.",
        "## Blocked\n\nText.\n\n[Go](x.md) now.",
    ),
    "attributes": ("[Go](x.md){ .md-button } now.\n{: .lead }", "[Go](x.md) now."),
    "keys, marks, icons": ("Press ++ctrl+c++, ==now==, :material-check: done.", "Press ctrl+c, now, done."),
    "abbreviation": ("*[HTML]: Hyper Text", "HTML: Hyper Text"),
    "definition": ("Term\n:   First.\n\n    Second.", "Term\n\nFirst.\n\nSecond."),
    "definitions behind one blank": (
        "Term\n: First *one*.\n\nTwo\n:  Second.\n   It goes on.\n\n| a |\n|---|\n| b |\n\n: A caption",
        "Term\n\nFirst *one*.\n\nTwo\n\nSecond.\n   It goes on.\n\n| a |\n|---|\n| b |\n\n: A caption",
    ),
    "a note that opens a definition": (
        "Term\n:   !!! note\n\n        In it.\n\n    More.",
        "Term\n\n> **Note**\n>\n> In it.\n\nMore.",
    ),
    "a listing that opens a definition": (
        "Term\n\n:   ```py\n    x\n    ```\n\nAfter.",
        "Term\n\n```py\nx\n```\n\nAfter.",
    ),
    "two definitions": ("- Term\n    :   One.\n    :   Two.", "- Term\n    \n    One.\n    \n    Two."),
    "definition below a blank line": (
        '<!-- md:option x -->\n\n:   First.\n\n    === "A"\n\n        Text.',
        "First.\n\n**A**\n\nText.",
    ),
    "definition behind a tab, below a blank line": ("Impeller\n\n:\tThe wheel.", "Impeller\n\nThe wheel."),
    "changes": (
        "It is {--gone--}, {++new++}, {~~old~>fresh~~}, {==marked==}{>>a remark<<}.",
        "It is ~~gone~~, new, ~~old~~ fresh, marked (a remark).",
    ),
    "changed blocks": ("{==\n\nText.\n\n==}", "Text."),
    "API page": ("::: package.module\n    options:\n      a: 1\n\nText.", "`package.module`\n\nText."),
    # Docusaurus, VitePress, Starlight, Quarto
    "colons": (":::tip[My title]\n\nText.\n\n:::", "> **My title**\n>\n> Text."),
    "colons, title behind": ("::: info Read this {open}\nText.\n:::", "> **Read this**\n>\n> Text."),
    "colons, no title": (":::danger\nText.\n:::", "> **Danger**\n>\n> Text."),
    "details without a kind": (
        '??? "Raw data"\n\n    Text.\n\n1. One\n\n    ???+ "Open"\n\n        In.',
        "> **Raw data**\n>\n> Text.\n\n1. One\n\n    > **Open**\n    >\n    > In.",
    ),
    "slashes": ("/// warning | Hot surface\n\nText.\n\n///\n\nMore.", "> **Hot surface**\n>\n> Text.\n\nMore."),
    "slashes with options": ("/// details | Read on\n    open: True\n\nText.\n\n///", "> **Read on**\n>\n> Text."),
    "slashes, a tab": ("/// tab | Python\n\n```py\nx = 1\n```\n\n///", "**Python**\n\n```py\nx = 1\n```"),
    "slashes of a kind of one's own": (
        "/// version-added | v2.11\nSince then.\n///\n\n/// api-note\nText.\n///",
        "> **Version added v2.11**\n>\n> Since then.\n\n> **Api note**\n>\n> Text.",
    ),
    "slashes that are text": ("/// no block\n\nText.", "/// no block\n\nText."),
    "colons in colons": (
        "::::note\n:::tip\nIn.\n:::\nOut.\n::::",
        "> **Note**\n>\n> > **Tip**\n> >\n> > In.\n>\n> Out.",
    ),
    "callout": ('::: {.callout-note title="Said"}\nText.\n:::', "> **Said**\n>\n> Text."),
    "code group": ("::: code-group\n\n```sh [npm]\nnpm i\n```\n\n:::", "**npm**\n\n```sh\nnpm i\n```"),
    "title of a listing": ('```js title="a.js" {1,3} showLineNumbers\nx\n```', "**a.js**\n\n```js\nx\n```"),
    "a listing in a listing": (
        '```\n=== "A"\n\n    ``` py\n    x\n    ```\n\n<b>y</b>\n```\n\n!!! note\n    Text.',
        '```\n=== "A"\n\n    ``` py\n    x\n    ```\n\n<b>y</b>\n```\n\n> **Note**\n>\n> Text.',
    ),
    "title among other settings": ('```js tab title="a.js"\nx\n```', "**a.js**\n\n```js\nx\n```"),
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
    "directive": ("```{note} Title\n:class: x\nText.\n```", "> **Title**\n>\n> Text."),
    "directive of colons": (":::{admonition} Own\n:class: tip\nText.\n:::", "> **Own**\n>\n> Text."),
    "version": ("```{versionadded} 1.2\nNew.\n```", "> **New in version 1.2**\n>\n> New."),
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
    "formulas with labels": (
        "$$\na\n$$ (eq:x)\n\n```{math}\n:label: y\nb\n```\n\nSee {eq}`y`, {eq}`eq:x` and {eq}`gone`.",
        "$$\na \\tag{1}\n$$\n\n$$\nb \\tag{2}\n$$\n\nSee (2), (1) and gone.",
    ),
    "a formula that counts by itself": (
        "$$\n\\begin{align}\na\n\\end{align}\n$$ (x)\n\nSee {eq}`x`.",
        "$$\n\\begin{align}\na\n\\end{align}\n$$\n\nSee (1).",
    ),
    "numbers of figures": (
        "See {numref}`f`, {numref}`Fig. %s <f>`, {numref}`t`, {numref}`Table {number} <t>`, {numref}`no` and "
        "{numref}`Fig. %s <no>`.\n\n"
        "```{figure} a.png\n:name: f\n\nA fish in {ref}`the sea <sea>`.\n```\n\n:::{table} Of prices\n"
        ":name: t\n| a |\n|---|\n:::",
        "See Figure “A fish in the sea”, Fig. “A fish in the sea”, Table “Of prices”, "
        "Table “Of prices”, no and Fig..\n\n"
        "![](a.png)\n\nA fish in the sea.\n\n**Of prices**\n\n| a |\n|---|",
    ),
    "the number of a figure without words": (
        "See {numref}`<f>`.\n\n```{figure} a.png\n:name: f\n\nA fish.\n```",
        "See Figure “A fish”.\n\n![](a.png)\n\nA fish.",
    ),
    "a figure that a program draws": (":::{glue:figure} bars\n:name: b\n\nThe caption.\n:::", "The caption."),
    "cells that are not shown": (
        "```{code-cell} ipython3\n:tags: [remove-cell]\nx\n```\n\n```{code-cell}\n---\n"
        "tags: [remove-input]\n---\ny\n```\n\n"
        "```{code-cell} ipython3\n:tags: [hide-input]\nz\n```",
        "```ipython3\nz\n```",
    ),
    "a cell whose caption and name are a tag's": (
        "```{code-cell} python\n:caption: What remove-input does\nimportant = 42\n```\n\n"
        "```{code-cell} python\n---\ntags: [no-remove-cell-here]\nname: remove-cell\n---\nx\n```",
        "**What remove-input does**\n\n```python\nimportant = 42\n```\n\n```python\nx\n```",
    ),
    "objects in the language of Sphinx": (
        (
            "## {class}`~app.User`\n\n```{eval-rst}\n.. autoclass:: User\n   :members:\n\n   .. attribute:: name\n\n"
            "      Its name, a :class:`str`.\n```\n\nAfter."
        ),
        "## `User`\n\n`name`\n\nIts name, a `str`.\n\nAfter.",
    ),
    "another language in a directive": ("```{eval-rst}\n.. plot:: x\n\n   y\n```", "```\n.. plot:: x\n\n   y\n```"),
    "comments of MyST": ("Say {kbd}`A`.\n\n%no\n%$$\n%b\n%$$\n\nText.", "Say A.\n\nText."),
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
    "words of an index": (
        "## {index}`Scales <single: Scales>` and {index}`weights`\n\nA {index}`beam <pair: beam; arm>` is level.",
        "## Scales and weights\n\nA beam is level.",
    ),
    "roles of code keep every sign": (
        "{file}`.gitignore` {file}`~/.ssh/config` {literal}`!important` {envvar}`.env` {code}`.hidden { color: red }` "
        "{command}`~run` {option}`!x` {samp}`cat <file>` {option}`--all <ls.all>`",
        "`.gitignore` `~/.ssh/config` `!important` `.env` `.hidden { color: red }` `~run` `!x` `cat <file>` `--all`",
    ),
    "roles of objects": (
        "{class}`~app.User` {py:func}`!run` {meth}`~a.save` {data}`x <app.x>` :class:`~app.User` :term:`.env`",
        "`User` `run` `save` `x` `User` `.env`",
    ),
    "label": ("(here)=\n## Part\n\nText.", "## Part\n\nText."),
    "math directive": ("```{math}\n:label: e\na = b\n```", "$$\na = b \\tag{1}\n$$"),
    # GitHub, Hugo, GitBook, d2l
    "alert": ("> [!NOTE]\n> Text.", "> **Note**\n>\n> Text."),
    "alert with a title": ("> [!tip]- Look\n> Text.", "> **Look**\n>\n> Text."),
    "shortcode": ('{{< alert title="Heads up" >}}\nText.\n{{< /alert >}}', "> **Heads up**\n>\n> Text."),
    "shortcode of Markdown": ("{{% pageinfo %}}\nText.\n{{% /pageinfo %}}", "Text."),
    "shortcode among words": ('Run {{< glossary_tooltip text="pods" term_id="pod" >}} here.', "Run pods here."),
    "shortcode shown": ("Write `{{< a >}}` or {{</* b */>}}.", "Write `{{< a >}}` or {{< b >}}."),
    "Docsy's tabs are code": (
        (
            '{{< tabpane >}}\n{{< tab header="File:" disabled=true />}}\n{{< tab header="x.toml" lang="toml" >}}\n'
            "[[a]]\n{{< /tab >}}\n{{< /tabpane >}}"
        ),
        "**File:**\n\n**x.toml**\n\n```toml\n[[a]]\n```",
    ),
    "a tab and its pane that end on one line": (
        '{{< tabpane >}}\n{{< tab "Bash" >}}\nls\n{{< /tab >}}{{< /tabpane >}}\n\nText.',
        "**Bash**\n\n```\nls\n```\n\nText.",
    ),
    "a tab that ends with its pane": (
        '1. One\n\n    {{< tabpane >}}\n    {{< tab header="A" lang="sh" >}}\n    ls\n{{< /tabpane >}}\n\nText.',
        "1. One\n\n    **A**\n\n    ```sh\n    ls\n    ```\n\nText.",
    ),
    "a definition with a shortcode": (
        (
            "See [it][x], [b][] and [faq].\n\n[x]: https://x.example/{{< param a >}}/y\n[b]: c.md\n"
            "[FAQ]: {{< relref faq >}}"
        ),
        "See [it](#), [b](c.md) and [faq](faq).",
    ),
    "notice": ('{{% notice tip "Take care" %}}\nText.\n{{% /notice %}}', "> **Take care**\n>\n> Text."),
    "notice without a title": ("{{% notice warning %}}\nText.\n{{% /notice %}}", "> **Warning**\n>\n> Text."),
    "hint of hugo-book": ("{{< hint info >}}\nText.\n{{< /hint >}}", "> **Info**\n>\n> Text."),
    "tabs of Hugo": (
        (
            '{{< tabs "id" >}}\n{{< tab "macOS" >}}\n1\n{{< /tab >}}\n{{< tab name="Linux" >}}\n2\n'
            "{{< /tab >}}\n{{< /tabs >}}"
        ),
        "**macOS**\n\n1\n\n**Linux**\n\n2",
    ),
    "tabs of Hugo on one line": (
        '{{< tabs >}}{{< tab "A" >}}One.{{< /tab >}}{{< tab "B" >}}Two.{{< /tab >}}{{< /tabs >}}\n\nAfter.',
        "**A**\n\nOne.\n\n**B**\n\nTwo.\n\nAfter.",
    ),
    "each tab of Hugo on its line": (
        '{{< tabs >}}\n{{% tab name="A" %}}One.{{% /tab %}}\n{{% tab name="B" %}}Two.{{% /tab %}}\n{{< /tabs >}}',
        "**A**\n\nOne.\n\n**B**\n\nTwo.",
    ),
    "a listing that ends with its tab": (
        (
            '{{< tabpane text=true >}}\n{{% tab header="A" %}}\n```sh\nls\n{{% /tab %}}\n{{< /tabpane >}}\n\n'
            "## Below\n\nText."
        ),
        "**A**\n\n```sh\nls\n```\n\n## Below\n\nText.",
    ),
    "tabs of Hugo in a listing": (
        '```md\n{{< tab "A" >}}\nls\n{{< /tab >}}\n```\n\nText.',
        '```md\n{{< tab "A" >}}\nls\n{{< /tab >}}\n```\n\nText.',
    ),
    "details of Hugo": ('{{% expand "Read on" %}}Text.{{% /expand %}}', "**Read on**\n\nText."),
    "hint": ('{% hint style="info" %}\nText.\n{% endhint %}', "> **Info**\n>\n> Text."),
    "tab of GitBook": ('{% tabs %}\n{% tab title="One" %}\n1\n{% endtab %}\n{% endtabs %}', "**One**\n\n1"),
    "tab of d2l": (":begin_tab:`mxnet`\nText.\n:end_tab:", "**mxnet**\n\nText."),
    "footnote": ("Said[^1].\n\n[^1]: A note.\n\n    More.", "Said.\n\nFootnote 1: A note.\n\nMore."),
    "wiki links": ("See [[Page]] and [[Page|words]].", "See Page and words."),
    "details": ("<details>\n<summary>More</summary>\n\nIn.\n\n</details>", "**More**\n\nIn."),
    "picture": ('<p align="center"><img src="x.png" alt="The robot"></p>', "![The robot](x.png)"),
    "picture without words": ('See <img width=3 src="x.png" /> it.', "See ![](x.png) it."),
    "picture from elsewhere": ('<p><img src="https://a.example/x.png" alt="The robot"></p>', "The robot"),
    "a power": ("It has 10<sup>6</sup> ohm.", "It has 10^6 ohm."),
    "words side by side": ("Press <kbd>A</kbd> <kbd>B</kbd> or <b>1</b> <b>2</b>.", "Press A B or 1 2."),
    "struck out": ("Never <del>do</del> this.", "Never ~~do~~ this."),
    "no footnote": ("The class [^abc] and a[^b]c.", "The class [^abc] and a[^b]c."),
    "no marks": ("a==b==c, x[[0]] and f([[5]])", "a==b==c, x[[0]] and f([[5]])"),
    "a tag of two lines": ('Say <code\nclass="x"># T</code> now.', "Say `# T` now."),
    "a row with an odd sign of code": (
        "| a | b |\n|---|---|\n| one ` | x |\n| `c`<br />`d` | y |",
        "| a | b |\n|---|---|\n| one ` | x |\n| `c` `d` | y |",
    ),
    "HTML code": ("Type <code>a_b</code> now.", "Type `a_b` now."),
    "no tags": ("`Vec<T>` is Vec<T>, <path> is a path.", "`Vec<T>` is Vec<T>, <path> is a path."),
    "a script of one tag": ("<script\n  src='x.js'\n  label='Say'\n/>\n\nText.", "Text."),
    "script": ("<script setup>\nlet x = 1\n\n</script>\n\nText.", "Text."),
    # frames
    "two admonitions": (
        "!!! note\n    One.\n\n!!! tip\n    Two.",
        "> **Note**\n>\n> One.\n\n> **Tip**\n>\n> Two.",
    ),
    "words right below an admonition": ("!!! note\n    One.\nAfter.", "> **Note**\n>\n> One.\n\nAfter."),
    "words right below its end": (":::note\nOne.\n:::\nAfter.", "> **Note**\n>\n> One.\n\nAfter."),
    "an admonition right below an item's words": (
        "- one\n  :::note\n  in it\n  :::\n- two",
        "- one\n  \n  > **Note**\n  >\n  > in it\n\n- two",
    ),
    "a directive right below an item's words": (
        "1. one\n   ```{tab-item} Mac\n   in it\n   ```\n2. two",
        "1. one\n   \n   **Mac**\n\n   in it\n\n2. two",
    ),
    "an admonition that opens an item": ("- :::tip\n  in it\n  :::", "- > **Tip**\n  >\n  > in it"),
    "tabs in an admonition": (
        '!!! note\n    === "A"\n\n        One.\n\n    Two.',
        "> **Note**\n>\n> **A**\n>\n> One.\n>\n> Two.",
    ),
    "a formula in an admonition": (
        ":::note\n$$\na\n\nb\n$$\nIt is.\n:::",
        "> **Note**\n>\n> $$\n> a\n> \n> b\n> $$\n> It is.",
    ),
    "a listing with a title in an admonition": (
        ":::tip `run`\n- So:\n\n  ```js [a.js]\n  x\n  ```\n:::",
        "> **`run`**\n>\n> - So:\n>\n>   **a.js**\n>\n>   ```js\n>   x\n>   ```",
    ),
    "a comment in an admonition": (
        ":::note\nOne.\n<!-- no -->\nTwo.\n:::\n\nAfter.",
        "> **Note**\n>\n> One.\n> Two.\n\nAfter.",
    ),
    # what stood wrong
    "a figure of a path with spaces": (
        "```{figure} my pictures/a (1).png\n:alt: A fish\n```",
        "![A fish](<my pictures/a (1).png>)",
    ),
    "a picture of a path with spaces": ('<p><img src="a b.png" alt="Fish"></p>', "![Fish](<a b.png>)"),
    "a listing of HTML": (
        '## A\n\n<pre><code class="language-hurl"># Import\nGET <b>/x</b>\n\n# Two &lt;3\n</code></pre>\n\nText.',
        "## A\n\n```hurl\n# Import\nGET /x\n\n# Two <3\n```\n\nText.",
    ),
    "a listing of HTML in a frame of its theme": (
        '<div class="highlight"><pre>\n# One\n`a` ```b```\n\n# Two</pre></div>\n\n## A\n\nText.',
        "````\n# One\n`a` ```b```\n\n# Two\n````\n\n## A\n\nText.",
    ),
    "words in signs in a listing of HTML": (
        "<pre>\nrun <path> of Vec<T> <b>x</b>\n</pre>\n\nText.",
        "```\nrun <path> of Vec<T> x\n```\n\nText.",
    ),
    "tags behind a listing of HTML": (
        "<table><tr><td><pre>\n# a\n</pre></td><td>other</td></tr></table>\n\nText.",
        "```\n# a\n```\n other\n\nText.",
    ),
    "a form in HTML": ("<textarea rows=3>\n# One\n\n- two\n</textarea>", "```\n# One\n\n- two\n```"),
    "a listing of HTML in a list": (
        "- one\n\n  <pre>\n  # a\n  </pre>\n- two",
        "- one\n\n  ```\n  # a\n  ```\n- two",
    ),
    "words indented in HTML": (
        '<p align="center">\n    <em>Build great things.</em>\n</p>\n\nText.',
        "Build great things.\n\nText.",
    ),
    "tags below a blank line in HTML": (
        '<div>\n    <p>One</p>\n\n    <a href="x.md">\n        Two\n    </a>\n\n</div>\n\n    x = 1',
        "One\n\nTwo\n\n    x = 1",
    ),
    "HTML that its author forgot to close": ("<details>\n\nText.\n\nMore.", "Text.\n\nMore."),
    "code below HTML": ("<div>\n\n    x = 1\n\n</div>", "x = 1"),
    "a listing of tags in an open element": (
        "<details>\n<summary>Show the markup</summary>\n\nWrite this in your page:\n\n"
        '    <div class="card">\n      <button disabled>Send</button>\n    </div>\n\nand save it.\n\n</details>',
        "**Show the markup**\n\nWrite this in your page:\n\n"
        '    <div class="card">\n      <button disabled>Send</button>\n    </div>\n\nand save it.',
    ),
    "a listing of tags right below a summary": (
        (
            "<details><summary>More</summary>\n\n    <b>x</b>\n\n</details>\n\n<details>\n<summary>Less</summary>\n\n"
            "    <i>y</i>\n\n</details>"
        ),
        "**More**\n\n    <b>x</b>\n\n**Less**\n\n    <i>y</i>",
    ),
    "a listing of tags in an element whose content is indented": (
        "<details>\n  <summary>More</summary>\n\n  Write:\n\n      <b>x</b>\n\n</details>",
        "**More**\n\nWrite:\n\n    <b>x</b>",
    ),
    "a listing of tags below a paragraph without an end": (
        'See:\n\n<p>\n\n    <video src="a.mp4">\n      <track src="b.vtt">\n    </video>\n\n## Two\n\nMore.\n\n</p>',
        'See:\n\n    <video src="a.mp4">\n      <track src="b.vtt">\n    </video>\n\n## Two\n\nMore.',
    ),
    "a heading of HTML on lines of its own": ('<h1 align="center">\nHTTPX\n</h1>\n\nText.', "**HTTPX**\n\nText."),
    "a heading without words": ("#\n\n<style>\n.x { y: z }\n</style>\n\nText.", "Text."),
    "headings of a line break": ("### <br>\n\nOne.\n\n## <br/> <br />\n\nTwo.", "One.\n\nTwo."),
    "a script in a picture": (
        "See <svg width='9'><script>document.title='HACKED'</script><style>\n.a {}</style><g>words</g></svg> now.\n\n"
        "A <script src='x.js'>\n\nand more </script>.",
        "See words now.\n\nA\n\nand more .",
    ),
    "a heading that a hook writes": ("## <!-- md:setting config.enabled -->\n\nText.", "## config.enabled\n\nText."),
    "links by reference": (
        "See [the site][Site], [Site][], [site] and [![A badge][badge]][site], not [x][y] nor [z].\n\n"
        '[site]: https://x.example/a "Title"\n[badge]:\n  b.png',
        "See [the site](https://x.example/a), [Site](https://x.example/a), [site](https://x.example/a) and "
        "[![A badge](b.png)](https://x.example/a), not [x][y] nor [z].",
    ),
    "a link whose definition a shortcode makes": ("See [it][x].\n\n[x]: <{{% param a %}}/b>", "See [it](#)."),
    "code among the words of a link": (
        "Use [`f`] and [`g()`][g].\n\n[`f`]: a.md\n[g]: b.md",
        "Use [`f`](a.md) and [`g()`](b.md).",
    ),
    "objects of a program": (
        "Use [`zarr.open`][] and [the error][zarr.errors.Gone], not a[i][j.k] nor [x][].",
        "Use `zarr.open` and the error, not a[i][j.k] nor [x][].",
    ),
    "a definition that is prose": ("Said:\n[x]: y\n\nSee [x].", "Said:\n[x]: y\n\nSee [x]."),
    "numbered remarks": ("```py\nx = 1 # (1)!\n```\n\n1.  One.", "```py\nx = 1 # (1)\n```\n\n1.  One."),
    # mdBook
    "hidden lines": ("```rust\n# use a;\nfn f() {}\n#[test]\n```", "```rust\nfn f() {}\n#[test]\n```"),
    "a program of the book's own": ("Before.\n\n{{%session outline}}\n\nAfter.", "Before.\n\nAfter."),
    "admonish": (
        '```admonish warning title="Take care"\nIt is *hot*.\n```\n\n```admonish\nPlain.\n```',
        "> **Take care**\n>\n> It is *hot*.\n\n> **Note**\n>\n> Plain.",
    ),
    "admonish with a listing": (
        '~~~admonish tip.big "Own"\n```py\nx\n```\n~~~\n\n```admonish faq collapsible=true\nText.\n```\n\nAfter.',
        "> **Own**\n>\n> ```py\n> x\n> ```\n\n> **Faq**\n>\n> Text.\n\nAfter.",
    ),
    "admonish with classes": (
        '```admonish note class="custom one" title=\'Of "words"\'\nText.\n```\n\n'
        '```admonish id="x" title="Two \\"words\\""\nText.\n```',
        '> **Of "words"**\n>\n> Text.\n\n> **Two \\"words\\"**\n>\n> Text.',
    ),
    "admonish without a title": ('```admonish info title=""\nText.\n```', "> Text."),
    "a numbered listing": (
        '<Listing number="5-8" file-name="src/main.rs" caption="Adds">\n\n```rust\nx\n```\n\n</Listing>',
        "**Listing 5-8** src/main.rs Adds\n\n```rust\nx\n```",
    ),
    "title of the page": ("{{#title Other}}\n\nText.", "Text."),
    # formulas
    "a formula in a quotation": (
        "> See\n>\n> $$\n  a\n $$\n>\n> {kbd}`y` more.\n\n## A\n\n$$\nb\n$$\n\n{kbd}`x` ends.",
        "> See\n>\n> $$\n  a\n $$\n>\n> y more.\n\n## A\n\n$$\nb\n$$\n\nx ends.",
    ),
    "a formula that nothing closes": (
        "$$\na\n\n## A\n\n{kbd}`x` ends.\n\n$$\nb\n$$",
        "$$\na\n\n## A\n\nx ends.\n\n$$\nb\n$$",
    ),
    "formula of lines": ("$$\ny\n=\n\n- x\n$$", "$$\ny\n=\n\n- x\n$$"),
    "signs in formulas": ("A $x_{a}[^b]$, $5 and $6.", "A $x_{a}[^b]$, $5 and $6."),
}
IN_MDX = {
    "tab items": (
        '<Tabs>\n<TabItem value="l" label="Linux">\n\nText.\n\n</TabItem>\n</Tabs>',
        "**Linux**\n\nText.",
    ),
    "imports on one line": (
        "import Tabs from '@theme/Tabs'; import T from '@theme/T'; import {a} from 'b'\n\nText.",
        "Text.",
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
        (
            '<CardGrid>\n\t<LinkCard\n\t\thref="https://x.org"\n\t\ttitle="One"\n'
            '\t\tdescription="It is."\n\t/>\n</CardGrid>'
        ),
        "**One** It is.",
    ),
    "expressions": ("A {value} and {'<'}this{' '}one.\n\n{toc}\n\nText.", "A {value} and <this one.\n\nText."),
    "callout": ('<Callout type="info">Text.</Callout>', "**Info**\n\nText."),
    "callout of no kind": ("<Callout>\nText.\n</Callout>", "> **Note**\n>\n> Text."),
    "tags that a program repeats": (
        "Of {x} (so).\n\n<Cards>\n  {Object.keys(all).map(([key]) => (\n"
        '    <Card key={key} title="One" />\n  ))}\n</Cards>\n\n'
        "{ok && (<b>Text.</b>)}",
        "Of {x} (so).\n\n**One**\n\nText.",
    ),
    "callout of many lines": (
        '<Callout type="warning">\n  One.\n\n  - two\n</Callout>\nAfter.',
        "> **Warning**\n>\n> One.\n>\n> - two\n\nAfter.",
    ),
    "a note in a step": (
        "<Steps>\n  <Step>\n    Do.\n    <Note>\n      Mind.\n    </Note>\n  </Step>\n</Steps>",
        "Do.\n> **Note**\n>\n> Mind.",
    ),
    "named by itself": ("<Tip>\nText.\n</Tip>", "> **Tip**\n>\n> Text."),
    "a condition": ("Say {flag && <b>this</b>} now.\n\nLines (of\n) prose.", "Say this now.\n\nLines (of\n) prose."),
    "a condition on lines": ("{flag && (\n  <p>Shown (so\n  ) it is.</p>\n)}\n\nText.", "Shown (so\n) it is.\n\nText."),
    "a condition with an else": (
        "{isPro ? (\n  <p>Pro words.</p>\n) : (\n  <p>Free words.</p>\n)}\n\nText.",
        "Pro words.\n\n Free words.\n\nText.",
    ),
    "a condition on one line": ("It is {a ? <b>one: <i>x</i></b> : <b>two</b>}.", "It is one: x two."),
    "an else that shows nothing": ("{a ? <b>One</b> : null}\n\n{b ? (\n  <b>Two</b>\n) : null}", "One\n\nTwo"),
    "conditions in conditions": (
        "{a && (\n  <div>\n    {b ? <b>One</b> : <i>{c}</i>}\n    {d.map((e) => <p>Two</p>)}\n  </div>\n)}\n\nText }.",
        "One {c}\n Two\n\nText }.",
    ),
    "a condition that nothing ends": ("{a && <b>One</b>\n\nText (of\n).", "{a && One\n\nText (of\n)."),
    "branches": ("{#if fw === 'pt'}\nOne.\n{:else}\nTwo.\n{/if}", "One.\n\nTwo."),
    "a program": ("export function A() {\n  return `\n~~~\n${x}`\n}\n\n:::note\nText.\n:::", "> **Note**\n>\n> Text."),
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


@pytest.mark.parametrize(
    "options",
    [
        "---\nname: a\ntags:\n  - x\n  - remove-cell\n---",
        "---\ntags: [x,\n  remove_input]\nname: b\n---",
        ":name: c\n:tags: x, remove-input",
    ],
)
def test_a_cell_is_not_shown_however_its_tags_are_written(tmp_path: Path, options: str) -> None:
    _, chunks = split(tmp_path, f"```{{code-cell}}\n{options}\nx\n```\n\nText.\n")
    assert [chunk.text for chunk in chunks] == ["Text."]


@pytest.mark.parametrize("suffix", ["md", "mdx"])
def test_what_is_indented_in_a_component_is_no_code(tmp_path: Path, suffix: str) -> None:
    """A chunk is plain Markdown: the answer and the page read the blocks that the chunker read, and are not told."""
    text = (
        "import Tabs from 'tabs'\n\n<Tabs>\n  <TabItem label=\"Linux\">\n      Run it at night.\n\n"
        '      - once\n        - or twice\n  </TabItem>\n  <TabItem label="Mac">\n    ```sh\n'
        "    run\n      --now\n    ```\n"
        "  </TabItem>\n</Tabs>\n"
    )
    lesson, chunks = split(tmp_path, text, f"m/01-a.{suffix}")
    assert [chunk.text for chunk in chunks] == [
        "**Linux**\n\nRun it at night.\n\n- once\n  - or twice\n\n**Mac**\n\n```sh\nrun\n  --now\n```"
    ]
    check_lesson(lesson, chunks)


def test_a_component_is_seen_below_a_listing_that_looks_like_one(tmp_path: Path) -> None:
    listing = "```js\nimport a from 'a';\n```"
    seen = f"Text.\n\n{listing}\n\nimport TOC from '@theme/TOC';\n\n<TOC toc={{toc}} />\n\nMore."
    assert [chunk.text for chunk in split(tmp_path / "a", seen)[1]] == [f"Text.\n\n{listing}\n\nMore."]
    called = "```npm run``` starts it.\n\nimport Tabs from '@theme/Tabs';\nexport const z = 3;\n\nMore."
    assert [chunk.text for chunk in split(tmp_path / "c", called)[1]] == ["```npm run``` starts it.\n\nMore."]
    unseen = f"Text.\n\n````md\n{listing}\nimport TOC from '@theme/TOC';\n````\n\n    x = 1"
    assert split(tmp_path / "b", unseen)[1][0].text.endswith("````\n\n    x = 1")


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
        (
            f"## One {{#first .big}}\n\n{words(120)}\n\n## Two {{: #second }}\n\n{words(120)}\n\n"
            f'## Three {{ id="third" }}\n\n{words(120)}'
        ),
    )
    assert [chunk.url.partition("#")[2] for chunk in chunks] == ["first", "second", "third"]
    assert [chunk.section_title for chunk in chunks] == ["One", "Two", "Three"]


def test_a_title_is_without_roles(tmp_path: Path) -> None:
    lesson, _ = split(tmp_path, "# {index}`SciPy <single: SciPy>` or {kbd}`x` and `{kbd}` or `y`\n\nText.")
    assert lesson.title == "SciPy or x and {kbd} or y"


def test_references_without_words_read_as_titles(tmp_path: Path) -> None:
    pages = {
        "a.md": (
            "# First\n\nSee [](b.md), {doc}`b`, {ref}`deep`, [](#own) and [](gone.md).\n\n## Own part {#own}\n\nText."
        ),
        "b.md": "# Second page\n\n(deep)=\n## Deep part\n\nText.",
    }
    chunks = split_lesson(read_all(write_book(tmp_path, pages))[0]["a.md"])
    assert "See [Second page](b.md), Second page, Deep part, [Own part](#own) and ." in chunks[0].text


def test_links_by_reference_lead_there_in_every_chunk(tmp_path: Path) -> None:
    text = f"Read [the guide][guide].\n\n## Two\n\n{words(400)}\n\n## Three\n\nThe end.\n\n[guide]: b.md\n"
    lesson, chunks = split(tmp_path, text)
    check_lesson(lesson, chunks)
    assert len(chunks) > 1
    assert chunks[0].text.startswith("Read [the guide](b.md).")
    assert not any("[guide]:" in chunk.text for chunk in chunks)


def test_frames_have_an_end(tmp_path: Path) -> None:
    """Ten thousand notes in notes are not ten thousand signs before each line."""
    text = "".join(f"{':' * (5_000 - n)}note\n" for n in range(1_000)) + "In.\n"
    _, chunks = split(tmp_path, text)
    assert max(line.count(">") for chunk in chunks for line in chunk.text.split("\n")) == 2


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


def test_what_a_chunk_repeats_is_in_its_own_section_whatever_was_asked_before(tmp_path: Path) -> None:
    text = f"# Page\n\n## Arms\n\n{words(400)}\n\nThe arms rest.\n\n## Legs\n\nLegs walk."
    _, chunks = split(tmp_path, text)
    last = chunks[-1]
    assert last.start < last.sections[0].at
    assert last.at(text.index("Legs walk")).at(last.start).section_title == "Arms"
