"""What must hold for every lesson, judged from the outside: pieces, the source, and a Markdown parser of our own."""

from __future__ import annotations

import re
from itertools import pairwise

from markdown_it import MarkdownIt

from askbook.domain import Chunk, Lesson

MARKDOWN = MarkdownIt("commonmark").enable("table").disable("inline")
SYNTAX = re.compile(
    r"(?:\s*(?:"
    # tags, their attributes before and behind the words shown, comments, imports and exports
    r"<!--.*?-->|\{\s*/\*.*?\*/\s*\}|</?[A-Za-z][^<]*?>|</?>|</?[A-Za-z][^<>]*=\{?[\"'`]|[\"'`]\}?[^<>\n]*>|\"\s*/>"
    r"|[\"'`](?:\s+[\w-]+=\"[^\"<>]*\")*\s*/?>|[\"'`]\}?\s[^<>\n]*=\{?[\"'`]|<[A-Z]\w*\b.*?/?>|(?:import|export)\b.*?(?=\n|$)|<(script|style)\b.*?</\1>"
    # admonitions and tabs, with or without the quotes around their titles
    r"|(?:!!!|\?\?\?\+?)[ \t]+[\w-]+(?: inline| end)*(?: \")?|\?\?\?\+?[ \t]+\""
    r"|===[!+]?[ \t]+[\"']|[\"']|\[![\w-]+\][+-]?"
    r"|/{3,}(?:[ \t]+[\w-]+(?:[ \t]*\|)?)?|open: True"
    r"|:{3,}[ \t]*[\w-]*(?:\[|\{[\w:.-]+\}(?: \S+\.png)?|\{[.#][^{}]*=[\"']|\{[^{}]*\})?|[\"']?\}|\{open\}"
    r"|:(?:begin|end)_tab:`?|`"
    # directives and their options, roles and their targets, labels
    r"|```mdx-code-block|(?:`{3,}|~{3,})(?:\{[\w:.+-]+\}(?: \S+\.(?:png|jpg|svg))?)?"
    r"|(?:`{3,}|~{3,})admonish(?:[ ]+[\w.-]+)?(?:[ ]+\w+=(?:\w+|\"[\w ]+\"))*(?:[ ]+(?:title=)?[\"'])?|&\w+;"
    r"|`{3,}\{(?:toctree|raw|index|bibliography|literalinclude)\}.*?`{3,}"
    r"|:{3,}\{only\} latex.*?:{3,}|\{(?:raw|only)\} html\b|\{(?:div|grid)\} [\w ]+|\{[\w:.+-]+\}|(?m:^):[\w-]+:[^\n]*"
    r"|:[\w-]+:|---\n.*?---|<[^<>]*>`|\([\w:./-]+\)=?|(?m:^)%[^\n]*|\+\+\+[^\n]*"
    r"|(?m:^)[ \t]*options:\n(?:[ \t]+[^\n]*\n?)+"
    # shortcodes before and behind the words shown, and those that are only shown
    r"|\{\{[<%][^{}=]*?[\"']|\{\{[<%#].*?[>%]?\}\}|\{%.*?%\}|\{\{[<%].*?=[\"']|[\"'][^{}]*[>%]\}\}|\{%.*?=[\"']|[\"'][^\"'{}]*%\}|/\*|\*/"
    # references to what is counted, cells that are not shown, what a program has drawn, the module of an object
    r"|\{(?:numref|eq)\}`[^`]*`|[ ]?%s|\{number\}|`{3,}\{code-cell\}[^\n]*\n(?:---\n)?:?tags: \[remove-[^`]*`{3,}"
    r"|:{3,}\{glue:figure\}[^\n]*|~\w+\."
    r"|\{\{%[\w ]+\}\}|\.\. \w+::[^\n]*|<Listing number=\"|\)\)?\}|\{[^{}<>\n]*(?:=>|&&|\?) \(?|\)? : (?:\(|null\})?"
    # attributes, footnotes, abbreviations, wiki links, keys and marks
    r"|\{[ \t]*[:.#/][^{}]*\}|\{\w+='[^'\n]*'\}|\{id=[^{}]*\}|\{['\"]|['\"]\}|\{toc\}|\{[\d,\s-]+\}|\[\^[^\]]+\]:?|\*\[|\]|\[\[[^\[\]|]*\|?|\]\]|\[TOC\]|\[(?://|comment)\]:[^\n]*"
    r"|\{(?:\+\+|==|--|~~|>>)|(?:\+\+|==|--|~~|<<)\}|\+\+|==|~>|\\(?=\{)|\[\]\([^()]*\)|(?m:^)--8<--[^\n]*"
    # figures, headings without words or of a hook, numbered remarks, links by reference and where they lead
    r"|`{3,}\{(?:figure|image)\}[^\n]*|#{1,6}(?=\s)|<!--[ \t]*\w+:\w+|-->|!"
    r"|(?m:^)\[[^\[\]\n]+\]:\s*(?:<[^<>\n]*>|(?:\{\{<[^{}\n]*>\}\}|\S)+)(?:[ \t]+(?:\"[^\"\n]*\"|'[^'\n]*'))?"
    r"|\[[\w .-]*\]|\[|\{\{[ ]*[\w.]+[ ]*\}\}"
    # what a listing's first line says beyond its language
    r"|tab (?=title=)|(?:title|filename|caption|label|hl_lines|linenums)=(?:\"[^\"]*\"|\S+)"
    r"|\[[^\[\]\n]*\](?=\s|$)|showLineNumbers"
    # the dashes under a table's head, beyond three
    r"|-+"
    # what opens a definition
    r"|:[ ]{3}|(?m:^):(?:[ ]{1,2}|\t)"
    r"|(?://|#|<!--)[ \t]*highlight-[\w-]+[^\n]*"
    r")\s*)+",
    re.DOTALL,
)
RUST_HIDDEN = re.compile(r"(?:\s*#(?:[ \t][^\n]*)?(?:\n|$))+\s*")


def check_lesson(lesson: Lesson, chunks: list[Chunk]) -> None:
    check_pieces(lesson, chunks)
    check_coverage(lesson, chunks)
    check_chain(chunks)
    for chunk in chunks:
        check_limits(chunk)
        check_fences(chunk.text)
    check_tables(lesson, chunks)


def check_pieces(lesson: Lesson, chunks: list[Chunk]) -> None:
    for chunk in chunks:
        assert chunk.text == chunk.text.strip() != ""
        places = [range(piece.text_at, piece.text_at + piece.length) for piece in chunk.pieces]
        assert all(left.stop <= right.start for left, right in pairwise(places))
        for piece in chunk.pieces:
            assert piece.length > 0
            assert (
                chunk.text[piece.text_at : piece.text_at + piece.length]
                == lesson.text[piece.source_at : piece.source_at + piece.length]
            )
        assert lesson.body_start <= chunk.start < chunk.end <= len(lesson.text)
        assert chunk.first_line == lesson.text.count("\n", 0, chunk.start) + 1
        assert chunk.last_line == lesson.text.count("\n", 0, chunk.end - 1) + 1


def uncovered_runs(lesson: Lesson, chunks: list[Chunk]) -> list[str]:
    """The stretches of the body that no piece of any chunk holds."""
    spans = sorted((piece.source_at, piece.source_at + piece.length) for chunk in chunks for piece in chunk.pieces)
    runs: list[str] = []
    at = lesson.body_start
    for start, end in [*spans, (len(lesson.text), len(lesson.text))]:
        if start > at and lesson.text[at:start].strip():
            runs.append(lesson.text[at:start])
        at = max(at, end)
    return runs


def check_coverage(lesson: Lesson, chunks: list[Chunk]) -> None:
    """Nothing is missing but the syntax of tags and of the generators."""
    for run in uncovered_runs(lesson, chunks):
        is_hidden_code = "```rust" in lesson.text and RUST_HIDDEN.fullmatch(run)
        assert SYNTAX.fullmatch(run) or is_hidden_code, f"{lesson.source_file}: lost {run[:200]!r}"


def check_chain(chunks: list[Chunk]) -> None:
    ids = [chunk.id for chunk in chunks]
    assert len(set(ids)) == len(ids)
    assert [chunk.prev_chunk_id for chunk in chunks] == [None, *ids][: len(ids)]
    assert [chunk.next_chunk_id for chunk in chunks] == [*ids[1:], None][: len(ids)]
    assert [chunk.chunk_index for chunk in chunks] == list(range(len(ids)))
    assert {chunk.total_chunks for chunk in chunks} <= {len(ids)}


def check_limits(chunk: Chunk) -> None:
    assert chunk.word_count == len(chunk.text.split())
    assert chunk.char_count == len(chunk.text) <= 4_000
    assert chunk.token_count >= chunk.word_count * 1.3
    assert chunk.token_count <= 512


def check_fences(text: str) -> None:
    lines = text.split("\n")
    for token in MARKDOWN.parse(text):
        if token.type == "fence" and token.map:
            closing = lines[token.map[1] - 1].lstrip(" \t>")
            is_closed = token.map[1] - token.map[0] >= 2 and re.fullmatch(
                re.escape(token.markup[0]) + f"{{{len(token.markup)},}}\\s*", closing
            )
            assert is_closed, f"open fence in chunk:\n{text}"


def check_tables(lesson: Lesson, chunks: list[Chunk]) -> None:
    """A chunk that holds a row of a table holds the table's head as well."""
    if lesson.source_file.endswith(".mdx"):
        return
    lines = lesson.text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    body_line = lesson.text.count("\n", 0, lesson.body_start)
    for token in MARKDOWN.parse(lesson.text[lesson.body_start :]):
        if token.type != "table_open" or not token.map or token.level:
            continue
        head, delimiter = (" ".join(lines[body_line + token.map[0] + at].split()) for at in (0, 1))
        delimiter = re.sub("-{10,}", "---", delimiter)
        if "<!--" in head or len(head) > 1_000:
            continue
        first_row, end = starts[body_line + token.map[0] + 2], starts[body_line + token.map[1]]
        for chunk in chunks:
            if any(piece.source_at < end - 1 and piece.source_at + piece.length > first_row for piece in chunk.pieces):
                text = " ".join(chunk.text.split())
                assert head in text and delimiter in text, f"a table without its head:\n{chunk.text}"
