"""A set with pages of its own, run from nothing: ingested once, asked by every system, the same figures again."""

from __future__ import annotations

import json
from pathlib import Path

from askbook.domain import Filters, SearchOutcome
from askbook.evals.figures import find_changes, measure_set
from askbook.evals.run import ALONE, ASKBOOK, BM25, MINILM, RRF, ask_set, run_set, set_home, settings_of_set
from askbook.evals.sets import EvalQuestion, EvalSet, load_set
from askbook.settings import Settings
from askbook.wiring import open_askbook

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

    figures = measure_set(run)
    assert (figures.answerable, figures.follow_ups[ASKBOOK].n) == (3, 2)
    assert figures.retrieval[ASKBOOK].hit1 == 1
    assert figures.trust.auc["all"] == 1
    assert figures.trust.risk[-1].risk == 0.25, "answering everything answers the violin too"
    assert find_changes([run], {("land", "c@0"): False, ("land", "gone"): True}).became_right == (("land", "c@0"),)


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
