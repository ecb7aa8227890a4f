"""Values, paths and addresses as the configs of sites have them."""

from __future__ import annotations

import posixpath
import re
from typing import Any
from urllib.parse import urlsplit

from askbook.book.files import EXTENSIONS


def dig(value: Any, *keys: str | int) -> Any:
    """`dig(config, "output", "html", "site-url")`; None where the way breaks off."""
    for key in keys:
        if isinstance(value, dict) and isinstance(key, str):
            value = value.get(key)
        elif isinstance(value, list) and isinstance(key, int) and key < len(value):
            value = value[key]
        else:
            return None
    return value


def to_text(value: object) -> str | None:
    """A text of one line, if it is one."""
    return " ".join(value.split())[:200] or None if isinstance(value, str) else None


def to_texts(value: object) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def to_base_url(*parts: object) -> str | None:
    """An address of the web, put together; None where the first part is none."""
    first = to_text(parts[0])
    try:
        is_address = bool(first) and urlsplit(first).scheme in ("http", "https") and bool(urlsplit(first).netloc)
    except ValueError:
        return None
    if not first or not is_address or re.search(r"[\s<>\"{}|\\^`]", first):
        return None
    rest = [text.strip("/") for part in parts[1:] if (text := to_text(part)) and text.strip("/.")]
    return "/".join([first.split("#")[0].split("?")[0].rstrip("/"), *rest])


def to_number(value: object) -> float | None:
    text = value if isinstance(value, str) else str(value) if isinstance(value, int | float) else ""
    return float(text) if re.fullmatch(r"-?\d{1,9}(\.\d{1,9})?", text.strip()) else None


def stem(path: str) -> str:
    return posixpath.splitext(posixpath.basename(path))[0]


def without_extension(path: str) -> str:
    return posixpath.splitext(path)[0] if path.lower().endswith(EXTENSIONS) else path


def folder_route(path: str, overviews: tuple[str, ...] = ("index", "README")) -> str:
    """`a/b.md` → `a/b/`, `a/index.md` → `a/`."""
    return file_route(path, overviews, "/")


def file_route(path: str, overviews: tuple[str, ...] = (), end: str = ".html") -> str:
    """`a/b.md` → `a/b.html`; an overview is its folder."""
    bare = without_extension(path)
    folder, name = posixpath.split(bare)
    if name in overviews:
        return f"{folder}/" if folder else ""
    return bare + end


def join(folder: str, written: str) -> str | None:
    """A path in the book; None where it leads out of it."""
    if "\0" in written or "\\" in written:
        return None
    whole = posixpath.normpath(posixpath.join("/", folder, written.lstrip("/")))
    depth = len([part for part in folder.split("/") if part])
    for part in written.split("/"):
        depth += 0 if part in ("", ".") else -1 if part == ".." else 1
        if depth < 0:
            return None
    return whole.strip("/")
