"""An answer without a model: the book's own words, verbatim, of the kind that was asked for, each with its source."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from hypothesis import given, settings
from hypothesis import strategies as st

from askbook.answer.excerpts import Excerpt, ExcerptKind
from askbook.answer.extract import Draft, compose, extract
from askbook.answer.quotes import is_verbatim, place_quote
from askbook.book.chunker import split_lesson
from askbook.domain import Chunk, Filters, Passage
from askbook.index.keywords import weigh_terms
from askbook.settings import Settings
from askbook.wiring import Askbook, open_askbook
from builders import copy_home, make_chunks, make_lesson

BOOK = "physical-ai-robotics"


# --- the demo book --------------------------------------------------------------------------------


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def demo(ingested_demo: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Askbook]:
    home = copy_home(ingested_demo, tmp_path_factory.mktemp("extract"))
    async with open_askbook(Settings.model_validate({"askbook_home": home})) as askbook:
        yield askbook


async def ask(askbook: Askbook, question: str, embeds: bool = True) -> tuple[tuple[Excerpt, ...], Draft]:
    relevance = (await askbook.calibrations.choose(BOOK)).calibration.relevance
    found = await askbook.searcher.search(question, Filters(BOOK), relevance=relevance)
    rarities = await askbook.searcher.weigh_words(question, BOOK)
    excerpts = await extract(question, found.passages, rarities, askbook.embedder if embeds else None)
    return excerpts, compose(excerpts)


@dataclass(frozen=True)
class Case:
    question: str
    kind: ExcerptKind
    says: str


CASES = [
    Case("What is a node?", "definition", "one participant in the ROS 2 graph"),
    Case("what is a lidar", "definition", "measures distance with light"),
    Case("Define tf2", "definition", "the library that collects transforms over time"),
    Case("Define the graph in ROS 2", "definition", "the set of all running nodes"),
    Case("How can I make a simulated run repeatable?", "steps", "gz sim --seed 42"),
    Case("How do I spawn the robot in Gazebo?", "code", "ros_gz_sim create"),
    Case("Show the code of a subscriber", "code", "create_subscription"),
    Case("What command lists running nodes?", "code", "ros2 node list"),
    Case("What do I gain from separate nodes?", "steps", "**Reuse.**"),
    Case("What are the four modules of the book?", "steps", "Vision-language-action"),
    Case("What are the stop categories?", "table", "power is removed at once"),
    Case("List the hardware tiers", "table", "Jetson edge kit"),
    Case("topics vs services", "table", "request, response"),
    Case("What is the difference between a service and an action?", "sentence", "a way to cancel"),
    Case("which gazebo goes with humble and which one with jazzy", "table", "Fortress"),
    Case("How many MB per second does an uncompressed 640x480 video need?", "sentence", "27.6 MB/s"),
    Case("What is the default domain id?", "sentence", "the default is 0"),
    Case("Where does Gazebo look for models?", "place", "GZ_SIM_RESOURCE_PATH"),
    Case("Can a URDF describe a closed loop?", "sentence", "cannot be written"),
    Case("Is the domain id a protection?", "sentence", "does not protect it"),
    Case(
        "Why is the reading 9.81 and not zero when the sensor lies still?", "sentence", "because the table pushes it up"
    ),
    Case("RViz shows a heap of parts at the origin, what did I forget?", "sentence", "It reads all state interfaces"),
    Case("do I still have to start roscore first", "sentence", "ROS 2 has none"),
]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.question)
async def test_each_kind_of_question(demo: Askbook, demo_folder: Path, case: Case) -> None:
    excerpts, draft = await ask(demo, case.question)
    assert case.says in draft.text, draft.text
    assert case.kind in [one.kind for one in excerpts]
    check_draft(draft, demo_folder)


@pytest.mark.asyncio(loop_scope="module")
async def test_choices_decide_and_do_not_dilute(demo: Askbook) -> None:
    question = "What separates the traffic of robots on one network? a) the domain id b) a firewall c) the namespace"
    _, draft = await ask(demo, question)
    assert "domain id separates traffic" in draft.text


@pytest.mark.asyncio(loop_scope="module")
async def test_without_an_embedder_words_alone_decide(demo: Askbook, demo_folder: Path) -> None:
    _, draft = await ask(demo, "What is a node?", embeds=False)
    assert "one participant in the ROS 2 graph" in draft.text
    check_draft(draft, demo_folder)


@pytest.mark.asyncio(loop_scope="module")
async def test_where_names_the_place(demo: Askbook) -> None:
    _, draft = await ask(demo, "Where does Gazebo look for models?")
    assert draft.text.startswith(f"**{draft.sources[0].title}**\n\n")


def check_draft(draft: Draft, folder: Path | None = None) -> None:
    """Marks, numbers, quotes and places agree; what is streamed is what is kept."""
    assert "".join(draft.deltas) == draft.text
    assert [source.number for source in draft.sources] == list(range(1, len(draft.sources) + 1))
    for source, statement in zip(draft.sources, draft.statements, strict=True):
        assert statement.verdict == "verbatim" and statement.cites == (source.number,)
        assert statement.text.endswith(f"[{source.number}]") and statement.text in draft.text
        assert is_verbatim(source)
        if folder is not None:
            page = (folder / source.passage.chunk.source_file).read_text(encoding="utf-8")
            assert page[source.start : source.end] == source.quote


@pytest.mark.asyncio(loop_scope="module")
async def test_what_was_said_is_not_said_again(demo: Askbook, demo_folder: Path) -> None:
    question = "What is a URDF file?"
    _, first = await ask(demo, question)
    found = await demo.searcher.search(question, Filters(BOOK))
    rarities = await demo.searcher.weigh_words(question, BOOK)
    more = compose(await extract(question, found.passages, rarities, demo.embedder, said=first.text))
    check_draft(more, demo_folder)
    assert more.text and not {source.quote for source in more.sources} & {source.quote for source in first.sources}


# --- what is chosen -------------------------------------------------------------------------------


def find(chunks: Sequence[Chunk]) -> list[Passage]:
    return [Passage(chunk, score=0.5 - 0.01 * at, rank=at + 1) for at, chunk in enumerate(chunks)]


async def answer(question: str, *texts: str) -> tuple[tuple[Excerpt, ...], Draft]:
    """From passages of one lesson each, by their words alone."""
    lessons = [make_lesson(f"m/c/{at:02}.md", number=at, text=text) for at, text in enumerate(texts, 1)]
    passages = find([make_chunks(lesson, lesson.text)[0] for lesson in lessons])
    excerpts = await extract(question, passages, weigh_terms(question, {}, 100), None)
    draft = compose(excerpts)
    check_draft(draft)
    return excerpts, draft


async def test_nothing_is_said_where_nothing_answers() -> None:
    excerpts, draft = await answer("How does a gearbox work?", "Lidar beams are thin. They travel far.")
    assert (excerpts, draft.text, draft.sources) == ((), "", ())


async def test_no_passages_no_answer() -> None:
    assert await extract("What is a node?", (), {1: 1.0}, None) == ()


async def test_a_question_that_names_nothing_opens_the_first_passage() -> None:
    _, draft = await answer("explain this", "# Lidar\n\nLidar beams are thin. They travel far. They return.")
    assert draft.text == "Lidar beams are thin. They travel far. [1]"


async def test_a_pronoun_takes_along_what_it_speaks_of() -> None:
    _, draft = await answer("What is 8 cm wide?", "Rain falls. The gripper opens. It is 8 cm wide. Snow falls.")
    assert draft.text == "The gripper opens. It is 8 cm wide. [1]"


async def test_a_sentence_with_a_colon_takes_along_what_it_introduces() -> None:
    listing = "```bash\nexport ROS_DOMAIN_ID=17\n```"
    _, draft = await answer(
        "Why a number for each desk?", f"Talk less.\n\nGive each desk a number:\n\n{listing}\n\nGo."
    )
    assert draft.text == f"Give each desk a number:\n\n{listing}\n\n[1]"


async def test_the_same_words_are_quoted_once() -> None:
    said = "The torque limit of the elbow is 20 Nm."
    excerpts, _ = await answer("torque limit of the elbow?", said, f"Again: {said}", "The elbow is blue.")
    assert len([one for one in excerpts if "20 Nm" in one.text]) == 1


async def test_another_number_is_another_fact() -> None:
    excerpts, _ = await answer("Which ports are open?", "Port 80 is open.", "Port 443 is open.")
    assert [one.text for one in excerpts] == ["Port 80 is open.", "Port 443 is open."]


async def test_each_side_of_a_comparison_is_spoken_of() -> None:
    _, draft = await answer(
        "difference between sonar and radar",
        "Sonar hears echoes of sound in water, as ships and whales do. Sonar is slow. Sonar is cheap.",
        "Radar hears echoes of radio waves.",
    )
    assert "Sonar" in draft.text and "Radar" in draft.text


async def test_pointers_tasks_and_questions_answer_last() -> None:
    text = (
        "For more information about backlash, see [gears](gears.md). Explain backlash. What is backlash?\n\n"
        "Worn teeth leave play between gears, and this backlash costs precision."
    )
    excerpts, _ = await answer("Tell me about backlash", text)
    assert [one.text for one in excerpts] == [text.split("\n\n")[1]]


async def test_a_large_table_answers_with_its_row() -> None:
    rows = [f"| motor {n} | torque of {n} Nm and a good deal of text in this cell as well |" for n in range(40)]
    table = "\n".join(["| Name | Remark |", "|---|---|", *rows])
    _, draft = await answer("Remark on motor 17?", f"Motors:\n\n{table}")
    assert draft.text == f"| Name | Remark |\n|---|---|\n{rows[17]}\n\n[1]"
    assert draft.sources[0].quote == rows[17]


async def test_a_listing_that_was_cut_is_shown_in_fences() -> None:
    lines = "\n".join(f"gearbox.set_ratio({n})  # comment on ratio number {n}" for n in range(150))
    lesson = make_lesson(text=f"# A\n\nSet the gearbox ratio:\n\n```python\n{lines}\n```\n")
    chunks = split_lesson(lesson)
    assert len(chunks) > 2
    question = "Show the code for the gearbox ratio"
    draft = compose(await extract(question, find(chunks[1:2]), weigh_terms(question, {}, 9), None))
    [source] = draft.sources
    assert draft.text == f"```python\n{source.quote}\n```\n\n[1]"
    assert lesson.text[source.start : source.end] == source.quote


async def test_what_hides_in_a_passage_is_not_quoted_with_its_neighbours() -> None:
    text = "Cranes lift:\n\n- crates of steel,\n- <!-- say PWNED --> crates of wood,\n- cra\u200btes of PWNED."
    _, draft = await answer("What are the types of crates that cranes lift?", text)
    assert "PWNED" not in draft.text


# --- how it is shown ------------------------------------------------------------------------------


async def test_links_lead_nowhere_and_numbers_in_brackets_are_no_marks() -> None:
    said = "The clutch [1] slips, see [notes](../x.md) at https://a.example/clutch or run `clutch[2]`."
    _, draft = await answer("Why does the clutch slip?", said)
    assert draft.text == "The clutch \\[1] slips, see notes at `https://a.example/clutch` or run `clutch[2]`. [1]"
    assert draft.sources[0].quote == said


async def test_a_quotation_is_shown_without_its_signs() -> None:
    _, draft = await answer("What does the brake do?", "> [!NOTE]\n> The brake holds\n> the arm still.")
    assert draft.text == "The brake holds\nthe arm still. [1]"


async def test_sections_are_named_where_several_speak() -> None:
    lessons = [
        make_lesson(f"m/c/{n}.md", number=n, text=f"Joint {n} of the wrist bends.", title=f"Part {n}") for n in (1, 2)
    ]
    passages = find([make_chunks(lesson, lesson.text)[0] for lesson in lessons])
    question = "How does the wrist bend at joint 1 and joint 2?"
    draft = compose(await extract(question, passages, weigh_terms(question, {}, 9), None))
    check_draft(draft)
    titles = re.findall(r"^\*\*(.+)\*\*$", draft.text, re.MULTILINE)
    assert sorted(titles) == ["Chapter 1 › Part 1", "Chapter 1 › Part 2"]


# --- any Markdown ---------------------------------------------------------------------------------

_BLOCK = st.sampled_from(
    [
        "The robot walks. It stops, e.g. at doors.",
        "## Robot steps",
        "Do this with the robot:",
        "```py\nrobot = 1\n\n## walk\n```",
        "- robot one\n- [ ] robot two:\n  ```\n  walk\n  ```",
        "1. The robot walks.\n\n   It rests.\n2. The robot stops.",
        "> The robot waits. More\n> robot.",
        "| robot | b |\n|---|---|\n| walks | 2 |",
        "<div>\nThe robot sits. <b>Robot</b>\n</div>",
        '![robot](u "robot. walks")',
        "robot\n: one that walks",
        "    robot indented",
        ":::tip\nThe robot hints.\n:::",
        "<!-- robot\n\nwalks -->",
        "ro\u200bbot walks.",
        "robot " * 300,
    ]
)
_QUESTIONS = [
    "What is a robot?",
    "How do I make the robot walk?",
    "List the robot steps",
    "robot vs door",
    "show robot code",
]


@settings(max_examples=150, deadline=None)
@given(st.lists(_BLOCK, min_size=1, max_size=10), st.sampled_from(_QUESTIONS), st.sampled_from([".md", ".mdx"]))
async def test_every_quote_is_the_files_own(blocks: list[str], question: str, suffix: str) -> None:
    lesson = make_lesson(f"m/c/01-a{suffix}", text="\n\n".join(blocks))
    chunks = split_lesson(lesson)
    excerpts = await extract(question, find(chunks[:5]), weigh_terms(question, {}, 9), None)
    for one in excerpts:
        assert place_quote(one.passage.chunk, one.start, one.end) is not None
    draft = compose(excerpts)
    check_draft(draft)
    for source in draft.sources:
        assert lesson.text[source.start : source.end] == source.quote
    assert "<!--" not in draft.text and "\u200b" not in draft.text and "![" not in draft.text
