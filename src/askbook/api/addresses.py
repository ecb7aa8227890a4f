"""Where a page is, for whoever asks: a whole address, or none and why.

A book without a base_url is shown by the server alone, and what its address is, the request knows; so that is looked up when
a body is written, not when it is made.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Annotated

from pydantic import BaseModel, Field, PlainSerializer, computed_field
from starlette.requests import Request

SELECTED = "a selected text is on no page"
NOWHERE = "no server shows the book here, and it names no base_url: set one in its askbook.toml, or ASKBOOK_PUBLIC_URL"
_SANE_HOST = re.compile(r"[A-Za-z0-9.-]{1,255}(:\d{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:\d{1,5})?")

_home: ContextVar[str | None] = ContextVar("home", default=None)


@contextmanager
def at_home(address: str | None) -> Iterator[None]:
    """Within it the server is there."""
    token = _home.set(address.rstrip("/") if address else None)
    try:
        yield
    finally:
        _home.reset(token)


def read_home(request: Request) -> str | None:
    """As the caller wrote it; none where that is no host."""
    host = request.headers.get("host", "")
    scheme = "https" if request.headers.get("x-forwarded-proto") == "https" else request.url.scheme
    return f"{scheme}://{host}" if _SANE_HOST.fullmatch(host) else None


def to_address(url: str) -> str | None:
    if not url.startswith("/"):
        return url or None
    home = _home.get()
    return home + url if home else None


def from_address(prefix: str) -> str:
    """As the index has it: without the server's own address, which `to_address` puts before it."""
    home = _home.get()
    if home is None or not f"{prefix}/".startswith(f"{home}/"):
        return prefix
    return prefix.removeprefix(home) or "/"


Address = Annotated[
    str,
    PlainSerializer(to_address, return_type=str | None, when_used="json"),
    Field(description="Absolute; null where there is none, and `no_url` says why."),
]


class Addressed(BaseModel):
    url: Address

    @computed_field(description="Why there is no `url`; null where there is one.")
    @property
    def no_url(self) -> str | None:
        if to_address(self.url) is not None:
            return None
        return NOWHERE if self.url else SELECTED
