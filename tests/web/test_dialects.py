"""Pages of several generators as their readers see them: tabs, admonitions, notebooks, figures, quotes marked whole."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from api.service import BOOK, Service, build_settings, ingest, serve
from web.browsing import ON_BOTH, open_page
from web.chatting import ask, is_too_wide, open_chat
from web.drawing import draw_png

pytestmark = pytest.mark.asyncio(loop_scope="module")

REPLIES = f"# What was replied\n\nThe first reply stands deepest.\n\n{'>' * 19} Oil it once a year.\n"

TABS = """---
title: Installing the driver
---
import Tabs from '@theme/Tabs';
import TabItem from '@theme/TabItem';

The driver of the gripper is installed with one command, which differs between systems.

<Tabs groupId="system">
  <TabItem value="linux" label="Linux">
      On Linux the driver is a package of the distribution.

      ```bash
      sudo apt install gripper-driver
      ```
  </TabItem>
  <TabItem value="mac" label="macOS">
    On a Mac the driver is a formula:

    ```bash
    brew install gripper-driver
    ```

    - restart the robot
      - and wait a minute
  </TabItem>
</Tabs>

:::caution Mind your fingers

The gripper closes **with 40 newtons** while the driver starts.

:::
"""
MATERIAL = """# Calibrating the gripper

Calibration tells the gripper where its fingers meet.

!!! warning "Nothing between the fingers"
    Take the cup out before calibration begins.

    ```python
    gripper.calibrate(speed=0.2)
    ```

??? note
    A calibration is kept until the battery is taken out.

=== "By hand"

    Push the fingers together and hold them.

=== "By program"

    Send the word `home`.

> [!TIP]
> Calibrate again after a fall.
"""
KEYS = """# Stopping the gripper

The gripper stops at once when <kbd>Ctrl</kbd> and <kbd>C</kbd> are pressed in its **own** terminal, \
see [the driver](01-driver.md), and it
opens its fingers after <span class="time">two seconds</span> unless the safety pin is in.

Any other terminal of the same machine <em>cannot</em> stop it, however often the keys \
<kbd>Ctrl</kbd> and <kbd>C</kbd> are pressed there.
"""
FIGURE = """(fingers)=
# The fingers of the gripper

The two fingers of the gripper are moved by one spindle, as {numref}`fingers-figure` shows.

```{figure} img/fingers.png
---
name: fingers-figure
alt: Two fingers on one spindle
---
The spindle turns left to *open* the fingers.
```

:::{image} img/spindle.png
:alt: The spindle alone
:width: 200px
:::

The torque of the spindle is {math}`M = F r`.
"""
CELLS = [
    ("markdown", ["# Measuring the grip\n", "\n", "The grip force of the gripper is measured with a spring scale.\n"]),
    ("code", ["force = scale.read()\n", "print(force)"]),
    ("markdown", ["> **Note** the scale drifts by $0.1\\,\\mathrm{N}$ an hour.\n"]),
]
RAW = re.compile(
    r":::|!!!|\?\?\?|===|</?(?:Tab|kbd|span)|import Tabs|\{figure\}|\{image\}|\[!TIP\]|---|\{#|groupId|numref"
)
"""What no reader sees of all these."""


IS_SEEN = """(one) => {
  const box = one.getBoundingClientRect();
  return [box.top + 9, box.bottom - 9].every((height) => one.contains(document.elementFromPoint(box.left + 9, height)));
}"""


def write_book(folder: Path) -> Path:
    outputs = [{"output_type": "stream", "name": "stdout", "text": ["39.8\n"]}]
    cells = [
        {"cell_type": kind, "metadata": {}, "source": source} | ({"outputs": outputs} if kind == "code" else {})
        for kind, source in CELLS
    ]
    (folder / "img").mkdir(parents=True)
    for name in ("fingers", "spindle"):
        (folder / "img" / f"{name}.png").write_bytes(draw_png())
    (folder / "01-driver.md").write_text(TABS)
    (folder / "02-calibration.md").write_text(MATERIAL)
    (folder / "03-stopping.md").write_text(KEYS)
    (folder / "04-fingers.md").write_text(FIGURE)
    (folder / "06-replies.md").write_text(REPLIES)
    (folder / "05-grip.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}))
    return folder


@pytest.fixture(scope="module")
def gripper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    settings = build_settings(tmp_path_factory.mktemp("home"))
    asyncio.run(ingest(settings, write_book(tmp_path_factory.mktemp("shelf") / "gripper")))
    with serve(settings) as service:
        yield service


async def open_lesson(page: Page, service: Service, file: str) -> Locator:
    await page.goto(f"{service.url}/read/{BOOK}/{file}")
    lesson = page.locator(".lesson")
    await expect(lesson.locator("h1")).to_be_visible()
    assert RAW.findall(await lesson.inner_text()) == []
    assert await is_too_wide(page) == []
    return lesson


@ON_BOTH
async def test_tabs_and_admonitions_have_their_labels(
    gripper: Service, browser: Browser, size: tuple[int, int]
) -> None:
    async with open_page(browser, gripper.url, size=size) as watched:
        page = watched.page
        lesson = await open_lesson(page, gripper, "01-driver.md")
        for label in ("Linux", "macOS", "Mind your fingers", "with 40 newtons"):
            await expect(lesson.locator("p > strong", has_text=label)).to_be_visible()
        frame = lesson.get_by_role("note").filter(has_text="Mind your fingers")
        await expect(frame).to_have_text(re.compile("closes with 40 newtons"))
        await expect(frame).to_have_css("border-left-width", "3px")
        await expect(frame).to_have_css("border-top-width", "1px")
        # What is indented in a tab is prose, and its listing is one.
        assert await lesson.locator("pre").all_inner_texts() == [
            "sudo apt install gripper-driver",
            "brew install gripper-driver",
        ]
        await expect(lesson.locator("p", has_text="On Linux the driver is a package")).to_be_visible()
        await expect(lesson.locator("li > ul > li")).to_have_text("and wait a minute")

        lesson = await open_lesson(page, gripper, "02-calibration.md")
        for label in ("Nothing between the fingers", "Note", "By hand", "By program", "Tip"):
            await expect(lesson.locator("strong", has_text=label)).to_be_visible()
        await expect(lesson.locator("pre")).to_have_text("gripper.calibrate(speed=0.2)")
        await expect(lesson.get_by_role("note")).to_have_count(3)

        await open_chat(page, gripper.url)
        answer = await ask(page, "How is the driver of the gripper installed on Linux?")
        await expect(answer.locator("pre").first).to_have_text("sudo apt install gripper-driver")
        assert RAW.findall(await answer.inner_text()) == []
        chip = answer.locator("button.chip").first
        await chip.hover()
        # A long quote is not hidden by the field for questions.
        assert await answer.get_by_role("tooltip").evaluate(IS_SEEN)
        await chip.click()
        passage = page.get_by_role("region", name="The passage")
        await expect(passage.locator("mark").first).to_be_visible()
        await expect(passage.locator("pre mark").first).to_be_visible()
        await expect(passage.locator(".code-head mark")).to_have_count(0)
        assert RAW.findall(await passage.inner_text()) == []


@ON_BOTH
async def test_quotes_in_quotes_fit_the_screen(gripper: Service, browser: Browser, size: tuple[int, int]) -> None:
    async with open_page(browser, gripper.url, size=size) as watched:
        lesson = await open_lesson(watched.page, gripper, "06-replies.md")
        await expect(lesson.locator("blockquote")).to_have_count(19)
        deepest = await lesson.locator("blockquote p").bounding_box()
        assert deepest and deepest["width"] > 150


@ON_BOTH
async def test_a_notebook_is_a_lesson(gripper: Service, browser: Browser, size: tuple[int, int]) -> None:
    async with open_page(browser, gripper.url, size=size) as watched:
        page = watched.page
        lesson = await open_lesson(page, gripper, "05-grip.ipynb")
        await expect(lesson.locator("h1")).to_have_text("Measuring the grip")
        code, printed = lesson.locator("pre").nth(0), lesson.locator("pre").nth(1)
        await expect(code).to_have_text("force = scale.read()\nprint(force)")
        await expect(printed).to_have_text("39.8")
        await expect(lesson.locator("math")).to_have_count(1)
        await open_chat(page, gripper.url)
        answer = await ask(page, "How is the grip force of the gripper measured?")
        await expect(answer).to_contain_text("with a spring scale")


@ON_BOTH
async def test_figures_of_directives_are_shown(gripper: Service, browser: Browser, size: tuple[int, int]) -> None:
    async with open_page(browser, gripper.url, size=size) as watched:
        page = watched.page
        lesson = await open_lesson(page, gripper, "04-fingers.md")
        for alt in ("Two fingers on one spindle", "The spindle alone"):
            picture = lesson.get_by_role("img", name=alt)
            await picture.scroll_into_view_if_needed()
            await expect(picture).to_have_js_property("naturalWidth", 320)
        await expect(lesson.locator("p", has_text="The spindle turns left to open the fingers.")).to_be_visible()
        await open_chat(page, gripper.url)
        answer = await ask(page, "What moves the two fingers of the gripper?")
        await expect(answer.get_by_role("img", name="Two fingers on one spindle")).to_have_js_property(
            "naturalWidth", 320
        )


@ON_BOTH
async def test_all_that_is_shown_is_marked_whatever_markup_lies_in_it(
    gripper: Service, browser: Browser, size: tuple[int, int]
) -> None:
    async with open_page(browser, gripper.url, size=size) as watched:
        page = watched.page
        await open_chat(page, gripper.url)
        answer = await ask(page, "How do I stop the gripper?")
        shown = (
            "The gripper stops at once when Ctrl and C are pressed in its own terminal, see the driver, and it opens"
        )
        await expect(answer).to_contain_text(shown)
        await check_marked(page, answer, shown)
        # Also when it comes back from the kept conversation.
        await page.reload()
        kept = page.get_by_role("article", name="Answer").first
        await check_marked(page, kept, shown)


async def check_marked(page: Page, answer: Locator, shown: str) -> None:
    chip = answer.get_by_role("button", name=re.compile("^Source 1: ")).first
    await chip.hover()
    await expect(answer.get_by_role("tooltip")).to_contain_text(shown)
    await chip.click()
    passage = page.get_by_role("region", name="The passage")
    await expect(passage.locator("mark").first).to_be_visible()
    assert read_words(shown) in await read_marks(passage)
    await page.get_by_role("link", name="Read in the book").click()
    lesson = page.locator(".lesson")
    await expect(lesson.locator("mark").first).to_be_in_viewport()
    marked = await read_marks(lesson)
    assert read_words(shown) in marked and "unless the safety pin is in" in marked
    await page.go_back()


async def read_marks(shown: Locator) -> str:
    return read_words(" ".join(await shown.locator("mark").all_text_contents()))


def read_words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text))
