"""Questions about the book itself, answered from its outline: what is in chapter 3, what comes after a lesson.

The whole question must fit a form below and name a part of the book. What asks for more is left to the search.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from askbook.answer import places
from askbook.answer.places import KIND, KINDS, STEPS, Contents, Kind, Part
from askbook.answer.quotes import to_source
from askbook.domain import Chunk, Outline, Passage, Source, Statement, to_mark
from askbook.store.outline import find_headings, place_sections

Form = Literal["list", "contents", "order"]

QUESTION_MAX = 200
SHOWN, LISTED = 10, 60
"""How many lines are cited, and how many are listed; the rest is counted."""

_POLITE = (
    r"^(?:(?:hi|please|(?:can|could) you|(?:tell|show|give) me)\b[,!]? )+"
    r"|(?<![\s?!.…])(?:,? please| in total|[\s?!.…])++$"
)
_KIND, _PART = f"(?P<kind>{KIND})", "(?P<part>.+?)"
_HOLDS = "(?:have|contain|include|cover|teach)"
_FORMS: tuple[tuple[Form, str], ...] = (
    ("list", rf"(?:how many|what|which) {_KIND}s(?: are(?: there| covered)?| there are)?(?: (?:in|of) {_PART})?"),
    ("list", rf"(?:(?:what|which) are the|(?:list|name|all)(?: all)?(?: the)?|the) {_KIND}s(?: (?:in|of) {_PART})?"),
    ("list", rf"(?:how many|what|which) {_KIND}s (?:does|do) {_PART} {_HOLDS}"),
    ("contents", "(?:what is )?(?:the )?table of contents"),
    ("contents", rf"(?:what|how) is {_PART} (?:about|structured|organi[sz]ed|divided)"),
    ("contents", rf"(?:about|what (?:will|can|do) i learn (?:in|from)) {_PART}"),
    ("contents", rf"what (?:does|do) {_PART} {_HOLDS}"),
    ("contents", rf"what (?:topics )?(?:is|are)(?: covered| discussed| explained)? in {_PART}"),
    ("contents", rf"what is (?P<part>{STEPS})"),
    ("order", rf"(?:what|which)(?: is the)?(?: {_KIND})? (?:comes |is )?(?P<way>before|after|follows) {_PART}"),
)


@dataclass(frozen=True, slots=True)
class Line:
    """Markdown without marks, and the parts that it names."""

    text: str
    parts: tuple[Part, ...] = ()


def asks_structure(question: str) -> bool:
    """Whether it may be about the book itself; the outline decides."""
    return next(_read_forms(question), None) is not None


def _read_forms(question: str) -> Iterator[tuple[Form, dict[str, str]]]:
    """Every form that the whole question fits, with its words."""
    text = re.sub(_POLITE, "", places.simplify(question[: QUESTION_MAX + 1]))
    for form, pattern in _FORMS:
        if len(question) <= QUESTION_MAX and (found := re.fullmatch(pattern, text)):
            yield form, {name: said for name, said in found.groupdict().items() if said}


def answer_structure(question: str, outline: Outline) -> list[Line] | None:
    """None where the question is not about the book's structure."""
    forms = list(_read_forms(question)) if outline.lessons else []
    if not forms:
        return None
    contents = places.read_contents(outline)
    for form, words in forms:
        kind = places.read_kind(words["kind"]) if "kind" in words else None
        name = words.get("part", "this book")
        if form == "list" and kind == "section" and "part" not in words:
            continue  # "How many sections are there?" does not say of what.
        if form == "order" and kind and not places.find_parts(name, contents):
            name = f"{kind} on {name}"  # "Which lesson comes after lidar?" asks for the lesson on it.
        part = _find_part(name, contents)
        if isinstance(part, Part) and form == "order":
            lines = _say_next(part, contents, -1 if words["way"] == "before" else 1, kind or part.kind)
        else:
            lines = _list_inside(part, contents, kind) if isinstance(part, Part) else part
        if lines:
            return lines
    return None


def _find_part(name: str, contents: Contents) -> Part | list[Line] | None:
    """The part of this name; a list where several have it; all of the book where it lacks that number."""
    named = places.find_parts(name, contents)
    if named:
        several = _list_under(f"That may be one of {_count(named, named[0].kind)}", named)
        return named[0] if len(named) == 1 else several
    is_missing = named is not None and contents.inside(contents.book, "chapter")
    outline = _list_inside(contents.book, contents) if is_missing else None
    return outline and [Line("The book has no such part."), *outline]


def _list_inside(part: Part, contents: Contents, kind: Kind | None = None) -> list[Line] | None:
    """Its parts of this kind, or those right below it."""
    inside: dict[Kind, list[Part]] = {below: contents.inside(part, below) for below in KINDS}
    if len(inside["lesson"]) == 1 and inside["lesson"][0].full_name == part.full_name:
        return _list_inside(inside["lesson"][0], contents, kind)
    if part.kind == "book" and kind == "module" and not inside[kind]:
        return None  # "What are the modules?" may be about a language.
    if part.kind == "book" and (kind is None or not inside[kind]):
        counts = ", ".join(_count(inside[below], below) for below in KINDS[:3] if inside[below] or below == kind)
        shown = [chapter for chapter in contents.parts if chapter.kind in ("module", "chapter")] or inside["lesson"]
        return _list_under(f"{part.full_name} has {counts}", shown, part)
    below: list[Kind] = [*(smaller for smaller in KINDS if inside[smaller]), "section"]
    kind = below[0] if kind is None or (kind == "section" and part.kind == "chapter") else kind
    head = f"{part.full_name} has {_count(inside[kind], kind)}"
    return _list_under(head, inside[kind], part) if kind in below else None


def _say_next(part: Part, contents: Contents, by: int, kind: Kind) -> list[Line] | None:
    # After chapter 4 comes the lesson that follows its last one; the chapter after lesson 3.2 follows its own.
    row = contents.in_order(contents.book, kind)
    inside = contents.in_order(part, kind)[-1 if by > 0 else 0 :][:1] or [
        above for above in part.lineage if above in row
    ]
    if not inside:
        return None
    here, at = inside[0], row.index(inside[0]) + by
    if not 0 <= at < len(row):
        return [Line(f"{here.full_name} is the {'last' if by > 0 else 'first'} {kind} of the book.", (here,))]
    there = row[at]
    name = there.name if here.above is there.above else there.full_name
    return [Line(f"{'After' if by > 0 else 'Before'} {here.full_name} comes {name}.", (here, there))]


def _list_under(head: str, parts: Sequence[Part], page: Part | None = None) -> list[Line]:
    """A list under its heading. Neighbours are named without what they are in."""
    listed, in_full = set(parts), len({part.above for part in parts}) > 1
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
    lines: Sequence[Line], book_id: str, lessons: Lessons, hardware_tier: int | None = None
) -> tuple[tuple[Statement, ...], tuple[Source, ...]]:
    """The lines with their marks, and the headings they cite. Parts that need more hardware are named, not quoted."""
    sources: dict[tuple[str, int | None], Source] = {}
    statements: list[Statement] = []
    for line in lines:
        spots = [(part.page.parent_doc_id, part.section) for part in line.parts if part.page]
        for part, spot in zip(line.parts, spots, strict=True):
            chunks = await lessons.load_lesson(book_id, spot[0])
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
