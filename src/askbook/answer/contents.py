"""An outline as modules, chapters and lessons, and how each is called in an answer."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from askbook.domain import Outline, OutlineLesson

TITLE_MAX = 200
OVERVIEWS = ("readme", "index", "_index")

_MARKUP = re.compile(r"[\\`*\[\]<>|~&]|(?<!\w)_|_(?!\w)")
_OPENS_BLOCK = re.compile(r"[#+=-]|\d+(?=[.)])")
_NUMBERED = re.compile(r"(?P<word>[^\W\d_]+)[ -]0*(?P<number>\d{1,4})\b")


@dataclass(frozen=True, slots=True)
class Chapter:
    module: str
    number: int
    title: str
    pages: tuple[OutlineLesson, ...]

    @property
    def overview(self) -> OutlineLesson | None:
        """The page that opens it; a chapter of one page has none."""
        return self.pages[0] if self.pages[0].lesson == 0 and len(self.pages) > 1 else None

    @property
    def lessons(self) -> tuple[OutlineLesson, ...]:
        return self.pages[1:] if self.overview else self.pages


@dataclass(frozen=True, slots=True)
class Module:
    name: str
    title: str
    number: int
    pages: tuple[OutlineLesson, ...]
    chapters: tuple[Chapter, ...]
    loose: tuple[OutlineLesson, ...]
    """Lessons outside its chapters."""

    @property
    def lessons(self) -> tuple[OutlineLesson, ...]:
        return (*self.loose, *(lesson for chapter in self.chapters for lesson in chapter.lessons))

    @property
    def first_page(self) -> OutlineLesson:
        """Its overview, or what it begins with."""
        overview = next((page for page in self.pages if not page.chapter_title and page not in self.loose), None)
        return overview or (self.chapters[0].pages if self.chapters else self.loose)[0]

    @property
    def sequence(self) -> tuple[OutlineLesson, ...]:
        """In reading order. Where there are chapters, nothing tells whether a page outside them opens or closes."""
        return self.lessons[len(self.loose) :] if self.chapters else self.loose


Part = Module | Chapter | OutlineLesson


def first_page(part: Part) -> OutlineLesson:
    match part:
        case Module():
            return part.first_page
        case Chapter():
            return part.pages[0]
        case OutlineLesson():
            return part


@dataclass(frozen=True, slots=True)
class Contents:
    """`modules` is empty where the book has none, and so is `chapters`. Overviews are no lessons."""

    outline: Outline
    modules: tuple[Module, ...]
    chapters: tuple[Chapter, ...]
    lessons: tuple[OutlineLesson, ...]
    sequence: tuple[OutlineLesson, ...]
    overview: OutlineLesson | None
    """The page that opens the book."""

    def chapter_of(self, lesson: OutlineLesson) -> Chapter | None:
        place = (lesson.module, lesson.chapter)
        return next((one for one in self.chapters if (one.module, one.number) == place), None)

    def module_of(self, part: Chapter | OutlineLesson) -> Module | None:
        return next((one for one in self.modules if one.name == part.module), None)

    def find_lesson(self, parent_doc_id: str | None) -> OutlineLesson | None:
        return next((one for one in self.outline.lessons if one.parent_doc_id == parent_doc_id), None)


# --- reading an outline ---------------------------------------------------------------------------


def read_contents(outline: Outline) -> Contents:
    by_module: defaultdict[str, list[OutlineLesson]] = defaultdict(list)
    for lesson in outline.lessons:
        by_module[lesson.module].append(lesson)
    groups = [
        _read_module(pages, is_root=len(by_module) > 1 and _is_root(pages, outline)) for pages in by_module.values()
    ]
    # A book with a folder for each chapter reads as modules of one chapter each, of the same name.
    named = [] if all(map(_is_one_chapter, groups)) else [one for one in groups if key(one.title) != key(outline.title)]
    first = outline.lessons[0]
    lessons = tuple(lesson for one in groups for lesson in one.lessons)
    opens = first not in lessons and not first.chapter_title and first.module not in {one.name for one in named}
    return Contents(
        outline,
        tuple(_number_modules(named)),
        tuple(chapter for one in groups for chapter in one.chapters),
        lessons,
        tuple(lesson for one in groups for lesson in one.sequence),
        first if opens else None,
    )


def _is_root(pages: Sequence[OutlineLesson], outline: Outline) -> bool:
    return key(pages[0].module_title) == key(outline.title)


def _read_module(pages: Sequence[OutlineLesson], is_root: bool) -> Module:
    by_chapter: defaultdict[int, list[OutlineLesson]] = defaultdict(list)
    for page in pages:
        by_chapter[page.chapter].append(page)
    chapters = [
        Chapter(pages[0].module, number, _most_common(page.chapter_title for page in some), tuple(some))
        for number, some in by_chapter.items()
        if any(page.chapter_title for page in some)
    ]
    # The one page of a folder is a lesson, whatever its name; that of a book in modules opens the book.
    has_overview = len(pages) > 1 or is_root
    loose = [page for page in pages if not page.chapter_title and not (has_overview and _is_overview(page))]
    title = _most_common(page.module_title for page in pages)
    return Module(pages[0].module, title, 0, tuple(pages), tuple(chapters), tuple(loose))


def _is_overview(page: OutlineLesson) -> bool:
    """mdBook's loose pages count from 0 as well: the name tells."""
    stem = page.source_file.rpartition("/")[2].partition(".")[0].lower()
    return page.lesson == 0 and (stem in OVERVIEWS or key(page.title) == key(page.module_title))


def _is_one_chapter(module: Module) -> bool:
    return len(module.chapters) == 1 and not module.loose and key(module.title) == key(module.chapters[0].title)


def _number_modules(modules: Sequence[Module]) -> list[Module]:
    """Their titles say it ("Module 2: …", "Part 2"); where none does, their places."""
    written = [int(found["number"]) if (found := _NUMBERED.match(one.title)) else 0 for one in modules]
    numbers = written if any(written) else range(1, len(modules) + 1)
    return [replace(one, number=number) for one, number in zip(modules, numbers, strict=True)]


def _most_common(titles: Iterable[str]) -> str:
    return next((title for title, _ in Counter(filter(None, titles)).most_common(1)), "")


def key(title: str) -> str:
    return re.sub(r"\W+", "", title).casefold()


def read_alias(titles: Iterable[str]) -> set[str]:
    """What a book calls its parts: "week", where a title is "Week 3: Sensors"."""
    return {found["word"].lower() for title in titles if (found := _NUMBERED.match(title))}


# --- names ----------------------------------------------------------------------------------------


def show(title: str) -> str:
    """A title as Markdown that reads as it is written: it opens no list, no link and no tag, and is on one line."""
    plain = "".join(" " if unicodedata.category(char).startswith(("C", "Z")) else char for char in title)
    plain = " ".join(plain.split())
    plain = plain if len(plain) <= TITLE_MAX else plain[: TITLE_MAX - 1] + "…"
    escaped = _MARKUP.sub(lambda found: f"\\{found[0]}", plain)
    opening = _OPENS_BLOCK.match(escaped)
    if opening is None:
        return escaped
    at = opening.end() if opening[0].isdigit() else 0
    return f"{escaped[:at]}\\{escaped[at:]}"


def name_part(part: Part, contents: Contents) -> str:
    match part:
        case Module():
            return show(part.title)
        case Chapter():
            return _place_chapter(part, contents)
        case OutlineLesson():
            return name_in_full(part, contents)


def name_chapter(chapter: Chapter) -> str:
    return _with_number("Chapter", chapter.number, chapter.title)


def name_briefly(part: Part, contents: Contents) -> str:
    """Without what it stands in."""
    match part:
        case Module():
            return show(part.title)
        case Chapter():
            return name_chapter(part)
        case OutlineLesson():
            # Outside chapters numbers may follow the file names, and say nothing.
            in_chapter = contents.chapter_of(part) is not None
            return _with_number("Lesson", part.lesson, part.title) if in_chapter else show(part.title)


def name_in_full(lesson: OutlineLesson, contents: Contents) -> str:
    """ "Chapter 5: Sensor Simulation, lesson 1: Lidar Simulation"."""
    chapter = contents.chapter_of(lesson)
    above = _place_chapter(chapter, contents) if chapter else _name_module_of(lesson, contents)
    name = name_briefly(lesson, contents)
    if chapter and key(chapter.title) == key(lesson.title):
        return above
    return (
        f"{above}, {name[0].lower() + name[1:] if chapter and name.startswith('Lesson ') else name}" if above else name
    )


def _place_chapter(chapter: Chapter, contents: Contents) -> str:
    """With its module, where another chapter has the same number."""
    shared = sum(one.number == chapter.number for one in contents.chapters) > 1
    module = _name_module_of(chapter, contents) if shared else ""
    return f"{module}, {name_chapter(chapter)}" if module else name_chapter(chapter)


def _name_module_of(part: Chapter | OutlineLesson, contents: Contents) -> str:
    module = contents.module_of(part)
    return show(module.title) if module else ""


def _with_number(kind: str, number: int, title: str) -> str:
    written = _NUMBERED.match(title)
    if written and int(written["number"]) == number:
        return show(title)
    return f"{kind} {number}: {show(title)}" if title else f"{kind} {number}"
