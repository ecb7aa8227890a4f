"""The chat page in a real browser: ask, follow the source, go on, stop, keep, and what is said of failures."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.async_api import Browser, Response, Route, expect

from answer.scripted_model import Turn, scripted_model, search
from api.service import Service, build_settings, serve, wait_until, with_model
from api.tenants import make_key
from askbook.settings import Settings
from askbook.wiring import open_askbook
from builders import copy_home
from web.browsing import ON_BOTH, PHONE, open_page
from web.chatting import BOOK, QUESTION, UNKNOWN, ask, is_too_wide, open_chat

pytestmark = pytest.mark.asyncio(loop_scope="module")

FIRST_PAINT_BYTES = 150 * 1024


@ON_BOTH
async def test_a_reader_asks_checks_the_source_and_goes_on(
    site: Service, browser: Browser, size: tuple[int, int]
) -> None:
    async with open_page(browser, site.url, size=size) as watched:
        page = watched.page
        await open_chat(page, site.url)
        assert await is_too_wide(page) == []

        answer = await ask(page, QUESTION)
        await expect(answer.get_by_text(re.compile("supported", re.IGNORECASE)).first).to_be_visible()
        await answer.get_by_text("why?").or_(answer.locator("summary")).first.click()
        await expect(answer.get_by_text("The sentences are the book’s own.")).to_be_visible()
        assert await is_too_wide(page) == []

        await answer.get_by_role("button", name=re.compile("^Source 1: ")).first.click()
        panel = page.get_by_role("complementary", name="Source")
        await expect(panel.locator("mark").first).to_be_visible()
        quote = " ".join(await panel.locator("mark").all_inner_texts())
        assert quote.split()[0] in await answer.inner_text()

        await panel.get_by_role("link", name="Read in the book").click()
        await expect(page).to_have_url(re.compile(f"/read/{BOOK}/.+from=\\d+"))
        await expect(page.locator(".lesson mark").first).to_be_in_viewport()
        assert " ".join(" ".join(await page.locator(".lesson mark").all_inner_texts()).split()) == " ".join(
            quote.split()
        )
        assert await is_too_wide(page) == []

        # The way back leads into the same conversation.
        await page.go_back()
        await expect(page.get_by_role("article", name="You asked")).to_have_text(QUESTION)
        follow_up = await ask(page, "Can you give an example?")
        await expect(follow_up.get_by_role("button", name=re.compile("^Source 1: ")).first).to_be_visible()
        assert await page.get_by_role("article", name="Answer").count() == 2


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        (
            "*a **b** c* ***d*** x_y_z `e_f`",
            "<p><em>a <strong>b</strong> c</em> <strong><em>d</em></strong> x_y_z <code>e_f</code></p>",
        ),
        ("1. one\n   - a\n   - b\n2. two", "<ol><li>one<ul><li>a</li><li>b</li></ul></li><li>two</li></ol>"),
        ("- a\n\n- b\n\nafter", "<ul><li><p>a</p></li><li><p>b</p></li></ul><p>after</p>"),
        ("> so\nit goes", "<blockquote><p>so\nit goes</p></blockquote>"),
        ("# T\n***\none  \ntwo", "<h3>T</h3><hr><p>one<br>two</p>"),
        (
            "> [!NOTE]\n> Mind *it*.",
            (
                '<blockquote class="admonition" role="note" data-kind="note">'
                '<p class="title">Note</p><p>Mind <em>it</em>.</p></blockquote>'
            ),
        ),
        ("- [ ] open\n- [x] done[^1]", "<ul><li>☐ open</li><li>☑ done<sup>1</sup></li></ul>"),
        ("<details><summary>More</summary>\n\nhere</details>", "<p><strong>More</strong></p><p>here</p>"),
        ("$E = mc^2$ for $5 and $6", '<p><span class="math">E = mc^2</span> for $5 and $6</p>'),
        (
            "[book](/read/x), [web](https://evil.example), ![pixel](https://evil.example/x.png)",
            '<p><a href="{url}/read/x" rel="noopener noreferrer">book</a>, web, <span class="picture">pixel</span></p>',
        ),
    ],
)
async def test_markdown_is_drawn(site: Service, browser: Browser, text: str, drawn: str) -> None:
    async with open_page(browser, site.url) as watched:
        await watched.page.goto(f"{site.url}/")
        draw = """async (text) => {
          const { renderAnswer } = await import("/assets/answer.js");
          return renderAnswer(text, []).innerHTML;
        }"""
        assert await watched.page.evaluate(draw, text) == drawn.replace("{url}", site.url)


async def test_a_refusal_is_no_error_and_shows_the_way(site: Service, browser: Browser) -> None:
    async with open_page(browser, site.url) as watched:
        page = watched.page
        await open_chat(page, site.url)
        answer = await ask(page, UNKNOWN)
        await expect(answer).to_contain_text("I don't have information about that in the book content")
        assert await page.get_by_role("alert").count() == 0
        nearest = answer.locator(".nearest a")
        assert await nearest.count() >= 2
        await nearest.first.click()
        await expect(page).to_have_url(re.compile(f"/read/{BOOK}/.+chunk="))
        await expect(page.locator(".lesson .cited").first).to_be_in_viewport()


async def test_a_suggestion_is_answered(site: Service, browser: Browser) -> None:
    async with open_page(browser, site.url) as watched:
        page = watched.page
        await open_chat(page, site.url)
        suggestions = page.get_by_role("list", name="Questions to begin with").get_by_role("button")
        # They come by themselves as soon as they have been tried.
        await expect(suggestions).to_have_count(4)
        await suggestions.first.click()
        answer = page.get_by_role("article", name="Answer")
        await expect(answer.get_by_role("button", name=re.compile("^Source 1: ")).first).to_be_visible()
        await expect(answer).to_contain_text("Well supported")


@ON_BOTH
async def test_a_mark_shows_its_quote(site: Service, browser: Browser, size: tuple[int, int]) -> None:
    async with open_page(browser, site.url, size=size) as watched:
        page = watched.page
        await open_chat(page, site.url)
        answer = await ask(page, "What is a topic?")
        chip = answer.get_by_role("button", name=re.compile("^Source 1: ")).first
        tip = answer.get_by_role("tooltip")
        await expect(tip).to_have_count(0)
        await chip.hover()
        await expect(tip).to_be_visible()
        words = (await tip.locator("p").first.inner_text()).split()[:6]
        assert " ".join(words) in " ".join((await answer.inner_text()).split())
        assert await is_too_wide(page) == []
        await page.mouse.move(0, 0)
        await expect(tip).to_have_count(0)

        # By the keyboard, and taken away by it.
        await answer.get_by_role("button", name="Copy with citations").focus()
        while not await chip.evaluate("(one) => one === document.activeElement"):
            await page.keyboard.press("Shift+Tab")
        await expect(tip).to_be_visible()
        assert await chip.get_attribute("aria-describedby") == await tip.get_attribute("id")
        await page.keyboard.press("Escape")
        await expect(tip).to_have_count(0)

        # By a finger: held it shows the quote, and a tap opens the source.
        await chip.dispatch_event("pointerenter", {"pointerType": "touch"})
        await expect(tip).to_be_visible()
        await chip.click()
        await expect(tip).to_have_count(0)
        await expect(page.get_by_role("complementary", name="Source")).to_be_visible()


@ON_BOTH
async def test_a_first_visit_waits_for_its_book(tmp_path: Path, browser: Browser, size: tuple[int, int]) -> None:
    folder = tmp_path / "robots"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.md").write_text(
            f"# Gear {number}\n\nA gear {number} is a wheel that turns {number} times.\n"
        )
    wait = "sh -c 'until test -e go; do sleep 0.1; done'"
    settings = build_settings(tmp_path / "home", askbook_refresh_command=wait)
    async with open_askbook(settings) as askbook:
        await askbook.jobs.submit("robots", str(folder), "incremental")
    with serve(settings) as service:
        async with open_page(browser, service.url, size=size) as watched:
            page = watched.page
            await page.goto(f"{service.url}/")
            await expect(page.get_by_role("heading", name="This book is being read in")).to_be_visible()
            await expect(page.get_by_role("progressbar", name="Read in")).to_have_attribute("value", "0")
            assert await is_too_wide(page) == []
            await page.goto(f"{service.url}/admin")
            await expect(page.locator("#jobs tbody tr").first).to_contain_text("Running")
            await expect(page.locator("[data-book=robots]").get_by_role("progressbar")).to_be_visible()
            await expect(page.get_by_text("No book yet")).to_have_count(0)
            await page.goto(f"{service.url}/")
            (folder / "go").touch()
            await expect(page.get_by_role("heading", name="What would you like to know?")).to_be_visible()
            await expect(page.get_by_role("heading", name="Robots")).to_be_visible()
            await ask(page, "What is a gear 1?")


@ON_BOTH
async def test_half_an_answer_is_marked_as_stopped(
    ingested_demo: Path, tmp_path: Path, browser: Browser, size: tuple[int, int]
) -> None:
    sentence = "A topic is a named stream of messages of one type [1]. "
    script = [search("What is a topic?"), Turn(sentence * 60, pace=0.02)]
    home = copy_home(ingested_demo, tmp_path)
    with (
        scripted_model(lambda number, _: script[number % 2]) as model,
        serve(build_settings(home, **with_model(model.url))) as service,
    ):
        async with open_page(browser, service.url, size=size) as watched:
            page = watched.page
            await open_chat(page, service.url)
            await page.get_by_role("textbox", name="Your question").fill("What is a topic?")
            await page.keyboard.press("Enter")
            answer = page.get_by_role("article", name="Answer")
            # It is there before it is whole.
            await expect(answer).to_contain_text("named stream of messages")
            await page.get_by_role("button", name="Stop").click()
            await expect(answer).to_contain_text("Stopped. Nothing of this answer is kept.")
            await expect(answer).to_contain_text("named stream of messages")
            await expect(page.get_by_role("button", name="Ask", exact=True)).to_be_visible()
        wait_until(lambda: model.left, 5)


@ON_BOTH
async def test_conversations_are_kept_named_and_deleted(site: Service, browser: Browser, size: tuple[int, int]) -> None:
    async with open_page(browser, site.url, size=size) as watched:
        page = watched.page

        async def open_list() -> None:
            if size == PHONE:
                await page.get_by_role("button", name="Open the list of conversations").click()

        await open_chat(page, site.url)
        await ask(page, "What is a URDF file?")
        await open_list()
        kept = page.get_by_role("navigation", name="Earlier conversations")
        await expect(kept.get_by_role("button", name="What is a URDF file?", exact=True)).to_be_visible()

        await page.get_by_role("button", name="New question").click()
        await expect(page.get_by_role("heading", name="What would you like to know?")).to_be_visible()
        await open_list()
        await kept.get_by_role("button", name="What is a URDF file?", exact=True).focus()
        await page.keyboard.press("Tab")
        await expect(page.get_by_role("button", name="Rename: What is a URDF file?")).to_be_focused()
        await page.keyboard.press("Enter")
        await page.get_by_label("New name").fill("Robot descriptions")
        await page.keyboard.press("Enter")
        renamed = kept.get_by_role("button", name="Robot descriptions", exact=True)
        await expect(renamed).to_be_focused()

        await page.reload()
        await open_list()
        await renamed.click()
        await expect(page.get_by_role("article", name="You asked")).to_have_text("What is a URDF file?")
        await expect(page.get_by_role("article", name="Answer").locator(".chip").first).to_be_visible()

        await open_list()
        await page.get_by_role("button", name="Delete: Robot descriptions").click()
        await page.get_by_role("button", name="Keep").click()
        await expect(renamed).to_be_visible()
        await page.get_by_role("button", name="Delete: Robot descriptions").click()
        await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        await expect(renamed).to_have_count(0)
        await expect(page.get_by_role("heading", name="What would you like to know?")).to_be_visible()


async def test_filters_go_with_the_question(site: Service, browser: Browser) -> None:
    async with open_page(browser, site.url) as watched:
        page = watched.page
        await open_chat(page, site.url)
        await page.get_by_role("button", name="Filters").click()
        await page.get_by_label("Module").select_option("gazebo")
        await page.get_by_label("Hardware").select_option("2")
        await page.get_by_label("Written for").select_option("B1")
        await expect(page.get_by_role("button", name="Filters · 3")).to_be_visible()
        async with page.expect_request("**/chat/stream") as sent:
            answer = await ask(page, "Which sensors can be simulated?")
        body = (await sent.value).post_data_json or {}
        assert body["module_filter"] == "gazebo"
        assert body["reader"] == {"hardware_tier": 2, "proficiency_level": "B1"}
        await answer.get_by_role("button", name=re.compile("^Source 1: ")).first.click()
        await expect(page.get_by_role("complementary", name="Source")).to_contain_text("Module 2")


async def test_a_question_entered_before_the_book_is_there_is_asked_then(site: Service, browser: Browser) -> None:
    async with open_page(browser, site.url) as watched:
        page, there = watched.page, asyncio.Event()

        async def hold_up(route: Route) -> None:
            await there.wait()
            await route.continue_()

        await page.route("**/contents*", hold_up)
        await page.goto(f"{site.url}/")
        field = page.get_by_role("textbox", name="Your question")
        await field.fill("What is a URDF file?")
        await page.keyboard.press("Enter")
        await expect(field).to_have_value("What is a URDF file?")
        await expect(page.get_by_role("article", name="You asked")).to_have_count(0)
        there.set()
        await expect(page.get_by_role("article", name="You asked")).to_have_text("What is a URDF file?")
        await expect(page.get_by_role("article", name="Answer").get_by_role("button", name="Copy")).to_be_visible()
        await expect(field).to_have_value("")


async def test_an_answer_is_judged_and_taken_along(site: Service, browser: Browser) -> None:
    async with open_page(browser, site.url) as watched:
        page = watched.page
        await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        await open_chat(page, site.url)
        await ask(page, "What is a URDF file?")
        answer = await ask(page, "What is a launch file?")
        async with page.expect_response("**/feedback") as given:
            await answer.get_by_role("button", name="This did not help").click()
        assert (await (await given.value).json())["position"] == 3
        await answer.get_by_label("A comment").fill("Which version?")
        async with page.expect_response("**/feedback") as given:
            await page.keyboard.press("Enter")
        assert (await (await given.value).json())["comment"] == "Which version?"
        await expect(answer).to_contain_text("Thank you.")

        await answer.get_by_role("button", name="Copy with citations").click()
        copied = await page.evaluate("navigator.clipboard.readText()")
        assert re.search(r"\[1\][\s\S]+Sources:\n\[1\] .+: http://127\.0\.0\.1:\d+/read/", copied)


async def test_no_copy_is_offered_where_the_browser_allows_none(site: Service, browser: Browser) -> None:
    count = """async () => {
      const { codeBlock } = await import("/assets/answer.js");
      document.body.replaceChildren(codeBlock("x = 1", "python"));
      return document.querySelectorAll(".code button:not([hidden])").length;
    }"""
    for url, offered in ((site.url, 1), (site.url.replace("127.0.0.1", "askbook.test"), 0)):
        async with open_page(browser, url, quiet=False) as watched:
            await watched.page.goto(f"{url}/")
            assert await watched.page.evaluate(count) == offered


async def test_the_first_paint_is_small_and_its_own(site: Service, browser: Browser) -> None:
    async with open_page(browser, site.url) as watched:
        seen: list[Response] = []
        watched.page.on("response", lambda one: seen.append(one))
        await open_chat(watched.page, site.url)
        await watched.page.wait_for_load_state("networkidle")
        total = sum([len(await one.body()) for one in seen])
        print(f"first paint: {len(seen)} requests, {total / 1024:.0f} KB")
        assert total < FIRST_PAINT_BYTES
        again = await watched.page.request.get(f"{site.url}/assets/base.css")
        kept = {"If-None-Match": again.headers["etag"]}
        assert (await watched.page.request.get(f"{site.url}/assets/base.css", headers=kept)).status == 304
        assert (await watched.page.request.get(f"{site.url}/assets/docs.html")).status == 404


async def test_a_library_with_keys_asks_for_one(ingested_demo: Path, tmp_path: Path, browser: Browser) -> None:
    home = copy_home(ingested_demo, tmp_path)
    async with open_askbook(Settings.model_validate({"askbook_home": home})) as askbook:
        key = await make_key(askbook, "", "reader")
    with serve(build_settings(home, askbook_local_owner=False)) as service:
        # A browser writes each 401 on its console.
        async with open_page(browser, service.url, quiet=False) as watched:
            page = watched.page
            await page.goto(f"{service.url}/")
            await page.get_by_label("Your key").fill("ask_wrong")
            await page.keyboard.press("Enter")
            await expect(page.get_by_role("alert")).to_contain_text("the key is not valid")
            await page.get_by_label("Your key").fill(key)
            await page.keyboard.press("Enter")
            await expect(page.get_by_role("heading", name="What would you like to know?")).to_be_visible()
            await ask(page, "What is a URDF file?")

            # Links send no header: the reader's pages have a cookie of their own, which opens nothing else.
            await page.goto(f"{service.url}/read/{BOOK}")
            await expect(page.get_by_role("heading", level=1)).to_be_visible()
            [cookie] = await page.context.cookies(f"{service.url}/read/x")
            assert cookie.items() >= {"path": "/read", "httpOnly": True, "sameSite": "Strict"}.items()
            assert (await page.request.get(f"{service.url}/info")).status == 401
            assert (await page.request.post(f"{service.url}/read")).status == 401

            await page.context.clear_cookies()
            await page.reload()
            await page.get_by_label("Your key").fill(key)
            await page.keyboard.press("Enter")
            await expect(page.get_by_role("navigation", name="Contents")).to_be_visible()
            assert watched.foreign == []


async def test_a_server_that_is_gone_is_told_with_what_to_do(
    ingested_demo: Path, tmp_path: Path, browser: Browser
) -> None:
    async with open_page(browser, quiet=False) as watched:
        page = watched.page
        with serve(build_settings(copy_home(ingested_demo, tmp_path))) as service:
            await open_chat(page, service.url)
        await page.get_by_role("textbox", name="Your question").fill(QUESTION)
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert")).to_contain_text("Askbook cannot be reached")
        await expect(page.get_by_role("alert")).to_contain_text("Is the server running?")
        await expect(page.get_by_role("button", name="Try again")).to_be_visible()


async def test_what_could_not_be_kept_is_told(ingested_demo: Path, tmp_path: Path, browser: Browser) -> None:
    async with open_page(browser, quiet=False) as watched:
        page = watched.page
        with serve(build_settings(copy_home(ingested_demo, tmp_path))) as service:
            await open_chat(page, service.url)
            answer = await ask(page, QUESTION)
            await expect(page.get_by_role("button", name=f"Rename: {QUESTION}")).to_be_visible()
        thumb = answer.get_by_role("button", name="This helped")
        await thumb.click()
        await expect(answer.get_by_role("alert")).to_contain_text("askbook cannot be reached")
        await expect(thumb).to_have_attribute("aria-pressed", "false")
        await expect(answer.get_by_label("A comment")).to_have_count(0)

        kept = page.get_by_role("navigation", name="Earlier conversations")
        await page.get_by_role("button", name=f"Rename: {QUESTION}").click()
        await page.get_by_label("New name").fill("Topics")
        await page.keyboard.press("Enter")
        await expect(kept.get_by_role("alert")).to_contain_text("askbook cannot be reached")


@pytest.mark.parametrize("thread", ["00000000-0000-4000-8000-000000000000", "../x?y#z"])
async def test_an_unknown_conversation_is_a_new_one(site: Service, browser: Browser, thread: str) -> None:
    # A browser writes each 404 on its console.
    async with open_page(browser, site.url, quiet=False) as watched:
        await watched.page.goto(f"{site.url}/?{urlencode({'thread': thread})}")
        await expect(watched.page.get_by_text("That conversation is not here")).to_be_visible()
        await expect(watched.page).to_have_url(f"{site.url}/")
        await ask(watched.page, QUESTION)


async def test_light_and_dark_are_chosen_and_kept(site: Service, browser: Browser) -> None:
    async with open_page(browser, site.url) as watched:
        page = watched.page
        await open_chat(page, site.url)
        paper = "getComputedStyle(document.body).backgroundColor"
        light = await page.evaluate(paper)
        await page.get_by_role("button", name="Change between light and dark").click()
        dark = await page.evaluate(paper)
        assert light != dark
        await page.reload()
        assert await page.evaluate(paper) == dark
        await page.goto(f"{site.url}/read/{BOOK}")
        assert await page.evaluate(paper) == dark
