"""What is read out of the passages that were found: the excerpt that answers, and a second one that adds to it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from askbook.answer.excerpts import split_passage
from askbook.answer.extract import compose
from askbook.answer.librarian import (
    BEHIND,
    MORE_BEHIND,
    PASSAGES,
    READ_MOST,
    SIDE,
    SIDE_BEHIND,
    TOGETHER_MAX,
    Read,
    choose_excerpts,
    rank_passages,
    read_passages,
)
from askbook.domain import Passage
from askbook.index.keywords import weigh_terms
from askbook.reading.model import bundled_weights
from askbook.reading.reader import Reader
from askbook.reading.spans import Span
from builders import make_chunks, make_lesson


def find(*texts: str) -> list[Passage]:
    """Passages of one lesson each, the likeliest first."""
    lessons = [make_lesson(f"m/c/{at:02}.md", number=at, text=text) for at, text in enumerate(texts, 1)]
    chunks = [make_chunks(lesson, lesson.text)[0] for lesson in lessons]
    return [Passage(chunk, score=0.5 - 0.01 * at, rank=at) for at, chunk in enumerate(chunks, 1)]


# --- what the reader makes of it ------------------------------------------------------------------


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    reader = Reader(bundled_weights(), threads=1)
    yield reader
    asyncio.run(reader.close())


async def read(reader: Reader | None, question: str, passages: Sequence[Passage]) -> list[Read]:
    return await read_passages(reader, question, passages, weigh_terms(question, {}, 100))


async def answer(reader: Reader | None, question: str, *texts: str) -> str:
    """As it is shown."""
    return compose(choose_excerpts(await read(reader, question, find(*texts)))).text


BUFFER = "The tf2 buffer keeps the transforms of the last ten seconds. An older one is an error."


@pytest.mark.parametrize(
    "other",
    [
        "How long the tf2 buffer keeps transforms is told in the next chapter.",
        "For more information about how long the buffer keeps transforms, see [the buffer](buffer.md).",
        "**Exercise.** How long does the tf2 buffer keep transforms? Write it down.",
        "In this lesson you will learn how long the tf2 buffer keeps transforms.",
    ],
    ids=["signpost", "link", "exercise", "promise"],
)
async def test_what_answers_is_read_out_and_not_what_only_speaks_of_it(reader: Reader, other: str) -> None:
    shown = await answer(reader, "How long does the tf2 buffer keep transforms?", f"{other}\n\n## Age\n\n{BUFFER}")
    assert "ten seconds" in shown and other not in shown


async def test_the_passage_that_answers_is_read_out_where_the_search_put_it_last(reader: Reader) -> None:
    near = "A buffer is created once for each node, and a listener is attached to it."
    far = "The lidar turns ten times a second. The wheel turns as well."
    reads = await read(reader, "How long does the tf2 buffer keep transforms?", passages := find(near, far, BUFFER))
    assert reads[0].excerpt.text == BUFFER
    chances = rank_passages(reads, passages)
    assert max(chances) == chances[2]


async def test_steps_are_read_out_with_their_code(reader: Reader) -> None:
    steps = (
        "Build the workspace:\n\n1. Source ROS 2:\n\n   ```bash\n   source /opt/ros/humble/setup.bash\n   ```\n"
        "2. Build it:\n\n   ```bash\n   colcon build --symlink-install\n   ```\n3. Open another terminal."
    )
    text = f"## Workspaces\n\nA workspace is a folder with packages in it.\n\n## Building\n\n{steps}"
    assert steps in await answer(reader, "How do I build a workspace?", text)


async def test_a_table_is_read_out_with_its_head(reader: Reader) -> None:
    rows = [f"| motor {n} | {3 * n} Nm | {n} kg |" for n in range(40)]
    table = "\n".join(["| Motor | Torque | Mass |", "|---|---|---|", *rows])
    shown = await answer(reader, "What is the torque of motor 17?", f"Motors turn joints.\n\n{table}")
    lines = shown.split("\n")
    assert lines[2:4] == ["| Motor | Torque | Mass |", "|---|---|---|"]
    assert rows[17] in lines and len(lines) < len(rows)


async def test_the_command_is_read_out_with_what_introduces_it(reader: Reader) -> None:
    said = "This command lists all running nodes:\n\n```bash\nros2 node list\n```"
    text = f"## Nodes\n\nA node is one participant in the graph.\n\n## Tools\n\n{said}"
    assert said in await answer(reader, "Which command lists the running nodes?", text)


async def test_of_a_section_with_a_sure_fact_its_paragraph_is_enough(reader: Reader) -> None:
    text = "The lidar turns.\n\nThe range of the lidar is 12 meters.\n\nClean the lidar with a dry cloth every week."
    shown = await answer(reader, "What is the range of the lidar?", text)
    assert "12 meters" in shown and "cloth" not in shown


async def test_what_answers_is_likelier_than_what_does_not(reader: Reader) -> None:
    reads = await read(reader, "How long does the tf2 buffer keep transforms?", find(BUFFER, "Tea wants hot water."))
    assert reads[0].answers > 0 > reads[1].answers
    span = reads[0].span
    assert span is not None and "ten seconds" in BUFFER[span.start : span.end]


async def test_a_heading_tells_the_reader_what_a_text_is_about(reader: Reader) -> None:
    text = "## Lidar\n\nIts range is 12 meters.\n\n## Sonar\n\nIts range is 3 meters."
    assert "3 meters" in await answer(reader, "What is the range of the sonar?", text)


async def test_chunks_that_overlap_are_read_once(reader: Reader) -> None:
    [passage] = find(BUFFER)
    again = replace(passage, chunk=replace(passage.chunk, id="again"))
    assert len(await read(reader, "How long?", [passage, again])) == 1


async def test_of_many_passages_only_the_most_promising_are_read(reader: Reader) -> None:
    texts = ["Tea wants hot water. " * n for n in range(1, PASSAGES)] + [BUFFER] + ["Too far behind."]
    reads = await read(reader, "How long does the tf2 buffer keep transforms?", find(*texts))
    assert len(reads) <= READ_MOST
    assert reads[0].excerpt.text == BUFFER
    assert "Too far behind." not in [one.excerpt.text for one in reads]


async def test_the_headings_above_it_tell_what_an_excerpt_is_about() -> None:
    below = "Ten seconds are kept."
    passages = find("A buffer is a list.", f"## The tf2 buffer\n\n### Limits\n\n#### Age\n\n{below}")
    assert (await read(None, "How old may the tf2 buffer be?", passages))[0].excerpt.text == below


async def test_what_the_search_found_far_better_is_read_first() -> None:
    sure, unsure = find("Older ones are dropped after ten seconds.", "The buffer of the lidar is empty.")
    passages = [replace(sure, score=0.8), replace(unsure, score=0.1)]
    reads = await read(None, "How long does the tf2 buffer keep transforms?", passages)
    assert [one.excerpt.passage for one in reads] == passages


async def test_without_a_reader_the_words_of_the_question_decide() -> None:
    shown = await answer(None, "How long does the buffer keep transforms?", "Tea wants hot water.", BUFFER)
    assert BUFFER in shown


@pytest.mark.parametrize("texts", [(), ("",), ("# A heading alone",)])
async def test_where_nothing_can_be_read_out_nothing_is(reader: Reader, texts: tuple[str, ...]) -> None:
    assert await read(reader, "What is a node?", find(*texts)) == []
    assert choose_excerpts([]) == ()


# --- what is chosen -------------------------------------------------------------------------------

NODE = "A node is one participant in the graph."
TOPIC = "Messages travel over topics."


def score(text: str, scores: dict[str, float], span: Span | None = None) -> list[Read]:
    """The excerpts of one passage, as if they had been read; those that are not named are far behind."""
    [passage] = find(text)
    reads = [Read(one, scores.get(one.text, -50.0), span=span) for one in split_passage(passage)]
    return sorted(reads, key=lambda one: -one.score)


def choose(reads: Sequence[Read], said: str = "") -> list[str]:
    return [one.text for one in choose_excerpts(reads, said)]


def sections(*texts: str) -> str:
    return "\n\n".join(f"## Section {n}\n\n{text}" for n, text in enumerate(texts, 1))


def test_a_second_excerpt_that_is_nearly_as_good_adds_to_the_first() -> None:
    text = sections(TOPIC, NODE)
    assert choose(score(text, {NODE: 3.0, TOPIC: 3.0 - BEHIND / 2})) == [NODE, TOPIC]
    assert choose(score(text, {NODE: 3.0, TOPIC: 3.0 - BEHIND * 2})) == [NODE]


def test_nothing_is_said_twice() -> None:
    again = "A node is, as we said, one participant in the graph."
    assert choose(score(sections(NODE, again, TOPIC), {NODE: 3.0, again: 2.9, TOPIC: 2.8})) == [NODE, TOPIC]
    assert choose(score(sections(NODE, again), {NODE: 3.0, again: 2.9})) == [NODE]


def test_another_number_is_another_fact() -> None:
    one, other = "Port 80 is open to the web.", "Port 443 is open by TLS alone."
    assert choose(score(sections(one, other), {one: 3.0, other: 2.9})) == [one, other]


async def test_a_question_with_two_sides_is_answered_on_both(reader: Reader) -> None:
    push = "`push_screen` puts a screen on top of the stack and makes it active. The one below stays where it is."
    others = [f"A widget of kind {n} is drawn {n} times a second, and never more often." for n in range(3)]
    switch = "`switch_screen` replaces the screen on top of the stack with another one, which is removed first."
    shown = await answer(reader, "difference between push_screen and switch_screen?", push, *others, switch)
    assert push in shown and switch in shown


@pytest.mark.parametrize(("share", "both"), [(SIDE, True), (SIDE / 2, False)])
def test_the_other_side_may_be_further_behind(share: float, both: bool) -> None:
    one, other = score(sections(NODE, TOPIC), {NODE: 3.0, TOPIC: 3.0 - SIDE_BEHIND})
    reads = [replace(one, holds={1: 0.5}), replace(other, holds={1: 0.5, 2: share})]
    assert choose(reads) == ([NODE, TOPIC] if both else [NODE])


def test_two_are_not_more_than_a_reader_wants_to_read() -> None:
    long = " ".join(f"Robot {n} walks." for n in range(30))
    longer = " ".join(f"Door number {n} opens slowly." for n in range(50))
    assert len(f"{long} {longer}".split()) > TOGETHER_MAX
    reads = [replace(score(text, {})[0], score=2.0) for text in (long, longer)]
    assert choose(reads) == [long]


def test_two_that_stand_side_by_side_are_one() -> None:
    one, two = "Robots walk to doors. " * 15, "Doors open for cats. " * 15
    text = f"{one.strip()}\n\n{two.strip()}"
    assert choose(score(text, {one.strip(): 2.0, two.strip(): 2.5})) == [text]


def test_what_was_said_is_not_said_again() -> None:
    reads = score(sections(NODE, TOPIC), {NODE: 3.0, TOPIC: 3.0 - MORE_BEHIND})
    assert choose(reads, said=f"**A › Section 1**\n\n{NODE.replace(' ', '  ')} [1]") == [TOPIC]


def test_where_all_was_said_it_is_said_again() -> None:
    reads = score(sections(NODE, TOPIC), {NODE: 3.0, TOPIC: 0.0})
    assert choose(reads, said=f"{NODE} [1]\n\n{TOPIC} [2]") == [NODE]


def test_who_asks_for_more_is_not_told_something_else() -> None:
    tea = "Tea wants hot water."
    assert choose(score(sections(NODE, tea), {NODE: 3.0, tea: -9.0}), said=f"{NODE} [1]") == [NODE]


def test_who_asks_for_more_is_told_the_rest_of_the_section() -> None:
    text = f"{NODE}\n\n{TOPIC}\n\nActions can be cancelled."
    at = text.index("one participant")
    reads = score(text, {text: 3.0}, Span(at, at + len("one participant"), 0.99))
    assert choose(reads) == [NODE]
    assert choose(reads, said=f"{NODE} [1]") == [f"{TOPIC}\n\nActions can be cancelled."]
    assert choose(reads, said=f"{TOPIC} [1]\n\nActions can be cancelled. [2]") == [NODE]


def test_what_was_said_is_known_again_without_its_links_and_signs() -> None:
    linked = "A *node*, see [the graph](../graph.md), is one participant among the others of the same graph."
    said = "A *node*, see the graph, is one participant among the others of the same graph. [1]"
    assert choose(score(sections(linked, TOPIC), {linked: 3.0, TOPIC: 2.0}), said) == [TOPIC]


@pytest.mark.parametrize(("chance", "shown"), [(0.99, 1), (0.5, 2)])
def test_a_fact_is_shown_in_its_paragraph_where_the_reader_is_sure_of_it(chance: float, shown: int) -> None:
    text = f"{TOPIC}\n\n{NODE}"
    at = text.index("one participant")
    reads = score(text, {text: 3.0}, Span(at, at + len("one participant"), chance))
    assert choose(reads) == ([NODE] if shown == 1 else [text])


def test_a_passage_is_as_good_as_its_best_excerpt() -> None:
    passages = find(sections(NODE, TOPIC), "Tea wants hot water.", "Unread.")
    node, topic = split_passage(passages[0])
    [tea] = split_passage(passages[1])
    chances = rank_passages([Read(node, 2.0), Read(tea, 1.0), Read(topic, -4.0)], passages)
    assert chances == sorted(chances, reverse=True) and len(set(chances)) == 3
