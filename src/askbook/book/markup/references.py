"""References without words of their own: they read as the title of the page or section that they lead to."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping

from askbook.book.markup.counted import find_counted, find_counted_titles
from askbook.book.sections import clean_heading

_REFERENCE = re.compile(
    r"\[\]\((?P<link>[^()\s]{1,300})\)|\{(?:doc|ref|any|std:doc|std:ref)\}`(?P<role>[^`<>\n]{1,200})`"
    r"|\{\{[<%]\s*(?:rel)?ref\s+\"(?P<shortcode>[^\"\n]{1,200})\"\s*[>%]\}\}"
)
_LABELLED = re.compile(r"^\((?P<label>[\w:./-]+)\)=\s*\n+#{1,6}[ \t]+(?P<title>[^\n]+)", re.MULTILINE)
_OWN_ID = re.compile(
    r"^#{1,6}[ \t]+(?P<title>[^\n]+?)[ \t]*\{:?[ \t]*#(?P<label>[\w:.-]+)[^{}\n]*\}[ \t]*$", re.MULTILINE
)
_VARIABLE = re.compile(r"\{\{-?\s*+([A-Za-z_][\w.-]{0,100})\s*+-?\}\}")
VALUE_MAX, VALUES_MOST = 300, 500
_ENDINGS = ("", ".md", ".mdx", ".ipynb", "/index.md", "/README.md", "/_index.md")


def find_labels(texts: Iterable[str]) -> dict[str, str]:
    """The headings of a book that have a name to refer to them by, and what is counted."""
    texts = list(texts)
    return find_counted(texts) | {
        found["label"]: clean_heading(found["title"])
        for text in texts
        if ")=" in text or "{#" in text or "{:" in text
        for pattern in (_LABELLED, _OWN_ID)
        for found in pattern.finditer(text)
    }


def find_link_titles(path: str, text: str, pages: Mapping[str, str], labels: Mapping[str, str]) -> dict[str, str]:
    """What each reference of a page reads as; `pages` are the titles by file."""
    counted = find_counted_titles(text, labels)
    if "[](" not in text and "}`" not in text and "ref " not in text:
        return counted
    targets = {found["link"] or found["role"] or found["shortcode"] for found in _REFERENCE.finditer(text)}
    named = {target: _name(path, target, pages, labels) for target in sorted(targets)}
    return counted | {target: title for target, title in named.items() if title}


def find_values(text: str, front: Mapping[str, object], known: Mapping[str, str]) -> dict[str, str]:
    """What the variables of a page read as: `{{ version }}`, from its own front matter, else from the site's files."""
    names = set(_VARIABLE.findall(text)) if "{{" in text else set[str]()
    if not names:
        return {}
    myst = front.get("myst")
    of_myst = myst.get("substitutions") if isinstance(myst, Mapping) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    values = {**known, **flatten(front.get("substitutions")), **flatten(of_myst)}
    return {f"{{{{{name}}}}}": values[name] for name in sorted(names & values.keys())}


def flatten(values: object, prefix: str = "", depth: int = 0) -> dict[str, str]:
    """The texts of one line in a mapping: `{a: {b: c}}` → `a.b`."""
    found: dict[str, str] = {}
    for key, value in values.items() if isinstance(values, Mapping) and depth < 4 else ():  # pyright: ignore[reportUnknownVariableType]
        if isinstance(value, Mapping):
            found |= flatten(value, f"{prefix}{key}.", depth + 1)
        elif isinstance(value, str) and value.strip() and "\n" not in value.strip() and len(value) <= VALUE_MAX:
            found[f"{prefix}{key}"] = value.strip()
        if len(found) >= VALUES_MOST:
            break
    return found


def _name(path: str, target: str, pages: Mapping[str, str], labels: Mapping[str, str]) -> str | None:
    page, _, label = target.partition("#")
    if label or target in labels:
        return labels.get(label or target) or next(
            (pages[one] for one in _candidates(path, page) if one in pages), None
        )
    return next((pages[one] for one in _candidates(path, page) if one in pages), None)


def _candidates(path: str, page: str) -> Iterator[str]:
    if not page:
        return
    for folder in (posixpath.dirname(path), ""):
        there = posixpath.normpath(posixpath.join(folder, page.lstrip("/")))
        yield from (there + ending for ending in _ENDINGS)
