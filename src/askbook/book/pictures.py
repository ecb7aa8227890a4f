"""The pictures of a book: those a text shows, and their bytes. Nothing outside its folder is read, no link followed."""

from __future__ import annotations

import html
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from askbook.book.files import Unreadable, read_bytes
from askbook.errors import NotFound

MAX_BYTES = 10 * 2**20
ROOTS = ("", "static", "public", "docs", "src")
"""Where the generators of sites look for `/img/robot.png`, below the folder that holds the site."""

_IMAGE = re.compile(
    r"(?<!`)(?P<ticks>`++).+?(?<!`)(?P=ticks)(?!`)"
    r"|!\[(?P<alt>(?:\\.|[^\[\]\\]|\[[^\[\]]*\])*)\]"
    r"\(\s*(?P<src><[^<>\n]*>|[^\s()<>]*(?:\([^\s()]*\)[^\s()<>]*)*)(?:\s+(?:\"[^\"]*\"|'[^']*'))?\s*\)"
    r"|<img\b(?P<attributes>[^<>]{0,2000})>",
    re.DOTALL | re.IGNORECASE,
)
_ATTRIBUTE = re.compile(r"\b(src|alt)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)
_SVG = re.compile(rb"\s*+(?:(?:<\?xml[^>]*+>|<!--(?:(?!-->).)*+-->|<!DOCTYPE svg[^>\[]*+>)\s*+)*+<svg[\s>]", re.DOTALL)
_SIGNATURES = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
    (re.compile(rb"....ftyp(?:avif|avis|....(?:....){0,8}avif)", re.DOTALL), "image/avif"),
    (_SVG, "image/svg+xml"),
)
HEAD_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Picture:
    alt: str
    src: str
    """As the text has it."""


def find_pictures(text: str) -> Iterator[Picture]:
    """Those of the book itself that the text shows, in order; what is elsewhere is not the book's."""
    for found in _IMAGE.finditer(text):
        if found["attributes"] is not None:
            alt, src = read_attributes(found["attributes"])
        else:
            alt, src = found["alt"], (found["src"] or "").removeprefix("<").removesuffix(">")
        if src and is_local(src):
            yield Picture(alt or "", src)


def list_files(text: str) -> set[str]:
    """The files of the pictures that a text shows, without escapes."""
    return {unquote(html.unescape(picture.src)) for picture in find_pictures(text)}


def read_attributes(tag: str) -> tuple[str, str]:
    """The words and the address of an `<img …>`."""
    values = {
        found[1].lower(): html.unescape(found[2] or found[3] or found[4] or "") for found in _ATTRIBUTE.finditer(tag)
    }
    return values.get("alt", ""), values.get("src", "")


def is_local(src: str) -> bool:
    try:
        parts = urlsplit(src)
    except ValueError:
        return False
    return bool(parts.path) and not parts.scheme and not parts.netloc


def read_picture(folder: Path, source_file: str, src: str) -> tuple[bytes, str]:
    """The bytes of a picture that a lesson shows, and their media type, by what they are."""
    for parts in _find_places(source_file, src):
        raw = _read_file(folder, parts)
        head = raw[:HEAD_BYTES].removeprefix(b"\xef\xbb\xbf")
        for signature, kind in _SIGNATURES:
            if signature.match(head):
                return raw, kind
    raise NotFound("there is no such picture in this book")


def _find_places(source_file: str, src: str) -> Iterator[tuple[str, ...]]:
    path = unquote(urlsplit(src).path) if is_local(src) else ""
    if not path or "\\" in path or "\0" in path:
        return
    above = [posixpath.dirname(source_file)]
    if path.startswith("/"):
        # The site may lie anywhere above its page.
        above = [f"{home}/{root}" for home in reversed(PurePosixPath(source_file).parents) for root in ROOTS]
    for folder in above:
        parts = tuple(posixpath.normpath(posixpath.join(folder, path.lstrip("/"))).split("/"))
        # Hidden files are no part of a book, and `..` leads out of it.
        if not any(part.startswith(".") for part in parts):
            yield parts


def _read_file(folder: Path, parts: tuple[str, ...]) -> bytes:
    """Nothing where it is not a plain file of the folder, or larger than a picture should be."""
    try:
        home = folder.resolve()
        path = home.joinpath(*parts)
        return read_bytes(path, MAX_BYTES) if path.resolve() == path else b""
    except (OSError, RuntimeError, ValueError, Unreadable):
        # Not there any more, or never was: readers see its words.
        return b""
