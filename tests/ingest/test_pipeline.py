"""An index stays in step with its folder, and embeds nothing twice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from world import CountingEmbedder, change_book, dump_state, file_of, ingest, settings_for, write_book

from askbook.domain import Filters, Job
from askbook.errors import ShuttingDown
from askbook.index.search import Searcher
from askbook.ingest.pipeline import Step, Tally
from askbook.ingest.verify import repair_book, verify_book
from askbook.wiring import Askbook, open_askbook


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_book(tmp_path / "book")


@pytest.fixture
async def askbook(tmp_path: Path) -> AsyncIterator[Askbook]:
    async with open_askbook(settings_for(tmp_path / "home")) as opened:
        assert opened.embedder is not None
        counting = CountingEmbedder(opened.embedder)
        opened.worker.embedder = counting
        yield replace(opened, embedder=counting, searcher=Searcher(opened.index, counting, opened.ledger))


def embedded(askbook: Askbook) -> list[str]:
    """What was embedded since the last look."""
    assert isinstance(askbook.embedder, CountingEmbedder)
    texts, askbook.embedder.texts = askbook.embedder.texts, []
    return texts


async def find(askbook: Askbook, text: str) -> list[str]:
    outcomes = [
        await askbook.searcher.search(text, Filters("book"), mode, limit=20)  # pyright: ignore[reportArgumentType]
        for mode in ("hybrid", "dense", "keyword")
    ]
    return [passage.chunk.text for outcome in outcomes for passage in outcome.passages]


async def test_a_new_book_is_read_embedded_and_found(askbook: Askbook, folder: Path) -> None:
    job = await ingest(askbook, folder)
    assert (job.status, job.error_message, job.problems) == ("completed", None, ())
    assert (job.files_processed, job.files_skipped, job.files_total) == (7, 0, 7)
    assert job.chunks_created == job.chunks_embedded == len(embedded(askbook)) > 7
    found = await askbook.searcher.search("What is the lidar for?", Filters("book"))
    assert found.passages[0].chunk.source_file.endswith("02-lidar.md")


async def test_nothing_changed_nothing_embedded(askbook: Askbook, folder: Path) -> None:
    await ingest(askbook, folder)
    before = await dump_state(askbook, "book")
    embedded(askbook)
    for file in folder.rglob("*.md"):
        file.touch()
    job = await ingest(askbook, folder)
    assert (job.files_processed, job.files_skipped, job.chunks_created, job.chunks_deleted) == (0, 7, 0, 0)
    assert embedded(askbook) == []
    assert (await dump_state(askbook, "book")).differs_from(before) == []


async def test_an_edited_paragraph_embeds_its_chunk_alone(askbook: Askbook, folder: Path) -> None:
    await ingest(askbook, folder)
    embedded(askbook)
    lidar = file_of(folder, "lidar")
    lidar.write_text(lidar.read_text().replace("care of a lidar needs remark 2.9.", "care of a lidar asks for xyzzy."))
    job = await ingest(askbook, folder)
    texts = embedded(askbook)
    assert texts and all("xyzzy" in text for text in texts)
    assert (job.chunks_created, job.chunks_deleted, job.chunks_embedded) == (len(texts), len(texts), len(texts))
    assert any("xyzzy" in text for text in await find(askbook, "what does xyzzy mean"))
    assert not any(
        "care of a lidar needs remark 2.9." in text for text in await find(askbook, "lidar needs remark 2.9")
    )


async def test_a_renamed_or_moved_file_embeds_nothing(askbook: Askbook, folder: Path) -> None:
    await ingest(askbook, folder)
    embedded(askbook)
    sonar = file_of(folder, "sonar")
    sonar.rename(sonar.with_name("04-echo.md"))
    gyro = file_of(folder, "gyro")
    (folder / "module-2-senses").mkdir()
    gyro.rename(folder / "module-2-senses" / "01-gyro.md")
    job = await ingest(askbook, folder)
    assert (job.status, job.files_processed) == ("completed", 2)
    assert embedded(askbook) == []
    sources = {
        passage.chunk.source_file
        for passage in (await askbook.searcher.search("sonar", Filters("book"), limit=20)).passages
    }
    assert any(source.endswith("04-echo.md") for source in sources)
    assert not any(source.endswith("sonar.md") for source in sources)


async def test_a_deleted_file_is_not_found_by_any_search(askbook: Askbook, folder: Path) -> None:
    await ingest(askbook, folder)
    file_of(folder, "gripper").unlink()
    job = await ingest(askbook, folder)
    assert job.status == "completed"
    assert job.chunks_deleted > 0
    assert not any("gripper" in text for text in await find(askbook, "the wiring of the gripper"))
    assert not any("gripper" in chunk.text for chunk in (await dump_state(askbook, "book")).chunks.values())


async def test_an_incremental_run_ends_where_a_clean_one_does(askbook: Askbook, folder: Path, tmp_path: Path) -> None:
    await ingest(askbook, folder)
    change_book(folder)
    await ingest(askbook, folder)
    after = await dump_state(askbook, "book")
    async with open_askbook(settings_for(tmp_path / "clean")) as clean:
        await ingest(clean, folder)
        assert after.differs_from(await dump_state(clean, "book")) == []


@pytest.mark.parametrize("mode", ["full", "recreate"])
async def test_full_and_recreate_embed_everything_again(askbook: Askbook, folder: Path, mode: str) -> None:
    first = await ingest(askbook, folder)
    before = await dump_state(askbook, "book")
    embedded(askbook)
    job = await ingest(askbook, folder, mode)  # pyright: ignore[reportArgumentType]
    assert (job.status, job.files_processed) == ("completed", 7)
    assert len(embedded(askbook)) == first.chunks_embedded
    assert (await dump_state(askbook, "book")).differs_from(before) == []


async def test_keywords_answer_before_the_vectors_are_there(askbook: Askbook, folder: Path) -> None:
    """The job says that it is embedding; the book is searchable already."""
    phases: list[str] = []

    def watch(_job: Job, step: Step, tally: Tally) -> None:
        phases.append(step)

    class Impatient(CountingEmbedder):
        found = 0

        async def embed_passages(self, texts):
            outcome = await askbook.searcher.search("wiring of the gripper", Filters("book"), mode="keyword")
            Impatient.found = len(outcome.passages)
            [running] = await askbook.jobs.load_open()
            assert (running.status, running.phase) == ("running", "embedding")
            assert running.chunks_to_embed > running.chunks_embedded
            return await super().embed_passages(texts)

    assert askbook.embedder is not None
    askbook.worker.embedder = Impatient(askbook.embedder)
    await ingest(askbook, folder, watch=watch)
    assert Impatient.found == 5
    assert phases.index("committed") < phases.index("embedding")


async def test_versions_and_birthdays(askbook: Askbook, folder: Path) -> None:
    await ingest(askbook, folder)
    lidar = file_of(folder, "lidar")
    before = {draft.chunk.id: draft.chunk for draft in await askbook.ledger.load_drafts("book")}
    lidar.write_text(lidar.read_text() + "\n## Afterword\n\n" + "A lidar has an afterword. " * 40)
    await ingest(askbook, folder)
    kept = [
        d.chunk
        for d in await askbook.ledger.load_drafts("book")
        if d.chunk.source_file.endswith("lidar.md") and d.chunk.id in before
    ]
    assert kept
    assert {chunk.version for chunk in kept} == {2}
    assert all(chunk.created_at == before[chunk.id].created_at for chunk in kept)


async def test_a_change_of_the_askbook_toml_reaches_every_chunk(askbook: Askbook, folder: Path) -> None:
    await ingest(askbook, folder)
    embedded(askbook)
    (folder / "askbook.toml").write_text('base_url = "https://docs.example.org"\n')
    await ingest(askbook, folder)
    chunks = (await dump_state(askbook, "book")).chunks.values()
    assert all(chunk.url.startswith("https://docs.example.org/") for chunk in chunks)
    assert embedded(askbook) == []


async def test_a_file_that_became_unreadable_keeps_what_was_known(askbook: Askbook, folder: Path) -> None:
    await ingest(askbook, folder)
    file_of(folder, "lidar").write_bytes(b"# \xff\xfe broken")
    job = await ingest(askbook, folder)
    assert job.status == "completed"
    assert job.files_processed + job.files_skipped == job.files_total == 7
    [problem] = [problem for problem in job.problems if problem.skipped]
    assert problem.source_file.endswith("lidar.md")
    assert any("lidar" in text for text in await find(askbook, "the wiring of the lidar"))


async def test_a_book_without_embedder_is_found_by_words_and_embedded_later(tmp_path: Path, folder: Path) -> None:
    home = tmp_path / "words"
    async with open_askbook(settings_for(home, askbook_embedder="none")) as askbook:
        job = await ingest(askbook, folder)
        assert (job.status, job.chunks_embedded) == ("completed", 0)
        outcome = await askbook.searcher.search("wiring of the gripper", Filters("book"))
        assert (outcome.mode, "gripper" in outcome.passages[0].chunk.text) == ("keyword", True)
    async with open_askbook(settings_for(home)) as askbook:
        job = await ingest(askbook, folder)
        assert (job.files_processed, job.chunks_embedded) == (0, len(await askbook.ledger.load_drafts("book")))
        verdict = await verify_book("book", askbook.ledger, askbook.index, embeds=True)
        assert verdict.differences == ()


async def test_verify_names_each_difference_and_repair_mends_it(askbook: Askbook, folder: Path) -> None:
    await ingest(askbook, folder)
    clean = await dump_state(askbook, "book")
    points = sorted(clean.points)
    await askbook.index.forget_points(points[:2])
    await askbook.ledger.recount_terms("book", {1: 1})
    stray = replace(clean.chunks[points[2]], id="00000000-0000-0000-0000-000000000001")
    from askbook.index.keywords import keyword_text, weigh_chunk
    from askbook.index.vectors.base import Point

    await askbook.index.save_points([Point(stray.id, stray, weigh_chunk(keyword_text(stray)))])
    verdict = await verify_book("book", askbook.ledger, askbook.index, embeds=True)
    messages = " ".join(difference.message for difference in verdict.differences)
    assert "missing from the index" in messages
    assert "word counts" in messages
    assert "1 points belong to no chunk" in messages

    await repair_book(verdict, askbook.ledger, askbook.index, embeds=True)
    await ingest(askbook, folder)
    assert (await verify_book("book", askbook.ledger, askbook.index, embeds=True)).differences == ()
    assert (await dump_state(askbook, "book")).differs_from(clean) == []


@pytest.mark.row("F6")
async def test_the_same_job_twenty_times_at_once_runs_once(askbook: Askbook, folder: Path) -> None:
    import asyncio

    jobs = await asyncio.gather(*(ingest(askbook, folder) for _ in range(20)))
    assert len({job.job_id for job in jobs}) == 1
    assert len(embedded(askbook)) == (await askbook.jobs.load(jobs[0].job_id)).chunks_embedded


async def test_a_job_whose_embedder_is_closed_is_handed_back(askbook: Askbook, folder: Path) -> None:
    assert askbook.embedder is not None
    await askbook.embedder.close()
    askbook.worker.hands_back = True
    with pytest.raises(ShuttingDown):
        await ingest(askbook, folder)
    (job,) = await askbook.jobs.load_all("book", 10)
    assert job.status == "queued"
