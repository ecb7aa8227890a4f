"""L5 and F5: no more than so many requests in any minute, whatever the burst, the process or the clock."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from redis.asyncio import Redis as Client

from api.redis_server import Redis, run_redis
from askbook.api.limits import RateLimiter, build_limiter
from askbook.errors import InputError
from askbook.settings import Settings
from figures import Figure

HOUR = 3600.0


@dataclass
class Clock:
    now: float = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    with run_redis(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture
async def client(redis: Redis) -> AsyncIterator[Client]:
    client: Client = Client.from_url(redis.url)
    await client.flushall()
    yield client
    await client.aclose()


def build(url: str | None = None, limit: int = 100) -> RateLimiter:
    given = {"askbook_rate_limit": limit, "redis_url": url}
    limiter = build_limiter(Settings.model_validate(given))
    assert limiter is not None
    return limiter


async def spend(limiter: RateLimiter, times: int, key_id: str = "ann", cost: int = 1) -> int:
    """How many of them were allowed."""
    spent = await asyncio.gather(*(limiter.spend(key_id, cost) for _ in range(times)))
    return sum(one.allowed for one in spent)


# --- in memory ------------------------------------------------------------------------------------


@pytest.mark.row("L5")
async def test_a_burst_gets_the_limit_and_no_more() -> None:
    limiter = build()
    assert await spend(limiter, 300) == 100
    refused = await limiter.spend("ann")
    assert (refused.allowed, refused.limit, refused.remaining) == (False, 100, 0)
    assert 1 <= refused.seconds <= 60
    assert await spend(limiter, 300, "bob") == 100


async def test_what_is_left_is_told() -> None:
    clock = Clock()
    limiter = RateLimiter(10, clock=clock)
    assert [(await limiter.spend("ann")).remaining for _ in range(3)] == [9, 8, 7]
    clock.now += 20
    told = await limiter.spend("ann", cost=5)
    assert (told.allowed, told.remaining, told.seconds) == (True, 2, 40)
    told = await limiter.spend("ann", cost=5)
    assert (told.allowed, told.remaining, told.seconds) == (False, 2, 40)
    # Refused requests are not counted: who waits as long as told is let in.
    clock.now += told.seconds
    assert (await limiter.spend("ann", cost=5)).allowed


async def test_a_cost_above_the_limit_is_the_whole_minute() -> None:
    limiter = build(limit=3)
    assert (await limiter.spend("ann", cost=10)).allowed
    assert not (await limiter.spend("ann")).allowed


@pytest.mark.row("L5")
async def test_no_minute_holds_more_than_the_limit(figure: Figure) -> None:
    """A window that moves: no boundary lets twice as many through."""
    clock, chance = Clock(), random.Random(5)
    limiter = RateLimiter(100, clock=clock)
    allowed: list[float] = []
    for _ in range(3000):
        clock.now += chance.choice((0.0, 0.01, 0.1, 0.5, 1.0))
        if (await limiter.spend("ann")).allowed:
            allowed.append(clock.now)
    worst = max(sum(start <= at < start + 60 for at in allowed) for start in allowed)
    figure(
        f"L5: at most {worst} in any minute, {len(allowed)} of 3000 let in over {allowed[-1] - allowed[0]:.0f} s",
        cases=3000,
    )
    assert worst == 100


@pytest.mark.row("F5")
@pytest.mark.parametrize("jump", [-HOUR, HOUR, -90.0, -30.0])
async def test_no_clock_keeps_a_key_out(jump: float, figure: Figure) -> None:
    """F5. The clock that counts cannot be set; were it, a key would not be stuck for longer than a minute."""
    assert build().clock is time.monotonic
    clock = Clock()
    limiter = RateLimiter(100, clock=clock)
    assert await spend(limiter, 60) == 60
    clock.now += jump
    await spend(limiter, 60)
    stuck = 0
    while not (await limiter.spend("ann")).allowed:
        clock.now += 1
        stuck += 1
    figure(f"F5: a jump of {jump:g} s keeps a key out for {stuck} s")
    assert stuck <= 60
    assert await spend(limiter, 300) <= 100


def test_without_a_limit_nothing_counts() -> None:
    assert build_limiter(Settings.model_validate({"askbook_rate_limit": 0})) is None


@pytest.mark.parametrize("url", ["http://127.0.0.1", "nowhere", "redis://:secret@127.0.0.1:notaport/0"])
def test_an_address_that_is_none_is_refused_without_telling_it(url: str) -> None:
    with pytest.raises(InputError, match="REDIS_URL") as refused:
        build(url)
    assert "secret" not in f"{refused.value.message} {refused.value.hint}"


# --- in Redis -------------------------------------------------------------------------------------


@pytest.mark.row("L5")
async def test_two_processes_share_one_minute(redis: Redis, client: Client, figure: Figure) -> None:
    one, other = build(redis.url), build(redis.url)
    allowed = await asyncio.gather(spend(one, 150), spend(other, 150))
    figure(f"L5: two workers let {allowed[0]} + {allowed[1]} of 300 through", cases=300)
    assert sum(allowed) == 100
    assert await spend(one, 10, "bob") == 10


@pytest.mark.row("F5")
@pytest.mark.parametrize("jump", [-HOUR, HOUR])
async def test_no_clock_keeps_a_key_out_of_redis(redis: Redis, client: Client, jump: float) -> None:
    """F5: as if the clock had jumped since these requests were counted."""
    limiter = build(redis.url)
    assert await spend(limiter, 100) == 100
    (name,) = await client.keys("*")
    counted = [float(at) - jump for at in await client.lrange(name, 0, -1)]
    await client.delete(name)
    await client.rpush(name, *counted)
    assert (await limiter.spend("ann")).allowed


async def test_without_redis_each_process_counts_for_itself(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, figure: Figure
) -> None:
    with run_redis(tmp_path) as redis:
        limiter = build(redis.url)
        assert await spend(limiter, 60) == 60
    started = time.monotonic()
    assert await spend(limiter, 300) == 100
    figure(f"Redis is gone: 300 requests took {time.monotonic() - started:.2f} s")
    assert time.monotonic() - started < 3
    assert "Redis does not count" in caplog.text


async def test_a_redis_that_hangs_holds_nobody_up(tmp_path: Path, figure: Figure) -> None:
    held = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
    limiter = build(f"redis://127.0.0.1:{held.sockets[0].getsockname()[1]}/0")
    started = time.monotonic()
    assert (await limiter.spend("ann")).allowed
    took = time.monotonic() - started
    figure(f"Redis hangs: the first request waits {took:.2f} s")
    assert took < 3
    started = time.monotonic()
    assert (await limiter.spend("ann")).allowed
    assert time.monotonic() - started < 0.1
    held.close()
