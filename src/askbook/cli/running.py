"""Runs a command's work, and turns Ctrl+C into words."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from askbook.errors import Stopped

T = TypeVar("T")


def run_async(work: Coroutine[object, object, T]) -> T:
    try:
        return asyncio.run(work)
    except KeyboardInterrupt as error:
        raise Stopped("stopped", "What was saved is kept; the same command goes on from there.") from error
