"""A service over HTTP: one retry layer, one deadline, one breaker, and every failure translated."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import httpx2
import stamina

from askbook.breaker import LEFT_ALONE, Breaker, Outcome
from askbook.errors import AskbookError

RETRY_AFTER_MAX = 60.0
T = TypeVar("T")


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


class Unusable(Exception):
    """The service answered with something that it should not; says what."""


class Refused(Unusable):
    """It does not take this text; that says nothing of others."""


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
        breaker: Breaker | None = None,
        code: str | None = None,
    ) -> None:
        """`code`: of its errors."""
        self._service = service
        self._code = code
        self._key_setting = key_setting
        self._patience = patience
        self._failure = failure
        self._breaker = breaker or Breaker()
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client = httpx2.AsyncClient(
            base_url=base_url, headers=headers, timeout=httpx2.Timeout(patience.deadline, connect=5.0)
        )

    async def post(
        self, path: str, body: Mapping[str, Any], read: Callable[[Any], T], seconds: float | None = None
    ) -> T:
        """What `read` makes of the answer; it raises Unusable. `seconds`: a shorter deadline, where a reader waits."""
        patience, deadline = self._patience, seconds or self._patience.deadline
        attempts = stamina.retry_context(
            on=_wait_before_retry,
            attempts=patience.tries,
            timeout=None,
            wait_initial=patience.first_wait,
            wait_max=patience.first_wait * 4,
            wait_jitter=patience.first_wait / 2,
        )
        until = asyncio.get_running_loop().time() + deadline
        try:
            async with asyncio.timeout_at(until):
                async for attempt in attempts:
                    with attempt:
                        hurried = seconds is not None and attempt.num < patience.tries
                        return await self._try(path, body, read, until, hurried)
        except Overloaded as error:
            raise self._failed(f"answered {error.status} {patience.tries} times") from error
        except Unusable as error:
            raise self._failed(str(error)) from error
        except TimeoutError as error:
            raise self._failed(f"gave no answer within {deadline:g} s") from error
        except (httpx2.TransportError, httpx2.InvalidURL) as error:
            raise self._failed(f"cannot be reached ({type(error).__name__})") from error
        raise AssertionError("the last try ends it")

    async def close(self) -> None:
        await self._client.aclose()

    def _failed(self, what: str, hint: str = "Check its address and model, or try again later.") -> AskbookError:
        return self._failure(f"{self._service} {what}", hint, code=self._code)

    async def _try(
        self, path: str, body: Mapping[str, Any], read: Callable[[Any], T], until: float, hurried: bool
    ) -> T:
        """`until`: by the loop's clock. A hurried try that is silent leaves half of the time to the next."""
        ticket = self._breaker.enter()
        if ticket is None:
            raise self._failed(LEFT_ALONE, self._breaker.say_rest())
        clock = asyncio.get_running_loop().time
        outcome: Outcome = "failed"
        try:
            async with asyncio.timeout((until - clock()) / 2 if hurried else None):
                response = await self._client.post(path, json=body)
            answer = read(self._read(response))
            outcome = "succeeded"
            return answer
        except Overloaded as error:
            outcome = "neither" if error.status == 429 else "failed"
            raise
        except Refused:
            outcome = "neither"
            raise
        except asyncio.CancelledError:
            outcome = "failed" if until - clock() <= 0.01 else "neither"
            raise
        finally:
            self._breaker.settle(ticket, outcome)

    def _read(self, response: httpx2.Response) -> Any:
        status = response.status_code
        if status == 429 or status >= 500:
            raise Overloaded(status, read_retry_after(response.headers))
        if status in (401, 403):
            raise self._failed("refused the key", f"Check {self._key_setting}.")
        if status != 200:
            raise (Refused if status in (400, 413, 422) else Unusable)(f"answered {status}")
        try:
            return response.json()
        except ValueError as error:
            raise Unusable("answered with something that is not JSON") from error


def sendable(text: str) -> str:
    """Services refuse an empty text."""
    return text.encode("utf-8", "replace").decode("utf-8") or " "


def _wait_before_retry(error: Exception) -> bool | float:
    if isinstance(error, Overloaded):
        return True if error.wait is None else min(error.wait, RETRY_AFTER_MAX)
    return isinstance(error, httpx2.TransportError | TimeoutError)


def read_retry_after(headers: httpx2.Headers) -> float | None:
    """In seconds. A date is held against the service's own clock: ours may be wrong."""
    given = headers.get("Retry-After")
    if given is None:
        return None
    try:
        return max(0.0, float(given))
    except ValueError:
        until = _read_date(given)
    if until is None:
        return None
    now = _read_date(headers.get("Date", "")) or datetime.now(UTC)
    return max(0.0, (until - now).total_seconds())


def _read_date(text: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
