"""How well answers are checked, on the demo book: `python bench/citations.py`.

Sentences of the book must be kept, also in other words; what was changed in them, or cited to the wrong place, must be caught.
"""

from __future__ import annotations

import random
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path

from askbook.answer.citations import check_sentence
from askbook.book.chunker import split_lesson
from askbook.book.reader import read_book, read_lessons
from askbook.domain import Chunk, Passage

FOLDER = Path(str(files("askbook") / "demo" / "physical-ai-robotics"))
SENTENCES = 400
PASSAGES = 5
Change = Callable[[str], str]


def swap(*pairs: tuple[str, str]) -> Change:
    """The first of these words that a sentence has, replaced; the sentence itself where it has none."""

    def change(sentence: str) -> str:
        for one, other in pairs:
            changed = re.sub(rf"(?<![\w`-]){one}(?![\w`-])", other, sentence, count=1)
            if changed != sentence:
                return changed
        return sentence

    return change


def front(sentence: str) -> str:
    return re.sub(r"^(If|When|Because|While) ([^,]{12,}), (.)(.+)\.$", _to_front, sentence)


def _to_front(found: re.Match[str]) -> str:
    return f"{found[3].upper()}{found[4]} {found[1].lower()} {found[2]}."


KEPT: dict[str, Change] = {
    "first clause alone": lambda one: re.sub(r"(.{30,}?)(?:; |, and |, so |, which |, but ).+", r"\1.", one),
    "clauses turned round": front,
    "adverbs dropped": lambda one: re.sub(r"\b(?!only|rely|apply|supply|fly)[a-z]+ly ", "", one),
    "other words": swap(("uses", "employs"), ("shows", "displays"), ("called", "named"), ("because", "since"), ("often", "frequently")),
    "as digits": swap(*((word, str(at)) for at, word in enumerate(["two", "three", "four", "five", "six"], start=2))),
    "contracted": swap(("does not", "doesn't"), ("is not", "isn't"), ("cannot", "can't"), ("do not", "don't")),
}  # fmt: skip
CAUGHT: dict[str, Change] = {
    "number": lambda one: re.sub(r"(?<![\w.`/-])(\d+)(?![\w.`])", lambda found: f"{int(found[1]) * 3 + 4}", one, count=1),
    "unit": lambda one: re.sub(r"(?<=\d )(?:ms|s|cm|m|Hz|GB)\b", lambda found: {"s": "ms", "m": "cm"}.get(found[0], "s"), one, count=1),
    "“not” dropped": swap(("does not", "does"), ("is not", "is"), ("cannot", "can"), ("do not", "do"), ("never", "always"), ("without", "with")),
    "“not” added": lambda one: one if re.search(r"\bn[o']t?\b|never|without", one) else swap(("is", "is not"), ("are", "are not"), ("can", "cannot"))(one),
    "comparison": swap(("more", "less"), ("faster", "slower"), ("larger", "smaller"), ("at least", "at most"), ("before", "after"), ("higher", "lower"), ("first", "last")),
    "identifier": lambda one: re.sub(r"`(\w*)([a-z])(\w*)`", r"`\1\2x\3`", one, count=1),
    "name": lambda one: re.sub(r"(?<=[a-z] )[A-Z][a-z]{3,}\b", "Toyota", one, count=1),
}  # fmt: skip


def find_sentences(chunk: Chunk) -> Iterator[str]:
    text = re.sub(r"```.*?```", "", chunk.text, flags=re.DOTALL)
    for paragraph in re.split(r"\n\s*\n", text):
        if paragraph.strip() and paragraph.strip()[0].isalpha():
            for sentence in re.split(r"(?<=[.!])\s+(?=[A-Z])", " ".join(paragraph.split())):
                if 6 <= len(sentence.split()) <= 40 and sentence.endswith(".") and "](" not in sentence:
                    yield sentence


def main() -> None:
    lessons, _ = read_lessons(FOLDER, read_book(FOLDER))
    chunks = [chunk for lesson in lessons for chunk in split_lesson(lesson)]
    chance = random.Random(1)
    cases = [(sentence, chunk) for chunk in chunks for sentence in find_sentences(chunk)]
    counts: dict[str, list[bool]] = defaultdict(list)
    times: list[float] = []

    def check(name: str, sentence: str, numbered: dict[int, Passage], kept: bool) -> None:
        started = time.perf_counter()
        checked = check_sentence(f"{sentence[:-1]} [1].", numbered)
        times.append(time.perf_counter() - started)
        counts[name].append(bool(checked.quotes) == kept)

    for sentence, chunk in chance.sample(cases, min(SENTENCES, len(cases))):
        others = [one for one in chance.sample(chunks, PASSAGES + 2) if sentence[:40] not in " ".join(one.text.split())]
        numbered = {at: Passage(one, 1.0, at) for at, one in enumerate([chunk, *others[: PASSAGES - 1]], start=1)}
        check("kept: verbatim", sentence, numbered, kept=True)
        for kept, changes in ((True, KEPT), (False, CAUGHT)):
            for name, change in changes.items():
                if (changed := change(sentence)) != sentence and len(changed.split()) > 4:
                    check(f"{'kept' if kept else 'caught'}: {name}", changed, numbered, kept)
        wrong = {at: Passage(one, 1.0, at) for at, one in enumerate(others[:PASSAGES], start=1)}
        check("caught: wrong passage", sentence, wrong, kept=False)

    for name, right in sorted(counts.items(), reverse=True):
        print(f"{name:28} {sum(right) / len(right):.3f}  of {len(right)}")
    print(f"{sorted(times)[len(times) // 2] * 1000:.1f} ms a sentence (median of {len(times)})")


if __name__ == "__main__":
    main()
