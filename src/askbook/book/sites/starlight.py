"""Starlight: astro.config.* and src/content/docs."""

from __future__ import annotations

import math
import posixpath
import re
from functools import partial
from typing import Any

from askbook.book.front_matter import FrontMatter
from askbook.book.sites.javascript import Call, find_object
from askbook.book.sites.site import Files, Nav, Page, Pages, Section, Site, files_nav, find_page, read_each, to_leaf
from askbook.book.sites.values import dig, folder_route, join, to_base_url, to_number, to_text


def read_site(files: Files, folder: str) -> Site | None:
    config = files.first(folder, *(f"astro.config.{end}" for end in ("mjs", "js", "ts", "mts", "cjs")))
    if config is None or "starlight" not in files.text(config):
        return None
    values = files.javascript(config, ("site", "integrations"))
    calls = (call for call in values.get("integrations") or [] if isinstance(call, Call) and call.name == "starlight")
    options: dict[str, Any] = next((found for found in map(find_object, calls) if isinstance(found, dict)), {})
    docs = files.docs(folder, posixpath.join(str(values.get("srcDir") or "src"), "content/docs"), config, "srcDir")
    if docs is None:
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
        return files_nav(likely, folder, ("index",), _describe)

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
        return to_leaf(find_page(pages, root, written, ("index",)) or join(root, written), title)

    if not isinstance(sidebar, list):
        return from_files(root)
    return (*to_leaf(find_page(pages, root, "index", ("index",))), *read_each(sidebar, read_item))


def _describe(path: str, page: Page | None) -> tuple[tuple[object, ...], str | None]:
    sidebar = page.front.values.get("sidebar") if page else None
    order = to_number(dig(sidebar, "order"))
    is_page = page is not None and page.path == path
    return (math.inf if order is None else order, path), to_text(dig(sidebar, "label")) if is_page else None
