"""Where each file stands in its book: module, chapter and lesson, titles and address, for every layout we know."""

from __future__ import annotations

import math
import posixpath
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar
from urllib.parse import quote

from askbook.book.front_matter import MAX_NUMBER, read_number
from askbook.book.manifest import prettify, slug
from askbook.book.sites.site import AnchorStyle, Entry, Page, Site, own_title
from askbook.domain import Book, Problem, to_public_id

MAIN = "main"
OVERVIEWS = ("readme", "index", "_index")
WRAPPERS = ("docs", "doc", "src", "content", "book", "chapters", "files", "pages")

Folder = tuple[str, ...]
Key = TypeVar("Key")

_LANGUAGE = re.compile(r"[a-z]{2}(?:-[a-z]{2})?", re.IGNORECASE)
_KIND = r"(?:module|chapter|chap|ch|lesson|part|unit|section|week|day)"
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_NUMBER = re.compile(rf"(?:{_KIND}[-_ ]?)?(\d{{1,4}})(?=[-_ ]|\.(?!\d)|$)", re.IGNORECASE)
_CHAPTER_FOLDER = re.compile(r"(?:chapter|chap|ch)[-_ ]?\d{1,4}(?![\d.])", re.IGNORECASE)
_CHAPTER_AND_LESSON = re.compile(
    r"(?:chapter|chap|ch)[-_ ]?(\d{1,4})[-_. ](?:lesson[-_ ]?)?(\d{1,4})(?=[-_. ]|$)", re.IGNORECASE
)
_NAME_BEHIND_NUMBER = re.compile(rf"(?:{_KIND}[-_ ]?)?\d{{1,4}}[-_. ]+(?=\D)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Category:
    """Docusaurus' `_category_` file of a folder."""

    label: str | None = None
    position: float | None = None


@dataclass(frozen=True, slots=True)
class Place:
    module: str
    module_folder: str
    chapter: int
    lesson: int
    title: str
    title_in_file: bool
    module_title: str
    chapter_title: str
    url: str
    anchors: AnchorStyle
    is_overview: bool
    claimed_by: str | None
    """The file that claimed the same module, chapter and lesson first."""


@dataclass(slots=True)
class _Spot:
    """What a page's path and front matter say, before numbers are given to those that claim none."""

    page: Page
    folders: Folder
    module_folder: Folder
    chapter_folder: Folder | None
    is_deep: bool
    is_overview: bool
    entry: Entry | None
    module: str = MAIN
    chapter: int = 0
    lesson: int | None = None
    wanted: int | None = None
    order: tuple[object, ...] = ()

    @property
    def stem(self) -> str:
        return _stem(self.page.path)


@dataclass
class Layout:
    """A whole book at once: a place depends on the files around it."""

    book: Book
    pages: Mapping[str, Page]
    categories: Mapping[Folder, Category] = field(default_factory=dict[Folder, Category])
    site: Site | None = None
    entries: Mapping[str, Entry] = field(default_factory=dict[str, Entry])
    """The places that the site's own navigation gives."""
    problems: list[Problem] = field(default_factory=list[Problem])
    _chapter_titles: dict[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str], init=False)

    def place_pages(self) -> Iterator[tuple[Page, Place]]:
        """Every page with its place, in reading order."""
        spots = [self._find_spot(page) for page in self.pages.values()]
        self._name_modules(spots)
        for spot in spots:
            spot.order = self._order(spot)
        spots.sort(key=lambda spot: spot.order)
        self._number_chapters(spots)
        self._number_lessons(spots)
        first_claims = _first_claims(spots)
        self._chapter_titles = {
            (spot.module, spot.chapter): title for spot in spots if spot.lesson == 0 and (title := own_title(spot.page))
        }
        urls: dict[str, str] = {}
        for spot in spots:
            yield spot.page, self._place(spot, first_claims, urls)

    # --- folders ---------------------------------------------------------------------------------

    @property
    def _docs(self) -> Folder:
        return tuple(self.site.docs.split("/")) if self.site and self.site.docs else ()

    @cached_property
    def _root(self) -> Folder:
        """Past wrappers such as `docs/` or `files/en-us/` that hold the whole book and say nothing."""
        all_parts = [tuple(path.split("/")) for path in self.pages]
        root = self._docs
        while True:
            names = {parts[len(root)] for parts in all_parts}
            name = next(iter(names), "")
            is_wrapper = name.lower() in WRAPPERS or _LANGUAGE.fullmatch(name)
            is_file = any(len(parts) == len(root) + 1 for parts in all_parts)
            if len(names) != 1 or is_file or not is_wrapper or "/".join((*root, name)) in self.book.modules:
                return root
            root = (*root, name)

    def _find_spot(self, page: Page) -> _Spot:
        folders = tuple(page.path.split("/")[:-1])
        stem = _stem(page.path).lower()
        module_folder = self._module_folder(folders)
        rest = folders[len(module_folder) :]
        is_overview = stem in OVERVIEWS
        if stem == "index" and len(folders) - len(self._root) >= 2 and rest and self._is_bundle(folders):
            rest, is_overview = rest[:-1], False
        chapter_folder = (*module_folder, rest[0]) if rest else None
        entry = self.entries.get(page.path)
        return _Spot(page, folders, module_folder, chapter_folder, len(rest) > 1, is_overview and len(rest) <= 1, entry)

    def _module_folder(self, folders: Folder) -> Folder:
        for length in range(len(folders), 0, -1):
            if "/".join(folders[:length]) in self.book.modules:
                return folders[:length]
        if folders[: len(self._root)] != self._root or len(folders) == len(self._root):
            return self._root
        beyond = folders[: len(self._root) + 1]
        return self._root if _CHAPTER_FOLDER.match(beyond[-1]) else beyond

    def _is_bundle(self, folder: Folder) -> bool:
        """`topic/index.md` with nothing beside it is a page of the folder above, not a chapter of one page."""
        return self._files_under[folder] == 1 and _number_in(folder[-1]) is None

    @cached_property
    def _files_under(self) -> dict[Folder, int]:
        counted: dict[Folder, int] = defaultdict(int)
        for path in self.pages:
            parts = tuple(path.split("/"))
            for length in range(1, len(parts)):
                counted[parts[:length]] += 1
        return counted

    @cached_property
    def _overview_titles(self) -> dict[Folder, str]:
        spots = (self._find_spot(page) for page in self.pages.values())
        return {spot.folders: title for spot in spots if spot.is_overview and (title := own_title(spot.page))}

    # --- names and numbers -----------------------------------------------------------------------

    def _name_modules(self, spots: list[_Spot]) -> None:
        short: dict[str, set[Folder]] = defaultdict(set)
        for spot in spots:
            if spot.module_folder:
                short[_short_name(spot.module_folder[-1])].add(spot.module_folder)
        for spot in spots:
            spot.module = self._module_in_front(spot) or self._module_of(spot, short)

    def _module_of(self, spot: _Spot, short: Mapping[str, set[Folder]]) -> str:
        mapped = self.book.modules.get("/".join(spot.module_folder))
        if mapped:
            return mapped
        if spot.entry:
            return (slug(spot.entry.part) if spot.entry.part else "") or MAIN
        if spot.module_folder == self._root:
            return MAIN
        name = _short_name(spot.module_folder[-1])
        return name if len(short[name]) == 1 else slug(spot.module_folder[-1]) or MAIN

    def _module_in_front(self, spot: _Spot) -> str | None:
        """`ros2`, `module-1-ros2` or `Module 1: …`, as far as the book's own map or a plain name can tell."""
        value = spot.page.front.text("module")
        if value is None:
            return None
        modules = self.book.modules
        by_name = {name.casefold(): name for name in modules.values()}
        if found := modules.get(value) or by_name.get(value.casefold()):
            return found
        number = read_number(value)
        for folder, name in modules.items():
            if number is not None and _number_in(folder.split("/")[-1]) == number:
                return name
        return _short_name(value) or None if not modules and re.fullmatch(r"[\w.-]+", value) else None

    def _number_chapters(self, spots: list[_Spot]) -> None:
        numbers: dict[Folder, int] = {}
        folders: dict[Folder, dict[Folder, None]] = defaultdict(dict)
        for spot in spots:
            if spot.chapter_folder:
                folders[spot.module_folder][spot.chapter_folder] = None
        placed = {spot.entry.chapter for spot in spots if spot.entry}
        for chapters in folders.values():
            found = {folder: number for folder in chapters if (number := _number_in(folder[-1])) is not None}
            claims = {folder: number for folder, number in found.items() if number not in placed}
            wishes = {folder: self.categories.get(folder, Category()).position for folder in chapters}
            others = [folder for folder in chapters if folder not in claims]
            numbers |= claims | _give_numbers(others, wishes, set(claims.values()) | placed)
        for spot in spots:
            in_name = _CHAPTER_AND_LESSON.match(spot.stem)
            by_path = numbers[spot.chapter_folder] if spot.chapter_folder else int(in_name.group(1)) if in_name else 0
            claimed = self._number_in_front(spot.page, "chapter")
            spot.chapter = claimed if claimed is not None else spot.entry.chapter if spot.entry else by_path

    def _number_lessons(self, spots: list[_Spot]) -> None:
        groups: dict[tuple[str, int], list[_Spot]] = defaultdict(list)
        for spot in spots:
            spot.lesson = self._claimed_lesson(spot)
            position = spot.page.front.text("sidebar_position")
            spot.wanted = (
                int(position) if position and position.isascii() and position.isdigit() and len(position) < 5 else None
            )
            groups[spot.module, spot.chapter].append(spot)
        for group in groups.values():
            placed = {spot.lesson for spot in group if spot.entry}
            for spot in group:
                # A number in a file's name is a wish where the navigation has given it to another page.
                if not spot.entry and spot.lesson in placed and self._number_in_front(spot.page, "lesson") is None:
                    spot.lesson = None
            taken = {spot.lesson for spot in group if spot.lesson is not None}
            open_spots = [spot for spot in group if spot.lesson is None]
            overview = next((spot for spot in open_spots if spot.is_overview), None)
            if overview and 0 not in taken:
                overview.lesson = 0
                open_spots.remove(overview)
            wishes = {spot.page.path: spot.wanted for spot in open_spots}
            given = _give_numbers(
                [spot.page.path for spot in open_spots], wishes, {number for number in taken if number}
            )
            for spot in open_spots:
                spot.lesson = given[spot.page.path]

    def _claimed_lesson(self, spot: _Spot) -> int | None:
        claimed = self._number_in_front(spot.page, "lesson")
        if claimed is not None or spot.entry:
            return claimed if claimed is not None else spot.entry.lesson if spot.entry else None
        if spot.is_overview or spot.is_deep:
            return None
        if (in_name := _CHAPTER_AND_LESSON.match(spot.stem)) and not spot.chapter_folder:
            return int(in_name.group(2))
        return _number_in_file(spot.stem)

    def _number_in_front(self, page: Page, key: str) -> int | None:
        found = page.front.find(key)
        if found is None:
            return None
        number, value = read_number(found[1]), found[1]
        is_name = isinstance(value, str) and any(char.isalpha() for char in value)
        if number is None and not is_name:
            message = f"`{key}` is {str(value)[:40]!r}, not a number from 0 to {MAX_NUMBER}; the file's place gives it instead"
            self.problems.append(Problem(page.path, message, key))
        return number

    def _order(self, spot: _Spot) -> tuple[object, ...]:
        if spot.entry:
            return (0, spot.entry.order)
        parts: list[object] = [1]
        for length in range(1, len(spot.folders) + 1):
            name = spot.folders[length - 1]
            position = self.categories.get(spot.folders[:length], Category()).position
            number = position if position is not None else _number_in(name)
            parts.append((math.inf if number is None else number, 1, name))
        overview = spot.stem.lower() in OVERVIEWS
        return (*parts, (-1 if overview else _reading_number(spot), 0, spot.page.path))

    # --- titles and addresses --------------------------------------------------------------------

    def _place(self, spot: _Spot, first_claims: Mapping[tuple[str, int, int], str], urls: dict[str, str]) -> Place:
        title = own_title(spot.page)
        lesson = spot.lesson or 0
        first = first_claims[spot.module, spot.chapter, lesson]
        url = self._url(spot, urls)
        return Place(
            module=spot.module,
            module_folder="" if spot.entry else "/".join(spot.module_folder),
            chapter=spot.chapter,
            lesson=lesson,
            title=title or self._made_title(spot),
            title_in_file=title is not None,
            module_title=self._module_title(spot),
            chapter_title=self._chapter_title(spot),
            url=url,
            anchors=self.site.anchors if self.site and not url.startswith(self._home) else "github",
            is_overview=spot.is_overview,
            claimed_by=first if first != spot.page.path else None,
        )

    def _made_title(self, spot: _Spot) -> str:
        if spot.entry and spot.entry.title:
            return spot.entry.title
        if spot.stem.lower() in OVERVIEWS:
            is_home = not spot.folders or (self.site is not None and spot.folders == self._root)
            return self.book.title if is_home else self._folder_title(spot.folders)
        return prettify(spot.stem)

    def _folder_title(self, folder: Folder) -> str:
        label = self.categories.get(folder, Category()).label
        return label or self._overview_titles.get(folder) or prettify(folder[-1])

    def _module_title(self, spot: _Spot) -> str:
        front = spot.page.front
        named = front.text("module_title") or front.text("module") or ""
        if " " in named or (named and front.text("module_title")):
            return named
        if spot.entry and spot.entry.part:
            return spot.entry.part
        return (
            self.book.title if spot.module == MAIN or not spot.module_folder else self._folder_title(spot.module_folder)
        )

    def _chapter_title(self, spot: _Spot) -> str:
        front = spot.page.front
        if title := front.text("chapter_title"):
            return title
        named = front.text("chapter") or ""
        if " " in named and any(char.isalpha() for char in named):
            return named
        if spot.entry:
            return spot.entry.chapter_title
        if spot.chapter_folder:
            return self._folder_title(spot.chapter_folder)
        return self._chapter_titles.get((spot.module, spot.chapter), f"Chapter {spot.chapter}") if spot.chapter else ""

    @property
    def _home(self) -> str:
        """Where askbook shows the book itself."""
        return f"/read/{to_public_id(self.book.book_id)}"

    def _url(self, spot: _Spot, urls: dict[str, str]) -> str:
        """Its published address, or one of askbook's own. `urls`: the addresses given so far and their files."""
        url = f"{self.book.base_url or self._home}/{quote(self._route(spot))}"
        first = urls.setdefault(url, spot.page.path)
        if first == spot.page.path:
            return url
        if self.book.base_url:
            message = f"its address {url} is also that of {first}; askbook shows this file under an address of its own"
            self.problems.append(Problem(spot.page.path, message))
        own = f"{self._home}/{quote(spot.page.path)}"
        urls[own] = spot.page.path
        return own

    def _route(self, spot: _Spot) -> str:
        front = spot.page.front
        if self.site and self.book.base_url:
            return self.site.to_route(self.site.inner(spot.page.path), front)
        folder = "/".join(spot.folders[len(self._docs) :])
        written = front.text("slug")
        if written and "/" in written:
            return "/".join(part for part in written.split("/") if part not in ("", ".", ".."))
        if spot.stem.lower() in OVERVIEWS and not written:
            return folder
        name = written or front.text("id") or spot.stem
        name = spot.stem if "/" in name or name in (".", "..") else name
        return f"{folder}/{name}" if folder else name


def _stem(path: str) -> str:
    return posixpath.splitext(posixpath.basename(path))[0]


def _first_claims(spots: list[_Spot]) -> dict[tuple[str, int, int], str]:
    claims: dict[tuple[str, int, int], str] = {}
    for spot in sorted(spots, key=lambda spot: spot.page.path):
        claims.setdefault((spot.module, spot.chapter, spot.lesson or 0), spot.page.path)
    return claims


def _number_in(name: str) -> int | None:
    match = None if _DATE.match(name) else _NUMBER.match(name)
    return int(match.group(1)) if match else None


def _number_in_file(stem: str) -> int | None:
    return None if stem.lower().startswith("module") else _number_in(stem)


def _short_name(folder: str) -> str:
    return slug(_NAME_BEHIND_NUMBER.sub("", folder)) or slug(folder)


def _reading_number(spot: _Spot) -> float:
    front = spot.page.front
    for value in (front.find("lesson"), front.find("sidebar_position")):
        if value and isinstance(value[1], str):
            number = read_number(value[1])
            if number is not None or re.fullmatch(r"-?\d{1,6}(\.\d{1,6})?", value[1]):
                return number if number is not None else float(value[1])
    number = _number_in_file(spot.stem)
    return math.inf if number is None else number


def _give_numbers(keys: list[Key], wishes: Mapping[Key, float | None], taken: set[int]) -> dict[Key, int]:
    """Each its wish where it is free, else the next free number from 1 on."""
    taken, given = set(taken), {}
    for key in keys:
        wish = wishes.get(key)
        if wish is not None and wish == int(wish) and 0 < wish <= MAX_NUMBER and int(wish) not in taken:
            given[key] = int(wish)
            taken.add(int(wish))
    free = 1
    for key in keys:
        if key not in given:
            while free in taken:
                free += 1
            given[key] = free
            taken.add(free)
    return given
