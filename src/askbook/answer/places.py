"""Which part of the book a question names: "chapter 3", "lesson 2 of module 1", "the lesson on lidar", "this chapter"."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from askbook.answer.contents import Chapter, Contents, Module, Part, key, read_alias, read_contents
from askbook.domain import Filters, Outline, OutlineLesson
from askbook.index.keywords import split_terms

Kind = Literal["module", "chapter", "lesson"]
Relative = Literal["this", "next", "previous"]
One = TypeVar("One", Module, Chapter, OutlineLesson)

LAST = -1
NAMED_MOST = 5
"""A name that fits more parts than this names none of them."""

# "Part" and "week" are words of every day: they count where the book calls its own parts so.
ALIASES = "part|unit|week|day|volume"
KIND = rf"(?:module|chapter|lesson|{ALIASES})"
BOOK = (
    r"(?:(?:this|the|your) )?(?:whole |entire |complete )?"
    r"(?:(?:text)?book|course|documentation|docs|guide|manual|tutorial)"
)

_CARDINALS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_RELATIVES: dict[str, Relative] = {
    "this": "this",
    "that": "this",
    "current": "this",
    "same": "this",
    "next": "next",
    "following": "next",
    "previous": "previous",
    "preceding": "previous",
    "prior": "previous",
}
_STEP = re.compile(
    rf"(?:the )?(?:(?P<kind>{KIND}|section|ch\.?) (?:number |no\.? ?)?\#?(?P<number>\d{{1,4}}|{'|'.join(_CARDINALS)})"
    rf"(?:\.(?P<second>\d{{1,4}}))?(?![\w.]*\d)\b"
    rf"|(?P<ordinal>{'|'.join((*_ORDINALS, *_RELATIVES))}|last|final|\d{{1,3}}(?:st|nd|rd|th)) (?P<counted>{KIND})\b(?!'))",
    re.IGNORECASE,
)
_JOINT = re.compile(r"\s*,?\s+(?:(?:of|in|from|inside|within) )?|\s*[,:]\s*", re.IGNORECASE)
_NAME_BEHIND = re.compile(
    rf"(?:the |a )?(?P<kind>{KIND}) (?:on|about|called|named|titled|entitled|covering|that covers|which covers) (?P<name>.+)",
    re.IGNORECASE,
)
_NAME_BEFORE = re.compile(rf"(?:the )?(?P<name>.+?) (?P<kind>{KIND})", re.IGNORECASE)
_OF_BOOK = re.compile(rf" (?:of|in|from) {BOOK}$", re.IGNORECASE)
_QUOTED = re.compile(r"(?:the )?(?:(?:module|chapter|lesson),? )?[\"“‘'](?P<title>.+)[\"”’']", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Step:
    """One part that a question names: by its number, its place (`LAST` is the last), its name, or from where we are."""

    kind: Kind
    number: int | None = None
    ordinal: int | None = None
    relative: Relative | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class Named:
    """The parts that fit the words; more than one where the words leave it open, none where the book lacks it."""

    kind: Kind
    parts: tuple[Part, ...]
    missing: Step | None = None
    within: Part | None = None
    """Where the missing part was looked for."""
    by_name: bool = False


# --- reading --------------------------------------------------------------------------------------


def find_parts(text: str, contents: Contents, near: OutlineLesson | None = None) -> Named | None:
    """None where the words name no part of a book."""
    text = _OF_BOOK.sub("", text)
    titled = _find_titled(text, contents)
    if titled is not None:
        return titled
    steps = read_steps(text, contents)
    return _Resolver(contents, near).resolve(steps) if steps else None


def read_kind(word: str, contents: Contents) -> Kind | None:
    """What the book calls a week may be its module, its chapter or its lesson."""
    word = word.lower().removesuffix("s").rstrip(".")
    match word:
        case "module" | "chapter" | "lesson":
            return word
        case "ch":
            return "chapter"
    if word in read_alias(one.title for one in contents.modules):
        return "module"
    if word in read_alias(one.title for one in contents.chapters):
        return "chapter"
    return "lesson" if word in read_alias(one.title for one in contents.lessons) else None


def read_steps(text: str, contents: Contents) -> tuple[Step, ...] | None:
    """ "lesson 2 of the gazebo chapter" is two steps, the finest first or last."""
    steps: list[Step] = []
    rest = " ".join(text.split())
    while rest:
        found = _STEP.match(rest)
        read = _to_steps(found, contents) if found else _read_name(rest, contents)
        if read is None:
            return None
        steps += read
        rest = rest[found.end() :] if found else ""
        joint = _JOINT.match(rest)
        if rest and joint is None:
            return None
        rest = rest[joint.end() :] if joint else ""
    return tuple(steps) if len({step.kind for step in steps}) == len(steps) else None


def _to_steps(found: re.Match[str], contents: Contents) -> list[Step] | None:
    word = (found["kind"] or found["counted"]).lower()
    if found["second"]:
        # "Lesson 3.2", "section 3.2" and even "chapter 3.2" all are the second lesson of chapter 3.
        return [Step("chapter", _to_number(found["number"])), Step("lesson", int(found["second"]))]
    kind = read_kind(word, contents)
    if kind is None:
        return None
    if found["number"]:
        return [Step(kind, number=_to_number(found["number"]))]
    place = found["ordinal"].lower()
    if place in _RELATIVES:
        return [Step(kind, relative=_RELATIVES[place])]
    if place in ("last", "final"):
        return [Step(kind, ordinal=LAST)]
    return [Step(kind, ordinal=_ORDINALS.index(place) + 1 if place in _ORDINALS else int(place[:-2]))]


def _to_number(word: str) -> int:
    return int(word) if word.isdigit() else _CARDINALS.index(word.lower()) + 1


def _read_name(text: str, contents: Contents) -> list[Step] | None:
    found = _NAME_BEHIND.fullmatch(text) or _NAME_BEFORE.fullmatch(text)
    kind = read_kind(found["kind"], contents) if found else None
    return [Step(kind, name=found["name"])] if found and kind else None


def _find_titled(text: str, contents: Contents) -> Named | None:
    """A title word for word: in quotes, or with the number that it is written with."""
    quoted, step = _QUOTED.fullmatch(text), _STEP.match(text)
    if quoted is None and (step is None or step.end() == len(text)):
        return None
    wanted = key(quoted["title"] if quoted else text)
    parts: tuple[tuple[Kind, Sequence[Part]], ...] = (
        ("chapter", contents.chapters),
        ("module", contents.modules),
        ("lesson", contents.lessons),
    )
    for kind, some in parts:
        found = tuple(one for one in some if wanted in _keys(kind, one))
        if found:
            return Named(kind, found, by_name=quoted is not None)
    return None


def _keys(kind: Kind, part: Part) -> set[str]:
    number = part.lesson if isinstance(part, OutlineLesson) else part.number
    return {key(part.title), key(f"{kind} {number} {part.title}")}


# --- resolving ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Resolver:
    contents: Contents
    near: OutlineLesson | None

    def resolve(self, steps: Sequence[Step]) -> Named:
        by_kind = {step.kind: step for step in steps}
        modules, chapters, lessons = by_kind.get("module"), by_kind.get("chapter"), by_kind.get("lesson")
        found: Named | None = None
        if modules:
            found = self._choose(modules, self.contents.modules, None, lambda one: one.number)
        if chapters and (found is None or found.parts):
            inside = {one.name for one in found.parts if isinstance(one, Module)} if found else None
            some = [one for one in self.contents.chapters if inside is None or one.module in inside]
            found = self._choose(chapters, some, found, lambda one: one.number)
            found = self._prefer_near(found, lambda one, near: one.module == near.module) if not modules else found
        if lessons and (found is None or found.parts):
            found = self._choose_lesson(lessons, found)
        assert found is not None
        return found

    def _choose_lesson(self, step: Step, above: Named | None) -> Named:
        if above is not None:
            return self._choose(step, _lessons_in(above, in_order=step.ordinal is not None), above, _number_of_lesson)
        # "The second lesson" of a book in chapters says as little as "lesson 2"; its first and its last are clear.
        if step.ordinal is not None and step.ordinal > 1 and self.contents.chapters:
            step = replace(step, number=step.ordinal, ordinal=None)
        some = self.contents.sequence if step.ordinal else self.contents.lessons
        some = [one for one in some if step.number is None or self._is_numbered(one)]
        found = self._choose(step, some, None, _number_of_lesson)
        return self._prefer_near(
            found,
            lambda one, near: (
                isinstance(one, OutlineLesson) and (one.module, one.chapter) == (near.module, near.chapter)
            ),
        )

    def _is_numbered(self, lesson: OutlineLesson) -> bool:
        """Outside chapters a lesson's number is its own only if its file says so; others are counted by their names."""
        in_name = re.match(r"\D*(\d+)", lesson.source_file.rpartition("/")[2])
        return self.contents.chapter_of(lesson) is not None or (
            in_name is not None and int(in_name[1]) == lesson.lesson
        )

    def _choose(self, step: Step, some: Sequence[One], above: Named | None, number_of: Callable[[One], int]) -> Named:
        found: Sequence[Part]
        if step.relative:
            found = self._find_from_here(step)
        elif step.name:
            found = find_named(step.name, some)
        elif step.ordinal is not None:
            at = len(some) - 1 if step.ordinal == LAST else step.ordinal - 1
            found = some[at : at + 1] if at >= 0 else ()
        else:
            found = [one for one in some if number_of(one) == step.number]
            # "Chapter 1 of module 2", where the numbers go on through the book.
            if not found and above and len(above.parts) == 1 and step.kind == "chapter":
                found = some[step.number - 1 : step.number] if step.number else ()
        within = above.parts[0] if above and len(above.parts) == 1 else None
        return Named(step.kind, tuple(found), None if found else step, within, bool(step.name))

    def _find_from_here(self, step: Step) -> tuple[Part, ...]:
        here = find_here(step.kind, self.near, self.contents)
        if here is None:
            return ()
        if step.relative == "this":
            return (here,)
        there = find_neighbour(here, 1 if step.relative == "next" else -1, self.contents)
        return (there,) if there else ()

    def _prefer_near(self, named: Named, same: Callable[[OutlineLesson | Chapter, OutlineLesson], bool]) -> Named:
        """Of several that fit, the one where the last answer came from."""
        if len(named.parts) < 2 or self.near is None:
            return named
        here = tuple(one for one in named.parts if not isinstance(one, Module) and same(one, self.near))
        return replace(named, parts=here or named.parts)


def _number_of_lesson(lesson: OutlineLesson) -> int:
    return lesson.lesson


def _lessons_in(named: Named, in_order: bool) -> list[OutlineLesson]:
    return [
        lesson
        for part in named.parts
        if not isinstance(part, OutlineLesson)
        for lesson in (part.sequence if in_order and isinstance(part, Module) else part.lessons)
    ]


def find_here(kind: Kind, near: OutlineLesson | None, contents: Contents) -> Part | None:
    if near is None or kind == "lesson":
        return near
    return contents.chapter_of(near) if kind == "chapter" else contents.module_of(near)


def find_neighbour(part: Part, by: int, contents: Contents) -> Part | None:
    """The part before or after, of the same kind; None at either end, and where the order is not known."""
    row: Sequence[Part] = contents.sequence
    if not isinstance(part, OutlineLesson):
        row = contents.modules if isinstance(part, Module) else contents.chapters
    elif part not in row:
        return _leave_overview(part, by, contents)
    at = row.index(part) + by
    return row[at] if 0 <= at < len(row) else None


def _leave_overview(page: OutlineLesson, by: int, contents: Contents) -> OutlineLesson | None:
    """An overview stands before the first lesson of its chapter, module or book."""
    if page in contents.lessons:
        return None
    at = contents.outline.lessons.index(page)
    there = contents.outline.lessons[at + 1 :] if by > 0 else contents.outline.lessons[:at][::-1]
    return next((one for one in there if one in contents.sequence), None)


# --- names ----------------------------------------------------------------------------------------


def find_named(name: str, parts: Sequence[One]) -> tuple[One, ...]:
    """Those whose title holds every word of the name; if one is nothing but the name, it alone."""
    wanted = name_terms(name)
    having = [one for one in parts if holds_name(_names_of(one), wanted)]
    exact = [one for one in having if wanted == name_terms(bare_title(one.title))]
    found = exact or having
    return tuple(found) if len(found) <= NAMED_MOST else ()


def name_terms(text: str) -> frozenset[str]:
    """ "ROS2" and "ROS 2" are the same name."""
    spaced = re.sub(r"(?<=[^\W\d_])(?=\d)|[-_./:]", " ", text.lower())
    return frozenset(split_terms(spaced))


def holds_name(title: str, wanted: frozenset[str]) -> bool:
    # To stem the titles of thousands of pages takes long: first their letters.
    lowered = title.lower()
    return bool(wanted) and all(term[:3] in lowered for term in wanted) and wanted <= name_terms(title)


def bare_title(title: str) -> str:
    """Without "Chapter 5:" before it."""
    return re.sub(rf"^(?:{KIND}) \d+\s*[:.—–-]?\s*", "", title, flags=re.IGNORECASE) or title


def _names_of(part: Part) -> str:
    return f"{part.title} {part.name}" if isinstance(part, Module) else part.title


# --- narrowing a search ---------------------------------------------------------------------------

_ASKS_ON = (
    r"(?=\s*[,:;?.!)]|\s*$|\s+(?:how|what|why|when|where|which|who|is|are|was|were|does|do|did|can|could|should|the|a|an"
    r"|about|on|it|we|they|you|i|and|to|for|there)\b)"
)
_WAY_TO = r"(?:in|from|of|within|inside|according to|as per)"
_SAYS = r"(?:says?|tells?|explains?|describes?|mentions?|teach(?:es)?|recommends?|defines?|suggests?|states?|discuss(?:es)?)"
_STEPS = rf"(?:{_STEP.pattern})(?:(?:{_JOINT.pattern})(?:{_STEP.pattern}))*"
_PLACE = re.compile(
    rf"\b{_WAY_TO}\s+(?P<steps>{re.sub(r'[?]P<[a-z]+>', '?:', _STEPS)}){_ASKS_ON}"
    rf"|\b(?P<says>{re.sub(r'[?]P<[a-z]+>', '?:', _STEPS)})\s+{_SAYS}\b"
    rf"|\b{_WAY_TO}\s+(?P<named>the [\w' -]{{2,60}}? (?:module|chapter|lesson)){_ASKS_ON}"
    rf"|\b{_WAY_TO}\s+(?P<about>the (?:module|chapter|lesson) (?:on|about|called) [^,?]{{2,60}}),",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the book a question wants its answer from. Chapters of one number in several modules may all be meant."""

    module: str | None = None
    chapter: int | None = None
    parent_doc_id: str | None = None


def names_place(question: str) -> bool:
    """Whether it is worth to look at the outline."""
    return _PLACE.search(" ".join(question.split())) is not None


def find_place(question: str, outline: Outline, near: str | None = None) -> Place | None:
    """ "In chapter 3, how does a node publish?"; None where no place is named, or none that is clear."""
    found = _PLACE.search(" ".join(question.split()))
    if found is None:
        return None
    contents = read_contents(outline)
    words = next(filter(None, found.groups()))
    named = find_parts(words, contents, contents.find_lesson(near))
    if named is None or not named.parts:
        return None
    places = {_to_place(part) for part in named.parts}
    if len(places) == 1:
        return places.pop()
    chapters = {place.chapter for place in places}
    return Place(chapter=chapters.pop()) if named.kind == "chapter" and len(chapters) == 1 else None


def _to_place(part: Part) -> Place:
    match part:
        case Module():
            return Place(module=part.name)
        case Chapter():
            return Place(part.module, part.number)
        case OutlineLesson():
            return Place(part.module, part.chapter, part.parent_doc_id)


def narrow_to_place(filters: Filters, place: Place) -> Filters:
    """What the caller has set stays: a question narrows a search and never widens it."""
    lowest = [at for at in (filters.chapter_min, place.chapter) if at is not None]
    highest = [at for at in (filters.chapter_max, place.chapter) if at is not None]
    return replace(
        filters,
        module=filters.module or place.module,
        chapter_min=max(lowest, default=None),
        chapter_max=min(highest, default=None),
        parent_doc_id=filters.parent_doc_id or place.parent_doc_id,
    )
