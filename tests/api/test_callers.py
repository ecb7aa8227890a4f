"""Who is let in: by a key, or by sitting at the machine. No header makes a stranger local."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from fastapi import FastAPI
from httpx2 import ASGITransport, AsyncClient

from api.tenants import BOOK, World, make_key, open_world, write_book
from askbook.api.app import CLOSED, create_app
from askbook.api.logs import build_formatter
from askbook.settings import Settings
from askbook.wiring import open_askbook
from canaries import find_stored
from figures import Figure

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTION = {"query": "What force does the gripper close with?"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with open_world(tmp_path_factory.mktemp("world")) as world:
        yield world


def build_settings(home: Path, **changes: object) -> Settings:
    return Settings.model_validate({"askbook_home": home, "askbook_embedder": "none", **changes})


# --- a machine without keys -----------------------------------------------------------------------


@dataclass
class Machine:
    """askbook on a machine of its own, met from anywhere."""

    app: FastAPI

    async def call(self, peer: str | None = "127.0.0.1", host: str = "127.0.0.1:8000", **headers: str) -> int:
        async def from_peer(scope: Any, receive: Any, send: Any) -> None:
            await self.app({**scope, "client": (peer, 50_000) if peer else None}, receive, send)

        async with AsyncClient(transport=ASGITransport(from_peer), base_url=f"http://{host}") as client:
            return (await client.get("/info", headers=headers)).status_code


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def machine(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Machine]:
    """Nobody ever made a key on it."""
    app = create_app(build_settings(tmp_path_factory.mktemp("machine")))
    async with app.router.lifespan_context(app):
        yield Machine(app)


async def test_whoever_sits_at_the_machine_needs_no_key(machine: Machine) -> None:
    for peer in ("127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"):
        assert await machine.call(peer) == 200, peer
    for host in ("localhost:8000", "[::1]:8000", "127.0.0.1"):
        assert await machine.call(host=host) == 200, host
    # Clients of OpenAI cannot be told to send no key.
    assert await machine.call(Authorization="Bearer none") == 200


async def test_a_stranger_needs_one(machine: Machine) -> None:
    for peer in ("10.0.0.7", "8.8.8.8", "::ffff:10.0.0.7", "localhost", "testclient", None):
        assert await machine.call(peer) == 401, peer


async def test_no_header_makes_a_stranger_local(machine: Machine) -> None:
    for header in ("X-Forwarded-For", "X-Real-IP", "Forwarded", "X-Forwarded-Host"):
        assert await machine.call("10.0.0.7", **{header: "127.0.0.1"}) == 401
        # And behind a proxy on this machine everybody seems to come from it.
        assert await machine.call("127.0.0.1", **{header: "127.0.0.1"}) == 401


async def test_a_page_that_had_its_name_point_here_is_a_stranger(machine: Machine) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example", "evil.example:8000", "10.0.0.7"):
        assert await machine.call(host=host) == 401, host
    assert await machine.call(Host="evil.example:80@localhost") == 401


async def test_without_keys_there_is_no_limit(machine: Machine) -> None:
    async with AsyncClient(transport=ASGITransport(machine.app), base_url="http://127.0.0.1") as client:
        answers = [await client.get("/v1/models") for _ in range(120)]
    assert {answer.status_code for answer in answers} == {200}
    assert "X-RateLimit-Limit" not in answers[-1].headers


SIGNS = """
Forwarded X-Forwarded-For X-Forwarded-Host X-Forwarded-Proto X-Forwarded-Port X-Forwarded-Server X-Forwarded-Prefix Via
X-Real-IP CF-Connecting-IP CF-Ray CDN-Loop True-Client-IP X-Client-IP X-Cluster-Client-IP Fastly-Client-IP Fly-Client-IP
CloudFront-Viewer-Address X-Sucuri-ClientIP X-BlueCoat-Via Surrogate-Capability X-Remote-Addr
X-Original-Forwarded-For X-Original-URL X-Envoy-External-Address X-Amzn-Trace-Id X-Azure-ClientIP X-ARR-SSL X-Scheme
X-ProxyUser-Ip Proxy-Connection WL-Proxy-Client-IP X-Cloud-Trace-Context Front-End-Https X-Request-Start
"""


@pytest.mark.parametrize("sign", SIGNS.split())
async def test_any_sign_of_a_proxy_means_not_from_here(machine: Machine, sign: str) -> None:
    assert await machine.call(**{sign: "127.0.0.1"}) == 401
    assert await machine.call(**{sign.lower(): ""}) == 401


async def test_what_clients_send_of_themselves_is_no_sign(machine: Machine) -> None:
    for header in ("User-Agent", "X-Request-Id", "X-Reader", "Traceparent", "X-Stainless-Lang", "Priority", "DNT"):
        assert await machine.call(**{header: "1"}) == 200, header


async def test_a_proxy_that_adds_nothing_speaks_the_old_http(machine: Machine) -> None:
    async def by_old_http(scope: Any, receive: Any, send: Any) -> None:
        await machine.app({**scope, "http_version": "1.0"}, receive, send)

    transport = ASGITransport(by_old_http, client=("127.0.0.1", 50_000))
    async with AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
        assert (await client.get("/info")).status_code == 401


async def test_what_a_browser_says_of_the_page_that_asks(machine: Machine) -> None:
    """A picture, a script or a frame of another site sends no Origin, but says that it is another's."""
    for site, status in (("same-origin", 200), ("none", 200), ("cross-site", 401), ("same-site", 401)):
        assert await machine.call(**{"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}) == status, site
    followed = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert await machine.call(**followed, **{"Sec-Fetch-Dest": "document"}) == 200
    assert await machine.call(**followed, **{"Sec-Fetch-Dest": "iframe"}) == 401


async def test_the_owner_stays_the_owner_whatever_keys_are_made(tmp_path: Path) -> None:
    app = create_app(build_settings(tmp_path))
    transport = ASGITransport(app, client=("127.0.0.1", 50_000))
    async with (
        app.router.lifespan_context(app),
        AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client,
    ):
        job = await app.state.askbook.jobs.submit(BOOK, str(write_book(tmp_path / "book", "")), "incremental")
        await app.state.askbook.worker.run_job(job.job_id)
        asked = (await client.post("/chat/run", json={"message": "What is the gripper code?"})).json()

        async def sees() -> list[str]:
            return [one["thread_id"] for one in (await client.get("/sessions")).json()["threads"]]

        assert await sees() == [asked["session_id"]]
        site = {"name": "docs", "origins": ["https://docs.example.org"]}
        made = (await client.post("/keys", json=site)).json()
        assert await sees() == [asked["session_id"]]
        # Who sends a key is its bearer, and nobody once it is revoked: its program does not become the owner.
        assert (await client.delete(f"/keys/{made['key_id']}")).status_code == 200
        assert (await client.get("/sessions", headers={"X-API-Key": made["key"]})).status_code == 401
        assert await sees() == [asked["session_id"]]
        assert await Machine(app).call("10.0.0.7") == 401


@pytest.mark.parametrize(
    "told, status",
    [
        ({"askbook_local_owner": False}, 401),
        ({"askbook_public_url": "https://ask.example.org"}, 401),
        ({"askbook_public_url": "https://localhost.example.org"}, 401),
        ({"askbook_public_url": "http://localhost:8178"}, 200),
        ({"askbook_public_url": "https://ask.example.org", "askbook_local_owner": True}, 200),
    ],
)
async def test_the_owner_needs_a_key_where_they_say_so_or_a_proxy_stands_before(
    tmp_path: Path, told: dict[str, object], status: int, caplog: pytest.LogCaptureFixture
) -> None:
    app = create_app(build_settings(tmp_path, **told))
    async with app.router.lifespan_context(app):
        assert await Machine(app).call() == status
    assert (CLOSED in caplog.messages) == (status == 401)


# --- by a key -------------------------------------------------------------------------------------


async def test_a_key_is_shown_in_either_header(world: World) -> None:
    key = world.tenants["acme"].reader
    for headers in (
        {"X-API-Key": key},
        {"x-api-key": key},
        {"Authorization": f"Bearer {key}"},
        {"authorization": f"bearer {key}"},
    ):
        assert (await world.client.get("/info", headers=headers)).status_code == 200, headers
    for headers in (
        {"Authorization": key},
        {"Authorization": f"Basic {key}"},
        {"Authorization": "Bearer"},
        {"X-API-Key": f"Bearer {key}"},
        {"Cookie": f"X-API-Key={key}"},
        {"X-API-Key": "wrong", "Authorization": f"Bearer {key}"},
    ):
        refused = await world.client.get("/info", headers=headers)
        assert refused.status_code == 401, headers
        assert refused.json()["error"] == "authentication_error"
        assert refused.headers["WWW-Authenticate"] == "Bearer"
    assert (await world.client.get(f"/info?api_key={key}")).status_code == 401


async def test_revoked_in_the_middle_of_its_use(world: World) -> None:
    key = await make_key(world.askbook, "acme", "reader")
    assert (await world.call("GET", "/info", key)).status_code == 200
    await world.askbook.keys.revoke(key.split("_")[1])
    refused = await world.call("GET", "/info", key)
    wrong = await world.call("GET", "/info", key[:-3] + "AAA")
    assert (refused.status_code, wrong.status_code) == (401, 401)
    # Nobody learns from an answer whether a key was ever right.
    assert [refused.json()[name] for name in ("error", "message", "detail")] == [
        wrong.json()[name] for name in ("error", "message", "detail")
    ]


async def test_an_admin_of_one_tenant_is_nobody_elses(world: World) -> None:
    listed = (await world.call("GET", "/ingestion/status", world.tenants["acme"].admin)).json()
    assert [one["job_id"] for one in listed["jobs"]] == world.tenants["acme"].job_ids
    assert {one["book_id"] for one in listed["jobs"]} == {BOOK}


# --- L5, over HTTP --------------------------------------------------------------------------------


@pytest.mark.row("L5")
async def test_a_hundred_a_minute_whatever_the_headers_say(world: World, figure: Figure) -> None:
    key, other = [await make_key(world.askbook, "acme", "reader") for _ in range(2)]

    async def call(number: int) -> int:
        spoofed = {"X-Forwarded-For": f"10.0.{number}.1", "X-Real-IP": f"10.1.{number}.1", "Forwarded": f"for={number}"}
        return (await world.call("GET", "/v1/models", key, headers=spoofed)).status_code

    statuses = await asyncio.gather(*(call(number) for number in range(150)))
    figure(f"L5: of 150 at once {statuses.count(200)} got in, {statuses.count(429)} were told to wait", cases=150)
    assert (statuses.count(200), statuses.count(429)) == (100, 50)
    refused = await world.call("GET", "/v1/models", key)
    assert refused.json()["error"]["code"] == "rate_limited"
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert (refused.headers["X-RateLimit-Limit"], refused.headers["X-RateLimit-Remaining"]) == ("100", "0")
    assert (await world.call("GET", "/v1/models", other)).headers["X-RateLimit-Remaining"] == "99"


@pytest.mark.row("L5")
async def test_what_is_left_is_on_every_answer(world: World) -> None:
    key = await make_key(world.askbook, "acme", "reader")
    admin = await make_key(world.askbook, "acme", "admin")
    streamed = await world.call("POST", "/chat/stream", key, json={"message": "What is the gripper code?"})
    assert streamed.headers["content-type"].startswith("text/event-stream")
    assert streamed.headers["X-RateLimit-Remaining"] == "99"
    missing = await world.call("GET", "/lesson/00000000-0000-0000-0000-000000000000", key)
    assert (missing.status_code, missing.headers["X-RateLimit-Remaining"]) == (404, "98")
    unfit = await world.call("POST", "/ask", key, json={"query": ""})
    assert (unfit.status_code, unfit.headers["X-RateLimit-Limit"]) == (400, "100")
    assert int(unfit.headers["X-RateLimit-Reset"]) > 1_700_000_000
    dear = await world.call("GET", "/gaps", admin)
    assert dear.headers["X-RateLimit-Remaining"] == "95"


# --- S6: a key is nowhere but in its bearer's hands -----------------------------------------------


@pytest.mark.row("S6")
async def test_no_key_in_logs_bodies_database_or_metrics(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secrets = [key.split("_", 2)[2] for key in world.all_keys()]
    heard: list[str] = []
    for tenant in world.tenants.values():
        for key in (tenant.reader, tenant.admin, tenant.revoked):
            for method, path, body in (
                ("POST", "/ask", QUESTION),
                ("POST", "/ask", {"query": 7}),
                ("GET", f"/lesson/{key}", None),
                ("GET", f"/info?api_key={key}", None),
                ("GET", "/metrics", None),
                ("GET", "/gaps", None),
            ):
                response = await world.call(method, path, key, json=body)
                # What the caller wrote into the address itself may come back to it.
                if key not in path:
                    heard.append(f"{response.headers} {response.text}")
    # But for those of the client, which tell the address that it calls.
    heard += [record.getMessage() for record in caplog.records if not record.name.startswith("http")]
    assert len(heard) > 100
    home = world.askbook.settings.askbook_home
    assert await find_stored(world.askbook.ledger.database, home, secrets) == []
    assert [secret for secret in secrets if any(secret in one for one in heard)] == []


@pytest.mark.row("S6")
async def test_a_key_that_somebody_writes_into_an_address_is_not_logged(world: World, tmp_path: Path) -> None:
    key = world.tenants["acme"].reader
    line = logging.makeLogRecord({"msg": f"GET /info?api_key={key} failed", "levelno": logging.INFO})
    assert build_formatter(build_settings(tmp_path)).format(line).count("***") == 1
    assert key.split("_", 2)[2] not in build_formatter(build_settings(tmp_path)).format(line)


async def test_a_tenants_book_is_ingested_from_the_terminal_by_its_whole_id(tmp_path: Path) -> None:
    folder = write_book(tmp_path / "book", "acme")
    async with open_askbook(build_settings(tmp_path / "home")) as askbook:
        job = await askbook.jobs.submit(f"acme/{BOOK}", str(folder), "incremental")
        assert (await askbook.worker.run_job(job.job_id)).status == "completed"
        (record,) = await askbook.ledger.load_books()
    assert record.book_id == f"acme/{BOOK}"
