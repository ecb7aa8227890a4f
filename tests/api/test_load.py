"""Fifty readers at once, each with a key, on a stand-in model that takes its time; then again while a book is ingested.

The model takes two seconds in the middle and four at the 95th percentile, over its two calls. What a reader waits
beyond what the model really took is askbook's own. It is told of all answers, and judged of those during which a
virtual machine's host left it its cores: nothing is quick on a machine that is not there.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import random
import statistics
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from answer.robots import BOOK
from answer.scripted_model import Request, ScriptedModel, Turn, scripted_model, search
from api.service import KEY, RIGHT, build_settings
from askbook.wiring import open_store
from cli.serving import Server, serve
from figures import Figure

DEMO = "physical-ai-robotics"
USERS = 50
MEDIAN, SPREAD = 2.0, math.log(2) / 1.645
"""A log-normal one, so that the 95th percentile is twice the median."""
READING = 3.0
"""Mean seconds that a reader takes over an answer."""
LOOKING = 0.3
"""The share of the model's time that goes into its search."""
ANSWER = f"{RIGHT} [1]. A gripper must not lift more than 2 kilograms [1]."
SLOWEST, OVERHEAD, CPU = 5.0, 0.3, 0.25
"""Four questions are read at once, a third of a core's second each; who comes then is answered by the search alone."""
TAKEN = 0.02
"""The share of a second that a host may take from the cores."""
LEAST = 0.25
"""The share of the answers that must have been left alone for the rest to tell anything."""


@dataclass
class Seen:
    began: list[float] = field(default_factory=list[float])
    whole: list[float] = field(default_factory=list[float])
    own: list[float] = field(default_factory=list[float])
    questions: list[str] = field(default_factory=list[str])
    statuses: list[int] = field(default_factory=list[int])
    answers: list[str] = field(default_factory=list[str])
    taken: list[float] = field(default_factory=list[float])
    """The moments in which the host took more than its share."""

    @property
    def left_alone(self) -> list[float]:
        """What was our own of the answers that no such moment fell into."""
        times = zip(self.began, self.whole, self.own, strict=True)
        return [own for began, whole, own in times if not any(began <= at <= began + whole + 1 for at in self.taken)]


def _model_seconds(question: str) -> float:
    return random.Random(question).lognormvariate(math.log(MEDIAN), SPREAD)


def _script(_number: int, request: Request) -> Turn:
    seconds = _model_seconds(request.messages[-1][1])
    if not request.tool_outputs:
        return _spread(search("force of the gripper"), seconds * LOOKING, 4 + 1 + 7)
    return _spread(Turn(ANSWER), seconds * (1 - LOOKING), 4 + len(ANSWER.split()))


def _spread(turn: Turn, seconds: float, pieces: int) -> Turn:
    return Turn(turn.text, turn.calls, pace=seconds / pieces)


async def _read_all(url: str, model: ScriptedModel, keys: list[str], seconds: float) -> Seen:
    seen, until = Seen(), time.monotonic() + seconds

    async def read(user: int, key: str) -> None:
        reads, number = random.Random(user), 0
        await asyncio.sleep(reads.uniform(0, READING))
        while time.monotonic() < until:
            number += 1
            question = f"With what force does the gripper close, reader {user} asked for time {number}?"
            body = {"message": question, "book_id": BOOK}
            started = time.monotonic()
            reply = await client.post("/chat/run", json=body, headers={"X-API-Key": key})
            took = time.monotonic() - started
            seen.began.append(started)
            seen.whole.append(took)
            seen.questions.append(question)
            seen.statuses.append(reply.status_code)
            seen.answers.append(reply.text)
            await asyncio.sleep(reads.expovariate(1 / READING))

    limits = httpx2.Limits(max_connections=USERS, max_keepalive_connections=USERS)
    async with (
        httpx2.AsyncClient(base_url=url, timeout=30, limits=limits) as client,
        _meanwhile(_watch_host(seen.taken)),
    ):
        await asyncio.gather(*(read(user, key) for user, key in enumerate(keys)))
    spent: defaultdict[str, float] = defaultdict(float)
    for asked, model_seconds in model.spent:
        spent[asked.messages[-1][1]] += model_seconds
    seen.own = [took - spent[question] for took, question in zip(seen.whole, seen.questions, strict=True)]
    model.spent.clear()
    return seen


@contextlib.asynccontextmanager
async def _meanwhile(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()


async def _watch_host(taken: list[float]) -> None:
    before = _read_ticks()
    while True:
        await asyncio.sleep(1)
        after = _read_ticks()
        if after[0] - before[0] > TAKEN * (after[1] - before[1]):
            taken.append(time.monotonic())
        before = after


def _read_ticks() -> tuple[int, int]:
    """Of all cores together: what the host took, and all there were."""
    ticks = [int(one) for one in Path("/proc/stat").read_text().partition("\n")[0].split()[1:9]]
    return ticks[7], sum(ticks)


def _cpu_seconds(server: Server) -> float:
    """Of the server's own process, however busy the machine is."""
    user, system = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _judge(name: str, seen: Seen, cpu: float, timed: bool, figure: Figure) -> None:
    alone = seen.left_alone
    figure(
        f"{name}: {len(seen.whole)} answers to {USERS} readers: p50 {statistics.median(seen.whole):.2f} s, "
        f"p95 {_p95(seen.whole):.2f} s; {cpu / len(seen.whole) * 1000:.0f} ms of CPU each; own {_show(seen.own)}; "
        f"of the {len(alone)} during which the host took no core away, {_show(alone)}",
        cases=len(seen.whole),
    )
    assert set(seen.statuses) == {200}
    assert all(RIGHT in answer for answer in seen.answers)
    if timed:
        assert _p95(seen.whole) < SLOWEST
        assert len(alone) > LEAST * len(seen.own), "the host took the cores away most of the time: try again"
        assert _p95(alone) < OVERHEAD


def _p95(times: Sequence[float]) -> float:
    return statistics.quantiles(times, n=20)[-1]


def _show(times: Sequence[float]) -> str:
    if len(times) < 2:
        return "nothing to tell"
    return f"p50 {statistics.median(times) * 1000:.0f} ms, p95 {_p95(times) * 1000:.0f} ms"


async def _make_keys(home: Path) -> tuple[list[str], str]:
    async with open_store(build_settings(home)) as store:
        readers = [(await store.keys.create(f"reader {number}"))[1] for number in range(USERS)]
        return readers, (await store.keys.create("author", role="admin"))[1]


async def _keep_ingesting(url: str, key: str) -> None:
    """The whole book again, as soon as it is done."""
    async with httpx2.AsyncClient(base_url=url, timeout=30, headers={"X-API-Key": key}) as client:
        while True:
            [job, *_] = (await client.get("/ingestion/status", params={"book_id": DEMO})).json()["jobs"]
            if job["status"] == "completed":
                await client.post("/ingestion/trigger", json={"book_id": DEMO, "mode": "full"})
            await asyncio.sleep(2)


@contextlib.asynccontextmanager
async def _serve_to_readers(home: Path, *folders: str) -> AsyncIterator[tuple[Server, ScriptedModel, list[str], str]]:
    """A server, its model, the readers' keys and the author's."""
    keys, admin = await _make_keys(home)
    with scripted_model(_script) as model:
        environment = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": KEY, "OPENAI_MODEL": "scripted"}
        with serve(home, *folders, **environment) as server:
            yield server, model, keys, admin


def _choose_seconds(torture: bool) -> float:
    return 300 if torture else 15


@pytest.mark.row("L1")
async def test_fifty_readers(home: Path, torture: bool, figure: Figure) -> None:
    """L1. Seconds are judged in the long form, where nothing else runs; what an answer costs, always."""
    async with _serve_to_readers(home) as (server, model, keys, _):
        started = _cpu_seconds(server)
        seen = await _read_all(server.url, model, keys, _choose_seconds(torture))
        cpu = _cpu_seconds(server) - started
    _judge("L1", seen, cpu, torture, figure)
    assert cpu / len(seen.whole) < CPU


@pytest.mark.row("L2")
async def test_fifty_readers_while_a_book_is_ingested(
    home: Path, demo_folder: Path, torture: bool, figure: Figure
) -> None:
    """L2."""
    async with _serve_to_readers(home, str(demo_folder)) as (server, model, keys, admin):
        started = _cpu_seconds(server)
        async with _meanwhile(_keep_ingesting(server.url, admin)):
            seen = await _read_all(server.url, model, keys, _choose_seconds(torture))
        cpu = _cpu_seconds(server) - started
        with server.client() as client:
            jobs = client.get("/ingestion/status", headers={"X-API-Key": admin}).json()["jobs"]
    figure(f"L2: {sum(job['files_processed'] for job in jobs)} files ingested meanwhile, in {len(jobs) - 1} jobs")
    assert not [job for job in jobs if job["status"] == "failed"]
    _judge("L2", seen, cpu, torture, figure)
