"""The marks by which an answer cites: `[1]`, `[1, 2]`, `【1】`. "(from Chapter 2: Installation)" is one, unnumbered."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence

MOST_NUMBERS = 20

_NUMBERS = (
    r"\[\^?\d{1,3}(?:\s?[,;]\s?\^?\d{1,3}|\s?[–-]\s?\d{1,3}){0,12}\](?:\([^()\s]{0,160}\))?|【\d{1,3}[^】\n]{0,80}】"
)
_KIND = r"(?:[›»]|\b(?:chapter|section|lesson|module|page|part)\b)"
_PLACE = rf"\((?:sources?:\s|(?:from|see|in)\s(?=[^()\n]{{0,150}}{_KIND}))[^()\n]{{2,150}}\)"
_MARK = re.compile(rf"(?P<numbers>{_NUMBERS})|{_PLACE}", re.IGNORECASE)
_CODE_OR_MARK = re.compile(rf"(?<!`)(?P<ticks>`++)[^\n]+?(?<!`)(?P=ticks)(?!`)|{_MARK.pattern}", re.IGNORECASE)
CODE = r"(?<!`)(?P<ticks>`++).+?(?<!`)(?P=ticks)(?!`)|^[ \t]*+(?P<tildes>~{3,}+)[^\n]*+\n.*?^[ \t]*+(?P=tildes)"
_CODE_OR_SHOWN = re.compile(
    rf"(?P<code>{CODE})|(?<!\s)\s*+(?<!\\)\[\d{{1,3}}(?:, ?\d{{1,3}})*\](?!\()", re.DOTALL | re.MULTILINE
)
_NEXT_LINE = re.compile(r"[ \t]*+\n\s*+")
_UNFINISHED = re.compile(r"\[[\^\d\s,;–-]{0,160}|【[^】\n]{0,84}|\([^()\n]{0,160}")

Mark = tuple[int, ...]
Part = str | Mark


def read_marks(text: str, numbered: Container[int]) -> list[Part]:
    """The text and its marks of known passages. Brackets inside code are code."""
    parts: list[Part] = []
    at = 0
    for found in _CODE_OR_MARK.finditer(text):
        if not found["ticks"]:
            mark = tuple(number for number in _read_numbers(found["numbers"] or "") if number in numbered)
            parts += [text[at : found.start()], mark]
            at = found.end()
    return [part for part in (*parts, text[at:]) if part != ""]


def drop_marks(text: str) -> str:
    """An answer without its marks. Brackets in code and escaped brackets stay."""
    return _CODE_OR_SHOWN.sub(lambda found: found["code"] or "", text)


def _read_numbers(mark: str) -> Iterable[int]:
    if mark.startswith("【"):
        return [int(re.findall(r"\d+", mark)[0])]
    ranges = re.findall(r"(\d+)(?:\s?[–-]\s?(\d+))?", mark.partition("]")[0])
    spread = (range(int(first), min(int(last or first), int(first) + MOST_NUMBERS) + 1) for first, last in ranges)
    return dict.fromkeys(number for numbers in spread for number in numbers)


def unlink_marks(text: str) -> str:
    """`[1](https://…)` is the mark alone."""
    return re.sub(r"(\[\^?\d{1,3}\])\([^()\s]*\)", r"\1", text)


def cited_numbers(parts: Iterable[Part]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(number for part in parts if not isinstance(part, str) for number in part))


def keep_marks(parts: Sequence[Part], cites: Sequence[int]) -> tuple[Part, ...]:
    """Marks of these passages stay; passages without one get it at the end."""
    kept = [part if isinstance(part, str) else tuple(number for number in part if number in cites) for part in parts]
    unmarked = tuple(cite for cite in cites if cite not in cited_numbers(kept))
    if len(unmarked) < len(cites):
        return (*kept, unmarked)
    # Before the full stop, or in the last cell of a row.
    text = without_marks(kept)
    end = re.search(r"\s*\|\s*$" if text.startswith("|") else r"[.!?…]*[*_]*$", text)
    at = end.start() if end else len(text)
    return (f"{text[:at]} ", unmarked, f" {text[at:].strip()}" if text.startswith("|") else text[at:])


def without_marks(parts: Iterable[Part]) -> str:
    return write_marks(parts, {})


def write_marks(parts: Iterable[Part], shown: Mapping[int, int]) -> str:
    """The text with the numbers that readers see; marks without one disappear."""
    text = ""
    for part in parts:
        if isinstance(part, str):
            text = text.rstrip(" ") + part if not part[:1].isalnum() and text.endswith(" ") else text + part
        else:
            text += "".join(f"[{number}]" for number in dict.fromkeys(shown[mark] for mark in part if mark in shown))
    return text.rstrip()


# --- where marks end, in a text that is still coming ----------------------------------------------


def find_marks(text: str, at: int, final: bool) -> int | None:
    """The end of the marks that follow, on this line or alone below it; None while more text could add one."""
    end = _find_marks_here(text, at, final)
    below = _NEXT_LINE.match(text, at)
    if end is None or end > at or below is None:
        return end
    if below.end() == len(text):
        return at if final else None
    end = _find_marks_here(text, below.end(), final) if text[below.end()] in "[【" else below.end()
    if end is None or end == below.end():
        return None if end is None else at
    return end if end == len(text) or text[end:].lstrip(" \t").startswith("\n") else at


def _find_marks_here(text: str, at: int, final: bool) -> int | None:
    end = at
    while True:
        start = len(text) - len(text[at:].lstrip(" \t"))
        found = _MARK.match(text, start)
        if found is None:
            open_end = start == len(text) or _UNFINISHED.fullmatch(text, start) is not None
            return None if open_end and not final else end
        at = end = found.end()
