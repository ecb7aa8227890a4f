"""The marks by which an answer cites: `[1]`, `[1, 2]`, `【1】`, "(from Chapter 2: Installation › Prerequisites)"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from askbook.domain import Passage

MARK_CHARS = 160
MOST_NUMBERS = 20

_NUMBERS = r"\[\^?\d{1,3}(?:\s?[,;]\s?\^?\d{1,3}|\s?[–-]\s?\d{1,3}){0,12}\](?:\([^()\s]{0,160}\))?"
_LENTICULAR = r"【\d{1,3}[^】\n]{0,80}】"
_HEADING = r"\((?:from|source:?|sources:?|see|in)\s[^()\n]{2,150}\)"
_MARK = re.compile(
    rf"(?P<numbers>{_NUMBERS}|{_LENTICULAR})|(?P<heading>{_HEADING})",
    re.IGNORECASE,
)
_CODE_OR_MARK = re.compile(rf"(?P<ticks>`+)(?!`)[^\n]+?(?<!`)(?P=ticks)(?!`)|{_MARK.pattern}", re.IGNORECASE)
_UNFINISHED = re.compile(rf"\[[\^\d\s,;–-]{{0,{MARK_CHARS}}}|【[^】\n]{{0,84}}|\([^()\n]{{0,{MARK_CHARS}}}")
_REFERENCE = re.compile(r"[›»]|\b(?:chapter|section|lesson|module|page|part)\b", re.IGNORECASE)
_LEAD = re.compile(r"\((?:from|source:?|sources:?|see|in)\s", re.IGNORECASE)
_NUMBERING = re.compile(r"^(?:chapter|module|lesson|section|part)\s+[\w.]+\s*[:.–-]\s*|[\"'“”*_`]", re.IGNORECASE)
_STEP = re.compile(r"\s*(?:[›»>]|::)\s*")


@dataclass(frozen=True, slots=True)
class Mark:
    """What one mark points to: numbers, or the way to a heading."""

    written: str
    numbers: tuple[int, ...] = ()
    heading: tuple[str, ...] = ()


Part = str | Mark


def unlink_marks(text: str) -> str:
    """`[1](https://…)` is the mark alone."""
    return re.sub(r"(\[\^?\d{1,3}\])\([^()\s]*\)", r"\1", text)


def split_marks(text: str) -> list[Part]:
    """The text and the marks in it, in order. Brackets inside code are code."""
    parts: list[Part] = []
    at = 0
    for found in _CODE_OR_MARK.finditer(text):
        if found["ticks"]:
            continue
        if at < found.start():
            parts.append(text[at : found.start()])
        parts.append(_to_mark(found))
        at = found.end()
    return [*parts, text[at:]] if at < len(text) else parts


def _to_mark(found: re.Match[str]) -> Mark:
    if found["heading"]:
        way = _LEAD.sub("", found[0])[:-1]
        return Mark(found[0], heading=tuple(map(_normal, _STEP.split(way.strip()))))
    return Mark(found[0], numbers=tuple(dict.fromkeys(_read_numbers(found[0]))))


def _read_numbers(mark: str) -> list[int]:
    if mark.startswith("【"):
        return [int(re.findall(r"\d+", mark)[0])]
    numbers: list[int] = []
    for first, last in re.findall(r"(\d+)(?:\s?[–-]\s?(\d+))?", mark.partition("]")[0]):
        numbers += range(int(first), min(int(last or first), int(first) + MOST_NUMBERS) + 1)
    return numbers


def resolve_marks(parts: Sequence[Part], numbered: Mapping[int, Passage]) -> list[Part]:
    """Marks of passages that there are. A heading that is none is text again, unless it can only have been a mark."""
    resolved = [_resolve(part, numbered) if isinstance(part, Mark) else part for part in parts]
    return [part for part in resolved if part != ""]


def _resolve(mark: Mark, numbered: Mapping[int, Passage]) -> Part:
    if not mark.heading:
        return Mark(mark.written, tuple(number for number in mark.numbers if number in numbered))
    numbers = tuple(number for number, one in numbered.items() if _leads_to(mark.heading, one.chunk.heading_path))
    if numbers:
        return Mark(mark.written, numbers)
    return Mark(mark.written) if _REFERENCE.search(mark.written) else mark.written


def _leads_to(way: Sequence[str], path: Sequence[str]) -> bool:
    """Every step of the way is on the path, in its order."""
    steps = iter(map(_normal, path))
    return all(any(step == wanted for step in steps) for wanted in way)


def _normal(step: str) -> str:
    return " ".join(_NUMBERING.sub("", step.strip()).casefold().split())


def cited_numbers(parts: Iterable[Part]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(number for part in parts if isinstance(part, Mark) for number in part.numbers))


def without_marks(parts: Iterable[Part]) -> str:
    return write_marks(parts, {})


def write_marks(parts: Iterable[Part], shown: Mapping[int, int]) -> str:
    """The text with each mark as its number is shown; a number that is not shown leaves no trace."""
    text = ""
    for part in parts:
        if isinstance(part, str):
            text = text.rstrip(" ") + part if not part[:1].isalnum() and text.endswith(" ") else text + part
            continue
        marks = "".join(f"[{number}]" for number in dict.fromkeys(shown[one] for one in part.numbers if one in shown))
        text += marks
    return text.rstrip()


def find_marks_end(text: str, at: int, final: bool) -> int | None:
    """Behind the marks that follow on this line; None while more text could make another one."""
    end = at
    while True:
        start = at + len(text[at:]) - len(text[at:].lstrip(" \t"))
        found = _MARK.match(text, start)
        if found is None:
            open_end = start == len(text) or _UNFINISHED.fullmatch(text, start) is not None
            return None if open_end and not final else end
        at = end = found.end()


def find_marks_line(text: str, at: int, final: bool) -> int | None:
    """As above for a line that holds nothing but marks; `at` where it holds anything else."""
    start = at + len(text[at:]) - len(text[at:].lstrip())
    if start == len(text):
        return at if final else None
    if text[start] not in "[【":
        return at
    end = find_marks_end(text, start, final)
    if end is None or end == start:
        return end if end is None else at
    return end if end == len(text) or text[end:].lstrip(" \t").startswith("\n") else at
