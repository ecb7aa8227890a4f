"""`askbook demo`: from nothing to a cited answer, and on to the page where readers ask."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from socket import socket
from typing import Annotated

import typer

from askbook.book.reader import read_book
from askbook.cli.book import ingest_folder, progress_bars
from askbook.cli.converse import take_turn
from askbook.cli.render import out, show_finished
from askbook.cli.running import run_async
from askbook.cli.serve import Port, listen, run_server
from askbook.domain import Filters, Question
from askbook.errors import InputError
from askbook.lock import Server, find_server
from askbook.settings import Settings, load_settings
from askbook.wiring import open_askbook

DEMO = "physical-ai-robotics"
DEMO_QUESTION = "What is a URDF file?"
OWN_QUESTION = "What is this book about?"


def demo(
    folder: Annotated[Path | None, typer.Argument(help="A folder of your own in place of the demo book.")] = None,
    port: Port = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the answer, an AgentResponse, as JSON, and serve nothing.")
    ] = False,
) -> None:
    """Ingest the bundled book on robotics (or a folder of your own), ask it, and serve the page where readers ask."""
    settings = load_settings(askbook_port=port)
    source = folder or Path(str(files("askbook") / "demo" / DEMO))
    text = DEMO_QUESTION if folder is None else OWN_QUESTION
    # A taken port is reported before the minute that a large book takes.
    listener = None if as_json else _listen_unless_served(settings)
    server = run_async(_ingest_and_ask(settings, source, text, as_json))
    if as_json:
        return
    out.print()
    if server is not None:
        return out.print(f"The page where readers ask is at {server.url}: a server runs already.")
    run_server(settings, listener or listen(settings))


def _listen_unless_served(settings: Settings) -> socket | None:
    """None where the port is taken and a server has this data folder."""
    try:
        return listen(settings)
    except InputError:
        if find_server(settings.askbook_home) is None:
            raise
        return None


async def _ingest_and_ask(settings: Settings, folder: Path, text: str, as_json: bool) -> Server | None:
    """Returns the server that has this data folder, if there is one."""
    book = read_book(folder)
    async with open_askbook(settings) as askbook:
        with progress_bars() as watch:
            job = await ingest_folder(askbook, folder, book, "incremental", watch)
        if not as_json or job.status == "failed":
            show_finished(job)
        if not as_json:
            out.print(f'\naskbook ask "{text}"\n')
        await take_turn(askbook, Question(text, Filters(book.book_id), **askbook.limits), as_json=as_json)
        return askbook.server
