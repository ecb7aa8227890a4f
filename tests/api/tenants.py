"""Three tenants with a book of the same name, and a canary in each that no other tenant may ever see."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from httpx2 import ASGITransport, AsyncClient, Response

from askbook.api.app import create_app
from askbook.domain import Role, Scope, to_internal_id
from askbook.settings import Settings
from askbook.wiring import Askbook, open_askbook

BOOK = "robots"
TENANTS = ("", "acme", "beta")
WEBHOOK_SECRET = "whsec-canary-5f1b"


def canary(tenant: str) -> str:
    return f"KANARI{tenant.upper() or 'HOME'}77"


LESSONS = {
    "gripper": "The gripper closes with a force of 40 newtons. A gripper must not lift more than 2 kilograms.",
    "lidar": "The lidar turns ten times a second. Its range is 12 meters. It cannot see glass.",
    "battery": "The battery holds 5 ampere hours. Charge the battery before it falls below 20 percent.",
}


def write_book(folder: Path, tenant: str) -> Path:
    """The canary is wherever a book can hold one: its title, a file's name, a heading, the text."""
    mark = canary(tenant)
    folder.mkdir(parents=True)
    (folder / "askbook.toml").write_text(f'book_id = "{BOOK}"\ntitle = "Robots of {mark}"\n')
    for number, (topic, text) in enumerate(LESSONS.items(), start=1):
        page = (
            f"# The {topic} {mark}\n\n## What a {topic} does\n\n{text} Its {topic} code is {mark}.\n\n"
            "![A part](img/part.png)\n"
        )
        (folder / f"{number:02}-{topic}-{mark.lower()}.md").write_text(page)
    (folder / "img").mkdir()
    (folder / "img" / "part.png").write_bytes(b"\x89PNG\r\n\x1a\n" + mark.encode())
    return folder


@dataclass
class Tenant:
    name: str
    reader: str
    admin: str
    revoked: str
    chunk_ids: list[str]
    lesson_ids: list[str]
    job_ids: list[int]
    session_ids: list[str] = field(default_factory=list)

    @property
    def mark(self) -> str:
        return canary(self.name)


@dataclass
class World:
    app: FastAPI
    askbook: Askbook
    client: AsyncClient
    tenants: dict[str, Tenant]

    async def call(self, method: str, path: str, key: str | None = None, **more: Any) -> Response:
        headers = {"X-API-Key": key} if key else {}
        return await self.client.request(method, path, headers={**headers, **more.pop("headers", {})}, **more)

    def routes(self) -> set[tuple[str, str]]:
        """Every route of the app, whoever added it."""
        return {
            (method, route.path or "")
            for route in iter_route_contexts(self.app.routes)
            for method in (getattr(route, "methods", None) or ("*",))
            if method != "HEAD"
        }

    def all_keys(self) -> Iterator[str]:
        for tenant in self.tenants.values():
            yield from (tenant.reader, tenant.admin, tenant.revoked)


@contextlib.asynccontextmanager
async def open_world(folder: Path, database_url: str | None = None, **changes: object) -> AsyncIterator[World]:
    settings = Settings.model_validate(
        {
            "askbook_home": folder / "home",
            "askbook_embedder": "none",
            "askbook_local_owner": False,
            "database_url": database_url,
            "askbook_webhook_secret": WEBHOOK_SECRET,
            **changes,
        }
    )
    async with open_askbook(settings) as askbook:
        tenants = {name: await _settle(askbook, folder / f"book-{name}", name) for name in TENANTS}
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        transport = ASGITransport(app, client=("127.0.0.1", 50_000))
        async with AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
            yield World(app, app.state.askbook, client, tenants)


async def _settle(askbook: Askbook, folder: Path, name: str) -> Tenant:
    book_id = to_internal_id(name, BOOK)
    job = await askbook.jobs.submit(book_id, str(write_book(folder, name)), "incremental")
    job = await askbook.worker.run_job(job.job_id)
    assert job.status == "completed", job.error_message
    records = (await askbook.ledger.load_records(book_id)).values()
    revoked = await make_key(askbook, name, "admin")
    await askbook.keys.revoke(revoked.split("_")[1])
    return Tenant(
        name,
        reader=await make_key(askbook, name, "reader"),
        admin=await make_key(askbook, name, "admin"),
        revoked=revoked,
        chunk_ids=[chunk_id for record in records for chunk_id in record.chunk_ids],
        lesson_ids=[record.parent_doc_id for record in records],
        job_ids=[job.job_id],
    )


async def make_key(askbook: Askbook, tenant: str, role: Role, books: tuple[str, ...] | None = None) -> str:
    _, text = await askbook.keys.create(f"{role} of {tenant}", role, Scope(tenant, books))
    return text


def find_leaks(response: Response, tenant: str) -> list[str]:
    """What a response holds that its caller may not see: another's canary, or an internal id of anybody."""
    seen = f"{response.text} {json.dumps(dict(response.headers))}".casefold()
    foreign = [canary(one) for one in TENANTS if one != tenant]
    internal = [to_internal_id(one, BOOK) for one in TENANTS if one]
    return [one for one in (*foreign, *internal) if one.casefold() in seen]
