"""The author's page: a book ingested again before one's eyes, what readers asked, and the keys."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from api.service import Service, build_settings, ingest, serve
from askbook.ingest.pipeline import SIZES
from askbook.wiring import open_store
from index.scripted_server import Received, Reply, stand_in
from web.axe import find_faults
from web.browsing import DESKTOP, ON_BOTH, PHONE, open_page

pytestmark = pytest.mark.asyncio(loop_scope="module")

UNKNOWN = "Which yeast do I need for sourdough bread?"
MORE_THAN_READ = re.compile("^(1[1-9]|[2-9][0-9])$")
"""Reading is a tenth of an ingestion; this is beyond it, and before its end."""


def _write_lessons(folder: Path, numbers: range) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number in numbers:
        text = (
            f"Gear {number} of the robot turns {number + 3} times a minute, and its axle is oiled "
            f"every {number + 2} days. "
        )
        (folder / f"{number:03}-gear-{number}.md").write_text(
            f"# Gear {number}\n\n## How gear {number} turns\n\n{text * 6}\n"
        )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("book") / "robots"
    _write_lessons(folder, range(2))
    return folder


@pytest.fixture(scope="module")
def desk(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A machine without keys, where somebody has asked already."""
    settings = build_settings(tmp_path_factory.mktemp("desk"))
    asyncio.run(ingest(settings, folder))
    with serve(settings) as service:
        with service.open_client() as client:
            answered = client.post("/chat/run", json={"message": "How many times a minute does gear 1 turn?"}).json()
            assert answered["should_answer"], answered
            client.post("/feedback", json={"session_id": answered["session_id"], "helpful": True})
            refused = client.post("/chat/run", json={"message": UNKNOWN}).json()
            thumb = {"session_id": refused["session_id"], "helpful": False, "comment": "No word of <b>bread</b>."}
            assert client.post("/feedback", json=thumb).status_code == 200
        yield service


async def open_admin(page: Page, service: Service) -> None:
    await page.goto(f"{service.url}/admin")
    await expect(page.get_by_role("heading", name="How the book is read")).to_be_visible()


@pytest.mark.parametrize(("size", "dark"), [(DESKTOP, False), (DESKTOP, True), (PHONE, False)])
async def test_what_readers_asked(browser: Browser, desk: Service, size: tuple[int, int], dark: bool) -> None:
    async with open_page(browser, desk.url, size=size, dark=dark) as watched:
        page = watched.page
        await open_admin(page, desk)
        await expect(page.locator("#tiles")).to_contain_text("50 %")
        await expect(page.locator("#asked .bar .part")).to_have_count(2)
        await page.locator("#asked summary").click()
        await expect(page.get_by_role("table", name="Questions a day").locator("tbody tr")).to_have_count(1)
        await expect(page.locator("#quality")).to_contain_text("Not in the book")
        gap = page.locator("#open .gaps li", has_text=UNKNOWN)
        await expect(gap).to_contain_text("1 thumb down")
        await expect(gap).to_contain_text("No word of <b>bread</b>.")
        await expect(gap.get_by_role("link")).to_contain_text("Gear")
        await expect(page.locator("#opinions li")).to_have_count(2)
        await page.get_by_label("Period").select_option("7 days")
        await expect(page.locator("#asked .bar")).to_have_count(7)
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing sticks out"
        assert await find_faults(page) == []


# --- a book is ingested again -----------------------------------------------------------------------


@dataclass
class Held:
    """A service, and what lets its embedder go on after the first batch."""

    service: Service
    folder: Path
    go_on: threading.Event


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Held]:
    folder, go_on = tmp_path / "robots", threading.Event()
    _write_lessons(folder, range(2))

    def embed(_number: int, request: Received) -> Reply:
        full_batches = [one for one in embedder.received if len(one.body["texts"]) == SIZES.embed]
        assert len(full_batches) < 2 or go_on.wait(60)
        return Reply(body={"embeddings": {"float": [[1.0] + [0.0] * 1023 for _ in request.body["texts"]]}})

    with stand_in(embed) as embedder:
        remote = {"askbook_embedder": "cohere", "cohere_api_key": "key", "cohere_base_url": embedder.url}
        settings = build_settings(tmp_path / "home", **remote)
        asyncio.run(ingest(settings, folder))
        with serve(settings) as service:
            yield Held(service, folder, go_on)


@ON_BOTH
async def test_a_book_is_ingested_again(browser: Browser, held: Held, size: tuple[int, int]) -> None:
    _write_lessons(held.folder, range(2, 200))
    (held.folder / "801-latin.md").write_bytes(b"# Caf\xe9\n\nNot UTF-8.\n")
    (held.folder / "802-tier.md").write_text(
        "---\nproficiency_level: Z9\n---\n# A tier\n\nThe tier of this one is a mistake.\n"
    )
    lessons = len(list(held.folder.glob("*.md"))) - 1
    async with open_page(browser, held.service.url, size=size) as watched:
        page = watched.page
        await open_admin(page, held.service)
        book = page.locator("[data-book=robots]")
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        await book.get_by_role("button", name="Re-ingest").click()
        bar = book.get_by_role("progressbar")
        await expect(bar).to_be_visible()
        await expect(bar).to_have_attribute("value", MORE_THAN_READ)
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing sticks out"
        held.go_on.set()
        await expect(bar).to_have_count(0)
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing sticks out"
        assert sum("/info" in url for url in asked) <= 3 < len(asked)
        await expect(book).to_contain_text(f"{lessons} lessons")
        await expect(page.locator("#jobs tbody tr").first).to_contain_text("Done")
        warnings = book.locator(".warnings > ul > li")
        await expect(warnings.filter(has_text="801-latin.md")).to_contain_text("Left out: this file is not UTF-8")
        await expect(warnings.filter(has_text="802-tier.md")).to_contain_text("Z9")


# --- keys -------------------------------------------------------------------------------------------


@pytest.fixture
def fresh(folder: Path, tmp_path: Path) -> Iterator[Service]:
    """One to make keys on."""
    settings = build_settings(tmp_path / "home", askbook_embedder="none")
    asyncio.run(ingest(settings, folder))
    with serve(settings) as service:
        yield service


async def test_a_failed_job_says_why(browser: Browser, fresh: Service, folder: Path) -> None:
    away = folder.rename(folder.with_name("away"))
    try:
        async with open_page(browser, fresh.url, quiet=False) as watched:
            page = watched.page
            await open_admin(page, fresh)
            await expect(page.locator("#tiles")).to_contain_text("0 a day")
            await page.get_by_role("button", name="Re-ingest").click()
            failed = page.locator("#jobs tbody tr").filter(has_text="Failed")
            await expect(failed).to_contain_text("the book's folder")
    finally:
        away.rename(folder)


async def test_from_the_first_key_to_a_revoked_one(browser: Browser, fresh: Service) -> None:
    async with open_page(browser, fresh.url, quiet=False) as watched:
        page = watched.page
        await open_admin(page, fresh)
        form, keys = page.locator("#new-key"), page.locator("#key-list tbody tr")
        await expect(page.locator("#made")).to_contain_text("stays so when there are keys")
        await form.get_by_label("Name").fill("Ann")
        await form.get_by_label("For").select_option("an author (admin)")
        await form.get_by_role("button", name="Make a key").click()
        await expect(page.locator("#made")).to_contain_text("it is not shown again")
        admin = await page.locator("#made code").inner_text()

        await form.get_by_label("Name").fill("docs")
        await form.get_by_label("For").select_option("a site’s widget")
        await form.get_by_label("Sites").fill("https://docs.example.org, https://blog.example.org")
        await form.get_by_role("button", name="Make a key").click()
        await expect(page.locator("#made code")).to_contain_text(
            f'<script src="{fresh.url}/widget.js" data-key="askbook_'
        )
        site_key = keys.filter(has_text="docs")
        await expect(site_key).to_contain_text("https://docs.example.org, https://blog.example.org")
        await site_key.get_by_role("button", name="Revoke docs").click()
        await site_key.get_by_role("button", name="Really revoke docs").click()
        await expect(site_key).to_contain_text("Revoked")
        assert await find_faults(page) == []
        assert watched.errors == [] and watched.foreign == []

        # The owner stays the owner: the page keeps no key, and neither page asks for one.
        assert await page.evaluate("sessionStorage.length + localStorage.length") == 0
        await page.reload()
        await expect(keys).to_have_count(2)
        assert admin.startswith("askbook_")


async def test_whoever_needs_a_key_is_asked_for_it(browser: Browser, tmp_path: Path) -> None:
    settings = build_settings(tmp_path, askbook_embedder="none", askbook_local_owner=False)
    async with open_store(settings) as store:
        _, admin = await store.keys.create("Ann", "admin")
    with serve(settings) as closed:
        await _try_keys(browser, closed, admin)


async def _try_keys(browser: Browser, closed: Service, admin: str) -> None:
    async with open_page(browser, closed.url, quiet=False) as watched:
        page = watched.page
        await page.goto(f"{closed.url}/admin")
        keys = page.locator("#key-list tbody tr")
        door = page.get_by_role("dialog", name="Author’s page")
        await door.get_by_label("Key").fill(admin[:-3] + "AAA")
        await door.get_by_role("button", name="Open").click()
        await expect(door.get_by_role("alert")).to_contain_text("The key is not valid")
        assert await find_faults(page) == []
        await door.get_by_label("Key").fill(admin)
        await door.get_by_role("button", name="Open").click()
        await expect(keys).to_have_count(1)
        await page.get_by_role("button", name="Forget key").click()
        await expect(door).to_be_visible()
        assert await page.evaluate("sessionStorage.length + localStorage.length") == 0


async def test_a_mistake_is_told(browser: Browser, fresh: Service) -> None:
    async with open_page(browser, fresh.url, quiet=False) as watched:
        page = watched.page
        await open_admin(page, fresh)
        # The form is ready by then.
        await expect(page.locator("#made")).to_contain_text("There is no key yet")
        await page.locator("#new-key").get_by_label("Name").fill("Ann")
        await page.locator("#new-key").get_by_label("For").select_option("an author (admin)")
        await page.locator("#new-key").get_by_role("button", name="Make a key").click()
        await expect(page.locator("#made")).to_contain_text("it is not shown again")
        await page.locator("#new-key").get_by_label("Name").fill("docs")
        await page.locator("#new-key").get_by_label("Sites").fill("docs.example.org")
        await page.locator("#new-key").get_by_role("button", name="Make a key").click()
        await expect(page.locator("#alert")).to_contain_text("is not the origin of a site")
