"""The index and the jobs, for the owner's other processes; the data folder holds the token that they send."""

from __future__ import annotations

import hmac
from typing import Annotated

import numpy as np
from fastapi import APIRouter, Body, Depends, Request

from askbook.api.running import Up
from askbook.errors import InputError, NotAllowed
from askbook.index.vectors.base import Hit, Sparse
from askbook.index.vectors.served import Wanted


def check_owner(request: Request, running: Up) -> None:
    """Only the token opens these routes. No key does, and neither does loopback: others may have an account here."""
    sent = request.headers.get("x-api-key", "")
    if not hmac.compare_digest(sent.encode(), running.token.encode()):
        raise NotAllowed("this is for the owner of the data folder alone", "`askbook` in a terminal goes through it.")


router = APIRouter(prefix="/owner", dependencies=[Depends(check_owner)], include_in_schema=False)


@router.post("/find")
async def find(wanted: Wanted, running: Up) -> list[Hit]:
    index, rest = running.askbook.index, (wanted.filters, wanted.limit, wanted.among)
    if wanted.vector is not None:
        return await index.find_dense(np.asarray(wanted.vector, dtype=np.float32), *rest)
    return await index.find_keywords(wanted.keywords or Sparse((), ()), *rest)


@router.post("/vectors")
async def load_vectors(point_ids: list[str], running: Up) -> dict[str, list[float]]:
    found = await running.askbook.index.load_vectors(point_ids)
    return {point_id: vector.tolist() for point_id, vector in found.items()}


@router.post("/points")
async def list_points(book_id: Annotated[str, Body()], running: Up) -> list[tuple[str, bool]]:
    return [point async for point in running.askbook.index.scroll_points(book_id)]


@router.post("/ping")
async def ping(running: Up) -> None:
    await running.askbook.index.ping()


@router.post("/jobs")
async def start_jobs(running: Up) -> None:
    if not running.settings.askbook_worker:
        raise InputError("jobs are not done here: ASKBOOK_WORKER is 0", "End the server, and run this again.")
    running.runner.wake()
