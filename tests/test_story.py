"""What askbook does, from top to bottom: a book is ingested, asked, asked again, and says when it does not know.

Everything here is real: the demo book, its index on disk, the embedder, the database. No model is needed.
"""

from __future__ import annotations

from pathlib import Path

from askbook.answer.ask import get_reply
from askbook.domain import Answer, Delta, Filters, Question, Refusal, Replied, Reply
from askbook.settings import Settings
from askbook.wiring import Askbook, open_askbook

BOOK = "physical-ai-robotics"


async def ask(askbook: Askbook, text: str, thread_id: str | None = None) -> tuple[Reply, str]:
    replied = await get_reply(askbook.ask(Question(text, Filters(BOOK), thread_id)))
    assert replied.account.thread_id is not None
    return replied.reply, replied.account.thread_id


async def test_a_folder_becomes_a_book(tmp_path: Path, demo_folder: Path) -> None:
    settings = Settings.model_validate({"askbook_home": tmp_path, "askbook_embedder": "none"})
    async with open_askbook(settings) as askbook:
        job = await askbook.jobs.submit(BOOK, str(demo_folder), "incremental")
        job = await askbook.worker.run_job(job.job_id)
        assert (job.status, job.files_total) == ("completed", 42)

        # Asked again at once, nothing has changed and nothing is done.
        job = await askbook.jobs.submit(BOOK, str(demo_folder), "incremental")
        job = await askbook.worker.run_job(job.job_id)
        assert (job.chunks_created, job.chunks_deleted) == (0, 0)


async def test_a_reader_asks_and_checks_the_source(demo_home: Path, demo_folder: Path) -> None:
    async with open_askbook(Settings.model_validate({"askbook_home": demo_home})) as askbook:
        answer, _ = await ask(askbook, "Why does a subscriber get nothing from a best-effort publisher?")

    assert isinstance(answer, Answer)
    assert answer.confidence.should_answer
    assert "[1]" in answer.text
    for source in answer.sources:
        # Each quote stands in the book, at the very place that the source names.
        page = (demo_folder / source.passage.chunk.source_file).read_text(encoding="utf-8")
        assert page[source.start : source.end] == source.quote
        assert source.quote in answer.text


async def test_the_answer_comes_as_it_is_found(demo_home: Path) -> None:
    async with open_askbook(Settings.model_validate({"askbook_home": demo_home})) as askbook:
        events = [event async for event in askbook.ask(Question("What is a URDF file?", Filters(BOOK)))]

    replied = events[-1]
    assert isinstance(replied, Replied)
    assert "".join(event.text for event in events if isinstance(event, Delta)) == replied.reply.text


async def test_the_reader_follows_up(demo_home: Path) -> None:
    async with open_askbook(Settings.model_validate({"askbook_home": demo_home})) as askbook:
        first, thread_id = await ask(askbook, "What is a URDF file?")
        more, _ = await ask(askbook, "Tell me more", thread_id)

    assert isinstance(first, Answer) and isinstance(more, Answer)
    assert more.text != first.text
    assert {"URDF"} & set(more.text.replace(".", " ").replace(",", " ").split())


async def test_the_book_does_not_say(demo_home: Path) -> None:
    async with open_askbook(Settings.model_validate({"askbook_home": demo_home})) as askbook:
        refusal, _ = await ask(askbook, "Which yeast do I need for sourdough bread?")

    assert isinstance(refusal, Refusal)
    assert refusal.reason == "not_in_book"
    assert refusal.text == "I don't have information about that in the book content"
    assert refusal.nearest and refusal.advice


async def test_the_conversation_goes_on_after_a_restart(demo_home: Path) -> None:
    settings = Settings.model_validate({"askbook_home": demo_home})
    async with open_askbook(settings) as askbook:
        _, thread_id = await ask(askbook, "What is a URDF file?")
        before = await askbook.threads.load(thread_id)

    async with open_askbook(settings) as askbook:
        assert await askbook.threads.load(thread_id) == before
        reply, same = await ask(askbook, "Can you give an example?", thread_id)
        assert same == thread_id
        assert isinstance(reply, Answer)
        history = await askbook.threads.load_history(thread_id)
        assert [message.role for message in history] == ["user", "assistant", "user", "assistant"]
