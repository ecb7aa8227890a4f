"""The index of a server that owns the data, read over HTTP by another process of the same owner.

Lessons are written by the server alone: whoever wants that gives it a job.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx2
import numpy as np
from pydantic import TypeAdapter

from askbook.domain import Filters
from askbook.errors import DataInUse, IndexUnavailable
from askbook.index.embedders.base import Vector
from askbook.index.vectors.base import Hit, Sparse
from askbook.index.vectors.checks import split_batches

SECONDS = 60.0
BATCH = 256
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A search: by meaning where there is a vector, else by keywords."""

    filters: Filters
    limit: int
    among: Sequence[str] | None
    vector: list[float] | None = None
    keywords: Sparse | None = None


WANTED = TypeAdapter(Wanted)
HITS = TypeAdapter(list[Hit])
IDS = TypeAdapter(list[str])
VECTORS = TypeAdapter(dict[str, list[float]])
BOOK = TypeAdapter(str)
POINTS = TypeAdapter(list[tuple[str, bool]])
NOTHING = TypeAdapter(None)


class ServedIndex:
    def __init__(self, url: str, token: str) -> None:
        self._url = url
        headers = {"X-API-Key": token, "Content-Type": "application/json"}
        # Whatever proxy the environment names, the server is on this machine.
        self._client = httpx2.AsyncClient(
            base_url=url, headers=headers, timeout=httpx2.Timeout(SECONDS, connect=5.0), trust_env=False
        )

    # --- reading

    async def load_vectors(self, point_ids: Sequence[str]) -> dict[str, Vector]:
        loaded: dict[str, Vector] = {}
        for batch in split_batches(point_ids, BATCH):
            found = await self._call("vectors", IDS, batch, VECTORS)
            loaded |= {point_id: np.asarray(vector, dtype=np.float32) for point_id, vector in found.items()}
        return loaded

    async def find_dense(
        self, vector: Vector, filters: Filters, limit: int, among: Sequence[str] | None = None
    ) -> list[Hit]:
        return await self._call("find", WANTED, Wanted(filters, limit, among, vector=vector.tolist()), HITS)

    async def find_keywords(
        self, keywords: Sparse, filters: Filters, limit: int, among: Sequence[str] | None = None
    ) -> list[Hit]:
        return await self._call("find", WANTED, Wanted(filters, limit, among, keywords=keywords), HITS)

    async def scroll_points(self, book_id: str) -> AsyncIterator[tuple[str, bool]]:
        for point in await self._call("points", BOOK, book_id, POINTS):
            yield point

    async def ping(self) -> None:
        await self._call("ping", NOTHING, None, NOTHING)

    async def start_jobs(self) -> None:
        """Have the server look for what is queued."""
        await self._call("jobs", NOTHING, None, NOTHING)

    async def close(self) -> None:
        await self._client.aclose()

    async def _call(self, work: str, sent: TypeAdapter[Any], value: object, answer: TypeAdapter[T]) -> T:
        try:
            response = await self._client.post(f"/owner/{work}", content=sent.dump_json(value))
        except httpx2.TransportError as error:
            raise IndexUnavailable(
                f"the server at {self._url}, which has the data, does not answer ({type(error).__name__})",
                "If it has ended, run this again; if it hangs, end it.",
            ) from error
        if response.status_code != 200:
            raise IndexUnavailable(f"the server at {self._url} {_read_problem(response)}")
        return answer.validate_json(response.content)

    # --- writing

    async def _refuse(self, *_given: Any, **_named: Any) -> None:
        raise DataInUse(f"the server at {self._url} alone writes into the index", "End it, and run this again.")

    take_dimension = save_points = save_vectors = forget_points = flush = optimize = drop = _refuse


def _read_problem(response: httpx2.Response) -> str:
    """In the server's own words, where it is one of ours."""
    try:
        problem = response.json()
        return f"says: {problem['message']}. {problem['detail'] or ''}".rstrip()
    except (ValueError, KeyError, TypeError):
        return f"answered {response.status_code}"
