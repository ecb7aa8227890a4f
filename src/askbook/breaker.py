"""Leaves a service that keeps failing alone for a while, then lets one caller try. One breaker for each service."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Outcome = Literal["succeeded", "failed", "neither"]
"""Neither: an answer that is no sign of an outage, such as "too many requests", or a caller who left."""

FAILURES, REST_SECONDS = 5, 60.0
LEFT_ALONE = "has failed too often and is left alone for now"


@dataclass(eq=False, slots=True)
class Ticket:
    """Leave to call once; given back with `settle`, whatever came of it."""

    at: float


class Breaker:
    """Open after `failures` in a row; after `rest` seconds one call at a time may probe."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, failures: int = FAILURES, rest: float = REST_SECONDS
    ) -> None:
        self._clock, self._limit, self._rest = clock, failures, rest
        self._failures = 0
        self._opened_at: float | None = None
        self._probe: Ticket | None = None
        self.latency: float | None = None
        """Seconds that the last call took which told how the service is."""

    @property
    def is_open(self) -> bool:
        """It kept failing, and nobody has found since that it is back."""
        return self._opened_at is not None

    @property
    def rests_for(self) -> float:
        """Seconds until it may be probed; 0 where nothing keeps a caller away."""
        return 0.0 if self._opened_at is None else max(0.0, self._opened_at + self._rest - self._clock())

    def enter(self) -> Ticket | None:
        """None while the service is left alone."""
        if self._opened_at is None:
            return Ticket(self._clock())
        if self._probe is not None or self.rests_for > 0:
            return None
        self._probe = Ticket(self._clock())
        return self._probe

    def say_rest(self) -> str:
        return f"Try again in {max(self.rests_for, 1.0):.0f} s."

    def settle(self, ticket: Ticket, outcome: Outcome) -> None:
        probed = ticket is self._probe
        if probed:
            self._probe = None
        if outcome != "neither":
            self.latency = self._clock() - ticket.at
        if outcome == "succeeded":
            self._failures, self._opened_at = 0, None
        elif outcome == "failed":
            self._failures += 1
            # A call from before it opened says nothing new: only a failed probe starts the rest again.
            if probed or (self._opened_at is None and self._failures >= self._limit):
                self._opened_at = self._clock()
