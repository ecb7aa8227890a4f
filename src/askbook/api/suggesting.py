"""Beside everything else, when a book has changed and nobody asks: the questions that its page begins with."""

from __future__ import annotations

import asyncio
import logging

from askbook.answer.suggestions import Suggester
from askbook.errors import AskbookError
from askbook.wiring import Askbook

logger = logging.getLogger("askbook.suggestions")

EVERY_SECONDS, AFTER_FAILURE = 3.0, 60.0


async def keep_suggestions(askbook: Askbook) -> None:
    suggester = Suggester(askbook.ledger, askbook.searcher, askbook.index, askbook.reader, askbook.calibrations)
    while True:
        await asyncio.sleep(EVERY_SECONDS)
        try:
            await _suggest_next(askbook, suggester)
        except AskbookError as error:
            logger.warning("no questions were made: %s", error.message)
            await asyncio.sleep(AFTER_FAILURE)
        except Exception:
            # A page without suggestions is a page all the same.
            logger.exception("making questions failed unexpectedly")
            await asyncio.sleep(AFTER_FAILURE)


async def _suggest_next(askbook: Askbook, suggester: Suggester) -> None:
    """One book at a time. One that is being ingested waits: it would change under its questions."""
    busy = {job.book_id for job in await askbook.jobs.load_open()}
    for book_id, revision in await askbook.ledger.load_unsuggested():
        if book_id not in busy:
            questions = await suggester.suggest(book_id)
            await askbook.ledger.save_suggestions(book_id, revision, questions)
            logger.info("questions made", extra={"book_id": book_id, "count": len(questions)})
            return
