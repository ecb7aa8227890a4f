"""Nextra: `_meta.*` files beside the pages."""

from __future__ import annotations

import math
import posixpath
import re
from functools import partial
from typing import Any

from askbook.book.front_matter import FrontMatter
from askbook.book.sites.javascript import SPREAD
from askbook.book.sites.site import (
    Files,
    Nav,
    Pages,
    Site,
    dig,
    files_nav,
    join,
    to_base_url,
    to_text,
    without_extension,
)

_FOLDERS = ("content", "src/content", "pages", "src/pages", "app", "src/app")
_META = tuple(f"_meta.{end}" for end in ("js", "ts", "tsx", "jsx", "json"))
_GLOBAL = tuple(f"_meta.global.{end}" for end in ("js", "ts", "tsx", "jsx"))
_OVERVIEWS = ("index", "page")


def read_nextra(files: Files, folder: str) -> Site | None:
    config = files.first(folder, *(f"next.config.{end}" for end in ("js", "mjs", "ts", "cjs")))
    if config is None:
        return None
    text = files.text(config) or ""
    docs = next((place for name in _FOLDERS if _has_meta(files, place := join(folder, name) or name)), None)
    if docs is None:
        return None
    found = files.javascript(config, ("i18n", "basePath"))
    language = to_text(dig(found, "i18n", "defaultLocale")) or "en"
    base = re.search(r"contentDirBasePath:\s*['\"]([^'\"]*)['\"]", text)
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
    pages = [key for key, value in meta.items() if key != "*" and (isinstance(value, str) or _is_page(value))]
    if missing := [key for key in pages if key not in names]:
        count = f"{len(missing)} page{'' if len(missing) == 1 else 's'}"
        named = ", ".join(repr(key[:60]) for key in missing[:5]) + (" …" if len(missing) > 5 else "")
        files.complain(path, f"it names {count} that this book does not have: {named}")


def _is_read(key: str) -> bool:
    """Of an entry of a `_meta` file."""
    return key in ("title", "items", SPREAD)


def _is_page(value: object) -> bool:
    is_other = dig(value, "type") in ("separator", "menu") or dig(value, "display") == "hidden" or dig(value, "href")
    return isinstance(value, dict) and not is_other


def _read_nav(files: Files, docs: str, _pages: Pages, likely: Pages) -> Nav:
    """The keys of a folder's `_meta` come first, in their order; what it does not name follows by name."""
    written = files.first(docs, *_GLOBAL)
    whole = files.javascript(written) if written else None
    if written and isinstance(whole, dict):
        files.complain_unread_parts(written, whole, _is_read)
    metas: dict[str, dict[str, Any]] = {}

    def meta(folder: str) -> dict[str, Any]:
        if folder not in metas:
            metas[folder] = read_meta(folder)
        return metas[folder]

    def read_meta(folder: str) -> dict[str, Any]:
        if isinstance(whole, dict):
            keys = [
                part for name in folder.removeprefix(docs).strip("/").split("/") if name for part in (name, "items")
            ]
            found = dig(whole, *keys)
        else:
            path = files.first(folder, *_META)
            found = None if path is None else files.yaml(path) if path.endswith("json") else files.javascript(path)
            if path and isinstance(found, dict):
                if not path.endswith("json"):
                    files.complain_unread_parts(path, found, _is_read)
                _complain_missing(files, path, found)
        return found if isinstance(found, dict) else {}

    def rank(path: str, own: str | None) -> tuple[object, ...]:
        folder, name = key_of(path)
        keys = list(meta(folder))
        return (keys.index(name) if name in keys else math.inf, name)

    def label(path: str, own: str | None) -> str | None:
        folder, name = key_of(path)
        value = meta(folder).get(name)
        return to_text(value) or to_text(dig(value, "title"))

    def key_of(path: str) -> tuple[str, str]:
        return posixpath.split(without_extension(path) if path in likely else path)

    return files_nav(likely, docs, _OVERVIEWS, rank, label)
