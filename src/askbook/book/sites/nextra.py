"""Nextra: `_meta.*` files beside the pages."""

from __future__ import annotations

import math
import posixpath
import re
from functools import cache, partial
from typing import Any

from askbook.book.front_matter import FrontMatter
from askbook.book.sites.javascript import SPREAD
from askbook.book.sites.site import Files, Nav, Page, Pages, Site, files_nav
from askbook.book.sites.values import dig, join, to_base_url, to_text, without_extension

_FOLDERS = ("content", "src/content", "pages", "src/pages", "app", "src/app")
_META = tuple(f"_meta.{end}" for end in ("js", "ts", "tsx", "jsx", "json"))
_GLOBAL = tuple(f"_meta.global.{end}" for end in ("js", "ts", "tsx", "jsx"))
_OVERVIEWS = ("index", "page")


def read_site(files: Files, folder: str) -> Site | None:
    config = files.first(folder, *(f"next.config.{end}" for end in ("js", "mjs", "ts", "cjs")))
    if config is None:
        return None
    docs = next((place for name in _FOLDERS if _has_meta(files, place := join(folder, name) or name)), None)
    if docs is None:
        return None
    found = files.javascript(config, ("i18n", "basePath"))
    language = to_text(dig(found, "i18n", "defaultLocale")) or "en"
    base = re.search(r"contentDirBasePath:\s*['\"]([^'\"]*)['\"]", files.text(config))
    by_language = join(docs, language) or docs
    return Site(
        generator="Nextra",
        config=config,
        docs=by_language if files.is_folder(by_language) else docs,
        to_route=partial(_route, base.group(1).strip("/") if base else ""),
        base_url=to_base_url(dig(found, "env", "SITE_URL")),
        read_nav=partial(_read_nav, files, by_language if files.is_folder(by_language) else docs),
        language=language,
    )


def _has_meta(files: Files, folder: str) -> bool:
    """In the folder or in one just below it."""
    inner = [join(folder, name) or name for name, is_folder in files.names(folder).items() if is_folder]
    return any(files.first(place, *_META, *_GLOBAL) for place in [folder, *inner[:50]])


def _route(base: str, path: str, _front: FrontMatter) -> str:
    bare = without_extension(path)
    folder, name = posixpath.split(bare)
    route = "/".join(
        part for part in (folder if name in _OVERVIEWS else bare).split("/") if not re.fullmatch(r"\(.*\)", part)
    )
    return f"{base}/{route}".strip("/")


def _complain_missing(files: Files, path: str, meta: dict[str, Any]) -> None:
    """Keys that name neither a page nor a folder beside the file; a separator, a menu, a link and `*` name none."""
    folder = posixpath.dirname(path)
    names = {without_extension(re.sub(r"\.[jt]sx?$", "", name)) for name in files.names(folder)}
    if any(name.startswith("[") for name in names):
        return
    missing: list[str] = []
    for key, value in meta.items():
        is_other = (
            dig(value, "type") in ("separator", "menu") or dig(value, "display") == "hidden" or dig(value, "href")
        )
        if key not in names and key != "*" and isinstance(value, str | dict) and not is_other:
            missing.append(key)
    if missing:
        count = f"{len(missing)} page{'' if len(missing) == 1 else 's'}"
        named = ", ".join(repr(key[:60]) for key in missing[:5]) + (" …" if len(missing) > 5 else "")
        files.complain(path, f"it names {count} that this book does not have: {named}")


def _is_read(key: str) -> bool:
    """Of an entry of a `_meta` file."""
    return key in ("title", "items", SPREAD)


def _read_nav(files: Files, docs: str, _pages: Pages, likely: Pages) -> Nav:
    """The keys of a folder's `_meta` come first, in their order; what it does not name follows by name."""
    written = files.first(docs, *_GLOBAL)
    whole = files.navigation(written, _is_read) if written else None

    @cache
    def meta(folder: str) -> dict[str, Any]:
        if whole:
            names = [name for name in folder.removeprefix(docs).strip("/").split("/") if name]
            found = dig(whole, *(key for name in names for key in (name, "items")))
            return found if isinstance(found, dict) else {}
        path = files.first(folder, *_META)
        found = files.navigation(path, _is_read) if path else {}
        if path:
            _complain_missing(files, path, found)
        return found

    def describe(path: str, page: Page | None) -> tuple[tuple[object, ...], str | None]:
        is_page = page is not None and page.path == path
        folder, name = posixpath.split(without_extension(path) if is_page else path)
        keys = list(meta(folder))
        value = meta(folder).get(name)
        return (keys.index(name) if name in keys else math.inf, name), to_text(value) or to_text(dig(value, "title"))

    return files_nav(likely, docs, _OVERVIEWS, describe)
