"""A book's outline, read off what the ledger keeps: the way to each lesson, and the headings in its chunks."""

from __future__ import annotations

import html
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from askbook.domain import Outline, OutlineLesson, OutlineSection

ROOT_MODULE = "main"
"""The module of lessons that lie in no module's folder; its title is the book's."""
STEPS_ABOVE = 3
"""Book, module, chapter."""

# Thousands of chunks are read at once. A pattern that opens with a newline is found five times as fast as `^`, and a
# heading that is underlined is looked for by its line.
_MARK = re.compile(
    r"\n {0,3}(?:(?P<fence>`{3,}|~{3,})|(?P<comment><!--)"
    r"|(?P<marks>\#{1,6})[ \t]+(?P<title>[^\n]+)|(?P<below>={3,}|-{3,})[ \t]*(?=\n|$))"
)
_CLOSING_MARKS = re.compile(r"(?:(?:^|(?<![ \t])[ \t]++)\#++)?(?<![ \t])[ \t]*+$")
_NO_PARAGRAPH = re.compile(r"\s*(?:$|[\#>`~|<+*-]|\d+[.)])")
_MARKED_UP = re.compile(r"[\[\]{<&`*~_\\]")
_CUSTOM_ID = re.compile(r"(?<!\s)\s*+(?:\{\#[^{}\s]+\}|\[\[[^\[\]\s]+\]\])\s*$")
_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()\n]*\)|\[[^\[\]]*\])")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>|<!--.*?-->|(<!--.*)", re.DOTALL)
_EMPHASIS = re.compile(r"`+|\*+|~~|(?<!\w)_+(?=\S)|(?<=\S)_+(?!\w)")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_NUMBER = re.compile(r"(?:[a-z]+[-_ ]?)?(\d{1,4})(?=[-_. ]|$)", re.IGNORECASE)


# --- headings -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading outside code: its words are `text[start:end]`, its title is how they read."""

    title: str
    level: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class PlacedSection:
    """A section of a lesson, the chunk that its heading is in, and the heading's place in that chunk."""

    section: OutlineSection
    chunk: int
    heading: Heading


def find_headings(text: str) -> Iterator[Heading]:
    """A chunk closes the fences that it opens, so each can be read by itself."""
    lines, at = f"\n{text}", 0
    while mark := _MARK.search(lines, at):
        at = _find_end(lines, mark)
        start, end = _span_of_words(lines, mark)
        if title := _read_aloud(lines[start:end]):
            level = len(mark["marks"]) if mark["marks"] else 1 if mark["below"][0] == "=" else 2
            yield Heading(title, level, start - 1, end - 1)


def _find_end(lines: str, mark: re.Match[str]) -> int:
    """The end of the heading's line, or of the listing or comment that opens here."""
    if not mark["fence"] and not mark["comment"]:
        return mark.end()
    closing = "-->" if mark["comment"] else rf"\n {{0,3}}{mark['fence']}+[ \t]*(?=\n|$)"
    found = re.compile(closing).search(lines, mark.end())
    return found.end() if found else len(lines)


def _span_of_words(lines: str, mark: re.Match[str]) -> tuple[int, int]:
    if mark["marks"]:
        start, end = mark.span("title")
        closing = _CLOSING_MARKS.search(lines, start, end)
        return start, closing.start() if closing else end
    start, end = lines.rfind("\n", 0, mark.start()) + 1, mark.start()
    return (start, end) if mark["below"] and not _NO_PARAGRAPH.match(lines, start, end) else (0, 0)


def _read_aloud(raw: str) -> str:
    """The heading as the chunks' heading paths have it: without links, emphasis, tags and ids."""
    if not _MARKED_UP.search(raw):
        return " ".join(raw.split())
    text = _TAG.sub(r"\1", _LINK.sub(r"\1", _CUSTOM_ID.sub("", raw)))
    return " ".join(html.unescape(_ESCAPED.sub(r"\1", _EMPHASIS.sub("", text))).split())


def place_sections(title: str, texts: Iterable[str]) -> list[PlacedSection]:
    """The sections of a lesson, from the texts of its chunks in order; without the page's own title."""
    placed: list[PlacedSection] = []
    levels: list[int] = []
    is_first = True
    for number, text in enumerate(texts):
        for heading in find_headings(text):
            levels = [level for level in levels if level < heading.level]
            if not is_first or (heading.level > 1 and not _same(heading.title, title)):
                levels.append(heading.level)
                placed.append(PlacedSection(OutlineSection(heading.title, len(levels)), number, heading))
            is_first = False
    return placed


# --- titles ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LessonRow:
    """A lesson as the ledger has it; `path` is the heading path of its first chunk."""

    module: str
    chapter: int
    lesson: int
    title: str
    url: str
    source_file: str
    parent_doc_id: str
    path: tuple[str, ...]
    module_order: int = 0

    @property
    def above(self) -> tuple[str, ...]:
        """The titles of module and chapter, between the book's and its own. Equal neighbours are written once."""
        steps = self.path[: STEPS_ABOVE + 1]
        own = [at for at, step in enumerate(steps) if _same(step, self.title)]
        return steps[1 : own[-1]] if own else ()


def build_outline(
    book_id: str, title: str, revision: int, rows: Sequence[LessonRow], texts: Mapping[str, Sequence[str]]
) -> Outline:
    """`texts`: the chunks of each source file, in order."""
    by_module: defaultdict[str, list[LessonRow]] = defaultdict(list)
    for row in rows:
        by_module[row.module].append(row)
    lessons: list[OutlineLesson] = []
    for module in sorted(by_module.values(), key=_module_order):
        module_title = _name_module(title, module)
        for row in sorted(module, key=lambda row: (row.chapter, row.lesson, row.source_file)):
            placed = place_sections(row.title, texts.get(row.source_file, ()))
            lessons.append(
                OutlineLesson(
                    **{name: getattr(row, name) for name in LessonRow.__slots__ if name in OutlineLesson.__slots__},
                    module_title=row.above[0] if len(row.above) == 2 else module_title,
                    chapter_title=_name_chapter(row, module_title),
                    sections=tuple(place.section for place in placed),
                )
            )
    return Outline(book_id, title, tuple(lessons), revision)


def _name_module(book_title: str, rows: Sequence[LessonRow]) -> str:
    whole = Counter(row.above[0] for row in rows if len(row.above) == 2)
    if whole:
        return whole.most_common(1)[0][0]
    if rows[0].module != ROOT_MODULE and len(rows) == 1 and not rows[0].above:
        return rows[0].title
    alone = {row.above[0] for row in rows if row.above}
    # One title over several chapters is the module's; several titles are the chapters', and the module's is the book's.
    return alone.pop() if rows[0].module != ROOT_MODULE and len(alone) == 1 else book_title


def _name_chapter(row: LessonRow, module_title: str) -> str:
    if len(row.above) == 2:
        return row.above[1]
    if row.above and not _same(row.above[0], module_title):
        return row.above[0]
    if row.chapter == 0:
        return ""
    return row.title if row.lesson == 0 or not row.above else row.above[0]


def _same(title: str, another: str) -> bool:
    return title.casefold() == another.casefold()


def _module_order(rows: Sequence[LessonRow]) -> tuple[object, ...]:
    """The site's; else lessons in no module first, then by the number in the folder's name and the first chapter."""
    folder = min(row.source_file.rpartition("/")[0] for row in rows)
    numbers = (int(found[1]) for name in folder.split("/") if (found := _NUMBER.match(name)))
    first_chapter = min((row.chapter for row in rows if row.chapter), default=math.inf)
    order = min(row.module_order for row in rows)
    return (order, rows[0].module != ROOT_MODULE, next(numbers, math.inf), first_chapter, folder, rows[0].module)
