"""`askbook init` and `ingest`: a folder becomes a book."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import MofNCompleteColumn

from askbook.book.reader import explain_layout, read_book, read_lessons
from askbook.cli.render import err, out, print_json, progress_bar, show_finished, show_problems
from askbook.cli.running import run_async
from askbook.domain import Book, IngestMode, Job
from askbook.errors import BookError, InputError, StorageError
from askbook.ingest.pipeline import Step, Tally
from askbook.ingest.worker import Watcher
from askbook.settings import load_settings
from askbook.shapes.books import IngestionJob
from askbook.wiring import Askbook, open_askbook, open_mending

LOOK_SECONDS = 1.0


def ingest(
    folder: Annotated[Path, typer.Argument(help="Folder of Markdown or MDX files.")],
    book: Annotated[
        str | None, typer.Option(help="The book's id; default: from askbook.toml or the folder's name.")
    ] = None,
    mode: Annotated[
        IngestMode,
        typer.Option(
            help="incremental: what changed; full: every file again; recreate: every file again, and nothing else is "
            "left."
        ),
    ] = "incremental",
    as_json: Annotated[bool, typer.Option("--json", help="Print the IngestionJob as JSON.")] = False,
) -> None:
    """Bring the index into step with a folder. Stopped halfway, it goes on when run again."""

    async def bring_up_to_date() -> Job:
        found = read_book(folder, book)
        opening = open_askbook if mode == "incremental" else open_mending
        async with opening(load_settings(), rebuild=mode == "recreate") as askbook:
            with progress_bars() as watch:
                return await ingest_folder(askbook, folder, found, mode, watch)

    job = run_async(bring_up_to_date())
    if as_json:
        print_json(IngestionJob.of(job))
        raise typer.Exit(job.status == "failed")
    show_finished(job)


def init(
    folder: Annotated[Path, typer.Argument(help="Folder of Markdown or MDX files.")] = Path(),
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
) -> None:
    """Write an askbook.toml that says what askbook makes of a folder, for you to change."""
    target = folder / "askbook.toml"
    if target.exists():
        raise InputError(f"{target} is there already", "Change it by hand, or remove it first.")
    book = read_book(folder)
    lessons, problems = read_lessons(folder, book)
    show_problems(problems)
    if not lessons:
        raise BookError(
            f"there is no Markdown to read in {folder}", "askbook reads .md, .mdx, .markdown and .ipynb files."
        )
    found = explain_layout(folder, book)
    try:
        target.write_text(_to_toml(book, found.modules), encoding="utf-8")
    except OSError as error:
        raise BookError(f"{target} cannot be written: {error.strerror}", "Check the folder's permissions.") from error
    if as_json:
        start = {"file": target, "book_id": book.book_id, "lessons": len(lessons)}
        return print_json({**start, "modules": found.modules, "layout": found.why})
    out.print(found.why)
    out.print(f"{target}: {len(lessons)} lessons in {len({lesson.module for lesson in lessons})} modules.")
    out.print(f"Change what is not right, then: askbook ingest {folder}")


async def ingest_folder(askbook: Askbook, folder: Path, book: Book, mode: IngestMode, watch: Watcher) -> Job:
    """Submit the job and run it, after the jobs that a dead process left undone."""
    for notice in askbook.notices:
        err.print(notice)
    await refuse_another_folder(askbook, folder, book, mode)
    job = await askbook.jobs.submit(book.book_id, str(folder.resolve()), mode)
    # Where a server runs, it does the unfinished ones.
    for unfinished in await askbook.jobs.load_open() if askbook.server is None else ():
        if unfinished.job_id != job.job_id:
            err.print(f"Job {unfinished.job_id} ({unfinished.book_id}) was left unfinished; it goes on first.")
            done = await askbook.worker.run_job(unfinished.job_id, watch)
            err.print(f"Job {done.job_id} {done.status}{f': {done.error_message}' if done.error_message else ''}")
    done = await _see_through(askbook, job, watch)
    if job.status == "running" and askbook.worker.shared and done.status == "completed":
        # Another worker had planned it before this command: the folder may have changed since.
        job = await askbook.jobs.submit(book.book_id, str(folder.resolve()), "incremental")
        done = await _see_through(askbook, job, watch)
    if done.status == "completed":
        await askbook.adopt_rebuilt()
    if (done.chunks_created or done.chunks_deleted or mode != "incremental") and askbook.server is None:
        # Frees the room of deleted points and rounds a large index, while no reader is served.
        try:
            await askbook.index.optimize()
        except StorageError as error:
            err.print(f"The index was not compacted: {error.message}")
    return done


async def _see_through(askbook: Askbook, job: Job, watch: Watcher) -> Job:
    """Run the job until it has ended. Older jobs of the book come first, and other workers may do a part of it."""
    while True:
        for older in await askbook.jobs.load_open():
            if older.book_id == job.book_id and older.job_id < job.job_id:
                await askbook.worker.run_job(older.job_id, watch)
        done = await askbook.worker.run_job(job.job_id, watch)
        if done.status in ("completed", "failed"):
            return done
        await asyncio.sleep(LOOK_SECONDS)


async def refuse_another_folder(askbook: Askbook, folder: Path, book: Book, mode: IngestMode) -> None:
    """Two folders with one id would delete each other's lessons in turn."""
    for record in await askbook.ledger.load_books():
        known = Path(record.folder)
        if record.book_id == book.book_id and known != folder.resolve() and known.is_dir() and mode != "recreate":
            raise InputError(
                f"the book {book.book_id} is already made from {known}",
                "Give this folder an id of its own with --book, or replace the book with --mode recreate.",
            )


@contextmanager
def progress_bars() -> Iterator[Watcher]:
    with progress_bar(MofNCompleteColumn()) as progress:
        reading = progress.add_task("reading", total=None)
        embedding = progress.add_task("embedding", total=None, visible=False)

        def watch(_job: Job, step: Step, tally: Tally) -> None:
            if step == "reading":
                progress.update(reading, completed=tally.files_total)
            else:
                done = tally.files_processed + tally.files_skipped
                progress.update(reading, description="indexing", total=tally.files_total, completed=done)
            if tally.chunks_to_embed:
                progress.update(embedding, total=tally.chunks_to_embed, completed=tally.chunks_embedded, visible=True)

        yield watch


def _to_toml(book: Book, modules: dict[str, str]) -> str:
    quoted = json.dumps  # A JSON string is a TOML string.
    lines = [
        f"book_id = {quoted(book.book_id)}",
        f"title = {quoted(book.title)}",
        f"base_url = {quoted(book.base_url)}" if book.base_url else '# base_url = "https://example.org/book"',
        '# ignore = ["drafts/**"]',
        "",
        "# Folder = module name; a lesson in no such folder belongs to the module main.",
        "[modules]",
        *(f"{quoted(folder)} = {quoted(module)}" for folder, module in sorted(modules.items())),
        "",
        "# Front matter that readers can filter by. hardware_tier, proficiency_level and layer are always there.",
        "# [facets.audience]",
        '# values = ["student", "teacher"]',
        '# default = "student"',
        "",
    ]
    return "\n".join(lines)
