"""Where each file stands in its book: module, chapter and lesson, titles and address, for every layout we know."""

from __future__ import annotations

import math
import posixpath
import re
from collections import Counter, defaultdict
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


@dataclass(slots=True)
class Place:
    """What a page's path and front matter say of where it stands; numbers, titles and address are given to it later."""

    page: Page
    folders: Folder
    module_path: Folder
    chapter_path: Folder | None
    is_deep: bool
    is_overview: bool
    entry: Entry | None
    module: str = MAIN
    module_order: int = 0
    chapter: int = 0
    lesson: int | None = None
    title: str = ""
    title_in_file: bool = False
    module_title: str = ""
    chapter_title: str = ""
    url: str = ""
    anchors: AnchorStyle = "github"
    claimed_by: str | None = None
    """The file that claimed the same module, chapter and lesson first."""

    @property
    def stem(self) -> str:
        return _stem(self.page.path)

    @property
    def module_folder(self) -> str:
        """The folder that makes the module, where no navigation does."""
        return "" if self.entry else "/".join(self.module_path)


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

    def place_pages(self) -> list[Place]:
        """Every page's place, in reading order."""
        places = [self._find_place(page) for page in self.pages.values()]
        self._folder_titles = {
            place.folders: title for place in places if place.is_overview and (title := own_title(place.page))
        }
        self._name_modules(places)
        places.sort(key=self._order)
        if any(place.entry for place in places):
            order = {module: at for at, module in enumerate(dict.fromkeys(place.module for place in places), start=1)}
            for place in places:
                place.module_order = order[place.module]
        self._number_chapters(places)
        self._number_lessons(places)
        self._chapter_titles = {
            (place.module, place.chapter): title
            for place in places
            if place.lesson == 0 and (title := own_title(place.page))
        }
        claims: dict[tuple[str, int, int | None], str] = {}
        for place in sorted(places, key=lambda place: place.page.path):
            first = claims.setdefault((place.module, place.chapter, place.lesson), place.page.path)
            place.claimed_by = first if first != place.page.path else None
        urls: dict[str, str] = {}
        for place in places:
            title = own_title(place.page)
            place.title, place.title_in_file = title or self._made_title(place), title is not None
            place.module_title, place.chapter_title = self._module_title(place), self._chapter_title(place)
            place.url = self._url(place, urls)
            if self.site and not place.url.startswith(self._home):
                place.anchors = self.site.anchors
        return places

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

    def _find_place(self, page: Page) -> Place:
        folders = tuple(page.path.split("/")[:-1])
        stem = _stem(page.path).lower()
        module = self._module_path(folders)
        rest = folders[len(module) :]
        is_overview = stem in OVERVIEWS
        is_inner = len(folders) - len(self._root) >= 2 and bool(rest)
        if stem == "index" and is_inner and self._files_under[folders] == 1 and _number_in(folders[-1]) is None:
            # `topic/index.md` with nothing beside it is a page of the folder above, not a chapter of one page.
            rest, is_overview = rest[:-1], False
        chapter = (*module, rest[0]) if rest else None
        entry = self.entries.get(page.path)
        return Place(page, folders, module, chapter, len(rest) > 1, is_overview and len(rest) <= 1, entry)

    def _module_path(self, folders: Folder) -> Folder:
        for length in range(len(folders), 0, -1):
            if "/".join(folders[:length]) in self.book.modules:
                return folders[:length]
        if folders[: len(self._root)] != self._root or len(folders) == len(self._root):
            return self._root
        beyond = folders[: len(self._root) + 1]
        return self._root if _CHAPTER_FOLDER.match(beyond[-1]) else beyond

    @cached_property
    def _files_under(self) -> Counter[Folder]:
        return Counter(folder for path in self.pages for folder in folders_above(path))

    # --- names and numbers -----------------------------------------------------------------------

    def _name_modules(self, places: list[Place]) -> None:
        short: dict[str, set[Folder]] = defaultdict(set)
        for place in places:
            if place.module_path:
                short[_short_name(place.module_path[-1])].add(place.module_path)
        for place in places:
            place.module = self._module_in_front(place) or self._module_of(place, short)

    def _module_of(self, place: Place, short: Mapping[str, set[Folder]]) -> str:
        if mapped := self.book.modules.get("/".join(place.module_path)):
            return mapped
        if place.entry:
            return slug(place.entry.part or "") or MAIN
        if place.module_path == self._root:
            return MAIN
        name = _short_name(place.module_path[-1])
        return name if len(short[name]) == 1 else slug(place.module_path[-1]) or MAIN

    def _module_in_front(self, place: Place) -> str | None:
        """`ros2`, `module-1-ros2` or `Module 1: …`, as far as the book's own map or a plain name can tell."""
        value = place.page.front.text("module")
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

    def _number_chapters(self, places: list[Place]) -> None:
        numbers: dict[Folder, int] = {}
        folders: dict[Folder, dict[Folder, None]] = defaultdict(dict)
        for place in places:
            if place.chapter_path:
                folders[place.module_path][place.chapter_path] = None
        placed = {place.entry.chapter for place in places if place.entry}
        for chapters in folders.values():
            found = {folder: number for folder in chapters if (number := _number_in(folder[-1])) is not None}
            claims = {folder: number for folder, number in found.items() if number not in placed}
            wishes = {folder: self.categories.get(folder, Category()).position for folder in chapters}
            others = [folder for folder in chapters if folder not in claims]
            numbers |= claims | _give_numbers(others, wishes, set(claims.values()) | placed)
        for place in places:
            in_name = _CHAPTER_AND_LESSON.match(place.stem)
            by_path = numbers[place.chapter_path] if place.chapter_path else int(in_name.group(1)) if in_name else 0
            claimed = self._number_in_front(place.page, "chapter")
            place.chapter = claimed if claimed is not None else place.entry.chapter if place.entry else by_path

    def _number_lessons(self, places: list[Place]) -> None:
        groups: dict[tuple[str, int], list[Place]] = defaultdict(list)
        for place in places:
            place.lesson = self._claimed_lesson(place)
            groups[place.module, place.chapter].append(place)
        for group in groups.values():
            placed = {place.lesson for place in group if place.entry}
            for place in group:
                # A number in a file's name is a wish where the navigation has given it to another page.
                if not place.entry and place.lesson in placed and self._number_in_front(place.page, "lesson") is None:
                    place.lesson = None
            taken = {place.lesson for place in group if place.lesson is not None}
            waiting = {place.page.path: place for place in group if place.lesson is None}
            overview = next((place for place in waiting.values() if place.is_overview), None)
            if overview and 0 not in taken:
                overview.lesson = 0
                del waiting[overview.page.path]
            wishes = {path: _wish_of(place.page) for path, place in waiting.items()}
            for path, number in _give_numbers(list(waiting), wishes, taken - {0}).items():
                waiting[path].lesson = number

    def _claimed_lesson(self, place: Place) -> int | None:
        claimed = self._number_in_front(place.page, "lesson")
        if claimed is not None:
            return claimed
        if place.entry:
            return place.entry.lesson
        if place.is_overview or place.is_deep:
            return None
        if (in_name := _CHAPTER_AND_LESSON.match(place.stem)) and not place.chapter_path:
            return int(in_name.group(2))
        return _number_in_file(place.stem)

    def _number_in_front(self, page: Page, key: str) -> int | None:
        found = page.front.find(key)
        if found is None:
            return None
        number, value = read_number(found[1]), found[1]
        is_name = isinstance(value, str) and any(char.isalpha() for char in value)
        if number is None and not is_name:
            message = (
                f"`{key}` is {str(value)[:40]!r}, not a number from 0 to {MAX_NUMBER}; "
                "the file's place gives it instead"
            )
            self.problems.append(Problem(page.path, message, key))
        return number

    def _order(self, place: Place) -> tuple[object, ...]:
        if place.entry:
            return (0, place.entry.order)
        parts: list[object] = [1]
        for length in range(1, len(place.folders) + 1):
            name = place.folders[length - 1]
            position = self.categories.get(place.folders[:length], Category()).position
            number = position if position is not None else _number_in(name)
            parts.append((math.inf if number is None else number, 1, name))
        overview = place.stem.lower() in OVERVIEWS
        return (*parts, (-1 if overview else _reading_number(place), 0, place.page.path))

    # --- titles and addresses --------------------------------------------------------------------

    def _made_title(self, place: Place) -> str:
        if place.entry and place.entry.title:
            return place.entry.title
        if place.stem.lower() in OVERVIEWS:
            is_home = not place.folders or (self.site is not None and place.folders == self._root)
            return self.book.title if is_home else self._folder_title(place.folders)
        return prettify(place.stem)

    def _folder_title(self, folder: Folder) -> str:
        label = self.categories.get(folder, Category()).label
        return label or self._folder_titles.get(folder) or prettify(folder[-1])

    def _module_title(self, place: Place) -> str:
        front = place.page.front
        named = front.text("module_title") or front.text("module") or ""
        if " " in named or (named and front.text("module_title")):
            return named
        if place.entry and place.entry.part:
            return place.entry.part
        return (
            self.book.title if place.module == MAIN or not place.module_path else self._folder_title(place.module_path)
        )

    def _chapter_title(self, place: Place) -> str:
        front = place.page.front
        if title := front.text("chapter_title"):
            return title
        named = front.text("chapter") or ""
        if " " in named and any(char.isalpha() for char in named):
            return named
        if place.entry:
            return place.entry.chapter_title
        if place.chapter_path:
            return self._folder_title(place.chapter_path)
        return (
            self._chapter_titles.get((place.module, place.chapter), f"Chapter {place.chapter}") if place.chapter else ""
        )

    @property
    def _home(self) -> str:
        """Where askbook shows the book itself."""
        return f"/read/{to_public_id(self.book.book_id)}"

    def _url(self, place: Place, urls: dict[str, str]) -> str:
        """Its published address, or one of askbook's own. `urls`: the addresses given so far and their files."""
        url = f"{self.book.base_url or self._home}/{quote(self._route(place))}"
        first = urls.setdefault(url, place.page.path)
        if first == place.page.path:
            return url
        if self.book.base_url:
            message = f"its address {url} is also that of {first}; askbook shows this file under an address of its own"
            self.problems.append(Problem(place.page.path, message))
        own = f"{self._home}/{quote(place.page.path)}"
        urls[own] = place.page.path
        return own

    def _route(self, place: Place) -> str:
        front = place.page.front
        if self.site and self.book.base_url:
            return self.site.to_route(self.site.inner(place.page.path), front)
        folder = "/".join(place.folders[len(self._docs) :])
        written = front.text("slug")
        if written and "/" in written:
            return "/".join(part for part in written.split("/") if part not in ("", ".", ".."))
        if place.stem.lower() in OVERVIEWS and not written:
            return folder
        name = written or front.text("id") or place.stem
        name = place.stem if "/" in name or name in (".", "..") else name
        return f"{folder}/{name}" if folder else name


def folders_above(path: str) -> Iterator[Folder]:
    parts = tuple(path.split("/")[:-1])
    return (parts[:length] for length in range(1, len(parts) + 1))


def _stem(path: str) -> str:
    return posixpath.splitext(posixpath.basename(path))[0]


def _number_in(name: str) -> int | None:
    match = None if _DATE.match(name) else _NUMBER.match(name)
    return int(match.group(1)) if match else None


def _number_in_file(stem: str) -> int | None:
    return None if stem.lower().startswith("module") else _number_in(stem)


def _short_name(folder: str) -> str:
    return slug(_NAME_BEHIND_NUMBER.sub("", folder)) or slug(folder)


def _wish_of(page: Page) -> int | None:
    position = page.front.text("sidebar_position") or ""
    return int(position) if re.fullmatch("[0-9]{1,4}", position) else None


def _reading_number(place: Place) -> float:
    front = place.page.front
    for value in (front.find("lesson"), front.find("sidebar_position")):
        if value and isinstance(value[1], str):
            number = read_number(value[1])
            if number is not None:
                return number
            if re.fullmatch(r"-?\d{1,6}(\.\d{1,6})?", value[1]):
                return float(value[1])
    number = _number_in_file(place.stem)
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
