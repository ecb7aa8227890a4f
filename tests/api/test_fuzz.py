"""B1: every route of the OpenAPI document is sent what fits its schema, what does not, and text no database likes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from schemathesis import Case, GenerationMode
from schemathesis.core.result import Ok
from schemathesis.schemas import APIOperation

from api.service import build_settings, ingest, serve
from askbook.api.app import create_app
from askbook.settings import Settings
from askbook.wiring import open_store
from canaries import SECRET, find_stored
from databases import fresh_postgres
from figures import Figure

pytestmark = pytest.mark.row("B1")

CASES, TORTURE = 1_200, 11_000
"""Over all routes and both databases. A route that takes nothing has fewer, so that 1,000, and 10,000, are left."""
SLOWEST = 10.0
UNHURRIED = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large)
POISON = (
    "\x00",
    "\ud800",
    "a\udfffb\x00",
    "\u202e\u2066\ufeff",
    "💥" * 300,
    "' OR 1=1 --",
    "../../etc/passwd",
    "%00%ff",
)
HOSTILE_TO = frozenset(("Traceback", "askbook.db", "site-packages"))

DOCUMENT = schemathesis.openapi.from_dict(create_app(Settings()).openapi())
OPERATIONS = {found.ok().label: found.ok() for found in DOCUMENT.get_all_operations() if isinstance(found, Ok)}


@dataclass
class Target:
    url: str
    key: str
    statuses: Counter[int] = field(default_factory=Counter[int])


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def target(
    request: pytest.FixtureRequest, robots_folder: Path, tmp_path_factory: pytest.TempPathFactory, figure: Figure
) -> Iterator[Target]:
    changes: dict[str, object] = {"askbook_embedder": "none", "askbook_rate_limit": 0}
    if request.param == "postgresql":
        changes["database_url"] = asyncio.run(fresh_postgres(request.getfixturevalue("postgres_url")))
    made = build_settings(tmp_path_factory.mktemp("fuzzed"), **changes)
    asyncio.run(ingest(made, robots_folder))
    with serve(made) as service:
        target = Target(service.url, asyncio.run(_make_key(made)))
        yield target
    assert asyncio.run(_find_stored(made)) == []
    figure(
        f"B1 on {request.param}: {target.statuses.total()} cases, by status {sorted(target.statuses.items())}",
        target.statuses.total(),
    )


async def _make_key(made: Settings) -> str:
    async with open_store(made) as store:
        return (await store.keys.create("fuzz", role="admin"))[1]


async def _find_stored(made: Settings) -> list[str]:
    async with open_store(made) as store:
        return await find_stored(store.keys.database, made.askbook_home)


@pytest.mark.parametrize("label", OPERATIONS)
def test_nothing_breaks_it(label: str, target: Target, torture: bool) -> None:
    operation = OPERATIONS[label]
    each = (TORTURE if torture else CASES) // (2 * len(OPERATIONS)) + 1

    @settings(max_examples=each, deadline=None, database=None, suppress_health_check=UNHURRIED)
    @given(case=_cases(operation), poison=st.none() | st.sampled_from(POISON))
    def send(case: Case, poison: str | None) -> None:
        request = case.as_transport_kwargs(base_url=target.url, headers={"X-API-Key": target.key})
        if poison is not None and "json" in request:
            request["json"] = _poison(request["json"], poison)
        reply = requests.request(**request, timeout=2 * SLOWEST)
        target.statuses[reply.status_code] += 1
        assert reply.status_code < 500, (request, reply.text)
        assert reply.elapsed.total_seconds() < SLOWEST
        assert not [word for word in HOSTILE_TO if word in reply.text]
        if label != "POST /keys":
            assert not SECRET.search(f"{reply.text} {reply.headers}")
        if reply.status_code >= 400:
            told = reply.json()
            ours = {"error", "message", "status_code", "request_id"} <= told.keys()
            assert set(told["error"]) == {"message", "type", "param", "code"} if "/v1/" in label else ours

    send()


def _cases(operation: APIOperation[Any, Any, Any, Any]) -> SearchStrategy[Case]:
    fitting = operation.as_strategy(GenerationMode.POSITIVE)
    takes_something = operation.body or list(operation.iter_parameters())
    return fitting | operation.as_strategy(GenerationMode.NEGATIVE) if takes_something else fitting


def _poison(value: Any, poison: str) -> Any:
    """Every text in it ends badly."""
    if isinstance(value, str):
        return value + poison
    if isinstance(value, list):
        return [_poison(one, poison) for one in value]
    return {name: _poison(one, poison) for name, one in value.items()} if isinstance(value, dict) else value
