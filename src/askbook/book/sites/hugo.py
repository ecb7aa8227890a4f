"""Hugo, and themes such as Docsy: hugo.* or config.*, `_index.md`, weights."""

from __future__ import annotations

import math
import posixpath
import re
from functools import partial
from typing import Any

from askbook.book.front_matter import FrontMatter
from askbook.book.markup.references import flatten
from askbook.book.sites.site import Files, Nav, Page, Pages, Site, files_nav, own_title
from askbook.book.sites.values import dig, folder_route, join, to_base_url, to_number, to_text

_ENDS = ("toml", "yaml", "yml", "json")
_HUGO = tuple(
    f"{name}.{end}" for name in ("hugo", "config/_default/hugo", "config/_default/config", "config") for end in _ENDS
)
_OVERVIEWS = ("_index", "index")


def read_site(files: Files, folder: str) -> Site | None:
    names = files.names(folder)
    config = files.first(folder, *_HUGO) if any(name.startswith(("hugo.", "config")) for name in names) else None
    if config is None:
        return None
    values = _read_config(files, config)
    for key in ("languages", "params") if "/_default/" in config else ():
        beside = files.first(posixpath.dirname(config), *(f"{key}.{end}" for end in _ENDS))
        if beside and not values.get(key):
            values[key] = _read_config(files, beside)
    languages = dig(values, "languages")
    language = to_text(values.get("defaultcontentlanguage")) or "en"
    own = dig(languages, language) or {}
    written = dig(own, "contentdir") or values.get("contentdir") or "content"
    content = files.docs(folder, written, config, "contentDir")
    if content is None or not {"baseurl", "theme", "module"} & set(values):
        return None
    by_language = join(content, language) or content
    in_folder = str(values.get("defaultcontentlanguageinsubdir")).lower() == "true"
    return Site(
        generator="Hugo",
        config=config,
        docs=by_language if files.is_folder(by_language) and by_language != content else content,
        to_route=partial(_route, str(values.get("uglyurls")).lower() == "true"),
        title=to_text(dig(own, "title")) or to_text(values.get("title")),
        base_url=to_base_url(dig(own, "baseurl") or values.get("baseurl"), language if in_folder else None),
        read_nav=partial(_read_nav, content, language),
        values={f"param {name}": value for name, value in flatten(values.get("params")).items()},
        ignore=("*.ipynb",),
        language=language,
    )


def _read_config(files: Files, config: str) -> dict[str, Any]:
    """Hugo does not tell `baseURL` from `baseurl`."""
    return _lowered(files.yaml(config) if config.endswith(("yaml", "yml")) else files.toml(config))


def _lowered(values: Any, depth: int = 0) -> Any:
    if not isinstance(values, dict) or depth > 3:
        return values
    return {str(key).lower(): _lowered(value, depth + 1) for key, value in values.items()}


def _route(ugly: bool, path: str, front: FrontMatter) -> str:
    written = front.text("url")
    if written:
        return "" if "://" in written else written.lstrip("/")
    folder, name = posixpath.split(path)
    slug = front.text("slug")
    if slug and name.startswith("index."):
        path = f"{posixpath.dirname(folder)}/{slug}/{name}".lstrip("/")
    elif slug and not name.startswith("_index."):
        path = f"{folder}/{slug}.md".lstrip("/")
    route = folder_route(re.sub(r"\.[a-z]{2}(\.\w+)$", r"\1", path), ("_index", "index")).lower().replace(" ", "-")
    return f"{route.rstrip('/')}.html" if ugly and route and not name.startswith("_index.") else route


def _read_nav(content: str, language: str, _pages: Pages, likely: Pages) -> Nav:
    """By weight, then by title: the sections are the folders, an `_index.md` names its folder."""
    root = join(content, language) or content
    root = root if any(path.startswith(f"{root}/") for path in likely) else content
    return files_nav(likely, root, _OVERVIEWS, _describe)


def _describe(path: str, page: Page | None) -> tuple[tuple[object, ...], str | None]:
    weight = to_number(page.front.values.get("weight")) if page else None
    label = (page.front.text("linkTitle", "linktitle") or own_title(page)) if page else None
    return (weight or math.inf, label or "", path), label
