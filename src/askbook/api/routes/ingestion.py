"""Ingestion: trigger it, watch it, see what changed, and GitHub's webhook."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import re
from pathlib import Path as Folder
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Request

from askbook.api.callers import find_books
from askbook.api.openapi import errors
from askbook.api.requests import BookId, TriggerRequest
from askbook.api.running import Admin, Running, Up
from askbook.book.reader import read_book, read_lessons
from askbook.domain import BookRecord, Job, to_public_id
from askbook.errors import InputError, NotAllowed, NotFound
from askbook.ingest.plan import plan_changes
from askbook.shapes.books import (
    FileProblem,
    IngestionChanges,
    IngestionJob,
    IngestionRecord,
    IngestionState,
    IngestionStatus,
    WebhookReply,
)

router = APIRouter(tags=["ingestion"])

JOB_ID_MAX = 2**31 - 1
HEADER_MAX = 128

_DELIVERY = re.compile(r"[A-Za-z0-9-]{1,128}")


@router.post("/ingestion/trigger", status_code=202, responses=errors(404, 413))
async def trigger(body: TriggerRequest, running: Up, caller: Admin) -> IngestionJob:
    """Bring a book into step with its folder. The same asked twice is one job.
    Costs 10 requests of the key's minute."""
    book = await running.find_book(caller, body.book_id)
    return _to_body(await running.runner.submit(book, body.mode))


@router.get("/ingestion/status", responses=errors(404))
async def status(
    running: Up,
    caller: Admin,
    book_id: BookId | None = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    records: Annotated[bool, Query(description="Tell of every indexed file.")] = False,
) -> IngestionStatus:
    """The latest jobs, and what is indexed of each book."""
    if book_id is not None:
        books = [await running.find_book(caller, book_id)]
    else:
        books = find_books(caller, await running.askbook.ledger.load_books())
    # Including jobs of a book that is not listed yet because its first job has only begun.
    jobs = await running.askbook.jobs.load_all(books[0].book_id if book_id else None, limit, caller.scope)
    return IngestionStatus(
        jobs=[_to_body(job) for job in jobs],
        states=[await _load_state(running, book, records) for book in books],
    )


@router.get("/ingestion/status/{job_id}", responses=errors(404))
async def job_status(job_id: Annotated[int, Path(ge=1, le=JOB_ID_MAX)], running: Up, caller: Admin) -> IngestionJob:
    """One job: how far it is, how it ended, and what was wrong with which file."""
    return _to_body(await running.askbook.jobs.load(job_id, caller.scope))


@router.get("/ingestion/changes", responses=errors(404))
async def changes(running: Up, caller: Admin, book_id: BookId | None = None) -> IngestionChanges:
    """What an incremental ingestion would do now."""
    book = await running.find_book(caller, book_id)
    folder = Folder(book.folder)
    lessons, problems = await asyncio.to_thread(lambda: read_lessons(folder, read_book(folder, book.book_id)))
    unreadable = {problem.source_file for problem in problems if problem.skipped}
    records = await running.askbook.ledger.load_records(book.book_id)
    plan = await asyncio.to_thread(plan_changes, lessons, records, unreadable, "incremental")
    return IngestionChanges(
        book_id=book.public_id,
        new_files=plan.files("new"),
        modified_files=plan.files("modified"),
        deleted_files=list(plan.deleted),
        renamed_files=plan.files("renamed"),
        moved_files=plan.files("moved"),
        unchanged_files=len(plan.unchanged),
        problems=[FileProblem.of(problem) for problem in problems],
        has_changes=bool(plan.changes or plan.deleted),
    )


@router.post(
    "/ingestion/webhook/github",
    status_code=202,
    responses=errors(404, 413),
    openapi_extra={"requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}, "required": True}},
)
async def github_webhook(
    request: Request,
    running: Up,
    book_id: BookId | None = None,
    signature: Annotated[str, Header(alias="X-Hub-Signature-256", max_length=HEADER_MAX)] = "",
    delivery: Annotated[str, Header(alias="X-GitHub-Delivery", max_length=HEADER_MAX)] = "",
    event: Annotated[str, Header(alias="X-GitHub-Event", max_length=64)] = "",
) -> WebhookReply:
    """A push to the default branch has the book's folder read again, and nothing else: what was pushed is not
    looked at.

    Signed with ASKBOOK_WEBHOOK_SECRET; what was signed is taken once, whatever the delivery's id. Without `book_id`
    every book is read again.
    """
    body = await request.body()
    _check_signature(running, body, signature)
    if event == "ping":
        return WebhookReply(status="pong", why="the signature is right", job_ids=[])
    why = _why_not(event, _read_payload(body))
    if why:
        return WebhookReply(status="ignored", why=why, job_ids=[])
    if not _DELIVERY.fullmatch(delivery):
        raise InputError("X-GitHub-Delivery is not the id of a delivery", "GitHub sends one with every delivery.")
    books = [book for book in await running.askbook.ledger.load_books() if book_id in (None, book.public_id)]
    if not books:
        raise NotFound("there is no such book" if book_id else "there is no book yet")
    # The delivery's id is not signed: a recorded request could be sent again under another id.
    taken = hashlib.sha256(f"{signature}:{book_id or ''}".encode()).hexdigest()
    if not await running.deliveries.take(taken):
        return WebhookReply(status="repeated", why="this delivery was taken before", job_ids=[])
    try:
        jobs = [await running.runner.submit(book, "incremental") for book in books]
    except BaseException:
        await running.deliveries.give_back(taken)
        raise
    return WebhookReply(status="accepted", why="the folder is read again", job_ids=[job.job_id for job in jobs])


# --- what is told of a book -----------------------------------------------------------------------


def _to_body(job: Job) -> IngestionJob:
    """The job without the folder's path on this machine."""
    message = job.error_message.replace(job.folder, "the book's folder") if job.error_message else None
    return IngestionJob.of(job, book_id=to_public_id(job.book_id), error_message=message)


async def _load_state(running: Running, book: BookRecord, with_records: bool) -> IngestionState:
    records = await running.askbook.ledger.load_records(book.book_id) if with_records else {}
    return IngestionState.of(
        book,
        book_id=book.public_id,
        collection_name=running.settings.qdrant_collection_name,
        records={file: IngestionRecord.of(record, book_id=book.public_id) for file, record in records.items()},
    )


# --- the webhook ----------------------------------------------------------------------------------


def _check_signature(running: Running, body: bytes, signature: str) -> None:
    secret = running.settings.askbook_webhook_secret
    key = secret.get_secret_value().encode() if secret else b""
    right = f"sha256={hmac.new(key, body, hashlib.sha256).hexdigest()}"
    if not key or not hmac.compare_digest(right.encode(), signature.encode("utf-8", "replace")):
        raise NotAllowed("the signature is not right", "Sign with the secret that ASKBOOK_WEBHOOK_SECRET holds.")


def _read_payload(body: bytes) -> dict[str, Any]:
    try:
        payload = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InputError(
            "the body is not JSON", "Choose application/json as the content type of the webhook."
        ) from error
    return payload if isinstance(payload, dict) else {}


def _why_not(event: str, payload: dict[str, Any]) -> str:
    """Why the event is ignored; empty where it is taken."""
    if event != "push":
        return "only pushes are looked at"
    repository = payload.get("repository")
    branch = repository.get("default_branch") if isinstance(repository, dict) else None
    return "" if branch is None or payload.get("ref") == f"refs/heads/{branch}" else "not the default branch"
