"""The page that tells what the API has."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, expect

from api.service import Service
from web.browsing import open_page

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_every_route_is_told(site: Service, browser: Browser) -> None:
    async with open_page(browser, site.url) as watched:
        await watched.page.goto(f"{site.url}/docs")
        await expect(watched.page.get_by_text("/chat/stream").first).to_be_attached()
