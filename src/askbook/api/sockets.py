"""Cuts off connections that send no request. uvicorn would wait for the head for ever and keep any length of it."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS = 10.0
HEAD_BYTES = 64 * 1024


class PromptRequests(HttpToolsProtocol):
    """The head of a request must come in time and in bounds, counted from the connection or its first byte."""

    head_seconds = HEAD_SECONDS

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._head_bytes = 0
        self._waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_came()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._head_bytes += len(data)
        super().data_received(data)
        # Checked only while the head is incomplete: a body may follow in the same packet.
        if self._waiting is not None and self._head_bytes > HEAD_BYTES:
            self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._await_head()

    def on_headers_complete(self) -> None:
        self._head_came()
        super().on_headers_complete()

    def _await_head(self) -> None:
        if self._waiting is None:
            self._head_bytes = 0
            self._waiting = self.loop.call_later(self.head_seconds, self.transport.close)

    def _head_came(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
