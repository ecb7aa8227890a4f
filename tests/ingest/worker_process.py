"""Run as a process: a worker that takes part in every job until one is done, as `askbook worker` does but faster.

worker_process.py SILENCE_SECONDS [STEP NTH SIGNAL]: at the step it sends itself SIGKILL or SIGSTOP.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from datetime import timedelta

from world import CountingEmbedder

from askbook.domain import Job
from askbook.ingest.pipeline import Sizes, Step, Tally
from askbook.settings import load_settings
from askbook.wiring import open_askbook


async def main(silence: str, deadly: str = "", nth: str = "0", fate: str = "SIGKILL") -> None:
    async with open_askbook(load_settings()) as askbook:
        worker = askbook.worker
        worker.silence = timedelta(seconds=float(silence))
        if "SMALL_SHARDS" in os.environ:
            worker.sizes = Sizes(commit=4, embed=2, write=2)
        if askbook.embedder is not None:
            worker.embedder = CountingEmbedder(askbook.embedder)
        steps: list[Step] = []

        def watch(_job: Job, step: Step, _tally: Tally) -> None:
            steps.append(step)
            if step == deadly and steps.count(step) == int(nth):
                os.kill(os.getpid(), signal.Signals[fate])

        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        while jobs := await askbook.jobs.load_open():
            for job in jobs:
                await worker.run_job(job.job_id, watch)
            await asyncio.sleep(0.1)
        texts = worker.embedder.texts if isinstance(worker.embedder, CountingEmbedder) else []
        finished = steps.count("done")
        print(
            json.dumps({"texts": len(texts), "committed": steps.count("committed"), "finished": finished}), flush=True
        )


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
