"""Writes docs/settings.md, docs/cli.md and docs/api.md from the code, and docs/contracts.md from tests/contracts.

tests/test_docs.py keeps them so.
"""

from __future__ import annotations

import html
import json
import tomllib
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from typer.core import TyperCommand, TyperGroup, TyperOption

from askbook.api.app import create_app
from askbook.cli.main import COMMANDS, load_command
from askbook.errors import CODES
from askbook.settings import Settings, setting_names

HERE = Path(__file__).parent
CONTRACTS = HERE.parent / "tests" / "contracts"
PAGES = ("settings.md", "cli.md", "api.md", "contracts.md")


def build_page(name: str) -> str:
    builders = {
        "settings.md": _settings_page,
        "cli.md": _cli_page,
        "api.md": _api_page,
        "contracts.md": _contracts_page,
    }
    return builders[name]()


SECTIONS = {
    "ASKBOOK_HOME": "Where the data lies",
    "ASKBOOK_EMBEDDER": "How the book is searched and read",
    "OPENAI_API_KEY": "Services",
    "ASKBOOK_ANSWERER": "Answers",
    "ASKBOOK_EMBEDDING_SECONDS": "How long things may take",
    "ASKBOOK_RATE_LIMIT": "Limits on requests",
    "ASKBOOK_HOST": "The server",
    "ASKBOOK_WORKER": "Ingestion on a server",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "Traces",
}
"""The headings of the settings page, each by the first setting below it."""


def _settings_page() -> str:
    parts = ["# Settings", "", "<!-- Made by `make docs`. -->", ""]
    parts += [
        "Set these in the environment, in `.env`, or under `[settings]` in the `askbook.toml` of the working "
        "folder (there in lower case)."
    ]
    parts += [
        "If a setting is in several places, the environment counts before `.env`, and `.env` before `askbook.toml`."
    ]
    parts += ["`askbook doctor` says which ones are set, and whether what they name works."]
    for name, what in setting_names().items():
        if name in SECTIONS:
            parts += ["", f"## {SECTIONS[name]}", "", "| name | default | what it is |", "|---|---|---|"]
        parts.append(f"| `{name}` | {_default(name)} | {what} |")
    return "\n".join([*parts, ""])


def _default(name: str) -> str:
    if name == "ASKBOOK_HOME":
        return (
            "the user's data folder: `~/.local/share/askbook` on Linux, "
            "`~/Library/Application Support/askbook` on macOS"
        )
    default = Settings.model_fields[name.lower()].default
    return "" if default in (None, "", ()) else f"`{default}`"


def _api_page() -> str:
    document = create_app(Settings(askbook_home=Path("unused"))).openapi()
    schemas = document["components"]["schemas"]
    parts = ["# API", "", "<!-- Made by `make docs`. -->", "", document["info"]["description"], ""]
    parts += ["A running server shows the same at `/docs`, and as OpenAPI at `/openapi.json`.", ""]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            parts += [f"## {method.upper()} {path}", "", operation.get("description", ""), ""]
            parts += _fields(operation.get("parameters", []), _body_of(operation, schemas))
            parts += [f"Answers {', '.join(sorted(operation['responses']))}.", ""]
    return "\n".join(parts)


def _body_of(operation: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    content = operation.get("requestBody", {}).get("content", {})
    reference = content.get("application/json", {}).get("schema", {}).get("$ref", "")
    return schemas.get(reference.rpartition("/")[2], {})


def _fields(parameters: list[dict[str, Any]], body: dict[str, Any]) -> list[str]:
    required = body.get("required", [])
    told = [(one["name"], one["in"], one.get("required"), one["schema"], one.get("description")) for one in parameters]
    told += [(name, "body", name in required, schema, None) for name, schema in body.get("properties", {}).items()]
    if not told:
        return []
    rows = [
        f"| `{name}` | {place} | {'yes' if needed else ''} | {_kind(schema)} | {about or _about(schema)} |"
        for name, place, needed, schema, about in told
    ]
    return ["| field | in | required | what | |", "|---|---|---|---|---|", *rows, ""]


LIMITS = {
    "minimum": "≥ {:g}",
    "maximum": "≤ {:g}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "maxItems": "at most {} entries",
    "maxProperties": "at most {} names",
}


def _about(schema: dict[str, Any]) -> str:
    parts = (schema, *schema.get("anyOf", []))
    return next((one["description"] for one in parts if "description" in one), "")


def _kind(schema: dict[str, Any]) -> str:
    """A type with its limits and its default, in a few words."""
    if choices := [one for one in schema.get("anyOf", []) if one.get("type") != "null"]:
        kind = " or ".join(map(_kind, choices))
    elif "enum" in schema:
        kind = ", ".join(f"`{one}`" for one in schema["enum"])
    elif schema.get("type") == "array":
        kind = f"list of {_kind(schema['items'])}"
    else:
        kind = schema.get("$ref", "").rpartition("/")[2] or schema.get("type", "any")
    words = [kind, *(words.format(schema[name]) for name, words in LIMITS.items() if name in schema)]
    if schema.get("default") is not None:
        words.append(f"default `{schema['default']}`")
    return ", ".join(words)


def _cli_page() -> str:
    root = TyperGroup(commands={name: load_command(name) for name in COMMANDS})
    parts = ["# Commands", "", "<!-- Made by `make docs`. -->", ""]
    parts += ["`askbook COMMAND --help` says the same in the terminal. In a checkout, write `.venv/bin/askbook`.", ""]
    parts += [
        "A command ends with 0 when it succeeded, with 1 when it could not be done, and with 2 when "
        "the command line was wrong."
    ]
    parts += ["Errors go to stderr and say what to do. Some have a code:", ""]
    parts += ["| code | what is wrong |", "|---|---|", *(f"| `{code}` | {what} |" for code, what in CODES.items()), ""]
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


# --- the contracts --------------------------------------------------------------------------------


def _contracts_page() -> str:
    tables = [tomllib.loads(file.read_text(encoding="utf-8")) for file in sorted(CONTRACTS.glob("seed_*.toml"))]
    examples = json.loads((CONTRACTS / "moving_over.json").read_text(encoding="utf-8"))
    counts = [_count(table) for table in tables]
    parts = [
        "# Contracts",
        "",
        "<!-- Made by `make docs` from tests/contracts. -->",
        "",
        "askbook keeps the contracts of five systems. Each field and rule of theirs is a row here: what it asks for, "
        "where it is in askbook, and, where askbook does otherwise, why. "
        "The rows are in `tests/contracts/seed_*.toml`; each names the tests that prove it, and "
        "`tests/contracts/test_tables.py` keeps it so.",
        "",
        "| contract | items | held | decided otherwise | being mended |",
        "|---|---|---|---|---|",
        *(
            f"| [{_heading(table)}](#{_anchor(_heading(table))}) | {_join(count)} |"
            for table, count in zip(tables, counts, strict=True)
        ),
        f"| all | {_join([sum(each) for each in zip(*counts, strict=True)])} |",
        "",
        "## Moving over",
        "",
        "A client of each contract sends what it always sent. These are real requests and askbook's real replies, cut "
        "to what the contract names; there is more in each reply, which a client may pass over. "
        "Over the network every request needs a key (401 without one). From loopback whoever asks without one is the "
        "owner of the machine, until `ASKBOOK_LOCAL_OWNER=0` or `ASKBOOK_PUBLIC_URL` is set.",
        "",
    ]
    for table in tables:
        parts += [f"### {_heading(table)}, side by side", ""]
        parts += [_example(one) for one in examples if one["seed"] == table["seed"]]
    for table in tables:
        parts += [f"## {_heading(table)}", "", table["about"], "", *_rows(table["row"]), ""]
    return "\n".join(parts)


def _heading(table: dict[str, Any]) -> str:
    return f"{table['seed']}: {table['title']}"


def _anchor(heading: str) -> str:
    return "".join(one for one in heading.lower().replace(" ", "-") if one.isalnum() or one == "-")


def _count(table: dict[str, Any]) -> list[int]:
    rows = table["row"]
    decided, mending = (sum(1 for row in rows if name in row) for name in ("decided", "mending"))
    return [len(rows), len(rows) - decided - mending, decided, mending]


def _join(numbers: list[int]) -> str:
    return " | ".join(map(str, numbers))


def _example(example: dict[str, str]) -> str:
    cells = "".join(
        f"<td><pre>{html.escape(example[side], quote=False)}</pre></td>" for side in ("request", "response")
    )
    # A blank line would end the table for a reader of Markdown.
    cells = cells.replace("\n\n", "\n&#8203;\n")
    return f"{example['says']}\n\n<table><tr>{cells}</tr></table>\n"


def _rows(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield "| item | asks for | in askbook | otherwise |"
    yield "|---|---|---|---|"
    for place, of_place in groupby(rows, lambda row: row["place"]):
        yield f"| **{place}** | | | |"
        yield from (f"| {row['name']} | {row['needs']} | {row['lives']} | {_otherwise(row)} |" for row in of_place)


def _otherwise(row: dict[str, Any]) -> str:
    if "decided" in row:
        number = row["decided"].rpartition("/")[2].partition("-")[0]
        return f"{row['why']} [Note {int(number)}]({row['decided'].removeprefix('docs/')})"
    return f"Being mended: {row['mending']}." if "mending" in row else ""


if __name__ == "__main__":
    for page in PAGES:
        (HERE / page).write_text(build_page(page), encoding="utf-8")
