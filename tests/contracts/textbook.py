"""A textbook with all the five contracts name: modules, chapters, tiers, levels, layers, long and short lessons."""

from __future__ import annotations

from pathlib import Path

BOOK = "physical-ai-robotics"
SITE = "https://book.example.org"
QUESTION = "With what force does the gripper close?"
RIGHT = "The gripper closes with a force of 40 newtons"
UNKNOWN = "Which yeast do I need for sourdough bread?"
REFUSAL = "I don't have information about that in the book content"

MANIFEST = f"""
book_id = "{BOOK}"
title = "Physical AI"
base_url = "{SITE}"

[modules]
"module-1-ros2" = "ros2"
"module-2-simulation" = "gazebo"
"module-3-isaac" = "isaac"
"module-4-vla" = "vla"

[facets.hardware_tier]
values = [1, 2, 3, 4]
default = 1
[facets.proficiency_level]
default = "A2"
[facets.layer]
default = "L1"
"""

HANDS, SENSES = "module-1-ros2/chapter-1-hands", "module-2-simulation/chapter-2-senses"
LONG, MIDDLE, SHORT = f"{HANDS}/02-arm.md", f"{SENSES}/02-radar.md", f"{HANDS}/01-gripper.md"
"""Lessons of five chunks, of three and of one: the small scope of the fourth contract."""


def _page(title: str, front: str, body: str) -> str:
    return f"---\ntitle: {title}\n{front}\n---\n\n# {title}\n\n{body}\n"


def _sections(topic: str, names: tuple[str, ...]) -> str:
    """Each long enough to be a chunk of its own."""
    return "\n\n".join(f"## The {name} of the {topic}\n\n{_prose(topic, name)}" for name in names)


def _prose(topic: str, name: str) -> str:
    lines = (
        f"The {name} of the {topic} is checked in step {step}, and the reading of step {step} is written into its log."
        for step in range(1, 12)
    )
    return " ".join(lines)


LESSONS = {
    SHORT: _page(
        "The gripper",
        "hardware_tier: 1\nproficiency_level: A2\nlayer: L1",
        "## What a gripper does\n\nThe gripper closes with a force of 40 newtons. A gripper must not lift more than "
        "2 kilograms. The soft gripper is slower than the vacuum gripper. Call `close_gripper()` to close it.",
    ),
    LONG: _page(
        "The arm",
        "hardware_tier: 1\nproficiency_level: B1\nlayer: L2",
        _sections("arm", ("shoulder", "elbow", "wrist", "motor", "cable")),
    ),
    f"{HANDS}/03-battery.md": _page(
        "The battery",
        "hardware_tier: 1\nproficiency_level: A1\nlayer: L1",
        "## What a battery does\n\nThe battery holds 5 ampere hours. Charge the battery before it falls below "
        "20 percent. A cold battery gives less power than a warm one.",
    ),
    f"{SENSES}/01-lidar.md": _page(
        "The lidar",
        "hardware_tier: 2\nproficiency_level: A2\nlayer: L2",
        "## What a lidar does\n\nThe lidar turns ten times a second. Its range is 12 meters. It cannot see glass. "
        "The lidar publishes on the topic `/scan`.\n\nClean the lidar with a dry cloth every week. Dust on its window "
        "makes points appear where nothing is.",
    ),
    MIDDLE: _page(
        "The radar",
        "hardware_tier: 2\nproficiency_level: B2\nlayer: L3",
        _sections("radar", ("antenna", "housing", "filter")),
    ),
    "module-3-isaac/chapter-3-eyes/01-camera.md": _page(
        "The camera",
        "hardware_tier: 3\nproficiency_level: C1\nlayer: L3",
        "## What a camera does\n\nThe camera takes 30 pictures a second. It sees color but no depth. "
        "Calibrate the camera once a month.",
    ),
    "module-4-vla/chapter-4-plans/01-planner.md": _page(
        "The planner",
        "hardware_tier: 4\nproficiency_level: C2\nlayer: L4",
        "## What a planner does\n\nThe planner finds a path around every obstacle that it knows. It replans twice "
        "a second. Without a map the planner does nothing.",
    ),
    "module-4-vla/chapter-4-plans/02-map.md": _page(
        "The map",
        "hardware_tier: 4\nproficiency_level: C2\nlayer: L4",
        (
            "## What a map does\n\nThe map has a cell for every 5 centimeters of the floor. "
            "A cell is free, taken or unknown."
        ),
    ),
}
FILES, CHUNKS = 8, 14


def write_textbook(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "askbook.toml").write_text(MANIFEST, encoding="utf-8")
    for name, text in LESSONS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder
