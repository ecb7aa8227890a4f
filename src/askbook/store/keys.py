"""API keys: who may ask, in which role, and of which books.

A key is `askbook_<id>_<secret>`. It is shown once, when it is made; what is kept is its SHA-256. The secret is 256
random bits, which nobody can guess: a slow salted hash, made for passwords, would only slow down every request.
A key with origins is public in the pages of those sites, and does not work on the pages of others.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from sqlalchemy import RowMapping, insert, select, update

from askbook.domain import Key, Role, Scope
from askbook.errors import InputError, NotFound
from askbook.store.database import Database, to_storable
from askbook.store.schema import keys

NAME_MAX = 80
TOUCH_EVERY = timedelta(minutes=1)
"""A key's last use is kept to the minute; a write for every request would cost more."""

KEY = re.compile(r"askbook_([0-9a-f]{12})_[A-Za-z0-9_-]{43}")
_TENANT = re.compile(r"[a-z0-9][a-z0-9-]{0,23}")
_PUBLIC_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_ORIGIN = re.compile(r"https?://([a-z0-9-]+(\.[a-z0-9-]+)*|\[[0-9a-f:]+\])(:[0-9]{1,5})?")
_NOBODY = "0" * 64


class Keys:
    def __init__(self, database: Database, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.database = database
        self.clock = clock

    async def create(
        self, name: str, role: Role = "reader", scope: Scope | None = None, origins: Iterable[str] = ()
    ) -> tuple[Key, str]:
        """The key and its text, which cannot be shown again. With origins, a public key for those sites."""
        scope = scope or Scope()
        _check_scope(scope)
        sites = tuple(dict.fromkeys(_read_origin(origin) for origin in origins))
        if sites and role != "reader":
            raise InputError("a key for a site is a reader's: whoever sees the page has it", "Leave the role out.")
        said = to_storable(" ".join(name.split()))
        if not 1 <= len(said) <= NAME_MAX:
            raise InputError(f"a key's name has 1 to {NAME_MAX} characters, not {len(said)}", "Say whose key it is.")
        key_id = secrets.token_hex(6)
        text = f"askbook_{key_id}_{secrets.token_urlsafe(32)}"
        key = Key(key_id, said, role, scope, self.clock(), origins=sites)
        row = {
            "key_id": key_id,
            "secret_hash": _hash(text),
            "name": key.name,
            "tenant": scope.tenant,
            "role": role,
            "books": None if scope.books is None else list(scope.books),
            "created_at": key.created_at,
            "origins": list(sites) or None,
        }
        await self.database.save(insert(keys).values(row))
        return key, text

    async def find(self, text: str) -> Key | None:
        """The key with this text, unless it was revoked."""
        shaped = KEY.fullmatch(text)
        if shaped is None:
            return None
        row = next(iter(await self.database.load(select(keys).where(keys.c.key_id == shaped[1]))), None)
        # Compared in constant time, also where there is no such key, so that the time reveals nothing.
        same = hmac.compare_digest(_hash(text), row["secret_hash"] if row else _NOBODY)
        return _to_key(row) if row and same and row["revoked_at"] is None else None

    async def touch(self, key: Key) -> None:
        now = self.clock()
        # A last use in the future means that the clock was set back.
        if key.last_used_at is not None and abs(now - key.last_used_at) < TOUCH_EVERY:
            return
        await self.database.save(update(keys).where(keys.c.key_id == key.key_id).values(last_used_at=now))

    async def revoke(self, key_id: str, scope: Scope | None = None) -> Key:
        """At once and for good; a second time changes nothing. A key outside the scope is reported as missing."""
        async with self.database.writing() as connection:
            query = select(keys).where(keys.c.key_id == to_storable(key_id)).with_for_update()
            row = (await connection.execute(query)).mappings().first()
            key = _to_key(row) if row else None
            if key is None or (scope is not None and not scope.covers(key.scope)):
                raise NotFound(f"there is no key {to_storable(key_id)[:NAME_MAX]}", "`askbook keys list` lists them.")
            if key.revoked_at is None:
                key = replace(key, revoked_at=self.clock())
                gone = update(keys).where(keys.c.key_id == key.key_id)
                await connection.execute(gone.values(revoked_at=key.revoked_at))
        return key

    async def load_all(self, scope: Scope | None = None) -> list[Key]:
        """The oldest first, with the revoked ones. No scope means all tenants: only the terminal may ask so."""
        rows = await self.database.load(select(keys).order_by(keys.c.created_at, keys.c.key_id))
        found = [_to_key(row) for row in rows]
        return [key for key in found if scope is None or scope.covers(key.scope)]

    async def load_origins(self) -> frozenset[str]:
        """The sites of all keys in force."""
        query = select(keys.c.origins).where(keys.c.origins.is_not(None), keys.c.revoked_at.is_(None))
        return frozenset(origin for row in await self.database.load(query) for origin in row["origins"])

    async def were_made(self) -> bool:
        """Whether there has ever been a key: revoking the last one does not open the machine again."""
        return await self.database.load_value(select(keys.c.key_id).limit(1)) is not None

    async def are_in_force(self) -> bool:
        in_force = select(keys.c.key_id).where(keys.c.revoked_at.is_(None)).limit(1)
        return await self.database.load_value(in_force) is not None


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _read_origin(text: str) -> str:
    """As a browser writes it: in lower case, without a path and without the scheme's default port."""
    scheme, _, host = text.strip().lower().rstrip("/").partition("://")
    origin = f"{scheme}://{host.removesuffix({'http': ':80', 'https': ':443'}.get(scheme, '/'))}"
    if not _ORIGIN.fullmatch(origin):
        raise InputError(
            f"{to_storable(text)[:NAME_MAX]!r} is not the origin of a site", "Write https://docs.example.org."
        )
    return origin


def _check_scope(scope: Scope) -> None:
    if scope.tenant and not _TENANT.fullmatch(scope.tenant):
        raise InputError(
            f"{scope.tenant!r} cannot be a tenant", "Use 1 to 24 small letters, digits or `-`, not beginning with `-`."
        )
    for book_id in scope.books or ():
        if not _PUBLIC_ID.fullmatch(book_id):
            raise InputError(f"{book_id!r} cannot be a book id", "Name a book as its readers do, without its tenant.")
    if scope.books is not None and not scope.books:
        raise InputError("a key for no book at all is of no use", "Name a book, or none for all of them.")


def _to_key(row: RowMapping) -> Key:
    plain = {name: row[name] for name in ("key_id", "name", "role", "created_at", "revoked_at", "last_used_at")}
    scope = Scope(row["tenant"], None if row["books"] is None else tuple(row["books"]))
    return Key(**plain, scope=scope, origins=tuple(row["origins"] or ()))
