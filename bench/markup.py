"""What is left of the generators' markup in a book's chunks, and what is lost of its prose; bench/sites.py shows both.

Patterns of its own, read as text, not those of the readers that are measured.
"""

from __future__ import annotations

import re

from markdown_it import MarkdownIt

from askbook.domain import Chunk, Lesson

RAW = {
    "admonition": (
        r"^[ \t>]*(?:!!!|/{3,})[ \t]+\w|^[ \t>]*\?\?\?\+?[ \t]+[\w\"]|^[ \t>]*:{3,}"
        r"|\[!(?:NOTE|TIP|WARNING|CAUTION|IMPORTANT)\]"
    ),
    "tab": r"^[ \t]*===[!+]?[ \t]+\"|:(?:begin|end)_tab:|</?Tabs?\b|</?TabItem\b",
    "directive": r"^[ \t>]*(?:`{3,}|~{3,})\{\w|^\([\w:.-]+\)=[ \t]*$",
    "role": r"\{[\w:]+\}`[^`\n]+`",
    "shortcode": r"\{\{[<%]|\{%[^%]*%\}",
    "include": r"\{\{#\w|-+8<-+|^<<<[ \t]|@include:|\{\*[ \t]+\S+[^*]*\*\}|\{!>?[ \t]*[\w./-]+[ \t]*!\}",
    "critic": r"\{(?:--|\+\+|~~|==|>>)(?=[^\s{}-])",
    "attributes": r"\{:[^{}\n]*\}|(?<=[)\]*·])\{[ \t]*[.#][\w-]+|^#+ .*\{#[\w-]+\}[ \t]*$",
    "footnote": r"\[\^[^\]\s]+\]",
    "wiki link": r"(?<!!)\[\[[^\[\]\n]+\]\](?!\()",
    # `Promise<App>` and `\<App>` are words.
    "tag": (
        r"(?<!\\)</?[A-Z][\w.]*[ \t/\n]|(?<![\w\\])</?[A-Z][\w.]*>"
        r"|(?<!\\)</?(?:div|details|summary|img|span|br|p|a|script|style)\b"
    ),
    "comment": r"<!--|\{/\*",
    "import": r"^(?:import|export)\s[^\n]*(?:from\s+['\"]|=\s*[({\[])",
    "icon": r":(?:material|octicons|fontawesome|simple)-[\w-]+:",
}
PATTERNS = {kind: re.compile(pattern, re.MULTILINE) for kind, pattern in RAW.items()}
# Listings, code among words, formulas. A role's own backticks are no code.
CODE = re.compile(
    r"^(?P<lead>[ \t>]*(?:(?:[-*+]|\d+[.)])[ \t]+)*)(?P<mark>`{3,}|~{3,})(?!\{)[^\n]*\n.*?"
    r"(?:^(?!(?P=lead) {4})[ \t>]*(?P=mark)[`~]*[ \t]*$|\Z)"
    r"|(?<![}`])(?P<ticks>`+)(?!`)[^\n]*?(?:\n[^\n]+?)?(?<!`)(?P=ticks)(?!`)"
    r"|\$\$.*?\$\$|\$[^\s$][^$\n]*\$",
    re.MULTILINE | re.DOTALL,
)
# Listings by their indent, as the Markdown of a chunk has them.
PARSER = MarkdownIt("commonmark").enable("table")
PROSE = re.compile(r"[^\W\d_]{2,}")
RUST = re.compile(r"^[ \t]*(`{3,})rust\b[^\n]*\n.*?^[ \t]*\1", re.DOTALL | re.MULTILINE)
RUST_HIDDEN = re.compile(r"^[ \t]*#(?:[ \t][^\n]*)?$", re.MULTILINE)
# Cells that Jupyter Book does not show; what Sphinx is told in its own language.
CELL = re.compile(
    r"^(`{3,})\{(?:code-cell\}[^\n]*\n(?:---\n)?(?:[\w: ]+\n){0,9}:?tags:[^\n]*remove[-_](?:cell|input)"
    r"|eval-rst\}|only\}[ ]*latex).*?^\1",
    re.DOTALL | re.MULTILINE,
)
# What no reader of the site sees: programs and their attributes, options of directives, comments, names of icons.
UNSEEN = re.compile(
    r"^[ \t]*`{3,}\{(?:toctree|auto)[^\n]*\n.*?^[ \t]*`{3,}|^[ \t]*`{3,}\{[^\n]*\n[ \t]*---\n.*?^[ \t]*---$"
    r"|^[ \t>]*(?:`{3,}|~{3,})[^\n]*|//[ ]highlight-[\w-]+"
    r"|<!--.*?-->|\{/\*.*?\*/\}|<(script|style)\b.*?</\1>|\{\{[<%].*?[>%]\}\}|^(?:import|export)\s.*?(?=\n\s*\n|\Z)|</?[A-Za-z](?:\"[^\"]*\"|\{[^{}]*\}|[^<>])*+>"
    r"|^[ \t]*:[\w-]+:[^\n]*|^[ \t>-]*(?:`{3,}|:{3,})\{[^\n]*|^%[^\n]*|^[ \t]*\([\w:/.-]+\)=|^\[(?://|comment)\]:[^\n]*"
    r"|^[ \t>]*(?::[ ]{3})?(?:!!!|\?\?\?\+?|/{3,})[ \t]+[\w -]+|\[!\w+\]|\[\^[^\]\n]+\]|\[\[toc\]\]"
    r"|\$\$[ \t]*\([\w:.-]+\)|^[ \t]*(?:<<<|-+8<-+)[^\n]*"
    r"|^::: [\w.]+\.\w+\n(?:[ \t]{4,}[^\n]*\n)+|^[ \t>]*:{3,}[ \t]*[\w-]+(?:#[\w-]+)?"
    # Where links by reference lead.
    r"|^[ \t>]*\[(?!\^)[^\[\]\n]+\]:[ \t]*(?:\n[ \t]*)?(?:<[^<>\n]*>|(?:\{\{[<%][^{}\n]*[%>]\}\}|\S)++)[ \t]*"
    r"(?:\n?[ \t]+(?:\"[^\"\n]*\"|'[^'\n]*'|\([^()\n]*\)))?$"
    # What a program of MDX does with the tags in it.
    r"|^[ \t]*\{(?:[^{}<>\n]|\{[^{}\n]*\})*(?:=>|&&|\?)[ \t]*\(?[ \t]*(?=<|$)"
    r"|\{[^{}]*\}|:[\w]+-[\w-]+:|\]\([^()]*\)|\]\[[^\[\]]*\]|`[^`\n]*`|^#[ \t][^\n]*$|:cite\w*:`[^`]*`|:\w+:(?=`)",
    re.DOTALL | re.MULTILINE,
)


def _blank(found: re.Match[str]) -> str:
    return " " * len(found[0])


def find_raw(text: str) -> list[tuple[str, str]]:
    """The kind of each piece of markup outside code, and what stands around it."""
    prose = CODE.sub(lambda found: "·" + "\n" * found[0].count("\n"), text)
    return [
        (kind, prose[max(0, found.start() - 20) : found.end() + 40])
        for kind, pattern in PATTERNS.items()
        for found in pattern.finditer(prose)
    ]


def split_listings(text: str) -> tuple[str, str]:
    """The text without its listings by indent, and these: an example of markup is none."""
    lines = text.split("\n")
    listed = [token.map for token in PARSER.parse(text) if token.type == "code_block" and token.map]
    apart = [lines[first:end] for first, end in listed]
    for first, end in listed:
        lines[first:end] = [""] * (end - first)
    return "\n".join(lines), "\n\n".join("\n".join(one) for one in apart)


def find_lost(lesson: Lesson, chunks: list[Chunk]) -> list[str]:
    """The words of the lesson's prose that are at their own place in no chunk, nor among the labels of any."""
    covered = bytearray(len(lesson.text))
    labels = ""
    for chunk in chunks:
        at = 0
        for piece in chunk.pieces:
            labels += chunk.text[at : piece.text_at] + " "
            at = piece.text_at + piece.length
            covered[piece.source_at : piece.source_at + piece.length] = b"\1" * piece.length
        labels += chunk.text[at:] + " "
    body = CELL.sub(_blank, RUST.sub(lambda one: RUST_HIDDEN.sub(_blank, one[0]), lesson.text[lesson.body_start :]))
    body = UNSEEN.sub(_blank, body)
    words = ((found[0], found.start() + lesson.body_start) for found in PROSE.finditer(body))
    return [word for word, at in words if not all(covered[at : at + len(word)]) and word not in labels]
