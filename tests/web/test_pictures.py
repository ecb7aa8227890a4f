"""Pictures come from the book's own folder, by the same keys, or are words; hostile ones are neither read nor run."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from api.service import BOOK, Service, build_settings, ingest, serve
from api.tenants import TENANTS, canary, make_key, open_world
from askbook.book.pictures import MAX_BYTES, Picture, find_pictures, read_picture
from askbook.errors import NotFound
from askbook.wiring import Askbook, open_askbook
from builders import copy_home
from web.browsing import ON_BOTH, open_page
from web.chatting import ask, is_too_wide, open_chat
from web.drawing import SVG, draw_png

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTION = "How does the gripper of the robot close its fingers?"
LESSON = """# The gripper

The gripper of the robot closes its two fingers with a spindle, and a spring opens them again.

![A spindle between zwiebelfisch fingers](../img/gripper.png)

It holds a cup without breaking it. <img src="../img/parts.svg" alt="The parts in a row">

![Gone](../img/gone.png) ![Elsewhere](https://evil.example/pixel.png) ![Data](data:image/png;base64,AAAA)
![Script](javascript:canary()) ![Out](../../secret.png) ![Absolute](/etc/passwd) ![Linked](../img/link.png)
![Pipe](../img/pipe.png) ![Large](../img/large.png) ![Text](../img/text.png) ![Rooted](/shared.png)

Words such as ../img/draft.png and code such as `![Draft](../img/draft.png)` show nothing. ![Defined][below]

[below]: ../img/defined.png
"""
NOT_SHOWN = ("Gone", "Elsewhere", "Data", "Out", "Absolute", "Linked", "Pipe", "Large", "Text")


def write_book(folder: Path) -> Path:
    """Beside it, outside, lies a picture that is nobody's business."""
    (folder / "guide").mkdir(parents=True)
    (folder / "img").mkdir()
    (folder / "static").mkdir()
    (folder / ".git").mkdir()
    (folder / "guide" / "01-gripper.md").write_text(LESSON)
    (folder / "img" / "gripper.png").write_bytes(draw_png())
    (folder / "img" / "parts.svg").write_bytes(SVG)
    (folder / "img" / "draft.png").write_bytes(draw_png())
    (folder / "img" / "defined.png").write_bytes(draw_png())
    (folder / "img" / "text.png").write_text("not a picture: SECRET-WORDS")
    (folder / "img" / "large.png").write_bytes(draw_png() + b"\0" * 50 * 2**20)
    (folder / "static" / "shared.png").write_bytes(draw_png())
    (folder / ".git" / "hidden.png").write_bytes(draw_png())
    (folder.parent / "secret.png").write_bytes(draw_png())
    (folder / "img" / "link.png").symlink_to(folder.parent / "secret.png")
    (folder / "linked").symlink_to(folder / "img")
    os.mkfifo(folder / "img" / "pipe.png")
    return folder


@pytest.fixture(scope="module")
def robots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_book(tmp_path_factory.mktemp("shelf") / "robots")


@pytest.fixture(scope="module")
def ingested(robots: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("pictures") / "home"
    asyncio.run(ingest(build_settings(home), robots))
    return home


@pytest.fixture(scope="module")
def gallery(ingested: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serve(build_settings(copy_home(ingested, tmp_path_factory.mktemp("gallery")))) as service:
        yield service


# --- what is read ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "src", ["img/../img/gripper.png", "./img/gripper.png", "img%2fgripper.png", "img/gripper.png?x"]
)
async def test_a_picture_of_the_folder_is_read(robots: Path, src: str) -> None:
    assert read_picture(robots, "01.md", src) == (draw_png(), "image/png")


@pytest.mark.parametrize("page", ["site/docs/guide/01.md", "site/docs/01.md", "site/01.md"])
async def test_a_rooted_picture_is_found_from_the_folder_of_its_site(tmp_path: Path, page: str) -> None:
    (tmp_path / "site" / "static").mkdir(parents=True)
    (tmp_path / "site" / "static" / "a.png").write_bytes(draw_png())
    (tmp_path.parent / "static").mkdir(exist_ok=True)
    (tmp_path.parent / "static" / "b.png").write_bytes(draw_png())
    assert read_picture(tmp_path, page, "/a.png") == (draw_png(), "image/png")
    with pytest.raises(NotFound):
        read_picture(tmp_path, page, "/b.png")
    with pytest.raises(NotFound):
        read_picture(tmp_path, page, "/../static/b.png")


async def test_what_only_begins_like_an_svg_is_no_picture_at_once(tmp_path: Path) -> None:
    (tmp_path / "evil.svg").write_bytes(b"<!---->" * 60 + b"<x>")
    started = time.process_time()
    with pytest.raises(NotFound):
        read_picture(tmp_path, "01.md", "evil.svg")
    assert time.process_time() - started < 1
    (tmp_path / "fine.svg").write_bytes(b"<?xml version='1.0'?>\n<!-- a --> <!-- b -->\n<!DOCTYPE svg>\n<svg />")
    assert read_picture(tmp_path, "01.md", "fine.svg")[1] == "image/svg+xml"


@pytest.mark.row("B4")
@pytest.mark.parametrize(
    "src",
    [
        "../secret.png",
        "..%2fsecret.png",
        "img/../../secret.png",
        "img/%2e%2e/%2e%2e/secret.png",
        "..\\secret.png",
        "img/link.png",
        "linked/gripper.png",
        "img/pipe.png",
        "img/large.png",
        "img/text.png",
        "img/gone.png",
        "img",
        ".git/hidden.png",
        "/etc/passwd",
        "/dev/zero",
        "//evil.example/x.png",
        "file:///etc/passwd",
        "http://evil.example/x.png",
        "javascript:canary()",
        "data:image/png;base64,AAAA",
        "img/gripper.png\0",
        "%00",
        "a" * 900,
        "[",
        "",
    ],
)
async def test_nothing_else_is(robots: Path, src: str) -> None:
    with pytest.raises(NotFound):
        read_picture(robots, "01.md", src)


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b"\xff\xd8\xff\xe0 jpeg", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
        (b"\0\0\0\x20ftypavif\0\0\0\0", "image/avif"),
        (b"\xef\xbb\xbf<!-- drawn -->\n<svg>", "image/svg+xml"),
        (b"<html><svg>", None),
        (b"<!DOCTYPE svg [<!ENTITY a 'aaaa'>]><svg>", None),
        (b"%PDF-1.7", None),
    ],
)
async def test_the_kind_is_told_by_the_bytes(tmp_path: Path, raw: bytes, kind: str | None) -> None:
    (tmp_path / "a.png").write_bytes(raw)
    if kind is not None:
        assert read_picture(tmp_path, "01.md", "a.png") == (raw, kind)
    else:
        with pytest.raises(NotFound):
            read_picture(tmp_path, "01.md", "a.png")


async def test_the_pictures_of_a_text_are_found() -> None:
    text = "Code `![no](no.png)` ![A [b] c](x%20y.png \"t\") <IMG alt='D' src=e.svg> ![r](https://evil.example/z.png)"
    assert list(find_pictures(text)) == [Picture("A [b] c", "x%20y.png"), Picture("D", "e.svg")]


# --- over HTTP ------------------------------------------------------------------------------------


async def test_words_of_pictures_are_found_and_their_files_are_served(gallery: Service) -> None:
    with gallery.open_client() as client:
        [found, *_] = client.post("/search", json={"text": "zwiebelfisch fingers"}).json()["results"]
        place = f"/picture/{BOOK}/{found['chunk_id']}"
        shown = client.get(place, params={"src": "../img/gripper.png"})
        assert (shown.status_code, shown.headers["content-type"]) == (200, "image/png")
        assert shown.content == draw_png()
        drawing = client.get(place, params={"src": "../img/parts.svg"})
        assert drawing.headers["content-type"] == "image/svg+xml"
        assert "sandbox" in drawing.headers["content-security-policy"]
        assert "script-src" not in drawing.headers["content-security-policy"]
        assert drawing.headers["x-content-type-options"] == "nosniff"
        # In the folder and named, but not shown.
        assert client.get(place, params={"src": "../img/draft.png"}).status_code == 404
        assert client.get(place, params={"src": "img/gripper.png"}).status_code == 404
        # In the folder, but nowhere in this text.
        assert client.get(place, params={"src": "../static/shared.png"}).status_code == 404
        assert client.get(place, params={"src": "../../secret.png"}).status_code == 404
        assert client.get(place, params={"src": "../img/large.png"}).status_code == 404
        assert client.get(place).status_code == 400
        body = client.get(place, params={"src": "../img/text.png"})
        assert body.status_code == 404 and "SECRET" not in body.text


async def test_a_picture_of_another_tenant_is_not_there(tmp_path: Path) -> None:
    async with open_world(tmp_path, askbook_rate_limit=0) as world:
        for owner in TENANTS:
            for chunk in world.tenants[owner].chunk_ids:
                for caller in TENANTS:
                    key = world.tenants[caller].reader
                    got = await world.call("GET", f"/picture/{BOOK}/{chunk}?src=img/part.png", key)
                    assert got.status_code == (200 if caller == owner else 404)
                    assert (canary(owner) in got.text) == (caller == owner)


async def test_a_folder_that_is_gone_leaves_the_words(ingested: Path, robots: Path, tmp_path: Path) -> None:
    home = copy_home(ingested, tmp_path)
    moved = robots.with_name("moved")
    robots.rename(moved)
    try:
        with serve(build_settings(home)) as service, service.open_client() as client:
            [found, *_] = client.post("/search", json={"text": "zwiebelfisch fingers"}).json()["results"]
            gone = client.get(f"/picture/{BOOK}/{found['chunk_id']}", params={"src": "../img/gripper.png"})
            assert (gone.status_code, str(tmp_path) in gone.text) == (404, False)
    finally:
        moved.rename(robots)


# --- on the pages ---------------------------------------------------------------------------------

CANARY = "window.hits = 0; window.canary = () => { window.hits += 1; };"


@ON_BOTH
async def test_pictures_are_shown_or_are_their_words(gallery: Service, browser: Browser, size: tuple[int, int]) -> None:
    # A browser writes each 404 on its console.
    async with open_page(browser, gallery.url, size=size, quiet=False) as watched:
        page = watched.page
        await page.add_init_script(CANARY)
        await page.goto(f"{gallery.url}/read/{BOOK}")
        lesson = page.locator(".lesson")
        for alt in ("A spindle between zwiebelfisch fingers", "The parts in a row", "Rooted", "Defined"):
            picture = lesson.get_by_role("img", name=alt)
            await picture.scroll_into_view_if_needed()
            await expect(picture).to_have_js_property("complete", True)
            assert await picture.evaluate("(one) => one.naturalWidth") >= 300
        for alt in NOT_SHOWN:
            await expect(lesson.locator(".picture", has_text=alt)).to_be_visible()
        elsewhere = lesson.get_by_role("link", name="Elsewhere")
        await expect(elsewhere).to_have_attribute("href", "https://evil.example/pixel.png")
        assert await lesson.locator("img").count() == 4
        assert await is_too_wide(page) == []

        await open_chat(page, gallery.url)
        answer = await ask(page, QUESTION)
        await expect(answer.get_by_role("img").first).to_have_js_property("complete", True)
        assert await answer.get_by_role("img").first.evaluate("(one) => one.naturalWidth") == 320
        await answer.locator("button.chip").first.click()
        await expect(page.locator("#panel img")).to_have_count(4)
        await page.keyboard.press("Escape")
        await page.reload()
        await expect(page.get_by_role("article", name="Answer").get_by_role("img").first).to_be_visible()
        assert await page.evaluate("window.hits") == 0
        assert watched.foreign == []
        assert [one for one in watched.errors if "404" not in one] == []


async def test_a_drawing_that_is_opened_by_itself_runs_nothing(gallery: Service, browser: Browser) -> None:
    async with open_page(browser, gallery.url, quiet=False) as watched:
        page = watched.page
        await page.add_init_script(CANARY)
        await page.goto(f"{gallery.url}/read/{BOOK}")
        address = await page.locator(".lesson").get_by_role("img", name="The parts in a row").get_attribute("src")
        answer = await page.goto(f"{gallery.url}{address}")
        assert answer is not None and b"<script>top.canary()" in await answer.body()
        await expect(page.locator("svg text")).to_have_text("Q, K and V")
        assert await page.evaluate("window.hits") == 0
        # It asks for nothing, and is told so on the console.
        assert any("script" in one for one in watched.errors)


async def test_a_key_for_another_book_sees_none(ingested: Path, tmp_path: Path) -> None:
    home = copy_home(ingested, tmp_path)
    async with open_askbook(build_settings(home)) as askbook:
        chunk = (await askbook.ledger.load_lesson(BOOK, await _find_lesson(askbook)))[0]
        own, other = [await make_key(askbook, "", "reader", (book,)) for book in (BOOK, "another")]
    with serve(build_settings(home, askbook_local_owner=False)) as service, service.open_client() as client:
        place = f"/picture/{BOOK}/{chunk.id}"
        for key, status in ((own, 200), (other, 404), ("", 401)):
            got = client.get(place, params={"src": "../img/gripper.png"}, headers={"X-API-Key": key})
            assert got.status_code == status


async def _find_lesson(askbook: Askbook) -> str:
    return next(iter((await askbook.ledger.load_records(BOOK)).values())).parent_doc_id


async def test_readers_with_keys_see_pictures(ingested: Path, tmp_path: Path, browser: Browser) -> None:
    home = copy_home(ingested, tmp_path)
    async with open_askbook(build_settings(home)) as askbook:
        key = await make_key(askbook, "", "reader")
    with serve(build_settings(home, askbook_local_owner=False)) as service:
        async with open_page(browser, service.url, quiet=False) as watched:
            page = watched.page
            await page.goto(f"{service.url}/")
            await page.get_by_label("Your key").fill(key)
            await page.keyboard.press("Enter")
            await expect(page.get_by_role("heading", name="What would you like to know?")).to_be_visible()
            answer = await ask(page, QUESTION)
            await expect(answer.get_by_role("img").first).to_have_js_property("naturalWidth", 320)
            await page.context.clear_cookies()
            address = await answer.get_by_role("img").first.get_attribute("src")
            assert address and (await page.request.get(address)).status == 401


async def test_a_large_picture_is_not_held_in_memory(tmp_path: Path) -> None:
    folder = tmp_path / "book"
    folder.mkdir()
    with (folder / "large.png").open("wb") as file:
        file.write(draw_png())
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(NotFound):
        read_picture(folder, "01.md", "large.png")
    shutil.rmtree(folder)
    with pytest.raises(NotFound):
        read_picture(folder, "01.md", "large.png")
