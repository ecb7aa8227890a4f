"""Which sites a browser lets ask: those in ASKBOOK_CORS_ORIGINS, and those that a key in force is for."""

from __future__ import annotations

import asyncio
import logging
import time

from starlette.middleware.cors import CORSMiddleware
from starlette.types import Receive, Scope, Send

from askbook.api.running import Running
from askbook.errors import AskbookError

logger = logging.getLogger("askbook.api")

FRESH_SECONDS = 2.0
PATIENCE_SECONDS = 1.0
"""A database that hangs must not hold up the answer that says so."""


class KnownOrigins(CORSMiddleware):
    """Starlette's, asking the keys. A preflight carries none, so it is answered for the site of any key."""

    _of_keys: frozenset[str] = frozenset()
    _fresh_until = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and any(name == b"origin" for name, _ in scope["headers"]):
            await self._refresh(scope["app"].state.running)
        await super().__call__(scope, receive, send)

    def is_allowed_origin(self, origin: str) -> bool:
        return origin in self._of_keys or super().is_allowed_origin(origin)

    async def _refresh(self, running: Running) -> None:
        if time.monotonic() < self._fresh_until:
            return
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                self._of_keys = await running.askbook.keys.load_origins()
        except (AskbookError, TimeoutError):
            logger.warning("the sites of keys were not read; those known before are allowed")
        self._fresh_until = time.monotonic() + FRESH_SECONDS
