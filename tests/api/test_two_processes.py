"""L5 with two real processes: one PostgreSQL, one Redis, one key, and no more than a hundred requests in a minute."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import httpx2
import pytest

from api.redis_server import run_redis
from api.service import build_settings
from askbook.wiring import open_store
from cli.serving import serve
from databases import fresh_postgres
from figures import Figure

pytestmark = pytest.mark.row("L5")

REQUESTS, LIMIT = 150, 100
SPOOFED = [{}, {"X-Forwarded-For": "203.0.113.9"}, {"Forwarded": "for=198.51.100.7"}]


async def test_a_key_has_one_minute_for_all_processes(postgres_url: str, tmp_path: Path, figure: Figure) -> None:
    database = await fresh_postgres(postgres_url)
    async with open_store(build_settings(tmp_path, database_url=database)) as store:
        key = (await store.keys.create("ann"))[1]
    with run_redis(tmp_path) as redis:
        shared = {"DATABASE_URL": database, "REDIS_URL": redis.url, "ASKBOOK_EMBEDDER": "none"}
        with serve(tmp_path / "one", **shared) as one, serve(tmp_path / "two", **shared) as two:
            replies = await _ask_all([one.url, two.url], key)
    statuses = Counter(reply.status_code for reply in replies)
    figure(f"L5: {REQUESTS} requests at once to two processes: {dict(statuses)}", cases=REQUESTS)
    assert statuses == {200: LIMIT, 429: REQUESTS - LIMIT}
    assert all(1 <= int(reply.headers["Retry-After"]) <= 60 for reply in replies if reply.status_code == 429)


async def _ask_all(urls: list[str], key: str) -> list[httpx2.Response]:
    async with httpx2.AsyncClient(timeout=30) as client:
        return await asyncio.gather(
            *(
                client.get(f"{urls[number % 2]}/info", headers={"X-API-Key": key, **SPOOFED[number % len(SPOOFED)]})
                for number in range(REQUESTS)
            )
        )
