"""Packs a data folder of this version's schema: `python tests/upgrades/make_home.py`, once for each released schema.

What it holds: a book of two lessons, embedded; a conversation; a key.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import tempfile
from pathlib import Path

from askbook.answer.ask import get_reply
from askbook.domain import Filters, Question
from askbook.settings import Settings
from askbook.store.database import HEAD
from askbook.wiring import open_askbook

HOMES = Path(__file__).parent
BOOK, QUESTION, ANSWER = "kiln", "How long does the kiln cool?", "cools for 26 hours"
LESSONS = {
    "01-kiln.md": "# The kiln\n\nThe kiln cools for 26 hours before its door is opened. It is fired with beech.\n",
    "02-glaze.md": "# Glazes\n\nCobalt makes a glaze blue, and copper makes it green.\n",
}


async def fill(home: Path, folder: Path) -> None:
    async with open_askbook(Settings.model_validate({"askbook_home": home})) as askbook:
        job = await askbook.jobs.submit(BOOK, str(folder), "incremental")
        assert (await askbook.worker.run_job(job.job_id)).status == "completed"
        replied = await get_reply(askbook.ask(Question(QUESTION, Filters(BOOK))))
        assert ANSWER in replied.reply.text
        await askbook.keys.create("a reader")


def main() -> None:
    place = Path(tempfile.gettempdir()) / "askbook-of-another-version"
    shutil.rmtree(place, ignore_errors=True)
    (place / "book").mkdir(parents=True)
    for name, text in LESSONS.items():
        (place / "book" / name).write_text(text)
    asyncio.run(fill(place / "home", place / "book"))
    # The index reserves much more than it fills.
    packed = HOMES / f"{HEAD}.tar.xz"
    subprocess.run(["tar", "--sparse", "-cJf", packed, "--owner=0", "--group=0", "book", "home"], cwd=place, check=True)
    print(packed.name, packed.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
