"""Every layout is understood without configuration."""

from __future__ import annotations

from pathlib import Path

from shelf import places, read_all, write_book

PAGE = "# Page\n\ntext"


def test_modules_chapters_and_lessons(tmp_path: Path) -> None:
    folder = write_book(
        tmp_path,
        {
            "README.md": PAGE,
            "module-1-ros2/README.md": "# Module 1: The Nervous System",
            "module-1-ros2/chapter-2-building/README.md": "---\ntitle: 'Chapter 2: Building'\n---\ntext",
            "module-1-ros2/chapter-2-building/01-workspaces.mdx": PAGE,
            "module-1-ros2/chapter-2-building/10-last.md": PAGE,
            "module-1-ros2/chapter-11-sensors/02-lidar.md": PAGE,
            "module-2-simulation/chapter-4-gazebo/01-worlds.md": PAGE,
        },
    )
    assert places(folder) == {
        "README.md": ("main", 0, 0),
        "module-1-ros2/README.md": ("ros2", 0, 0),
        "module-1-ros2/chapter-2-building/README.md": ("ros2", 2, 0),
        "module-1-ros2/chapter-2-building/01-workspaces.mdx": ("ros2", 2, 1),
        "module-1-ros2/chapter-2-building/10-last.md": ("ros2", 2, 10),
        "module-1-ros2/chapter-11-sensors/02-lidar.md": ("ros2", 11, 2),
        "module-2-simulation/chapter-4-gazebo/01-worlds.md": ("simulation", 4, 1),
    }
    lessons, problems = read_all(folder)
    lesson = lessons["module-1-ros2/chapter-2-building/10-last.md"]
    assert (lesson.module_title, lesson.chapter_title) == ("Module 1: The Nervous System", "Chapter 2: Building")
    assert lessons["module-1-ros2/chapter-11-sensors/02-lidar.md"].chapter_title == "Chapter 11: Sensors"
    assert list(lessons) == list(places(folder))
    assert problems == []


def test_the_book_maps_folders_to_modules(tmp_path: Path) -> None:
    folder = write_book(
        tmp_path,
        {
            "askbook.toml": '[modules]\n"module-2-simulation" = "gazebo"\n"docs/three" = "isaac"\n',
            "module-2-simulation/chapter-4-x/01-a.md": PAGE,
            "docs/three/chapter-6-y/01-b.md": PAGE,
            "elsewhere/01-c.md": (
                '---\nmodule: "Module 2: The Digital Twin"\nchapter: "Chapter 5: Sensors of ROS 2"\n'
                'lesson: "03"\n---\nx'
            ),
        },
    )
    assert places(folder) == {
        "docs/three/chapter-6-y/01-b.md": ("isaac", 6, 1),
        "module-2-simulation/chapter-4-x/01-a.md": ("gazebo", 4, 1),
        "elsewhere/01-c.md": ("gazebo", 5, 3),
    } | places(folder)
    lesson = read_all(folder)[0]["elsewhere/01-c.md"]
    assert (lesson.module, lesson.chapter, lesson.lesson) == ("gazebo", 5, 3)
    assert lesson.chapter_title == "Chapter 5: Sensors of ROS 2"


def test_mdbook_follows_its_summary(tmp_path: Path) -> None:
    summary = """# Summary

[Introduction](intro.md)

- [Getting Started](start.md)
  - [Install](start/install.md)
  - [Hello](./start/hello.md)
    - [Deeper](start/deeper.md)
- [Draft]()
- [Ownership](ownership.md)

# Advanced

- [Macros](macros.md)

[Appendix](appendix.md)
"""
    names = [
        "intro",
        "start",
        "start/install",
        "start/hello",
        "start/deeper",
        "ownership",
        "macros",
        "appendix",
        "stray",
    ]
    pages = {f"src/{name}.md": "text only" for name in names}
    lessons, problems = read_all(write_book(tmp_path, {"src/SUMMARY.md": summary, **pages}))
    assert [(file, lesson.module, lesson.chapter, lesson.lesson) for file, lesson in lessons.items()] == [
        ("src/intro.md", "main", 0, 0),
        ("src/start.md", "main", 1, 0),
        ("src/start/install.md", "main", 1, 1),
        ("src/start/hello.md", "main", 1, 2),
        ("src/start/deeper.md", "main", 1, 3),
        ("src/ownership.md", "main", 3, 0),
        ("src/macros.md", "advanced", 4, 0),
        ("src/appendix.md", "advanced", 0, 0),
        ("src/stray.md", "main", 0, 1),
    ]
    assert lessons["src/start/install.md"].title == "Install"
    assert lessons["src/start/install.md"].title_in_file is False
    assert lessons["src/start/install.md"].chapter_title == "Getting Started"
    assert lessons["src/start/install.md"].url.endswith("/start/install")
    assert problems == []


def test_docusaurus_positions_ids_and_slugs(tmp_path: Path) -> None:
    folder = write_book(
        tmp_path / "site",
        {
            "askbook.toml": 'base_url = "https://example.org/docs/"',
            "guide/_category_.json": '{"label": "The Guide", "position": 2}',
            "guide/basics/_category_.yml": "label: First Steps\nposition: 3\n",
            "guide/basics/zebra.md": "---\nsidebar_position: 1\nid: the-zebra\n---\n# Zebra",
            "guide/basics/ant.md": "---\nsidebar_position: 2\nslug: /ants\n---\n# Ant",
            "guide/basics/both.md": "---\nsidebar_position: 2\n---\n# Both",
            "guide/basics/_partial.mdx": "shared words",
            "guide/index.md": "# Guide",
            "api/_category_.json": '{"position": 1}',
            "api/über uns.md": "# Über uns",
        },
    )
    lessons, problems = read_all(folder)
    assert [(file, lesson.chapter, lesson.lesson) for file, lesson in lessons.items()] == [
        ("api/über uns.md", 0, 1),
        ("guide/index.md", 0, 0),
        ("guide/basics/zebra.md", 3, 1),
        ("guide/basics/ant.md", 3, 2),
        ("guide/basics/both.md", 3, 3),
    ]
    assert [lesson.url for lesson in lessons.values()] == [
        "https://example.org/docs/api/%C3%BCber%20uns",
        "https://example.org/docs/guide",
        "https://example.org/docs/guide/basics/the-zebra",
        "https://example.org/docs/ants",
        "https://example.org/docs/guide/basics/both",
    ]
    zebra = lessons["guide/basics/zebra.md"]
    assert (zebra.module, zebra.module_title, zebra.chapter_title) == ("guide", "The Guide", "First Steps")
    assert problems == []


def test_plain_folders_number_what_has_no_number(tmp_path: Path) -> None:
    folder = write_book(
        tmp_path,
        dict.fromkeys(
            (
                "start.md",
                "tools/hammer.md",
                "tools/wood/oak.md",
                "tools/metal/iron.md",
                "tools/metal/02-tin.md",
                "tools/metal/zinc.md",
            ),
            PAGE,
        ),
    )
    assert places(folder) == {
        "start.md": ("main", 0, 1),
        "tools/hammer.md": ("tools", 0, 1),
        "tools/metal/02-tin.md": ("tools", 1, 2),
        "tools/metal/iron.md": ("tools", 1, 1),
        "tools/metal/zinc.md": ("tools", 1, 3),
        "tools/wood/oak.md": ("tools", 2, 1),
    }
    assert read_all(folder)[1] == []


def test_a_deep_tree_gives_every_page_its_own_place(tmp_path: Path) -> None:
    paths = [
        f"files/en-us/web/api/{topic}/{page}/index.md"
        for topic in ("clock", "door")
        for page in ("open", "shut", "index")
    ]
    paths += ["files/en-us/web/api/index.md", "files/en-us/web/index.md", "files/en-us/glossary/atom/index.md"]
    lessons, problems = read_all(write_book(tmp_path, dict.fromkeys(paths, PAGE)))
    taken = [(lesson.module, lesson.chapter, lesson.lesson) for lesson in lessons.values()]

    assert len(set(taken)) == len({lesson.url for lesson in lessons.values()}) == len(paths)
    assert lessons["files/en-us/web/index.md"].identity.endswith(":web:0:0")
    assert lessons["files/en-us/web/api/index.md"].identity.endswith(":web:1:0")
    assert lessons["files/en-us/glossary/atom/index.md"].identity.endswith(":glossary:0:1")
    assert problems == []


def test_numbers_in_file_names_alone(tmp_path: Path) -> None:
    folder = write_book(
        tmp_path,
        {
            f"src/{name}.md": PAGE
            for name in ("ch01-00-start", "ch01-02-hello", "ch17-03-futures", "2024-01-05-news", "2024-02-05-news")
        },
    )
    assert places(folder) == {
        "src/2024-01-05-news.md": ("main", 0, 1),
        "src/2024-02-05-news.md": ("main", 0, 2),
        "src/ch01-00-start.md": ("main", 1, 0),
        "src/ch01-02-hello.md": ("main", 1, 2),
        "src/ch17-03-futures.md": ("main", 17, 3),
    }
