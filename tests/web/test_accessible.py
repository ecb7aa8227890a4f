"""For everybody: axe finds nothing serious on any page in either colours, and the keyboard alone is enough."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Browser, expect

from api.service import Service
from web.axe import find_faults
from web.browsing import DESKTOP, PHONE, open_page
from web.chatting import BOOK, QUESTION, UNKNOWN, ask, open_chat

pytestmark = pytest.mark.asyncio(loop_scope="module")

LESSON = "module-1-ros2/chapter-2-building/03-quality-of-service.md"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
async def test_no_page_has_a_barrier(site: Service, browser: Browser, size: tuple[int, int], dark: bool) -> None:
    async with open_page(browser, site.url, size=size, dark=dark) as watched:
        page = watched.page
        await open_chat(page, site.url)
        faults = await find_faults(page)
        answer = await ask(page, QUESTION)
        faults += await find_faults(page)
        await answer.get_by_role("button", name=re.compile("^Source 1: ")).first.click()
        await expect(page.locator("#panel mark").first).to_be_visible()
        faults += await find_faults(page)
        await page.keyboard.press("Escape")
        await ask(page, UNKNOWN)
        faults += await find_faults(page)
        await page.goto(f"{site.url}/read/{BOOK}/{LESSON}?from=1500&to=1800")
        await page.wait_for_load_state("load")
        faults += await find_faults(page)
        await page.goto(f"{site.url}/read/{BOOK}")
        await page.wait_for_load_state("load")
        faults += await find_faults(page)
        assert faults == []


async def test_the_keyboard_is_enough(site: Service, browser: Browser) -> None:
    async with open_page(browser, site.url) as watched:
        page = watched.page
        await open_chat(page, site.url)
        question = page.get_by_role("textbox", name="Your question")
        await page.locator("body").click(position={"x": 700, "y": 60})
        await page.keyboard.press("/")
        await expect(question).to_be_focused()
        await page.keyboard.type("Why does a subscriber")
        await page.keyboard.press("Shift+Enter")
        await page.keyboard.type("get nothing from a best-effort publisher?")
        await expect(question).to_have_value("Why does a subscriber\nget nothing from a best-effort publisher?")
        await page.keyboard.press("Enter")
        answer = page.get_by_role("article", name="Answer")
        chip = answer.get_by_role("button", name=re.compile("^Source 1: ")).first
        await expect(chip).to_be_visible()
        # Told once, when it is whole.
        await expect(page.get_by_role("status")).to_contain_text(re.compile("best.effort", re.IGNORECASE))

        for _ in range(40):
            await page.keyboard.press("Shift+Tab")
            if await chip.evaluate("(one) => one === document.activeElement"):
                break
        await page.keyboard.press("Enter")
        panel = page.get_by_role("complementary", name="Source")
        await expect(panel).to_be_focused()
        await page.keyboard.press("Tab")
        await expect(panel.get_by_role("button", name="Close the source")).to_be_focused()
        await page.keyboard.press("Escape")
        await expect(panel).to_be_hidden()
        await expect(chip).to_be_focused()


async def test_the_first_tab_leads_past_everything(site: Service, browser: Browser) -> None:
    async with open_page(browser, site.url) as watched:
        page = watched.page
        await page.goto(f"{site.url}/read/{BOOK}/{LESSON}")
        await page.keyboard.press("Tab")
        await expect(page.get_by_role("link", name="Skip to the lesson")).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page.locator("#lesson")).to_be_focused()
