"""The chat page as a reader uses it."""

from __future__ import annotations

from playwright.async_api import Locator, Page, expect

BOOK = "physical-ai-robotics"
QUESTION = "Why does a subscriber get nothing from a best-effort publisher?"
UNKNOWN = "Which yeast do I need for sourdough bread?"


async def open_chat(page: Page, url: str) -> None:
    await page.goto(f"{url}/")
    await expect(page.get_by_role("heading", name="What would you like to know?")).to_be_visible()


async def ask(page: Page, question: str) -> Locator:
    """The answer, whole; also one that refuses."""
    shown = page.get_by_role("article", name="Answer")
    before = await shown.count()
    await page.get_by_role("textbox", name="Your question").fill(question)
    await page.keyboard.press("Enter")
    answer = shown.nth(before)
    await expect(answer.get_by_role("button", name="Copy with citations")).to_be_visible()
    return answer


async def is_too_wide(page: Page) -> list[str]:
    """What reaches beyond the screen's edge, but for what scrolls by itself."""
    return await page.evaluate(
        """() => [document.documentElement, document.querySelector("main")]
            .filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.tagName)"""
    )
