"""A real browser on a real server: every page that is opened is watched for what it must not do."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from playwright.async_api import Browser, ConsoleMessage, Page, Request, async_playwright, expect

WAIT_MS = 20_000
expect.set_options(timeout=WAIT_MS)

DESKTOP = (1280, 800)
PHONE = (390, 844)
ON_BOTH = pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])

FLAGS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # A name beyond localhost: plain HTTP is not trusted there.
    "--host-resolver-rules=MAP askbook.test 127.0.0.1",
)


def find_chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@contextlib.asynccontextmanager
async def open_browser(path: str) -> AsyncIterator[Browser]:
    sandbox = ("--no-sandbox",) if os.geteuid() == 0 else ()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=[*FLAGS, *sandbox])
        try:
            yield browser
        finally:
            await browser.close()


@dataclass
class Watched:
    """A page, what it complained of, and what it asked for beyond its own origins."""

    page: Page
    origins: tuple[str, ...]
    errors: list[str] = field(default_factory=list[str])
    foreign: list[str] = field(default_factory=list[str])

    def note_message(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def note_request(self, request: Request) -> None:
        if not request.url.startswith((*self.origins, "data:", "blob:")):
            self.foreign.append(request.url)


@contextlib.asynccontextmanager
async def open_page(
    browser: Browser, *origins: str, size: tuple[int, int] = DESKTOP, dark: bool = False, quiet: bool = True
) -> AsyncIterator[Watched]:
    """An empty page of this size. `quiet`: a complaint on its console, or a request to elsewhere, fails the test."""
    width, height = size
    browsing = await browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        has_touch=size == PHONE,
        reduced_motion="reduce",
    )
    watched = Watched(await browsing.new_page(), origins)
    watched.page.on("console", watched.note_message)
    watched.page.on("pageerror", lambda error: watched.errors.append(str(error)))
    watched.page.on("request", watched.note_request)
    watched.page.set_default_timeout(WAIT_MS)
    try:
        yield watched
        if quiet:
            assert watched.errors == [] and watched.foreign == []
    finally:
        await browsing.close()
