"""Keys: made once, shown once, found by their text alone, gone when they are revoked; on SQLite and on PostgreSQL."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from askbook.domain import Scope, to_internal_id, to_public_id
from askbook.errors import InputError, NotFound
from askbook.store.database import Database
from askbook.store.keys import Keys
from askbook.store.schema import metadata

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@dataclass
class Clock:
    now: datetime = NOON

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def keys(database: Database, clock: Clock) -> Keys:
    return Keys(database, clock)


async def dump(database: Database) -> str:
    """Every row of every table."""
    async with database.reading() as connection:
        rows = [str(tuple(row)) for table in metadata.sorted_tables for row in await connection.execute(select(table))]
    return "\n".join(rows)


async def test_a_key_is_found_by_its_text_alone(keys: Keys) -> None:
    key, text = await keys.create("  Ann's\nlaptop ", "admin", Scope("acme", ("robots", "tea")))
    assert re.fullmatch(r"askbook_[0-9a-f]{12}_[A-Za-z0-9_-]{43}", text)
    assert (key.name, key.role, key.scope, key.created_at) == (
        "Ann's laptop",
        "admin",
        Scope("acme", ("robots", "tea")),
        NOON,
    )
    assert await keys.find(text) == key
    assert await keys.load_all() == [key]
    other, _ = await keys.create("Bob")
    assert other.scope == Scope("", None) and other.key_id != key.key_id


async def test_what_is_not_the_key_is_nobody(keys: Keys) -> None:
    key, text = await keys.create("Ann")
    _, theirs = await keys.create("Bob")
    secret, other_secret = text.split("_", 2)[2], theirs.split("_", 2)[2]
    wrong = [
        "",
        "askbook",
        text[:-1],
        text + "A",
        text.upper(),
        f" {text}",
        f"{text}\n",
        f"askbook_{key.key_id}_{other_secret}",
        f"askbook_{'0' * 12}_{secret}",
        f"askbook_{key.key_id}_{hashlib.sha256(text.encode()).hexdigest()[:43]}",
        "\x00",
        "\ud800",
        "é" * 60,
    ]
    assert [await keys.find(one) for one in wrong] == [None] * len(wrong)


async def test_the_database_never_holds_the_key(keys: Keys, database: Database) -> None:
    _, text = await keys.create("Ann")
    kept = await dump(database)
    assert hashlib.sha256(text.encode()).hexdigest() in kept
    assert text not in kept and text.split("_", 2)[2] not in kept


async def test_revoked_at_once_and_for_good(keys: Keys, clock: Clock) -> None:
    key, text = await keys.create("Ann")
    clock.now += timedelta(hours=1)
    revoked = await keys.revoke(key.key_id)
    assert revoked == replace(key, revoked_at=clock.now)
    assert await keys.find(text) is None
    clock.now += timedelta(hours=1)
    assert await keys.revoke(key.key_id) == revoked
    for nobody in ("", "nobody", "\x00"):
        with pytest.raises(NotFound, match="there is no key"):
            await keys.revoke(nobody)


async def test_a_machine_that_had_a_key_is_not_open_again(keys: Keys) -> None:
    assert not await keys.were_made() and not await keys.are_in_force()
    key, _ = await keys.create("Ann")
    assert await keys.were_made() and await keys.are_in_force()
    await keys.revoke(key.key_id)
    assert await keys.were_made() and not await keys.are_in_force()


async def test_the_last_use_is_known_to_the_minute(keys: Keys, clock: Clock) -> None:
    _, text = await keys.create("Ann")

    async def use_after(**time: float) -> datetime | None:
        clock.now += timedelta(**time)
        key = await keys.find(text)
        assert key is not None
        await keys.touch(key)
        return (await keys.load_all())[0].last_used_at

    first = await use_after(seconds=1)
    assert first == clock.now
    assert await use_after(seconds=30) == first
    assert await use_after(seconds=31) == clock.now
    assert await use_after(hours=-1) == clock.now


@pytest.mark.parametrize(
    ("name", "scope"),
    [
        ("", Scope()),
        ("  ", Scope()),
        ("x" * 81, Scope()),
        ("a", Scope("Acme")),
        ("a", Scope("ac/me")),
        ("a", Scope("-acme")),
        ("a", Scope("a" * 25)),
        ("a", Scope("ac.me")),
        ("a", Scope("acme\n")),
        ("a", Scope("acme", ())),
        ("a", Scope("acme", ("other/robots",))),
        ("a", Scope("acme", ("",))),
    ],
)
async def test_a_key_that_makes_no_sense_is_not_made(keys: Keys, name: str, scope: Scope) -> None:
    with pytest.raises(InputError):
        await keys.create(name, "reader", scope)
    assert await keys.load_all() == []


def test_no_book_belongs_to_two_tenants() -> None:
    """Every pair of a tenant and a public id has an internal id of its own, which tells both."""
    tenants = ("", "acme", "acme-2", "a", "b")
    books = ("robots", "acme.robots", "acme-2.robots", "a", "a.b", "a-b", "acme")
    internal = {to_internal_id(tenant, book): (tenant, book) for tenant in tenants for book in books}
    assert len(internal) == len(tenants) * len(books)
    for book_id, (tenant, book) in internal.items():
        assert to_public_id(book_id) == book
        assert [one for one in tenants if Scope(one).holds(book_id)] == [tenant]
        assert Scope(tenant, (book,)).holds(book_id)
        assert not Scope(tenant, ("other",)).holds(book_id)
