"""`/feedback` and `/gaps`: what readers thought of answers, and what the book could not answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from api.tenants import BOOK, World, make_key, open_world
from databases import fresh_postgres

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["sqlite", "postgresql"])
async def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    url = await fresh_postgres(request.getfixturevalue("postgres_url")) if request.param == "postgresql" else None
    async with open_world(tmp_path_factory.mktemp("world"), url, askbook_rate_limit=0) as world:
        yield world


async def ask(world: World, key: str, text: str) -> str:
    asked = await world.call("POST", "/chat/run", key, json={"message": text})
    assert asked.status_code == 200, asked.text
    return asked.json()["session_id"]


async def refuse(world: World, key: str, text: str) -> str:
    """A question of this key that the book does not answer."""
    session = await ask(world, key, text)
    history = await world.call("GET", f"/session/{session}/history", key)
    assert history.json()["messages"][-1]["content"].startswith("I don't have information"), history.text
    return session


async def test_a_thumb_on_the_last_answer_and_on_an_earlier_one(world: World) -> None:
    key = world.tenants["acme"].reader
    session = await ask(world, key, "What force does the gripper close with?")
    await world.call("POST", "/chat/run", key, json={"message": "What is the lidar code?", "session_id": session})
    last = await world.call("POST", "/feedback", key, json={"session_id": session, "helpful": True})
    assert last.status_code == 200
    assert {name: last.json()[name] for name in ("session_id", "position", "helpful", "comment")} == {
        "session_id": session,
        "position": 3,
        "helpful": True,
        "comment": None,
    }
    body = {"session_id": session.upper(), "helpful": False, "position": 1, "comment": "Which gripper? \x00"}
    first = await world.call("POST", "/feedback", key, json=body)
    assert (first.json()["position"], first.json()["comment"]) == (1, "Which gripper? \ufffd")


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"position": 0}, 404),
        ({"position": 99}, 404),
        ({"session_id": "550e8400-e29b-41d4-a716-446655440000"}, 404),
        ({"position": -1}, 400),
        ({"position": 10**12}, 400),
        ({"session_id": "not-a-uuid"}, 400),
        ({"helpful": None}, 400),
        ({"helpful": "yes"}, 400),
        ({"comment": "x" * 1001}, 400),
        ({"owner": "acme"}, 400),
    ],
)
async def test_a_thumb_on_nothing_is_refused(world: World, change: dict[str, Any], status: int) -> None:
    key = world.tenants["acme"].reader
    session = await ask(world, key, "What force does the gripper close with?")
    refused = await world.call("POST", "/feedback", key, json={"session_id": session, "helpful": False, **change})
    assert refused.status_code == status, refused.text
    assert refused.json()["error"] == ("not_found" if status == 404 else "validation_error")


async def test_an_author_sees_what_the_book_lacks(world: World) -> None:
    beta = world.tenants["beta"]
    for text in (
        "Who bakes bread in the gripper factory?",
        "who bakes bread in the gripper factory",
        "Which yeast is best?",
    ):
        await refuse(world, beta.reader, text)
    disliked = await ask(world, beta.reader, "What force does the gripper close with?")
    down = {"session_id": disliked, "helpful": False, "comment": "Too short."}
    await refuse(world, beta.admin, "Who bakes bread in the gripper factory?")
    await world.call("POST", "/feedback", beta.reader, json=down)
    found = (await world.call("GET", "/gaps", beta.admin)).json()
    bread = found["gaps"][0]
    assert (bread["question"], bread["count"], bread["refused"]) == ("Who bakes bread in the gripper factory?", 3, 3)
    assert (bread["book_id"], f"/read/{BOOK}/" in bread["section"]["url"]) == (BOOK, True)
    assert {"title", "source_file", "parent_doc_id"} <= bread["section"].keys()
    assert found["total"] == len(found["gaps"]) and found["questions"] == sum(gap["count"] for gap in found["gaps"])
    fewer = (await world.call("GET", f"/gaps?limit=1&book_id={BOOK}", beta.admin)).json()
    assert (len(fewer["gaps"]), fewer["total"]) == (1, found["total"])


async def test_nobody_else_does(world: World) -> None:
    acme, beta = world.tenants["acme"], world.tenants["beta"]
    await refuse(world, beta.reader, "What is the secret of beta?")
    assert (await world.call("GET", "/gaps", beta.reader)).status_code == 401
    assert "secret of beta" not in (await world.call("GET", "/gaps", acme.admin)).text
    blind = await make_key(world.askbook, "beta", "admin", ("another-book",))
    assert (await world.call("GET", "/gaps", blind)).json() == {"gaps": [], "total": 0, "questions": 0}
    assert (await world.call("GET", "/gaps?book_id=nothing", beta.admin)).status_code == 404
    for query in ("days=0", "limit=0", "limit=101", "book_id=acme/robots", "days=x"):
        assert (await world.call("GET", f"/gaps?{query}", beta.admin)).status_code == 400, query


async def test_a_deleted_session_takes_its_questions_along(world: World) -> None:
    home = world.tenants[""]
    session = await refuse(world, home.reader, "How do I forget this?")
    assert "How do I forget this?" in (await world.call("GET", "/gaps", home.admin)).text
    assert (await world.call("DELETE", f"/session/{session}", home.reader)).status_code == 204
    assert "How do I forget this?" not in (await world.call("GET", "/gaps", home.admin)).text
