"""A key for a site: public, a reader's, good on that site's pages alone; no reader sees another's threads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from httpx2 import ASGITransport, AsyncClient, Response

from api.tenants import BOOK, World, make_key, open_world
from askbook.api.app import create_app
from askbook.api.middleware import FRESH_SECONDS
from askbook.domain import Scope
from askbook.errors import InputError
from askbook.settings import Settings
from databases import fresh_postgres

pytestmark = [pytest.mark.row("S3"), pytest.mark.asyncio(loop_scope="module")]

SITE = "https://docs.example.org"
OTHER = "https://other.example.org"
ANN, BOB = "ann-" + "a" * 30, "bob-" + "b" * 30
QUESTION = "What is the gripper code?"


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["sqlite", "postgresql"])
async def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    url = await fresh_postgres(request.getfixturevalue("postgres_url")) if request.param == "postgresql" else None
    async with open_world(tmp_path_factory.mktemp("world"), url, askbook_cors_origins=OTHER) as world:
        yield world


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def key(world: World) -> str:
    """As soon as its site was read with the other keys'."""
    _, text = await world.askbook.keys.create("docs", "reader", Scope("acme"), [SITE, "https://Docs.Example.com:443/"])
    await asyncio.sleep(FRESH_SECONDS)
    return text


async def _call(
    world: World,
    key: str,
    origin: str | None = SITE,
    reader: str | None = ANN,
    method: str = "GET",
    path: str = "/sessions",
    **more: object,
) -> Response:
    headers = {name: value for name, value in (("Origin", origin), ("X-Reader", reader)) if value}
    return await world.call(method, path, key, headers=headers, **more)


async def _ask(world: World, key: str, reader: str, session_id: str | None = None) -> Response:
    body = {"message": QUESTION, "session_id": session_id}
    return await _call(world, key, SITE, reader, "POST", "/chat/run", json=body)


async def test_it_works_on_its_sites_alone(world: World, key: str) -> None:
    for origin in (SITE, "https://docs.example.com"):
        assert (await _call(world, key, origin)).status_code == 200
    for origin in (
        None,
        "null",
        OTHER,
        "http://docs.example.org",
        f"{SITE}:8443",
        f"{SITE}.evil.example",
        SITE.upper(),
    ):
        refused = await _call(world, key, origin)
        assert (refused.status_code, refused.json()["error"]) == (401, "authentication_error"), origin
        assert refused.headers.get("Access-Control-Allow-Origin") in (None, origin)


async def test_the_browser_is_told_which_sites_may_ask(world: World, key: str) -> None:
    def preflight(origin: str) -> dict[str, str]:
        wanted = "content-type, x-api-key, x-reader"
        method = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": wanted}
        return {"Origin": origin, **method}

    for origin, allowed in ((SITE, True), (OTHER, True), ("https://evil.example", False), ("null", False)):
        before = await world.client.options("/chat/stream", headers=preflight(origin))
        assert (before.status_code == 200) is allowed
        assert before.headers.get("Access-Control-Allow-Origin") == (origin if allowed else None)
        after = await _call(world, key, origin)
        assert after.headers.get("Access-Control-Allow-Origin") == (origin if allowed else None)
        assert "Access-Control-Allow-Credentials" not in after.headers and "Origin" in after.headers["Vary"]


async def test_a_revoked_key_takes_its_site_with_it(world: World) -> None:
    asked = {"Origin": "https://blog.example.org", "Access-Control-Request-Method": "POST"}
    key, _ = await world.askbook.keys.create("blog", origins=["https://blog.example.org"])
    await asyncio.sleep(FRESH_SECONDS)
    assert (await world.client.options("/ask", headers=asked)).status_code == 200
    await world.askbook.keys.revoke(key.key_id)
    await asyncio.sleep(FRESH_SECONDS)
    assert (await world.client.options("/ask", headers=asked)).status_code == 400


async def test_readers_of_one_key_do_not_see_each_other(world: World, key: str) -> None:
    asked = await _ask(world, key, ANN)
    session = asked.json()["session_id"]
    assert (await _ask(world, key, ANN, session)).status_code == 200
    assert [one["thread_id"] for one in (await _call(world, key)).json()["threads"]] == [session]
    assert (await _call(world, key, reader=BOB)).json()["threads"] == []
    assert (await _call(world, key, reader=BOB, path=f"/session/{session}/history")).status_code == 404
    assert (await _call(world, key, reader=BOB, method="DELETE", path=f"/session/{session}")).status_code == 404
    assert (await _ask(world, key, BOB, session)).status_code == 404
    thumb = {"session_id": session, "helpful": True}
    assert (await _call(world, key, reader=BOB, method="POST", path="/feedback", json=thumb)).status_code == 404
    for reader in (None, "short", "a" * 129, "a b" * 20):
        refused = await _call(world, key, reader=reader)
        assert (refused.status_code, "X-Reader" in refused.json()["message"]) == (400, True)


async def test_it_is_a_readers(world: World, key: str) -> None:
    for path in ("/gaps", "/usage", "/keys", "/ingestion/status", "/metrics"):
        assert (await _call(world, key, path=path)).status_code == 401
    with pytest.raises(InputError, match="a reader's"):
        await world.askbook.keys.create("docs", "admin", origins=[SITE])
    for wrong in (
        "*",
        "docs.example.org",
        "https://",
        f"{SITE}/path",
        "ftp://a.example",
        "https://a b",
        "https://*.a.org",
        "",
    ):
        with pytest.raises(InputError, match="origin of a site"):
            await world.askbook.keys.create("docs", origins=[wrong])


async def test_static_files_are_for_every_page_and_data_for_none(world: World) -> None:
    for path in ("/widget.js", "/assets/base.css", "/assets/answer.js"):
        file = await world.client.get(path, headers={"Origin": "https://anywhere.example"})
        assert file.headers["Access-Control-Allow-Origin"] == "*", path
        assert file.headers["Cross-Origin-Resource-Policy"] == "cross-origin"
    for path in ("/", "/admin", "/info", "/health", "/openapi.json"):
        told = await world.client.get(path, headers={"Origin": "https://anywhere.example"})
        assert "Access-Control-Allow-Origin" not in told.headers, path


async def test_over_http_a_key_hands_out_no_more_than_it_has(world: World) -> None:
    narrow = await make_key(world.askbook, "acme", "admin", (BOOK,))
    made = await world.call("POST", "/keys", narrow, json={"name": "docs", "books": [BOOK], "origins": [SITE]})
    assert (made.status_code, made.json()["tenant"], made.json()["origins"]) == (201, "acme", [SITE])
    assert (await _call(world, made.json()["key"])).status_code == 200
    wider = await world.call("POST", "/keys", narrow, json={"name": "all"})
    assert (wider.status_code, "cannot read more" in wider.json()["message"]) == (400, True)
    listed = (await world.call("GET", "/keys", narrow)).json()["keys"]
    assert {one["tenant"] for one in listed} == {"acme"} and all(one["books"] == [BOOK] for one in listed)
    assert all("key" not in one and "secret_hash" not in one for one in listed)
    whole = world.tenants["acme"].admin.split("_")[1]
    assert (await world.call("DELETE", f"/keys/{whole}", narrow)).status_code == 404
    gone = await world.call("DELETE", f"/keys/{made.json()['key_id']}", narrow)
    assert gone.json()["revoked_at"] is not None
    assert (await _call(world, made.json()["key"])).status_code == 401


async def test_usage_counts_what_was_asked_of_ones_own_books(world: World, key: str) -> None:
    acme = world.tenants["acme"]
    before = (await world.call("GET", "/usage", acme.admin)).json()
    asked = await _ask(world, key, ANN)
    refused = await world.call("POST", "/ask", acme.reader, json={"query": "Which yeast for sourdough bread?"})
    assert refused.json()["refused"]
    thumb = {"session_id": asked.json()["session_id"], "helpful": True, "comment": "Just so."}
    await _call(world, key, method="POST", path="/feedback", json=thumb)
    after = (await world.call("GET", "/usage?days=7", acme.admin)).json()
    assert (len(before["days"]), len(after["days"])) == (30, 7)
    old, new = before["days"][-1], after["days"][-1]
    assert (new["asked"] - old["asked"], new["helpful"] - old["helpful"]) == (2, 1)
    assert sum(new["refused"].values()) == sum(old["refused"].values()) + 1
    assert sum(new["levels"].values()) == sum(old["levels"].values()) + 1
    assert (after["opinions"][0]["comment"], after["opinions"][0]["book_id"]) == ("Just so.", BOOK)
    named = (await world.call("GET", f"/usage?book_id={BOOK}", acme.admin)).json()["days"][-1]
    assert named == new
    beta = (await world.call("GET", "/usage", world.tenants["beta"].admin)).json()
    assert beta["opinions"] == [] and sum(day["asked"] for day in beta["days"]) == 0


async def test_what_a_page_of_another_site_sends_is_not_from_whoever_sits_here(tmp_path: Path) -> None:
    """Nor can it make a key."""
    settings = {"askbook_home": tmp_path, "askbook_embedder": "none", "askbook_cors_origins": OTHER}
    app = create_app(Settings.model_validate(settings))
    async with app.router.lifespan_context(app):
        transport = ASGITransport(app, client=("127.0.0.1", 50_000))
        async with AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
            for origin, status in (("http://127.0.0.1:8000", 200), (OTHER, 200), (SITE, 401), ("null", 401)):
                assert (await client.get("/info", headers={"Origin": origin})).status_code == status, origin
            key = {"name": "mine", "role": "admin"}
            assert (await client.post("/keys", json=key, headers={"Origin": SITE})).status_code == 401
            assert (await client.post("/keys", json=key)).status_code == 201
            assert (await client.get("/info", headers={"Origin": SITE})).status_code == 401
