"""`askbook backup`, `restore` and `move`: all that askbook holds, into a file, out of it, or elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import TaskID, TaskProgressColumn

from askbook.backup.archive import open_archive, save_archive
from askbook.backup.holdings import Header, Holdings, Watcher, read_holdings
from askbook.backup.restore import restore as restore_into
from askbook.cli.render import err, out, print_json, progress_bar
from askbook.cli.running import run_async
from askbook.errors import InputError
from askbook.settings import Settings, load_settings, load_settings_of_file, load_settings_of_home
from askbook.wiring import open_engines, refuse_another_embedder

AsJson = Annotated[bool, typer.Option("--json", help="Print what was carried over as JSON.")]


def backup(
    file: Annotated[Path, typer.Argument(help="File to write; an older backup of that name is replaced.")],
    as_json: AsJson = False,
) -> None:
    """Save everything in one file: books, vectors, threads, feedback, calibrations, jobs, and the hashes of keys.

    It can be restored onto any database and index. What runs on servers goes on meanwhile, and the file holds one
    moment of it; data in a folder is read through its server, where one runs. Keep the file as you keep the
    database: conversations are in it, and whoever has a key finds it valid where the file is restored.
    """

    async def save() -> Header:
        settings = load_settings()
        async with open_engines(settings) as engines, read_holdings(engines) as holdings:
            if not holdings.header.total:
                raise InputError("there is nothing to back up", "Is ASKBOOK_HOME or DATABASE_URL the right one?")
            with _progress() as watch:
                bare = await save_archive(file, holdings, watch)
            if bare:
                err.print(f"{bare} chunks have no vector: the next ingest of their book embeds them.")
            return holdings.header

    _print_summary(run_async(save()), str(file), as_json)


def restore(
    file: Annotated[Path, typer.Argument(help="A file that askbook backup wrote.")], as_json: AsJson = False
) -> None:
    """Fill an empty data folder, or an empty database and collection, from a backup. Nothing is embedded.

    The file is checked whole before anything is written, and readers see all of it at once or nothing; a restore
    that was stopped is run again. A backup of an older version of the database is refused: the askbook that made it
    restores it. Jobs that ran when it was made are queued again.
    """

    async def fill() -> Header:
        with _progress() as watch, open_archive(file, watch) as archive:
            await _restore_into(load_settings(), archive, watch)
            return archive.header

    _print_summary(run_async(fill()), "Restored", as_json)


def move(
    to: Annotated[
        Path | None,
        typer.Option(
            help="File of settings, as .env, with the new DATABASE_URL, QDRANT_URL, QDRANT_API_KEY or ASKBOOK_HOME.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    to_home: Annotated[Path | None, typer.Option(help="A new data folder on this machine, without servers.")] = None,
    as_json: AsJson = False,
) -> None:
    """Carry everything to other engines, such as from this machine onto servers. Nothing is embedded.

    As a backup that is restored at once. Nothing is removed here: from then on, use the settings of the file.
    Addresses with passwords stay in the file, out of the list of processes.
    """
    if (to is None) == (to_home is None):
        raise typer.BadParameter("say where to: --to FILE, or --to-home FOLDER")
    here = load_settings()
    there = load_settings_of_file(to) if to is not None else load_settings_of_home(to_home or Path())
    if here.qdrant_url is None and there.qdrant_url is None and here.askbook_home == there.askbook_home:
        raise InputError(
            f"the vectors lie in {here.askbook_home} already", "Name another ASKBOOK_HOME or a QDRANT_URL."
        )

    async def carry() -> Header:
        async with open_engines(here) as engines, read_holdings(engines) as holdings:
            with _progress() as watch:
                await _restore_into(there, holdings, watch)
            return holdings.header

    _print_summary(run_async(carry()), "Moved", as_json)


async def _restore_into(settings: Settings, holdings: Holdings, watch: Watcher) -> None:
    await refuse_another_embedder(settings, holdings.header.embedder)
    async with open_engines(settings, holdings.header.dimension) as engines:
        await restore_into(holdings, engines, watch)


def _print_summary(header: Header, what: str, as_json: bool) -> None:
    if as_json:
        return print_json({name: getattr(header, name) for name in ("made_at", "embedder", "dimension", "rows")})
    parts = ", ".join(f"{table} {header.rows[table]}" for table in ("books", "chunks", "threads", "keys", "jobs"))
    embedder = f"vectors of {header.embedder}" if header.embedder else "no vectors"
    out.say(f"{what}: {parts}; {embedder}.")


@contextmanager
def _progress() -> Iterator[Watcher]:
    with progress_bar(TaskProgressColumn()) as progress:
        tasks: dict[str, TaskID] = {}

        def watch(step: str, done: int, total: int) -> None:
            if step not in tasks:
                tasks[step] = progress.add_task(step, total=total)
            progress.update(tasks[step], completed=done)

        yield watch
