"""Raw markup left in the chunks of books, and characters of prose lost: a table, one line for each folder given.

.venv/bin/python bench/markup.py FOLDER …          the table
.venv/bin/python bench/markup.py --show FOLDER     each finding with its file
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

from askbook.book.chunker import split_lesson
from askbook.book.reader import read_book, read_lessons
from askbook.domain import Chunk, Lesson

RAW = {
    "admonition": r"^[ \t>]*(?:!!!|\?\?\?\+?|/{3,})[ \t]+\w|^[ \t>]*:{3,}|\[!(?:NOTE|TIP|WARNING|CAUTION|IMPORTANT)\]",
    "tab": r"^[ \t]*===[!+]?[ \t]+\"|:(?:begin|end)_tab:|</?Tabs?\b|</?TabItem\b",
    "directive": r"^[ \t>]*(?:`{3,}|~{3,})\{\w|^\([\w:.-]+\)=[ \t]*$",
    "role": r"\{[\w:]+\}`",
    "shortcode": r"\{\{[<%]|\{%[^%]*%\}",
    "include": r"\{\{#\w|-+8<-+|^<<<[ \t]|@include:|\{\*[ \t]+\S+[^*]*\*\}",
    "attributes": r"\{:[^{}\n]*\}|(?<=[)\]*`])\{[ \t]*[.#][\w-]+|^#+ .*\{#[\w-]+\}[ \t]*$",
    "footnote": r"\[\^[^\]\s]+\]",
    "wiki link": r"\[\[[^\[\]\n]+\]\]",
    "tag": r"</?[A-Z][\w.]*(?:[ \t/>]|$)|</?(?:div|details|summary|img|span|br|p|a|script|style)\b",
    "comment": r"<!--|\{/\*",
    "import": r"^(?:import|export)\s[^\n]*(?:from\s+['\"]|=\s*[({\[])",
    "icon": r":(?:material|octicons|fontawesome|simple)-[\w-]+:",
}
PATTERNS = {kind: re.compile(pattern, re.MULTILINE) for kind, pattern in RAW.items()}
# Read by itself, and not by askbook's parser: listings, code among words, code by its indent, formulas.
CODE = re.compile(
    r"^(?P<lead>[ \t>]*(?:(?:[-*+]|\d+[.)])[ \t]+)*)(?P<mark>`{3,}|~{3,})(?!\{)[^\n]*\n.*?(?:^[ \t>]*(?P=mark)[`~]*[ \t]*$|\Z)"
    r"|(?P<ticks>`+)(?!`)[^\n]*?(?:\n[^\n]+?)?(?<!`)(?P=ticks)(?!`)|(?<=\n\n)(?:(?: {4}|\t)[^\n]*(?:\n+|\Z))+|\$\$.*?\$\$",
    re.MULTILINE | re.DOTALL,
)
PROSE = re.compile(r"[^\W\d_]{2,}")


def find_raw(chunk: Chunk) -> list[tuple[str, str]]:
    prose = CODE.sub(lambda found: "\n" * found[0].count("\n"), chunk.text)
    return [
        (kind, prose[max(0, found.start() - 20) : found.end() + 40])
        for kind, pattern in PATTERNS.items()
        for found in pattern.finditer(prose)
    ]


# What no reader of the site sees: programs and their attributes, options of directives, comments, names of icons.
UNSEEN = re.compile(
    r"^[ \t]*`{3,}\{toctree\}.*?^[ \t]*`{3,}|^[ \t]*`{3,}\{[^\n]*\n[ \t]*---\n.*?^[ \t]*---$|^[ \t>]*(?:`{3,}|~{3,})[^\n]*|//[ ]highlight-[\w-]+"
    r"|<!--.*?-->|\{/\*.*?\*/\}|<(script|style)\b.*?</\1>|\{\{[<%].*?[>%]\}\}|^(?:import|export)\s.*?(?=\n\s*\n|\Z)|</?[A-Za-z][^<>]*>"
    r"|^[ \t]*:[\w-]+:[^\n]*|^[ \t]*(?:`{3,}|:{3,})\{[^\n]*|^%[^\n]*|^\([\w:.-]+\)=|^\[(?://|comment)\]:[^\n]*"
    r"|\{[^{}]*\}|:[\w]+-[\w-]+:|\]\([^()]*\)|\]\[[^\[\]]*\]|`[^`\n]*`|^#[ \t][^\n]*$|:cite\w*:`[^`]*`",
    re.DOTALL | re.MULTILINE,
)


def find_lost(lesson: Lesson, chunks: list[Chunk]) -> list[str]:
    """Lines most of whose words no chunk shows anywhere."""
    shown = set(PROSE.findall(" ".join(chunk.text for chunk in chunks)))
    lost: list[str] = []
    for line in UNSEEN.sub(" ", lesson.text[lesson.body_start :]).split("\n"):
        words = PROSE.findall(line)
        if len(words) >= 3 and sum(word not in shown for word in words) > len(words) / 2:
            lost.append(line)
    return lost


def main(arguments: list[str]) -> None:
    show = "--show" in arguments
    print("| book | lessons | chunks | raw markup left outside code | lines of prose lost |\n|---|---|---|---|---|")
    for folder in (Path(one) for one in arguments if not one.startswith("--")):
        lessons, _ = read_lessons(folder, read_book(folder))
        kinds: Counter[str] = Counter()
        count = lost = 0
        for lesson in lessons:
            chunks = split_lesson(lesson)
            count += len(chunks)
            gone = find_lost(lesson, chunks)
            lost += len(gone)
            found = [one for chunk in chunks for one in find_raw(chunk)]
            kinds.update(kind for kind, _ in found)
            if show:
                for kind, where in found:
                    print(f"{lesson.source_file}  {kind}: {where!r}")
                for line in gone:
                    print(f"{lesson.source_file}  LOST {line[:150]!r}")
        told = ", ".join(f"{kind} {number}" for kind, number in kinds.most_common()) or "0"
        print(f"| {folder.name} | {len(lessons)} | {count} | {told} | {lost} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
