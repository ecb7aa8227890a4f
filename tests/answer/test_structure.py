"""Questions about the book itself are answered from its outline; all others are left to the search."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import pytest

from askbook.answer.places import narrow_to_place
from askbook.answer.structure import SHOWN, answer_structure, asks_structure, cite_structure
from askbook.book.chunker import split_lesson
from askbook.book.reader import read_book, read_lessons
from askbook.domain import Book, Chunk, Filters, Lesson, Outline, OutlineLesson
from askbook.errors import NotFound
from askbook.store.database import Database
from askbook.store.ledger import DraftChunk, Ledger, LessonChange
from askbook.store.outline import LessonRow, build_outline, place_sections
from builders import is_verbatim

DEMO = Path(str(files("askbook"))) / "demo" / "physical-ai-robotics"


@dataclass(frozen=True)
class Shelf:
    """A folder as the ledger would have it."""

    book: Book
    lessons: dict[str, Lesson]
    chunks: dict[str, list[Chunk]]
    outline: Outline

    async def load_lesson(self, book_id: str, parent_doc_id: str) -> list[Chunk]:
        assert book_id == self.book.book_id
        return self.chunks[parent_doc_id]

    def find(self, title: str) -> OutlineLesson:
        return next(one for one in self.outline.lessons if one.title == title)

    def ask(self, question: str) -> list[str] | None:
        """The lines, without marks."""
        found = answer_structure(question, self.outline)
        return [line.text for line in found] if found else None


def read_shelf(folder: Path) -> Shelf:
    book = read_book(folder)
    lessons, _ = read_lessons(folder, book)
    chunks = {lesson.parent_doc_id: split_lesson(lesson) for lesson in lessons}
    rows = [
        LessonRow(
            one.module,
            one.chapter,
            one.lesson,
            one.title,
            one.url,
            one.source_file,
            one.parent_doc_id,
            chunks[one.parent_doc_id][0].heading_path,
            one.module_order,
        )
        for one in lessons
    ]
    texts = {one.source_file: [chunk.text for chunk in chunks[one.parent_doc_id]] for one in lessons}
    outline = build_outline(book.book_id, book.title, 0, rows, texts)
    return Shelf(book, {one.source_file: one for one in lessons}, chunks, outline)


def write_shelf(folder: Path, pages: dict[str, str]) -> Shelf:
    for name, text in pages.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return read_shelf(folder)


def page(title: str, *sections: str) -> str:
    below = "".join(f"\n## {section}\n\nWords on this.\n" for section in sections)
    return f"# {title}\n\nThis page is about one thing. It has more to say.\n{below}"


@pytest.fixture(scope="module")
def demo() -> Shelf:
    return read_shelf(DEMO)


# --- the demo book --------------------------------------------------------------------------------

BOOK = "“Physical AI and Robotics”"
MODULES = [
    "- Module 1: The Robotic Nervous System — ROS 2",
    "- Module 2: The Digital Twin — Simulation",
    "- Module 3: The Robot Brain — NVIDIA Isaac",
    "- Module 4: Vision-Language-Action",
]
CHAPTERS = [
    "- Chapter 1: Foundations",
    "- Chapter 2: Building with ROS 2",
    "- Chapter 3: Describing Robots",
    "- Chapter 4: Gazebo",
    "- Chapter 5: Sensor Simulation",
    "- Chapter 6: Isaac Sim and Isaac Lab",
    "- Chapter 7: Perception and Navigation",
    "- Chapter 8: VLA Models",
    "- Chapter 9: Embodied Assistants",
]
CONTENTS = [
    f"{BOOK} has 4 modules, 9 chapters, 28 lessons:",
    MODULES[0],
    *(f"  {chapter}" for chapter in CHAPTERS[:3]),
    MODULES[1],
    *(f"  {chapter}" for chapter in CHAPTERS[3:5]),
    MODULES[2],
    *(f"  {chapter}" for chapter in CHAPTERS[5:7]),
    MODULES[3],
    *(f"  {chapter}" for chapter in CHAPTERS[7:]),
]
FIRST_TEN = [
    "- Chapter 1: Foundations, lesson 1: Nodes and the Graph",
    "- Chapter 1: Foundations, lesson 2: Topics and Messages",
    "- Chapter 1: Foundations, lesson 3: Services and Actions",
    "- Chapter 2: Building with ROS 2, lesson 1: Workspaces and Packages",
    "- Chapter 2: Building with ROS 2, lesson 2: Parameters and Launch Files",
    "- Chapter 2: Building with ROS 2, lesson 3: Quality of Service",
    "- Chapter 3: Describing Robots, lesson 1: Frames and tf2",
    "- Chapter 3: Describing Robots, lesson 2: Robot Description with URDF",
    "- Chapter 4: Gazebo, lesson 1: Worlds and SDF",
    "- Chapter 4: Gazebo, lesson 2: Bridging Gazebo and ROS 2",
]
IN_CHAPTER_3 = [
    "Chapter 3: Describing Robots has 2 lessons:",
    "- Lesson 1: Frames and tf2",
    "- Lesson 2: Robot Description with URDF",
]
IN_CHAPTER_4 = [
    "Chapter 4: Gazebo has 4 lessons:",
    "- Lesson 1: Worlds and SDF",
    "- Lesson 2: Bridging Gazebo and ROS 2",
    "- Lesson 3: Physics and Time",
    "- Lesson 4: Control with ros2_control",
]
IN_MODULE_2 = ["Module 2: The Digital Twin — Simulation has 2 chapters:", *CHAPTERS[3:5]]
IN_LESSON_3_2 = [
    "Chapter 3: Describing Robots, lesson 2: Robot Description with URDF has 7 sections:",
    "- Links and joints",
    "- The joint types",
    "- Visual is not collision",
    "- Inertia that makes sense",
    "- Publish it",
    "- Xacro",
    "- Exercises",
]
SECOND_LESSONS = [
    "That may be one of 9 lessons:",
    "- Chapter 1: Foundations, lesson 2: Topics and Messages",
    "- Chapter 2: Building with ROS 2, lesson 2: Parameters and Launch Files",
    "- Chapter 3: Describing Robots, lesson 2: Robot Description with URDF",
    "- Chapter 4: Gazebo, lesson 2: Bridging Gazebo and ROS 2",
    "- Chapter 5: Sensor Simulation, lesson 2: Cameras and Depth",
    "- Chapter 6: Isaac Sim and Isaac Lab, lesson 2: Synthetic Data and Domain Randomisation",
    "- Chapter 7: Perception and Navigation, lesson 2: Navigation with Nav2",
    "- Chapter 8: VLA Models, lesson 2: Tokenised Actions",
    "- Chapter 9: Embodied Assistants, lesson 2: Language Models as Planners",
]
LIDAR = "Chapter 5: Sensor Simulation, lesson 1: Lidar Simulation"

ABOUT_THE_BOOK: list[tuple[str, list[str]]] = [
    # Contents.
    ("What is in chapter 3?", IN_CHAPTER_3),
    ("what's the third chapter about?", IN_CHAPTER_3),
    ("Tell me about chapter 3, please.", IN_CHAPTER_3),
    ("Which lessons are in ch. 3 of this book?", IN_CHAPTER_3),
    ("What's in Chapter 4: Gazebo?", IN_CHAPTER_4),
    ("how many lessons does the gazebo chapter have?", IN_CHAPTER_4),
    ("How many lessons are in chapter 1 of module 2?", IN_CHAPTER_4),
    ("What does module 2 cover?", IN_MODULE_2),
    ("What topics are covered in the gazebo module?", IN_MODULE_2),
    ("what sections does lesson 3.2 have?", IN_LESSON_3_2),
    ("What is covered in lesson 2 of chapter 3?", IN_LESSON_3_2),
    ("list the sections of the last lesson of chapter 3", IN_LESSON_3_2),
    ("What sections does the lesson on lidar have?", [
        f"{LIDAR} has 6 sections:",
        "- A 2D lidar",
        "- A 3D lidar",
        "- From ranges to points",
        "- What is not modelled",
        "- A check that catches mounting errors",
        "- Exercises",
    ]),
    ("which lessons are in the gazebo module?", [
        "Module 2: The Digital Twin — Simulation has 7 lessons:",
        *FIRST_TEN[8:],
        "- Chapter 4: Gazebo, lesson 3: Physics and Time",
        "- Chapter 4: Gazebo, lesson 4: Control with ros2_control",
        f"- {LIDAR}",
        "- Chapter 5: Sensor Simulation, lesson 2: Cameras and Depth",
        "- Chapter 5: Sensor Simulation, lesson 3: IMU and Noise Models",
    ]),
    # The whole book.
    ("how many chapters are there?", [f"{BOOK} has 9 chapters:", *CHAPTERS]),
    ("List the chapters", [f"{BOOK} has 9 chapters:", *CHAPTERS]),
    ("Hi, can you show me all the chapters of the course?", [f"{BOOK} has 9 chapters:", *CHAPTERS]),
    ("How many modules does this course have?", [f"{BOOK} has 4 modules:", *MODULES]),
    ("table of contents", CONTENTS),
    ("What is this book about?", CONTENTS),
    ("how is the course organized?", CONTENTS),
    ("What will I learn from this book?", CONTENTS),
    # Order.
    ("What comes after the lesson on lidar?", [f"After {LIDAR} comes Lesson 2: Cameras and Depth."]),
    ("what comes before lesson 5.2?", [
        "Before Chapter 5: Sensor Simulation, lesson 2: Cameras and Depth comes Lesson 1: Lidar Simulation."
    ]),
    ("Which lesson comes after cameras?", [
        "After Chapter 5: Sensor Simulation, lesson 2: Cameras and Depth comes Lesson 3: IMU and Noise Models."
    ]),
    ("What comes after chapter 3, lesson 2?", [
        "After Chapter 3: Describing Robots, lesson 2: Robot Description with URDF "
        "comes Chapter 4: Gazebo, lesson 1: Worlds and SDF."
    ]),
    ("which chapter follows lesson 3.2?", ["After Chapter 3: Describing Robots comes Chapter 4: Gazebo."]),
    ("what is the lesson before chapter 4?", [
        "Before Chapter 4: Gazebo, lesson 1: Worlds and SDF "
        "comes Chapter 3: Describing Robots, lesson 2: Robot Description with URDF."
    ]),
    ("Which module comes after the isaac module?", [
        "After Module 3: The Robot Brain — NVIDIA Isaac comes Module 4: Vision-Language-Action."
    ]),
    ("what comes after chapter 9?", ["Chapter 9: Embodied Assistants is the last chapter of the book."]),
    ("What comes before lesson 1.1?", [
        "Chapter 1: Foundations, lesson 1: Nodes and the Graph is the first lesson of the book."
    ]),
    ("What is the last lesson of chapter 3?", IN_LESSON_3_2),
    ("What is the first chapter of module 2?", IN_CHAPTER_4),
    # What it may be, and what is not there.
    ("What comes before lesson 2?", SECOND_LESSONS),
    ("what is the second lesson about?", SECOND_LESSONS),
    ("What is in chapter 12?", ["The book has no such part.", *CONTENTS]),
    ("what is lesson 7 of chapter 3 about?", ["The book has no such part.", *CONTENTS]),
]  # fmt: skip


@pytest.mark.parametrize(("question", "lines"), ABOUT_THE_BOOK)
def test_the_outline_answers(question: str, lines: list[str], demo: Shelf) -> None:
    assert demo.ask(question) == lines
    assert asks_structure(question)


def test_every_lesson_is_listed(demo: Shelf, tmp_path: Path) -> None:
    lines = demo.ask("How many lessons are there in total?")
    assert lines is not None and lines[:11] == [f"{BOOK} has 28 lessons:", *FIRST_TEN] and len(lines) == 29
    large = write_shelf(tmp_path, {f"{number:03}-a.md": page(f"Page {number}") for number in range(1, 101)})
    lines = large.ask("list all lessons")
    assert lines is not None and (len(lines), lines[-1]) == (62, "- … and 40 more")


@pytest.mark.parametrize(
    "question",
    [
        "what is the next lesson?",
        "Which chapter is that from?",
        "what is in this chapter?",
    ],
)
def test_without_a_thread_there_is_no_here(question: str, demo: Shelf) -> None:
    assert demo.ask(question) is None


# --- what is left to the search -------------------------------------------------------------------


@pytest.mark.parametrize(
    "question",
    [
        "In chapter 3, how does a node publish?",
        "what does chapter 2 say about lidar?",
        "According to lesson 3.2, what is a fixed joint?",
        "Summarise chapter 3",
        "What is the summary of chapter 3?",
        "What does the lesson on lidar say about rain?",
        "What comes after the planner in Nav2?",
        "What comes before a service call?",
        "what comes after training in chapter 6?",
        "What is a module?",
        "What are modules?",
        "Which chapters of the genome are known?",
        "which chapters of the genome",
        "What are the parts of a cell?",
        "How many sections are there?",
        "What is in chapter 4: quantum gravity?",
        "How many steps does calibration have?",
        "How many days does the training of a policy take?",
        "What is the planner module?",
        "What does the perception module contain?",
        "How many topics are there?",
        "What topics does a node have?",
        "How many parts does a URDF file have?",
        "how many sections are there in an SDF world?",
        "How many lessons did the team learn?",
        "What are the lessons learned in chapter 9?",
        "List the topics of the lidar driver",
        "Name the parts of a behaviour tree",
        "Where is the lidar mounted?",
        "Where is the map frame found?",
        "Which lesson covers quantum gravity?",
        "Which chapter explains how to publish a message?",
        "Which lesson should I skip?",
        "What is the first step?",
        "What is the last thing a safety filter does before chapter 9's exercises?",
        "what is in the depth image?",
        "What does a launch file contain?",
        "How is a workspace organized?",
        "What is Whisper about?",
        "What is the book of the dead about?",
        "How many chapters are in Moby Dick?",
        "Who wrote this book?",
        "Does this book cover drones?",
        "Why is chapter 3 before chapter 4?",
        "what is quality of service?",
        "What is “Quality of Service”?",
        "What is the difference between module 1 and module 2?",
        "tell me about lidar",
        "structure",
        "chapter",
        "",
        "?",
        "what is in " + "chapter 3 of " * 100,
    ],
)
def test_what_asks_for_more_is_left_to_the_search(question: str, demo: Shelf) -> None:
    assert demo.ask(question) is None


def test_modules_may_be_those_of_a_language_and_chapters_those_of_the_book(tmp_path: Path) -> None:
    films = write_shelf(tmp_path, {"dune.md": page("Dune"), "emma.md": page("Emma")})
    assert films.ask("How many chapters are there?") == [
        f"“{films.book.title}” has no chapters, 2 lessons:",
        "- Dune",
        "- Emma",
    ]
    assert films.ask("What are the modules?") is None


def test_an_empty_book_has_no_structure() -> None:
    assert answer_structure("How many chapters are there?", Outline("book", "Book", ())) is None


def test_a_question_that_is_not_about_the_book_costs_next_to_nothing(demo: Shelf) -> None:
    question = "What is the difference between a service and an action, and when should I use which of the two?"
    started = time.perf_counter()
    for _ in range(100):
        assert not asks_structure(question)
    assert time.perf_counter() - started < 0.5


# --- sources --------------------------------------------------------------------------------------


@pytest.mark.parametrize("question", [question for question, _ in ABOUT_THE_BOOK])
async def test_every_title_is_cited_in_the_books_own_words(question: str, demo: Shelf) -> None:
    found = answer_structure(question, demo.outline)
    assert found is not None
    statements, sources = await cite_structure(found, demo.book.book_id, demo)

    assert 1 <= len(sources) <= SHOWN
    assert [source.number for source in sources] == list(range(1, len(sources) + 1))
    for source in sources:
        file = demo.lessons[source.passage.chunk.source_file]
        assert is_verbatim(source)
        assert file.text[source.start : source.end] == source.quote
    for statement, line in zip(statements, found, strict=True):
        assert statement.verdict in ("verbatim", "supported")
        assert all(f"[{number}]" in statement.text for number in statement.cites)
        assert statement.verdict == "supported" or statement.cites
        assert len(statement.cites) == len(line.parts)


async def test_a_line_quotes_the_heading_that_it_repeats(demo: Shelf) -> None:
    statements, sources = await _cite(demo, "what sections does lesson 3.2 have?")
    assert [statement.text for statement in statements][:3] == [
        "Chapter 3: Describing Robots, lesson 2: Robot Description with URDF has 7 sections [1]:",
        "- Links and joints [2]",
        "- The joint types [3]",
    ]
    assert [source.quote for source in sources][:3] == [
        "Robot Description with URDF",
        "Links and joints",
        "The joint types",
    ]
    statements, sources = await _cite(demo, "what comes after chapter 3?")
    assert statements[0].text == "After Chapter 3: Describing Robots comes Chapter 4: Gazebo [1] [2]."
    assert [source.quote for source in sources] == ["Chapter 3: Describing Robots", "Chapter 4: Gazebo"]


async def test_without_a_heading_the_first_line_is_quoted(tmp_path: Path) -> None:
    text = "---\ntitle: Tools\n---\n\nA tool is a thing in the hand,\nor on a bench. It wears.\n"
    shelf = write_shelf(tmp_path, {"chapter-1-a/01-tools.md": text})
    _, sources = await _cite(shelf, "What is lesson 1.1?")
    assert [source.quote for source in sources] == ["A tool is a thing in the hand,"]


async def test_nothing_is_quoted_that_needs_more_hardware_than_the_reader_has(demo: Shelf) -> None:
    found = answer_structure("what is in chapter 9?", demo.outline)
    assert found is not None
    statements, sources = await cite_structure(found, demo.book.book_id, demo, hardware_tier=1)
    assert [statement.text for statement in statements] == [
        "Chapter 9: Embodied Assistants has 4 lessons [1]:",
        "- Lesson 1: Speech with Whisper",
        "- Lesson 2: Language Models as Planners [2]",
        "- Lesson 3: Safety on Real Robots",
        "- Lesson 4: Evaluating Policies",
    ]
    assert {source.passage.chunk.hardware_tier for source in sources} == {1}


async def test_sections_of_one_name_are_each_quoted_at_their_own_place(tmp_path: Path) -> None:
    text = "# Tools\n\nIntro.\n\n## Use\n\nOne.\n\n## Care\n\nTwo.\n\n## Use\n\nThree.\n"
    shelf = write_shelf(tmp_path, {"chapter-1-a/01-tools.md": text})
    _, sources = await _cite(shelf, "what sections does lesson 1.1 have?")
    assert [source.quote for source in sources] == ["Tools", "Use", "Care", "Use"]
    assert [source.start for source in sources][1::2] == [text.index("Use"), text.rindex("Use")]


async def _cite(shelf: Shelf, question: str):
    found = answer_structure(question, shelf.outline)
    assert found is not None
    return await cite_structure(found, shelf.book.book_id, shelf)


# --- odd books ------------------------------------------------------------------------------------


def test_a_flat_folder_has_lessons_and_no_more(tmp_path: Path) -> None:
    shelf = write_shelf(
        tmp_path, {"README.md": page("Fruit"), "apples.md": page("Apples", "Red"), "pears.md": page("Pears")}
    )
    everything = ["“Fruit” has 2 lessons:", "- Apples", "- Pears"]
    assert shelf.ask("What is this book about?") == everything
    assert shelf.ask("how many lessons are there?") == everything
    assert shelf.ask("What comes after the lesson on apples?") == ["After Apples comes Pears."]
    assert shelf.ask("what sections does the lesson about apples have?") == ["Apples has 1 section:", "- Red"]
    assert shelf.ask("what sections does the pears lesson have?") == ["Pears has no sections."]
    # Nobody has numbered them.
    assert shelf.ask("what comes after lesson 1?") is None
    assert shelf.ask("what is in chapter 1?") is None
    assert shelf.ask("what does module 2 cover?") is None


def test_numbered_files_without_chapters_are_lessons_by_number(tmp_path: Path) -> None:
    shelf = write_shelf(
        tmp_path, {f"0{at}-{name}.md": page(name) for at, name in enumerate(("one", "two", "three"), 1)}
    )
    assert shelf.ask("what comes after lesson 2?") == ["After two comes three."]
    assert shelf.ask("what is the last lesson?") == ["three has no sections."]


def test_an_mdbook_has_parts_chapters_and_pages_outside_them(tmp_path: Path) -> None:
    summary = """# Summary

[Foreword](foreword.md)

# Basics

- [Start](start.md)
  - [Install](install.md)
  - [Hello](hello.md)
- [Guessing](guessing.md)

# Beyond

- [Traits](traits.md)
  - [Bounds](bounds.md)

[Appendix](appendix.md)
"""
    names = ("foreword", "start", "install", "hello", "traits", "bounds", "appendix")
    pages = {f"src/{name}.md": page(name.capitalize()) for name in names}
    shelf = write_shelf(tmp_path, {"src/SUMMARY.md": summary, "src/guessing.md": page("Guessing", "Dice"), **pages})
    assert shelf.ask("table of contents") == [
        f"“{shelf.book.title}” has 2 modules, 3 chapters, 6 lessons:",
        "- Basics",
        "  - Chapter 1: Start",
        "  - Chapter 2: Guessing",
        "- Beyond",
        "  - Chapter 3: Traits",
    ]
    assert shelf.ask("what is in chapter 1?") == [
        "Chapter 1: Start has 2 lessons:",
        "- Lesson 1: Install",
        "- Lesson 2: Hello",
    ]
    # A chapter of one page is that page.
    assert shelf.ask("what is in chapter 2?") == ["Chapter 2: Guessing has 1 section:", "- Dice"]
    assert shelf.ask("what comes after lesson 1.2?") == [
        "After Chapter 1: Start, lesson 2: Hello comes Chapter 2: Guessing."
    ]
    assert shelf.ask("what comes after chapter 2?") == ["After Chapter 2: Guessing comes Chapter 3: Traits."]
    # Whether an appendix opens or closes is not known.
    assert shelf.ask("what comes after the lesson on the appendix?") is None


def test_a_book_that_is_called_a_part_is_none_of_its_own_parts(tmp_path: Path) -> None:
    shelf = write_shelf(tmp_path, {"README.md": page("Part 1: Fruit"), "apples.md": page("Apples")})
    assert shelf.book.title == "Part 1: Fruit"
    assert shelf.ask("how many parts are there?") is None
    assert shelf.ask("what is in part 1?") is None


def test_chapters_may_count_from_zero(tmp_path: Path) -> None:
    names = {"chapter0/1.md": "Setup", "chapter1/1.md": "One", "chapter1/2.md": "Two"}
    shelf = write_shelf(tmp_path, {file: page(title) for file, title in names.items()})
    assert shelf.ask("how many chapters are there?") == [
        f"“{shelf.book.title}” has 2 chapters:",
        "- Chapter 0",
        "- Chapter 1",
    ]
    assert shelf.ask("what is in chapter 0?") == ["Chapter 0 has 1 lesson:", "- Lesson 1: Setup"]
    assert shelf.ask("what comes after chapter 0?") == ["After Chapter 0 comes Chapter 1."]
    assert shelf.ask("what is the first chapter?") == shelf.ask("what is in chapter 0?")


def test_overviews_are_no_lessons(demo: Shelf) -> None:
    assert demo.outline.lessons[0].source_file == "README.md"
    assert sum(lesson.lesson == 0 for lesson in demo.outline.lessons) == 14
    assert len(demo.outline.lessons) == 28 + 14


def test_chapters_of_one_number_are_told_apart_by_their_modules(tmp_path: Path) -> None:
    pages = {
        f"part-{at}-{part}/chapter-{number}-{name}/01-{name}.md": page(f"{part} {name}")
        for at, part in ((1, "alpha"), (2, "beta"))
        for number, name in ((1, "intro"), (2, "more"))
    }
    shelf = write_shelf(tmp_path, pages)
    in_beta = ["Part 2: Beta, Chapter 1: Intro has 1 lesson:", "- Lesson 1: beta intro"]
    assert shelf.ask("what is in chapter 1?") == [
        "That may be one of 2 chapters:",
        "- Part 1: Alpha, Chapter 1: Intro",
        "- Part 2: Beta, Chapter 1: Intro",
    ]
    assert shelf.ask("what is in chapter 1 of part 2?") == in_beta
    assert shelf.ask("how many parts are there?") == [
        f"“{shelf.book.title}” has 2 modules:",
        "- Part 1: Alpha",
        "- Part 2: Beta",
    ]
    assert shelf.ask("what comes after chapter 2 of part 1?") == [
        "After Part 1: Alpha, Chapter 2: More comes Part 2: Beta, Chapter 1: Intro."
    ]
    assert shelf.ask("how many weeks are there?") is None


def test_chapters_without_a_name_are_told_apart_as_well(tmp_path: Path) -> None:
    pages = {f"{part}/chapter-1/01-a.md": page(f"{part} one") for part in ("alpha", "beta")}
    shelf = write_shelf(tmp_path, pages)
    assert shelf.ask("what is in chapter 1 of module 2?") == ["Beta, Chapter 1 has 1 lesson:", "- Lesson 1: beta one"]


def test_a_folder_for_each_chapter_makes_no_modules(tmp_path: Path) -> None:
    def write(number: int, title: str) -> str:
        return f'---\nchapter: {number}\nchapter_title: "{title}"\n---\n{page(f"On {title}")}'

    shelf = write_shelf(tmp_path, {"01-light/a.md": write(1, "Light"), "02-heat/b.md": write(2, "Heat")})
    assert shelf.ask("what is this book about?") == [
        f"“{shelf.book.title}” has 2 chapters, 2 lessons:",
        "- Chapter 1: Light",
        "- Chapter 2: Heat",
    ]


async def test_titles_are_shown_as_they_are_written_and_do_no_harm(tmp_path: Path) -> None:
    nasty = r"[1] **Bold** `code` <script>alert(1)</script> [l](javascript:x) snake_case _x_"
    odd = 'Line\\nbreak\\u202e\\u0007 \\"quoted\\" “curly” & more'
    shelf = write_shelf(
        tmp_path,
        {
            "chapter-1-a/01-a.md": f"---\ntitle: '{nasty}'\n---\n\nText here. More.\n\n"
            "## 1. First\n\nx\n\n## \\# hash\n\ny\n",
            "chapter-1-a/02-b.md": f'---\ntitle: "{odd}"\n---\n\n# - dash\n\nText.\n',
        },
    )
    assert shelf.ask("what is in chapter 1?") == [
        "Chapter 1: A has 2 lessons:",
        r"- Lesson 1: \[1\] \*\*Bold\*\* \`code\` \<script\>alert(1)\</script\> \[l\](javascript:x) snake_case \_x\_",
        r'- Lesson 2: Line break "quoted" “curly” \& more',
    ]
    assert (shelf.ask("what sections does lesson 1 have?") or [])[1:] == [r"- 1\. First", r"- \# hash"]
    statements, sources = await _cite(shelf, "what is in chapter 1?")
    assert [statement.cites for statement in statements] == [(1,), (1,), (2,)]
    assert [source.quote for source in sources] == ["Text here. More.", "- dash"]


# --- narrowing a search ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "place"),
    [
        ("In chapter 3, how does a node publish?", ("ros2", 3)),
        ("what does chapter 2 say about lidar?", ("ros2", 2)),
        ("How is friction set in the gazebo module?", ("gazebo", None)),
        ("Give me an example from module 4", ("vla", None)),
        ("According to the lesson on lidar, what does rain do?", "Lidar Simulation"),
        ("What is a fixed joint in lesson 3.2?", "Robot Description with URDF"),
        ("In lesson 2 of chapter 5, what is an optical frame?", "Cameras and Depth"),
        ("Summarise chapter 3", (None, None)),
        ("In lesson 2, what is a fixed joint?", (None, None)),
        ("What is in chapter 40 about joints?", (None, None)),
        ("What is Chapter 7 bankruptcy?", (None, None)),
        ("In chapter 7 cases, what happens to debts?", (None, None)),
        ("How does a node publish?", (None, None)),
        ("In this chapter, what is a node?", (None, None)),
    ],
)
def test_a_question_may_say_where_to_look(question: str, place: tuple[str, int] | str, demo: Shelf) -> None:
    filters = narrow(demo, question)
    if isinstance(place, str):
        lesson = demo.find(place)
        assert filters.parent_doc_id == lesson.parent_doc_id
        place = (lesson.module, lesson.chapter)
    assert (filters.module, filters.chapter_min, filters.chapter_max) == (*place, place[1])


def test_a_place_narrows_a_search_and_never_widens_it(demo: Shelf) -> None:
    filters = Filters("book", module="ros2", chapter_min=2, chapter_max=5)
    inside = narrow(demo, "In chapter 3, how does a node publish?", filters)
    assert inside == Filters("book", module="ros2", chapter_min=3, chapter_max=3)
    outside = narrow(demo, "In chapter 7, what is a costmap?", filters)
    assert (outside.module, outside.chapter_min, outside.chapter_max) == ("ros2", 7, 5)


def narrow(shelf: Shelf, question: str, filters: Filters | None = None) -> Filters:
    return narrow_to_place(filters or Filters("book"), question, shelf.outline)


# --- the ledger -----------------------------------------------------------------------------------


async def test_the_ledger_keeps_the_outline_until_the_book_changes(database: Database, demo: Shelf) -> None:
    ledger = Ledger(database)
    with pytest.raises(NotFound):
        await ledger.load_outline(demo.book.book_id)
    await ledger.save_book(demo.book, "folder")
    lessons = sorted(demo.lessons.values(), key=lambda lesson: lesson.fingerprint)
    await ledger.commit(demo.book.book_id, [_to_change(demo, lesson) for lesson in lessons], [], {})

    outline = await ledger.load_outline(demo.book.book_id)
    assert outline.lessons == demo.outline.lessons
    assert await ledger.load_outline(demo.book.book_id) is outline
    gone = demo.find("Lidar Simulation")
    await ledger.commit(demo.book.book_id, [], [gone.source_file], {})
    assert gone not in (await ledger.load_outline(demo.book.book_id)).lessons


async def test_the_modules_of_a_site_come_in_its_own_order(database: Database, tmp_path: Path) -> None:
    navigation = "nav:\n- Start: [z/a.md]\n- Alone: m.md\n- Last: [b/b.md, b/c.md]\n- Then: [a/1.md]\n"
    pages = {f"docs/{name}.md": page(name) for name in ("z/a", "m", "b/b", "b/c", "a/1", "c/unnamed")}
    shelf = write_shelf(tmp_path, {"mkdocs.yml": f"site_name: Arms\n{navigation}", **pages})
    ledger = Ledger(database)
    await ledger.save_book(shelf.book, "folder")
    lessons = sorted(shelf.lessons.values(), key=lambda lesson: lesson.fingerprint)
    await ledger.commit(shelf.book.book_id, [_to_change(shelf, lesson) for lesson in lessons], [], {})

    outline = await ledger.load_outline(shelf.book.book_id)
    files = ["z/a", "m", "b/b", "b/c", "a/1", "c/unnamed"]
    assert [one.source_file for one in outline.lessons] == [f"docs/{name}.md" for name in files]
    assert outline.lessons == shelf.outline.lessons


def _to_change(shelf: Shelf, lesson: Lesson) -> LessonChange:
    return LessonChange(
        lesson, tuple(DraftChunk(chunk.id, chunk, embedded=False) for chunk in shelf.chunks[lesson.parent_doc_id])
    )


def test_titles_come_back_as_the_lessons_have_them(demo: Shelf) -> None:
    for one in demo.outline.lessons:
        lesson = demo.lessons[one.source_file]
        assert (one.module, one.chapter, one.lesson, one.title, one.url) == (
            lesson.module,
            lesson.chapter,
            lesson.lesson,
            lesson.title,
            lesson.url,
        )
        assert (one.module_title, one.chapter_title) == (lesson.module_title, lesson.chapter_title)


@pytest.mark.parametrize(
    ("texts", "sections"),
    [
        (["# Title\n\nText.\n\n## A\n\n### B ###\n\n## C"], [("A", 1), ("B", 2), ("C", 1)]),
        (["## Title\n\nText.\n\n### A"], [("A", 1)]),
        (["Title\n=====\n\nText.\n\nA thing\n-------\n\nText.\n\n---\n\nEnd."], [("A thing", 1)]),
        (["# Title\n\n```bash\n# no heading\n```\n", "~~~~\n## none\n~~~\n## none\n~~~~\n\n## One"], [("One", 1)]),
        (["# Title\n\n<!--\n# none\n-->\n\n## [Two](x.md) *of* `them` {#id}"], [("Two of them", 1)]),
        (["# Title\n\n#hashtag\n\n    # code\n\n- item\n---\n\n| a |\n---\n"], []),
        (["# Title", "# Another top"], [("Another top", 1)]),
    ],
)
def test_sections_are_read_from_the_chunks(texts: Sequence[str], sections: list[tuple[str, int]]) -> None:
    found = place_sections("Title", texts)
    assert [(one.section.title, one.section.depth) for one in found] == sections
    assert all(texts[one.chunk][one.heading.start : one.heading.end].strip() for one in found)
