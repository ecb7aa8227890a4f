"""Starlight: astro.config.* and src/content/docs."""

from __future__ import annotations

import math
import posixpath
import re
from functools import partial
from typing import Any

from askbook.book.front_matter import FrontMatter
from askbook.book.sites.javascript import Call, find_object
from askbook.book.sites.site import (
    Files,
    Leaf,
    Nav,
    Pages,
    Section,
    Site,
    dig,
    files_nav,
    find_page,
    folder_route,
    join,
    read_each,
    to_base_url,
    to_leaf,
    to_number,
    to_text,
)


def read_starlight(files: Files, folder: str) -> Site | None:
    config = files.first(folder, *(f"astro.config.{end}" for end in ("mjs", "js", "ts", "mts", "cjs")))
    if config is None or "starlight" not in (files.text(config) or ""):
        return None
    found = files.javascript(config, ("site", "integrations"))
    values: dict[str, Any] = found if isinstance(found, dict) else {}
    calls = [one for one in values.get("integrations") or [] if isinstance(one, Call) and one.name == "starlight"]
    options: dict[str, Any] = next((one for call in calls if isinstance(one := find_object(call), dict)), {})
    docs = files.inside(folder, posixpath.join(str(values.get("srcDir") or "src"), "content/docs"), config, "srcDir")
    if docs is None or not files.is_folder(docs):
        return None
    title = options.get("title")
    language = to_text(options.get("defaultLocale")) or to_text(dig(options, "locales", "root", "lang")) or "en"
    return Site(
        generator="Starlight",
        config=config,
        docs=docs,
        to_route=partial(_route, values.get("trailingSlash") == "never"),
        title=to_text(title) or to_text(next(iter(title.values()), None) if isinstance(title, dict) else None),
        base_url=to_base_url(values.get("site"), values.get("base")),
        read_nav=partial(_read_nav, files, config, docs, options.get("sidebar"), language),
        ignore=("_*/", "404.md", "404.mdx"),
        language=language,
        locales=tuple(key for key in options.get("locales") or {} if key not in ("root", language)),
    )


def _route(bare: bool, path: str, front: FrontMatter) -> str:
    slug = front.text("slug")
    route = f"{slug.strip('/')}/" if slug is not None else folder_route(_slugged(path), ("index",))
    return route.rstrip("/") if bare else route.lstrip("/")


def _slugged(path: str) -> str:
    """As Astro makes addresses of file names: lower case, blanks as hyphens, other signs dropped."""
    bare, end = posixpath.splitext(path)
    return "/".join(re.sub(r"[^\w\- ]", "", part.lower()).replace(" ", "-") for part in bare.split("/")) + end


def _read_nav(files: Files, config: str, docs: str, sidebar: Any, language: str, pages: Pages, likely: Pages) -> Nav:
    below = join(docs, language) or docs
    root = below if any(path.startswith(f"{below}/") for path in pages) else docs

    folders: set[str | None] = set()
    """A page has its first place in the sidebar; to read its folder again gives it no other."""

    def from_files(folder: str) -> Nav:
        return files_nav(likely, folder, ("index",), partial(_rank, likely), partial(_label, likely))

    def read_item(item: Any) -> Nav:
        if isinstance(item, str):
            return read_link(item, None)
        if not isinstance(item, dict):
            return ()
        title, link = to_text(item.get("label")), item.get("slug", item.get("link"))
        directory = dig(item, "autogenerate", "directory")
        if isinstance(directory, str):
            folder = join(root, directory)
            found = from_files(folder) if folder is not None and folder not in folders else ()
            folders.add(folder)
            return (Section(title, found),) if title else found
        if isinstance(link, str):
            return read_link(link, title)
        return (Section(title, read_each(item.get("items"), read_item)),)

    def read_link(link: str, title: str | None) -> Nav:
        if join("", link) is None:
            files.complain_outside(config, link, "sidebar")
        if "://" in link:
            return ()
        written = link.strip("/") or "index"
        return to_leaf(find_page(pages, root, written, ("index",)), root, written, title)

    home = find_page(pages, root, "index", ("index",))
    return (
        (*((Leaf(home),) if home else ()), *read_each(sidebar, read_item))
        if isinstance(sidebar, list)
        else from_files(root)
    )


def _rank(pages: Pages, path: str, own: str | None) -> tuple[object, ...]:
    page = pages.get(path) or pages.get(own or "")
    order = to_number(dig(page.front.values, "sidebar", "order")) if page else None
    return (math.inf if order is None else order, path)


def _label(pages: Pages, path: str, own: str | None) -> str | None:
    page = pages.get(path)
    return to_text(dig(page.front.values, "sidebar", "label")) if page else None
