"""Front matter as people write it, and as attackers do."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from shelf import read_all, split, write_book

from askbook.book.chunker import split_lesson
from askbook.book.front_matter import read_front_matter, read_number
from askbook.book.reader import read_book
from askbook.domain import Lesson, Problem
from askbook.errors import BookError

ROBOTS = """
[facets.hardware_tier]
values = [1, 2, 3, 4]
[facets.proficiency_level]
[facets.layer]
[facets.robot]
values = ["any", "arm", "humanoid"]
default = "any"
"""


def read_one(
    folder: Path, front: str, toml: str | None = None, name: str = "module-1-ros2/chapter-3-x/02-a.md"
) -> tuple[Lesson, list[Problem]]:
    files: dict[str, str | bytes] = {name: f"---\n{front}\n---\n\n# A heading\n\nThe body is still here.\n"}
    lessons, problems = read_all(write_book(folder, files | ({"askbook.toml": toml} if toml else {})))
    return lessons[name], problems


@pytest.mark.parametrize(
    ("front", "tier", "level", "layer"),
    [
        ('chapter: 4\nlesson: 2\nproficiency_level: "B1"\nlayer: "L2"\nhardware_tier: 3', 3, "B1", "L2"),
        ("cefr_level: A2-B1\nprimary_layer: 'L3: Design'\nhardware_prerequisites: [1, 4]", 4, "A2", "L3"),
        ("proficiency_level: b2 – c1\nhardware_tier: Tier 2\nlayer: l4", 2, "B2", "L4"),
        ("hardware_prerequisites: []\ntags: [a, b]\nskills:\n  deep:\n    - x: 1", 1, "A2", "L1"),
        ("title: Only a title", 1, "A2", "L1"),
    ],
)
def test_the_three_labels_of_every_lesson(tmp_path: Path, front: str, tier: int, level: str, layer: str) -> None:
    lesson, problems = read_one(tmp_path, front)
    assert (lesson.hardware_tier, lesson.proficiency_level, lesson.layer) == (tier, level, layer)
    assert [problem.key for problem in problems] == (["hardware_prerequisites"] if "[]" in front else [])


def test_a_value_out_of_its_limits_is_reported_and_the_default_used(tmp_path: Path) -> None:
    lesson, problems = read_one(
        tmp_path, "hardware_tier: 9\nlayer: L7\nproficiency_level: D1\nchapter: -3\nlesson: [1]"
    )
    assert (lesson.hardware_tier, lesson.layer, lesson.proficiency_level) == (1, "L1", "A2")
    assert (lesson.chapter, lesson.lesson) == (3, 2)
    assert {(problem.source_file, problem.key, problem.skipped) for problem in problems} == {
        (lesson.source_file, key, False) for key in ("hardware_tier", "layer", "proficiency_level", "chapter", "lesson")
    }


def test_a_missing_key_is_reported_only_where_the_book_declares_it(tmp_path: Path) -> None:
    silent = read_one(tmp_path / "plain", "title: x")[1]
    lesson, problems = read_one(tmp_path / "declared", "title: x\nrobot: arm", ROBOTS)
    assert silent == []
    assert lesson.facets == {"robot": "arm"}
    assert [problem.key for problem in problems] == ["hardware_tier", "proficiency_level", "layer"]


def test_numbers_in_names() -> None:
    written = {
        "3": 3,
        "02": 2,
        "Chapter 3: Building with ROS 2": 3,
        "chapter-11-sensors": 11,
        "Lesson #4": 4,
        "7. Loops": 7,
    }
    assert {text: read_number(text) for text in written} == written
    assert [read_number(text) for text in ("Building with ROS 2", "-3", "3.5", "99999999999", "3rd", "")] == [None] * 6


def test_module_names_in_the_wild(tmp_path: Path) -> None:
    lesson = read_one(tmp_path / "a", 'module: "Module 9: Nowhere"\nchapter: "02"')[0]
    assert (lesson.module, lesson.chapter, lesson.module_title) == ("ros2", 2, "Module 9: Nowhere")
    assert read_one(tmp_path / "b", "module: module-4-vla")[0].module == "vla"


@pytest.mark.row("B3")
@pytest.mark.parametrize(
    ("front", "says", "key"),
    [
        ("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]", "anchors or aliases", "a"),
        ("a: &a " + "x" * 50_000 + "\nb: [" + "*a, " * 2_000 + "]", "anchors or aliases", "b"),
        ("title: x\nlesson: " + "[" * 3000 + "]" * 3000, "nested deeper", "lesson"),
        ("lesson: !!python/object/apply:os.system ['true']", "tags", "lesson"),
        ("- " * 30_000 + "x", "nested deeper", None),
        ("title: " + "x" * 1_000_000, "larger than 64 KB", None),
        ("a: 1\nb: [1, 2\nc: 3", "not valid YAML", "c"),
        ("just some words", "not a list of", None),
        ("lesson: " + "9" * 60_000, "not a number", "lesson"),
    ],
)
def test_hostile_yaml_is_refused_at_once_and_the_body_is_read(
    tmp_path: Path, front: str, says: str, key: str | None
) -> None:
    started = time.process_time()
    read_front_matter(f"---\n{front}\n---\nbody")
    assert time.process_time() - started < 0.1

    lesson, problems = read_one(tmp_path, front)
    assert (lesson.proficiency_level, lesson.hardware_tier, lesson.layer) == ("A2", 1, "L1")
    assert says in problems[0].message
    assert (problems[0].key, problems[0].source_file) == (key, lesson.source_file)
    assert "The body is still here." in split_lesson(lesson)[0].text


def test_one_broken_line_does_not_take_the_others_along(tmp_path: Path) -> None:
    lesson, problems = read_one(tmp_path, 'chapter: 7\nslug: "/x/y"\nchapter_title: "Newton\\\'s laws"')
    assert (lesson.chapter, lesson.url.split("/")[-2:]) == (7, ["x", "y"])
    assert problems[0].key == "chapter_title"


def test_what_is_no_front_matter_stays_text(tmp_path: Path) -> None:
    lessons, problems = read_all(
        write_book(tmp_path, {"m/a.md": "---\n\nA rule above.\n", "m/b.md": "---\ntitle: never closed\n"})
    )
    assert [split_lesson(lesson)[0].text for lesson in lessons.values()] == [
        "---\n\nA rule above.",
        "---\ntitle: never closed",
    ]
    assert [problem.source_file for problem in problems] == ["m/b.md"]


@pytest.mark.parametrize(
    ("toml", "names"),
    [
        ("colour = 1", "colour"),
        ("book_id = 3", "book_id"),
        ("book_id = 'a b'", "a b"),
        ("ignore = 'drafts'", "ignore"),
        ("[modules]\nx = 1", "modules.x"),
        ("[facets.robot]\nvalue = []", "facets.robot.value"),
        ("[facets.robot]\nvalues = ['a']\ndefault = 'b'", "facets.robot.default"),
        ("[facets.layer]\nvalues = [1]", "facets.layer.values"),
        ("base_url = 'ftp:x'", "base_url"),
        ("title = \nbook_id = 'x'", "line 1"),
    ],
)
def test_a_wrong_askbook_toml_says_which_key_and_what_to_do(tmp_path: Path, toml: str, names: str) -> None:
    with pytest.raises(BookError) as caught:
        read_book(write_book(tmp_path, {"askbook.toml": toml}))
    assert names in caught.value.message
    assert caught.value.hint


def test_a_book_without_askbook_toml(tmp_path: Path) -> None:
    book = read_book(write_book(tmp_path / "My Robot Book", {"README.md": "# Robots *at* Home\n"}))
    assert (book.book_id, book.title, book.base_url, book.facets) == ("my-robot-book", "Robots at Home", None, ())
    assert read_book(tmp_path / "My Robot Book", "other").book_id == "other"
    for wrong in (tmp_path / "nowhere", tmp_path / "My Robot Book" / "README.md"):
        with pytest.raises(BookError, match=r"does not exist|is not a folder"):
            read_book(wrong)


def test_prose_between_two_rules_is_the_lessons_own(tmp_path: Path) -> None:
    lesson, chunks = split(tmp_path, "---\nQuokka prose\n---\n# Rule\n\nMore.\n")
    assert lesson.body_start == 0
    assert "Quokka prose" in chunks[0].text


@pytest.mark.parametrize("written", [r"a\0b", r"a\x00b", r"a\u0000b", r"a\ud800b"])
def test_what_no_database_takes_is_replaced(tmp_path: Path, written: str) -> None:
    lesson, _ = split(tmp_path, f'---\ntitle: "{written}"\n---\nText.\n')
    assert "\0" not in lesson.title
    assert lesson.title.encode()


def test_a_text_may_be_named_and_used_again(tmp_path: Path) -> None:
    lessons, problems = read_all(write_book(tmp_path, {"a.md": "---\ntitle: &t Quick start\nsub: *t\n---\n\nText."}))
    assert (lessons["a.md"].title, problems) == ("Quick start", [])
