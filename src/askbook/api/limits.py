"""How many requests a key may make in a minute; counted in memory, or in Redis for several processes."""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from askbook.breaker import Breaker, Outcome
from askbook.errors import InputError, StorageError
from askbook.settings import Settings

if TYPE_CHECKING:
    from redis.asyncio import Redis

logger = logging.getLogger("askbook.limits")

COSTS = {"/ingestion/trigger": 10, "/gaps": 5}
"""Routes that cost more than one request, all of them an admin's."""
MINUTE = 60.0
REST_SECONDS = 5.0
"""How long a Redis that failed is left alone. Meanwhile each process counts for itself."""
REDIS_SECONDS = 1.0
REDIS_CONNECTIONS = 20

Clock = Callable[[], float]
Count = tuple[bool, int, float]
"""Whether the request was let in, how many of the last minute were, and how old the first of these is."""

COUNT_IN_REDIS = """
local time, cost, limit = redis.call('TIME'), tonumber(ARGV[1]), tonumber(ARGV[2])
local now = time[1] + time[2] / 1000000
local first = tonumber(redis.call('LINDEX', KEYS[1], 0))
while first and (first <= now - 60 or first > now) do
  redis.call('LPOP', KEYS[1])
  first = tonumber(redis.call('LINDEX', KEYS[1], 0))
end
local used = redis.call('LLEN', KEYS[1])
local allowed = used + cost <= limit
if allowed then
  for _ = 1, cost do redis.call('RPUSH', KEYS[1], string.format('%.6f', now)) end
  redis.call('EXPIRE', KEYS[1], 60)
  used = used + cost
end
return {allowed and 1 or 0, used, tostring(now - (first or now))}
"""
"""As `RateLimiter._count`, by the clock of Redis alone."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """What is left of a key's minute after a request."""

    allowed: bool
    limit: int
    remaining: int
    seconds: int
    """Until the oldest request of the minute expires."""


class RateLimiter:
    def __init__(self, per_minute: int, shared: Redis | None = None, clock: Clock = time.monotonic) -> None:
        self.per_minute = per_minute
        self.shared = shared
        self.clock = clock
        self.breaker = Breaker(clock, failures=1, rest=REST_SECONDS)
        self._windows: dict[str, deque[float]] = {}

    async def spend(self, key_id: str, cost: int = 1) -> Allowance:
        cost = min(cost, self.per_minute)
        allowed, used, age = await self._count_shared(key_id, cost) or self._count(key_id, cost)
        seconds = min(max(math.ceil(MINUTE - age), 1), int(MINUTE))
        return Allowance(allowed, self.per_minute, max(self.per_minute - used, 0), seconds)

    async def ping(self) -> None:
        """Asks Redis whether it is there."""
        from redis.exceptions import RedisError

        try:
            if self.shared is not None:
                await self.shared.execute_command("PING")
        except RedisError as error:
            raise StorageError("Redis does not answer") from error

    def _count(self, key_id: str, cost: int) -> Count:
        window, now = self._windows.setdefault(key_id, deque()), self.clock()
        # A request that lies in the future was counted before the clock was set back.
        while window and not now - MINUTE < window[0] <= now:
            window.popleft()
        allowed = len(window) + cost <= self.per_minute
        window.extend([now] * cost if allowed else ())
        return allowed, len(window), now - (window[0] if window else now)

    async def _count_shared(self, key_id: str, cost: int) -> Count | None:
        """None where Redis does not count."""
        if self.shared is None or (ticket := self.breaker.enter()) is None:
            return None
        from redis.exceptions import RedisError

        outcome: Outcome = "neither"
        try:
            counted = self.shared.eval(COUNT_IN_REDIS, 1, f"askbook:{key_id}", str(cost), str(self.per_minute))
            allowed, used, age = await counted  # pyright: ignore[reportGeneralTypeIssues]
            outcome = "succeeded"
            return bool(allowed), used, float(age)
        except RedisError as error:
            logger.warning("Redis does not count: %s", type(error).__name__)
            outcome = "failed"
            return None
        finally:
            self.breaker.settle(ticket, outcome)


def build_limiter(settings: Settings) -> RateLimiter | None:
    """None where nothing is limited."""
    if not settings.askbook_rate_limit:
        return None
    url = settings.redis_url.get_secret_value() if settings.redis_url else None
    return RateLimiter(settings.askbook_rate_limit, _connect(url) if url else None)


def _connect(url: str) -> Redis:
    if not url.startswith(("redis://", "rediss://")):
        raise InputError("REDIS_URL is not an address of Redis", "Write it as redis://user:password@host:6379/0.")
    try:
        from redis.asyncio import BlockingConnectionPool, Redis

        # A burst waits for a connection. The default pool would refuse it, and each process would count for itself.
        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=REDIS_CONNECTIONS,
            timeout=REDIS_SECONDS,
            socket_timeout=REDIS_SECONDS,
            socket_connect_timeout=REDIS_SECONDS,
        )
        return Redis(connection_pool=pool)
    except (ImportError, ValueError) as error:
        raise InputError(
            "REDIS_URL cannot be used", "Is the address right, and is redis installed: pip install 'askbook[redis]'?"
        ) from error
