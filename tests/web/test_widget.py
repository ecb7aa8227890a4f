"""The widget on a page of another origin, whose style is hostile and whose policy is strict."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, expect

from answer.scripted_model import Reply, Request, Turn, quote, scripted_model
from api.service import Service, build_settings, ingest, serve, with_model
from askbook.api.middleware import FRESH_SECONDS
from askbook.wiring import open_store
from builders import copy_home
from web.axe import find_faults
from web.browsing import DESKTOP, ON_BOTH, PHONE, Watched, open_page
from web.drawing import draw_png

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTION = "What is the difference between a topic and a service?"
UNKNOWN = "Which yeast do I need for sourdough bread?"
SELECTED = "A publisher sends messages without knowing who listens. A subscriber receives every message of its topic."
# What is hidden and dressed up here is what the widget is made of.
STYLE = """
* { color: rgb(255, 0, 0) !important; letter-spacing: 7px !important; }
div, button, textarea, p, header, form, ul, svg, askbook-widget { display: none !important; opacity: 0 !important; }
.launcher, .log, .send { visibility: hidden !important; }
"""
PAGE = f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Docs</title>
<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="/style.css">\
<link rel="icon" href="data:,"></head>
<body><main><h1 class="answer">Docs</h1><section id="text">{SELECTED}</section><h2 class="chip">More</h2></main>
<script src="/page.js"></script>\
<script src="ASKBOOK/widget.js" data-key="KEY" data-title="Ask the docs" data-accent="#5b3fd6" defer></script>
</body></html>"""
SCRIPT = 'window.pressed = []; document.addEventListener("keydown", (event) => pressed.push(event.key));'


@dataclass
class Site:
    """A documentation site on loopback: `localhost` to a browser, so that 127.0.0.1 is another origin."""

    url: str
    askbook: str = ""
    key: str = ""


@contextlib.contextmanager
def host_site() -> Iterator[Site]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = PAGE.replace("ASKBOOK", site.askbook).replace("KEY", site.key)
            kind, body = {"/style.css": ("text/css", STYLE), "/page.js": ("text/javascript", SCRIPT)}.get(
                self.path, ("text/html", page)
            )
            self.send_response(200)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            origin = "/".join(site.askbook.split("/")[:3])
            policy = f"default-src 'self'; script-src 'self' {origin}; connect-src 'self' {origin}"
            self.send_header("Content-Security-Policy", f"{policy}; img-src 'self' data:; object-src 'none'")
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    with _listen(Handler) as port:
        site = Site(f"http://localhost:{port}")
        yield site


@contextlib.contextmanager
def host_proxy(prefix: str) -> Iterator[Site]:
    """Another site that has askbook below a path of its own; `askbook` is where it finds it."""

    class Handler(BaseHTTPRequestHandler):
        def _pass_on(self) -> None:
            sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
            path = self.path.removeprefix(prefix)
            answer = httpx2.request(self.command, site.askbook + path, headers=headers, content=sent, timeout=30)
            self.send_response(answer.status_code)
            for name, value in answer.headers.multi_items():
                if name not in ("content-encoding", "content-length", "transfer-encoding", "date", "server"):
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.content)

        do_GET = do_POST = do_OPTIONS = _pass_on

        def log_message(self, format: str, *args: object) -> None:
            pass

    with _listen(Handler) as port:
        site = Site(f"http://127.0.0.1:{port}{prefix}")
        yield site


@contextlib.contextmanager
def _listen(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    """At this port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


PAPER = r"""# Attention

## The formula of attention

The attention of queries $Q$, keys $K$ and values $V$ is

$$
\operatorname{softmax}\left(\frac{QK^\top}{\sqrt{d_k}}\right) V
$$

![Queries meet keys](img/attention.png)
"""


async def _join(service: Service, site: Site) -> None:
    """The line in its pages, with a key for them."""
    async with open_store(service.app.state.askbook.settings) as store:
        _, site.key = await store.keys.create("docs", origins=[site.url])
    site.askbook = service.url
    await asyncio.sleep(FRESH_SECONDS)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def docs(site: Service) -> AsyncIterator[Site]:
    with host_site() as docs:
        await _join(site, docs)
        yield docs


@contextlib.asynccontextmanager
async def visit(
    browser: Browser, docs: Site, size: tuple[int, int] = DESKTOP, dark: bool = False, quiet: bool = True
) -> AsyncIterator[Watched]:
    async with open_page(browser, docs.url, docs.askbook, size=size, dark=dark, quiet=quiet) as watched:
        await watched.page.goto(docs.url)
        yield watched


async def open_panel(page: Page) -> Locator:
    await page.get_by_role("button", name="Ask the docs").click()
    panel = page.get_by_role("dialog", name="Ask the docs")
    await expect(panel).to_be_visible()
    return panel


async def ask(panel: Locator, text: str) -> Locator:
    """The reply, whole."""
    replies = panel.locator(".reply")
    before = await replies.count()
    await panel.get_by_label("Your question").fill(text)
    await panel.get_by_label("Your question").press("Enter")
    await expect(replies).to_have_count(before + 1)
    return replies.last


@ON_BOTH
async def test_ask_open_a_source_and_follow_up(browser: Browser, docs: Site, size: tuple[int, int]) -> None:
    async with visit(browser, docs, size) as watched:
        panel = await open_panel(watched.page)
        reply = await ask(panel, QUESTION)
        await expect(reply).to_contain_text("many to many stream")
        await reply.locator(".chip").first.click()
        source = panel.locator(".source:visible")
        await expect(source).to_contain_text("Services and Actions")
        link = source.get_by_role("link", name="Read it in the book")
        assert str(await link.get_attribute("href")).startswith(
            "https://example.org/physical-ai-robotics/module-1-ros2/"
        )
        await expect(link).to_be_focused()
        await source.get_by_role("button", name="Close the source").click()
        await expect(reply.locator(".chip").first).to_be_focused()
        await expect(await ask(panel, "Tell me more about the first source")).to_contain_text("Services and Actions")
        # A reader who turns the page finds the conversation again.
        await watched.page.goto(f"{docs.url}/next")
        panel = await open_panel(watched.page)
        await expect(panel.locator(".reply")).to_have_count(2)
        await expect(panel.locator(".mine").first).to_contain_text(QUESTION)
        await panel.get_by_role("button", name="New conversation").click()
        await expect(panel.locator(".reply")).to_have_count(0)


async def test_a_refusal_leads_to_the_nearest_sections(browser: Browser, docs: Site) -> None:
    async with visit(browser, docs) as watched:
        reply = await ask(await open_panel(watched.page), UNKNOWN)
        await expect(reply).to_contain_text("I don't have information about that in the book content")
        nearest = reply.locator(".nearest a").first
        assert str(await nearest.get_attribute("href")).startswith("https://example.org/physical-ai-robotics/")
        assert await nearest.get_attribute("target") == "_blank"


@ON_BOTH
async def test_a_selected_text_answers(browser: Browser, docs: Site, size: tuple[int, int]) -> None:
    async with visit(browser, docs, size) as watched:
        page = watched.page
        await page.evaluate("getSelection().selectAllChildren(document.getElementById('text'))")
        await page.get_by_role("button", name="Ask about this").click()
        panel = page.get_by_role("dialog", name="Ask the docs")
        await expect(panel.locator(".selected")).to_contain_text(SELECTED)
        reply = await ask(panel, "Who receives a message?")
        await expect(reply).to_contain_text("A subscriber receives every message of its topic.")
        await expect(reply.locator(".sources")).to_contain_text("Selected text")
        await panel.get_by_role("button", name="Ask without the selected text").click()
        await expect(panel.locator(".selected")).to_be_hidden()


@pytest.mark.parametrize("prefix", ["", "/ask"])
async def test_a_book_without_pages_of_its_own_has_no_links(tmp_path: Path, browser: Browser, prefix: str) -> None:
    folder = tmp_path / "robots"
    folder.mkdir()
    (folder / "gears.md").write_text("# Gears\n\n## Turning\n\nGear one of the robot turns four times a minute.\n")
    with contextlib.ExitStack() as stack:
        proxy = stack.enter_context(host_proxy(prefix))
        settings = build_settings(tmp_path / "home", askbook_embedder="none", askbook_public_url=proxy.url)
        await ingest(settings, folder)
        service, docs = stack.enter_context(serve(settings)), stack.enter_context(host_site())
        await _join(service, docs)
        proxy.askbook, docs.askbook = service.url, proxy.url
        async with visit(browser, docs) as watched:
            panel = await open_panel(watched.page)
            reply = await ask(panel, "How many times a minute does gear one of the robot turn?")
            await reply.locator(".chip").first.click()
            await expect(panel.locator(".source:visible")).to_contain_text("four times a minute")
            await expect(panel.get_by_role("link")).to_have_count(0)


async def test_no_style_gets_in_or_out(browser: Browser, docs: Site) -> None:
    look = (
        "(element) => { const { color, display, font, letterSpacing } = getComputedStyle(element); "
        "return [color, display, font, letterSpacing] }"
    )
    async with visit(browser, docs) as watched:
        page = watched.page
        own = [page.locator(place) for place in ("h1.answer", "h2.chip", "#text", "body")]
        before = [await one.evaluate(look) for one in own]
        panel = await open_panel(page)
        reply = await ask(panel, QUESTION)
        assert [await one.evaluate(look) for one in own] == before
        for inside in (reply, panel.get_by_label("Your question"), panel.locator("h2").first):
            colour, _, _, spacing = await inside.evaluate(look)
            assert colour != "rgb(255, 0, 0)" and spacing == "normal"
        await page.keyboard.press("Escape")
        launcher = page.get_by_role("button", name="Ask the docs")
        assert await launcher.evaluate("(one) => getComputedStyle(one).backgroundColor") == "rgb(91, 63, 214)"


async def test_the_keyboard_is_enough_and_the_page_does_not_hear_it(browser: Browser, docs: Site) -> None:
    async with visit(browser, docs) as watched:
        page = watched.page
        await page.get_by_role("button", name="Ask the docs").focus()
        await page.keyboard.press("Enter")
        panel = page.get_by_role("dialog", name="Ask the docs")
        await expect(panel.get_by_label("Your question")).to_be_focused()
        await page.evaluate("pressed.length = 0")
        await page.keyboard.type("What is a topic?")
        await page.keyboard.press("Enter")
        await expect(panel.locator(".reply")).to_have_count(1)
        for key in ("Tab", "Shift+Tab"):
            for _ in range(25):
                await page.keyboard.press(key)
                assert await page.evaluate("document.activeElement.tagName") == "ASKBOOK-WIDGET"
        assert await page.evaluate("pressed") == []
        await page.keyboard.press("Escape")
        await expect(panel).to_be_hidden()
        await expect(page.get_by_role("button", name="Ask the docs")).to_be_focused()


@pytest.mark.parametrize(("size", "dark"), [(DESKTOP, False), (DESKTOP, True), (PHONE, False)])
async def test_everybody_can_use_it(browser: Browser, docs: Site, size: tuple[int, int], dark: bool) -> None:
    async with visit(browser, docs, size, dark) as watched:
        panel = await open_panel(watched.page)
        await (await ask(panel, QUESTION)).locator(".chip").first.click()
        await ask(panel, UNKNOWN)
        assert await find_faults(watched.page, "askbook-widget") == []
        box = await panel.bounding_box()
        assert box and ((box["width"], box["height"]) == size) is (size == PHONE)


async def test_little_is_loaded_before_it_is_opened(browser: Browser, docs: Site) -> None:
    async with open_page(browser, docs.url, docs.askbook) as watched:
        loaded: list[str] = []
        watched.page.on("response", lambda response: loaded.append(response.url))
        async with watched.page.expect_response(f"{docs.askbook}/widget.js") as script:
            await watched.page.goto(docs.url)
        await expect(watched.page.get_by_role("button", name="Ask the docs")).to_be_visible()
        assert [url for url in loaded if url.startswith(docs.askbook)] == [f"{docs.askbook}/widget.js"]
        size = len(await (await script.value).body())
        print(f"widget.js: {size} bytes until it is opened")
        assert size < 8_000


# --- whose key --------------------------------------------------------------------------------------


async def test_a_page_of_another_site_cannot_use_the_key(site: Service, docs: Site, browser: Browser) -> None:
    with host_site() as thief:
        thief.askbook, thief.key = docs.askbook, docs.key
        async with visit(browser, thief, quiet=False) as watched:
            panel = await open_panel(watched.page)
            await panel.get_by_label("Your question").fill(QUESTION)
            await panel.get_by_label("Your question").press("Enter")
            await expect(panel.get_by_role("alert")).to_contain_text("Askbook cannot be reached")
            assert any("CORS" in error for error in watched.errors)


async def test_a_key_of_another_site_is_refused(site: Service, docs: Site, browser: Browser) -> None:
    """Also where the page's own origin is known: by a key that it does not use."""
    with host_site() as other:
        await _join(site, other)
        other.key = docs.key
        async with visit(browser, other, quiet=False) as watched:
            panel = await open_panel(watched.page)
            await panel.get_by_label("Your question").fill(QUESTION)
            async with watched.page.expect_response(f"{docs.askbook}/chat/stream") as refused:
                await panel.get_by_label("Your question").press("Enter")
            assert (await refused.value).status == 401
            await expect(panel.get_by_role("alert")).to_contain_text("This key is for the pages of another site")


# --- a model that takes its time --------------------------------------------------------------------


def _quote_slowly(number: int, request: Request) -> Reply:
    reply = quote(number, request)
    return replace(reply, text=f"{reply.text} " * 100, pace=0.05) if isinstance(reply, Turn) and reply.text else reply


@ON_BOTH
async def test_it_streams_and_stops(
    ingested_demo: Path, tmp_path: Path, browser: Browser, size: tuple[int, int]
) -> None:
    with scripted_model(_quote_slowly) as model, host_site() as docs:
        settings = build_settings(copy_home(ingested_demo, tmp_path), **with_model(model.url))
        with serve(settings) as service:
            await _join(service, docs)
            async with visit(browser, docs, size) as watched:
                panel = await open_panel(watched.page)
                await panel.get_by_label("Your question").fill(QUESTION)
                await panel.get_by_label("Your question").press("Enter")
                await expect(panel.locator(".theirs .answer .chip").first).to_be_visible()
                await panel.get_by_role("button", name="Stop").click()
                await expect(panel.locator(".theirs")).to_contain_text("Stopped.")
                await expect(panel.get_by_role("button", name="Ask", exact=True)).to_be_visible()


async def test_formulas_and_pictures_are_shown_on_the_sites_own_pages(tmp_path: Path, browser: Browser) -> None:
    folder = tmp_path / "book"
    (folder / "img").mkdir(parents=True)
    (folder / "01-attention.md").write_text(PAPER)
    (folder / "img" / "attention.png").write_bytes(draw_png())
    settings = build_settings(tmp_path / "home")
    await ingest(settings, folder)
    with serve(settings) as service, host_site() as docs:
        await _join(service, docs)
        async with visit(browser, docs) as watched:
            page = watched.page
            # The site may have a KaTeX of its own.
            await page.evaluate("window.katex = 'theirs'")
            panel = await open_panel(page)
            reply = await ask(panel, "What is the formula of the attention of queries, keys and values?")
            await expect(reply.locator(".math.display math")).to_have_count(1)
            await expect(reply.get_by_role("img", name="Queries meet keys")).to_have_js_property("naturalWidth", 320)
            assert await page.evaluate("window.katex") == "theirs"
