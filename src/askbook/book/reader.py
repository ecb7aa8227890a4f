"""A folder → its Book and its Lessons. Nothing outside the folder is read, whatever its files and links say."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from askbook.book.chunker import CHUNKER_VERSION, make_id
from askbook.book.files import EXTENSIONS, MAX_SMALL_BYTES, Unreadable, read_bytes
from askbook.book.front_matter import FrontMatter, read_facet, read_front_matter, read_yaml
from askbook.book.includes import expand_includes
from askbook.book.layout import MAIN, Category, Folder, Layout, Place, folders_above
from askbook.book.manifest import EVERY_LESSON, FILE, LAYER, PROFICIENCY, TIER, read_manifest
from askbook.book.markup import MARKUP_VERSION
from askbook.book.markup.references import find_labels, find_link_titles, find_unknown, find_values
from askbook.book.notebooks import read_notebook
from askbook.book.sections import find_title
from askbook.book.sites import find_site
from askbook.book.sites.docusaurus import CATEGORIES
from askbook.book.sites.site import Files, Page, Site, find_translations
from askbook.book.unshown import find_unshown
from askbook.domain import Book, Facet, FacetValue, Lesson, Problem
from askbook.errors import BookError

MAX_BYTES = 16 * 1024 * 1024
MAX_STARS, MAX_PATTERN = 3, 200
SKIPPED_FOLDERS = ("node_modules", "__pycache__", "_partials", "_includes", "_templates", "_build", "_site", "_book")


def read_book(folder: Path, book_id: str | None = None) -> Book:
    home = _home(folder)
    try:
        raw = read_bytes(home / FILE, MAX_SMALL_BYTES) if os.path.lexists(home / FILE) else None
    except Unreadable as error:
        raise BookError(f"{FILE} {error}", f"Make {FILE} a plain text file of the book, or remove it.") from error
    book, has_title = read_manifest(raw, home.name or "book", book_id)
    site, _ = _find_site(home, book)
    if site and book.base_url is None:
        book = replace(book, base_url=site.base_url)
    if has_title:
        return book
    found = site.title or _title_of_overview(home / site.docs, site.front_page) if site else _title_of_overview(home)
    return replace(book, title=found or book.title)


def find_files(folder: Path, book: Book) -> tuple[dict[str, Path], list[Problem]]:
    """Every Markdown file of the book by its path in it, in order of these paths; of a site, the files of its pages.

    Left out: hidden files and folders, partials (files that begin with `_`, but for Hugo's `_index.md`), the book's own
    ignore patterns and the site's, translations beside the original, and links: what a link inside the book points to
    is read at its own place.
    """
    home = _home(folder)
    return _list_files(home, book, _find_site(home, book)[0])


def read_lessons(
    folder: Path, book: Book, on_file: Callable[[str], None] | None = None
) -> tuple[list[Lesson], list[Problem]]:
    """Every lesson in reading order, and what was wrong with the files. A bad file never stops the others."""
    layout, texts, problems = _read_layout(folder, book, on_file)
    places = layout.place_pages()
    titles = {place.page.path: place.title for place in places}
    labels = find_labels(text.text for text in texts.values())
    values = layout.site.values if layout.site else {}
    lessons: list[Lesson] = []
    drawings: set[str] = set()
    for place in places:
        path, text = place.page.path, texts[place.page.path].text
        problems += [Problem(path, said) for said in find_unshown(folder, path, text, drawings)]
        linked = find_link_titles(path, text, titles, labels) | find_values(text, place.page.front.values, values)
        problems += [
            Problem(path, f"`{said}` has no value in the files of the site; nothing is shown in its place")
            for said in dict.fromkeys(find_unknown(text, linked))
        ]
        lessons.append(_build_lesson(book, texts[path], place, linked, problems))
    return lessons, problems + layout.problems


@dataclass(frozen=True, slots=True)
class Findings:
    """What was made of a folder. `modules`: folders that hold a module each; in askbook.toml they change nothing."""

    modules: dict[str, str]
    why: str


def explain_layout(folder: Path, book: Book) -> Findings:
    layout, _, _ = _read_layout(folder, book)
    places = layout.place_pages()
    modules = {place.module_folder: place.module for place in places if place.module != MAIN and place.module_folder}
    return Findings(modules, _explain(layout))


def _explain(layout: Layout) -> str:
    site, pages, named = layout.site, len(layout.pages), len(layout.entries)
    by_folders = f"the folders give the order of {_count(pages, 'page')}"
    if site is None:
        return f"Folders: no site's own files were found; {by_folders}."
    docs = f"{site.docs}/" if site.docs else "the folder"
    order = f"its navigation has {_count(named, 'page')}" if named else by_folders
    others = f", which has {pages - named} more" if named and pages > named else ""
    address = (
        f" Published at {layout.book.base_url}." if layout.book.base_url else " It names no address: set base_url."
    )
    return f"{site.generator}: found by {site.config}; {order}, in {docs}{others}.{address}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


# --- files ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Text:
    page: Page
    text: str
    file_hash: str
    lines: tuple[int, ...]
    problems: tuple[Problem, ...]


def _home(folder: Path) -> Path:
    advice = "Give the folder that holds the book's Markdown files."
    try:
        home = folder.resolve()
        is_folder = home.is_dir()
    except (OSError, RuntimeError, ValueError) as error:
        raise BookError(f"{folder} cannot be opened", advice) from error
    if not is_folder:
        raise BookError(f"{folder} {'is not a folder' if home.exists() else 'does not exist'}", advice)
    return home


def _find_site(home: Path, book: Book) -> tuple[Site | None, list[Problem]]:
    """None where the book's own file has lessons outside the site's pages."""
    files = Files(home)
    site = find_site(files)
    if site and any(not f"{folder}/".startswith(f"{site.docs}/".lstrip("/")) for folder in book.modules):
        return None, []
    return site, files.problems


def _list_files(home: Path, book: Book, site: Site | None) -> tuple[dict[str, Path], list[Problem]]:
    patterns = [_ignore_pattern(book.ignore)]
    if site:
        # Many stars in one pattern take for ever on a long name; no site needs them.
        cheap = (
            pattern
            for pattern in site.ignore
            if len(re.findall(r"\*+", pattern)) <= MAX_STARS and len(pattern) <= MAX_PATTERN
        )
        patterns.append(_ignore_pattern(tuple(cheap), site.docs))
    ignored = [pattern.fullmatch for pattern in patterns if pattern]
    files: dict[str, Path] = {}
    problems: list[Problem] = []
    for path, entry in _walk(home, lambda path: any(matches(path) for matches in ignored), problems, site):
        reason = _reason_to_skip(home, entry)
        if reason is None:
            files[path] = Path(entry.path)
        elif reason:
            problems.append(Problem(path, reason, skipped=True))
    if site:
        foreign = find_translations((site.inner(path) for path in files), site.language, site.locales)
        files = {path: file for path, file in files.items() if site.inner(path) not in foreign}
    return dict(sorted(files.items())), sorted(problems, key=lambda problem: problem.source_file)


def _walk(
    home: Path, is_ignored: Callable[[str], bool], problems: list[Problem], site: Site | None
) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Every file that looks like Markdown, and every link that could lead to one; no folder is entered by a link."""
    waiting = [f"{site.docs}/" if site and site.docs else ""]
    private = "." if site and site.underscored else (".", "_")
    while waiting:
        prefix = waiting.pop()
        try:
            with os.scandir(home / prefix) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            problems.append(
                Problem(prefix.rstrip("/"), f"this folder cannot be opened: {error.strerror}", skipped=True)
            )
            continue
        for entry in found:
            path, name = prefix + entry.name, entry.name
            if entry.is_dir(follow_symlinks=False):
                if not (name.startswith(".") or name in SKIPPED_FOLDERS or is_ignored(f"{path}/")):
                    waiting.append(f"{path}/")
            elif (name.startswith(private) and not name.startswith("_index.")) or is_ignored(path):
                continue
            elif _is_markdown(name) or entry.is_symlink():
                yield _printable(path), entry


def _is_markdown(name: str) -> bool:
    return name.lower().endswith(EXTENSIONS)


def _printable(path: str) -> str:
    return os.fsencode(path).decode("utf-8", "replace")


def _reason_to_skip(home: Path, entry: os.DirEntry[str]) -> str | None:
    """None for a file to read, an empty text for one that is passed over in silence."""
    if entry.is_symlink():
        try:
            target = Path(entry.path).resolve(strict=True)
        except (OSError, RuntimeError):
            return "this link leads nowhere or in a circle; it was not followed"
        leads_out = not target.is_relative_to(home) and (target.is_dir() or _is_markdown(entry.name))
        return "this link leads out of the book; it was not followed" if leads_out else ""
    if not entry.is_file(follow_symlinks=False):
        return "this is not a regular file (a pipe, socket or device); it was not opened"
    if "\ufffd" in _printable(entry.name):
        return "the file's name is not valid UTF-8; rename it"
    return None


def _read_text(path: str, file: Path, snippets: tuple[str, ...] = ()) -> _Text:
    raw = read_bytes(file, MAX_BYTES)
    text = _decode(raw)
    if path.lower().endswith(".ipynb"):
        text = _read_notebook(text)
    front = read_front_matter(text)
    home = file.parents[path.count("/")]
    expanded = expand_includes(path, text, front.body_start, lambda there: _read_included(home, there), snippets)
    heading = None if front.text("title") else find_title(expanded.text, front.body_start)
    file_hash = hashlib.sha256(raw)
    for taken in expanded.taken:
        file_hash.update(b"\0" + taken.encode())
    problems = tuple(Problem(path, complaint) for complaint in dict.fromkeys(expanded.complaints))
    return _Text(Page(path, front, heading), expanded.text, file_hash.hexdigest(), expanded.lines, problems)


def _decode(raw: bytes) -> str:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"is not UTF-8 (byte {error.start}); save it as UTF-8") from error
    return _clean(text)


def _clean(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")


def _read_notebook(content: str) -> str:
    try:
        # JSON may hold what a text file cannot.
        return _clean(read_notebook(content).encode("utf-8", "replace").decode())
    except (ValueError, TypeError, AttributeError, LookupError, OverflowError, RecursionError) as error:
        raise Unreadable("is not a notebook that can be read (broken JSON, or no cells in it)") from error


def _read_included(home: Path, path: str) -> str | None:
    """A file of the book by its path in it; no link, however made, leads out of the folder or to a hidden file."""
    try:
        file = (home / path).resolve(strict=True)
        if not file.is_relative_to(home) or any(part.startswith(".") for part in file.relative_to(home).parts):
            return None
        return _decode(read_bytes(file, MAX_SMALL_BYTES))
    except (OSError, RuntimeError, ValueError, Unreadable):
        return None


def _title_of_overview(home: Path, front_page: str = "README") -> str | None:
    for name in (f"{front_page}.md", f"{front_page}.mdx", "README.md", "README.mdx", "index.md", "index.mdx"):
        try:
            page = _read_text(name, home / name).page
        except Unreadable:
            continue
        return page.front.text("title") or page.heading
    return None


def _ignore_pattern(patterns: tuple[str, ...], root: str = "") -> re.Pattern[str] | None:
    """As .gitignore: `**` crosses folders, a pattern without a slash holds at any depth, a folder takes all in it."""
    written = [pattern.strip() for pattern in patterns if pattern.strip().strip("/") and pattern.strip()[0] not in "#!"]
    below = re.escape(f"{root}/") if root else ""
    return re.compile(below + f"(?:{'|'.join(map(_translate, written))})", re.DOTALL) if written else None


def _translate(pattern: str) -> str:
    """Of all places that fit the first is as good as any, so that no other is tried: `(?>…)`."""
    deep, bodies = "/" not in pattern.rstrip("/"), list[str]()
    for crosses, run in groupby(pattern.strip("/").split("/"), "**".__eq__):
        if not crosses:
            names = "/".join(map(_translate_name, run)) + r"(?=/|\Z)"
            bodies.append(rf"(?>(?:[^/]*+/)*?{names})" if deep else names)
        deep = crosses
    bodies += [".+"] * deep
    return "/".join(bodies) + ("/.*" if pattern.endswith("/") else "(?:/.*)?")


def _translate_name(name: str) -> str:
    first, *rest = (re.escape(part).replace(r"\?", "[^/]") for part in re.split(r"\*+", name))
    return first + "".join(f"(?>[^/]*?{part})" for part in rest[:-1]) + "".join(f"[^/]*{part}" for part in rest[-1:])


# --- places ---------------------------------------------------------------------------------------


def _read_layout(
    folder: Path, book: Book, on_file: Callable[[str], None] | None = None
) -> tuple[Layout, dict[str, _Text], list[Problem]]:
    home = _home(folder)
    site, problems = _find_site(home, book)
    files, unusable = _list_files(home, book, site)
    if site and not files:
        problems.append(
            Problem(site.config, f"there is no Markdown in {site.docs}; the folders give the order instead")
        )
        site = None
        files, unusable = _list_files(home, book, site)
    problems += unusable
    texts: dict[str, _Text] = {}
    for path, file in files.items():
        try:
            texts[path] = _read_text(path, file, site.snippets if site else ())
            problems += texts[path].problems
        except Unreadable as error:
            problems.append(Problem(path, f"this file {error}", skipped=True))
        if on_file:
            on_file(path)
    pages = {path: text.page for path, text in texts.items()}
    pages, entries, missing = site.place(pages) if site else (pages, {}, [])
    if site and missing:
        named = ", ".join(missing[:5]) + (" …" if len(missing) > 5 else "")
        count = _count(len(missing), "page")
        problems.append(Problem(site.config, f"its navigation names {count} that this book does not have: {named}"))
    folders = sorted({folder for path in pages for folder in folders_above(path)})
    read = {folder: _read_category(home, folder, problems) for folder in folders}
    categories = {folder: category for folder, category in read.items() if category}
    return Layout(book, pages, categories, site, entries), texts, problems


def _read_category(home: Path, folder: Folder, problems: list[Problem]) -> Category | None:
    for name in CATEGORIES:
        shown = "/".join((*folder, name))
        # Of every folder: text is joined ten times as fast as a Path.
        if os.path.lexists(f"{home}/{shown}"):
            try:
                values = read_yaml(read_bytes(home / shown, MAX_SMALL_BYTES).decode("utf-8-sig"))
            except (Unreadable, UnicodeDecodeError) as error:
                values = FrontMatter({}, 0, f"this file {error}")
            if values.complaint:
                problems.append(Problem(shown, values.complaint, values.complaint_key))
            position = values.text("position") or ""
            number = float(position) if re.fullmatch(r"\d{1,4}(\.\d{1,4})?", position) else None
            return Category(values.text("label"), number)
    return None


# --- lessons --------------------------------------------------------------------------------------


_OF_PLACE = set(Lesson.__slots__) & set(Place.__slots__)
"""What a lesson says as its place does."""


def _build_lesson(
    book: Book, read: _Text, place: Place, link_titles: Mapping[str, str], problems: list[Problem]
) -> Lesson:
    page, front = read.page, read.page.front
    if front.complaint:
        problems.append(Problem(page.path, f"{front.complaint}; defaults are used", front.complaint_key))
    identity = f"{book.book_id}:{place.module}:{place.chapter}:{place.lesson}"
    if place.claimed_by:
        claim = f"module {place.module}, chapter {place.chapter}, lesson {place.lesson}"
        problems.append(
            Problem(page.path, f"{claim} is also {place.claimed_by}; both are kept, give one another number", "lesson")
        )
        identity = f"{identity}:{page.path}"
    declared = {facet.name: facet for facet in book.facets}
    warn_missing = not front.complaint and not place.is_overview
    found = {
        name: _read_value(page, facet, name in declared and warn_missing, problems)
        for name, facet in (EVERY_LESSON | declared).items()
    }
    lesson = Lesson(
        **{name: getattr(place, name) for name in _OF_PLACE},
        book_id=book.book_id,
        source_file=page.path,
        file_hash=read.file_hash,
        book_title=book.title,
        hardware_tier=int(found[TIER.name] or 1),
        proficiency_level=str(found[PROFICIENCY.name]),
        layer=str(found[LAYER.name]),
        facets={name: value for name, value in found.items() if name not in EVERY_LESSON and value is not None},
        parent_doc_id=make_id(f"{identity}:parent"),
        identity=identity,
        text=read.text,
        body_start=front.body_start,
        fingerprint="",
        lines=read.lines,
        link_titles=link_titles,
    )
    left_out = ("text", "fingerprint", "parent_doc_id", "lines")
    fields = {name: getattr(lesson, name) for name in Lesson.__slots__ if name not in left_out}
    canonical = json.dumps(
        [CHUNKER_VERSION, MARKUP_VERSION, fields], sort_keys=True, ensure_ascii=True, separators=(",", ":")
    )
    return replace(lesson, fingerprint=hashlib.sha256(canonical.encode()).hexdigest())


def _read_value(page: Page, facet: Facet, warn_missing: bool, problems: list[Problem]) -> FacetValue | None:
    written = page.front.find(*facet.keys)
    if written is None:
        if warn_missing:
            instead = f"; {facet.default!r} is used" if facet.default is not None else ""
            problems.append(Problem(page.path, f"`{facet.keys[0]}` is missing{instead}", facet.keys[0]))
        return facet.default
    key, value = written
    known = read_facet(facet, value)
    if known is None:
        allowed = f"; allowed: {', '.join(map(str, facet.values))}" if facet.values else ""
        problems.append(Problem(page.path, f"`{key}` is {str(value)[:40]!r}; {facet.default!r} is used{allowed}", key))
        return facet.default
    return known
