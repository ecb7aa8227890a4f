"""An answer without a model, as a reader sees it: the book's own words under their heading, each with its source."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from hypothesis import given, settings
from hypothesis import strategies as st

from askbook.answer.ask import get_reply
from askbook.answer.excerpts import LINES, ROWS, split_passage
from askbook.answer.extract import Draft, compose
from askbook.answer.quotes import find_stretch
from askbook.answer.units import split_blocks
from askbook.book.chunker import split_lesson
from askbook.domain import Answer, Filters, Passage, Question, Quote, Source
from askbook.settings import Settings
from askbook.wiring import Askbook, open_askbook
from builders import copy_home, is_verbatim, make_chunks, make_lesson

BOOK = "physical-ai-robotics"


def find(text: str, title: str = "Brakes") -> Passage:
    lesson = make_lesson(f"m/c/{title.lower()}.md", text=text, title=title)
    (chunk,) = make_chunks(lesson, text)
    cut = split_lesson(lesson)
    # One chunk whatever its length, with the sections that the chunker finds in it.
    return Passage(replace(chunk, sections=cut[0].sections if cut else ()), score=0.5, rank=1)


def show(text: str) -> str:
    """All of a passage, as an answer."""
    draft = compose(split_passage(find(text)))
    check_draft(draft, text)
    return draft.text


def check_draft(draft: Draft, page: str | None = None) -> None:
    """Marks, numbers, quotes and places agree; what is streamed is what is kept."""
    assert "".join(draft.deltas) == draft.text
    assert [source.number for source in draft.sources] == list(range(1, len(draft.sources) + 1))
    assert len({source.passage.chunk.id for source in draft.sources}) == len(draft.sources)
    assert sum(len(source.quotes) for source in draft.sources) == len(draft.statements)
    for statement, delta in zip(draft.statements, draft.deltas, strict=True):
        (number,) = statement.cites
        assert statement.verdict == "verbatim"
        assert statement.text.endswith(f"[{number}]") and delta.endswith(statement.text)
    for source in draft.sources:
        assert is_verbatim(source)
        assert page is None or page[source.start : source.end] == source.quote
        assert source.quote in source.quotes[0].text
        chunk = source.passage.chunk
        for one in source.quotes:
            # The same words may stand there twice.
            found = [at for at in range(len(chunk.text)) if chunk.text.startswith(one.text, at)]
            assert (one.start, one.end) in [find_stretch(chunk, at, at + len(one.text)) for at in found]


def test_a_passage_that_is_shown_is_parsed_once() -> None:
    before = split_blocks.cache_info().misses
    listing = "\n".join(f"step_{number}()" for number in range(2 * LINES))
    assert show(f"Release it so.\n\n```python\n{listing}\n```\n\nOnly once.").count("```python") > 1
    assert split_blocks.cache_info().misses == before + 1


# --- headings and marks ---------------------------------------------------------------------------


def test_an_answer_stands_under_the_name_of_its_section() -> None:
    assert show("The brake holds the arm.") == "**Chapter 1 › Brakes**\n\nThe brake holds the arm. [1]"


def test_what_comes_from_one_section_stands_under_one_heading() -> None:
    assert show("The brake holds.\n\n![x](y.png)\n\nIt is red.\n\n## Wear\n\nIt wears off.") == (
        "**Chapter 1 › Brakes**\n\nThe brake holds. [1]\n\nIt is red. [1]\n\n**Brakes › Wear**\n\nIt wears off. [1]"
    )


def test_two_sections_of_one_passage_are_one_source_with_two_places() -> None:
    passage = find("The brake holds.\n\n## Wear\n\nIt wears off.")
    (source,) = compose(split_passage(passage)).sources
    first, second = source.quotes
    assert (first.section, second.section) == ("Chapter 1 › Brakes", "Brakes › Wear")
    assert second.url == f"{first.url}#wear"


def test_an_admonition_is_shown_with_its_label_and_quoted_from_the_file() -> None:
    lesson = make_lesson(
        text="!!! warning\n    The brake is hot.\n\n    ```sh\n    stop --now\n    ```\n", title="Brakes"
    )
    (chunk,) = split_lesson(lesson)
    draft = compose(split_passage(Passage(chunk, score=0.5, rank=1)))
    check_draft(draft, lesson.text)
    assert draft.text == ("**Chapter 1 › Brakes**\n\n**Warning**\n\nThe brake is hot.\n\n```sh\nstop --now\n```\n\n[1]")


def test_a_source_has_all_that_is_shown_of_it_whatever_markup_lies_between() -> None:
    """The quote is the most of it that the file has in one run; the rest is not lost."""
    text = "The <b>arm</b> stops when <kbd>Ctrl</kbd> and <kbd>C</kbd> are {kbd}`pressed`, and *the brake* holds it.\n"
    (chunk,) = split_lesson(make_lesson(text=text, title="Brakes"))
    draft = compose(split_passage(Passage(chunk, score=0.5, rank=1)))
    check_draft(draft, text)
    (source,) = draft.sources
    shown = "The arm stops when Ctrl and C are pressed, and *the brake* holds it."
    assert source.quotes == (Quote(shown, 0, len(text) - 1, "Chapter 1 › Brakes", chunk.url),)
    assert source.quote == ", and *the brake* holds it."


def test_a_head_that_a_table_repeats_is_not_where_its_rows_stand() -> None:
    rows = [f"| joint {number} | {'turns and ' * 8}holds |" for number in range(60)]
    text = "\n".join(["| Joint | What it does |", "|---|---|", *rows])
    chunk = split_lesson(make_lesson(text=text, title="Brakes"))[-1]
    assert chunk.text.startswith("| Joint |")
    for one in split_passage(Passage(chunk, score=0.5, rank=1)):
        assert one.place is not None and chunk.start <= one.place[0] < one.place[1] <= chunk.end


def test_each_page_has_its_heading() -> None:
    excerpts = [*split_passage(find("Brakes hold.")), *split_passage(find("Clutches slip.", "Clutches"))]
    draft = compose(excerpts)
    check_draft(draft)
    assert draft.text == (
        "**Chapter 1 › Brakes**\n\nBrakes hold. [1]\n\n**Chapter 1 › Clutches**\n\nClutches slip. [2]"
    )
    assert [source.title for source in draft.sources] == ["Chapter 1 › Brakes", "Chapter 1 › Clutches"]


def test_a_page_that_begins_with_its_title_does_not_stand_below_itself() -> None:
    assert show("# Brakes\n\nBrakes hold.\n\n## Wear\n\nThey wear off.") == (
        "**Chapter 1 › Brakes**\n\nBrakes hold. [1]\n\n**Brakes › Wear**\n\nThey wear off. [1]"
    )


def test_nothing_is_an_empty_answer() -> None:
    assert compose([]) == Draft((), (), ())


@pytest.mark.parametrize(
    "block",
    [
        "```bash\nros2 node list\n```",
        "~~~\nros2 node list\n~~~",
        "    ros2 node list",
        "| a | b |\n|---|---|\n| 1 | 2 |",
    ],
    ids=["fence", "tildes", "indented", "table"],
)
@pytest.mark.parametrize("before", ["", "Do this:\n\n"])
def test_the_mark_stands_below_a_listing_and_a_table_and_not_in_it(before: str, block: str) -> None:
    assert show(before + block).endswith(f"\n\n{before}{block}\n\n[1]")


def test_the_mark_stands_below_a_list_that_ends_in_a_listing() -> None:
    steps = "1. Build it:\n\n   ```bash\n   colcon build\n   ```"
    assert show(steps).endswith(f"{steps}\n\n[1]")


# --- what is shown of the book's text -------------------------------------------------------------


def test_links_lead_nowhere_and_numbers_in_brackets_are_no_marks() -> None:
    said = "The clutch [1] slips, see [notes](../x.md) at https://a.example/clutch or run `clutch[2]`."
    [excerpt] = split_passage(find(said))
    draft = compose([excerpt])
    assert draft.text.endswith(
        "The clutch \\[1] slips, see notes at `https://a.example/clutch` or run `clutch[2]`. [1]"
    )
    assert draft.sources[0].quote == said


def test_a_listing_is_shown_as_it_is() -> None:
    listing = "```python\nx = y[1]  # https://a.example\n```"
    assert listing in show(f"Run:\n\n{listing}")


def test_a_quotation_is_shown_without_its_signs() -> None:
    assert show("> The brake holds\n> the arm still.").endswith("\n\nThe brake holds\nthe arm still. [1]")


@pytest.mark.parametrize("sign", ["", "> "])
def test_each_part_of_a_long_listing_is_shown_in_its_fences(sign: str) -> None:
    lines = [f"x{n} = {n}" for n in range(2 * LINES)]
    draft = compose(split_passage(find("\n".join(sign + line for line in ["```python", *lines, "```"]))))
    check_draft(draft)
    parts = [statement.text for statement in draft.statements]
    assert parts == [
        "\n".join(["```python", *lines[:LINES], "```", "", "[1]"]),
        "\n".join(["```python", *lines[LINES:], "```", "", "[1]"]),
    ]


@pytest.mark.parametrize("sign", ["", "> "])
def test_each_part_of_a_long_table_is_shown_under_its_head(sign: str) -> None:
    head, rows = ["| Name | Torque |", "|---|---|"], [f"| motor {n} | {n} Nm |" for n in range(2 * ROWS)]
    draft = compose(split_passage(find("\n".join(sign + line for line in [*head, *rows]))))
    check_draft(draft)
    parts = [statement.text for statement in draft.statements]
    assert parts == [
        "\n".join([*head, *rows[:ROWS], "", "[1]"]),
        "\n".join([*head, *rows[ROWS:], "", "[1]"]),
    ]


def test_a_part_of_a_long_list_is_a_list() -> None:
    items = [f"{n}. Turn valve {n} to the left and wait until the green light is on again." for n in range(1, 40)]
    draft = compose(split_passage(find("\n".join(items))))
    check_draft(draft)
    shown = "\n".join(statement.text.rpartition(" ")[0] for statement in draft.statements)
    assert len(draft.statements) > 1 and shown.split("\n") == items


_BLOCK = st.sampled_from(
    [
        "The robot walks. It stops, e.g. at doors [3].",
        "## Robot steps",
        "Do this with the [robot](https://a.example):",
        "```py\nrobot[1] = 1\n\n## walk\n```",
        "```py\n" + "robot = 1\n" * 90 + "```",
        "- robot one\n- [ ] robot two:\n  ```\n  walk\n  ```",
        "\n".join(f"{n}. Walk {n} times around the house and the garden" for n in range(1, 60)),
        "> The robot waits. More\n> robot.",
        "| robot | b |\n|---|---|\n" + "\n".join(f"| walks | {n} |" for n in range(60)),
        "<div>\nThe robot sits. <b>Robot</b>\n</div>",
        '![robot](u "robot. walks")',
        "<!-- robot\n\nwalks -->",
        "ro\u200bbot walks.",
        "    robot indented",
        ":::tip\nThe robot hints.\n:::",
    ]
)


@settings(max_examples=100, deadline=None)
@given(st.lists(_BLOCK, min_size=1, max_size=8), st.sampled_from([".md", ".mdx"]))
def test_every_quote_is_the_files_own_whatever_the_markdown(blocks: list[str], suffix: str) -> None:
    lesson = make_lesson(f"m/c/01-a{suffix}", text="\n\n".join(blocks))
    for chunk in split_lesson(lesson):
        draft = compose(split_passage(Passage(chunk, score=0.5, rank=1)))
        check_draft(draft, lesson.text)
        assert "<!--" not in draft.text and "\u200b" not in draft.text and "](" not in draft.text


# --- the demo book --------------------------------------------------------------------------------


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def demo(ingested_demo: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Askbook]:
    home = copy_home(ingested_demo, tmp_path_factory.mktemp("extract"))
    async with open_askbook(Settings.model_validate({"askbook_home": home})) as askbook:
        yield askbook


async def ask(askbook: Askbook, question: str) -> Answer:
    reply = (await get_reply(askbook.ask(Question(question, Filters(BOOK))))).reply
    assert isinstance(reply, Answer), reply
    return reply


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("What is a node?", "one participant in the ROS 2 graph"),
        ("what is a lidar", "measures distance with light"),
        ("Define tf2", "the library that collects transforms over time"),
        ("How can I make a simulated run repeatable?", "gz sim --seed 42"),
        ("How do I spawn the robot in Gazebo?", "ros_gz_sim create"),
        ("Show the code of a subscriber", "create_subscription"),
        ("What command lists running nodes?", "ros2 node list"),
        ("What do I gain from separate nodes?", "**Reuse.**"),
        ("What are the stop categories?", "power is removed at once"),
        ("List the hardware tiers", "Jetson edge kit"),
        ("topics vs services", "request, response"),
        ("What is the difference between a service and an action?", "a way to cancel"),
        ("which gazebo goes with humble and which one with jazzy", "Fortress"),
        ("How many MB per second does an uncompressed 640x480 video need?", "27.6 MB/s"),
        ("What is the default domain id?", "the default is 0"),
        ("Where does Gazebo look for models?", "GZ_SIM_RESOURCE_PATH"),
        ("Can a URDF describe a closed loop?", "cannot be written"),
        ("Is the domain id a protection?", "does not protect it"),
        ("Why is the reading 9.81 and not zero when the sensor lies still?", "because the table pushes it up"),
        ("RViz shows a heap of parts at the origin, what did I forget?", "It reads all state interfaces"),
        ("do I still have to start roscore first", "ROS 2 has none"),
    ],
)
async def test_questions_of_every_kind_are_answered_by_the_book_itself(
    demo: Askbook, demo_folder: Path, question: str, says: str
) -> None:
    reply = await ask(demo, question)
    assert says in reply.text, reply.text
    assert reply.text.startswith(f"**{reply.sources[0].title}**\n\n")
    assert all(quoted(source, demo_folder) for source in reply.sources)


def quoted(source: Source, folder: Path) -> bool:
    page = (folder / source.passage.chunk.source_file).read_text(encoding="utf-8")
    return page[source.start : source.end] == source.quote
