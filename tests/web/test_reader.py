"""The reader: lessons made from what the ledger keeps, with the anchors of the chunks, the cited words marked."""

from __future__ import annotations

import html
import re
import time
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pytest
from playwright.async_api import Browser, expect

from api.service import Service, build_settings, ingest, serve
from askbook.api.lesson_text import rebuild_text, render_lesson
from askbook.book.chunker import split_lesson
from askbook.book.reader import read_book, read_lessons
from askbook.domain import Chunk
from askbook.settings import Settings
from askbook.wiring import open_askbook
from builders import copy_home
from web.browsing import ON_BOTH, PHONE, open_page
from web.chatting import BOOK, is_too_wide, open_chat

pytestmark = pytest.mark.asyncio(loop_scope="module")

LESSON = "module-1-ros2/chapter-2-building/03-quality-of-service.md"


async def load_lessons(home: Path) -> dict[str, list[Chunk]]:
    async with open_askbook(Settings.model_validate({"askbook_home": home, "askbook_embedder": "none"})) as askbook:
        records = await askbook.ledger.load_records(BOOK)
        return {file: await askbook.ledger.load_lesson(BOOK, record.parent_doc_id) for file, record in records.items()}


async def test_the_headings_of_a_long_include_stand_on_lines_of_their_own(tmp_path: Path) -> None:
    releases = (f"## Release {number}\n\n{'It turns quicker than before. ' * 90}\n" for number in range(4))
    (tmp_path / "log.txt").write_text("# Log\n\n" + "\n".join(releases))
    (tmp_path / "01.md").write_text('--8<-- "log.txt"\n')
    [lesson] = read_lessons(tmp_path, read_book(tmp_path))[0]
    lines = rebuild_text(split_lesson(lesson)).text.split("\n")
    assert [line for line in lines if "## " in line] == [f"## Release {number}" for number in range(4)]


TABS = (
    'Run it:\n\n{{< tabpane >}}\n{{< tab header="a.toml" lang="toml" >}}\n%s\n{{< /tab >}}\n'
    '{{< tab header="a.yml" lang="yaml" >}}\nx: 1\n{{< /tab >}}\n{{< /tabpane >}}\n\n## Below\n\n%s\n'
)


@pytest.mark.parametrize("lines", [1, 60, 200])
def test_a_listing_that_a_generators_markup_closes_ends_on_the_page(tmp_path: Path, lines: int) -> None:
    """It may be the last of its chunk, or be cut in two."""
    code = "\n".join(f"key_{number} = {number}" for number in range(lines))
    (tmp_path / "01.md").write_text(TABS % (code, "It turns quicker than before. " * 90))
    [lesson] = read_lessons(tmp_path, read_book(tmp_path))[0]
    shown = render_lesson(rebuild_text(split_lesson(lesson)).text, lambda _: None).html
    listings = re.findall(r"<code data-language=.*?</code>", shown, re.DOTALL)
    assert [listing.count("\n") + 1 for listing in listings] == [lines, 1]
    assert '<h2 id="below">Below</h2>\n<p>It turns' in shown


async def test_every_lesson_is_rebuilt_and_every_anchor_and_passage_is_on_its_page(
    ingested_demo: Path, demo_folder: Path, tmp_path: Path
) -> None:
    for file, chunks in (await load_lessons(copy_home(ingested_demo, tmp_path))).items():
        text = (demo_folder / file).read_text(encoding="utf-8")
        rebuilt = rebuild_text(chunks)
        of_file = list[str]()
        for piece in rebuilt.pieces:
            there = rebuilt.text[piece.text_at : piece.text_at + piece.length]
            assert there == text[piece.source_at : piece.source_at + piece.length]
            of_file.append(there)
        # Each part of the file is there once, and nothing but labels between.
        assert len("".join("".join(of_file).split())) >= 0.97 * len("".join(rebuilt.text.split()))
        spans = [(piece.source_at, piece.source_at + piece.length) for piece in rebuilt.pieces]
        assert all(left[1] <= right[0] for left, right in pairwise(spans))
        whole = render_lesson(rebuilt.text, lambda _: None, anchors=rebuilt.anchors)
        ids = re.findall(r' id="([^"]+)"', whole.html)
        for chunk in chunks:
            anchor = unquote(chunk.url.partition("#")[2])
            assert not anchor or html.escape(anchor) in ids, chunk.url
            shown = render_lesson(rebuilt.text, lambda _: None, [rebuilt.find((chunk.start, chunk.end))]).html
            marked = html.unescape(" ".join(re.findall(r"<mark>(.*?)</mark>", shown, re.DOTALL)))
            words = set(re.findall(r"\w+", chunk.text))
            assert set(re.findall(r"\w+", marked)) <= words, chunk.url
            assert len(marked.split()) > 0.6 * chunk.word_count, chunk.url


@pytest.mark.parametrize(
    ("text", "quote", "marked"),
    [
        ("# A\n\n- one **two** three\n- four\n", "- one **two** three", ["one ", "two", " three"]),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n\nafter\n", "| 1 | 2 |", ["1", "2"]),
        ("```py\nx = 1\n```\n\nafter\n", "```py\nx = 1\n```", ["x = 1"]),
        ("**a.py**\n\n```py\nx = 1\n```\n", "py\nx = 1\n```", ["x = 1"]),
        ("Use `a_b` now. Then rest.\n", "Use `a_b` now.", ["Use ", "a_b", " now."]),
        ("> ## Why\n> Because.\n\nafter\n", "> ## Why\n> Because.", ["Why", "Because."]),
        ("> **Note**\n>\n> Mind *it*.\n", "> **Note**\n>\n> Mind *it*.", ["Note", "Mind ", "it", "."]),
        ("So $x$ is\n\n$$\ny\n$$\n", "So $x$ is\n\n$$\ny\n$$", ["So ", "x", " is", "y"]),
        ("One line\nand *two*.\n", "One line\nand *two*.", ["One line", "\n", "and ", "two", "."]),
        ("See [the *page*](x.md), yes.\n", "See [the *page*](x.md), yes.", ["See ", "the ", "page", ", yes."]),
    ],
)
async def test_the_quote_is_marked_whatever_it_stands_in(text: str, quote: str, marked: list[str]) -> None:
    start = text.index(quote)
    shown = render_lesson(text, lambda _: None, [(start, start + len(quote))]).html
    assert re.findall(r"<mark>(.*?)</mark>", shown, re.DOTALL) == marked
    assert 'id="cited-passage"' in shown


async def test_headings_keep_the_ids_that_their_author_gave() -> None:
    shown = render_lesson("# Bias [[on-bias]]\n\n## Own {#own}\n\n## Own\n\n## Own\n", lambda _: None)
    assert re.findall(r'<h\d id="(.*?)">(.*?)<', shown.html) == [
        ("on-bias", "Bias"),
        ("own", "Own"),
        ("own", "Own"),
        ("own-1", "Own"),
    ]


async def test_links_lead_to_lessons_or_the_web_and_nothing_else_lives(site: Service) -> None:
    with site.open_client() as client:
        page = client.get(f"/read/{BOOK}/{LESSON}").text
        hrefs = {html.unescape(one) for one in re.findall(r'href="([^"]*)"', page)}
        assert all(href.startswith(("/", "#", "https://")) for href in hrefs)
        for href in hrefs:
            if href.startswith(f"/read/{BOOK}/"):
                assert client.get(href).status_code == 200, href
        assert client.get(f"/read/{BOOK}/nowhere").status_code == 404
        assert client.get("/read/another-book/nowhere").status_code == 404
        first = client.get(f"/read/{BOOK}")
        assert (first.status_code, first.headers["location"]) == (307, f"/read/{BOOK}/README.md")


@ON_BOTH
async def test_a_reader_finds_the_way_through_the_book(site: Service, browser: Browser, size: tuple[int, int]) -> None:
    async with open_page(browser, site.url, size=size) as watched:
        page = watched.page
        await page.goto(f"{site.url}/read/{BOOK}/{LESSON}")
        title = page.get_by_role("heading", level=1)
        await expect(title).to_have_text("Quality of Service")
        assert await is_too_wide(page) == []

        if size == PHONE:
            await page.get_by_role("button", name="Contents").click()
        contents = page.get_by_role("navigation", name="Contents")
        await expect(contents.get_by_role("link", name="Quality of Service")).to_have_attribute("aria-current", "page")
        await contents.get_by_role("link", name="Choosing a profile").click()
        await expect(page.get_by_role("heading", name="Choosing a profile")).to_be_in_viewport()

        around = page.get_by_role("navigation", name="Lessons around this one")
        await around.get_by_role("link", name="Previous").click()
        await expect(title).to_have_text("Parameters and Launch Files")
        await around.get_by_role("link", name="Next").click()
        await expect(title).to_have_text("Quality of Service")

        await page.wait_for_load_state("load")
        await page.keyboard.press("/")
        await page.keyboard.type("extended Kalman filter")
        await page.locator("#found a").first.click()
        await expect(page.locator(".lesson .cited").first).to_be_in_viewport()


@ON_BOTH
async def test_the_search_is_typed_and_chosen_by_the_keyboard(
    site: Service, browser: Browser, size: tuple[int, int]
) -> None:
    async with open_page(browser, site.url, size=size) as watched:
        page = watched.page
        await page.goto(f"{site.url}/read/{BOOK}/{LESSON}")
        await page.wait_for_load_state("load")
        field = page.get_by_role("combobox", name="Search in this book")
        searches: list[str] = []
        page.on(
            "request", lambda request: searches.append(request.post_data or "") if "/search" in request.url else None
        )
        await page.keyboard.press("/")
        await expect(field).to_be_focused()
        await page.keyboard.type("extended Kalman filter", delay=15)
        sections = page.get_by_role("listbox", name="Sections found").get_by_role("option")
        await expect(sections.first).to_contain_text("Fusing with odometry")
        # Not once for each letter.
        assert 1 <= len(searches) <= 5
        await expect(field).to_have_attribute("aria-expanded", "true")
        assert await sections.first.locator("mark").all_inner_texts() == ["extended", "Kalman", "filter"]
        titles = await sections.locator("strong").all_inner_texts()
        places = await sections.locator(".where").all_inner_texts()
        assert len(set(zip(titles, places, strict=True))) == len(titles) > 2
        assert await is_too_wide(page) == []

        for key, chosen in (("ArrowDown", 0), ("ArrowDown", 1), ("ArrowUp", 0), ("ArrowUp", -1), ("ArrowDown", 0)):
            await page.keyboard.press(key)
            option = sections.nth(chosen)
            await expect(option).to_have_attribute("aria-selected", "true")
            await expect(field).to_have_attribute("aria-activedescendant", await option.get_attribute("id") or "")
        await page.keyboard.press("Escape")
        await expect(sections).to_have_count(0)
        await expect(field).to_be_focused()
        await expect(field).to_have_attribute("aria-expanded", "false")
        await page.keyboard.press("Enter")
        await page.keyboard.press("ArrowDown")
        await expect(sections.first).to_be_visible()
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        await expect(page).to_have_url(re.compile(r"03-imu-and-noise\.md\?chunk=[0-9a-f-]+&part=\d+-\d+"))
        await expect(page.locator(".lesson mark").first).to_be_in_viewport()
        marked = " ".join(await page.locator(".lesson mark").all_inner_texts())
        # The paragraph, not the whole chunk.
        assert "extended Kalman filter" in marked and len(marked.split()) < 90


async def test_a_line_of_the_search_shows_most_of_the_words(browser: Browser, tmp_path: Path) -> None:
    text = "# Scales\n\nWe weigh a robot for its weight.\n\n## The spread\n\nThe spread is the largest weight."
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "01-scales.md").write_text(text)
    settings = build_settings(tmp_path / "home", askbook_embedder="none")
    await ingest(settings, tmp_path / "book")
    with serve(settings) as service:
        async with open_page(browser, service.url) as watched:
            await watched.page.goto(f"{service.url}/read/robots/01-scales.md")
            await watched.page.wait_for_load_state("load")
            await watched.page.get_by_role("combobox", name="Search in this book").fill("spread weight")
            found = watched.page.get_by_role("option").first
            await expect(found.locator("strong")).to_have_text("The spread")
            assert await found.locator("mark").all_inner_texts() == ["spread", "weight"]


async def test_nothing_found_is_said(site: Service, browser: Browser) -> None:
    async with open_page(browser, site.url) as watched:
        page = watched.page
        await page.goto(f"{site.url}/read/{BOOK}/{LESSON}")
        await page.route("**/search", lambda route: route.fulfill(json={"results": []}))
        await page.get_by_role("combobox").fill("zzz")
        await expect(page.locator("#found")).to_contain_text("Nothing in this book fits.")
        await page.locator("h1").click()
        await expect(page.locator("#found")).to_be_hidden()


@ON_BOTH
async def test_a_reader_asks_about_what_is_selected(site: Service, browser: Browser, size: tuple[int, int]) -> None:
    async with open_page(browser, site.url, size=size) as watched:
        page = watched.page
        await page.goto(f"{site.url}/read/{BOOK}/{LESSON}")
        await page.locator(".lesson p").first.click(click_count=3)
        button = page.get_by_role("button", name="Ask about this")
        await expect(button).to_be_in_viewport()
        await button.click()
        await expect(page.get_by_text("About this text")).to_be_visible()
        assert "Quality" not in page.url

        await page.get_by_role("textbox", name="Your question").fill("What is quality of service?")
        async with page.expect_request("**/chat/stream") as sent:
            await page.keyboard.press("Enter")
        body = (await sent.value).post_data_json or {}
        assert body["selected_text"].startswith("Quality of service (QoS) is the set")
        answer = page.get_by_role("article", name="Answer")
        await expect(answer).to_contain_text("promises that a publisher offers")
        await expect(page.get_by_text("About this text")).to_be_hidden()

        # By the keyboard alone, and taken back.
        await page.goto(f"{site.url}/read/{BOOK}/{LESSON}")
        await page.locator(".lesson p").first.click(click_count=3)
        await page.keyboard.press("a")
        await page.get_by_role("button", name="Remove the selected text").click()
        await expect(page.get_by_text("About this text")).to_be_hidden()
        await open_chat(page, site.url)
        await expect(page.get_by_text("About this text")).to_be_hidden()


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("It costs $5 and $10.", "<p>It costs $5 and $10.</p>"),
        ("The $n$th of \\(x\\)", '<p>The <span class="math">n</span>th of <span class="math">x</span></p>'),
        ("See \\[#12\\], \\(a note\\).", "<p>See [#12], (a note).</p>"),
        ("$$\na = b\n- c\n$$\n", '<div class="math display">a = b\n- c</div>'),
        ("`$x$`", "<p><code>$x$</code></p>"),
        ("$x < y & z$", '<p><span class="math">x &lt; y &amp; z</span></p>'),
        ("- [x] done", "<ul>\n<li>☑ done</li>\n</ul>"),
        ("A[^1]\n\n[^1]: so it is", "<p>A<sup>1</sup></p>\n<p><sup>1</sup> so it is</p>"),
        (
            "> **Tip**\n>\n> Do *so*.",
            '<blockquote class="admonition" role="note" data-kind="tip">\n<p class="title"><strong>Tip</strong></p>\n'
            "<p>Do <em>so</em>.</p>\n</blockquote>",
        ),
        (
            "> **Take care of it**\n>\n> Text.",
            '<blockquote class="admonition" role="note" data-kind="titled">\n'
            '<p class="title"><strong>Take care of it</strong></p>\n'
            "<p>Text.</p>\n</blockquote>",
        ),
        (
            "> **He** said so.",
            "<blockquote>\n<p><strong>He</strong> said so.</p>\n</blockquote>",
        ),
        ('<img src="javascript:x" alt="A">', '<p><span class="picture">A</span></p>'),
        ("![A](//evil.example/x.png)", '<p><span class="picture">A</span></p>'),
        ("[![A](b.png)](c.md)", '<p><span class="picture">A</span></p>'),
    ],
)
async def test_a_lesson_is_written_as_it_reads(text: str, drawn: str) -> None:
    assert render_lesson(text, lambda _: None).html.strip() == drawn


async def test_hostile_formulas_take_their_time_and_no_more() -> None:
    for text in ("\\(" * 50_000, "$x " * 50_000, "\\[\n" * 10_000, "\\begin{align}\n" * 5_000, "![a](b.png) " * 10_000):
        began = time.process_time()
        render_lesson(text, lambda _: None)
        assert time.process_time() - began < 5
