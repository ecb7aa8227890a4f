"""An embedding service over HTTP: one retry layer, one deadline, and every answer checked before it is believed."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, ClassVar, Literal, Self

import httpx2
import numpy as np
import stamina

from askbook.errors import EmbedderUnavailable
from askbook.index.embedders.base import Vector, to_unit

RETRY_AFTER_MAX = 60.0
Purpose = Literal["passage", "query"]


@dataclass(frozen=True, slots=True)
class Patience:
    tries: int = 3
    first_wait: float = 1.0
    deadline: float = 60.0
    """Seconds for one request, its retries and waits included."""


class Overloaded(Exception):
    """The service asks to come back later, perhaps saying when."""

    def __init__(self, status: int, wait: float | None) -> None:
        super().__init__(f"status {status}")
        self.status = status
        self.wait = wait


class RemoteEmbedder:
    """A subclass says which service it is, what it asks and where the vectors stand in the answer."""

    vendor: ClassVar[str]
    service: ClassVar[str]
    key_setting: ClassVar[str]
    dimensions: ClassVar[Mapping[str, int]]
    batch: ClassVar[int]

    def __init__(self, api_key: str, model: str, base_url: str, patience: Patience) -> None:
        self._model = model
        self._patience = patience
        self._dimension = self.dimensions.get(model, 0)
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client = httpx2.AsyncClient(
            base_url=base_url, headers=headers, timeout=httpx2.Timeout(patience.deadline, connect=5.0)
        )

    @abstractmethod
    async def _ask(self, texts: list[str], about: Purpose) -> Any:
        """The rows of the answer, or None where it has none."""

    @property
    def name(self) -> str:
        return f"{self.vendor}/{self._model}"

    @property
    def dimension(self) -> int:
        return self._dimension

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        starts = range(0, len(texts), self.batch)
        return [one for at in starts for one in await self._embed(texts[at : at + self.batch], "passage")]

    async def embed_query(self, text: str) -> Vector:
        return (await self._embed([text], "query"))[0]

    async def close(self) -> None:
        await self._client.aclose()

    async def _learn_dimension(self) -> Self:
        """Of a model it does not know, the dimension is asked by embedding a word."""
        if not self._dimension:
            try:
                self._dimension = len((await self._embed(["dimension"], "passage"))[0])
            except BaseException:
                await self.close()
                raise
        return self

    async def _embed(self, texts: Sequence[str], about: Purpose) -> list[Vector]:
        rows = await self._ask([_sendable(text) for text in texts], about)
        return self._check(rows, len(texts))

    async def _post(self, path: str, body: Mapping[str, Any]) -> Any:
        try:
            async with asyncio.timeout(self._patience.deadline):
                return await self._post_patiently(path, body)
        except Overloaded as error:
            raise self._failed(f"answered {error.status} {self._patience.tries} times") from error
        except TimeoutError as error:
            raise self._failed(f"gave no answer within {self._patience.deadline:g} s") from error
        except (httpx2.TransportError, httpx2.InvalidURL) as error:
            raise self._failed(f"cannot be reached ({type(error).__name__})") from error

    async def _post_patiently(self, path: str, body: Mapping[str, Any]) -> Any:
        attempts = stamina.retry_context(
            on=_wait_before_retry,
            attempts=self._patience.tries,
            timeout=None,
            wait_initial=self._patience.first_wait,
            wait_max=self._patience.first_wait * 4,
            wait_jitter=self._patience.first_wait / 2,
        )
        async for attempt in attempts:
            with attempt:
                return self._read(await self._client.post(path, json=body))

    def _read(self, response: httpx2.Response) -> Any:
        status = response.status_code
        if status == 429 or status >= 500:
            raise Overloaded(status, _retry_after(response.headers.get("Retry-After")))
        if status in (401, 403):
            raise EmbedderUnavailable(f"{self.service} refused the key", f"Check {self.key_setting}.")
        if status != 200:
            raise self._failed(f"answered {status}")
        try:
            return response.json()
        except ValueError as error:
            raise self._failed("answered with something that is not JSON") from error

    def _failed(self, what: str) -> EmbedderUnavailable:
        return EmbedderUnavailable(f"{self.service} {what}", "Check its address and model, or try again later.")

    def _check(self, rows: Any, count: int) -> list[Vector]:
        if not isinstance(rows, list) or len(rows) != count:
            raise self._failed(f"did not answer with {count} vectors")
        try:
            matrix = np.asarray(rows, dtype=np.float64)
        except (ValueError, TypeError) as error:
            raise self._failed("answered with something that is not a vector") from error
        if matrix.ndim != 2 or matrix.shape[1] != (self._dimension or matrix.shape[1]):
            raise self._failed(f"answered with vectors that do not have {self._dimension} dimensions")
        if not np.isfinite(matrix).all() or not matrix.any(axis=1).all():
            raise self._failed("answered with a vector that is not finite, or all zeros")
        return [to_unit(row) for row in matrix]


def _sendable(text: str) -> str:
    """Services refuse an empty text."""
    return text.encode("utf-8", "replace").decode("utf-8") or " "


def _wait_before_retry(error: Exception) -> bool | float:
    if isinstance(error, Overloaded):
        return True if error.wait is None else error.wait
    return isinstance(error, httpx2.TransportError)


def _retry_after(header: str | None) -> float | None:
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):
            return None
    return min(max(seconds, 0.0), RETRY_AFTER_MAX)
