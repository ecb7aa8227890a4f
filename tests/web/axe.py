"""What axe-core finds wrong with a page for those who do not see it, or have no mouse."""

from __future__ import annotations

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page

GRAVE = ("serious", "critical")


async def find_faults(page: Page, part: str = "html") -> list[str]:
    """The serious and the critical ones, in the page or in one part of it."""
    found = (await Axe().run(page, context=part)).response["violations"]
    return [
        f"{fault['id']}: {node['html'][:200]} {node['failureSummary']}"
        for fault in found
        if fault["impact"] in GRAVE
        for node in fault["nodes"]
    ]
