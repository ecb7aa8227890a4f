"""What a documentation site says of itself: the words that every generator's files are read into."""

from __future__ import annotations

import json
import os
import posixpath
import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote

from askbook.book.files import EXTENSIONS, MAX_SMALL_BYTES, Unreadable, read_bytes
from askbook.book.front_matter import FrontMatter, read_settings
from askbook.book.manifest import prettify
from askbook.book.sites.javascript import SPREAD, Call, read_javascript
from askbook.book.sites.values import (
    join,
    stem,
)
from askbook.domain import Problem

SCRIPTS = (".js", ".ts", ".mjs", ".mts", ".cjs", ".tsx", ".jsx", ".json")
MAX_SECTIONS = 24

AnchorStyle = Literal["github", "python", "pymdownx", "vue", "docutils"]


@dataclass(frozen=True, slots=True)
class Page:
    """A file as it was read, before it has a place."""

    path: str
    front: FrontMatter
    heading: str | None


@dataclass(frozen=True, slots=True)
class Leaf:
    path: str
    title: str | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """`page` is the section's own page, where it has one; without a title it has that page's."""

    title: str | None
    items: tuple[Leaf | Section, ...]
    page: str | None = None
    folder: str | None = None


Nav = tuple[Leaf | Section, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """A page's place in the site's own navigation."""

    title: str | None
    part: str | None
    chapter: int
    chapter_title: str
    lesson: int
    order: int


Pages = Mapping[str, Page]


@dataclass(frozen=True, slots=True)
class Site:
    generator: str
    config: str
    """The file that says so."""
    docs: str
    """The folder of its pages; empty for the book's own."""
    to_route: Callable[[str, FrontMatter], str]
    """A page's path in `docs` → its address below `base_url`."""
    anchors: AnchorStyle = "github"
    title: str | None = None
    base_url: str | None = None
    read_nav: Callable[[Pages, Pages], Nav] = lambda _pages, _likely: ()
    """The navigation in order, from all pages; one that is made from the files has those that are likely lessons."""
    entries: Mapping[str, Entry] | None = None
    """The navigation with numbers of its own, instead of `read_nav`."""
    ignore: tuple[str, ...] = ()
    """Patterns of what the site leaves out, as in .gitignore, from `docs` on."""
    language: str = "en"
    locales: tuple[str, ...] = ()
    """The folders of the other languages, where the config names them."""
    front_page: str = "index"
    only_nav: bool = False
    """Pages outside the navigation are not published."""
    values: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of the variables that its pages may name."""
    snippets: tuple[str, ...] = ()
    """The folders that its pages include snippets from."""
    underscored: bool = False
    """A name that begins with `_` means nothing to this generator."""

    def inner(self, path: str) -> str:
        return path.removeprefix(f"{self.docs}/") if self.docs else path

    def place(self, pages: Pages) -> tuple[dict[str, Page], dict[str, Entry], list[str]]:
        """The pages that are lessons, the places that the navigation gives them, and what it names in vain."""
        published = {path: page for path, page in pages.items() if (page.front.text("draft") or "").lower() != "true"}
        likely = {path: page for path, page in published.items() if not self._is_aside(page)}
        if self.entries is not None:
            named = list(self.entries)
            entries = {path: entry for path, entry in self.entries.items() if path in published}
        else:
            nav = self.read_nav(published, likely)
            named = [leaf.path for leaf, _, _ in _walk_nav(nav, published)]
            entries = number_nav(nav, published)
        others = {} if self.only_nav and entries else likely
        lessons = {path: page for path, page in published.items() if path in entries or path in others}
        missing = [
            self.inner(path)
            for path in dict.fromkeys(named)
            if path not in pages and posixpath.splitext(path)[1] in ("", *EXTENSIONS, ".rst")
        ]
        return (lessons, entries, missing) if lessons else (dict(pages), {}, missing)

    def _is_aside(self, page: Page) -> bool:
        """Beside the lessons; a README is the repository's, unless the generator makes it the site's first page."""
        inner = self.inner(page.path)
        is_own = not self.docs and _REPOSITORY.match(inner) and self.to_route(inner, page.front) != ""
        return bool(_ASIDE.match(inner) or is_own)


# What is beside the lessons of most sites; a navigation that names such a page makes it a lesson all the same.
_ASIDE = re.compile(r"(?:blog|posts?|news|tests?|__tests__|e2e|fixtures|partials|snippets)/|blog\.mdx?$")
_REPOSITORY = re.compile(
    r"(?:readme|contributing|changelog|changes|history|code[-_]of[-_]conduct|security|license|governance|maintainers"
    r"|agents|claude|pull_request_template)[^/]*$",
    re.IGNORECASE,
)
# Codes of languages, and not of all two letters: `go/`, `js/` and `ui/` are sections of many sites.
_CODE = (
    "(?:ar|az|bg|bn|ca|cn|cs|da|de|el|en|es|et|fa|fi|fr|he|hi|hr|hu|id|it|ja|ka|ko|lt|lv|nb|nl|no|pl|pt|ro|ru|sk|sl|sr|sv|ta|"
    "th|tr|uk|ur|uz|vi|zh)(?:[-_][A-Za-z]{2,4})?"
)
_LANGUAGE = re.compile(_CODE)
_LANGUAGE_END = re.compile(rf"\.({_CODE})(\.\w+)$")


def find_translations(inner: Iterable[str], language: str, locales: tuple[str, ...] = ()) -> set[str]:
    """Pages that say in another language what a page beside them says: `fr/start.md` or `start.fr.md` to `start.md`."""
    paths = set(inner)
    folders: dict[str, set[str]] = defaultdict(set)
    found: set[str] = set()
    for path in paths:
        first, slash, rest = path.partition("/")
        if slash and (_LANGUAGE.fullmatch(first) or first in locales):
            folders[first].add(rest)
        if (end := _LANGUAGE_END.search(path)) and end.group(1) != language:
            bare = path[: end.start()]
            if bare + end.group(2) in paths or f"{bare}.{language}{end.group(2)}" in paths:
                found.add(path)
    for folder, below in folders.items():
        if folder in locales or (folder != language and (language in folders or _mirrors(below, paths))):
            found.update(f"{folder}/{rest}" for rest in below)
    return found


def _mirrors(below: set[str], originals: set[str]) -> bool:
    """Half of the pages or more have their like; every folder has an overview, so that says nothing."""
    pages = {path for path in below if not is_overview(path)}
    return bool(pages) and 2 * len(pages & originals) >= len(pages)


# --- files ----------------------------------------------------------------------------------------


class Files:
    """The book's folder as far as a site's own files go: small texts in it, never through a link, each read once."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._told: set[object] = set()
        self.problems: list[Problem] = []
        self.names: Callable[[str], dict[str, bool]] = cache(self._list)
        """What stands in a folder, in order, and whether it is a folder itself; links are not there."""
        self.text: Callable[[str], str] = cache(self._load)
        """A file's text, empty where it cannot be had."""

    def _list(self, folder: str) -> dict[str, bool]:
        if self._is_linked(folder):
            return {}
        try:
            with os.scandir(self._home / folder) as entries:
                kept = sorted((entry for entry in entries if not entry.is_symlink()), key=lambda entry: entry.name)
                return {entry.name: entry.is_dir(follow_symlinks=False) for entry in kept}
        except OSError:
            return {}

    def _load(self, path: str) -> str:
        if not os.path.lexists(self._home / path) or self._is_linked(posixpath.dirname(path)):
            return ""
        try:
            return read_bytes(self._home / path, MAX_SMALL_BYTES).decode("utf-8-sig").replace("\r", "")
        except UnicodeDecodeError as error:
            self.complain(path, f"this file of the site is not UTF-8 (byte {error.start}); the book is read without it")
        except Unreadable as error:
            self.complain(path, f"this file of the site {error}; the book is read without it")
        return ""

    def _is_linked(self, folder: str) -> bool:
        parts = [part for part in folder.split("/") if part]
        return any(self._home.joinpath(*parts[:length]).is_symlink() for length in range(1, len(parts) + 1))

    def first(self, folder: str, *names: str) -> str | None:
        """The first of these files that there is."""
        return next((found for name in names if self.is_file(found := join(folder, name) or "")), None)

    def is_file(self, path: str) -> bool:
        folder, name = posixpath.split(path)
        return self.names(folder).get(name) is False

    def is_folder(self, path: str) -> bool:
        folder, name = posixpath.split(path)
        return not path or self.names(folder).get(name) is True

    def inside(self, folder: str, written: object, config: str, key: str) -> str | None:
        """A folder that a config names; None, and a warning, where it leads out of the book."""
        if not isinstance(written, str) or not written.strip():
            return None
        found = join(folder, written.strip())
        if found is None:
            self.complain_outside(config, written, key)
        return found

    def docs(self, folder: str, written: object, config: str, key: str) -> str | None:
        """The same, where there is such a folder."""
        found = self.inside(folder, written, config, key)
        return found if found is not None and self.is_folder(found) else None

    def complain_outside(self, path: str, written: str, key: str) -> None:
        """Of all that one file names, the first."""
        message = f"`{key}` names {written[:60]!r}, which leads out of the book; it is not followed"
        self.complain(path, message, key, (path, key))

    def complain(self, path: str, message: str, key: str | None = None, once: object = None) -> None:
        problem = Problem(path, message, key)
        if (once or problem) not in self._told:
            self._told.add(once or problem)
            self.problems.append(problem)

    def yaml(self, path: str) -> dict[str, Any]:
        values, complaint = read_settings(self.text(path))
        if complaint:
            self.complain(path, f"this file {complaint[:200]}")
        return values

    def toml(self, path: str, how: str = "") -> dict[str, Any]:
        """TOML, or JSON by its name."""
        try:
            values = json.loads(self.text(path)) if path.endswith("json") else tomllib.loads(self.text(path))
        except (ValueError, RecursionError) as error:
            self.complain(path, f"this file is not read{how}: {str(error)[:100]}; the book is read without it")
            return {}
        return values if isinstance(values, dict) else {}

    def javascript(self, path: str, wanted: tuple[str, ...] = ()) -> dict[str, Any]:
        """The object that a script exports, empty where it is another value."""
        text = self.text(path)
        found = read_javascript(path, text, self._import, wanted)
        if found is None and text:
            self.complain(
                path, "what this file says is made by a program, which is not run; the book is read without it"
            )
        if not isinstance(found, dict):
            return {}
        self.complain_unread(path, found, wanted)
        return found

    def navigation(self, path: str, is_read: Callable[[str], bool]) -> dict[str, Any]:
        """An object in a script or in JSON. Told are the parts in which a program would make something that is read;
        `is_read`: the keys within."""
        if path.endswith(".json"):
            return self.yaml(path)
        parts = self.javascript(path)
        unread = [key for key, part in parts.items() if _is_made(part, is_read)]
        if unread:
            named = "the whole" if SPREAD in unread else ", ".join(f"`{key}`" for key in unread[:5])
            self.complain(
                path, f"{named}: in part made by a program, which is not run; the book is read without that part"
            )
        return parts

    def complain_unread(self, path: str, values: Mapping[str, object], wanted: Iterable[str]) -> None:
        """Of a file whose rest can be read: what a program would make."""
        unread = [key for key in wanted if key in values and (values[key] is None or isinstance(values[key], Call))]
        if unread:
            named = ", ".join(f"`{key}`" for key in unread)
            self.complain(path, f"{named}: made by a program, which is not run; the book is read without it", unread[0])

    def _import(self, path: str, source: str) -> tuple[str, str] | None:
        whole = join(posixpath.dirname(path), source)
        if whole is None:
            return None
        bare = re.sub(r"\.[cm]?[jt]sx?$", "", whole)
        names = [whole, *(bare + end for end in SCRIPTS), *(f"{bare}/index{end}" for end in SCRIPTS)]
        found = next((name for name in names if self.is_file(name)), None)
        return (found, self.text(found)) if found else None


def _is_made(value: object, is_read: Callable[[str], bool]) -> bool:
    if isinstance(value, list):
        return any(_is_made(item, is_read) for item in value)
    if isinstance(value, dict):
        return any(_is_made(item, is_read) for key, item in value.items() if is_read(key))
    return value is None or isinstance(value, Call)


# --- navigation -----------------------------------------------------------------------------------


def find_page(pages: Pages, docs: str, link: str, overviews: tuple[str, ...] = ("index", "README")) -> str | None:
    """The page that a link of the navigation means: with an extension or without, or its folder's overview."""
    bare = unquote(link.split("#")[0].split("?")[0])
    whole = join(docs, re.sub(r"\.html$", "", bare))
    if whole is None or (docs and not f"{whole}/".startswith(f"{docs}/")):
        return None
    names = [whole, *(whole + end for end in EXTENSIONS)] if not bare.endswith("/") else []
    names += [f"{whole}/{name}{end}".lstrip("/") for name in overviews for end in EXTENSIONS]
    return next((name for name in names if name in pages), None)


def read_each(items: object, read_item: Callable[[Any], Nav]) -> Nav:
    """Of a list as a config has it; nothing of what is no list."""
    return tuple(found for item in (items if isinstance(items, list) else ()) for found in read_item(item))


def to_leaf(path: str | None, title: str | None = None) -> Nav:
    """A page of the navigation; one that is not there has the path that it would have, so that it can be told."""
    return (Leaf(path, title),) if path else ()


def own_title(page: Page) -> str | None:
    title = page.front.text("title") or page.heading or page.front.text("sidebar_label")
    return title[:200] if title else None


def number_nav(nav: Nav, pages: Pages) -> dict[str, Entry]:
    """The outer sections are modules, those below chapters, their pages lessons; a section's own page is lesson 0."""
    entries: dict[str, Entry] = {}
    chapters: dict[str | None, dict[tuple[int, ...], int]] = defaultdict(dict)
    lessons: dict[tuple[str | None, int], int] = defaultdict(int)
    for leaf, above, is_own in _walk_nav(nav, pages):
        if leaf.path in entries or leaf.path not in pages:
            continue
        part = above[0][0] if above else None
        chapter, chapter_title = 0, ""
        if len(above) > 1:
            known = chapters[part]
            chapter, chapter_title = known.setdefault(above[1][1], len(known) + 1), above[1][0]
        key = (part, chapter)
        is_first = is_own and key not in lessons and len(above) < 3
        lessons[key] += 0 if is_first else 1
        entries[leaf.path] = Entry(leaf.title, part, chapter, chapter_title, lessons[key], len(entries) + 1)
    return entries


Above = tuple[tuple[str, tuple[int, ...]], ...]
"""The names of sections and their places in the navigation, from the outermost down."""


def _walk_nav(
    items: Nav, pages: Pages, above: Above = (), place: tuple[int, ...] = (), own: str | None = None
) -> Iterator[tuple[Leaf, Above, bool]]:
    """Every page, the sections above it, and whether it is its section's own."""
    for number, item in enumerate(items):
        if isinstance(item, Leaf):
            yield item, above, number == 0 and (item.path == own or is_overview(item.path))
        else:
            title, here = item.title or _title_of(item, pages), (*place, number)
            inner = (*above, (title, here)) if title and len(above) < MAX_SECTIONS else above
            yield from _walk_nav((*to_leaf(item.page), *item.items), pages, inner, here, item.page)


def is_overview(path: str) -> bool:
    return stem(path).lower() in ("index", "readme", "_index", "page")


def _title_of(section: Section, pages: Pages) -> str | None:
    """Of a section without a title: what its own page is called, or that at its head."""
    path = section.page or next((item.path for item in section.items[:1] if isinstance(item, Leaf)), None)
    if path is None or path not in pages:
        return None
    return own_title(pages[path]) or prettify(posixpath.basename(posixpath.dirname(path)))


Describe = Callable[[str, Page | None], tuple[tuple[Any, ...], str | None]]
"""A page's path and the page, or a folder's path and its own page → its rank among its neighbours, and its label."""


def files_nav(pages: Pages, root: str, overviews: tuple[str, ...], describe: Describe) -> Nav:
    """A navigation made from the files below a folder."""
    inner = [path for path in pages if not root or path.startswith(f"{root}/")]
    own, nav = _folder_nav(pages, inner, root, overviews, describe)
    # A folder `docs` beside a few pages is the book: its sections are the outer ones.
    main = next((item for item in nav if isinstance(item, Section) and item.folder in ("docs", "documentation")), None)
    opened = (*to_leaf(main.page), *main.items) if main else ()
    return (*to_leaf(own), *(inner for item in nav for inner in (opened if item is main else (item,))))


def _folder_nav(
    pages: Pages, paths: list[str], folder: str, overviews: tuple[str, ...], describe: Describe, depth: int = 0
) -> tuple[str | None, Nav]:
    """A folder's own page, and all else that is in it."""
    direct: list[str] = []
    below: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        name, is_deeper, _ = path.removeprefix(folder).lstrip("/").partition("/")
        (below[name] if is_deeper and depth < MAX_SECTIONS else direct).append(path)
    by_name = {stem(path).lower(): path for path in reversed(direct)}
    own = next((by_name[name] for name in overviews if name in by_name), None)
    items: list[tuple[tuple[Any, ...], Leaf | Section]] = []
    for path in direct:
        if path != own:
            rank, label = describe(path, pages[path])
            items.append((rank, Leaf(path, label)))
    for name, inner_paths in below.items():
        inner_folder = f"{folder}/{name}".lstrip("/")
        page, inner = _folder_nav(pages, inner_paths, inner_folder, overviews, describe, depth + 1)
        rank, label = describe(inner_folder, pages[page] if page else None)
        title = label or (None if page else prettify(name))
        if inner:
            items.append((rank, Section(title, inner, page, name)))
        elif page:
            items.append((rank, Leaf(page, title)))
    return own, tuple(item for _, item in sorted(items, key=lambda ranked: ranked[0]))
