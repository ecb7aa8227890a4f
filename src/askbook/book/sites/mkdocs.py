"""MkDocs and Material for MkDocs: mkdocs.yml."""

from __future__ import annotations

import html
import re
from functools import partial
from typing import Any

from askbook.book.markup.references import flatten
from askbook.book.sites.site import Files, Leaf, Nav, Pages, Section, Site, find_page, read_each, to_leaf
from askbook.book.sites.values import dig, file_route, folder_route, join, to_base_url, to_text

_LINK = re.compile(r"\[((?:[^\[\]\\]|\\.)*)\]\(([^()\s]+)\)")
_RELATIVE = re.compile(r"base_path:[^#\n]*!relative[ \t]+\$(config|docs)_dir/?([\w./-]*)")
_TAG = re.compile(r"</?[A-Za-z][^<>]*+>")
_MOST_FOLDERS = 20
_LITERATE = ("SUMMARY.md", "README.md")


def read_site(files: Files, folder: str) -> Site | None:
    config = files.first(folder, "mkdocs.yml", "mkdocs.yaml")
    if config is None:
        return None
    values = files.yaml(config)
    parent = join(folder, str(values.get("INHERIT") or ""))
    if values.get("INHERIT") and parent and files.is_file(parent):
        values = files.yaml(parent) | values
    docs = files.docs(folder, values.get("docs_dir") or "docs", config, "docs_dir")
    if docs is None:
        return None
    flat = str(values.get("use_directory_urls")).lower() == "false"
    raw = files.text(config)
    return Site(
        generator="Material for MkDocs" if dig(values, "theme", "name") == "material" else "MkDocs",
        config=config,
        docs=docs,
        to_route=lambda path, _: (
            re.sub(r"(^|/)README\.html$", r"\1index.html", file_route(path)) if flat else folder_route(path)
        ),
        anchors="pymdownx" if "pymdownx.slugs" in raw else "python",
        title=to_text(values.get("site_name")),
        base_url=to_base_url(values.get("site_url")),
        read_nav=partial(_read_nav, files, docs, config, values.get("nav")),
        # Without the plugin the braces are text on the site as well.
        values=flatten(values.get("extra")) if "macros" in raw or "extradata" in raw else {},
        snippets=_snippet_folders(files, folder, docs, config, values.get("markdown_extensions"), raw),
        ignore=tuple(str(values.get("exclude_docs") or "").split("\n")),
        language=to_text(dig(values, "theme", "language")) or "en",
    )


def _snippet_folders(
    files: Files, folder: str, docs: str, config: str, extensions: object, raw: str
) -> tuple[str, ...]:
    """`pymdownx.snippets: base_path`, which counts from the folder of mkdocs.yml."""
    written: list[object] = []
    for extension in extensions if isinstance(extensions, list) else [extensions]:
        paths = dig(extension, "pymdownx.snippets", "base_path")
        written += paths if isinstance(paths, list) else [paths]
    found = [files.inside(folder, path, config, "base_path") for path in written[:_MOST_FOLDERS]]
    # The YAML reader builds nothing of a tag.
    found += [
        files.inside(folder if root == "config" else docs, f"./{below}", config, "base_path")
        for root, below in _RELATIVE.findall(raw)[:_MOST_FOLDERS]
    ]
    return tuple(dict.fromkeys(path for path in found if path is not None))


def _to_title(written: object) -> str | None:
    """The words of a title, which MkDocs writes into the page as HTML."""
    return to_text(html.unescape(_TAG.sub("", written))) if isinstance(written, str) else None


def _read_nav(files: Files, docs: str, config: str, written: object, pages: Pages, _likely: Pages) -> Nav:
    folders: set[str] = set()

    def read_item(item: Any) -> Nav:
        if isinstance(item, str):
            return read_target(None, item)
        if not isinstance(item, dict):
            return ()
        return tuple(
            found
            for title, target in item.items()
            for found in (
                read_target(_to_title(title), target)
                if isinstance(target, str)
                else (Section(_to_title(title), read_each(target, read_item)),)
            )
        )

    def read_target(title: str | None, target: str) -> Nav:
        if "://" in target or target.startswith(("mailto:", "/")):
            return ()
        if target.endswith("/"):
            # A page has its first place in the navigation; to read its folder again gives it no other.
            if target in folders:
                return ()
            folders.add(target)
            return (Section(title, _read_folder(files, docs, target, pages)),)
        if join("", target) is None:
            files.complain_outside(config, target, "nav")
        return to_leaf(find_page(pages, docs, target, ()) or join(docs, target), title)

    return read_each(written, read_item)


def _read_folder(files: Files, docs: str, target: str, pages: Pages) -> Nav:
    """A folder in the navigation has a list of links of its own, or is taken in the order of its files."""
    folder = join(docs, target) or docs
    listed = files.first(folder, *_LITERATE)
    links = _LINK.findall(files.text(listed) if listed else "")
    found = [Leaf(path, to_text(title)) for title, link in links if (path := find_page(pages, folder, link, ()))]
    return tuple(found or [Leaf(path) for path in pages if path.startswith(f"{folder}/")])
