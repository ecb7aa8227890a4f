"""`askbook mcp`: the books as tools for other agents, on stdin and stdout."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from askbook.answer.ask import get_reply
from askbook.cli.running import run_async
from askbook.domain import Question, Replied
from askbook.errors import DataInUse, IndexUnavailable, InputError
from askbook.settings import Settings, load_settings
from askbook.wiring import Askbook, open_askbook

if TYPE_CHECKING:
    from starlette.requests import Request

    from askbook.api.tools import Visit

IDLE_SECONDS = 20.0


def mcp(
    url: Annotated[
        str | None,
        typer.Option(help="Ask the server at this address, as http://127.0.0.1:8000, in place of the data here."),
    ] = None,
    key: Annotated[
        str | None, typer.Option(help="The key for that server; or set ASKBOOK_KEY.", envvar="ASKBOOK_KEY")
    ] = None,
) -> None:
    """Be an MCP server on stdin and stdout: search_book, ask_book, read_lesson, list_books for agents and editors."""
    if find_spec("mcp") is None:
        raise InputError("the package mcp is not installed", "pip install 'askbook[mcp]'")
    from askbook.api.logs import configure_logs
    from askbook.api.mcp import build_bridge, serve_stdio

    settings = load_settings()
    configure_logs(settings)
    if url is None:
        return run_async(_serve(settings))
    endpoint = url if url.rstrip("/").endswith("/mcp") else f"{url.rstrip('/')}/mcp"
    run_async(serve_stdio(build_bridge(endpoint, key)))


async def _serve(settings: Settings) -> None:
    from askbook.api.answering import fail_without_service
    from askbook.api.callers import MACHINE
    from askbook.api.mcp import build_server, serve_stdio
    from askbook.api.tools import Visit
    from askbook.shapes.body import at_home
    from askbook.shapes.problems import to_problem

    loan = Loan(settings)

    @asynccontextmanager
    async def visit(_request: Request | None) -> AsyncIterator[Visit]:
        async with loan.borrow() as askbook:

            async def answer(question: Question) -> Replied:
                async with aclosing(askbook.ask(question)) as events:
                    return await get_reply(fail_without_service(event) async for event in events)

            with at_home(settings.askbook_public_url or (askbook.server.url if askbook.server else None)):
                yield Visit(askbook, MACHINE, answer)

    try:
        await serve_stdio(build_server(visit, to_problem))
    finally:
        await loan.close()


class Loan:
    """askbook, held only while it is used. An agent runs all day; between its questions others can open the data."""

    def __init__(self, settings: Settings, idle_seconds: float = IDLE_SECONDS) -> None:
        self._settings = settings
        self._idle_seconds = idle_seconds
        self._lock = asyncio.Lock()
        self._stack = AsyncExitStack()
        self._askbook: Askbook | None = None
        self._users = 0
        self._return: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def borrow(self) -> AsyncIterator[Askbook]:
        async with self._lock:
            if self._askbook is not None and not self._users and await _server_has_ended(self._askbook):
                await self.close()
            askbook = self._askbook = self._askbook or await self._open()
            self._users += 1
        try:
            yield askbook
        finally:
            self._users -= 1
            if self._return is not None:
                self._return.cancel()
            self._return = asyncio.create_task(self._return_later())

    async def _open(self) -> Askbook:
        try:
            return await self._stack.enter_async_context(open_askbook(self._settings))
        except DataInUse as error:
            later = f"Another agent gives it back after {self._idle_seconds:g} seconds: try again then."
            raise DataInUse(error.message, later) from error

    async def _return_later(self) -> None:
        await asyncio.sleep(self._idle_seconds)
        async with self._lock:
            if not self._users:
                await self.close()

    async def close(self) -> None:
        self._askbook = None
        await self._stack.aclose()


async def _server_has_ended(askbook: Askbook) -> bool:
    if askbook.server is None:
        return False
    try:
        await askbook.index.ping()
    except IndexUnavailable:
        return True
    return False
