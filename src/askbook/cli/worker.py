"""`askbook worker`: a process that takes part in ingestions, beside any number of others."""

from __future__ import annotations

import asyncio
import logging
import signal

from askbook.cli.running import run_async
from askbook.errors import InputError
from askbook.settings import Settings, load_settings
from askbook.wiring import are_shared, open_askbook

logger = logging.getLogger("askbook.jobs")


def worker() -> None:
    """Take part in every ingestion, with other workers on any machine, until it is stopped."""
    settings = load_settings()
    if not are_shared(settings):
        raise InputError(
            "workers share their work over PostgreSQL and a Qdrant server, and these are not set",
            "Set DATABASE_URL and QDRANT_URL. On one machine `askbook ingest` and `askbook serve` do the work "
            "themselves.",
        )
    run_async(_work(settings))


async def _work(settings: Settings) -> None:
    from askbook.api.logs import configure_logs
    from askbook.api.metrics import Metrics
    from askbook.api.runner import Runner

    configure_logs(settings)
    ended = asyncio.Event()
    for sign in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(sign, ended.set)
    async with open_askbook(settings) as askbook:
        for notice in askbook.notices:
            logger.warning(notice)
        runner = Runner(askbook, Metrics(), settings.askbook_refresh_command)
        runner.start()
        logger.info("worker waits for jobs", extra={"worker": askbook.worker.owner})
        await ended.wait()
        await runner.stop()
        logger.info("worker ends; what it had begun goes back", extra={"worker": askbook.worker.owner})
