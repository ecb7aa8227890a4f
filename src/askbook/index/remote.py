"""A service over HTTP: one retry layer, one deadline, and every failure translated."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2
import stamina

from askbook.errors import AskbookError

RETRY_AFTER_MAX = 60.0


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


class Endpoint:
    """Where a service is asked. `failure` is what its failures become; no message of them carries the key."""

    def __init__(
        self,
        service: str,
        base_url: str,
        api_key: str,
        key_setting: str,
        patience: Patience,
        failure: type[AskbookError],
    ) -> None:
        self._service = service
        self._key_setting = key_setting
        self._patience = patience
        self._failure = failure
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client = httpx2.AsyncClient(
            base_url=base_url, headers=headers, timeout=httpx2.Timeout(patience.deadline, connect=5.0)
        )

    async def post(self, path: str, body: Mapping[str, Any]) -> Any:
        try:
            async with asyncio.timeout(self._patience.deadline):
                return await self._post_patiently(path, body)
        except Overloaded as error:
            raise self.failed(f"answered {error.status} {self._patience.tries} times") from error
        except TimeoutError as error:
            raise self.failed(f"gave no answer within {self._patience.deadline:g} s") from error
        except (httpx2.TransportError, httpx2.InvalidURL) as error:
            raise self.failed(f"cannot be reached ({type(error).__name__})") from error

    def failed(self, what: str) -> AskbookError:
        return self._failure(f"{self._service} {what}", "Check its address and model, or try again later.")

    async def close(self) -> None:
        await self._client.aclose()

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
            raise self._failure(f"{self._service} refused the key", f"Check {self._key_setting}.")
        if status != 200:
            raise self.failed(f"answered {status}")
        try:
            return response.json()
        except ValueError as error:
            raise self.failed("answered with something that is not JSON") from error


def sendable(text: str) -> str:
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
