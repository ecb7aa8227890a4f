"""The pictures of the docs: the demo book, a month of questions, a real server, a real browser (`make screenshots`)."""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path

from playwright.async_api import Browser, Page

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

from api.service import build_settings, ingest, serve  # noqa: E402
from askbook.answer.ask import get_reply  # noqa: E402
from askbook.domain import Filters, Question  # noqa: E402
from askbook.settings import Settings  # noqa: E402
from askbook.store.questions import Questions  # noqa: E402
from askbook.store.threads import Threads  # noqa: E402
from askbook.wiring import open_askbook  # noqa: E402
from web.browsing import DESKTOP, PHONE, find_chromium, open_browser, open_page  # noqa: E402
from web.chatting import ask, open_chat  # noqa: E402
from web.drawing import draw_png  # noqa: E402

BOOK = "physical-ai-robotics"
QUESTION = "Why does a subscriber get nothing from a best-effort publisher?"
UNKNOWN = "Which yeast do I need for sourdough bread?"
ASKED = (
    QUESTION,
    "What is a URDF file?",
    "What is domain randomisation?",
    "How do I spawn a robot in Gazebo?",
    "What does the inflation layer of a costmap do?",
    "What is the difference between a topic and a service?",
    UNKNOWN,
    "How much does a Jetson Orin cost?",
    "Which battery should I buy for the robot?",
    "Does ROS 2 run on Windows 11?",
)
DAYS, MOST_A_DAY = 30, 9
FIRST_SOURCE = re.compile("^Source 1: ")

PAPER = r"""# Attention

Attention lets a model look at all words of a sentence at once.

## The formula of attention

The attention of queries $Q$, keys $K$ and values $V$ is

$$
\operatorname{Attention}(Q, K, V) = \operatorname{softmax}\left(\frac{QK^\top}{\sqrt{d_k}}\right) V
$$

where $d_k$ is the dimension of a key. Dividing by $\sqrt{d_k}$ keeps the gradients of the softmax from vanishing.

![The weight of a key grows with its product](img/weights.png)

## The loss

\[
\ell(y, \hat{y}) = \begin{cases}
  \tfrac{1}{2}(y - \hat{y})^2 & \text{if } |y - \hat{y}| \le \delta \\
  \delta \left(|y - \hat{y}| - \tfrac{1}{2}\delta\right) & \text{otherwise}
\end{cases}
\]
"""

SITE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Robot docs</title>
<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">
<style>body {{ font: 17px/1.6 Georgia, serif; max-width: 44rem; margin: 4rem auto; \
padding: 0 1.5rem; color: #223 }}</style></head>
<body><h1>Getting started</h1><p>Your robot speaks to the rest of the world over topics and services. \
A topic is a stream that
anybody may join; a service is a question with one answer. This page shows both on a small arm.</p>\
<h2>Before you begin</h2>
<p>Install the packages, source the workspace, and check that the robot is on the network.</p>
<script src="{askbook}/widget.js" data-key="{key}" data-title="Ask the docs" defer></script></body></html>"""


async def main() -> None:
    chromium = find_chromium()
    if chromium is None:
        sys.exit("there is no chromium: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder:
        settings = build_settings(Path(folder))
        await _live_a_month(settings)
        async with open_browser(chromium) as browser:
            with serve(settings) as service:
                await _show_pages(browser, service.url)
            await _show_formulas(browser, Path(folder) / "paper")
            with _host_site() as site:
                key = await _make_key(settings, site.origin)
                with serve(settings) as service:
                    site.page = SITE.format(askbook=service.url, key=key)
                    await _show_widget(browser, site.origin)


async def _live_a_month(settings: Settings) -> None:
    """Real questions, really answered, as if on the days of a month."""
    chance, now = random.Random(7), datetime.now(UTC)
    async with open_askbook(settings) as askbook:
        job = await askbook.jobs.submit(BOOK, str(files("askbook") / "demo" / BOOK), "incremental")
        await askbook.worker.run_job(job.job_id)
        for day in range(DAYS, 0, -1):
            for _ in range(chance.randint(2, MOST_A_DAY)):
                moment = now - timedelta(days=day, minutes=-chance.randint(0, 600))
                then = replace(
                    askbook,
                    threads=Threads(askbook.ledger.database, lambda moment=moment: moment),
                    questions=Questions(askbook.ledger.database, lambda moment=moment: moment),
                )
                replied = await get_reply(then.ask(Question(chance.choice(ASKED), Filters(BOOK), owner="readers")))
                if chance.random() < 0.3:
                    liked = replied.reply.confidence is not None and replied.reply.confidence.should_answer
                    await then.questions.save_feedback(replied.account.thread_id, "readers", liked)


async def _show_pages(browser: Browser, url: str) -> None:
    async with open_page(browser, url, size=DESKTOP) as watched:
        page = watched.page
        await open_chat(page, url)
        answer = await ask(page, QUESTION)
        await answer.get_by_role("button", name=FIRST_SOURCE).first.click()
        await page.locator("mark").first.wait_for()
        await _save(page, "chat")
        await page.get_by_role("link", name="Read in the book").click()
        await page.locator(".lesson mark").first.wait_for()
        await _save(page, "reader")
        await page.get_by_role("combobox").fill("extended Kalman filter")
        await page.get_by_role("option").first.wait_for()
        await page.keyboard.press("ArrowDown")
        await _save(page, "search")
        await open_chat(page, url)
        await ask(page, UNKNOWN)
        await _save(page, "refusal")
        await page.goto(f"{url}/admin")
        await page.get_by_text("What became of them").wait_for()
        await page.wait_for_load_state("networkidle")
        await _save(page, "admin")
    async with open_page(browser, url, size=PHONE) as watched:
        await open_chat(watched.page, url)
        await ask(watched.page, QUESTION)
        await _save(watched.page, "phone")


async def _show_formulas(browser: Browser, folder: Path) -> None:
    (folder / "book" / "img").mkdir(parents=True)
    (folder / "book" / "01-attention.md").write_text(PAPER)
    (folder / "book" / "img" / "weights.png").write_bytes(draw_png())
    settings = build_settings(folder / "home")
    await ingest(settings, folder / "book")
    with serve(settings) as service:
        async with open_page(browser, service.url, size=DESKTOP) as watched:
            page = watched.page
            await open_chat(page, service.url)
            answer = await ask(page, "What is the formula of the attention of queries, keys and values?")
            await answer.get_by_role("button", name=FIRST_SOURCE).first.click()
            await page.locator("#panel mtable").wait_for()
            await _save(page, "formulas")


async def _show_widget(browser: Browser, site: str) -> None:
    async with open_page(browser, site, size=DESKTOP, quiet=False) as watched:
        page = watched.page
        await page.goto(site)
        await page.get_by_role("button", name="Ask the docs").click()
        panel = page.get_by_role("dialog", name="Ask the docs")
        await panel.get_by_label("Your question").fill(QUESTION)
        await panel.get_by_label("Your question").press("Enter")
        await panel.get_by_role("button", name=FIRST_SOURCE).first.wait_for()
        await _save(page, "widget")


async def _save(page: Page, name: str) -> None:
    # What was scrolled to is drawn in the next frame.
    await page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    await page.screenshot(path=HERE / "images" / f"{name}.png", animations="disabled", caret="hide")


async def _make_key(settings: Settings, origin: str) -> str:
    async with open_askbook(settings) as askbook:
        return (await askbook.keys.create("docs site", origins=(origin,)))[1]


class _Site(ThreadingHTTPServer):
    page = ""

    @property
    def origin(self) -> str:
        return f"http://localhost:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: _Site  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(self.server.page.encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextlib.contextmanager
def _host_site() -> Iterator[_Site]:
    site = _Site(("127.0.0.1", 0), _Handler)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    try:
        yield site
    finally:
        site.shutdown()


if __name__ == "__main__":
    asyncio.run(main())
