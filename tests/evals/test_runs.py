"""A set with pages of its own, run from nothing: ingested once, asked by every system, the same figures again."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from askbook.answer.ask import get_reply
from askbook.domain import Account, Filters, Question, Reply, SearchOutcome
from askbook.evals.figures import build_figures, find_changes, measure_set
from askbook.evals.page import build_page
from askbook.evals.run import ALONE, ASKBOOK, BM25, MINILM, RRF, SEARCH, ask_set, run_set, set_home, settings_of_set
from askbook.evals.sets import EvalQuestion, EvalSet, load_set
from askbook.settings import Settings
from askbook.wiring import Askbook, open_askbook

PAGES = {
    "P/1": ("Volcanoes", "A volcano is a vent through which molten rock reaches the surface."),
    "P/2": ("Glaciers", "A glacier is a slow river of ice that carves valleys."),
    "P/3": ("Deserts", "A desert receives less than 250 mm of rain in a year."),
}


def _write_set(folder: Path) -> Path:
    folder.mkdir()
    corpus = [{"id": name, "title": title, "text": text} for name, (title, text) in PAGES.items()]
    turns = [
        {"question": "What is a volcano?", "gold_ids": ["P/1"], "answers": [], "answerable": True},
        {"question": "How much rain falls in dry places?", "gold_ids": ["P/3"], "answers": [], "answerable": True},
        {"question": "What is a volcano?", "gold_ids": ["P/1"], "answers": [], "answerable": True},
        {"question": "Who plays the violin?", "gold_ids": [], "answers": [], "answerable": False},
    ]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in corpus))
    (folder / "conversations.jsonl").write_text(json.dumps({"id": "c", "turns": turns}) + "\n")
    return folder


def _settings(tmp_path: Path, **changes: object) -> Settings:
    return Settings.model_validate({"askbook_home": tmp_path / "home", **changes})


def _load(tmp_path: Path, settings: Settings) -> EvalSet:
    return load_set(tmp_path / "land", set_home(settings, "land"))


async def test_a_set_is_ingested_once_and_asked_by_every_system(tmp_path: Path) -> None:
    _write_set(tmp_path / "land")
    settings = _settings(tmp_path, database_url="postgresql://nobody@localhost:1/none")
    for created in (3, 0):
        land = _load(tmp_path, settings)
        async with open_askbook(settings_of_set(settings, "land")) as askbook:
            run = await run_set(askbook, land)
            job = (await askbook.jobs.load_all("land", 1))[0]
        assert job.chunks_created == job.chunks_embedded == created
    assert run.systems == (ASKBOOK, ALONE, BM25, MINILM, RRF)
    assert run.asked[0].rankings[ASKBOOK][0] == "P/1"
    assert [one.timing is not None for one in run.asked] == [True, True, False, True], "the same words are timed once"
    assert [one.failure for one in run.asked] == [None, None, None, None]

    figures = measure_set(run)
    assert (figures.answerable, figures.follow_ups[ASKBOOK].n) == (3, 2)
    assert figures.retrieval[ASKBOOK].hit1 == 1
    assert figures.trust.auc["all"] == 1
    assert figures.trust.risk[-1].risk == 0, "the violin is refused, and what is refused is not shown"
    assert figures.trust.judged_by == "page"
    assert find_changes([run], {("land", "c@0"): False, ("land", "gone"): True}).became_right == (("land", "c@0"),)


async def test_sets_with_and_without_threads_share_one_report(tmp_path: Path) -> None:
    """A set of single questions has no `last alone`; whichever comes first, every system has its own colour."""
    _write_set(tmp_path / "land")
    settings = _settings(tmp_path, askbook_embedder="none")
    async with open_askbook(settings_of_set(settings, "land")) as askbook:
        threads = await run_set(askbook, _load(tmp_path, settings))
    asked = (replace(one, rankings={name: one.rankings[name] for name in (ASKBOOK, BM25)}) for one in threads.asked)
    single = replace(threads, name="single", asked=tuple(asked))
    for runs in ([single, threads], [threads, single]):
        page = build_page(build_figures(runs, {}), runs)
        colours = dict(re.findall(r'<span class="key (c\d)">([^<]+)</span>', page.split("One question")[0]))
        assert set(colours.values()) == {ASKBOOK, ALONE, BM25}
        for colour, system in colours.items():
            assert len(re.findall(rf'class="{colour}"><title>{system}: ', page)) == (1 if system == ALONE else 2)


async def test_what_is_judged_is_what_a_reader_gets(tmp_path: Path) -> None:
    """A reader's search has the default limit; the evaluation looks further down for its figures alone."""
    _write_set(tmp_path / "land")
    corpus = [
        {"id": f"Q/{n}", "title": f"Rock {n}", "text": f"Rock {n} is molten rock of a volcano."} for n in range(80)
    ]
    with (tmp_path / "land" / "corpus.jsonl").open("a") as file:
        file.writelines(json.dumps(row) + "\n" for row in corpus)
    settings = _settings(tmp_path)
    async with open_askbook(settings_of_set(settings, "land")) as askbook:
        run = await run_set(askbook, _load(tmp_path, settings))
        relevance = (await askbook.calibrations.choose("land")).calibration.relevance
        reader = await askbook.searcher.search("What is a volcano?", Filters("land"), relevance=relevance)
    assert run.asked[0].passages == reader.passages and len(reader.passages) == 5
    assert len(run.asked[0].rankings[ASKBOOK]) > 5


async def test_single_questions_are_judged_by_the_reply(tmp_path: Path) -> None:
    """The order, the refusal and the confidence are the reply's; the search is a system of its own."""
    folder = _write_set(tmp_path / "land")
    (folder / "conversations.jsonl").unlink()
    questions = [
        {"id": "rain", "question": "How much rain does a desert receive?", "gold_ids": ["P/3"], "answers": ["250 mm"]},
        {"id": "ice", "question": "What does a glacier carve?", "gold_ids": ["P/2"], "answers": ["mountains"]},
        {"id": "far", "question": "Who plays the violin?", "answerable": False, "neg_type": "far"},
        {"id": "near", "question": "What is a volcano?", "answerable": False, "neg_type": "near"},
    ]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in questions))
    settings = _settings(tmp_path)
    async with open_askbook(settings_of_set(settings, "land")) as askbook:
        run = await run_set(askbook, _load(tmp_path, settings))
        reply, account = await _ask_alone(askbook, questions[0]["question"])
        unread = await ask_set(askbook, _load(tmp_path, settings), "land", answers=False)
    assert run.systems == (ASKBOOK, SEARCH, BM25, MINILM, RRF)
    assert unread.systems == (ASKBOOK, BM25, MINILM, RRF)
    rain, ice, far, near = run.asked
    assert reply.confidence is not None
    assert (rain.level, rain.chance) == (reply.confidence.confidence_level, reply.confidence.chance)
    assert [one.chunk.id for one in rain.passages] == [one.chunk.id for one in account.passages]
    assert [one.rank for one in rain.passages] == [1, 2, 3]
    assert [one.is_right(by_text) for one in (rain, ice) for by_text in (True, False)] == [True, True, False, True]
    assert (far.refused, near.refused) == (True, False)
    trust = measure_set(run).trust
    assert (trust.judged_by, trust.own_refused) == ("text", {"far": 1, "near": 0})
    assert trust.risk[-1].risk == pytest.approx(2 / 3), "the glacier's text is another, the volcano is not asked for"


async def _ask_alone(askbook: Askbook, text: str) -> tuple[Reply, Account]:
    replied = await get_reply(askbook.ask(Question(text, Filters("land"))))
    return replied.reply, replied.account


async def test_without_an_embedder_there_is_one_baseline(tmp_path: Path) -> None:
    _write_set(tmp_path / "land")
    settings = _settings(tmp_path, askbook_embedder="none")
    async with open_askbook(settings_of_set(settings, "land")) as askbook:
        run = await run_set(askbook, _load(tmp_path, settings))
    assert (run.systems, run.embedder) == ((ASKBOOK, ALONE, BM25), "none")
    assert set(measure_set(run).gain) == {ALONE, BM25}


async def test_another_way_to_ask_can_be_measured(tmp_path: Path) -> None:
    """What resolves follow-ups is given in; the baselines go on with the last question alone."""
    _write_set(tmp_path / "land")
    settings = _settings(tmp_path)
    async with open_askbook(settings_of_set(settings, "land")) as askbook:

        async def ask(question: EvalQuestion) -> SearchOutcome:
            return await askbook.searcher.search("ice " + " ".join(question.history), Filters("land"), limit=20)

        land = _load(tmp_path, settings)
        plain = await run_set(askbook, land)
        other = await ask_set(askbook, land, "land", ask=ask)
    assert other.asked[0].rankings[ASKBOOK][0] == "P/2"
    assert other.asked[0].rankings[BM25] == plain.asked[0].rankings[BM25]
