"""S1: random callers, random routes, ids of everybody; whatever comes back holds nothing of another tenant."""

from __future__ import annotations

import random
import re
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from httpx2 import Response

from api.tenants import BOOK, Tenant, World, find_leaks, make_key, open_world
from databases import fresh_postgres
from figures import Figure

pytestmark = [pytest.mark.row("S1"), pytest.mark.asyncio(loop_scope="module")]

OPERATIONS, TORTURE = 300, 10_000


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["sqlite", "postgresql"])
async def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    url = await fresh_postgres(request.getfixturevalue("postgres_url")) if request.param == "postgresql" else None
    async with open_world(tmp_path_factory.mktemp("world"), url, askbook_rate_limit=0) as world:
        yield world


class Mischief:
    """One random operation after another; it knows everybody's ids, and names them to everybody."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.chance = random.Random(seed)
        self.seen: Counter[str] = Counter()
        self.tenants = list(world.tenants.values())

    async def run(self, count: int) -> None:
        for _ in range(count):
            caller = self.chance.choice(self.tenants)
            victim = self.chance.choice(self.tenants)
            key = self.chance.choice((caller.reader, caller.admin))
            method, path, more, session = self._invent(caller, victim, key)
            response = await self.world.call(method, path, key, **more)
            self._check(caller, victim, f"{method} {path} {more}", response, session)
            self._remember(caller, path, response)

    def _check(self, caller: Tenant, victim: Tenant, what: str, response: Response, names_victim: bool) -> None:
        assert response.status_code < 500, (what, response.text)
        # What the caller sent itself may come back to it.
        leaks = [one for one in find_leaks(response, caller.name) if one not in what]
        assert leaks == [], (what, response.text)
        if names_victim and caller is not victim:
            hidden = response.status_code in (401, 404) or '"not_found"' in response.text
            assert hidden, (what, response.status_code, response.text)
            self.seen["foreign"] += 1
        self.seen[str(response.status_code)] += 1

    def _remember(self, caller: Tenant, path: str, response: Response) -> None:
        if response.status_code == 204:
            # Nobody's from now on: whoever names it next begins a conversation of that id.
            caller.session_ids = [one for one in caller.session_ids if one not in path]
        found = re.search(r'"session_id":"([0-9a-f-]{36})"', response.text)
        if found and response.status_code == 200 and '"not_found"' not in response.text:
            caller.session_ids.append(found[1])
        if response.status_code == 202:
            caller.job_ids.append(response.json()["job_id"])

    def _invent(self, caller: Tenant, victim: Tenant, key: str) -> tuple[str, str, dict[str, Any], bool]:
        pick = self.chance.choice
        question = pick(("What is the {} code?", "How strong is the gripper of {}?", "Who bakes bread for {}?"))
        asked = question.format(pick((caller.mark, "the gripper", "the lidar")))
        session = pick(victim.session_ids) if victim.session_ids else None
        book = pick((BOOK, BOOK, None, f"{victim.name}.{BOOK}", f"{victim.name}/{BOOK}", "nothing"))
        named = {} if book is None else {"book_id": book}
        talk = {"session_id": session} if session and self.chance.random() < 0.5 else {}
        ids = {"book_id": BOOK} if self.chance.random() < 0.5 else {}
        completion = {"model": book or "askbook", "messages": [{"role": "user", "content": asked}], **talk}
        before = {"previous_response_id": f"resp_{uuid.UUID(session).hex}{0:016}"} if session and talk else {}
        response = {"model": book or "askbook", "input": asked, **before}
        thread = {"thread_id": session} if talk else {}
        tools: list[tuple[str, dict[str, Any]]] = [
            ("ask_book", {"question": asked, **named, **thread}),
            ("search_book", {"query": asked, **named, "lesson_id": pick(victim.lesson_ids)}),
            ("read_lesson", {"lesson": pick(victim.lesson_ids), **named}),
            ("list_books", {}),
        ]
        foreign_key = "nothing" if caller is victim else pick((victim.reader, victim.admin)).split("_")[1]
        made: list[tuple[str, str, dict[str, Any], bool]] = [
            *(("POST", path, {"json": _to_call(*tool)}, False) for path in ("/mcp", "/mcp/") for tool in tools),
            ("GET", "/contents", {"params": named}, False),
            ("GET", "/usage", {"params": named}, False),
            ("GET", "/keys", {}, False),
            ("POST", "/keys", {"json": {"name": "another"}}, False),
            ("DELETE", f"/keys/{foreign_key}", {}, True),
            ("GET", f"/read/{book or BOOK}", {"params": {"chunk": pick(victim.chunk_ids)}}, False),
            ("GET", f"/read/{book or BOOK}/01-gripper", {}, False),
            ("GET", f"/picture/{BOOK}/{pick(victim.chunk_ids)}", {"params": {"src": "img/part.png"}}, True),
            ("POST", "/read", {}, False),
            ("POST", "/ask", {"json": {"query": asked, **named, **talk}}, bool(talk) and book in (BOOK, None)),
            ("POST", "/chat/run", {"json": {"message": asked, **talk}}, bool(talk)),
            ("POST", "/chat/stream", {"json": {"message": asked, **talk}}, bool(talk)),
            ("POST", "/v1/chat/completions", {"json": completion}, bool(talk) and book in (BOOK, None)),
            ("POST", "/v1/responses", {"json": response}, bool(talk) and book in (BOOK, None)),
            *(
                ("POST", f"/owner/{work}", {"json": {}}, False)
                for work in ("find", "vectors", "points", "ping", "jobs")
            ),
            ("POST", "/search", {"json": {"text": asked, **named, "parent_doc_id": pick(victim.lesson_ids)}}, False),
            ("POST", "/search", {"json": {"text": f"the code of {victim.name or 'home'}", **named}}, False),
            ("GET", f"/context/{pick(victim.chunk_ids)}", {"params": ids}, True),
            ("GET", f"/lesson/{pick(victim.lesson_ids)}", {"params": ids}, True),
            ("GET", f"/ingestion/status/{pick(victim.job_ids)}", {}, True),
            ("GET", "/ingestion/status", {"params": {**named, "records": True}}, False),
            ("GET", "/ingestion/changes", {"params": named}, False),
            ("POST", "/ingestion/trigger", {"json": named}, False),
            ("GET", "/sessions", {"params": named}, False),
            ("GET", "/gaps", {"params": named}, False),
            ("GET", "/info", {}, False),
            ("GET", "/v1/models", {}, False),
            ("GET", f"/v1/models/{book or BOOK}", {}, False),
            ("GET", "/metrics", {}, False),
            ("GET", "/health", {}, False),
            ("GET", "/ready", {}, False),
        ]
        if session:
            thumb = {"session_id": session, "helpful": False, "comment": f"said by {caller.mark}"}
            made += [
                ("GET", f"/session/{session}/history", {}, True),
                ("POST", "/feedback", {"json": thumb}, True),
                ("PATCH", f"/session/{session}", {"json": {"title": f"named by {caller.mark}"}}, True),
                ("DELETE", f"/session/{session}", {}, True),
            ]
        return pick(made)


def _to_call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


async def test_no_canary_crosses(world: World, torture: bool, figure: Figure) -> None:
    mischief = Mischief(world, seed=43)
    await mischief.run(TORTURE if torture else OPERATIONS)
    count = sum(mischief.seen.values()) - mischief.seen["foreign"]
    figure(f"S1: {count} operations, {dict(mischief.seen)}, 0 leaks", cases=count)
    assert mischief.seen["foreign"] > 20 and mischief.seen["200"] > 50 and mischief.seen["202"]
    tried = (await world.call("GET", "/metrics", world.tenants[""].admin)).text
    left_out = [path for _, path in world.routes() if f'route="{path}"' not in tried]
    public = ["/", "/admin", "/assets/{name}", "/docs", "/openapi.json", "/widget.js"]
    assert sorted(left_out) == sorted([*public, "/ingestion/webhook/github"])


async def test_a_key_for_some_books_reads_no_other(world: World) -> None:
    blind = await make_key(world.askbook, "acme", "admin", ("something-else",))
    acme = world.tenants["acme"]
    assert (await world.call("GET", "/info", blind)).json()["books"] == []
    calls: list[tuple[str, str, dict[str, Any]]] = [
        ("POST", "/ask", {"json": {"query": "What is the gripper code?", "book_id": BOOK}}),
        ("POST", "/ask", {"json": {"query": "What is the gripper code?"}}),
        ("GET", f"/context/{acme.chunk_ids[0]}", {}),
        ("GET", f"/lesson/{acme.lesson_ids[0]}", {"params": {"book_id": BOOK}}),
        ("GET", f"/ingestion/status/{acme.job_ids[0]}", {}),
        ("POST", "/ingestion/trigger", {"json": {"book_id": BOOK}}),
        ("GET", f"/v1/models/{BOOK}", {}),
    ]
    for method, path, more in calls:
        response = await world.call(method, path, blind, **more)
        assert response.status_code == 404, (path, response.text)
        assert acme.mark.casefold() not in response.text.casefold()


async def test_links_name_the_book_as_its_readers_do(world: World) -> None:
    acme = world.tenants["acme"]
    found = (await world.call("POST", "/search", acme.reader, json={"text": "gripper code"})).json()
    assert found["book_id"] == BOOK
    assert found["results"] and all(f"/read/{BOOK}/" in one["url"] for one in found["results"])
