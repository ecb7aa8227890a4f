"""A service that keeps failing is left alone for a while, then tried by one caller."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Outcome = Literal["succeeded", "failed", "neither"]
"""Neither: an answer that says nothing of an outage, such as "too many requests", or a caller who left."""

FAILURES, REST_SECONDS = 5, 60.0


@dataclass(eq=False, slots=True)
class Ticket:
    """Leave to call once; given back with `settle`, whatever came of it."""


class Breaker:
    """Open after `failures` in a row; after `rest` seconds one call at a time may probe."""

    def __init__(self, clock: Callable[[], float], failures: int = FAILURES, rest: float = REST_SECONDS) -> None:
        self._clock, self._limit, self._rest = clock, failures, rest
        self._failures = 0
        self._opened_at: float | None = None
        self._probe: Ticket | None = None

    @property
    def rests_for(self) -> float:
        """Seconds until it may be probed; 0 where nothing keeps a caller away."""
        return 0.0 if self._opened_at is None else max(0.0, self._opened_at + self._rest - self._clock())

    def enter(self) -> Ticket | None:
        """None where the service is to be left alone."""
        if self._opened_at is None:
            return Ticket()
        if self._probe is not None or self.rests_for > 0:
            return None
        self._probe = Ticket()
        return self._probe

    def settle(self, ticket: Ticket, outcome: Outcome) -> None:
        probed = ticket is self._probe
        if probed:
            self._probe = None
        if outcome == "succeeded":
            self._failures, self._opened_at = 0, None
        elif outcome == "failed":
            self._failures += 1
            # A call from before it opened says nothing new: only a probe starts the rest anew.
            if probed or (self._opened_at is None and self._failures >= self._limit):
                self._opened_at = self._clock()
