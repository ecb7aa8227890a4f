"""VitePress and VuePress: `.vitepress/config.*`, `.vuepress/config.*`."""

from __future__ import annotations

import re
from functools import partial
from itertools import islice
from typing import Any

from askbook.book.front_matter import FrontMatter
from askbook.book.sites.javascript import find_object
from askbook.book.sites.site import Files, Leaf, Nav, Pages, Section, Site, find_page, read_each, to_leaf
from askbook.book.sites.values import dig, file_route, join, to_base_url, to_text, to_texts

MAX_REWRITES = 100
"""Of whole folders: each is tried on every page."""
_ENDS = ("ts", "mts", "js", "mjs", "cjs", "json")
_KEYS = ("title", "themeConfig", "theme", "locales", "base", "head")


def read_site(files: Files, folder: str) -> Site | None:
    vue = ("index", "README", "readme")
    return _read(files, folder, ".vitepress", "VitePress", ("index",)) or _read(
        files, folder, ".vuepress", "VuePress", vue
    )


def _read(files: Files, folder: str, home: str, generator: str, overviews: tuple[str, ...]) -> Site | None:
    if not files.names(folder).get(home):
        return None
    place = join(folder, home) or home
    config = files.first(place, *(f"config.{end}" for end in _ENDS), *(f"config/index.{end}" for end in _ENDS))
    if config is None:
        return None
    values = files.javascript(config, _KEYS)
    docs = files.docs(folder, values.get("srcDir") or ".", config, "srcDir")
    if docs is None:
        return None
    theme = values.get("themeConfig") or find_object(values.get("theme")) or {}
    locale = dig(values, "locales", "root") or dig(values, "locales", "/") or {}
    local_theme = dig(locale, "themeConfig") or dig(theme, "locales", "/") or {}
    hostname = dig(values, "sitemap", "hostname") or dig(theme, "hostname")
    locales = [key.strip("/") for key in values.get("locales") or {} if key not in ("root", "/")]
    sidebar = dig(local_theme, "sidebar") or dig(theme, "sidebar")
    if sidebar is None and (beside := files.first(folder, *(f"config.{end}" for end in _ENDS[:-1]))):
        sidebar = dig(files.javascript(beside, _KEYS), "themeConfig", "sidebar")
    written = {key: to for key, to in (values.get("rewrites") or {}).items() if isinstance(to, str)}
    rewrites = dict(sorted(written.items(), key=lambda pair: ":rest*" not in pair[0]))
    return Site(
        generator=generator,
        config=config,
        docs=docs,
        to_route=partial(_route, overviews, "" if values.get("cleanUrls") is True else ".html", rewrites),
        anchors="vue",
        title=to_text(values.get("title")) or to_text(dig(locale, "title")),
        base_url=to_base_url(hostname, values.get("base")),
        read_nav=partial(_read_nav, files, config, docs, sidebar, rewrites),
        ignore=to_texts(values.get("srcExclude")),
        language=(to_text(dig(locale, "lang")) or to_text(values.get("lang")) or "en").split("-")[0],
        locales=tuple(locales),
    )


def _route(overviews: tuple[str, ...], end: str, rewrites: dict[str, str], path: str, front: FrontMatter) -> str:
    permalink = front.text("permalink")
    if permalink and permalink.startswith("/") and ":" not in permalink:
        return permalink.lstrip("/")
    return file_route(_rewrite(rewrites, path), overviews, end)


def _rewrite(rewrites: dict[str, str], path: str) -> str:
    """Literal paths, and `a/:rest*` → `:rest*` for whole folders; patterns of other forms are not known."""
    if path in rewrites:
        return rewrites[path]
    for written, to in islice(rewrites.items(), MAX_REWRITES):
        from_folder, to_folder = (re.sub(r"\(?:rest\*\)?$", "", name) for name in (written, to))
        is_folder = written != from_folder and to != to_folder and ":" not in from_folder + to_folder
        if is_folder and path.startswith(from_folder):
            return to_folder + path.removeprefix(from_folder)
    return path


def _read_nav(
    files: Files, config: str, docs: str, sidebar: Any, rewrites: dict[str, str], pages: Pages, _likely: Pages
) -> Nav:
    """One list, or a list for each part of the site; items of both generators, old and new."""
    inner = {path: path.removeprefix(docs).lstrip("/") for path in pages}
    rewritten = {join(docs, _rewrite(rewrites, short)): path for path, short in inner.items()}
    shown = {path: pages[source] for path, source in rewritten.items() if path}

    def read_items(items: Any, base: str) -> Nav:
        if isinstance(items, dict):
            base, items = to_text(items.get("base")) or base, items.get("items")
        return read_each(items, lambda item: read_item(item, base))

    def read_item(item: Any, base: str) -> Nav:
        if isinstance(item, str):
            return read_link(item, None, base)
        if isinstance(item, list):
            return read_link(item[0], to_text(dig(item, 1)), base) if item and isinstance(item[0], str) else ()
        if not isinstance(item, dict):
            return ()
        base = to_text(item.get("base")) or to_text(item.get("prefix")) or base
        title = to_text(item.get("text")) or to_text(item.get("title"))
        link = item.get("link") if isinstance(item.get("link"), str) else item.get("path")
        leaf = read_link(link, title, base) if isinstance(link, str) else ()
        below = read_items(item.get("items") or item.get("children"), base)
        if not below:
            return leaf
        own = next((item.path for item in leaf if isinstance(item, Leaf)), None)
        return (Section(title, below, own),)

    def read_link(link: str, title: str | None, base: str) -> Nav:
        if "://" in link:
            return ()
        # Put together as they are written: a base of "/reference/default-theme-" is half a name.
        whole = link if link.startswith("/") else base + link
        if join("", whole) is None:
            files.complain_outside(config, link, "sidebar")
        path = find_page(shown, docs, whole, ("index", "README", "readme"))
        return to_leaf(rewritten.get(path) or join(docs, whole), title)

    if isinstance(sidebar, dict):
        return tuple(item for base, items in sidebar.items() for item in read_items(items, f"{base.rstrip('/')}/"))
    return read_items(sidebar, "/")
