"""Empty databases for tests."""

from __future__ import annotations

import uuid

import asyncpg
from sqlalchemy.engine import make_url


async def fresh_postgres(url: str) -> str:
    """The address of a new database of the server at this one."""
    name = f"t{uuid.uuid4().hex}"
    connection = await asyncpg.connect(url)
    await connection.execute(f"CREATE DATABASE {name}")
    await connection.close()
    return make_url(url).set(database=name).render_as_string(hide_password=False)
