"""Questions about the book itself, answered from its outline: what is in chapter 3, what comes after a lesson.

The whole question must fit a form below and name a part of the book. What asks for more is left to the search.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from askbook.answer import places
from askbook.answer.places import BOOK, KIND, KINDS, STEPS, Contents, Kind, Part
from askbook.answer.quotes import to_source
from askbook.domain import Chunk, Outline, Passage, Source, Statement, to_mark
from askbook.store.outline import find_headings, place_sections

Form = Literal["list", "contents", "order", "where"]

QUESTION_MAX = 200
SHOWN, LISTED = 10, 60
"""How many lines are cited, and how many are listed; the rest is counted."""

_POLITE = (
    r"^(?:(?:hi|please|(?:can|could) you|(?:tell|show|give) me)\b[,!]? )+"
    r"|(?<![\s?!.…])(?:,? please| in total|[\s?!.…])++$"
)
_KIND, _PART, _TOPIC = f"(?P<kind>{KIND})", "(?P<part>.+?)", "(?P<topic>.+?)"
_HOLDS, _TOLD = "(?:have|contain|include|cover|teach)", "(?:covered|discussed|explained|described|introduced)"
_FORMS: tuple[tuple[Form, str], ...] = (
    ("list", rf"(?:how many|what|which) {_KIND}s(?: are(?: there| covered)?| there are)?(?: (?:in|of) {_PART})?"),
    ("list", rf"(?:(?:what|which) are the|(?:list|name|all)(?: all)?(?: the)?|the) {_KIND}s(?: (?:in|of) {_PART})?"),
    ("list", rf"(?:how many|what|which) {_KIND}s (?:does|do) {_PART} {_HOLDS}"),
    ("contents", "(?:what is )?(?:the )?table of contents"),
    ("contents", rf"(?:what|how) is {_PART} (?:about|structured|organi[sz]ed|divided)"),
    ("contents", rf"(?:about|what (?:will|can|do) i learn (?:in|from)) {_PART}"),
    ("contents", rf"what (?:does|do) {_PART} {_HOLDS}"),
    ("contents", rf"what (?:topics )?(?:is|are)(?: {_TOLD})? in {_PART}"),
    ("contents", rf"what is (?P<part>{STEPS})"),
    ("order", rf"(?:what|which)(?: is the)?(?: {_KIND})? (?:comes |is )?(?P<way>before|after|follows) {_PART}"),
    ("where", rf"(?:which|what) {_KIND}s? (?:covers?|explains?|discuss(?:es)?|(?:is|are) (?:about|on)) {_TOPIC}"),
    ("where", rf"(?:in )?(?:which|what) {_KIND}s? (?:is|are) {_TOPIC} {_TOLD}"),
    ("where", rf"is there an? {_KIND} (?:on|about) {_TOPIC}"),
    ("where", rf"where (?:in {BOOK} )?(?:is|are) {_TOPIC} {_TOLD}(?: in {BOOK})?"),
)


@dataclass(frozen=True, slots=True)
class Line:
    """Markdown without marks, and the parts that it names."""

    text: str
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class StructureAnswer:
    book_id: str
    lines: tuple[Line, ...]


def asks_structure(question: str) -> bool:
    """Whether it may be about the book itself; the outline decides."""
    return next(_read_forms(question), None) is not None


def _read_forms(question: str) -> Iterator[tuple[Form, dict[str, str]]]:
    """Every form that the whole question fits, with its words."""
    text = re.sub(_POLITE, "", places.simplify(question[: QUESTION_MAX + 1]))
    for form, pattern in _FORMS:
        if len(question) <= QUESTION_MAX and (found := re.fullmatch(pattern, text)):
            yield form, {name: said for name, said in found.groupdict().items() if said}


def answer_structure(question: str, outline: Outline, near: str | None = None) -> StructureAnswer | None:
    """None where the question is not about the book's structure. `near`: the lesson that the last answer came from."""
    forms = list(_read_forms(question)) if outline.lessons else []
    if not forms:
        return None
    contents = places.read_contents(outline, near)
    lines = next(filter(None, (_answer(form, words, contents) for form, words in forms)), None)
    return StructureAnswer(outline.book_id, tuple(lines)) if lines else None


def _answer(form: Form, words: Mapping[str, str], contents: Contents) -> list[Line] | None:
    kind = contents.read_kind(words["kind"]) if "kind" in words else None
    if "kind" in words and (kind is None or (kind == "section" and len(words) == 1)):
        return None  # "How many sections are there?" does not say of what.
    part = words.get("part", "this book")
    match form:
        case "list":
            # "What are the modules?" may be about a language, and in a thread about anything.
            is_clear = contents.near is None and ("part" in words or kind == "chapter")
            return _with_part(part, contents, lambda named: _list_inside(named, contents, kind, is_clear))
        case "contents":
            # "What is the book about?" may ask for a book that the last answer spoke of.
            is_clear = contents.near is None or part.startswith("this ") or not re.fullmatch(BOOK, part)
            return _with_part(part, contents, lambda named: _list_inside(named, contents)) if is_clear else None
        case "order":
            # "Which lesson comes after lidar?" asks for the lesson on it.
            part = part if not kind or places.find_parts(part, contents) else f"{kind} on {part}"
            by = -1 if words["way"] == "before" else 1
            return _with_part(part, contents, lambda named: _say_next(named, contents, by, kind or named.kind))
        case "where":
            # Only what a heading names; the rest is for the search.
            for kinds in ((kind,), ("chapter", "lesson"), ("section", "subsection")):
                among = [section for section in contents.parts if section.kind in kinds]
                if found := places.find_named(words["topic"], among):
                    return _list_under("By its headings, the book has that in", found, in_full=True)
            return None


def _with_part(words: str, contents: Contents, answer: Callable[[Part], list[Line] | None]) -> list[Line] | None:
    """The answer for the part that the words name; where they fit several, a list of them."""
    named = places.find_parts(words, contents)
    if named:
        several = _list_under(f"That may be one of {_count(named, named[0].kind)}", named)
        return answer(named[0]) if len(named) == 1 else several
    is_missing = named is not None and contents.inside(contents.book, "chapter")
    outline = _list_inside(contents.book, contents) if is_missing else None
    return outline and [Line("The book has no such part."), *outline]


def _list_inside(part: Part, contents: Contents, kind: Kind | None = None, is_clear: bool = True) -> list[Line] | None:
    """Its parts of this kind, or those right below it."""
    inside: dict[Kind, list[Part]] = {below: contents.inside(part, below) for below in KINDS}
    if len(inside["lesson"]) == 1 and inside["lesson"][0].full_name == part.full_name:
        return _list_inside(inside["lesson"][0], contents, kind)
    if part.kind == "book" and (kind is None or not inside[kind]):
        counts = ", ".join(_count(inside[below], below) for below in KINDS[:3] if inside[below] or below == kind)
        shown = [chapter for chapter in contents.parts if chapter.kind in ("module", "chapter")] or inside["lesson"]
        return _list_under(f"{part.full_name} has {counts}", shown, part) if is_clear else None
    below: list[Kind] = [*(smaller for smaller in KINDS if inside[smaller]), "section"]
    kind = below[0] if kind is None or (kind == "section" and part.kind == "chapter") else kind
    head = f"{part.full_name} has {_count(inside[kind], kind)}"
    return _list_under(head, inside[kind], part) if kind in below else None


def _say_next(part: Part, contents: Contents, by: int, kind: Kind) -> list[Line] | None:
    # After chapter 4 comes the lesson that follows its last one.
    inside = contents.in_order(part, kind)
    here = inside[-1 if by > 0 else 0] if inside else contents.find_from(part, 0, kind)
    if here is None:
        return None
    there = contents.find_from(here, by, kind)
    if there is None:
        return [Line(f"{here.full_name} is the {'last' if by > 0 else 'first'} {kind} of the book.", (here,))]
    name = there.name if here.above is there.above else there.full_name
    return [Line(f"{'After' if by > 0 else 'Before'} {here.full_name} comes {name}.", (here, there))]


def _list_under(head: str, parts: Sequence[Part], page: Part | None = None, in_full: bool = False) -> list[Line]:
    """A list under its heading. Neighbours are named without what they are in."""
    listed, in_full = set(parts), in_full or len({part.above for part in parts}) > 1
    cited = (page,) if page and page.page and len(parts) < SHOWN else ()
    lines = [Line(f"{head}:" if parts else f"{head}.", cited)]
    for at, part in enumerate(parts[:LISTED]):
        name = f"  - {part.name}" if part.above in listed else f"- {part.full_name if in_full else part.name}"
        lines.append(Line(name, (part,) if at < SHOWN else ()))
    return [*lines, Line(f"- … and {len(parts) - LISTED:,} more")] if len(parts) > LISTED else lines


def _count(parts: Sequence[Part], kind: Kind) -> str:
    return f"{len(parts) or 'no'} {kind}{'' if len(parts) == 1 else 's'}"


class Lessons(Protocol):
    async def load_lesson(self, book_id: str, parent_doc_id: str) -> list[Chunk]: ...


async def cite_structure(
    answer: StructureAnswer, lessons: Lessons, hardware_tier: int | None = None
) -> tuple[tuple[Statement, ...], tuple[Source, ...]]:
    """The lines with their marks, and the headings they cite. Parts that need more hardware are named, not quoted."""
    sources: dict[tuple[str, int | None], Source] = {}
    statements: list[Statement] = []
    for line in answer.lines:
        spots = [(part.page.parent_doc_id, part.section) for part in line.parts if part.page]
        for part, spot in zip(line.parts, spots, strict=True):
            chunks = await lessons.load_lesson(answer.book_id, spot[0])
            source = next(_find_quotes(part, chunks, len(sources) + 1), None)
            if source and (hardware_tier is None or source.passage.chunk.hardware_tier <= hardware_tier):
                sources.setdefault(spot, source)
        cites = tuple(sources[spot].number for spot in spots if spot in sources)
        text = re.sub("([.:]?)$", "".join(f" {to_mark(number)}" for number in cites) + r"\1", line.text, count=1)
        repeats = cites and line.text.lstrip().startswith("- ")
        verdict = ("verbatim", "") if repeats else ("supported", "by the book's outline")
        statements.append(Statement(text, cites, *verdict))
    return tuple(statements), tuple(sources.values())


def _find_quotes(part: Part, chunks: Sequence[Chunk], number: int) -> Iterator[Source]:
    """The heading, where the file has it; else the lesson's first words."""
    title, first = part.page.title if part.page else part.title, chunks[0]
    placed = place_sections(title, [chunk.text for chunk in chunks]) if part.section is not None else []
    own = [here for at, here in enumerate(placed) if at == part.section and here.section.title == part.title]
    spans = [(chunks[here.chunk], here.heading.start, here.heading.end) for here in own]
    for heading in find_headings(first.text):
        if places.title_key(heading.title) == places.title_key(title) or not first.text[: heading.start].strip(" #\n"):
            spans.append((first, heading.start, heading.end))
    spans += [(first, *line.span()) for line in re.finditer(r"\w[^\n]*", first.text)]
    for chunk, start, end in spans:
        if source := to_source(number, Passage(chunk, score=1.0, rank=number, relevance=1.0), start, end):
            yield source
