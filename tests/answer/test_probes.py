"""Questions that a book asks of itself, with and without their lesson."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from askbook.answer.calibration import GATE, Fingerprint, load_built_in
from askbook.answer.probes import (
    Asked,
    ask_probes,
    check_enough,
    find_curves,
    fit_calibration,
    make_probes,
    measure_probes,
)
from askbook.book.chunker import CHUNKER_VERSION
from askbook.domain import Chunk, Filters, Passage, SearchOutcome, Signals
from askbook.errors import InputError
from askbook.index.keywords import count_terms, keyword_text, weigh_chunk
from askbook.index.search import Searcher
from askbook.index.vectors.base import Point
from askbook.index.vectors.edge import EdgeIndex
from builders import make_chunks, make_lesson

SUBJECTS = ("gripper", "elbow", "knee", "camera", "battery", "compass", "antenna", "wheel")


def lesson(number: int, subject: str) -> list[Chunk]:
    made = make_lesson(f"m/c/{number:02}.md", number=number, title=f"The {subject}")
    return [
        replace(one, section_title=f"Care of the {subject} {at}")
        for at, one in enumerate(
            make_chunks(
                made,
                f"Whoever cleans a {subject} should first take out its screws, then wash it with warm water and soap.",
                f"The {subject} is a part of the robot. Every {subject} wears out in the rain and must be dried.",
                f"A broken {subject} is replaced by its maker within some weeks of the day on which it was sent.",
            )
        )
    ]


@dataclass
class Shelf:
    """A ledger of one book that never changes."""

    live: dict[str, Chunk]

    async def live_chunks(self, book_id: str, point_ids: Sequence[str]) -> dict[str, Chunk]:
        return {one: self.live[one] for one in point_ids if one in self.live}

    async def term_frequencies(self, book_id: str, term_ids: Sequence[int]) -> tuple[int, int, dict[int, int]]:
        counts = count_terms(map(keyword_text, self.live.values()))
        return 1, len(self.live), {term: counts[term] for term in term_ids if counts[term]}

    async def revision(self, book_id: str) -> int:
        return 1


BOOK = [chunk for number, subject in enumerate(SUBJECTS, start=1) for chunk in lesson(number, subject)]


@pytest.fixture
async def searcher(tmp_path: Path) -> AsyncIterator[Searcher]:
    index = await EdgeIndex.open(tmp_path / "index", 4)
    await index.save_points([Point(chunk.id, chunk, weigh_chunk(keyword_text(chunk))) for chunk in BOOK])
    yield Searcher(index, None, Shelf({chunk.id: chunk for chunk in BOOK}))
    await index.close()


def test_probes_come_in_turn_from_every_lesson_and_of_every_kind() -> None:
    probes = make_probes(BOOK)[:12]
    assert len(probes) == 12
    assert len({probe.chunk.source_file for probe in probes[:8]}) == 8
    questions = [probe.question for probe in make_probes(BOOK)]
    assert any(question.startswith("What does the book say about Care of the") for question in questions)
    assert any(question.startswith("What is the") for question in questions)
    assert make_probes(BOOK) == make_probes(BOOK)


async def test_a_hidden_lesson_is_not_found(searcher: Searcher) -> None:
    asked = await ask_probes(searcher, "book", make_probes(BOOK))
    assert sum(one.right for one in asked) > len(asked) / 2
    for one in asked:
        assert one.probe.chunk.source_file not in {passage.chunk.source_file for passage in one.hidden.passages}


async def test_the_gate_is_opened_for_a_book_that_it_would_refuse_and_never_closed(searcher: Searcher) -> None:
    asked = await ask_probes(searcher, "book", make_probes(BOOK))
    built_in = load_built_in(Fingerprint("keywords", 1))
    own = Fingerprint("keywords", 1, revision=1)
    severe = replace(built_in, words=replace(built_in.words, in_book=(-12.5, 11.5, 0.0)))
    opened = fit_calibration(asked, severe, own)
    assert opened.origin == "book" and opened.fingerprint == own and opened.questions == len(asked)
    assert opened.words.in_book[0] > -12.5 and opened.words.in_book[1] == 11.5
    assert measure_probes(asked, opened).refused <= measure_probes(asked, severe).refused
    mild = replace(built_in, words=replace(built_in.words, in_book=(5.0, 11.5, 0.0)))
    assert fit_calibration(asked, mild, own).words.in_book == (5.0, 11.5, 0.0)
    assert all(mild.chance_in_book(one.found.signals) >= GATE for one in asked)


def asked_with(signals: Signals, count: int) -> list[Asked]:
    probes = make_probes(BOOK)[:count]
    passages = tuple(Passage(chunk, signals.score, place, signals.similarity) for place, chunk in enumerate(BOOK[:5]))
    found = SearchOutcome("q?", Filters("book"), "hybrid", passages, 5, 0.0, 0.0, signals)
    return [Asked(probe, found, found) for probe in probes]


def test_a_probe_that_found_nothing_does_not_choose_the_curves() -> None:
    """Of a book with vectors the first probe found no passage, and so no cosine."""
    ships = load_built_in(Fingerprint("all-MiniLM-L6-v2-int8-fused/8x256", CHUNKER_VERSION))
    found = asked_with(Signals(similarity=0.3, coverage=0.4, score=0.4, mean_score=0.4, lead=0.1, chunks=500), 10)
    nothing = asked_with(Signals(chunks=500), 1)
    assert find_curves([*nothing, *found], ships) is ships.meaning
    own = fit_calibration([*nothing, *found], ships, replace(ships.fingerprint, revision=1))
    assert own.words == ships.words and own.meaning != ships.meaning and own.questions == 10
    assert own == fit_calibration(found, ships, replace(ships.fingerprint, revision=1)), "nor are they fitted on it"


def test_what_a_calibration_makes_of_the_probes_is_what_readers_would_meet() -> None:
    ships = load_built_in(Fingerprint("all-MiniLM-L6-v2-int8-fused/8x256", CHUNKER_VERSION))
    asked = asked_with(Signals(similarity=0.5, coverage=0.9, score=0.5, mean_score=0.5, lead=0.1, chunks=500), 10)
    assert measure_probes(asked, ships).refused == 0
    assert measure_probes(asked, replace(ships, origin="raw")).refused == 10, "a cosine of 0.5 is below the gate"


def test_a_book_of_two_pages_is_declined_with_a_reason() -> None:
    probes = make_probes([*lesson(1, "gripper"), *lesson(2, "elbow")])
    with pytest.raises(InputError, match="too small to calibrate on: 2 lessons") as raised:
        check_enough("book", 2, probes)
    assert raised.value.hint and "nothing was changed" in raised.value.hint


def test_right_is_the_own_lesson_first() -> None:
    probe = make_probes(BOOK)[0]
    found = SearchOutcome("q?", Filters("book"), "keyword", (Passage(probe.chunk, 0.5, 1),), 1, 0.0, 0.0)
    assert Asked(probe, found, found).right
    assert not Asked(probe, replace(found, passages=()), found).right
