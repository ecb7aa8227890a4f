"""Sphinx with MyST, and Jupyter Book: conf.py as text, toctrees, `_toc.yml` and `_config.yml`."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from askbook.book.files import EXTENSIONS
from askbook.book.markup.references import flatten
from askbook.book.sites.site import MAX_SECTIONS, Files, Leaf, Nav, Pages, Section, Site, own_title, read_each, to_leaf
from askbook.book.sites.values import dig, file_route, join, to_base_url, to_text, to_texts

_OPENING = re.compile(
    r"(?P<marks>`{3,}|~{3,}|:{3,})\{toctree\}|(?P<rst>\.\. toctree::)|(?P<code>`{3,}|~{3,})(?P<other>\{)?"
)
_OPTION = re.compile(r":(\w+):\s*(.*)")
_TITLED = re.compile(r"(.*\S)\s*<([^<>]+)>$")
MAX_PATTERNS = 200
_STRING = re.compile(r"'([^'\\\n]*)'|\"([^\"\\\n]*)\"")


def _read_jupyter_book(files: Files, folder: str) -> Site | None:
    toc = files.first(folder, "_toc.yml")
    if toc is None:
        return None
    config = files.first(folder, "_config.yml")
    values = files.yaml(config) if config else {}
    return Site(
        generator="Jupyter Book",
        config=toc,
        docs=folder,
        to_route=lambda path, _: file_route(path),
        anchors="docutils",
        title=to_text(values.get("title")),
        base_url=to_base_url(dig(values, "html", "baseurl")),
        read_nav=partial(_read_toc, files, toc, folder),
        values=flatten(
            dig(values, "sphinx", "config", "myst_substitutions") or dig(values, "parse", "myst_substitutions")
        ),
        ignore=("_build/", *map(_anchored, to_texts(values.get("exclude_patterns")))),
        underscored=True,
        front_page=to_text(dig(files.yaml(toc), "root")) or "intro",
        only_nav=str(values.get("only_build_toc_files")).lower() == "true",
    )


def read_site(files: Files, folder: str) -> Site | None:
    return _read_jupyter_book(files, folder) or _read_sphinx(files, folder)


def _read_sphinx(files: Files, folder: str) -> Site | None:
    config = files.first(folder, "conf.py", "source/conf.py")
    text = files.text(config) if config else ""
    if config is None or not re.search(r"^(?:extensions|project|html_theme)\s*=", text, re.MULTILINE):
        return None
    docs = posixpath.dirname(config)
    root = _assigned(text, "root_doc") or _assigned(text, "master_doc") or "index"
    listed = re.search(r"^exclude_patterns\s*=\s*\[([^\]]{0,2000})\]", text, re.MULTILINE)
    excluded = [single or double for single, double in _STRING.findall(listed.group(1))] if listed else []
    return Site(
        generator="Sphinx",
        config=config,
        docs=docs,
        to_route=lambda path, _: file_route(path),
        anchors="docutils",
        title=_assigned(text, "project") or _assigned(text, "html_title"),
        base_url=to_base_url(_assigned(text, "html_baseurl")),
        read_nav=partial(_read_trees, files, docs, root),
        values=_substitutions(text),
        ignore=("_build/", "_templates/", *map(_anchored, excluded)),
        language=_assigned(text, "language") or "en",
        front_page=root,
        underscored=True,
    )


def _substitutions(text: str) -> dict[str, str]:
    """The texts of a dictionary that conf.py writes out."""
    found = re.search(r"^myst_substitutions\s*=\s*\{", text, re.MULTILINE)
    pairs = re.compile(
        r"\s*(?:#[^\n]*\n\s*)*(?:'([^'\\\n]+)'|\"([^\"\\\n]+)\")\s*:\s*(?:'([^'\\\n]*)'|\"([^\"\\\n]*)\"|[^\s'\"][^,\n]*)\s*,?"
    )
    values: dict[str, str] = {}
    at = found.end() if found else len(text)
    while pair := pairs.match(text, at):
        values[pair[1] or pair[2]] = pair[3] or pair[4] or ""
        at = pair.end()
    return flatten(values)


def _anchored(pattern: str) -> str:
    """Sphinx' patterns begin at the source folder; one that begins with `**` holds everywhere."""
    return pattern if pattern.startswith("**") else f"/{pattern}"


def _assigned(text: str, name: str) -> str | None:
    found = re.search(rf"^{name}\s*(?::[^=\n]*)?=\s*(?:'([^'\\\n]*)'|\"([^\"\\\n]*)\")\s*(?:#.*)?$", text, re.MULTILINE)
    return to_text(found.group(1) or found.group(2)) if found else None


def _find(pages: Pages, docs: str, name: str) -> str | None:
    whole = join(docs, name)
    return next((path for end in ("", *EXTENSIONS) if (path := f"{whole}{end}") in pages), None)


# --- Jupyter Book ---------------------------------------------------------------------------------


def _read_toc(files: Files, config: str, docs: str, pages: Pages, _likely: Pages) -> Nav:
    """`parts` with a caption hold `chapters`, these hold `sections`; in other books `subtrees` hold `entries`."""
    toc, globbed = files.yaml(config), _Patterns(files, pages)

    def read_level(level: Any) -> Nav:
        parts = _lists(level, "parts", "subtrees")
        groups = tuple(
            Section(to_text(dig(part, "caption")), read_entries(part)) for part in parts if isinstance(part, dict)
        )
        return (*groups, *read_entries(level)) if isinstance(level, dict) else ()

    def read_entries(level: Any) -> Nav:
        return read_each(_lists(level, "chapters", "sections", "entries"), read_entry)

    def read_entry(entry: Any) -> Nav:
        title = to_text(dig(entry, "title"))
        pattern = dig(entry, "glob")
        if isinstance(pattern, str):
            return tuple(Leaf(path) for path in globbed.find(config, join(docs, pattern) or ""))
        written = to_text(dig(entry, "file"))
        path = _find(pages, docs, written) if written else None
        below = read_level(entry)
        if not below:
            return to_leaf(path or join(docs, written), title) if written else ()
        return (Section(title or (own_title(pages[path]) if path else None), below, path),)

    return (*to_leaf(_find(pages, docs, str(toc.get("root") or "intro"))), *read_level(toc))


def _lists(level: Any, *keys: str) -> list[Any]:
    return [entry for key in keys if isinstance(value := dig(level, key), list) for entry in value]


class _Patterns:
    """Pages by a pattern of their names. Each looks at all pages, so that there must not be many of them."""

    def __init__(self, files: Files, pages: Pages) -> None:
        self._files, self._pages, self._left = files, sorted(pages), MAX_PATTERNS

    def find(self, source: str, pattern: str) -> list[str]:
        self._left -= 1
        if self._left < 0:
            self._files.complain(source, f"the navigation has more than {MAX_PATTERNS} patterns; the rest is not read")
            return []
        matches = re.compile(fnmatch.translate(pattern).replace(".*", "[^/]*")).match
        return [path for path in self._pages if matches(posixpath.splitext(path)[0])]


# --- Sphinx ---------------------------------------------------------------------------------------


def _read_trees(files: Files, docs: str, root: str, pages: Pages, _likely: Pages) -> Nav:
    """The toctrees of the root page, and those of the pages they name; each page once, so that no circle is walked."""
    seen: set[str] = set()
    globbed = _Patterns(files, pages)

    def read_page(whole: str, title: str | None = None, depth: int = 0) -> Nav:
        name = whole.removeprefix(docs).lstrip("/")
        path, source = _find(pages, docs, name), _source(files, docs, name)
        if source is None:
            return to_leaf(join(docs, name))
        if source in seen or depth > MAX_SECTIONS:
            return ()
        seen.add(source)
        below: list[Leaf | Section] = []
        for caption, is_glob, lines in _find_trees(files.text(source)):
            items = tuple(item for line in lines for item in read_line(line, source, is_glob, depth + 1))
            below += (Section(caption, items),) if caption and items else items
        if not below:
            return (Leaf(path or source, title),)
        return (Section(title or (own_title(pages[path]) if path else None), tuple(below), path),)

    def read_line(line: str, source: str, is_glob: bool, depth: int) -> Nav:
        titled = _TITLED.match(line[:500])
        title, target = (to_text(titled.group(1)), titled.group(2)) if titled else (None, line)
        if "://" in target or target == "self":
            return ()
        whole = join(docs if target.startswith("/") else posixpath.dirname(source), target)
        if whole is None:
            files.complain_outside(source, target, "toctree")
            return ()
        if not is_glob or "*" not in target:
            return read_page(whole, title, depth)
        found = [path for path in globbed.find(source, whole) if path not in seen]
        return tuple(item for path in found for item in read_page(path, None, depth))

    top = read_page(root)
    if top and isinstance(top[0], Section):
        return (*to_leaf(top[0].page), *top[0].items)
    return top


def _source(files: Files, docs: str, name: str) -> str | None:
    whole = join(docs, name) or name
    ends = ("", *EXTENSIONS, ".rst") if whole.endswith((*EXTENSIONS, ".rst")) else (*EXTENSIONS, ".rst")
    return next((whole + end for end in ends if files.is_file(whole + end)), None)


def _find_trees(text: str) -> Iterator[tuple[str | None, bool, list[str]]]:
    """Of each toctree its caption, whether its lines are patterns, and its lines; one in an example is none."""
    lines = iter(text.split("\n"))
    line = next(lines, None)
    directives: list[str] = []
    while line is not None:
        bare = line.strip()
        opening = _OPENING.match(bare)
        line = next(lines, None)
        if opening is None:
            continue
        if opening["other"]:
            directives.append(opening["code"])
            continue
        if directives and bare == opening["code"] and bare.startswith(directives[-1]):
            directives.pop()
            continue
        body: list[str] = []
        closing = opening["marks"] or opening["code"]
        while line is not None and not (line.strip().startswith(closing) if closing else line[:1].strip()):
            body.append(line)
            line = next(lines, None)
        if not opening["code"]:
            yield _read_body(body)
        if closing:
            line = next(lines, None)


def _read_body(lines: list[str]) -> tuple[str | None, bool, list[str]]:
    options: dict[str, str] = {}
    named: list[str] = []
    in_yaml = False
    for line in map(str.strip, lines):
        if line == "---":
            in_yaml = not in_yaml
        elif in_yaml and ":" in line:
            key, _, value = line.partition(":")
            options[key] = value.strip().strip("'\"")
        elif option := _OPTION.match(line):
            options[option.group(1)] = option.group(2)
        elif line and not in_yaml:
            named.append(line)
    return options.get("caption") or None, "glob" in options, named
