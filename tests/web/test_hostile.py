"""S3: what a book and a model say is text, whatever it says. In a real browser, under a policy without exceptions."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.async_api import Browser, Page, expect

from answer.scripted_model import Reply, Request, say, scripted_model, search
from api.service import Service, build_settings, serve, with_model
from askbook.wiring import open_askbook
from figures import Figure
from web.browsing import Watched, open_page
from web.chatting import ask, open_chat
from web.hostile import HOSTILE, NAMES, TITLES

pytestmark = [pytest.mark.row("S3"), pytest.mark.asyncio(loop_scope="module")]

BOOK = "hostile"
CANARY = "window.hits = 0; window.canary = () => { window.hits += 1; return ''; };"

# What lives in a page that none of its own scripts made: dangerous elements, handlers, and addresses that are none.
# Pictures are those of the book's folder, and formulas those that KaTeX drew.
DANGERS = """() => [
  ...document.querySelectorAll("iframe, object, embed, base, form[action], main script, article script, style, \
template, :not(.katex) > math, foreignObject, meta[http-equiv]"),
  ...[...document.querySelectorAll("article img, #panel img")]
    .filter((one) => !one.src.startsWith(`${location.origin}/picture/`)),
  ...[...document.querySelectorAll("*")].filter((one) => [...one.attributes].some((of) =>
    of.name.startsWith("on") || of.name === "style" && !one.matches("textarea, .ask-about"))),
  ...[...document.querySelectorAll("[href], [src]")]
    .filter((one) => !/^https?:/.test(one.href?.baseVal ?? one.href ?? one.src)),
  ...[...document.querySelectorAll(".answer a[href]:not(.chip)")]
    .filter((one) => new URL(one.href).host === "evil.example" && !document.body.dataset.book),
].map((one) => one.outerHTML.slice(0, 200))"""


def write_book(folder: Path) -> Path:
    folder.mkdir()
    title = TITLES[0].replace('"', '\\"')
    (folder / "askbook.toml").write_text(f'book_id = "{BOOK}"\ntitle = "{title}"\n', encoding="utf-8")
    for number, text in enumerate(HOSTILE):
        heading = TITLES[number % len(TITLES)]
        fact = f"The gripper{number} closes with a force of {number} newtons."
        body = (
            f"# The gripper{number} {heading}\n\n{fact} Its label reads so.\n\n{text}\n\n"
            f"It reads {text} to everybody.\n"
        )
        name = NAMES[number] if number < len(NAMES) else f"{number:02}-gripper.md"
        (folder / name).write_text(body, encoding="utf-8")
    return folder


def obey(number: int, request: Request) -> Reply:
    """A model that repeats whatever it reads."""
    if not request.tool_outputs:
        return search(request.messages[-1][1])
    if not request.results:
        return say("<img src=x onerror=canary()> [click](javascript:canary())")
    best = request.results[0]
    said = [line.rstrip(".") for line in best["chunk_text"].splitlines()[1:] if line]
    return say(" ".join(f"{line} [{best['citation']}]." for line in said))


@pytest.fixture(scope="module")
def hostile_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_book(tmp_path_factory.mktemp("hostile") / "book")
    home = tmp_path_factory.mktemp("home")

    async def ingest() -> None:
        async with open_askbook(build_settings(home, askbook_embedder="none")) as askbook:
            job = await askbook.jobs.submit(BOOK, str(folder), "incremental")
            job = await askbook.worker.run_job(job.job_id)
            assert (job.status, job.files_processed) == ("completed", len(HOSTILE)), job

    asyncio.run(ingest())
    return home


@pytest.fixture(scope="module")
def hostile_site(hostile_home: Path) -> Iterator[Service]:
    with (
        scripted_model(obey) as model,
        serve(build_settings(hostile_home, askbook_embedder="none", **with_model(model.url))) as service,
    ):
        yield service


async def check(page: Page) -> None:
    assert await page.evaluate(DANGERS) == []
    assert await page.evaluate("window.hits") == 0


def check_told(watched: Watched) -> None:
    """Nothing was asked for elsewhere; that a book's folder has no picture `x`, a browser writes on its console."""
    assert watched.foreign == []
    assert [one for one in watched.errors if "404 (Not Found)" not in one] == []


async def test_hostile_books_are_asked(hostile_site: Service, browser: Browser, figure: Figure) -> None:
    async with open_page(browser, hostile_site.url, quiet=False) as watched:
        page = watched.page
        await page.add_init_script(CANARY)
        await open_chat(page, hostile_site.url)
        await check(page)
        answered = 0
        for number in range(len(HOSTILE)):
            if number % 20 == 0:
                await page.get_by_role("button", name="New question").click()
            answer = await ask(page, f"With what force does the gripper{number} close?")
            chip = answer.get_by_role("button", name=re.compile("^Source 1: ")).first
            if await chip.count():
                answered += 1
                await chip.click()
                await expect(page.locator("#panel .passage")).to_be_visible()
                await check(page)
                await page.keyboard.press("Escape")
        await page.reload()
        await expect(page.get_by_role("article", name="Answer")).to_have_count(20)
        await check(page)
        figure(f"S3: {len(HOSTILE)} hostile passages asked for, {answered} answered, none ran", len(HOSTILE))
        assert answered > len(HOSTILE) // 2
        check_told(watched)


async def test_hostile_lessons_are_read(hostile_site: Service, browser: Browser) -> None:
    with hostile_site.open_client() as client:
        modules = client.get("/contents").json()["modules"]
        addresses = [
            lesson["read_url"] for one in modules for chapter in one["chapters"] for lesson in chapter["lessons"]
        ]
        assert len(addresses) == len(HOSTILE)
        policy = client.get(addresses[0]).headers["content-security-policy"]
        assert policy == client.get("/").headers["content-security-policy"]
        assert "unsafe" not in policy and "*" not in policy
    async with open_page(browser, hostile_site.url, quiet=False) as watched:
        page = watched.page
        await page.add_init_script(CANARY)
        for address in addresses:
            await page.goto(f"{address}?from=0&to=400#{quote(HOSTILE[1])}")
            await expect(page.get_by_role("heading", level=1)).to_be_attached()
            await check(page)
        check_told(watched)


async def test_hostile_replies_are_drawn(hostile_site: Service, browser: Browser) -> None:
    """Whatever a service, or somebody in its place, may send: every field of a reply."""
    async with open_page(browser, hostile_site.url) as watched:
        page = watched.page
        await page.add_init_script(CANARY)
        await open_chat(page, hostile_site.url)
        for text in HOSTILE:
            await page.evaluate(DRAW, [_reply(text, refused) for refused in (False, True)])
        await page.get_by_text("Source").first.wait_for(state="attached")
        for link in await page.locator("#thread a").all():
            await link.dispatch_event("mouseover")
        await check(page)


DRAW = """async (replies) => {
  const { renderReply, renderAnswer } = await import("/assets/answer.js");
  for (const reply of replies) {
    const drawn = document.createElement("article");
    drawn.append(renderReply(reply), renderReply(reply, { onSource() {} }), renderAnswer(reply.response, null));
    document.getElementById("thread").append(drawn);
  }
}"""


def _reply(text: str, refused: bool) -> dict[str, Any]:
    address = re.sub(r"^.*\((.*)\).*$", r"\1", text, flags=re.DOTALL)
    source = {"title": f"{text} › {text}", "chapter": text, "section": text, "url": address, "chunk_id": text}
    source |= {"chunk_text": text, "quote": text}
    return {
        "response": (
            f"{text} [1]\n\n- {text}\n\n> {text}\n\n| a |\n|---|\n| {text} |\n\n```{text}\n{text}\n```\n\n# {text}\n"
        ),
        "sources": [source],
        "notices": [text],
        "removed": [{"text": text, "why": text}],
        "confidence_level": "high",
        "confidence": 0.9,
        "metadata": {"chunk_count": 1, "answered_by": "model", "model": text},
        "refusal": {"reason": text, "advice": text, "nearest": [source]} if refused else None,
    }
