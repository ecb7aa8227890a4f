"""Rerankers: Cohere's wire on a stand-in server, a cross-encoder on real ONNX files, and a search that uses them."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scripted_server import HANG, IN_TIME, Received, Reply, StandIn, stand_in
from tiny_onnx import LENGTH, OVERLAP, PAIR, TAGS, write_cross_encoder

from askbook.answer.followups import Turn, resolve_question, search_thread
from askbook.domain import LIMIT_MAX, Filters, Passage, SearchOutcome, Signals
from askbook.errors import InputError, RerankerUnavailable
from askbook.index.ranking import reorder
from askbook.index.remote import Patience
from askbook.index.rerankers.cohere import CohereReranker
from askbook.index.rerankers.crossencoder import BATCH, CrossEncoder
from askbook.shapes.answers import SearchResult
from askbook.wiring import Askbook, open_askbook
from builders import make_chunks, make_lesson
from ingest.world import ingest, settings_for, write_book

KEY = "co-secret-canary"
QUICK = Patience(tries=3, first_wait=0.01, deadline=2.0)


# --- Cohere ---------------------------------------------------------------------------------------


def last_is_best(request: Received) -> Reply:
    """The later a text stands, the better it is; answered best first, as the service does."""
    count = len(request.body["documents"])
    results = [{"index": at, "relevance_score": (at + 1) / (count + 1)} for at in range(count)]
    return Reply(body={"results": results[::-1]})


def cohere(server: StandIn, patience: Patience = QUICK) -> CohereReranker:
    return CohereReranker(KEY, "rerank-v3.5", server.url, patience)


async def test_cohere_scores_come_in_the_order_of_the_texts() -> None:
    with stand_in(lambda _, request: last_is_best(request)) as server:
        reranker = cohere(server)
        assert await reranker.rerank("Why?", ["a", "", "\ud800"]) == [0.25, 0.5, 0.75]
        assert reranker.name == "cohere/rerank-v3.5"
        await reranker.close()
    (sent,) = server.received
    assert (sent.method, sent.path) == ("POST", "/v2/rerank")
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert sent.body == {"model": "rerank-v3.5", "query": "Why?", "documents": ["a", " ", "?"], "top_n": 3}


async def test_retry_after_is_waited_for() -> None:
    busy = Reply(429, headers={"Retry-After": "1"})
    with stand_in(lambda number, request: busy if number == 0 else last_is_best(request)) as server:
        reranker = cohere(server)
        started = time.monotonic()
        assert len(await reranker.rerank("Why?", ["a", "b"])) == 2
        assert time.monotonic() - started >= 1.0
        await reranker.close()
    assert len(server.received) == 2


def scored(*scores: Any) -> Reply:
    return Reply(body={"results": [{"index": at, "relevance_score": score} for at, score in enumerate(scores)]})


NO_SCORES = "did not answer with 2 scores from 0 to 1"
FAILURES: dict[str, tuple[Reply, str, int]] = {
    "500 three times": (Reply(500), "answered 500 3 times", 3),
    "429 three times": (Reply(429), "answered 429 3 times", 3),
    "a wrong key": (Reply(401, {"message": f"bad key {KEY}"}), "refused the key", 1),
    "an unknown model": (Reply(404), "answered 404", 1),
    "no JSON": (Reply(raw=b"<html>"), "not JSON", 1),
    "no results": (Reply(body={"id": "x"}), NO_SCORES, 1),
    "a list": (Reply(body=[1]), NO_SCORES, 1),
    "too few": (scored(0.5), NO_SCORES, 1),
    "too many": (scored(0.5, 0.4, 0.3), NO_SCORES, 1),
    "one twice": (Reply(body={"results": [{"index": 0, "relevance_score": 0.5}] * 2}), NO_SCORES, 1),
    "a word": (scored(0.5, "good"), NO_SCORES, 1),
    "nothing": (scored(0.5, None), NO_SCORES, 1),
    "NaN": (scored(0.5, float("nan")), NO_SCORES, 1),
    "a logit": (scored(0.5, -3.2), NO_SCORES, 1),
    "a hang": (Reply(delay=HANG), "no answer within 0.5 s", 1),
}


@pytest.mark.parametrize("name", FAILURES)
async def test_failures_are_typed_in_time_and_keep_the_key(name: str) -> None:
    reply, message, tries = FAILURES[name]
    with stand_in(lambda number, request: reply) as server:
        reranker = cohere(server, replace(QUICK, deadline=0.5))
        started = time.monotonic()
        with pytest.raises(RerankerUnavailable, match=message) as raised:
            await reranker.rerank("Why?", ["a", "b"])
        assert time.monotonic() - started < IN_TIME
        await reranker.close()
    assert len(server.received) == tries
    assert raised.value.hint and KEY not in f"{raised.value!r} {raised.value.hint}"


async def test_nobody_listening_is_typed() -> None:
    with stand_in(lambda number, request: Reply()) as server:
        pass
    reranker = cohere(server)
    with pytest.raises(RerankerUnavailable, match="cannot be reached"):
        await reranker.rerank("Why?", ["a"])
    await reranker.close()


# --- a cross-encoder ------------------------------------------------------------------------------


def logits(scores: Sequence[float]) -> list[float]:
    return [round(math.log(score / (1 - score)), 3) for score in scores]


async def test_the_question_and_the_passage_are_read_together(tmp_path: Path) -> None:
    """Tenths of the words of both that are equal; the mark that ends a text always is."""
    reranker = CrossEncoder(write_cross_encoder(tmp_path / "overlap", OVERLAP))
    assert reranker.name == "overlap"
    texts = ["the red robot", "nothing", "a robot sees a robot", "", "robot red"]
    assert logits(await reranker.rerank("red robot", texts)) == [0.3, 0.1, 0.3, 0.1, 0.3]
    assert logits(await reranker.rerank("nothing", texts)) == [0.1, 0.2, 0.1, 0.1, 0.1]
    assert await reranker.rerank("nothing", []) == []
    await reranker.close()


async def test_a_model_is_given_what_it_declares(tmp_path: Path) -> None:
    reranker = CrossEncoder(write_cross_encoder(tmp_path / "length", LENGTH, PAIR[:2]), threads=1)
    # Three marks stand around every pair.
    assert logits(await reranker.rerank("red", ["", "robot", "the red robot"])) == [0.4, 0.5, 0.7]
    await reranker.close()


async def test_padding_and_batches_change_no_score(tmp_path: Path) -> None:
    reranker = CrossEncoder(write_cross_encoder(tmp_path / "length", LENGTH))
    texts = [" ".join(["robot"] * (n * 7 % 11)) for n in range(3 * BATCH + 1)]
    alone = [(await reranker.rerank("red", [text]))[0] for text in texts]
    assert await reranker.rerank("red", texts) == pytest.approx(alone, abs=1e-6)
    await reranker.close()


async def test_odd_and_endless_texts_are_scored(tmp_path: Path) -> None:
    reranker = CrossEncoder(write_cross_encoder(tmp_path / "overlap", OVERLAP))
    scores = await reranker.rerank("robot " * 600, ["word " * 100_000, "\ud800 half a character", "\0"])
    assert all(0 <= score <= 1 for score in scores)
    await reranker.close()


async def test_the_loop_goes_on_while_it_scores(tmp_path: Path) -> None:
    reranker = CrossEncoder(write_cross_encoder(tmp_path / "overlap", OVERLAP))
    work = asyncio.create_task(reranker.rerank("red robot", ["word " * 600] * 60))
    await asyncio.sleep(0.01)
    assert not work.done()
    assert len(await work) == 60
    await reranker.close()


async def test_what_is_no_cross_encoder_is_refused(tmp_path: Path) -> None:
    tags = write_cross_encoder(tmp_path / "tags", TAGS)
    foreign = write_cross_encoder(tmp_path / "foreign", LENGTH, (*PAIR, "position_ids"))
    nonsense = write_cross_encoder(tmp_path / "nonsense", LENGTH)
    (nonsense / "model.onnx").write_bytes(b"nonsense")
    for folder, message in ((tags, "one score a pair"), (foreign, "cannot be run"), (nonsense, "cannot be loaded")):
        reranker = CrossEncoder(folder)
        with pytest.raises(RerankerUnavailable, match=message):
            await reranker.rerank("red", ["robot"])
        await reranker.close()


# --- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"askbook_reranker": "cohere"}, "COHERE_API_KEY"),
        ({"askbook_reranker": "local"}, "ASKBOOK_RERANKER_FOLDER"),
        ({"askbook_reranker": "local", "askbook_reranker_folder": "nowhere"}, "model.onnx"),
    ],
)
async def test_what_is_not_set_is_named(tmp_path: Path, changes: dict[str, str], names: str) -> None:
    with pytest.raises(InputError, match=names) as raised:
        async with open_askbook(settings_for(tmp_path, askbook_embedder="none", **changes)):
            pass
    assert raised.value.hint


# --- search ---------------------------------------------------------------------------------------

BOOK = Filters("book")
QUESTION = "wiring of the gripper"


def by_similarity(_: Signals, passage: Passage) -> float:
    return max(passage.similarity or 0.0, 0.0)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a small book was ingested."""
    folder = tmp_path_factory.mktemp("reranked")

    async def fill() -> None:
        async with open_askbook(settings_for(folder / "home")) as askbook:
            assert (await ingest(askbook, write_book(folder / "book"))).status == "completed"

    asyncio.run(fill())
    return folder / "home"


def with_cohere(home: Path, server: StandIn, **changes: object) -> Any:
    own = {"askbook_reranker": "cohere", "cohere_api_key": KEY, "cohere_base_url": server.url}
    return open_askbook(settings_for(home, **own, **changes))


async def find(askbook: Askbook, **changes: Any) -> SearchOutcome:
    return await askbook.searcher.search(QUESTION, BOOK, **{"limit": LIMIT_MAX, "relevance": by_similarity, **changes})


async def find_plain(home: Path, **changes: Any) -> SearchOutcome:
    async with open_askbook(settings_for(home)) as askbook:
        return await find(askbook, **changes)


def ids(passages: Sequence[Passage]) -> list[str]:
    return [passage.chunk.id for passage in passages]


async def test_the_reranker_chooses_who_stands_where_and_each_place_keeps_its_score(home: Path) -> None:
    plain = await find_plain(home)
    with stand_in(lambda _, request: last_is_best(request)) as server:
        async with with_cohere(home, server) as askbook:
            outcome = await find(askbook)
    assert len(plain.passages) == LIMIT_MAX and not plain.reranked and outcome.reranked
    assert ids(outcome.passages) == ids(plain.passages)[::-1]
    for passage, place in zip(outcome.passages, plain.passages, strict=True):
        assert (passage.rank, passage.score, passage.relevance) == (place.rank, place.score, place.relevance)
    found = {one.chunk.id: one for one in plain.passages}
    assert all(one.similarity == found[one.chunk.id].similarity for one in outcome.passages)
    # How sure askbook is does not hang on who put the passages in order.
    assert outcome.signals == plain.signals and outcome.total_found == plain.total_found
    shown = [SearchResult.from_passage(one).re_ranking_score for one in outcome.passages]
    assert shown == sorted((n / (LIMIT_MAX + 1) for n in range(1, LIMIT_MAX + 1)), reverse=True)
    assert SearchResult.from_passage(plain.passages[0]).re_ranking_score is None
    (sent,) = server.received
    assert sent.body["query"] == QUESTION
    assert sent.body["documents"] == [one.chunk.embed_text for one in plain.passages]


async def test_limit_and_threshold_come_after_it(home: Path) -> None:
    plain = await find_plain(home)
    least = plain.passages[2].relevance
    with stand_in(lambda _, request: last_is_best(request)) as server:
        async with with_cohere(home, server) as askbook:
            strict = await find(askbook, threshold=least)
            short = await find(askbook, limit=2)
    assert ids(strict.passages) == ids(plain.passages)[:-4:-1]
    assert strict.total_found == 3 and strict.passages[-1].relevance == least
    assert ids(short.passages) == ids(plain.passages)[:-3:-1] and short.total_found == plain.total_found


async def test_a_cross_encoder_on_this_machine_puts_passages_in_order(home: Path, tmp_path: Path) -> None:
    plain = await find_plain(home)
    folder = write_cross_encoder(tmp_path / "overlap", OVERLAP)
    own = {"askbook_reranker": "local", "askbook_reranker_folder": folder}
    async with open_askbook(settings_for(home, **own)) as askbook:
        outcome = await find(askbook)
        assert askbook.reranker is not None and askbook.reranker.name == "overlap"
        again = await askbook.reranker.rerank(QUESTION, [one.chunk.embed_text for one in outcome.passages])
    scores = [one.rerank_score or 0.0 for one in outcome.passages]
    assert scores == pytest.approx(again, abs=1e-6)
    assert scores == sorted(scores, reverse=True) and len(set(scores)) > 1
    assert set(ids(outcome.passages)) == set(ids(plain.passages)) and ids(outcome.passages) != ids(plain.passages)


async def test_one_side_alone_and_who_asks_for_it_get_the_order_of_the_search(home: Path) -> None:
    with stand_in(lambda _, request: last_is_best(request)) as server:
        async with with_cohere(home, server) as askbook:
            outcomes = [await find(askbook, mode=mode) for mode in ("dense", "keyword")]
            outcomes.append(await find(askbook, rerank=False))
            nothing = await askbook.searcher.search(QUESTION, Filters("no such book"))
    assert not any(outcome.reranked for outcome in (*outcomes, nothing))
    assert server.received == []


@pytest.mark.parametrize(
    ("reply", "said"), [(Reply(401), "refused the key"), (Reply(delay=HANG), "rerank-v3.5 took over 0.3 s")]
)
async def test_a_search_answers_without_it_and_says_so(
    home: Path, caplog: pytest.LogCaptureFixture, reply: Reply, said: str
) -> None:
    plain = await find_plain(home)
    with caplog.at_level(logging.WARNING, "askbook"), stand_in(lambda number, request: reply) as server:
        async with with_cohere(home, server, askbook_reranker_seconds=0.3) as askbook:
            started = time.monotonic()
            outcome = await find(askbook)
            assert time.monotonic() - started < IN_TIME
    assert outcome.passages == plain.passages and not outcome.reranked
    (line,) = [record.getMessage() for record in caplog.records if record.name == "askbook"]
    assert line.startswith("A search was not reranked: ") and said in line and KEY not in line


async def test_a_follow_up_is_reranked_once_by_the_question_made_whole(home: Path) -> None:
    meaning = resolve_question("How is it wired?", [Turn("What is the lidar for?")])
    async with open_askbook(settings_for(home)) as askbook:
        plain = await search_thread(askbook.searcher, meaning, BOOK, LIMIT_MAX, None)
    with stand_in(lambda _, request: last_is_best(request)) as server:
        async with with_cohere(home, server) as askbook:
            outcome = await search_thread(askbook.searcher, meaning, BOOK, LIMIT_MAX, None)
    (sent,) = server.received
    assert sent.body["query"] == outcome.query == "What is the lidar for? How is it wired?"
    assert outcome.reranked and ids(outcome.passages) == ids(plain.passages)[::-1]
    assert [one.score for one in outcome.passages] == [one.score for one in plain.passages]
    assert outcome.signals == plain.signals


def test_ties_and_what_was_not_scored_stay_as_they_were() -> None:
    chunks = make_chunks(make_lesson(), *"abcde")
    passages = [Passage(chunk, 0.9 - at / 10, 0) for at, chunk in enumerate(chunks)]
    moved = reorder(passages, [0.2, 0.7, 0.2])
    assert [one.chunk.text for one in moved] == ["b", "a", "c", "d", "e"]
    assert [one.rerank_score for one in moved] == [0.7, 0.2, 0.2, None, None]
    assert [one.score for one in moved] == [one.score for one in passages]
