"""A lesson → its chunks: cut at headings, then at blocks, and inside a block only where it alone is too large."""

from __future__ import annotations

import hashlib
import math
import re
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from typing import Any

from askbook.book import CHUNKER_VERSION as CHUNKER_VERSION
from askbook.book.markup import has_components
from askbook.book.sections import Block, Section, Source, fence_prefix, open_fences, parse_blocks, split_sections
from askbook.domain import Chunk, Lesson, Piece, SectionStart

NAMESPACE = uuid.UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
TARGET, MAXIMUM, SMALL, OVERLAP = 400, 512, 100, 60
LONGEST_OVERLAP = 2 * OVERLAP
CLOSING = 4
CHARS_A_WORD = 10
MOST_HEADINGS = 6

_LINE = re.compile(r"[^\n]*+(?:\n[ \t]*+(?=\n))*+\n?")
_FENCE_RUN = re.compile(r"\s*+(`{100,}+|~{100,}+)")
_WORD = re.compile(r"\S+\s*|\s+")
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)\]*_]*+\s++(?=[^\sa-zß-öø-ÿ])|(?<=[。！？])(?=\S)")

Span = tuple[int, int]

_OF_LESSON = (set(Lesson.__slots__) & set(Chunk.__slots__)) - {"text", "url"}
"""What a chunk says as its lesson does."""


@dataclass(frozen=True, slots=True)
class Size:
    words: int
    chars: int

    def __add__(self, other: Size) -> Size:
        return Size(self.words + other.words, self.chars + other.chars)

    @property
    def tokens(self) -> int:
        """The seeds' estimate, words × 1.3; ten characters are a word at least: no chunk passes 3,940 characters."""
        return math.ceil(max(self.words, self.chars / CHARS_A_WORD) * 1.3)


def measure(text: str) -> Size:
    return Size(len(text.split()), len(text))


def _weigh(text: str) -> Size:
    """As it will be in a chunk: a long row of backticks counts twice, for as many must close it."""
    size = Size(len(text.split()), len(text))
    row = _FENCE_RUN.match(text) if size.chars >= 100 else None
    return size + Size(0, len(row.group(1))) if row else size


@dataclass(frozen=True, slots=True)
class Unit:
    """The least that moves as one: a whole block, or a part of one that alone is too large.

    `before` and `after` are the fence lines that open and close a part of a listing, `header` a table's first two
    lines.
    """

    start: int
    end: int
    size: Size
    section: int
    block: Block
    in_item: bool = False
    part: bool = False
    dedent: int = 0
    before: str = ""
    after: str = ""
    header: Span | None = None

    @property
    def is_heading(self) -> bool:
        return self.block.kind == "heading"


def split_lesson(lesson: Lesson) -> list[Chunk]:
    mdx = has_components(lesson.source_file, lesson.text)
    source = Source(lesson.text, lesson.body_start, mdx, lesson.link_titles)
    sections = split_sections(source.blocks, lesson.anchors)
    drafts = _merge_small(_pack_sections(source, sections))
    rendered = [_render(source, draft) for draft in _with_overlap(source, drafts)]
    ids = _make_ids(lesson, [shown.text for shown in rendered])
    chain = [None, *ids, None]
    return [
        _build(lesson, source, draft, sections, shown, index, chain)
        for index, (shown, draft) in enumerate(zip(rendered, drafts, strict=True))
    ]


# --- blocks → units -------------------------------------------------------------------------------


def _pack_sections(source: Source, sections: list[Section]) -> list[list[Unit]]:
    drafts: list[list[Unit]] = []
    waiting: list[Unit] = []
    for number, section in enumerate(sections):
        units = waiting + [unit for block in section.blocks for unit in _split_block(source, block, number)]
        # A heading with nothing under it opens the next section's chunk: alone it says nothing.
        if all(unit.is_heading for unit in units) and len(units) < MOST_HEADINGS and number + 1 < len(sections):
            waiting = units
            continue
        waiting = []
        drafts += _pack(units)
    return drafts


def _split_block(
    source: Source, block: Block, section: int, in_item: bool = False, nested: bool = False
) -> Iterator[Unit]:
    start, end = source.span(block.first, block.end)
    size = _weigh(source.shown_text(start, end))
    if size.words == 0:
        return
    dedent = _find_dedent(source, block, start, end) if in_item or source.mdx else 0
    unit = Unit(start, end, size, section, block, in_item, nested, dedent)
    if block.kind != "list" and size.tokens <= (TARGET if block.kind == "prose" else MAXIMUM):
        yield unit
    elif block.children:
        for child in block.children:
            yield from _split_block(
                source, child, section, in_item or block.kind == "item", nested or block.kind != "list"
            )
    else:
        for part in _split_leaf(source, replace(unit, part=True)):
            if source.shown_text(part.start, part.end).strip():
                yield part


def _find_dedent(source: Source, block: Block, start: int, end: int) -> int:
    """In MDX nothing is code for its indent: without it a chunk is plain Markdown, whose reader sees these blocks."""
    if source.mdx and block.kind == "prose":
        return end - start
    return min(map(_indent_of, filter(str.strip, source.text[start:end].split("\n"))))


def _indent_of(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _split_leaf(source: Source, unit: Unit) -> Iterator[Unit]:
    block = unit.block
    if block.kind == "fence" and block.end - block.first >= 3:
        opening_end = source.starts[block.first + 1] - 1
        if opening_end - unit.start <= MAXIMUM // 2:
            return _split_fence(source, unit)
    if block.kind == "table" and block.end - block.first >= 3:
        header = source.span(block.first, block.first + 2)
        if measure(source.shown_text(*header)).tokens <= TARGET * 3 // 4:
            return _split_table(source, unit, header)
    finest = _sentences(source, unit.start, unit.end) if block.kind == "prose" else _lines(source, unit.start, unit.end)
    return (_part(source, unit, span) for span in _fill(source, finest, TARGET))


def _part(source: Source, unit: Unit, span: Span) -> Unit:
    start, end = span[0], span[0] + len(source.text[slice(*span)].rstrip())
    return replace(unit, start=start, end=end, size=_weigh(source.shown_text(start, end)))


def _split_fence(source: Source, unit: Unit) -> Iterator[Unit]:
    """At lines, the fence re-opened and closed around each part."""
    block = unit.block
    prefix = fence_prefix(source.first_line_of(block), block.mark)[unit.dedent :]
    reopen, close = f"{prefix}{block.mark}{block.info}\n", f"\n{prefix}{block.mark}"
    first, end = block.first + 1, block.end - (1 if block.closed else 0)
    room = TARGET - measure(reopen + close).tokens
    spans = list(_fill(source, _lines(source, *source.span(first, end)), room))
    spans = [span for span in spans if source.text[slice(*span)].strip()]
    for number, (start, stop) in enumerate(spans):
        is_first, is_last = number == 0, number == len(spans) - 1
        part = _part(source, unit, (unit.start if is_first else start, unit.end if is_last else stop))
        before, after = "" if is_first else reopen, "" if is_last else close
        yield replace(part, before=before, after=after, size=part.size + measure(before + after))


def _split_table(source: Source, unit: Unit, header: Span) -> Iterator[Unit]:
    """At rows, the header repeated above each part."""
    block = unit.block
    header_size = measure(source.shown_text(*header))
    rows = _lines(source, *source.span(block.first + 2, block.end))
    for number, (start, end) in enumerate(_fill(source, rows, TARGET - header_size.tokens)):
        if number == 0:
            yield _part(source, unit, (unit.start, end))
        else:
            part = _part(source, unit, (start, end))
            yield replace(part, header=header, size=part.size + header_size)


def _fill(source: Source, spans: Iterable[Span], limit: int) -> Iterator[Span]:
    """Neighbouring spans joined up to the limit; one that is too large is cut at spaces, else at characters."""
    longest = int(limit / 1.3) * CHARS_A_WORD

    def small_enough() -> Iterator[tuple[int, int, Size]]:
        for start, end in spans:
            size = _weigh(source.shown_text(start, end))
            if size.tokens <= limit:
                yield start, end, size
                continue
            for word in _WORD.finditer(source.text, start, end):
                step = longest // 2 if source.text[word.start()] in "`~" else longest
                for at in range(word.start(), word.end(), step):
                    part_end = min(at + step, word.end())
                    yield at, part_end, _weigh(source.shown_text(at, part_end))

    begin = stop = -1
    total = Size(0, 0)
    for start, end, size in small_enough():
        grown = total + size
        if begin >= 0 and grown.tokens > limit:
            yield begin, stop
            begin = -1
        begin, stop, total = (start, end, size) if begin < 0 else (begin, end, grown)
    if begin >= 0:
        yield begin, stop


def _lines(source: Source, start: int, end: int) -> Iterator[Span]:
    """Each line with its newline and the blank lines behind it."""
    return (line.span() for line in _LINE.finditer(source.text, start, end) if line.end() > line.start())


def _sentences(source: Source, start: int, end: int) -> Iterator[Span]:
    at = start
    for stop in _SENTENCE_END.finditer(source.text, start, end):
        if stop.end() > at and not source.is_in_formula(stop.end()):
            yield at, stop.end()
            at = stop.end()
    if at < end:
        yield at, end


# --- units → drafts of chunks ---------------------------------------------------------------------


def _size_of(draft: list[Unit]) -> Size:
    return Size(sum(unit.size.words for unit in draft), sum(unit.size.chars + 2 for unit in draft))


def _pack(units: list[Unit]) -> Iterator[list[Unit]]:
    draft: list[Unit] = []
    size = Size(0, 0)
    for unit in units:
        grown = size + unit.size + Size(0, 2)
        fits = grown.tokens <= TARGET or (grown.tokens <= MAXIMUM and size.tokens < SMALL)
        if draft and not fits:
            yield draft
            draft, grown = [], unit.size + Size(0, 2)
        draft.append(unit)
        size = grown
    if draft:
        yield draft


def _merge_small(drafts: list[list[Unit]]) -> list[list[Unit]]:
    """A small section joins its neighbour up to the target; one still small joins the smaller one that has room."""
    merged: list[list[Unit]] = []
    for draft in drafts:
        if merged and _may_merge(merged[-1], draft, TARGET):
            merged[-1] = merged[-1] + draft
        else:
            merged.append(draft)
    at = 0
    while at < len(merged):
        before = [at - 1] if at and _may_merge(merged[at - 1], merged[at], MAXIMUM) else []
        behind = [at] if at + 1 < len(merged) and _may_merge(merged[at], merged[at + 1], MAXIMUM) else []
        pairs = sorted(before + behind, key=lambda left: (_size_of(merged[left] + merged[left + 1]).tokens, left))
        if _size_of(merged[at]).tokens < SMALL and pairs:
            left = pairs[0]
            merged[left : left + 2] = [merged[left] + merged[left + 1]]
            at = left
        else:
            at += 1
    return merged


def _may_merge(left: list[Unit], right: list[Unit], limit: int) -> bool:
    sizes = _size_of(left), _size_of(right)
    return min(size.tokens for size in sizes) < SMALL and (sizes[0] + sizes[1]).tokens <= limit


def _with_overlap(source: Source, drafts: list[list[Unit]]) -> Iterator[list[Unit]]:
    for before, draft in pairwise([[], *drafts]):
        last, first = before[-1] if before else None, draft[0]
        repeated = None
        if last and last.section == first.section and not first.is_heading:
            repeated = _overlap(source, last, MAXIMUM - CLOSING - _size_of(draft).tokens)
        yield [repeated, *draft] if repeated else draft


def _overlap(source: Source, last: Unit, room: int) -> Unit | None:
    """The last sentences of the chunk before, about 15 % of a chunk; code, tables and list items are never repeated."""
    if last.block.kind != "prose" or last.in_item:
        return None
    begin = last.end
    for start, _ in reversed(list(_sentences(source, last.start, last.end))):
        room_left = min(room, OVERLAP if begin < last.end else LONGEST_OVERLAP)
        if measure(source.shown_text(start, last.end)).tokens > room_left:
            break
        begin = start
    return replace(_part(source, last, (begin, last.end)), part=True) if begin < last.end else None


# --- drafts → chunks ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Rendered:
    text: str
    pieces: tuple[Piece, ...]
    start: int
    end: int


def _render(source: Source, draft: list[Unit]) -> _Rendered:
    parts: list[Span | str] = []
    headers: set[int] = set()
    draft = _outdented(source, draft)
    for number, unit in enumerate(draft):
        before = draft[number - 1] if number else None
        goes_on = before is not None and before.part and unit.part and before.block is unit.block
        if before is not None:
            parts += [] if goes_on or not before.after else [before.after]
            plain = not (before.after or unit.before or unit.header) or goes_on
            parts += _gap(source, before.end, unit.start, verbatim=plain)
        if not goes_on and unit.header:
            header = list(source.shown(*unit.header))
            headers.update(range(len(parts), len(parts) + len(header)))
            parts += [*header, "\n"]
        if not goes_on and unit.before:
            parts.append(unit.before)
        parts += _shown_dedented(source, unit)
    parts += [draft[-1].after] if draft[-1].after else []
    suspect = source.mdx or any(unit.part for unit in draft)
    return _assemble(source.text, parts, headers, suspect, (draft[0].start, draft[-1].end))


def _outdented(source: Source, draft: list[Unit]) -> list[Unit]:
    """A chunk begins without white space; what is indented with its first line moves left with it."""
    if draft[0].before or draft[0].header:
        return draft

    def indent_of(unit: Unit) -> int:
        opening = source.shown_text(unit.start, min(unit.end, unit.start + 1_000))[:1]
        return _indent_of(source.text[unit.start : unit.end]) if opening in (" ", "\t") else 0

    indents = list(takewhile(bool, map(indent_of, draft)))
    moved = [replace(unit, dedent=max(unit.dedent, indents[0]), part=True) for unit in draft[: len(indents)]]
    return moved + draft[len(indents) :]


def _gap(source: Source, start: int, end: int, verbatim: bool) -> list[Span | str]:
    """The white space between two units: the book's own, unless it is long or stands beside a line of ours."""
    gap = list(source.shown(start, end))
    if verbatim and end - start <= 2 and gap == ([(start, end)] if start < end else []):
        return gap
    newlines = source.text.count("\n", start, end)
    return ["\n\n" if newlines > 1 else "\n" if newlines or not verbatim else " "]


def _shown_dedented(source: Source, unit: Unit) -> Iterator[Span | str]:
    if not unit.dedent:
        yield from source.shown(unit.start, unit.end)
        return
    for start, end in _lines(source, unit.start, unit.end):
        at_line_start = start == source.starts[source.line_of(start) - 1]
        line = source.text[start:end]
        indent = min(unit.dedent, _indent_of(line)) if at_line_start else 0
        for part in source.shown(start, end):
            if isinstance(part, str):
                yield part.replace("\n" + " " * unit.dedent, "\n")
            elif part[1] > start + indent:
                yield max(part[0], start + indent), part[1]


def _assemble(text: str, parts: list[Span | str], headers: set[int], suspect: bool, whole_span: Span) -> _Rendered:
    pieces: list[Piece] = []
    written: list[str] = []
    at, hull = 0, []
    for number, part in enumerate(parts):
        shown = part if isinstance(part, str) else text[slice(*part)]
        if not at:
            stripped = shown.lstrip()
            part = part if isinstance(part, str) else (part[1] - len(stripped), part[1])
            shown = stripped
        if not shown:
            continue
        if not isinstance(part, str):
            _add_piece(pieces, Piece(at, part[0], len(shown)))
            hull += [] if number in headers else [part]
        written.append(shown)
        at += len(shown)
    whole = "".join(written).rstrip()
    pieces = [replace(piece, length=min(piece.length, len(whole) - piece.text_at)) for piece in pieces]
    pieces = [piece for piece in pieces if piece.length > 0]
    # A chunk of nothing but labels stands where their markers do.
    hull = hull or [whole_span]
    start = min(span[0] for span in hull)
    end = start + len(text[start : max(span[1] for span in hull)].rstrip())
    whole, pieces = _close_fences(whole, pieces) if suspect else (whole, pieces)
    return _Rendered(whole, tuple(pieces), start, end)


def _add_piece(pieces: list[Piece], piece: Piece) -> None:
    last = pieces[-1] if pieces else None
    if last and last.text_at + last.length == piece.text_at and last.source_at + last.length == piece.source_at:
        pieces[-1] = replace(last, length=last.length + piece.length)
    else:
        pieces.append(piece)


def _close_fences(text: str, pieces: list[Piece]) -> tuple[str, list[Piece]]:
    """Cut out of its list or its HTML, a line of backticks can open a listing that nothing closes."""
    for _ in range(3 if "```" in text or "~~~" in text else 0):
        lines = text.split("\n")
        still_open = list(open_fences(parse_blocks(lines)))
        if not still_open:
            break
        for block in reversed(still_open):
            above = "\n".join(lines[: block.end]).rstrip()
            opening = lines[block.first]
            closing = f"\n{fence_prefix(opening, block.mark)}{block.mark}"
            text = above + closing + text[len(above) :]
            pieces = [moved for piece in pieces for moved in _make_room(piece, len(above), len(closing))]
    return text, pieces


def _make_room(piece: Piece, at: int, length: int) -> Iterator[Piece]:
    kept = min(max(0, at - piece.text_at), piece.length)
    if kept:
        yield replace(piece, length=kept)
    if kept < piece.length:
        yield Piece(piece.text_at + kept + length, piece.source_at + kept, piece.length - kept)


def _build(
    lesson: Lesson,
    source: Source,
    draft: list[Unit],
    sections: list[Section],
    rendered: _Rendered,
    index: int,
    chain: list[str | None],
) -> Chunk:
    """`chain`: the ids of all chunks of the lesson, between two that are not there."""
    text, size = rendered.text, measure(rendered.text)
    # A chunk is named by the section of the first unit that is more than a heading.
    section = sections[next((unit.section for unit in draft if not unit.is_heading), draft[-1].section)]
    starts = {unit.section: unit.start for unit in reversed(draft)}
    own_titles = _without_repeats(((lesson.title,) if lesson.title_in_file else ()) + section.headings)
    embed_text = f"{' › '.join(own_titles)}\n{text}" if own_titles else text
    first_line, last_line = source.line_of(rendered.start), source.line_of(rendered.end - 1)
    return Chunk(
        **{name: getattr(lesson, name) for name in _OF_LESSON},
        **_name(lesson, section),
        id=str(chain[index + 1]),
        text=text,
        embed_text=embed_text,
        embed_hash=_sha256(embed_text),
        chunk_index=index,
        total_chunks=len(chain) - 2,
        prev_chunk_id=chain[index],
        next_chunk_id=chain[index + 2],
        content_hash=_sha256(text),
        source_file_hash=lesson.file_hash,
        word_count=size.words,
        token_count=size.tokens,
        char_count=size.chars,
        first_line=lesson.lines[first_line - 1] if lesson.lines else first_line,
        last_line=lesson.lines[last_line - 1] if lesson.lines else last_line,
        start=rendered.start,
        end=rendered.end,
        pieces=rendered.pieces,
        sections=tuple(SectionStart(at=at, **_name(lesson, sections[number])) for number, at in sorted(starts.items()))
        if len(starts) > 1
        else (),
    )


def _name(lesson: Lesson, section: Section) -> dict[str, Any]:
    above = (lesson.book_title, lesson.module_title, lesson.chapter_title, lesson.title)
    return {
        "section_title": section.headings[-1] if section.headings else None,
        "heading_path": _without_repeats(above + section.headings),
        "url": f"{lesson.url}#{section.anchor}" if section.anchor else lesson.url,
    }


def _make_ids(lesson: Lesson, texts: list[str]) -> list[str]:
    """The same text again in one lesson gets `:2`, `:3` … so that no two ids are equal."""
    seen: Counter[str] = Counter()
    ids: list[str] = []
    for text in texts:
        key = f"{lesson.identity}:{_sha256(text)[:16]}"
        seen[key] += 1
        ids.append(make_id(key if seen[key] == 1 else f"{key}:{seen[key]}"))
    return ids


def make_id(name: str) -> str:
    return str(uuid.uuid5(NAMESPACE, name))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _without_repeats(titles: tuple[str, ...]) -> tuple[str, ...]:
    kept: list[str] = []
    for title in titles:
        if title and (not kept or kept[-1].casefold() != title.casefold()):
            kept.append(title)
    return tuple(kept)
