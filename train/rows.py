"""Data → rows: a question or a statement beside a passage, and what is known of the two."""

from __future__ import annotations

import gzip
import json
import lzma
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from choices import read_choices, speak
from statements import make_pair, split_sentences

HELD_SOURCES = ("fastapi/fastapi", "philschatz/astronomy-book", "prometheus/docs", "helm/helm-www")
"""Sources of contrast data that are validated on, and never trained on."""
HELD_SETS = ("clapnq_dev", "timeqa")
CHOICE_GROUPS, MADE_GROUPS = 500_000, 1_000_000
"""Groups of choices and of made statements are numbered from here, those of contrast data below."""
OWN = Path(__file__).parent / "contrast.jsonl.gz"
OWN_SOURCE = "askbook"
"""Of passages that were written for this, about things that do not exist."""

Task = Literal["question", "statement"]
PARTS = ("question", "claim", "nli", "contrast", "own", "choice", "neighbour", "made", "mined", "free")


@dataclass(frozen=True, slots=True)
class Row:
    text: str
    passage: str
    task: Task
    label: float | None
    """1: answered, or supported; 0: not; between: perhaps; None: only the teacher says."""
    span: tuple[int, int] | None = None
    """Where the answer stands, in characters of the passage."""
    group: int = -1
    """Rows of one group are about one passage, or of one question, and are trained against each other."""
    kind: str = ""
    part: str = "question"
    """One of PARTS: what an ablation leaves out."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """A passage, and what a careful reader wrote about it."""

    id: str
    source: str
    title: str
    heading: str
    text: str
    qa: list[list[str]]
    no: list[str]
    true: list[str]
    false: list[list[str]]
    twins: list[list[str]] = field(default_factory=list)
    """[true statement, false statement, kind]: alike but for the one thing that is wrong."""

    def rows(self) -> Iterator[Row]:
        for question, answer in self.qa:
            at = self.text.find(answer)
            yield Row(question, self.text, "question", 1, (at, at + len(answer)) if at >= 0 else None, kind="answered")
        for question in self.no:
            yield Row(question, self.text, "question", 0, kind="near miss")
        for statement in (*self.true, *(pair[0] for pair in self.twins)):
            yield Row(statement, self.text, "statement", 1, kind="true")
        for statement, kind in (*self.false, *(pair[1:] for pair in self.twins)):
            yield Row(statement, self.text, "statement", 0, kind=kind)


def read_contrast(data: Path) -> list[Contrast]:
    """Each passage, and each answer in it, as the product reads it."""
    known = set(Contrast.__dataclass_fields__)
    found = []
    for file in (data / "contrast.jsonl.gz", OWN):
        if file.exists():
            with gzip.open(file, "rt", encoding="utf-8") as lines:
                found += [Contrast(**{k: v for k, v in json.loads(line).items() if k in known}) for line in lines]
    return [
        replace(one, text=speak(one.text), qa=[[question, speak(answer)] for question, answer in one.qa])
        for one in found
    ]


def is_for_calibration(one: Contrast) -> bool:
    """One passage in twenty, of the sources that are trained on: the chances are fitted to them."""
    return one.source not in HELD_SOURCES and int(one.id, 16) % 20 == 0


def read_questions(data: Path, held: bool) -> list[Row]:
    with lzma.open(data / "mix_ok.json.xz", "rt", encoding="utf-8") as opened:
        mix = json.load(opened)
    rows = []
    for question, number, answers, label, source in mix["rows"]:
        if (source in HELD_SETS) == held:
            spans = [(at, at + len(answer)) for answer, at in answers if answer and at is not None and at >= 0]
            span = spans[0] if spans else None
            rows.append(Row(question, mix["passages"][number], "question", int(label == "answer"), span, kind=source))
    return rows


@dataclass(frozen=True, slots=True)
class Recipe:
    """How much of what."""

    questions: int = 120_000
    made: int = 12_000
    """Pairs of statements made from the passages' own sentences."""
    copies: int = 2
    """How often a contrast passage comes, each time in another shape."""
    shaped: bool = True
    """Headings before a passage, and a second passage around it, as an index cuts them."""
    free: int = 30_000
    """Questions beside a near passage: so many with a label, and so many that the teacher alone labels."""
    seed: int = 0


def build_rows(data: Path, recipe: Recipe) -> list[Row]:
    rng = random.Random(recipe.seed)
    everything = read_contrast(data)
    contrast = [one for one in everything if one.source not in HELD_SOURCES and not is_for_calibration(one)]
    held = {piece for one in everything if one.source in HELD_SOURCES for piece in shingles(one.text)}
    questions = [row for row in read_questions(data, held=False) if held.isdisjoint(shingles(row.passage))]
    rng.shuffle(questions)
    questions = questions[: recipe.questions]
    passages = [one.text for one in contrast] * 3 + sorted({row.passage for row in questions})
    rows = [
        *questions,
        *_make_claims(questions, rng),
        *_read_nli(data, rng),
        *_shape_contrast(contrast, recipe.copies, recipe.shaped, rng),
        *_list_choices(),
        *_borrow(contrast, rng),
        *_make_statements(passages, recipe.made, rng),
        *_mine_rows(questions, recipe.free, rng),
    ]
    rng.shuffle(rows)
    return rows


# --- contrast data --------------------------------------------------------------------------------


def _shape_contrast(contrast: list[Contrast], copies: int, shaped: bool, rng: random.Random) -> Iterator[Row]:
    for number, one in enumerate(contrast * copies):
        before = after = ""
        if shaped and rng.random() < 0.3:
            stranger = rng.choice(contrast).text[: rng.randint(100, 900)]
            before, after = (f"{stranger}\n\n", "") if rng.random() < 0.5 else ("", f"\n\n{stranger}")
        if shaped and rng.random() < 0.5:
            before = f"{one.title} › {one.heading}\n{before}"
        for row in one.rows():
            yield replace(
                row,
                passage=before + row.passage + after,
                span=(row.span[0] + len(before), row.span[1] + len(before)) if row.span else None,
                group=2 * number + (row.task == "statement"),
                part="own" if one.twins else "contrast",
            )


def _list_choices() -> Iterator[Row]:
    for number, choice in enumerate(read_choices(held=False)):
        for one in choice.excerpts:
            yield Row(choice.question, one.text, "question", one.label, group=CHOICE_GROUPS + number, part="choice")


def _borrow(contrast: list[Contrast], rng: random.Random) -> Iterator[Row]:
    """What is true of another passage of the same source is not said by this one."""
    by_source = defaultdict(list)
    for one in contrast:
        by_source[one.source].append(one)
    for one in contrast:
        other = rng.choice(by_source[one.source])
        if other.title == one.title:
            continue
        stated = [*other.true, *(pair[0] for pair in other.twins), *split_sentences(other.text)]
        for statement in rng.sample(stated, min(2, len(stated))):
            yield Row(statement, one.text, "statement", 0, kind="neighbour", part="neighbour")
        yield Row(rng.choice(other.qa)[0], one.text, "question", 0, kind="neighbour", part="neighbour")


def _make_statements(passages: list[str], count: int, rng: random.Random) -> Iterator[Row]:
    rng.shuffle(passages)
    group = MADE_GROUPS
    for passage in passages:
        sentences = split_sentences(passage)
        for sentence in rng.sample(sentences, min(2, len(sentences))):
            pair = make_pair(sentence, passage, sentences, rng)
            if pair and count > 0:
                count -= 1
                group += 1
                yield Row(pair[0], passage, "statement", 1, group=group, kind="made", part="made")
                yield Row(pair[1], passage, "statement", 0, group=group, kind="made", part="made")


# --- published sets -------------------------------------------------------------------------------


def _make_claims(questions: Iterable[Row], rng: random.Random) -> Iterator[Row]:
    """A question with its answer behind it is a claim; with the answer of another question it is a false one."""
    by_passage = defaultdict(list)
    for row in questions:
        if row.span:
            by_passage[row.passage].append((row, row.passage[slice(*row.span)]))
    for passage, answered in by_passage.items():
        for row, answer in answered:
            if rng.random() < 0.25:
                yield Row(f"{row.text} {answer}", passage, "statement", 1, kind="claim", part="claim")
            other, wrong = rng.choice(answered)
            apart = answer.lower() not in wrong.lower() and wrong.lower() not in answer.lower()
            if other is not row and apart and rng.random() < 0.5:
                yield Row(f"{row.text} {wrong}", passage, "statement", 0, kind="claim", part="claim")


def _read_nli(data: Path, rng: random.Random) -> Iterator[Row]:
    with gzip.open(data / "nli.json.gz", "rt", encoding="utf-8") as opened:
        pairs = json.load(opened)
    premises = [premise for premise, *_ in pairs]
    for premise, claim, label, source in pairs:
        if source == "snli" and rng.random() < 0.4:
            continue
        if source not in ("fm2", "covidfact") and rng.random() < 0.5:
            hidden = [rng.choice(premises)[:300] for _ in range(rng.randint(1, 3))]
            hidden.insert(rng.randint(0, len(hidden)), premise)
            premise = " ".join(hidden)
        yield Row(claim, premise, "statement", label, kind=source, part="nli")


def _mine_rows(questions: list[Row], free: int, rng: random.Random) -> list[Row]:
    """Each answered question beside a near passage that lacks its answer, and beside one for the teacher to judge."""
    by_source = defaultdict(list)
    for row in questions:
        if row.label and row.span:
            by_source[row.kind].append(row)
    lacking, unknown = [], []
    for rows in by_source.values():
        passages = sorted({row.passage for row in rows})
        if len(passages) < 50:
            continue
        words = SharedWords(passages)
        for row in rows:
            answer = row.passage[slice(*row.span)].lower() if row.span else ""
            near = [passages[number] for number in words.nearest(row.text, 12) if passages[number] != row.passage]
            without = [passage for passage in near if answer not in passage.lower()]
            if without:
                lacking.append(Row(row.text, rng.choice(without[:6]), "question", 0, kind="mined", part="mined"))
            if near:
                unknown.append(Row(row.text, rng.choice(near), "question", None, kind="free", part="free"))
    return rng.sample(lacking, min(free, len(lacking))) + rng.sample(unknown, min(free, len(unknown)))


class SharedWords:
    """The passages that share a question's rarest words."""

    def __init__(self, passages: Sequence[str]) -> None:
        self._holding = defaultdict(list)
        for number, passage in enumerate(passages):
            for word in set(_words(passage)):
                self._holding[word].append(number)

    def nearest(self, text: str, count: int) -> list[int]:
        score: dict[int, float] = defaultdict(float)
        known = sorted(
            (word for word in set(_words(text)) if word in self._holding), key=lambda w: (len(self._holding[w]), w)
        )
        for word in known[:6]:
            holding = self._holding[word]
            if len(holding) < 1500:
                for number in holding:
                    score[number] += 1 / (3 + len(holding)) ** 0.5
        return sorted(score, key=lambda number: (-score[number], number))[:count]


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]{3,}", text.lower())


def shingles(passage: str) -> set[tuple[str, ...]]:
    """Every twelve words in a row."""
    words = _words(passage)
    return {tuple(words[at : at + 12]) for at in range(len(words) - 11)}
