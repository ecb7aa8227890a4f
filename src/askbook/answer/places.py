"""The parts of a book (modules, chapters, lessons, sections), and which a question names: "lesson 2 of chapter 3"."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import Literal

from askbook.domain import Filters, Outline, OutlineLesson
from askbook.index.keywords import split_terms

Kind = Literal["book", "module", "chapter", "lesson", "section", "subsection"]
KINDS: tuple[Kind, ...] = ("module", "chapter", "lesson", "section")


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """`page` is where it begins; `section` is its index among that page's sections."""

    kind: Kind
    title: str
    page: OutlineLesson | None
    above: Part | None = None
    number: int | None = None
    section: int | None = None
    shares_number: bool = False

    @property
    def lineage(self) -> tuple[Part, ...]:
        """The part and everything it is in."""
        return (self, *(self.above.lineage if self.above else ()))

    @property
    def name(self) -> str:
        """Its own name, as Markdown."""
        # Outside chapters a lesson's number may only follow file names.
        counted = self.kind == "chapter" or (
            self.kind == "lesson" and "chapter" in (part.kind for part in self.lineage)
        )
        if not counted or _read_number(self.title) == self.number:
            return escape_title(self.title)
        return f"{self.kind.capitalize()} {self.number}: {escape_title(self.title)}".removesuffix(": ")

    @property
    def full_name(self) -> str:
        """ "Chapter 5: Sensor Simulation, lesson 1: Lidar Simulation"."""
        above = self.above
        if above is None:
            return f"“{escape_title(self.title)}”"
        if above.kind == "book" or (self.kind == "chapter" and not self.shares_number):
            return self.name
        if above.kind == "chapter" and title_key(above.title) == title_key(self.title):
            return above.full_name
        name = re.sub("^Lesson (?=[0-9])", "lesson ", self.name)
        return f"{above.full_name}, {name}" if self.section is None else f"{above.full_name} — {name}"


@dataclass(frozen=True, slots=True)
class Contents:
    book: Part
    parts: list[Part]

    def inside(self, part: Part, kind: Kind) -> list[Part]:
        return [below for below in self.parts if below.kind == kind and part in below.lineage[1:]]

    def in_order(self, part: Part, kind: Kind) -> list[Part]:
        """In reading order. Pages beside chapters are left out: their place among them is unknown."""
        divided = {chapter.above for chapter in self.parts if chapter.kind == "chapter"}
        return [below for below in self.inside(part, kind) if kind != "lesson" or below.above not in divided]


def read_contents(outline: Outline) -> Contents:
    folders = [list(pages) for _, pages in groupby(outline.lessons, attrgetter("module"))]
    named = [pages for pages in folders if title_key(pages[0].module_title) != title_key(outline.title)]
    chapters = {(page.module, page.chapter): page.chapter_title for page in outline.lessons if page.chapter_title}
    # A book with a folder for each chapter reads as modules of one chapter each, of the same name.
    if {title_key(pages[0].module_title) for pages in named} == set(map(title_key, chapters.values())):
        named = []
    first = outline.lessons[0]
    opens = len(outline.lessons) > 1 and not first.chapter_title and _is_overview(first) and folders[0] not in named
    parts = [Part("book", outline.title, first if opens else None)]
    # Numbers come from titles ("Module 2: …", "Part 2"), or else from counting.
    numbers = [_read_number(pages[0].module_title) or at for at, pages in enumerate(named, start=1)]
    shared = {number for number, times in Counter(number for _, number in chapters).items() if times > 1}
    for pages in folders:
        parts += _read_folder(pages, parts[0], numbers[named.index(pages)] if pages in named else None, shared)
    return Contents(parts[0], parts)


def _read_folder(pages: list[OutlineLesson], book: Part, number: int | None, shared: set[int]) -> Iterator[Part]:
    titled = {page.chapter for page in pages if page.chapter_title}
    loose = [page for page in pages if page.chapter not in titled]
    overview = next((page for page in loose if _is_overview(page) and (len(pages) > 1 or page is book.page)), None)
    home = book if number is None else Part("module", pages[0].module_title, overview or pages[0], book, number)
    yield from () if home is book else (home,)
    for page in loose:
        if page is not overview:
            in_name = re.match(r"\D*(\d+)", page.source_file.rpartition("/")[2])
            yield from _read_lesson(page, home, page.lesson if in_name and int(in_name[1]) == page.lesson else None)
    for at, grouped in groupby((page for page in pages if page.chapter in titled), attrgetter("chapter")):
        some = list(grouped)
        title = Counter(page.chapter_title for page in some if page.chapter_title).most_common(1)[0][0]
        chapter = Part("chapter", title, some[0], home, at, shares_number=at in shared)
        yield chapter
        for page in some[1:] if some[0].lesson == 0 and len(some) > 1 else some:
            yield from _read_lesson(page, chapter, page.lesson)


def _read_lesson(page: OutlineLesson, above: Part, number: int | None) -> Iterator[Part]:
    lesson = Part("lesson", page.title, page, above, number)
    yield lesson
    for at, section in enumerate(page.sections):
        kind: Kind = "section" if section.depth == 1 else "subsection"
        yield Part(kind, section.title, page, lesson, section=at)


def _is_overview(page: OutlineLesson) -> bool:
    """Lesson 0 is not enough: pages outside an mdBook's chapters count from 0 too."""
    stem = page.source_file.rpartition("/")[2].partition(".")[0].lower()
    return page.lesson == 0 and (
        stem in ("readme", "index", "_index") or title_key(page.title) == title_key(page.module_title)
    )


def _read_number(title: str) -> int | None:
    found = re.match(r"[^\W\d_]+[ -]0*(\d{1,4})\b", title)
    return int(found[1]) if found else None


def title_key(title: str) -> str:
    return re.sub(r"\W+", "", title).casefold()


def escape_title(title: str) -> str:
    """A title as one line of Markdown that shows as it is written: it opens no list, link or tag."""
    plain = "".join(" " if unicodedata.category(char).startswith(("C", "Z")) else char for char in title[:200])
    escaped = re.sub(r"[\\`*\[\]<>|~&]|(?<!\w)_|_(?!\w)", r"\\\g<0>", " ".join(plain.split()))
    return re.sub(r"^(?=[#+=-])|^\d+(?=[.)])", r"\g<0>\\", escaped)


# --- which part is named --------------------------------------------------------------------------

KIND = "(?:module|chapter|lesson|section|part)"
BOOK = r"(?:(?:this|the|your) )?(?:whole |entire )?(?:(?:text)?book|course|documentation|docs|guide|manual|tutorial)"
STEP = rf"(?:the )?{KIND} (?:\d{{1,4}}(?![\w.]*\d)|first|last)\b(?!['’])"
STEPS = rf"{STEP}(?:,? (?:of |in )?{STEP})*"
_ORDINALS = ("second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_TITLED = re.compile(rf"(?:the |a )?({KIND}) (?:on|about|called) (.+)|(?:the )?(.+?) ({KIND})")
NAMED_MOST = 5
"""A name that fits more parts names none of them."""


def simplify(question: str) -> str:
    """Lower case, with numbers as figures after their words: "chapter 3", "lesson last"."""
    text = " ".join(re.sub(r"\b(what|which)['’]s\b", r"\1 is", question.lower()).split())
    text = re.sub(r"\bch\.? (?=\d)", "chapter ", text)
    for number, word in enumerate(_ORDINALS, 2):
        text = re.sub(rf"\b{word} ({KIND})\b", rf"\1 {number}", text)
    text = re.sub(rf"\b(?:(first|last)|(\d+)(?:st|nd|rd|th)) ({KIND})\b", r"\3 \1\2", text)
    # "Lesson 3.2", "section 3.2" and even "chapter 3.2" all are the second lesson of chapter 3.
    return re.sub(rf"\b{KIND} (\d+)\.(\d+)\b", r"chapter \1, lesson \2", text)


def read_kind(word: str) -> Kind:
    return word if word in KINDS else "module"


def find_parts(text: str, contents: Contents) -> list[Part] | None:
    """None where the words name no part of a book; an empty list where the book lacks that number."""
    text, _, title = re.sub(rf" (?:of|in|from) {BOOK}$", "", text).partition(": ")
    if re.fullmatch(BOOK, text):
        return [contents.book]
    if re.fullmatch(STEPS, text):
        found = [contents.book]
        steps = {read_kind(kind): number for kind, number in re.findall(rf"({KIND}) (\w+)", text)}
        for kind in KINDS:
            found = _count_to(kind, steps[kind], found, contents) if kind in steps else found
        found = [part for part in found if title_key(title) in title_key(part.title)]
        return found if found or (not title and all(map(str.isdigit, steps.values()))) else None
    named = _TITLED.fullmatch(text)
    return _find_titled(read_kind(named[1] or named[4]), named[2] or named[3], contents) if named else None


def _count_to(kind: Kind, number: str, within: Sequence[Part], contents: Contents) -> list[Part]:
    row = [part for above in within for part in contents.in_order(above, kind)]
    if not number.isdigit():
        return row[:1] if number == "first" else row[-1:]
    found = [part for above in within for part in contents.inside(above, kind) if part.number == int(number)]
    if not found and kind == "chapter" and contents.book not in within:
        return row[int(number) - 1 :][:1]  # "Chapter 1 of module 2", where the numbers go on through the book.
    return found


def _find_titled(kind: Kind, name: str, contents: Contents) -> list[Part] | None:
    """Parts whose title holds every word of the name; if some title is just the name, only those."""
    wanted = _split_name(name)
    among = [part for part in contents.parts if part.kind == kind]
    titles = {part: f"{part.title} {part.page.module if part.page and kind == 'module' else ''}" for part in among}
    # Stemming thousands of titles is slow: first compare their letters.
    close = [part for part in among if all(term[:3] in titles[part].lower() for term in wanted)]
    having = [part for part in close if wanted and wanted <= _split_name(titles[part])]
    exact = [part for part in having if wanted == _split_name(re.sub(rf"^{KIND} \d+", "", part.title.lower()))]
    found = exact or having
    return found if 0 < len(found) <= NAMED_MOST else None


def _split_name(text: str) -> frozenset[str]:
    """ "ROS2" and "ROS 2" are the same name."""
    return frozenset(split_terms(re.sub(r"(?<=[^\W\d_])(?=\d)|[-_./:]", " ", text.lower())))


# --- narrowing a search ---------------------------------------------------------------------------

_GOES_ON = r"(?= ?[,:;?.!]|$| (?:how|what|why|when|where|which|who|is|are|do|does|did|can|should|about)\b)"
_PLACE = re.compile(
    rf"\b(?:in|from|of|according to) ({STEPS}|the [\w' -]{{2,60}}? (?:module|chapter|lesson)){_GOES_ON}"
    r"|\b(?:in|from|of|according to) (the (?:module|chapter|lesson) (?:on|about|called) [^,?]{2,60}),"
    rf"|\b({STEPS}) (?:says?|explains?|describes?|mentions?)\b"
)


def names_place(question: str) -> bool:
    """Whether the outline must be loaded."""
    return _PLACE.search(simplify(question)) is not None


def narrow_to_place(filters: Filters, question: str, outline: Outline) -> Filters:
    """ "In chapter 3, how does a node publish?" A question never widens a search."""
    found = _PLACE.search(simplify(question))
    if found is None or not outline.lessons:
        return filters
    named = find_parts(next(filter(None, found.groups())), read_contents(outline)) or []
    page = named[0].page if len(named) == 1 else None
    if page is None:
        return filters
    lesson = page.parent_doc_id if named[0].kind == "lesson" else None
    filters = replace(filters, module=filters.module or page.module, parent_doc_id=filters.parent_doc_id or lesson)
    if named[0].kind == "module":
        return filters
    highest = page.chapter if filters.chapter_max is None else min(filters.chapter_max, page.chapter)
    return replace(filters, chapter_min=max(filters.chapter_min or 0, page.chapter), chapter_max=highest)
