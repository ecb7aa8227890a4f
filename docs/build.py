"""Writes docs/settings.md and docs/cli.md from the code; tests/test_docs.py keeps them so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main
from pydantic_core import PydanticUndefined
from typer.core import TyperCommand, TyperGroup, TyperOption

from askbook.cli.main import app
from askbook.settings import Settings

HERE = Path(__file__).parent
PAGES = ("settings.md", "cli.md")


def build_page(name: str) -> str:
    return {"settings.md": _settings_page, "cli.md": _cli_page}[name]()


def _settings_page() -> str:
    rows = []
    for name, field in Settings.model_fields.items():
        default = "" if field.default in (None, PydanticUndefined) else f"`{field.default}`"
        if name == "askbook_home":
            default = "the user's data folder"
        rows.append(f"| `{name.upper()}` | {default} | {field.description} |")
    return "\n".join(
        [
            "# Settings",
            "",
            "<!-- Made by `make docs`. -->",
            "",
            "From the environment, then `.env`, then `[settings]` in the `askbook.toml` of the working folder (names in lower case).",
            "",
            "| name | default | what it is |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


def _cli_page() -> str:
    root = typer.main.get_command(app)
    assert isinstance(root, TyperGroup)
    parts = ["# Commands", "", "<!-- Made by `make docs`. -->", ""]
    for name, command in _commands(root):
        parts += [f"## askbook {name}", "", command.help or "", "", *_parameters(command), ""]
    return "\n".join(parts)


def _commands(group: TyperGroup, before: str = "") -> Iterator[tuple[str, TyperCommand]]:
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from _commands(command, f"{before}{name} ")
        else:
            assert isinstance(command, TyperCommand)
            yield f"{before}{name}", command


def _parameters(command: TyperCommand) -> list[str]:
    rows = [_parameter(parameter) for parameter in command.params if not getattr(parameter, "hidden", False)]
    return ["| | |", "|---|---|", *rows] if rows else []


def _parameter(parameter: Any) -> str:
    names = " ".join(parameter.opts) if isinstance(parameter, TyperOption) else (parameter.name or "").upper()
    return f"| `{names}` | {getattr(parameter, 'help', '') or ''} |"


if __name__ == "__main__":
    for page in PAGES:
        (HERE / page).write_text(build_page(page), encoding="utf-8")
