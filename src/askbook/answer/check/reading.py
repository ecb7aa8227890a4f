"""A passage as sentences can lean on it: read once, then asked for words, numbers, names and code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from askbook.answer.check.claims import CODE_SPAN, Claim, Signs, read_claim, read_pieces, read_stems, to_plain
from askbook.answer.units import Unit, split_blocks, split_sentences

Span = tuple[int, int]
SHORT = 4
"""A sentence with so few words of content goes on with what was said before."""


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence, an item, a row or a listing: `chunk.text[start:end]`."""

    start: int
    end: int
    text: str
    claim: Claim
    kind: Literal["prose", "row", "code"] = "prose"
    context: frozenset[str] = frozenset()
    """Stems of what it points back to: the sentence before "it", the opening of its list."""

    def before(self, place: int) -> str:
        return self.text[: place - self.start]

    def behind(self, place: int) -> str:
        return self.text[place - self.start :]

    @property
    def pieces(self) -> tuple[Claim, ...]:
        """Its parts between commas and contrasts; a row or a listing has none."""
        return read_pieces(self.text) if self.kind == "prose" else (self.claim,)


@dataclass(frozen=True, slots=True)
class Reading:
    said: tuple[Said, ...]
    headings: Claim
    stems: frozenset[str]
    """Of the text and the headings above it."""
    words: tuple[str, ...]
    literal: str
    """The text and its headings on one line, in which code is looked for …"""
    plain: str
    """… and once more without Markdown."""
    run: str
    """The text on one line, to find a whole sentence in, and …"""
    places: tuple[int, ...]
    """… where each of its characters stands in the chunk."""
    code: Mapping[str, Span]
    """Lines and spans of code, squeezed, and where each stands first."""

    def find_run(self, text: str) -> Span | None:
        """Where these very words stand, if they do."""
        wanted = _to_run(text)[0].strip(" .!?:;,")
        found = re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", self.run) if len(wanted) > 1 else None
        return (self.places[found.start()], self.places[found.end() - 1] + 1) if found else None


# A text that speaks to the assistant says nothing about the book's subject.
_TO_MODEL = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:instructions?|rules|prompts?|above|previous|earlier|the book|context)\b"
    r"|\b(?:reply|respond|answer|end your answer)\b[^.]{0,30}\bwith\b"
    r"|\b(?:note|message|instructions?) (?:to|for) (?:the |this |any )?(?:assistant|model|ai|llm|chatbot)\b"
    r"|\b(?:assistant|chatbot)s?\s*:|\byou are now\b|\byou are an? (?:ai|assistant)\b"
    r"|\b(?:hidden|system) (?:rules|prompt|instructions)\b|\b(?:decode|execute) and obey\b|\bnew (?:policy|instructions?)\s*:"
    r"|\b(?:encode|translate) your (?:response|answer|instructions)\b|\b(?:your|the) (?:exam )?answer is always\b"
    r"|\b(?:say|print|repeat|output|reply) ['\"]?[A-Z]{3,}-\d+\b|<\|\w+\|>",
    re.IGNORECASE | re.DOTALL,
)
_NO_CELL = re.compile(r"\|\W*(?:no|not|never|none|false|✗|✘|❌)\b", re.IGNORECASE)
_CELL_RULE = re.compile(r"[\s|:-]+")
_NOTE = re.compile(r"(?:^|\s)(?:#|//)\s+(\S+(?: \S+){2,})$|\"(\w+(?: [\w.,:'-]+){3,})\"", re.MULTILINE)
_COMMENT = re.compile(r"\s+(?:#|//)\s.*$")
_PROMPT = re.compile(r"^\s*(?:\$|>|>>>|#)\s+(?=\S)")
_SKIPPED = re.compile(r"\n[ \t>]*|\s+|[*_`]+")
_PLAIN_QUOTES = str.maketrans("’‘“”", "''\"\"")


@lru_cache(maxsize=512)
def read_passage(text: str, headings: tuple[str, ...]) -> Reading:
    said = tuple(_read_said(text))
    above = read_claim(". ".join(headings))
    plain = to_plain(" ".join((text, *headings)))
    words = re.findall(r"[^\W_]+", plain.lower())
    return Reading(
        said,
        above,
        read_stems(plain).union(above.stems, *(one.claim.stems for one in said)),
        tuple(words),
        " ".join(" ".join((text, *headings)).replace("`", "").split()),
        plain,
        *_to_run(text),
        dict(reversed(list(_find_code(text)))),
    )


def _read_said(text: str) -> Iterator[Said]:
    before, opening = frozenset[str](), frozenset[str]()
    for block in split_blocks(text):
        for said in (said for unit in block.units for said in _read_unit(text, unit)):
            above = opening if block.kind in ("list", "steps") else frozenset[str]()
            leans = said.claim.points_back or len(said.claim.stems) <= SHORT
            yield replace(said, context=above | before if leans else above)
            before = said.claim.stems
            if block.kind == "prose":
                opening = before if said.text.rstrip().endswith(":") else frozenset[str]()


def _read_unit(text: str, unit: Unit) -> Iterator[Said]:
    match unit.kind:
        case "table":
            yield from _read_rows(text, unit.start, unit.end)
        case "code":
            listing = text[unit.start : unit.end]
            yield Said(unit.start, unit.end, listing, _without_order(read_claim(listing), False), "code")
            for note in _NOTE.finditer(listing):
                start, end = note.span(1) if note[1] else note.span(2)
                yield Said(unit.start + start, unit.start + end, listing[start:end], read_claim(listing[start:end]))
        case _:
            for start, end in split_sentences(text[unit.start : unit.end]):
                sentence = text[unit.start + start : unit.start + end]
                if not _TO_MODEL.search(sentence):
                    yield Said(unit.start + start, unit.start + end, sentence, read_claim(sentence))


def _read_rows(text: str, start: int, end: int) -> Iterator[Said]:
    """Each row with the head of the table, without which its cells name nothing."""
    head = text[start:end].partition("\n")[0]
    for row in re.finditer(r"[^\n]+", text[start:end]):
        line = row[0].strip()
        if not _CELL_RULE.fullmatch(line) and not _TO_MODEL.search(line):
            at = start + row.start() + row[0].find(line)
            claim = _without_order(read_claim(f"{head} | {line}"), _NO_CELL.search(line) is not None)
            yield Said(at, at + len(line), line, claim, "row")


def _without_order(claim: Claim, may_deny: bool) -> Claim:
    """The order of words in code and cells denies and compares nothing; a cell with "no" may deny any other."""
    signs = {
        stem: replace(signs, either=1) if may_deny else signs if stem.startswith("~") else Signs(plus=1)
        for stem, signs in claim.signs.items()
    }
    denied = claim.stems if may_deny else frozenset[str]()
    return replace(claim, signs=signs, denied=denied, comparisons=())


def _to_run(text: str) -> tuple[str, tuple[int, ...]]:
    """White space as one blank, without the signs of emphasis and code, and where each character stood."""
    characters: list[str] = []
    places: list[int] = []
    at = 0
    for skipped in _SKIPPED.finditer(text):
        characters += text[at : skipped.start()]
        places += range(at, skipped.start())
        if skipped[0][0].isspace() and characters[-1:] != [" "]:
            characters.append(" ")
            places.append(skipped.start())
        at = skipped.end()
    characters += text[at:]
    places += range(at, len(text))
    return "".join(characters).translate(_PLAIN_QUOTES), tuple(places)


def _find_code(text: str) -> Iterator[tuple[str, Span]]:
    for line in re.finditer(r"[^\n]+", text):
        if not _TO_MODEL.search(line[0]):
            yield from ((form, line.span()) for form in squeeze_code(line[0]))
    for span in CODE_SPAN.finditer(text):
        yield from ((form, span.span(2)) for form in squeeze_code(span[2]))


def squeeze_code(line: str) -> Iterator[str]:
    """A line as it is compared: without white space, and also without a prompt before it or a comment behind."""
    for form in (line, _COMMENT.sub("", line), _PROMPT.sub("", line)):
        # What was escaped for the model is the book's own again.
        yield re.sub(r"\s+", "", form).replace("‹", "<")
