"""What a request costs of its key's minute: docs/api.md says so, and who is refused pays for one request."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from api.service import BOOK, build_settings, open_client
from askbook.api.limits import COSTS
from askbook.domain import Role, Scope
from askbook.settings import Settings
from askbook.wiring import open_store

CALLS = {"/ingestion/trigger": ("POST", {"book_id": BOOK}), "/gaps": ("GET", None)}


async def make_key(settings: Settings, role: Role) -> str:
    async with open_store(settings) as store:
        return (await store.keys.create(role, role, Scope("", (BOOK,))))[1]


def spend(client: TestClient, path: str, key: str) -> tuple[int, int]:
    """The status, and what the request cost."""

    def left(method: str, path: str, body: object = None) -> tuple[int, int]:
        answered = client.request(method, path, json=body, headers={"X-API-Key": key})
        return answered.status_code, int(answered.headers["X-RateLimit-Remaining"])

    _, before = left("GET", "/info")
    method, body = CALLS[path]
    status, after = left(method, path, body)
    return status, before - after


def test_a_dear_request_costs_what_the_docs_say(home: Path) -> None:
    settings = build_settings(home)
    admin, reader = (asyncio.run(make_key(settings, role)) for role in ("admin", "reader"))
    page = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
    with open_client(settings) as client:
        for path, cost in COSTS.items():
            status, spent = spend(client, path, admin)
            assert (status < 300, spent) == (True, cost), path
            assert spend(client, path, reader) == (401, 1), "what is refused is not paid for"
            assert f"Costs {cost} requests of the key's minute." in page


@pytest.mark.parametrize("limit", [1, 5])
def test_a_small_limit_leaves_every_route_open(home: Path, limit: int) -> None:
    settings = build_settings(home, askbook_rate_limit=limit)
    keys = {path: {"X-API-Key": asyncio.run(make_key(settings, "admin"))} for path in CALLS}
    with open_client(settings) as client:
        for path, (method, body) in CALLS.items():
            key = keys[path]
            answered = client.request(method, path, json=body, headers=key)
            assert (answered.is_success, answered.headers["X-RateLimit-Remaining"]) == (True, "0"), path
            assert client.get("/info", headers=key).status_code == 429, "that was the whole minute"
