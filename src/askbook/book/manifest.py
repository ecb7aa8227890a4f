"""`askbook.toml`: what a book says of itself."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from typing import TypeVar

from askbook.domain import Book, Facet, FacetValue
from askbook.errors import BookError

FILE = "askbook.toml"
KEYS = ("book_id", "title", "base_url", "modules", "facets", "ignore", "settings")
FACET_KEYS = ("keys", "values", "default")

# Every lesson has these three, declared or not: the seeds' payload does.
TIER = Facet("hardware_tier", ("hardware_tier", "hardware_prerequisites"), (1, 2, 3, 4), 1)
PROFICIENCY = Facet(
    "proficiency_level", ("proficiency_level", "cefr_level"), ("A1", "A2", "B1", "B2", "C1", "C2"), "A2"
)
LAYER = Facet("layer", ("layer", "primary_layer"), ("L1", "L2", "L3", "L4"), "L1")
EVERY_LESSON = {facet.name: facet for facet in (TIER, PROFICIENCY, LAYER)}

_PUBLIC_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_BOOK_ID = re.compile(rf"(?:[a-z0-9][a-z0-9-]{{0,23}}/)?{_PUBLIC_ID.pattern}")
_BOOK_ID_LENGTH = 64
_FACET_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")

Value = TypeVar("Value")


def read_manifest(raw: bytes | None, folder_name: str, book_id: str | None) -> tuple[Book, bool]:
    """The book, and whether it names its own title."""
    try:
        table: dict[str, object] = tomllib.loads((raw or b"").decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BookError(f"{FILE} cannot be read: {error}", "Mend the line it names, or remove the file.") from error
    _refuse_unknown(table, KEYS, "")
    if not book_id and (named := _typed(table, "book_id", str)):
        # What the folder calls itself is never a book of a tenant, which only a key or the command line names.
        book_id = check_public_id(named)
    chosen_id = book_id or slug(folder_name)[:64].strip("-._") or "book"
    title, base_url = _typed(table, "title", str), _typed(table, "base_url", str)
    if base_url is not None and not re.match(r"https?://\S+$|/\S*$", base_url):
        raise _wrong("base_url", base_url, "an address that begins with https:// (or a path that begins with /)")
    book = Book(
        book_id=check_book_id(chosen_id),
        title=title or prettify(folder_name),
        base_url=base_url.rstrip("/") if base_url else None,
        modules=_read_modules(table),
        facets=tuple(_read_facet(name, body) for name, body in (_typed(table, "facets", dict) or {}).items()),
        ignore=tuple(map(str, _list_of(table, "ignore", (str,)))),
    )
    return book, title is not None


def check_book_id(book_id: str, pattern: re.Pattern[str] = _BOOK_ID) -> str:
    """A book's id, with its tenant's before a slash where it has one."""
    if not pattern.fullmatch(book_id) or len(book_id) > _BOOK_ID_LENGTH:
        raise BookError(
            f"{book_id!r} cannot be a book id",
            "Use 1 to 64 letters, digits, `-`, `_` or `.`, beginning with a letter or digit.",
        )
    return book_id


def check_public_id(book_id: str) -> str:
    return check_book_id(book_id, _PUBLIC_ID)


def slug(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9._]+", "-", (plain or name).lower()).strip("-._")


def prettify(name: str) -> str:
    """`chapter-3-building-with-ros2` → `Chapter 3: Building With Ros2`; `02_install` → `Install`."""
    words = re.sub(r"[-_\s]+", " ", name).strip()
    numbered = re.match(r"(module|chapter|lesson|part|unit|section|week|day) ?0*(\d+)(?: (.+))?$", words, re.IGNORECASE)
    if numbered:
        kind, number, rest = numbered.groups()
        return f"{kind.capitalize()} {number}" + (f": {_capitalise(rest)}" if rest else "")
    return _capitalise(re.sub(r"^\d+[. ]+(?=\S)", "", words)) or name


def _capitalise(words: str) -> str:
    return " ".join(word[:1].upper() + word[1:] for word in words.split())


def _refuse_unknown(table: dict[str, object], known: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in known:
            raise BookError(f"{FILE}: unknown key `{where}{key}`", f"Known keys: {', '.join(known)}.")


def _typed(table: dict[str, object], key: str, kind: type[Value]) -> Value | None:
    value = table.get(key)
    if value is None or (isinstance(value, kind) and not isinstance(value, bool) and value != ""):
        return value  # pyright: ignore[reportReturnType]
    raise _wrong(key, value, {str: "a text", dict: "a table"}.get(kind, kind.__name__))


def _wrong(key: str, value: object, wanted: str) -> BookError:
    return BookError(f"{FILE}: `{key}` is {str(value)[:80]!r}", f"Make `{key}` {wanted}.")


def _list_of(table: dict[str, object], key: str, kinds: tuple[type, ...], where: str = "") -> list[FacetValue]:
    value = table.get(key, [])
    if not isinstance(value, list) or any(isinstance(item, bool) or not isinstance(item, kinds) for item in value):
        raise _wrong(
            where + key, value, "a list of " + " or ".join({str: "texts", int: "numbers"}[kind] for kind in kinds)
        )
    return value


def _read_modules(table: dict[str, object]) -> dict[str, str]:
    modules: dict[str, str] = {}
    for folder, name in (_typed(table, "modules", dict) or {}).items():
        if not isinstance(name, str) or not name.strip() or ":" in name:
            raise _wrong(f"modules.{folder}", name, 'the short name of a module, such as "ros2"')
        modules[folder.strip("/")] = name.strip()
    return modules


def _read_facet(name: str, body: object) -> Facet:
    where = f"facets.{name}."
    if not isinstance(body, dict) or not _FACET_NAME.fullmatch(name):
        raise _wrong(f"facets.{name}", body, "a table with a plain name, such as [facets.robot]")
    _refuse_unknown(body, FACET_KEYS, where)
    usual = EVERY_LESSON.get(name, Facet(name, (name,)))
    keys = tuple(str(key) for key in _list_of(body, "keys", (str,), where)) or usual.keys
    values = tuple(_list_of(body, "values", (str, int), where)) or usual.values
    if name in EVERY_LESSON:
        wanted = type(usual.default)
        if any(type(value) is not wanted for value in values):
            raise _wrong(where + "values", list(values), "numbers" if wanted is int else "texts")
    default = body.get("default", usual.default if usual.default in values or not values else values[0])
    if default is not None and (isinstance(default, bool) or not isinstance(default, str | int)):
        raise _wrong(where + "default", default, "a text or a number")
    if default is not None and values and default not in values:
        raise _wrong(where + "default", default, "one of " + ", ".join(map(str, values)))
    return Facet(name, keys, values, default)
