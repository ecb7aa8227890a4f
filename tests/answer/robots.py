"""A small book whose every fact is known, and a second one that nobody may see."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path

from answer.scripted_model import Script, ScriptedModel, scripted_model
from askbook.answer.agent import AgentConfig, BookAgent
from askbook.breaker import Breaker
from askbook.settings import Settings
from askbook.wiring import Askbook, open_askbook

BOOK, OTHER = "robots", "secret-b"
CANARY = "CANARY-B-77"
KEY = "sk-canary-0123456789-0123456789-0123456789-abcdef"

LESSONS = {
    "gripper": "The gripper closes with a force of 40 newtons. A gripper must not lift more than 2 kilograms. "
    "The soft gripper is slower than the vacuum gripper. Call `close_gripper()` to close it.",
    "lidar": "The lidar turns ten times a second. Its range is 12 meters. It cannot see glass. "
    "The lidar publishes on the topic `/scan`.\n\n"
    "Clean the lidar with a dry cloth every week. Dust on its window makes points appear where nothing is. "
    "A lidar that was dropped must be sent back to be aligned.",
    "battery": "The battery holds 5 ampere hours. Charge the battery before it falls below 20 percent. "
    "A cold battery gives less power than a warm one.",
    "wheel": "Each wheel has a diameter of 15 centimeters. The wheel encoder counts 4096 ticks in a turn. "
    "Two wheels are driven, and the third one follows.",
    "camera": "The camera takes 30 pictures a second. It sees color but no depth. Calibrate the camera once a month.",
    "planner": "The planner finds a path around every obstacle that it knows. It replans twice a second. "
    "Without a map the planner does nothing.",
}


def write_lessons(folder: Path, lessons: Mapping[str, str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for number, (topic, text) in enumerate(lessons.items(), start=1):
        file = folder / f"{number:02}-{topic}.md"
        file.write_text(f"# The {topic}\n\n## What a {topic} does\n\n{text}\n", encoding="utf-8")
    return folder


def ingest_books(home: Path, books: Mapping[str, Path]) -> Path:
    async def ingest() -> None:
        async with open_askbook(Settings.model_validate({"askbook_home": home})) as askbook:
            for book_id, folder in books.items():
                job = await askbook.jobs.submit(book_id, str(folder), "incremental")
                job = await askbook.worker.run_job(job.job_id)
                assert job.status == "completed", job.error_message

    asyncio.run(ingest())
    return home


@contextlib.asynccontextmanager
async def open_with_model(
    home: Path, script: Script, api: str = "chat", breaker: Breaker | None = None, **changes: object
) -> AsyncIterator[tuple[Askbook, ScriptedModel]]:
    """askbook with a scripted model behind real HTTP, and no patience between tries."""
    with scripted_model(script) as model:
        # How soon a model must begin is a test of its own.
        values = {"askbook_home": home, "askbook_answerer": "extractive", "askbook_ask_seconds": 60, **changes}
        settings = Settings.model_validate(values)
        async with open_askbook(settings) as askbook:
            agent = BookAgent(
                AgentConfig(
                    "scripted",
                    "responses" if api == "responses" else "chat",
                    model.url,
                    KEY,
                    generation_seconds=settings.askbook_generation_seconds,
                    ask_seconds=settings.askbook_ask_seconds,
                    first_wait=0.02,
                ),
                breaker,
            )
            try:
                yield replace(askbook, agent=agent), model
            finally:
                await agent.close()
