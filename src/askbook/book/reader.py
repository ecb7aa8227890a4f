"""A folder → its Book and its Lessons. Nothing outside the folder is read, whatever its files and links say."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from askbook.book.chunker import CHUNKER_VERSION, make_id
from askbook.book.front_matter import FrontMatter, read_facet, read_front_matter, read_yaml
from askbook.book.includes import expand_includes
from askbook.book.layout import MAIN, Category, Folder, Layout, Page, Place, SummaryEntry, read_summary
from askbook.book.manifest import EVERY_LESSON, FILE, LAYER, PROFICIENCY, TIER, read_manifest
from askbook.book.markup import MARKUP_VERSION
from askbook.book.markup.references import find_labels, find_link_titles
from askbook.book.notebooks import read_notebook
from askbook.book.sections import find_title
from askbook.domain import Book, Facet, FacetValue, Lesson, Problem
from askbook.errors import BookError

MAX_BYTES = 16 * 1024 * 1024
MAX_SMALL_BYTES = 1024 * 1024
EXTENSIONS = (".md", ".mdx", ".markdown", ".ipynb")
SUMMARIES = ("SUMMARY.md", "src/SUMMARY.md")
CATEGORIES = ("_category_.json", "_category_.yml", "_category_.yaml")
SKIPPED_FOLDERS = ("node_modules", "__pycache__", "_partials", "_includes", "_templates", "_build", "_site", "_book")


class Unreadable(Exception):
    """Why one file cannot be used."""


def read_book(folder: Path, book_id: str | None = None) -> Book:
    home = _home(folder)
    try:
        raw = _read_bytes(home / FILE, MAX_SMALL_BYTES) if os.path.lexists(home / FILE) else None
    except Unreadable as error:
        raise BookError(f"{FILE} {error}", f"Make {FILE} a plain text file of the book, or remove it.") from error
    book, has_title = read_manifest(raw, home.name or "book", book_id)
    return book if has_title else replace(book, title=_title_of_overview(home) or book.title)


def find_files(folder: Path, book: Book) -> tuple[dict[str, Path], list[Problem]]:
    """Every Markdown file of the book by its path in it, in order of these paths.

    Left out: hidden files and folders, partials (files that begin with `_`, but for Hugo's `_index.md`), the book's own
    ignore patterns, mdBook's SUMMARY.md, and links: what a link inside the book points to is read at its own place.
    """
    home = _home(folder)
    ignored = _ignore_pattern(book.ignore)
    files: dict[str, Path] = {}
    problems: list[Problem] = []
    for path, entry in _walk(home, ignored, problems):
        reason = _reason_to_skip(home, entry)
        if reason is None:
            files[path] = Path(entry.path)
        elif reason:
            problems.append(Problem(path, reason, skipped=True))
    return dict(sorted(files.items())), sorted(problems, key=lambda problem: problem.source_file)


def read_lessons(
    folder: Path, book: Book, on_file: Callable[[str], None] | None = None
) -> tuple[list[Lesson], list[Problem]]:
    """Every lesson in reading order, and what was wrong with the files. A bad file never stops the others."""
    files, problems = find_files(folder, book)
    texts, unreadable = _read_texts(files, on_file)
    problems += unreadable
    layout = _build_layout(_home(folder), book, texts, problems)
    placed = list(layout.place_pages())
    titles, labels = (
        {page.path: place.title for page, place in placed},
        find_labels(text.text for text in texts.values()),
    )
    lessons: list[Lesson] = []
    for page, place in placed:
        linked = find_link_titles(page.path, texts[page.path].text, titles, labels)
        lessons.append(_build_lesson(book, texts[page.path], place, linked, problems))
    return lessons, problems + layout.problems


def find_modules(folder: Path, book: Book) -> dict[str, str]:
    """The folders that hold a module each, and its name; written into askbook.toml they change nothing."""
    texts, problems = _read_texts(find_files(folder, book)[0])
    places = [place for _, place in _build_layout(_home(folder), book, texts, problems).place_pages()]
    return {place.module_folder: place.module for place in places if place.module != MAIN and place.module_folder}


# --- files ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Text:
    page: Page
    text: str
    file_hash: str
    lines: tuple[int, ...]
    problems: tuple[Problem, ...]


def _home(folder: Path) -> Path:
    try:
        home = folder.resolve()
        is_folder = home.is_dir()
    except (OSError, RuntimeError, ValueError) as error:
        raise BookError(
            f"{folder} cannot be opened", "Give the folder that holds the book's Markdown files."
        ) from error
    if not is_folder:
        found = "is not a folder" if home.exists() else "does not exist"
        raise BookError(f"{folder} {found}", "Give the folder that holds the book's Markdown files.")
    return home


def _walk(
    home: Path, ignored: re.Pattern[str] | None, problems: list[Problem]
) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Every file that looks like Markdown, and every link that could lead to some; folders are never entered by a link."""
    waiting = [""]
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
            path = prefix + entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if _is_private(entry.name, is_folder) or (ignored and ignored.fullmatch(path + "/" if is_folder else path)):
                continue
            if is_folder:
                waiting.append(path + "/")
            elif path not in SUMMARIES and (_is_markdown(entry.name) or entry.is_symlink()):
                yield _printable(path), entry


def _is_private(name: str, is_folder: bool) -> bool:
    if is_folder:
        return name.startswith(".") or name in SKIPPED_FOLDERS
    return name.startswith((".", "_")) and not name.startswith("_index.")


def _is_markdown(name: str) -> bool:
    return name.lower().endswith(EXTENSIONS)


def _printable(path: str) -> str:
    return os.fsencode(path).decode("utf-8", "replace")


def _reason_to_skip(home: Path, entry: os.DirEntry[str]) -> str | None:
    """None for a file to read, an empty text for one that is passed over in silence."""
    if entry.is_symlink():
        return _reason_to_skip_link(home, entry)
    if not entry.is_file(follow_symlinks=False):
        return "this is not a regular file (a pipe, socket or device); it was not opened"
    if "\ufffd" in _printable(entry.name):
        return "the file's name is not valid UTF-8; rename it"
    return None


def _reason_to_skip_link(home: Path, entry: os.DirEntry[str]) -> str:
    try:
        target = Path(entry.path).resolve(strict=True)
    except (OSError, RuntimeError):
        return "this link leads nowhere or in a circle; it was not followed"
    if target.is_relative_to(home):
        return ""
    return "this link leads out of the book; it was not followed" if target.is_dir() or _is_markdown(entry.name) else ""


def _read_bytes(path: Path, limit: int) -> bytes:
    """The bytes of a regular file; a link, pipe or device is never opened for reading."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise Unreadable("is not a regular file; it was not opened")
        with os.fdopen(os.open(path, flags), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise Unreadable("is not a regular file; it was not opened")
            if status.st_size > limit:
                raise Unreadable(f"is larger than {limit // 1024 // 1024} MB; split it")
            return file.read(limit)
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}") from error


def _read_texts(
    files: Mapping[str, Path], on_file: Callable[[str], None] | None = None
) -> tuple[dict[str, _Text], list[Problem]]:
    texts: dict[str, _Text] = {}
    problems: list[Problem] = []
    for path, file in files.items():
        try:
            texts[path] = _read_text(path, file)
            problems += texts[path].problems
        except Unreadable as error:
            problems.append(Problem(path, f"this file {error}", skipped=True))
        if on_file:
            on_file(path)
    return texts, problems


def _read_text(path: str, file: Path) -> _Text:
    raw = _read_bytes(file, MAX_BYTES)
    text = _decode(raw)
    if path.lower().endswith(".ipynb"):
        text = _read_notebook(text)
    front = read_front_matter(text)
    home = file.parents[path.count("/")]
    expanded = expand_includes(path, text, front.body_start, lambda there: _read_included(home, there))
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
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.replace("\0", "\ufffd")


def _read_notebook(content: str) -> str:
    try:
        return read_notebook(content)
    except (ValueError, TypeError, AttributeError) as error:
        raise Unreadable("is not a notebook that can be read (broken JSON, or no cells in it)") from error


def _read_included(home: Path, path: str) -> str | None:
    """A file of the book by its path in it; no link, however it is made, leads out of the folder."""
    try:
        file = (home / path).resolve(strict=True)
        return _decode(_read_bytes(file, MAX_SMALL_BYTES)) if file.is_relative_to(home) else None
    except (OSError, RuntimeError, ValueError, Unreadable):
        return None


def _title_of_overview(home: Path) -> str | None:
    for name in ("README.md", "README.mdx", "index.md", "index.mdx"):
        try:
            page = _read_text(name, home / name).page
        except Unreadable:
            continue
        return page.front.text("title") or page.heading
    return None


def _ignore_pattern(patterns: tuple[str, ...]) -> re.Pattern[str] | None:
    """As in .gitignore: `**` crosses folders, a pattern without a slash holds at any depth, a folder takes all below it."""
    written = [pattern.strip() for pattern in patterns if pattern.strip().strip("/")]
    return re.compile("|".join(map(_translate, written)), re.DOTALL) if written else None


def _translate(pattern: str) -> str:
    anchored = "/" in pattern.rstrip("/")
    only_folders = pattern.endswith("/")
    tokens = re.findall(r"\*\*/|\*\*|\*|\?|[^*?]+", pattern.strip("/"))
    wild = {"**/": "(?:.*/)?", "**": ".+", "*": "[^/]*", "?": "[^/]"}
    body = "".join(wild.get(token) or re.escape(token) for token in tokens)
    return ("" if anchored else "(?:.*/)?") + body + ("/.*" if only_folders else "(?:/.*)?")


# --- places ---------------------------------------------------------------------------------------


def _build_layout(home: Path, book: Book, texts: Mapping[str, _Text], problems: list[Problem]) -> Layout:
    pages = {path: text.page for path, text in texts.items()}
    summary, summary_folder = _read_summary(home, problems)
    folders = {folder for path in pages for folder in _folders_above(path)}
    categories = {
        folder: category for folder in sorted(folders) if (category := _read_category(home, folder, problems))
    }
    known = {path: entry for path, entry in summary.items() if path in pages}
    return Layout(book, pages, categories, known, summary_folder if known else ())


def _folders_above(path: str) -> Iterator[Folder]:
    parts = tuple(path.split("/")[:-1])
    return (parts[:length] for length in range(1, len(parts) + 1))


def _read_summary(home: Path, problems: list[Problem]) -> tuple[dict[str, SummaryEntry], Folder]:
    for path in SUMMARIES:
        if os.path.lexists(home / path):
            folder = tuple(path.split("/")[:-1])
            try:
                raw = _read_bytes(home / path, MAX_SMALL_BYTES)
                return read_summary(raw.decode("utf-8-sig").replace("\r", ""), folder), folder
            except (Unreadable, UnicodeDecodeError) as error:
                problems.append(Problem(path, f"this outline {error}; the folders give the order instead"))
    return {}, ()


def _read_category(home: Path, folder: Folder, problems: list[Problem]) -> Category | None:
    for name in CATEGORIES:
        path = home.joinpath(*folder, name)
        if os.path.lexists(path):
            shown = "/".join((*folder, name))
            try:
                values = read_yaml(_read_bytes(path, MAX_SMALL_BYTES).decode("utf-8-sig"))
            except (Unreadable, UnicodeDecodeError) as error:
                values = FrontMatter({}, 0, f"this file {error}")
            if values.complaint:
                problems.append(Problem(shown, values.complaint, values.complaint_key))
            position = values.text("position") or ""
            number = float(position) if re.fullmatch(r"\d{1,4}(\.\d{1,4})?", position) else None
            return Category(values.text("label"), number)
    return None


# --- lessons --------------------------------------------------------------------------------------


def _build_lesson(
    book: Book, read: _Text, place: Place, link_titles: Mapping[str, str], problems: list[Problem]
) -> Lesson:
    page = read.page
    front = page.front
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
        book_id=book.book_id,
        source_file=page.path,
        file_hash=read.file_hash,
        module=place.module,
        chapter=place.chapter,
        lesson=place.lesson,
        title=place.title,
        book_title=book.title,
        module_title=place.module_title,
        chapter_title=place.chapter_title,
        hardware_tier=int(found[TIER.name] or 1),
        proficiency_level=str(found[PROFICIENCY.name]),
        layer=str(found[LAYER.name]),
        facets={name: value for name, value in found.items() if name not in EVERY_LESSON and value is not None},
        url=place.url,
        parent_doc_id=make_id(f"{identity}:parent"),
        identity=identity,
        title_in_file=place.title_in_file,
        text=read.text,
        body_start=front.body_start,
        fingerprint="",
        lines=read.lines,
        link_titles=link_titles,
    )
    return replace(lesson, fingerprint=_fingerprint(lesson))


def _read_value(page: Page, facet: Facet, warn_missing: bool, problems: list[Problem]) -> FacetValue | None:
    written = page.front.find(*facet.keys)
    if written is None:
        if warn_missing:
            message = (
                f"`{facet.keys[0]}` is missing; {facet.default!r} is used"
                if facet.default is not None
                else f"`{facet.keys[0]}` is missing"
            )
            problems.append(Problem(page.path, message, facet.keys[0]))
        return facet.default
    key, value = written
    known = read_facet(facet, value)
    if known is None:
        allowed = f"; allowed: {', '.join(map(str, facet.values))}" if facet.values else ""
        problems.append(Problem(page.path, f"`{key}` is {str(value)[:40]!r}; {facet.default!r} is used{allowed}", key))
        return facet.default
    return known


def _fingerprint(lesson: Lesson) -> str:
    left_out = ("text", "fingerprint", "parent_doc_id", "lines")
    fields = {name: getattr(lesson, name) for name in Lesson.__slots__ if name not in left_out}
    canonical = json.dumps(
        [CHUNKER_VERSION, MARKUP_VERSION, fields], sort_keys=True, ensure_ascii=True, separators=(",", ":")
    )
    return hashlib.sha256(canonical.encode()).hexdigest()
