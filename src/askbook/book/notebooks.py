"""A Jupyter notebook as Markdown: its text, its code in listings, and the first lines of what the code printed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from askbook.book.sections import open_fences, parse_blocks

OUTPUT_LINES, OUTPUT_CHARS = 20, 1_000

_TERMINAL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def read_notebook(content: str) -> str:
    """Raises what its structure makes it raise where it is none."""
    notebook: dict[str, Any] = json.loads(content)
    # Version 3 has them in worksheets.
    cells: Any = notebook.get("cells") or (notebook.get("worksheets") or [{}])[0].get("cells")
    if not isinstance(cells, list):
        raise ValueError("it has no cells")
    metadata: dict[str, Any] = notebook.get("metadata") or {}
    info, kernel = metadata.get("language_info") or {}, metadata.get("kernelspec") or {}
    name = str(info.get("name") or kernel.get("language") or "python").lower()
    language = re.sub(r"[^\w+#-]", "", "python" if name.startswith("ipython") else name)
    return "\n\n".join(part for cell in cells if isinstance(cell, dict) for part in _read_cell(cell, language)) + "\n"


def _read_cell(cell: dict[str, Any], language: str) -> Iterator[str]:
    source = _join(cell.get("source", cell.get("input", ""))).strip("\n")
    tags = (cell.get("metadata") or {}).get("tags") or ()
    if not source.strip() or "remove-cell" in tags or "remove_cell" in tags:
        return
    match cell.get("cell_type"):
        case "markdown":
            # A fence that its author left open ends with its cell.
            closers = (f"\n{block.mark}" for block in open_fences(parse_blocks(source.split("\n"))))
            yield source + "".join(closers)
        case "heading":
            yield f"{'#' * max(1, min(6, int(cell.get('level', 1))))} {source}"
        case "code":
            if "remove-input" not in tags and "remove_input" not in tags:
                yield _list(source, str(cell.get("language") or language))
            printed = "\n".join(filter(None, map(_read_output, cell.get("outputs") or ())))
            if printed.strip() and "remove-output" not in tags and "remove_output" not in tags:
                printed = printed.strip("\n")
                kept = "\n".join(printed.split("\n")[:OUTPUT_LINES])[:OUTPUT_CHARS]
                yield _list(kept if kept == printed else f"{kept}\n…", "text")
        case _:
            pass


def _read_output(output: Any) -> str:
    """Text alone; what comes beside a picture only names it."""
    if not isinstance(output, dict):
        return ""
    data: dict[str, Any] = output.get("data") or {}  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if any(kind.startswith("image/") for kind in data):
        return ""
    if output.get("output_type") in ("pyerr", "error"):  # pyright: ignore[reportUnknownMemberType]
        return f"{output.get('ename', 'Error')}: {output.get('evalue', '')}"  # pyright: ignore[reportUnknownMemberType]
    return _TERMINAL.sub("", _join(data.get("text/plain") or output.get("text") or "")).rstrip("\n")  # pyright: ignore[reportUnknownMemberType]


def _list(text: str, language: str) -> str:
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    mark = "`" * (longest + 1)
    return f"{mark}{language}\n{text}\n{mark}"


def _join(source: Any) -> str:
    return "".join(map(str, source)) if isinstance(source, list) else str(source or "")  # pyright: ignore[reportUnknownArgumentType]
