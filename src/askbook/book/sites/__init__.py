"""Documentation sites, understood from their generators' own files. Nothing of them is executed."""

from __future__ import annotations

import posixpath
import re

from askbook.book.sites import docusaurus, hugo, mdbook, mkdocs, nextra, sphinx, starlight, vitepress
from askbook.book.sites.site import Files, Site
from askbook.book.sites.values import join

GENERATORS = (mkdocs, docusaurus, vitepress, starlight, nextra, sphinx, mdbook, hugo)
USUAL = ("docs", "website", "doc", "documentation", "docs-site", "site", "www", "book", "guide", "en")
MAX_LEVEL = 3
MAX_FOLDERS = 60

_OF_A_SITE = re.compile(r"doc|website|^site$|^www$|book$|guide|manual|handbook", re.IGNORECASE)
_HOLDS_SITES = re.compile(r"packages|apps|projects|sites|source|src", re.IGNORECASE)
_NUMBERED = re.compile(r"(?:module|chapter|chap|lesson|lecture|part|unit|week|day|ch)[-_ ]?\d|\d+[-_. ]", re.IGNORECASE)
_NO_SITE = re.compile(r"\.|_|example|test|template|fixture|demo|theme|node_modules|dist$|build$|vendor", re.IGNORECASE)


def find_site(files: Files) -> Site | None:
    """The site whose files stand in the folder itself, or in a folder below that a repository keeps its site in."""
    level = [""]
    for depth in range(MAX_LEVEL + 1):
        # Beside folders that number their lessons, a site below is not the book.
        if depth == 1 and any(is_folder and _NUMBERED.match(name) for name, is_folder in files.names("").items()):
            return None
        sites = [site for folder in level if (site := _read_site(files, folder))]
        if sites:
            if others := ", ".join(site.config for site in sites[1:]):
                files.complain(sites[0].config, f"this site is the book; there are others: {others[:200]}")
            return sites[0]
        level = [below for folder in level for below in _folders_below(files, folder)][:MAX_FOLDERS]
    return None


def _read_site(files: Files, folder: str) -> Site | None:
    name = posixpath.basename(folder)
    if folder and not _OF_A_SITE.search(name) and name not in USUAL:
        return None
    return next((site for generator in GENERATORS if (site := generator.read_site(files, folder))), None)


def _folders_below(files: Files, folder: str) -> list[str]:
    in_site = bool(_OF_A_SITE.search(posixpath.basename(folder)))
    names = [
        name
        for name, is_folder in files.names(folder).items()
        if is_folder
        and not _NO_SITE.match(name)
        and (_OF_A_SITE.search(name) or _HOLDS_SITES.fullmatch(name) or (in_site and name in USUAL))
    ]
    names.sort(key=lambda name: (USUAL.index(name) if name in USUAL else len(USUAL), name))
    return [join(folder, name) or name for name in names]
