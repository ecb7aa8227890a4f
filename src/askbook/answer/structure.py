"""Questions about the book itself, answered from its outline: what is in chapter 3, what comes after the lesson on lidar.

A question is taken only if all of it fits one of the forms below and the part that it names is in the book. Whatever
asks for more than the outline holds ("what does chapter 2 say about lidar?") is left to the search.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from askbook.answer.contents import (
    Chapter,
    Contents,
    Module,
    Part,
    first_page,
    key,
    name_briefly,
    name_chapter,
    name_in_full,
    name_part,
    read_contents,
    show,
)
from askbook.answer.forms import ANY_BOOK, BACKWARD, THIS_BOOK, Asked, read_forms
from askbook.answer.places import (
    LAST,
    NAMED_MOST,
    Kind,
    Named,
    find_here,
    find_named,
    find_neighbour,
    find_parts,
    holds_name,
    name_terms,
    read_kind,
)
from askbook.answer.quotes import to_source
from askbook.domain import Chunk, Outline, OutlineLesson, Passage, Source, Statement, Verdict
from askbook.store.outline import find_headings, place_sections

SHOWN = 10
"""So many lines are cited."""
LISTED = 60
"""So many are given; of the rest, the number."""
SECTIONS_MOST = 3
"""A name that stands over more sections than this is a word of the book, and no place in it."""
OUTLINE = "by the book's outline"


@dataclass(frozen=True, slots=True)
class Spot:
    """A heading that a line repeats: a lesson's title, or that of its section of this number."""

    lesson: OutlineLesson
    section: int | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """Markdown, without marks."""

    text: str
    spots: tuple[Spot, ...] = ()
    verdict: Verdict = "verbatim"


@dataclass(frozen=True, slots=True)
class StructureAnswer:
    book_id: str
    lines: tuple[Line, ...]


# --- answering ------------------------------------------------------------------------------------


def answer_structure(question: str, outline: Outline, near: str | None = None) -> StructureAnswer | None:
    """None where the question is not about the book's structure. `near`: the lesson that the last answer came from."""
    forms = list(read_forms(question)) if outline.lessons else []
    if not forms:
        return None
    contents = read_contents(outline)
    answerer = _Answerer(contents, contents.find_lesson(near))
    found = (answerer.answer(asked) for asked in forms)
    lines = next((some for some in found if some), None)
    return StructureAnswer(outline.book_id, tuple(lines)) if lines else None


@dataclass(frozen=True, slots=True)
class _Answerer:
    contents: Contents
    near: OutlineLesson | None

    def answer(self, asked: Asked) -> list[Line] | None:
        words = asked.words
        match asked.form:
            case "count" | "list":
                return self._list_kind(words["kinds"], words.get("part"))
            case "contents":
                return self._show_contents(words.get("part"))
            case "called":
                return self._introduce_named(words["part"])
            case "what":
                return self._introduce_numbered(words["part"])
            case "order":
                return self._find_next(words)
            case "end":
                return self._find_end(words)
            case "where":
                return self._find_where(words["topic"], words.get("kind"))
            case "here":
                return self._say_where_we_are(words["kind"])

    def _with_part(self, words: str, answer: Callable[[Part], list[Line] | None]) -> list[Line] | None:
        """For the part that the words name; where they fit several, which these are."""
        named = find_parts(words, self.contents, self.near)
        if named is None:
            return None
        if len(named.parts) > 1:
            return _under(f"That may be one of {_count(len(named.parts), named.kind)}", self._list(named.parts))
        return answer(named.parts[0]) if named.parts else self._say_missing(named)

    # --- what is in it ----------------------------------------------------------------------------

    def _list_kind(self, word: str, part: str | None) -> list[Line] | None:
        wanted = "section" if word == "sections" else read_kind(word, self.contents)
        if wanted is None:
            return self._show_contents(part) if part and word in ("topics", "subjects") else None
        if part is not None and not ANY_BOOK.fullmatch(part):
            return self._with_part(part, lambda one: self._list_inside(one, wanted))
        parts = self._parts_of_book(wanted)
        if parts:
            return self._under_book(_count(len(parts), wanted), self._list(parts))
        # Of parts that the book lacks, only where it is named: "what are the modules?" may be about a language.
        named = self.near is None and (part is not None or wanted != "module")
        is_clear = named or (part is not None and THIS_BOOK.fullmatch(part))
        return (
            [Line(f"The book is not divided into {word}.", (), "supported"), *self._outline_book()]
            if is_clear
            else None
        )

    def _parts_of_book(self, kind: Kind | Literal["section"]) -> Sequence[Part]:
        match kind:
            case "module":
                return self.contents.modules
            case "chapter":
                return self.contents.chapters
            case "lesson":
                return self.contents.lessons
            case "section":
                return ()

    def _show_contents(self, part: str | None) -> list[Line] | None:
        if part is not None and not ANY_BOOK.fullmatch(part):
            return self._with_part(part, self._list_inside)
        # "What is the book about?" may ask for a book that the last answer spoke of.
        is_clear = self.near is None or part is None or THIS_BOOK.fullmatch(part)
        return self._outline_book() if is_clear else None

    def _introduce_named(self, part: str) -> list[Line] | None:
        return self._show_contents(part) if ANY_BOOK.fullmatch(part) else self._with_part(part, self._introduce)

    def _introduce_numbered(self, part: str) -> list[Line] | None:
        """ "What is the planner module?" and "what is the manual?" ask what these are, and not what they hold."""
        if THIS_BOOK.fullmatch(part):
            return self._show_contents(part)
        named = find_parts(part, self.contents, self.near)
        return self._with_part(part, self._introduce) if named and not named.by_name else None

    def _introduce(self, part: Part) -> list[Line] | None:
        if not isinstance(part, OutlineLesson):
            return self._list_inside(part)
        return [Line(f"It is {name_in_full(part, self.contents)}.", (Spot(part),))]

    def _outline_book(self) -> list[Line]:
        kinds: tuple[Kind, ...] = ("module", "chapter", "lesson")
        counts = [_count(len(some), kind) for kind in kinds if (some := self._parts_of_book(kind))]
        listed = ", ".join(counts[:-1]) + " and " + counts[-1] if len(counts) > 1 else "".join(counts)
        parts = self.contents.modules or self.contents.chapters or self.contents.lessons
        return self._under_book(listed, self._list(parts, with_inside=True))

    def _under_book(self, counted: str, lines: list[Line]) -> list[Line]:
        return _under(f"“{show(self.contents.outline.title)}” has {counted}", lines, self.contents.overview)

    def _list_inside(self, part: Part, kind: Kind | Literal["section"] | None = None) -> list[Line] | None:
        """Its chapters, lessons or sections; where none of these is asked for, those right below it."""
        match part:
            case Module():
                kind = ("chapter" if part.chapters else "lesson") if kind in ("section", None) else kind
                inside: dict[str, Sequence[Part]] = {"chapter": part.chapters, "lesson": part.lessons}
            case Chapter():
                if len(part.lessons) == 1 and key(part.lessons[0].title) == key(part.title):
                    return self._list_inside(part.lessons[0], kind)
                kind, inside = "lesson" if kind in ("section", None) else kind, {"lesson": part.lessons}
            case OutlineLesson():
                return self._list_sections(part) if kind in ("section", None) else None
        if kind not in inside:
            return None
        head = f"{name_part(part, self.contents)} has {_count(len(inside[kind]), kind)}"
        return _under(head, self._list(inside[kind]), first_page(part))

    def _list_sections(self, lesson: OutlineLesson) -> list[Line]:
        own = [number for number, section in enumerate(lesson.sections) if section.depth == 1]
        name = name_in_full(lesson, self.contents)
        lines = [Line(f"- {show(lesson.sections[at].title)}", (Spot(lesson, at),)) for at in own]
        return _under(f"{name} has {_count(len(own), 'section')}", _cut(lines), lesson)

    def _list(self, parts: Sequence[Part], with_inside: bool = False) -> list[Line]:
        # What stands together below its heading need not say each time where it stands.
        in_full = len({_place_of(part) for part in parts}) > 1
        return _cut([self._to_line(part, in_full, with_inside) for part in parts])

    def _to_line(self, part: Part, in_full: bool, with_inside: bool) -> Line:
        name = name_part(part, self.contents) if in_full else name_briefly(part, self.contents)
        names = _names_inside(part) if with_inside and not isinstance(part, OutlineLesson) else []
        more = [f"and {len(names) - SHOWN} more"] if len(names) > SHOWN else []
        inside = "; ".join((*names[:SHOWN], *more))
        return Line(f"- {name} ({inside})" if inside else f"- {name}", (_spot(part),))

    def _say_missing(self, named: Named) -> list[Line] | None:
        """Only of a number: what has no such name may be called otherwise."""
        step, within = named.missing, named.within
        number = (step.number if step.number is not None else step.ordinal) if step else None
        if step is None or number is None or number == LAST or not self.contents.chapters:
            return None
        name = name_part(within, self.contents) if within else "The book"
        parts = _parts_inside(within, step.kind) if within else self._parts_of_book(step.kind)
        head = f"{name} has no {step.kind} {number}; it has {_count(len(parts), step.kind)}"
        return _under(head, self._list(parts)) if parts else None

    # --- what comes before and after --------------------------------------------------------------

    def _find_next(self, words: dict[str, str]) -> list[Line] | None:
        kind = read_kind(words["kind"], self.contents) if "kind" in words else None
        by = -1 if words["way"] in BACKWARD else 1
        if "part" not in words:
            return self._say_next(self.near, by, kind) if self.near and kind else None
        # "Which lesson comes after lidar?" asks for the lesson on it.
        names = [words["part"], f"the {words['kind']} on {words['part']}"] if kind else [words["part"]]
        for name in names:
            if lines := self._with_part(name, lambda one: self._say_next(one, by, kind)):
                return lines
        return None

    def _say_next(self, part: Part, by: int, kind: Kind | None) -> list[Line] | None:
        here = self._as_kind(part, by, kind)
        if here is None:
            return None
        there = find_neighbour(here, by, self.contents)
        way = "After" if by > 0 else "Before"
        if there is not None:
            name = name_briefly if _place_of(here) == _place_of(there) else name_part
            text = f"{way} {name_part(here, self.contents)} comes {name(there, self.contents)}."
            return [Line(text, (_spot(here), _spot(there)))]
        if not is_ordered(here, self.contents):
            return None
        end = "last" if by > 0 else "first"
        text = f"{name_part(here, self.contents)} is the {end} {kind_of(here)} of the book."
        return [Line(text, (_spot(here),), "supported")]

    def _as_kind(self, part: Part, by: int, kind: Kind | None) -> Part | None:
        """What to count from: for "which chapter comes after lesson 3.2", that lesson's chapter."""
        if kind is None or kind == kind_of(part):
            return part
        if isinstance(part, OutlineLesson):
            return find_here(kind, part, self.contents)
        inside = part.chapters if kind == "chapter" and isinstance(part, Module) else part.lessons
        if kind == "module":
            return self.contents.module_of(part) if isinstance(part, Chapter) else None
        return inside[-1 if by > 0 else 0] if inside else None

    def _find_end(self, words: dict[str, str]) -> list[Line] | None:
        """ "Which lesson comes last in chapter 3" is "the last lesson of chapter 3"."""
        end = "last" if words["end"] in ("last", "end") else "first"
        part = words.get("part", "")
        inside = "" if not part or ANY_BOOK.fullmatch(part) else f" of {part}"
        return self._with_part(f"the {end} {words.get('kind', 'lesson')}{inside}", self._introduce)

    # --- where something is -----------------------------------------------------------------------

    def _find_where(self, topic: str, word: str | None) -> list[Line] | None:
        """Only where a heading names it; what else the book says of it is for the search."""
        if word and read_kind(word, self.contents) is None:
            return None
        modules = find_named(topic, self.contents.modules) if word == "module" else ()
        chapters = find_named(topic, self.contents.chapters)
        others = [one for one in self.contents.lessons if self.contents.chapter_of(one) not in chapters]
        found: tuple[Part, ...] = modules or (*chapters, *find_named(topic, others))
        if len(found) > NAMED_MOST:
            return None
        lines = [Line(f"- {name_part(one, self.contents)}", (_spot(one),)) for one in found]
        lines = lines or self._find_sections(topic)
        return _under("By its headings, the book has that in", lines) if lines else None

    def _find_sections(self, topic: str) -> list[Line]:
        wanted = name_terms(topic)
        found = [
            Spot(lesson, at)
            for lesson in self.contents.outline.lessons
            for at, section in enumerate(lesson.sections)
            if holds_name(section.title, wanted)
        ]
        return [
            Line(f"- {name_in_full(spot.lesson, self.contents)} — {show(_title_of(spot))}", (spot,))
            for spot in found
            if len(found) <= SECTIONS_MOST
        ]

    def _say_where_we_are(self, word: str) -> list[Line] | None:
        kind = read_kind(word, self.contents)
        here = find_here(kind, self.near, self.contents) if kind else None
        if here is None or self.near is None:
            return None
        return [Line(f"That is in {name_part(here, self.contents)}.", (_spot(here),))]


def kind_of(part: Part) -> Kind:
    match part:
        case Module():
            return "module"
        case Chapter():
            return "chapter"
        case OutlineLesson():
            return "lesson"


def is_ordered(part: Part, contents: Contents) -> bool:
    return not isinstance(part, OutlineLesson) or part in contents.sequence


def _parts_inside(part: Part, kind: Kind) -> Sequence[Part]:
    match part:
        case Module():
            return part.chapters if kind == "chapter" else part.lessons
        case Chapter():
            return part.lessons
        case OutlineLesson():
            return ()


def _place_of(part: Part) -> tuple[str, int]:
    match part:
        case Module():
            return "", 0
        case Chapter():
            return part.module, 0
        case OutlineLesson():
            return part.module, part.chapter


def _names_inside(part: Module | Chapter) -> list[str]:
    if isinstance(part, Module) and part.chapters:
        return [name_chapter(one) for one in part.chapters]
    return [show(one.title) for one in part.lessons if key(one.title) != key(part.title)]


def _spot(part: Part) -> Spot:
    return Spot(first_page(part))


def _title_of(spot: Spot) -> str:
    return spot.lesson.title if spot.section is None else spot.lesson.sections[spot.section].title


def _under(head: str, lines: list[Line], page: OutlineLesson | None = None) -> list[Line]:
    """A list below its heading; the page that the heading names is cited, if that makes no more than ten sources."""
    cites = (Spot(page),) if page and len(lines) < SHOWN else ()
    return [Line(f"{head}:" if lines else f"{head}.", cites, "supported"), *lines]


def _count(number: int, kind: str) -> str:
    if number == 1:
        return f"1 {kind}"
    return f"{number:,} {kind}s" if number else f"no {kind}s"


def _cut(lines: list[Line]) -> list[Line]:
    plain = [Line(line.text, (), "supported") for line in lines[SHOWN:LISTED]]
    more = [Line(f"- … and {len(lines) - LISTED:,} more", (), "supported")] if len(lines) > LISTED else []
    return [*lines[:SHOWN], *plain, *more]


# --- citing ---------------------------------------------------------------------------------------

_SENTENCE = re.compile(r"\S.*?(?:[.!?…](?=\s|$)|(?=\n\s*\n)|$)", re.DOTALL)
_LINE = re.compile(r"\S[^\n]*")


class Lessons(Protocol):
    async def load_lesson(self, book_id: str, parent_doc_id: str) -> list[Chunk]: ...


async def cite_structure(
    answer: StructureAnswer, lessons: Lessons, hardware_tier: int | None = None
) -> tuple[tuple[Statement, ...], tuple[Source, ...]]:
    """The lines with their marks, and a source for each heading that they repeat: the book's own words for it.

    What needs more hardware than the reader has is counted and named, and not quoted.
    """
    loaded: dict[str, list[Chunk]] = {}
    sources: dict[Spot, Source] = {}
    for spot in dict.fromkeys(spot for line in answer.lines for spot in line.spots):
        lesson = spot.lesson.parent_doc_id
        if lesson not in loaded:
            loaded[lesson] = await lessons.load_lesson(answer.book_id, lesson)
        source = _quote(spot, loaded[lesson], len(sources) + 1)
        if source is not None and (hardware_tier is None or source.passage.chunk.hardware_tier <= hardware_tier):
            sources[spot] = source
    return tuple(_to_statement(line, sources) for line in answer.lines), tuple(sources.values())


def _to_statement(line: Line, sources: Mapping[Spot, Source]) -> Statement:
    cites = tuple(sources[spot].number for spot in line.spots if spot in sources)
    marks = "".join(f" [{number}]" for number in cites)
    stop = line.text[-1] if line.text[-1] in ".:" else ""
    text = f"{line.text.removesuffix(stop)}{marks}{stop}"
    is_verbatim = line.verdict == "verbatim" and bool(cites)
    return Statement(text, cites, "verbatim" if is_verbatim else "supported", "" if is_verbatim else OUTLINE)


def _quote(spot: Spot, chunks: Sequence[Chunk], number: int) -> Source | None:
    for chunk, start, end in _find_quotes(spot, chunks):
        source = to_source(number, Passage(chunk, score=1.0, rank=number, relevance=1.0), start, end)
        if source is not None:
            return source
    return None


def _find_quotes(spot: Spot, chunks: Sequence[Chunk]) -> Iterator[tuple[Chunk, int, int]]:
    """The heading, where it is written out; else what the lesson begins with."""
    if spot.section is not None:
        placed_sections = place_sections(spot.lesson.title, [chunk.text for chunk in chunks])
        # Its own place first: two sections may have one title.
        for placed in (*placed_sections[spot.section : spot.section + 1], *placed_sections):
            if placed.section == spot.lesson.sections[spot.section]:
                yield chunks[placed.chunk], placed.heading.start, placed.heading.end
    first = chunks[0]
    for heading in find_headings(first.text):
        if not first.text[: heading.start].strip(" #\n") or key(heading.title) == key(spot.lesson.title):
            yield first, heading.start, heading.end
    for pattern in (_SENTENCE, _LINE):
        if found := pattern.search(first.text):
            yield first, *found.span()
