"""`askbook serve`: the books over HTTP."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from askbook.api.callers import is_loopback
from askbook.book.reader import read_book
from askbook.cli.book import refuse_another_folder
from askbook.cli.render import err
from askbook.cli.running import run_async
from askbook.errors import InputError
from askbook.settings import Settings, load_settings
from askbook.wiring import are_shared, open_askbook

if TYPE_CHECKING:
    from fastapi import FastAPI

STOP_SECONDS = 7
"""For answers under way when the server is told to end: a little more than their grace."""
IDLE_SECONDS = 15


Port = Annotated[int | None, typer.Option(help="Port to listen on; ASKBOOK_PORT. 0 takes any that is free.")]


def serve(
    folders: Annotated[
        list[Path] | None, typer.Argument(help="Folders of Markdown to bring up to date, in the background.")
    ] = None,
    host: Annotated[
        str | None, typer.Option(help="Address to listen on; ASKBOOK_HOST. Other than loopback needs a key.")
    ] = None,
    port: Port = None,
    workers: Annotated[
        int, typer.Option(help="Processes; more than one needs QDRANT_URL, DATABASE_URL and REDIS_URL.", min=1, max=64)
    ] = 1,
) -> None:
    """Serve the books over HTTP: the page where readers ask, and the API, of which /docs tells."""
    settings = load_settings(askbook_host=host, askbook_port=port)
    _check_workers(settings, workers)
    run_async(_prepare(settings, folders or []))
    run_server(settings, listen(settings), workers)


def build_app() -> FastAPI:
    """What each of several processes runs."""
    from askbook.api.app import create_app
    from askbook.api.logs import configure_logs

    settings = load_settings()
    configure_logs(settings)
    return create_app(settings, alone=True)


def run_server(settings: Settings, listener: socket.socket, workers: int = 1) -> None:
    import uvicorn
    from uvicorn.supervisors import Multiprocess

    from askbook.api.app import create_app
    from askbook.api.logs import configure_logs
    from askbook.api.sockets import PromptRequests

    err.print(f"askbook serves on {_address(listener)} (/docs lists the API; Ctrl+C ends it)")
    configure_logs(settings)
    # Cutting a book holds the interpreter; a short interval gives it back sooner to those who wait for an answer.
    sys.setswitchinterval(0.0005)
    config = uvicorn.Config(
        create_app(settings, alone=True, address=_local_address(listener))
        if workers == 1
        else "askbook.cli.serve:build_app",
        factory=workers > 1,
        workers=workers,
        lifespan="on",
        http=PromptRequests,
        ws="none",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        # What a proxy says of its client is not trusted: a key says who asks.
        proxy_headers=False,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=STOP_SECONDS,
    )
    # Ctrl+C is how it is meant to end.
    with contextlib.suppress(KeyboardInterrupt):
        if workers == 1:
            uvicorn.Server(config).run([listener])
        else:
            Multiprocess(config, [listener]).run()


async def _prepare(settings: Settings, folders: list[Path]) -> None:
    """Reports what is wrong before anything listens."""
    async with open_askbook(settings, to_itself=True) as askbook:
        here = settings.askbook_host == "localhost" or is_loopback(settings.askbook_host)
        if not here and not await askbook.keys.are_in_force():
            raise InputError(
                f"askbook does not listen on {settings.askbook_host} without a key: anybody could ask",
                "Make one: askbook keys create. Or listen on 127.0.0.1.",
            )
        for folder in folders:
            book = read_book(folder)
            await refuse_another_folder(askbook, folder, book, "incremental")
            await askbook.jobs.submit(book.book_id, str(folder.resolve()), "incremental")


def _check_workers(settings: Settings, workers: int) -> None:
    if workers > 1 and not are_shared(settings):
        raise InputError(
            f"{workers} processes cannot share the data that lies in one of them",
            "Set QDRANT_URL and DATABASE_URL to servers, or leave --workers at 1: one process answers many at once.",
        )
    if workers > 1 and settings.redis_url is None and settings.askbook_rate_limit:
        raise InputError(
            f"{workers} processes that each count requests in memory would let {workers} times as many through",
            "Set REDIS_URL, so that they count together; ASKBOOK_RATE_LIMIT=0 lifts the limit.",
        )


def listen(settings: Settings) -> socket.socket:
    host, port = settings.askbook_host, settings.askbook_port
    try:
        [(family, _, _, _, address), *_] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        listener = socket.create_server(address[:2], family=family, backlog=2048)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        raise InputError(
            f"askbook cannot listen on {host}:{port}: {why}", "Choose another with --port or --host."
        ) from error
    listener.set_inheritable(True)
    return listener


def _local_address(listener: socket.socket) -> str:
    """The address for processes on this machine: 0.0.0.0 becomes 127.0.0.1."""
    return _address(listener).replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
