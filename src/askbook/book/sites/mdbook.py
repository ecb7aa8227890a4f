"""mdBook: book.toml and SUMMARY.md."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from urllib.parse import unquote

from askbook.book.sites.site import Entry, Files, Site
from askbook.book.sites.values import dig, file_route, join, to_base_url, to_text

_LINE = re.compile(
    r"(?P<indent>[ \t]*+)(?P<bullet>[-*+]|\d+\.)?[ \t]*+\["
    r"(?P<title>(?:[^\[\]\\]|\\.|\[[^\[\]\n]*+\])*)\]\((?P<path>[^()]*)\)(?(bullet)|\s*$)"
)
_PART = re.compile(r"#{1,6}[ \t]+(.+?)[ \t#]*$")


def read_site(files: Files, folder: str) -> Site | None:
    """Without a book.toml, an outline in the book's own folder gives the order."""
    config = files.first(folder, "book.toml")
    if config is None and folder:
        return None
    values = files.toml(config, " as TOML") if config else {}
    src = files.inside(folder, dig(values, "book", "src") or "src", config or "", "src")
    places = [src] if config else [folder, join(folder, "src")]
    summary = next(
        (found for place in places if place is not None and (found := files.first(place, "SUMMARY.md"))), None
    )
    if summary is None:
        return None
    docs = posixpath.dirname(summary)
    return Site(
        generator="mdBook",
        config=config or summary,
        docs=docs,
        to_route=lambda path, _: re.sub(r"(?i)(^|/)readme\.html$", r"\1index.html", file_route(path)),
        title=to_text(dig(values, "book", "title")),
        base_url=to_base_url(dig(values, "output", "html", "site-url")),
        entries=read_summary(files.text(summary), docs, partial(files.complain_outside, summary)),
        ignore=("/SUMMARY.md",),
        only_nav=config is not None,
    )


def read_summary(text: str, folder: str, refuse: Callable[[str, str], None]) -> dict[str, Entry]:
    """A line of the outer list is a chapter, a line below it a lesson; lines outside the list are chapter 0."""
    entries: dict[str, Entry] = {}
    part: str | None = None
    chapter = lesson = order = 0
    loose: dict[str | None, int] = defaultdict(int)
    chapter_title, outermost = "", 0
    for line in text.split("\n"):
        if (heading := _PART.match(line)) and order:
            part = heading.group(1)
        match = _LINE.match(line)
        if match is None:
            continue
        order += 1
        title, indent = re.sub(r"\\(.)|[`*]", r"\1", match["title"]), len(match["indent"].expandtabs(4))
        if not match["bullet"]:
            number = (0, loose[part])
            loose[part] += 1
        elif indent <= outermost or not chapter_title:
            chapter, lesson, chapter_title, outermost = chapter + 1, 0, title, min(indent, 1)
            number = (chapter, 0)
        else:
            lesson += 1
            number = (chapter, lesson)
        written = unquote(match["path"].strip().strip("<>").split("#")[0])
        path = join(folder, written) if written else None
        if written and path is None:
            refuse(written, "SUMMARY")
        if path and path not in entries:
            entries[path] = Entry(title, part, number[0], chapter_title if number[0] else "", number[1], order)
    return entries
