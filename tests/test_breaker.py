"""The breaker, by a clock that is moved by hand."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from askbook.breaker import Breaker, Outcome

pytestmark = pytest.mark.row("F5")


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> Breaker:
    return Breaker(clock)


def call(breaker: Breaker, *outcomes: Outcome, times: int = 1) -> None:
    for outcome in outcomes * times:
        ticket = breaker.enter()
        assert ticket is not None
        breaker.settle(ticket, outcome)


def test_five_failures_in_a_row_open_it(breaker: Breaker) -> None:
    call(breaker, "failed", "failed", "failed", "failed")
    assert breaker.enter() is not None
    call(breaker, "failed")
    assert breaker.enter() is None
    assert breaker.rests_for == 60.0


def test_a_success_starts_the_count_anew(breaker: Breaker) -> None:
    call(breaker, "failed", "failed", "failed", "failed", "succeeded", "failed", "failed", "failed", "failed")
    assert breaker.enter() is not None


def test_neither_opens_nor_mends(breaker: Breaker) -> None:
    call(breaker, "neither", times=50)
    call(breaker, "failed", "failed", "failed", "failed", "neither", "failed")
    assert breaker.enter() is None


def test_one_probe_at_a_time_after_a_minute(breaker: Breaker, clock: Clock) -> None:
    call(breaker, "failed", times=5)
    clock.now += 59.9
    assert breaker.enter() is None
    clock.now += 0.1
    probe = breaker.enter()
    assert probe is not None
    assert [breaker.enter() for _ in range(10)] == [None] * 10
    breaker.settle(probe, "succeeded")
    assert breaker.enter() is not None


def test_a_failed_probe_rests_for_another_minute(breaker: Breaker, clock: Clock) -> None:
    call(breaker, "failed", times=5)
    clock.now += 60
    call(breaker, "failed")
    assert breaker.enter() is None
    clock.now += 60
    call(breaker, "succeeded")
    assert breaker.enter() is not None


def test_a_probe_that_learns_nothing_leaves_its_place_to_the_next(breaker: Breaker, clock: Clock) -> None:
    call(breaker, "failed", times=5)
    clock.now += 60
    call(breaker, "neither", "neither")
    probe = breaker.enter()
    assert probe is not None
    assert breaker.enter() is None


def test_calls_from_before_it_opened_do_not_prolong_the_rest(breaker: Breaker, clock: Clock) -> None:
    early = [breaker.enter() for _ in range(7)]
    for ticket in early[:5]:
        assert ticket is not None
        breaker.settle(ticket, "failed")
    clock.now += 59
    for ticket in early[5:]:
        assert ticket is not None
        breaker.settle(ticket, "failed")
    clock.now += 1
    assert breaker.enter() is not None


def test_it_is_never_stuck(breaker: Breaker, clock: Clock) -> None:
    """The clock is monotonic; were it to stand or to run, the rest ends a minute later at the most."""
    call(breaker, "failed", times=5)
    for _ in range(100):
        clock.now += 60
        call(breaker, "failed")
    clock.now += 3600
    call(breaker, "succeeded")
    assert breaker.rests_for == 0.0
