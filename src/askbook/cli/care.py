"""`askbook jobs`, `verify` and `doctor`: is everything as it should be?"""

from __future__ import annotations

import platform
import shutil
import time
from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.table import Table

from askbook import __version__
from askbook.book.reader import read_book
from askbook.cli.book import ingest_folder, progress_bars
from askbook.cli.render import clean, out, print_json, show_finished, show_problems
from askbook.cli.running import run_async, run_with_book, run_with_store
from askbook.domain import BookRecord, Job
from askbook.errors import AskbookError, DataInUse, ReaderUnavailable, RerankerUnavailable
from askbook.index.rerankers.base import Reranker
from askbook.ingest.verify import Verdict, repair_book, verify_book
from askbook.settings import Settings, load_settings, setting_names
from askbook.shapes.books import IngestionJob, JobList
from askbook.wiring import NO_READER, Askbook, Store, build_embedder, open_askbook, open_mending


@dataclass(frozen=True, slots=True)
class Finding:
    part: str
    state: Literal["ok", "warning", "broken"]
    message: str
    hint: str | None = None


# --- jobs


def jobs(
    job_id: Annotated[int | None, typer.Argument(help="One job, with all its problems.")] = None,
    book: Annotated[str | None, typer.Option(help="Only jobs of this book.")] = None,
    limit: Annotated[int, typer.Option(help="How many, the newest first.", min=1, max=1000)] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print IngestionJobs as JSON.")] = False,
) -> None:
    """List the ingestion jobs, or show one."""

    async def load(store: Store) -> list[Job]:
        return await store.jobs.load_all(book, limit) if job_id is None else [await store.jobs.load(job_id)]

    found = run_with_store(load)
    if as_json:
        bodies = [IngestionJob.of(job) for job in found]
        return print_json(JobList(jobs=bodies) if job_id is None else bodies[0])
    out.print(_job_table(found) if found else "No job yet: askbook ingest FOLDER starts one.")
    if job_id is not None:
        show_problems(found[0].problems)


def _job_table(jobs: list[Job]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("job", "book", "mode", "status", "files", "new", "gone", "problems", "started", "seconds", "why"):
        table.add_column(name)
    for job in jobs:
        status = job.status if job.status != "running" else f"{job.phase} {job.progress:.0%}"
        started = job.started_at.astimezone().strftime("%Y-%m-%d %H:%M:%S") if job.started_at else ""
        cells = (
            job.job_id,
            job.book_id,
            job.mode,
            status,
            f"{job.files_processed}+{job.files_skipped}/{job.files_total}",
            job.chunks_created,
            job.chunks_deleted,
            len(job.problems),
            started,
            "" if job.duration_seconds is None else job.duration_seconds,
            job.error_message or "",
        )
        table.add_row(*(clean(str(cell)) for cell in cells))
    return table


# --- verify


def verify(
    book: Annotated[str | None, typer.Option(help="Book to check; needed when there are several.")] = None,
    repair: Annotated[bool, typer.Option("--repair", help="Mend what differs.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdict as JSON.")] = False,
) -> None:
    """Prove that folder, ledger and index agree, and say what differs. Exit 1 when something does."""

    async def check(askbook: Askbook, record: BookRecord) -> tuple[Verdict, Job | None]:
        verdict = await _verify(askbook, record.book_id)
        if verdict.agrees or not repair:
            return verdict, None
        await repair_book(verdict, askbook.ledger, askbook.index, embeds=askbook.embedder is not None)
        folder = Path(record.folder)
        with progress_bars() as watch:
            found = read_book(folder, record.book_id)
            job = await ingest_folder(askbook, folder, found, "incremental", watch)
        return await _verify(askbook, record.book_id), job

    verdict, job = run_with_book(book, check, open_mending if repair else open_askbook)
    if as_json:
        told = ("book_id", "agrees", "files", "chunks", "points", "differences")
        print_json({name: getattr(verdict, name) for name in told})
    else:
        if job is not None:
            show_finished(job)
        _show_verdict(verdict)
    if not verdict.agrees:
        raise typer.Exit(1)


async def _verify(askbook: Askbook, book_id: str) -> Verdict:
    embeds = askbook.embedder is not None
    return await verify_book(book_id, askbook.ledger, askbook.index, embeds, askbook.embedder)


def _show_verdict(verdict: Verdict) -> None:
    if verdict.agrees:
        out.print(
            f"{verdict.book_id}: folder, ledger and index agree "
            f"({verdict.files} files, {verdict.chunks} chunks, {verdict.points} points)."
        )
        return
    for difference in verdict.differences:
        out.say((f"{difference.where:<7}", "yellow"), f"{difference.source_file} {difference.message}")
    out.print(f"{len(verdict.differences)} differences. askbook verify --repair --book {verdict.book_id} mends them.")


# --- doctor


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False) -> None:
    """Say what is configured, what works, and what to do. Exit 1 when something is broken."""

    async def examine() -> list[Finding]:
        return [finding async for finding in _examine(load_settings())]

    findings = run_async(examine())
    if as_json:
        print_json({"findings": findings})
    else:
        colours = {"ok": "green", "warning": "yellow", "broken": "bold red"}
        for finding in findings:
            state = (f"{finding.state:<8}", colours[finding.state])
            out.say(state, (f"{finding.part:<10}", "bold"), finding.message)
            if finding.hint:
                out.say(f"{'':<19}{finding.hint}", style="dim")
    if any(finding.state == "broken" for finding in findings):
        raise typer.Exit(1)


async def _examine(settings: Settings) -> AsyncIterator[Finding]:
    yield _fine("askbook", f"{__version__} on Python {platform.python_version()}")
    given = ", ".join(sorted(name.upper() for name in settings.model_fields_set)) or "none, all defaults"
    yield _fine("settings", f"{len(setting_names())} known; set here: {given}")
    try:
        async with open_askbook(settings) as askbook:
            yield _examine_disk(settings)
            yield _fine("database", askbook.database.engine.url.render_as_string())
            await askbook.index.ping()
            owner = f"the server at {askbook.server.url}" if askbook.server else "this process"
            where = settings.qdrant_url or f"Qdrant Edge in {owner}"
            yield _fine("index", f"{where}, collection {settings.qdrant_collection_name}")
            yield await _examine_embedder(askbook)
            if askbook.reranker is not None:
                yield await _examine_reranker(askbook.reranker)
            yield await _examine_reader(askbook)
            async for finding in _examine_books(askbook):
                yield finding
    except DataInUse as error:
        yield _warn("data", error.message, error.hint)
    except AskbookError as error:
        yield Finding("opening", "broken", error.message, error.hint)


def _fine(part: str, message: str) -> Finding:
    return Finding(part, "ok", message)


def _warn(part: str, message: str, hint: str | None) -> Finding:
    return Finding(part, "warning", message, hint)


async def _time(work: Awaitable[object]) -> str:
    started = time.perf_counter()
    await work
    return f"{(time.perf_counter() - started) * 1000:.0f} ms"


def _examine_disk(settings: Settings) -> Finding:
    free = shutil.disk_usage(settings.askbook_home).free / 2**30
    message = f"{settings.askbook_home}, {free:.1f} GB free"
    return _warn("data", message, "Make room before you ingest.") if free < 0.5 else _fine("data", message)


async def _examine_embedder(askbook: Askbook) -> Finding:
    embedder = askbook.embedder
    if embedder is None:
        _, notices = build_embedder(askbook.settings)
        return _warn("embedder", "; ".join(notices), "Set ASKBOOK_EMBEDDER=local for search by meaning.")
    took = await _time(embedder.embed_query("Does this work?"))
    return _fine("embedder", f"{embedder.name}, {embedder.dimension} dimensions, first question in {took}")


async def _examine_reranker(reranker: Reranker) -> Finding:
    try:
        took = await _time(reranker.rerank("Does this work?", ["It works."]))
    except RerankerUnavailable as error:
        return _warn("reranker", f"{error.message}: searches are not reranked", error.hint)
    return _fine("reranker", f"{reranker.name}, first passage in {took}")


async def _examine_reader(askbook: Askbook) -> Finding:
    if askbook.reader is None:
        message = "; ".join(askbook.reader_notices) or f"ASKBOOK_READER is none: {NO_READER}"
        hint = "Install askbook anew." if askbook.reader_notices else "Set ASKBOOK_READER=bundled."
        return _warn("reader", message, hint)
    try:
        loading = await _time(askbook.reader.open())
        reading = await _time(askbook.reader.read("Does this work?", ["It works."]))
        name = await askbook.reader.open()
    except ReaderUnavailable as error:
        return Finding("reader", "broken", error.message, error.hint)
    took = f"loaded in {loading}, one passage read in {reading}"
    return _fine("reader", f"{name} ({askbook.settings.askbook_reader}), {took}")


async def _examine_books(askbook: Askbook) -> AsyncIterator[Finding]:
    books = await askbook.ledger.load_books()
    if not books:
        yield _warn("books", "none yet", "askbook ingest FOLDER, or askbook demo.")
    for book in books:
        message = f"{book.book_id}: {book.total_files} lessons, {book.total_chunks} chunks from {book.folder}"
        if not Path(book.folder).is_dir():
            hint = "It can be searched, but not brought up to date: ingest it from where it is now."
            yield _warn("book", f"{message}, which is gone", hint)
        elif book.unembedded_chunks:
            waiting = f"{message}; {book.unembedded_chunks} chunks wait for their vectors"
            yield _warn("book", waiting, f"askbook ingest {book.folder} goes on.")
        else:
            yield _fine("book", message)
    for job in await askbook.jobs.load_open():
        hint = f"askbook ingest {job.folder} --mode {job.mode} goes on with it."
        yield _warn("job", f"{job.job_id} ({job.book_id}) is unfinished", hint)
