"""S2: every route with every kind of key. A new route without a row here fails."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from api.tenants import BOOK, WEBHOOK_SECRET, Tenant, World, find_leaks, make_key, open_world
from databases import fresh_postgres
from figures import Figure

pytestmark = [pytest.mark.row("S2"), pytest.mark.asyncio(loop_scope="module")]

QUESTION = "What force does the gripper close with?"


@dataclass(frozen=True)
class Row:
    """How a route is called, and who may call it."""

    path: str = ""
    """The route's own where it is the same for everybody; `{…}` stands for an id of the tenant that owns it."""
    json: dict[str, Any] | None = None
    allowed: str = "reader"
    """open, reader, admin, server: an admin bound to no tenant; owner: by a token of its own, which no key is."""
    own: int = 200
    foreign: int = 404
    """What another tenant's key gets for this tenant's ids; 200 where the route names none, or a book both have."""


ROWS: dict[tuple[str, str], Row] = {
    **{
        ("POST", path): Row(json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, foreign=200)
        for path in ("/mcp", "/mcp/")
    },
    ("POST", "/ask"): Row(json={"query": QUESTION, "book_id": BOOK}, foreign=200),
    ("POST", "/chat/run"): Row(json={"message": QUESTION, "session_id": "{session}"}),
    ("POST", "/chat/stream"): Row(json={"message": QUESTION, "session_id": "{session}"}),
    ("GET", "/sessions"): Row(foreign=200),
    ("GET", "/session/{session_id}/history"): Row("/session/{session}/history"),
    ("PATCH", "/session/{session_id}"): Row("/session/{session}", json={"title": "Grippers"}),
    ("DELETE", "/session/{session_id}"): Row("/session/{session}", own=204),
    ("POST", "/search"): Row(json={"text": "gripper force"}, foreign=200),
    ("GET", "/context/{chunk_id}"): Row("/context/{chunk}"),
    ("GET", "/lesson/{parent_doc_id}"): Row("/lesson/{lesson}"),
    ("GET", "/contents"): Row(foreign=200),
    ("GET", "/info"): Row(foreign=200),
    ("GET", "/read"): Row(own=307, foreign=307),
    # Another's chunk is not there: one's own book opens at its beginning.
    ("GET", "/read/{book_id}"): Row(f"/read/{BOOK}?chunk={{chunk}}", own=307, foreign=307),
    ("GET", "/read/{book_id}/{path:path}"): Row(f"/read/{BOOK}/{{file}}"),
    ("GET", "/picture/{book_id}/{chunk_id}"): Row(f"/picture/{BOOK}/{{chunk}}?src=img/part.png"),
    # The last of these: it leaves a cookie with the client.
    ("POST", "/read"): Row(own=204, foreign=204),
    ("POST", "/ingestion/trigger"): Row(json={"book_id": BOOK}, allowed="admin", own=202, foreign=202),
    ("GET", "/ingestion/status"): Row(allowed="admin", foreign=200),
    ("GET", "/ingestion/status/{job_id}"): Row("/ingestion/status/{job}", allowed="admin"),
    ("GET", "/ingestion/changes"): Row(allowed="admin", foreign=200),
    ("POST", "/feedback"): Row(json={"session_id": "{session}", "helpful": False}),
    ("GET", "/gaps"): Row(allowed="admin", foreign=200),
    ("GET", "/usage"): Row(allowed="admin", foreign=200),
    ("GET", "/keys"): Row(allowed="admin", foreign=200),
    ("POST", "/keys"): Row(json={"name": "Ann"}, allowed="admin", own=201, foreign=201),
    ("DELETE", "/keys/{key_id}"): Row("/keys/{key}", allowed="admin"),
    ("POST", "/v1/chat/completions"): Row(
        json={"model": BOOK, "messages": [{"role": "user", "content": QUESTION}]}, foreign=200
    ),
    ("POST", "/v1/responses"): Row(json={"model": BOOK, "input": QUESTION}, foreign=200),
    ("GET", "/v1/models"): Row(foreign=200),
    ("GET", "/v1/models/{model:path}"): Row(f"/v1/models/{BOOK}", foreign=200),
    **{
        ("POST", f"/owner/{work}"): Row(json={}, allowed="owner")
        for work in ("find", "vectors", "points", "ping", "jobs")
    },
    ("GET", "/metrics"): Row(allowed="server", foreign=401, own=401),
    ("GET", "/health"): Row(allowed="open", foreign=200),
    ("GET", "/ready"): Row(allowed="open", foreign=200),
    ("GET", "/"): Row(allowed="open", foreign=200),
    ("GET", "/assets/{name}"): Row("/assets/base.css", allowed="open", foreign=200),
    ("GET", "/admin"): Row(allowed="open", foreign=200),
    ("GET", "/widget.js"): Row(allowed="open", foreign=200),
    ("GET", "/docs"): Row(allowed="open", foreign=200),
    ("GET", "/openapi.json"): Row(allowed="open", foreign=200),
}
SIGNED = ("POST", "/ingestion/webhook/github")
"""By a signature in place of a key; see below."""


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["sqlite", "postgresql"])
async def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    url = await fresh_postgres(request.getfixturevalue("postgres_url")) if request.param == "postgresql" else None
    async with open_world(tmp_path_factory.mktemp("world"), url, askbook_rate_limit=0) as world:
        yield world


def _fill(template: Any, ids: dict[str, str]) -> Any:
    match template:
        case str():
            for name, value in ids.items():
                template = template.replace(f"{{{name}}}", value)
            return template
        case dict():
            return {name: _fill(value, ids) for name, value in template.items()}
        case _:
            return template


async def _call(world: World, route: tuple[str, str], row: Row, owner: Tenant, key: str | None) -> int:
    """As somebody with this key would, with ids of the owner's; nothing of anybody else may be in what comes back."""
    method, path = route
    session = await _start_session(world, owner, key)
    ids = {
        "session": session,
        "chunk": owner.chunk_ids[0],
        "lesson": owner.lesson_ids[0],
        "job": str(owner.job_ids[0]),
        "file": f"01-gripper-{owner.mark.lower()}",
        "key": (await make_key(world.askbook, owner.name, "reader")).split("_")[1],
    }
    response = await world.call(method, _fill(row.path or path, ids), key, json=_fill(row.json, ids))
    caller = next((one for one in world.tenants.values() if key in (one.reader, one.admin)), None)
    if row.allowed != "open":
        assert find_leaks(response, caller.name if caller else "nobody") == [], (route, response.text)
    if response.status_code == 200 and "event: error" in response.text:
        # The answer has begun; that there is no such session is an event of it.
        return 404 if '"not_found"' in response.text else 500
    return response.status_code


async def _start_session(world: World, owner: Tenant, key: str | None) -> str:
    """Of the key itself where it is the owner's: threads belong to a key."""
    key = key if key in (owner.reader, owner.admin) else owner.reader
    asked = await world.call("POST", "/chat/run", key, json={"message": QUESTION})
    assert asked.status_code == 200, asked.text
    return asked.json()["session_id"]


async def test_every_route_has_a_row(world: World) -> None:
    assert world.routes() == {*ROWS, SIGNED}


async def test_every_route_with_every_key(world: World, figure: Figure) -> None:
    acme, beta = world.tenants["acme"], world.tenants["beta"]
    wrong = acme.reader[:-4] + ("AAAA" if not acme.reader.endswith("AAAA") else "BBBB")
    expected: dict[str, tuple[str | None, Callable[[Row], int]]] = {
        "none": (None, lambda row: row.own if row.allowed == "open" else 401),
        "wrong": (wrong, lambda row: row.own if row.allowed == "open" else 401),
        "revoked": (acme.revoked, lambda row: row.own if row.allowed == "open" else 401),
        "another's reader": (beta.reader, lambda row: 401 if row.allowed in ("admin", "server") else row.foreign),
        "another's admin": (beta.admin, lambda row: row.foreign),
        "own reader": (acme.reader, lambda row: 401 if row.allowed in ("admin", "server") else row.own),
        "own admin": (acme.admin, lambda row: row.own),
    }
    wrongs = []
    for route, row in ROWS.items():
        for name, (key, wanted) in expected.items():
            got, due = await _call(world, route, row, acme, key), 401 if row.allowed == "owner" else wanted(row)
            if got != due:
                wrongs.append(f"{' '.join(route)} with the {name} key: {got}, not {due}")
    figure(f"S2: {len(ROWS)} routes × {len(expected)} keys, {len(wrongs)} not as expected", len(ROWS) * len(expected))
    assert wrongs == []


async def test_the_counts_of_all_tenants_are_for_the_server_s_own_admin(world: World) -> None:
    narrow = await make_key(world.askbook, "", "admin", (BOOK,))
    for key, status in ((world.tenants[""].admin, 200), (world.tenants[""].reader, 401), (narrow, 401)):
        assert (await world.call("GET", "/metrics", key)).status_code == status


async def test_threads_are_of_one_key(world: World) -> None:
    """Two keys of one tenant do not read each other's conversations."""
    acme = world.tenants["acme"]
    session = await _start_session(world, acme, acme.reader)
    assert (await world.call("GET", f"/session/{session}/history", acme.admin)).status_code == 404
    listed = (await world.call("GET", "/sessions", acme.admin)).json()["threads"]
    assert session not in [one["thread_id"] for one in listed]


async def test_the_webhook_goes_by_its_signature(world: World) -> None:
    acme = world.tenants["acme"]
    body = b'{"ref": "refs/heads/main", "repository": {"default_branch": "main"}}'
    good = hmac.new(WEBHOOK_SECRET.encode(), body, hashlib.sha256).hexdigest()
    for signature, delivery, status in (
        ("", "d1", 401),
        ("sha256=" + "0" * 64, "d2", 401),
        (f"sha256={good}", "d3", 202),
    ):
        headers = {"X-Hub-Signature-256": signature, "X-GitHub-Delivery": delivery, "X-GitHub-Event": "push"}
        sent = await world.call("POST", SIGNED[1], acme.admin, content=body, headers=headers)
        assert sent.status_code == status, sent.text
        assert find_leaks(sent, "nobody") == []
