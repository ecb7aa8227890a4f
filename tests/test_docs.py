"""The docs say what the code does: generated pages are fresh, README commands run, the Makefile is documented."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from askbook.settings import setting_names
from cli.serving import serve

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def _builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build", ROOT / "docs" / "build.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", ["settings.md", "cli.md", "api.md", "contracts.md"])
def test_generated_pages_are_fresh(page: str) -> None:
    assert (ROOT / "docs" / page).read_text(encoding="utf-8") == _builder().build_page(page), "run `make docs`"


def test_every_setting_is_documented() -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in page and what for name, what in setting_names().items())


def test_readme_commands_run(tmp_path: Path) -> None:
    """Every `.venv/bin/askbook` line of the README, on a small folder."""
    folder = tmp_path / "your" / "folder"
    folder.mkdir(parents=True)
    (folder / "a.md").write_text("# Your words\n\nA tf2 buffer keeps transforms for ten seconds.\n")
    commands = re.findall(r"^(?:\$ )?\.venv/bin/askbook (.+?)(?: {2,}#.*)?$", README, re.MULTILINE)
    commands = [command for command in commands if command != "serve"]
    assert {command.split()[0] for command in commands} == {
        "ingest",
        "ask",
        "chat",
        "threads",
        "search",
        "explain",
        "verify",
        "doctor",
    }
    askbook = f'{sys.executable} -c "from askbook.cli.main import run; run()"'
    commands.sort(key=lambda command: not command.startswith("ingest"))
    for command in commands:
        done = subprocess.run(
            f"{askbook} {command}",
            shell=True,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=os.environ | {"ASKBOOK_HOME": str(tmp_path / "home")},
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"


def test_readme_curl_lines_work_as_printed(demo_home: Path) -> None:
    commands = re.findall(r"^(curl .+)$", README, re.MULTILINE)
    assert commands
    with serve(demo_home) as server:
        for command in commands:
            line = f"{command.replace('http://127.0.0.1:8000', server.url)} --fail-with-body -sS"
            done = subprocess.run(line, shell=True, capture_output=True, text=True)
            assert done.returncode == 0, f"{command}: {done.stderr}{done.stdout}"
            assert "URDF" in done.stdout or "joint" in done.stdout
            if "stream" in command:
                assert done.stdout.startswith(("event: ", "data: ")) and done.stdout.count("data: ") > 2


def test_readme_has_no_figure_left_out() -> None:
    assert not re.search(r"\b[A-Z]+_TABLE\b|TODO|TBD", README)


def test_readme_paths_exist() -> None:
    paths = re.findall(r"`(src/[^`]+)`", README) + re.findall(r"\]\(((?!http)[^)#]+)\)", README)
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _links(page: Path) -> list[tuple[str, str]]:
    """Each link inside the project, as file and heading; an example between backticks is none."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    found = re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", text)
    return [(name, anchor) for name, anchor in found]


def test_every_link_of_a_page_leads_somewhere() -> None:
    pages = [page for folder in (ROOT, ROOT / "docs", ROOT / "docs" / "decisions") for page in folder.glob("*.md")]
    links = [(page, name, anchor) for page in pages for name, anchor in _links(page)]
    assert len(links) > 100
    broken: list[str] = []
    for page, name, anchor in links:
        target = page.parent / name if name else page
        if not target.exists() or (anchor and anchor not in _anchors(target)):
            broken.append(f"{page.name}: {name}#{anchor}")
    assert broken == []


def test_every_make_target_says_what_it_does() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    assert phony
    for target in phony[1].split():
        assert re.search(rf"^{target}:.*## \w", makefile, re.MULTILINE), target


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-torture.lock", "requirements-uv.lock"])
def test_the_tree_names_no_registry(name: str) -> None:
    lock = (ROOT / name).read_text(encoding="utf-8")
    assert "--hash=sha256:" in lock
    assert not re.search(r"https?://|index-url|find-links", lock)
