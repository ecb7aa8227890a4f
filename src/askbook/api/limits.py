"""How many requests a key may make in a minute; counted in memory, or in Redis for several processes."""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from limits import RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage, RedisStorage, Storage
from limits.aio.strategies import MovingWindowRateLimiter
from limits.errors import ConfigurationError
from limits.errors import StorageError as LimitsError

from askbook.breaker import Breaker, Outcome
from askbook.errors import InputError, StorageError
from askbook.settings import Settings

logger = logging.getLogger("askbook.limits")

COSTS = {"/ingestion/trigger": 10, "/gaps": 5}
"""Routes that cost more than one request, all of them an admin's."""
SKEW_SECONDS = 10.0
"""How far the clocks of two machines may differ."""
REST_SECONDS = 5.0
"""How long a Redis that failed is left alone. Meanwhile each process counts for itself."""
REDIS_SECONDS = 1.0
REDIS_CONNECTIONS = 20

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Allowance:
    """What is left of a key's minute after a request."""

    allowed: bool
    limit: int
    remaining: int
    seconds: int
    """Until the oldest request of the minute expires."""


class SteadyMemory(MemoryStorage):
    """Counts by a monotonic clock. The library uses the wall clock; setting that back would lock a key out."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock
        self.windows: dict[str, deque[float]] = {}

    async def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        window = self._window(key, expiry)
        if len(window) + amount > limit:
            return False
        window.extend([self.clock()] * amount)
        return True

    async def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        window = self._window(key, expiry)
        return (window[0], len(window)) if window else (self.clock(), 0)

    async def clear(self, key: str) -> None:
        self.windows.pop(key, None)

    def _window(self, key: str, expiry: int) -> deque[float]:
        window = self.windows.setdefault(key, deque())
        while window and window[0] <= self.clock() - expiry:
            window.popleft()
        return window


class RateLimiter:
    def __init__(self, per_minute: int, shared: Storage | None = None, clock: Clock = time.monotonic) -> None:
        self.item = RateLimitItemPerMinute(per_minute)
        self.clock = clock
        self.own = MovingWindowRateLimiter(SteadyMemory(clock))
        self.shared = MovingWindowRateLimiter(shared) if shared else None
        self.breaker = Breaker(clock, failures=1, rest=REST_SECONDS)

    async def spend(self, key_id: str, cost: int = 1) -> Allowance:
        if self.shared is not None and (ticket := self.breaker.enter()) is not None:
            outcome: Outcome = "neither"
            try:
                allowance = await self._spend(self.shared, time.time, key_id, cost)
                outcome = "succeeded"
                return allowance
            except LimitsError as error:
                logger.warning("Redis does not count: %s", type(error.__cause__).__name__)
                outcome = "failed"
            finally:
                self.breaker.settle(ticket, outcome)
        return await self._spend(self.own, self.clock, key_id, cost)

    async def ping(self) -> None:
        """Asks Redis whether it is there."""
        if self.shared is not None and not await self.shared.storage.check():
            raise StorageError("Redis does not answer")

    async def _spend(self, window: MovingWindowRateLimiter, clock: Clock, key_id: str, cost: int) -> Allowance:
        minute = self.item.get_expiry()
        cost = min(cost, self.item.amount)
        allowed = await window.hit(self.item, key_id, cost=cost)
        stats = await window.get_window_stats(self.item, key_id)
        if not allowed and stats.reset_time - clock() > minute + SKEW_SECONDS:
            # These requests lie in the future: the clock was set back. They would lock the key out until it catches up.
            await window.clear(self.item, key_id)
            allowed = await window.hit(self.item, key_id, cost=cost)
            stats = await window.get_window_stats(self.item, key_id)
        seconds = min(max(math.ceil(stats.reset_time - clock()), 1), minute)
        return Allowance(allowed, self.item.amount, max(stats.remaining, 0), seconds)


def build_limiter(settings: Settings) -> RateLimiter | None:
    """None where nothing is limited."""
    if not settings.askbook_rate_limit:
        return None
    url = settings.redis_url.get_secret_value() if settings.redis_url else None
    return RateLimiter(settings.askbook_rate_limit, _connect(url) if url else None)


def _connect(url: str) -> Storage:
    if not url.startswith(("redis://", "rediss://")):
        raise InputError("REDIS_URL is not an address of Redis", "Write it as redis://user:password@host:6379/0.")
    try:
        from redis.asyncio import BlockingConnectionPool

        # A burst waits for a connection. The default pool would refuse it, and each process would count for itself.
        pool: Any = BlockingConnectionPool.from_url(
            url,
            max_connections=REDIS_CONNECTIONS,
            timeout=REDIS_SECONDS,
            socket_timeout=REDIS_SECONDS,
            socket_connect_timeout=REDIS_SECONDS,
        )
        return RedisStorage(
            f"async+{url}", wrap_exceptions=True, implementation="redispy", key_prefix="askbook", connection_pool=pool
        )
    except (ImportError, ConfigurationError, ValueError) as error:
        raise InputError(
            "REDIS_URL cannot be used", "Is the address right, and is redis installed: pip install 'askbook[redis]'?"
        ) from error
