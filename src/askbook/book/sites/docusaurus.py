"""Docusaurus: docusaurus.config.*, sidebars, `_category_` files. Of versioned docs the current ones are read."""

from __future__ import annotations

import math
import posixpath
import re
from functools import partial
from typing import Any

from askbook.book.front_matter import FrontMatter
from askbook.book.sites.javascript import find_object
from askbook.book.sites.site import Files, Nav, Page, Pages, Section, Site, files_nav, read_each, to_leaf
from askbook.book.sites.values import dig, join, stem, to_base_url, to_number, to_text, to_texts, without_extension

CONFIGS = tuple(f"docusaurus.config.{end}" for end in ("js", "ts", "mjs", "mts", "cjs"))
_KEYS = ("title", "url", "baseUrl", "presets", "themeConfig")
_PREFIX = re.compile(r"\A\d++\s*+[-_.]++\s*+(?=[^-_.\s])")
_NO_PREFIX = re.compile(r"\d+[-_.]\d+")
# What an item of a sidebar may say beside what is read of it.
_UNREAD = ("link", "href", "collapsed", "collapsible", "className", "customProps", "description", "key", "value")
CATEGORIES = ("_category_.json", "_category_.yml", "_category_.yaml")
_OVERVIEWS = ("index", "readme")


def read_site(files: Files, folder: str) -> Site | None:
    config = files.first(folder, *CONFIGS)
    if config is None:
        return None
    values = files.javascript(config, _KEYS)
    options = _docs_options(values)
    files.complain_unread(config, options, ("path", "routeBasePath", "sidebarPath", "exclude"))
    docs = files.docs(folder, options.get("path") or "docs", config, "path")
    if docs is None:
        return None
    route = options.get("routeBasePath")
    version = _version_route(files, folder, options)
    return Site(
        generator="Docusaurus",
        config=config,
        docs=docs,
        to_route=partial(_route, values.get("trailingSlash")),
        title=to_text(values.get("title")),
        base_url=to_base_url(values.get("url"), values.get("baseUrl"), "docs" if route is None else route, version),
        read_nav=partial(_read_nav, files, folder, docs, options),
        ignore=to_texts(options.get("exclude")) or ("_*/", "*.test.*", "__tests__/"),
        language=to_text(dig(values, "i18n", "defaultLocale")) or "en",
    )


def _docs_options(values: dict[str, Any]) -> dict[str, Any]:
    for preset in values.get("presets") or []:
        if isinstance(options := dig(find_object(preset) or preset, 1, "docs"), dict):
            return options
    for plugin in values.get("plugins") or []:
        if "plugin-content-docs" in str(dig(plugin, 0)) and isinstance(options := dig(plugin, 1), dict):
            return options
    return {}


def _version_route(files: Files, folder: str, options: dict[str, Any]) -> str | None:
    """Where there are older versions, the newest has the plain address and the current docs stand below `next`."""
    named = to_text(dig(options, "versions", "current", "path"))
    versions = files.first(folder, "versions.json")
    if named is not None or versions is None or options.get("lastVersion") == "current":
        return named
    return "next" if "".join(files.text(versions).split()) not in ("", "[]") else None


def without_prefix(name: str) -> str:
    return name if _NO_PREFIX.match(name) else _PREFIX.sub("", name, count=1)


def _route(trailing_slash: object, path: str, front: FrontMatter) -> str:
    folder = posixpath.dirname(path)
    folders = [without_prefix(part) for part in folder.split("/") if part]
    slug, name = front.text("slug"), front.text("id") or without_prefix(stem(path))
    is_own = stem(path).lower() in (*_OVERVIEWS, posixpath.basename(folder).lower())
    if slug:
        route = join("" if slug.startswith("/") else "/".join(folders), slug) or ""
        is_folder = slug.endswith("/") and bool(route)
    elif is_own:
        route, is_folder = "/".join(folders), bool(folders)
    else:
        route, is_folder = "/".join([*folders, name]), False
    if trailing_slash is True or (is_folder and trailing_slash is not False):
        return f"{route}/" if route else ""
    return route


def _read_nav(files: Files, folder: str, docs: str, options: dict[str, Any], pages: Pages, likely: Pages) -> Nav:
    """All sidebars one behind the other; none where the files alone give the order."""
    by_id: dict[str, str] = {}
    for path, page in pages.items():
        inner = without_extension(path.removeprefix(docs).lstrip("/"))
        *folders_above, name = map(without_prefix, inner.split("/"))
        by_id["/".join([*folders_above, page.front.text("id") or name])] = path
    path = join(folder, str(options.get("sidebarPath") or ""))
    known = path if path and files.is_file(path) else None
    sidebars = known or files.first(folder, *(f"sidebars.{end}" for end in ("js", "ts", "json", "mjs", "cjs")))
    if sidebars is None or options.get("sidebarPath") is False:
        return ()
    read = files.navigation(sidebars, lambda key: key not in _UNREAD)
    bars = [bar for bar in read.values() if isinstance(bar, list | dict)]
    folders: set[str] = set()

    def read_items(items: object) -> Nav:
        if isinstance(items, dict) and "type" not in items:
            items = [{label: below} for label, below in items.items()]
        return read_each(items if isinstance(items, list) else [items], read_item)

    def read_item(item: Any) -> Nav:
        if isinstance(item, str):
            return to_leaf(by_id.get(item) or join(docs, item))
        if not isinstance(item, dict):
            return ()
        label = to_text(item.get("label"))
        match item.get("type"):
            case "doc":
                written = str(item.get("id"))
                return to_leaf(by_id.get(written) or join(docs, written), label)
            case "category":
                own = by_id.get(str(dig(item, "link", "id")))
                return (Section(label, read_items(item.get("items") or []), own),)
            case "autogenerated":
                root = join(docs, str(item.get("dirName") or "."))
                # A page has its first place in the sidebars; to read its folder again gives it no other.
                if root is None or root in folders:
                    return ()
                folders.add(root)
                return _from_files(files, root, likely)
            case None:
                return tuple(Section(to_text(name), read_items(below)) for name, below in item.items())
            case _:
                return ()

    if bars and all(dig(bar, 0, "type") == "autogenerated" and len(bar) == 1 for bar in bars):
        return ()
    return tuple(item for bar in bars for item in read_items(bar))


def _from_files(files: Files, root: str, likely: Pages) -> Nav:
    def describe(path: str, page: Page | None) -> tuple[tuple[object, ...], str | None]:
        is_folder = page is None or page.path != path
        found = files.first(path, *CATEGORIES) if is_folder else None
        category = files.yaml(found) if found else {}
        name = posixpath.basename(path)
        number = to_number(category.get("position"))
        if number is None and page:
            number = to_number(page.front.values.get("sidebar_position"))
        prefix = re.match(r"\d+", name)
        if number is None and prefix and without_prefix(name) != name:
            number = float(prefix[0])
        label = to_text(category.get("label")) or (page.front.text("sidebar_label") if page else None)
        return (math.inf if number is None else number, name), label

    return files_nav(likely, root, _OVERVIEWS, describe)
