"""A passage prepared for the check: its premise, its literals and its sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from askbook.answer.check.literals import read_stems, to_plain
from askbook.answer.units import Span, Unit, may_quote, split_blocks
from askbook.domain import Chunk

NEAR = 4
"""How many sentences a statement is also read against: in a long passage the reader overlooks differences."""

# A text that speaks to the assistant says nothing about the book's subject.
_TO_MODEL = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b.{0,40}"
    r"\b(?:instructions?|rules|prompts?|above|previous|earlier|the book|context)\b"
    r"|(?:^|[.!?:;,\"'(\[>*—-]\s*|\b(?:please|you must|you should)\s+)"
    r"(?:reply|respond|answer|end your answer)\b[^.]{0,30}\bwith\b"
    r"|\b(?:note|message|instructions?) (?:to|for) (?:the |this |any )?(?:assistant|model|ai|llm|chatbot)\b"
    r"|\b(?:assistant|chatbot)s?\s*:|\byou are now\b|\byou are an? (?:ai|assistant)\b"
    r"|\b(?:hidden|system) (?:rules|prompt|instructions)\b|\b(?:decode|execute) and obey\b"
    r"|\bnew (?:policy|instructions?)\s*:"
    r"|\b(?:encode|translate) your (?:response|answer|instructions)\b|\b(?:your|the) (?:exam )?answer is always\b"
    r"|\b(?:say|print|repeat|output|reply) ['\"]?[A-Z]{3,}-\d+\b|<\|\w+\|>",
    re.IGNORECASE | re.DOTALL,
)
_CELL_RULE = re.compile(r"[\s|:-]+")


@dataclass(frozen=True, slots=True)
class Read:
    """A passage without text that speaks to the assistant or that no reader sees."""

    text: str
    premise: str
    """Its headings and its text, as the reader was taught to read it."""
    literal: str
    """The same on one line, once without Markdown and once as it is, to look for literals."""
    sentences: tuple[Span, ...]
    """Sentences, items, table rows and code lines, as places in `text`."""

    def find_verbatim(self, statement: str) -> Span | None:
        """Where these very words are a whole sentence, so that no context can change their meaning."""
        wanted = _strip(statement)
        return next((span for span in self.sentences if _strip(self.text[slice(*span)]) == wanted), None)

    def find_nearest(self, statement: str) -> Span:
        """The sentence that shares most words with it, and its neighbour if that has some of the rest."""
        near = self.pick(statement, 2)
        spans = [self.sentences[at] for at in (near if len(near) == 2 and abs(near[0] - near[1]) == 1 else near[:1])]
        return (min(spans)[0], max(spans)[1]) if spans else (0, len(self.text))

    def pick(self, statement: str, count: int) -> list[int]:
        """The sentences with most of its words, each adding some."""
        missing = read_stems(to_plain(statement))
        stems = [read_stems(self.text[start:end]) for start, end in self.sentences]
        picked: list[int] = []
        while missing and stems and len(picked) < count:
            near = picked[0] if picked else 0
            best = max(range(len(stems)), key=lambda at: (len(missing & stems[at]), -abs(at - near)))
            if not missing & stems[best]:
                break
            picked.append(best)
            missing -= stems[best]
        return picked

    def narrow(self, statement: str) -> str:
        """The premise with only the sentences nearest to the statement."""
        near = "\n".join(self.text[slice(*self.sentences[at])] for at in sorted(self.pick(statement, NEAR)))
        return f"{self.premise.partition(chr(10))[0]}\n{near}"


def read_passage(chunk: Chunk) -> Read:
    return _read(chunk.text, chunk.heading_path)


@lru_cache(maxsize=512)
def _read(text: str, headings: tuple[str, ...]) -> Read:
    spans = [span for block in split_blocks(text) for unit in block.units for span in _split(text, unit)]
    others = [line for line in _lines(text, 0, len(text)) if not any(_meet(line, span) for span in spans)]
    hidden = [line for line in others if not may_quote(text[slice(*line)])]
    orders = [*hidden, *(span for span in (*spans, *others) if _TO_MODEL.search(text[slice(*span)]))]
    sentences = tuple(span for span in spans if not any(_meet(span, order) for order in orders))
    kept = list(text)
    for start, end in orders:
        kept[start:end] = " " * (end - start)
    premise = f"{' › '.join(headings)}\n{''.join(kept)}"
    literal = f"{to_plain(premise)} {' '.join(premise.replace('`', '').split())}"
    return Read(text, premise, literal, sentences)


def _split(text: str, unit: Unit) -> Iterator[Span]:
    match unit.kind:
        case "table":
            lines = _lines(text, unit.start, unit.end)
            yield from (line for line in lines if not _CELL_RULE.fullmatch(text[slice(*line)]))
        case "code":
            yield from _lines(text, unit.start, unit.end)
        case _:
            yield unit.start, unit.end


def _lines(text: str, start: int, end: int) -> Iterator[Span]:
    return (found.span() for found in re.compile(r"[^\s][^\n]*").finditer(text, start, end))


def _meet(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]


@lru_cache(maxsize=8192)
def _strip(sentence: str) -> str:
    return to_plain(sentence).strip(" .!?:;,|")
