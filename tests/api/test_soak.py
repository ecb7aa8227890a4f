"""L6: an hour of readers who ask, search, read and leave, and an author who edits. Memory stays where it was.

`SOAK_MINUTES=3 pytest --torture --row L6` is a shorter hour.
"""

from __future__ import annotations

import itertools
import os
import shutil
import time
from collections import Counter
from pathlib import Path

import httpx2
import pytest

from api.service import wait_until
from cli.serving import Server, serve
from figures import Figure

MINUTES = float(os.environ.get("SOAK_MINUTES", "60"))
GROWTH, PAUSE = 1.05, 0.5
"""The pause leaves the other core, and much of this one, to the rows that run beside this."""

pytestmark = [pytest.mark.row("L6"), pytest.mark.torture, pytest.mark.timeout(60 * MINUTES + 600)]


def _megabytes(server: Server) -> float:
    told = dict(line.split(":", 1) for line in Path(f"/proc/{server.process.pid}/status").read_text().splitlines())
    return int(told["VmRSS"].split()[0]) / 1024


def _visit(client: httpx2.Client, number: int) -> list[int]:
    """A reader's turn: another question each time, so that nothing is known already."""
    question = f"With what force does the gripper close, asked for time {number}?"
    asked = client.post("/chat/run", json={"message": question})
    with client.stream("POST", "/chat/stream", json={"message": f"{question} Again?"}) as streamed:
        next(streamed.iter_lines())
    calls = [
        client.post("/search", json={"text": f"lidar and glass {number}", "limit": 5, "rerank": number % 5 == 0}),
        client.get("/contents"),
        client.get("/sessions"),
        client.get("/read", follow_redirects=True),
        client.post("/ask", json={"query": f"Which yeast does bread number {number} need?"}),
        client.delete(f"/session/{asked.json()['session_id']}"),
    ]
    return [asked.status_code, streamed.status_code, *(one.status_code for one in calls)]


def _edit(client: httpx2.Client, folder: Path, number: int) -> int:
    (folder / "99-diary.md").write_text(f"# Diary\n\nOn day {number} the arm moved {number} crates.\n")
    job = client.post("/ingestion/trigger", json={"mode": "incremental"})
    wait_until(lambda: _is_done(client, job.json()["job_id"]), 60)
    return job.status_code


def _is_done(client: httpx2.Client, job_id: str) -> bool:
    return client.get(f"/ingestion/status/{job_id}").json()["status"] == "completed"


def test_memory_stays_where_it_was(robots_folder: Path, tmp_path: Path, figure: Figure) -> None:
    folder = Path(shutil.copytree(robots_folder, tmp_path / "book"))
    statuses, sizes, third = Counter[int](), list[float](), 1
    with serve(tmp_path / "home", str(folder), ASKBOOK_RATE_LIMIT="0") as server, server.client() as client:
        wait_until(lambda: client.get("/contents").json().get("modules"), 120)
        started = time.monotonic()
        for number in itertools.count():
            statuses.update(_visit(client, number))
            if number % 20 == 0:
                statuses[_edit(client, folder, number)] += 1
            sizes.append(_megabytes(server))
            if (past := time.monotonic() - started) > 60 * MINUTES:
                break
            if past < 20 * MINUTES:
                third = len(sizes)
            time.sleep(PAUSE)
    # A moment's size is what the last request left: the middle of a tenth of the time is steadier.
    span = max(len(sizes) // 10, 1)
    early, late = (sorted(part)[len(part) // 2] for part in (sizes[max(third - span, 0) : third], sizes[-span:]))
    figure(
        f"L6: {MINUTES:g} min, {statuses.total()} requests {dict(statuses)}: {early:.0f} MB after a third, "
        f"{late:.0f} MB at the end (× {late / early:.3f})",
        cases=statuses.total(),
    )
    assert not [status for status in statuses if status >= 500]
    assert late <= GROWTH * early
