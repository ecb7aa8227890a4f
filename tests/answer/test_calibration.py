"""A calibration is data: what it makes of signals, when it holds, and how it is fitted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from askbook.answer.calibration import (
    GATE,
    KEYWORDS,
    NO_COSINES,
    Calibration,
    Calibrations,
    Fingerprint,
    load_built_in,
)
from askbook.book.chunker import CHUNKER_VERSION
from askbook.domain import Passage, Signals
from askbook.index.embedders.minilm import MiniLM
from askbook.store.database import Database
from askbook.store.ledger import Ledger
from builders import make_chunks, make_lesson

MINILM = Fingerprint("all-MiniLM-L6-v2-int8-fused/8x256", CHUNKER_VERSION)
(CHUNK,) = make_chunks(make_lesson(), "Text.")
SURE = Signals(similarity=0.6, coverage=0.9, score=0.7, mean_score=0.6, lead=0.2, chunks=1000)
UNSURE = replace(SURE, lead=0.0, score=0.4, mean_score=0.35)
ABSENT = Signals(
    similarity=0.2, coverage=0.3, score=0.3, mean_score=0.25, lead=0.01, unknown_words=("warp",), chunks=1000
)


def passage(score: float, similarity: float | None = None) -> Passage:
    return Passage(CHUNK, score, 1, similarity)


def test_the_built_in_one_is_for_the_embedder_that_ships() -> None:
    built_in = load_built_in(replace(MINILM, embedder=MiniLM().name))
    assert built_in.fingerprint == MINILM, "a new chunker needs a new measurement"
    assert built_in.origin == "built-in" and built_in.meaning is not None and built_in.questions > 1000
    assert load_built_in(MINILM) is load_built_in(MINILM), "every search asks for it: it is read once"


def test_an_embedder_never_measured_is_judged_by_its_words() -> None:
    calibration = load_built_in(Fingerprint("someone/else", 1))
    assert calibration.meaning is None
    for similarity in (None, 0.1, 0.9):
        assert calibration.confidence(replace(SURE, similarity=similarity)) > GATE
        assert calibration.confidence(replace(ABSENT, similarity=similarity)) < GATE


def test_a_search_by_words_alone_is_judged_by_its_words() -> None:
    calibration = load_built_in(MINILM)
    assert calibration.chance_in_book(replace(SURE, similarity=None)) > 0.9
    assert calibration.chance_in_book(replace(ABSENT, similarity=None)) < 0.5


def test_confidence_is_high_in_one_clear_place_low_in_several_and_refuses_what_is_absent() -> None:
    calibration = load_built_in(MINILM)
    assert calibration.confidence(SURE) >= 0.85
    assert GATE < calibration.confidence(UNSURE) < GATE + 0.05
    assert calibration.confidence(ABSENT) < 0.2


def test_a_small_book_need_show_less_than_a_large_one() -> None:
    calibration = load_built_in(MINILM)
    chances = [
        calibration.chance_in_book(replace(UNSURE, similarity=0.3, chunks=size)) for size in (1, 100, 1000, 9000)
    ]
    assert chances[0] == chances[1] > chances[2] > chances[3]


@pytest.mark.parametrize("signals", [SURE, UNSURE, ABSENT])
def test_the_mean_relevance_of_the_five_best_is_the_confidence_in_the_order_of_the_scores(signals: Signals) -> None:
    calibration = load_built_in(MINILM)
    scores = [signals.mean_score + by for by in (0.1, 0.03, 0.0, -0.05, -0.08)]
    relevances = [calibration.relevance(signals, passage(score)) for score in scores]
    assert relevances == sorted(relevances, reverse=True) and len(set(relevances)) == 5
    assert sum(relevances) / 5 == pytest.approx(calibration.confidence(signals))
    assert all(0 <= calibration.relevance(signals, passage(score)) <= 1 for score in (0.0, 1.0))


async def test_raw_carries_the_cosine(database: Database) -> None:
    chosen = await Calibrations(Ledger(database), MINILM.embedder, 1, raw=True).choose("book")
    assert chosen.calibration.origin == "raw"
    assert [chosen.calibration.relevance(SURE, passage(0.9, cosine)) for cosine in (0.5, -0.1, None)] == [0.5, 0, 0]


async def test_raw_without_cosines_says_so(database: Database) -> None:
    ledger = Ledger(database)
    chosen = await Calibrations(ledger, None, CHUNKER_VERSION, raw=True).choose("book")
    assert chosen.calibration.origin == "built-in" and chosen.notice == NO_COSINES
    await ledger.save_calibration("book", MINILM.embedder, load_built_in(MINILM).to_json())
    chosen = await Calibrations(ledger, None, CHUNKER_VERSION, raw=True).choose("book")
    assert chosen.notice and chosen.notice.startswith(NO_COSINES) and "embedder changed" in chosen.notice


def test_json_and_back() -> None:
    calibration = load_built_in(MINILM)
    assert Calibration.from_json(calibration.to_json()) == calibration


async def test_a_books_own_holds_until_something_changes(database: Database) -> None:
    ledger = Ledger(database)
    revision = await ledger.revision("book")
    own = replace(load_built_in(MINILM), origin="book", fingerprint=replace(MINILM, revision=revision))
    await ledger.save_calibration("book", MINILM.embedder, own.to_json())
    await ledger.save_calibration("book", MINILM.embedder, own.to_json())
    assert (await Calibrations(ledger, MINILM.embedder, CHUNKER_VERSION).choose("book")).calibration == own
    assert (
        await Calibrations(ledger, MINILM.embedder, CHUNKER_VERSION).choose("another")
    ).calibration.origin == "built-in"
    for embedder, chunker, said in (
        (None, CHUNKER_VERSION, "embedder changed"),
        (MINILM.embedder, CHUNKER_VERSION + 1, "chunks are cut"),
    ):
        chosen = await Calibrations(ledger, embedder, chunker).choose("book")
        assert chosen.calibration.origin == "built-in" and chosen.notice and said in chosen.notice
    old = replace(own, fingerprint=replace(MINILM, revision=revision + 1))
    await ledger.save_calibration("book", MINILM.embedder, old.to_json())
    chosen = await Calibrations(ledger, MINILM.embedder, CHUNKER_VERSION).choose("book")
    assert chosen.calibration.origin == "built-in" and chosen.notice and "the book changed" in chosen.notice


async def test_each_embedder_keeps_its_own(database: Database) -> None:
    """Somebody tries a book without an embedder, calibrates that, and goes back."""
    ledger = Ledger(database)
    words = Fingerprint(KEYWORDS, CHUNKER_VERSION)
    for now in (MINILM, words):
        own = replace(load_built_in(now), origin="book", fingerprint=replace(now, revision=0))
        await ledger.save_calibration("book", now.embedder, own.to_json())
    for embedder, name in ((MINILM.embedder, MINILM.embedder), (None, KEYWORDS)):
        chosen = await Calibrations(ledger, embedder, CHUNKER_VERSION).choose("book")
        assert chosen.notice is None and chosen.calibration.origin == "book"
        assert chosen.calibration.fingerprint.embedder == name
    chosen = await Calibrations(ledger, "someone/else", CHUNKER_VERSION).choose("book")
    assert chosen.calibration.origin == "built-in"
    assert chosen.notice and "embedder changed from keywords to someone/else" in chosen.notice, "the newest is named"


async def test_the_one_that_ships_says_when_it_was_measured_with_another_chunker(database: Database) -> None:
    ledger = Ledger(database)
    assert (await Calibrations(ledger, MINILM.embedder, CHUNKER_VERSION).choose("book")).notice is None
    chosen = await Calibrations(ledger, MINILM.embedder, CHUNKER_VERSION + 1).choose("book")
    assert chosen.notice and "chunks are cut" in chosen.notice
