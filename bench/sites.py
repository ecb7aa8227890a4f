"""How real sites are understood: `python bench/sites.py FOLDER…`, each a checkout of a site's repository.

One line a site: the generator found; of the pages that its own navigation names, those that are lessons, and whether
they come in its order; titles and addresses on 20 pages spread over the book; links of the site to its own headings
that our anchors meet; what is left in its chunks of the markup in its files, by kind; how many letters of its prose are
in no chunk (bench/markup.py). What is expected is taken from the files as text, by rules of these scripts, not by the
readers that are measured.
"""

from __future__ import annotations

import argparse
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import yaml
from markup import find_lost, find_raw, split_listings

from askbook.book.chunker import split_lesson
from askbook.book.reader import read_book, read_lessons
from askbook.book.sections import Anchors, parse_blocks
from askbook.book.sites import find_site
from askbook.book.sites.site import Files, Site
from askbook.domain import Lesson

PAGES = 20
ENDS = (".md", ".mdx", ".markdown", ".ipynb")
LANGUAGES = r"(?i:[a-z]{2}|zh-cn|zh-hans|zh-hant|pt-?br|pt-pt|es-es|fr-fr|ko-kr|ja-jp)"
FENCE = re.compile(r"^[ \t>]*(`{3,}|~{3,})[^\n]*\n.*?^[ \t>]*\1[`~]*[ \t]*$", re.MULTILINE | re.DOTALL)
INLINE_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)


@dataclass(frozen=True)
class Row:
    name: str
    generator: str
    found: int
    expected: int
    in_order: bool
    titles: tuple[int, int]
    addresses: tuple[int, int]
    links: tuple[int, int]
    chunks: int
    raw: Counter[str]
    listed: int
    """Of what is left, what stands in listings by their indent."""
    written: int
    lost: int
    misses: tuple[str, ...]


# --- what is expected -----------------------------------------------------------------------------


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def uncommented(text: str) -> str:
    return re.sub(r"(?m)^\s*//[^\n]*$|\s//\s[^\n]*$|/\*.*?\*/", "", text, flags=re.DOTALL | re.MULTILINE)


def as_page(docs: Path, name: str, overviews: tuple[str, ...] = ()) -> Path | None:
    bare = re.sub(r"\.html$", "", unquote(name.split("#")[0])).strip("/")
    names = [bare, *(bare + end for end in ENDS), *(f"{bare}/{one}{end}" for one in overviews for end in ENDS)]
    return next((docs / one for one in names if one and one.endswith(ENDS) and (docs / one).is_file()), None)


def expect_mkdocs(home: Path, site: Site) -> Iterator[Path | None]:
    nav = re.search(r"(?m)^nav:\s*\n((?:[ \t-]+[^\n]*\n|\s*\n|#[^\n]*\n)*)", read(home / site.config) + "\n")
    for name in re.findall(r"(?m)^[^#\n]*?['\"\s]([\w./-]+\.md)['\"]?\s*$", nav.group(1) if nav else ""):
        yield as_page(home / site.docs, name)


def expect_mdbook(home: Path, site: Site) -> Iterator[Path | None]:
    for name in re.findall(r"\]\(<?([^()<>\s]+\.md)>?\)", read(home / site.docs / "SUMMARY.md")):
        yield as_page(home / site.docs, name.removeprefix("./"))


def expect_docusaurus(home: Path, site: Site) -> Iterator[Path | None]:
    """Every quoted id of the sidebars that is a file, or the id in a file's front matter; of generated folders all."""
    folder, docs = (home / site.config).parent, home / site.docs
    by_id = {
        posixpath.join(posixpath.dirname(path.relative_to(docs).as_posix()), str(front_of(read(path))["id"])): path
        for path in docs.rglob("*.md*")
        if "id" in front_of(read(path))
    }
    for sidebars in sorted(folder.glob("sidebars.*")):
        for generated, name in re.findall(r"(dirName:\s*)?['\"]([\w./-]+)['\"]", uncommented(read(sidebars))):
            if generated:
                yield from sorted(path for path in (docs / name).rglob("[!_]*") if path.suffix in ENDS)
            elif (page := as_page(docs, name) or by_id.get(name)) is not None:
                yield page


def expect_vue(home: Path, site: Site) -> Iterator[Path | None]:
    """Every quoted address of the config, and of the files beside it that are not another language's."""
    config, docs = home / site.config, home / site.docs
    place = next(parent for parent in config.parents if parent.name in (".vitepress", ".vuepress"))
    for file in sorted(place.rglob("*")):
        is_foreign = re.search(r"(?:^|/)(?:zh|ru|es|ko|ja|pt|fr)\b", file.relative_to(place).as_posix())
        if file.suffix not in (".ts", ".js", ".mts") or is_foreign or "theme" in file.parts:
            continue
        text = uncommented(read(file))
        for name in re.findall(
            r"(?:link:\s*|text:[^\n]+\n\s*link:\s*|^\s*|\[)['\"](/[\w./@-]*)['\"]", text, re.MULTILINE
        ):
            if not re.match(rf"/(?:{LANGUAGES}/|blog)", name) and (page := as_page(docs, name, ("index", "README"))):
                yield page


def expect_files(home: Path, site: Site) -> Iterator[Path | None]:
    """A navigation made of the files: every page of the default language that is no draft, post or test."""
    docs = home / site.docs
    for path in sorted(docs.rglob("*")):
        inner = path.relative_to(docs).as_posix()
        aside = re.match(rf"(?:blog|tests)[/.]|404\.|{LANGUAGES}/", inner) or re.search(r"(?:^|/)[_.](?!index)", inner)
        if path.suffix in ENDS and not aside and str(front_of(read(path)).get("draft")).lower() != "true":
            yield path


def expect_jupyter_book(home: Path, site: Site) -> Iterator[Path | None]:
    for name in re.findall(r"(?m)^\s*(?:-\s*)?(?:file|root):\s*(\S+)", read(home / site.config)):
        yield as_page(home / site.docs, name)


def expect_sphinx(home: Path, site: Site) -> Iterator[Path | None]:
    docs = home / site.docs
    yield as_page(docs, "index")
    for path in sorted(docs.rglob("*")):
        if path.suffix not in (*ENDS, ".rst") or "_build" in path.parts:
            continue
        for body in re.findall(r"(?ms)^`{3,}\{toctree\}[^\n]*\n(.*?)^`{3,}", outer_fences(read(path))):
            for line in body.split("\n"):
                name = re.sub(r".*<([^<>]+)>$", r"\1", line.strip())
                if name and not name.startswith(":") and "://" not in name and "*" not in name:
                    base = docs if name.startswith("/") else path.parent
                    page = as_page(base, posixpath.normpath(name.strip("/")))
                    if page:
                        yield Path(posixpath.normpath(page.as_posix()))


def outer_fences(text: str) -> str:
    """Without what stands inside a longer fence: an example of a toctree is none."""
    return re.sub(r"(?ms)^(`{4,})[^\n]*\n.*?^\1[ \t]*$", "", text)


EXPECT: Mapping[str, Callable[[Path, Site], Iterator[Path | None]]] = {
    "MkDocs": expect_mkdocs,
    "Material for MkDocs": expect_mkdocs,
    "mdBook": expect_mdbook,
    "Docusaurus": expect_docusaurus,
    "VitePress": expect_vue,
    "VuePress": expect_vue,
    "Hugo": expect_files,
    "Starlight": expect_files,
    "Nextra": expect_files,
    "Jupyter Book": expect_jupyter_book,
    "Sphinx": expect_sphinx,
}
ORDERED = ("MkDocs", "Material for MkDocs", "mdBook", "Docusaurus", "Jupyter Book")


def front_of(text: str) -> dict[str, object]:
    block = re.match(r"---\s*\n(.*?)\n---\s*(?:\n|$)", text, re.DOTALL)
    try:
        found = yaml.safe_load(block.group(1)) if block else {}
    except yaml.YAMLError:
        found = {}
    return found if isinstance(found, dict) else {}


def own_titles(text: str) -> set[str]:
    body = FENCE.sub("", text)
    headings = re.findall(r"(?m)^ {0,3}#[ \t]+([^\n]+)|^([^\n#>-][^\n]*)\n=+[ \t]*$", body)[:1]
    front = front_of(text)
    titles = [
        *(one or two for one, two in headings),
        *(str(front[key]) for key in ("title", "sidebar_label") if key in front),
    ]
    return {plain(title) for title in titles}


def plain(title: str) -> str:
    text = re.sub(r"\{[\w:]+\}(?=`)|\s*\{[^{}]*\}\s*$|<[^<>]+>|!?\[([^\[\]]*)\]\([^()]*\)", r"\1", title)
    return "".join(char for char in text.casefold() if char.isalnum())


def nav_titles(home: Path, site: Site, inner: str) -> set[str]:
    """What the navigation's file says on the line that names a page."""
    text = read(home / site.config) + read(home / site.docs / "SUMMARY.md")
    bare = re.escape(inner)
    found = re.findall(
        rf"(?m)^[\s-]*['\"]?([^:\n]*?)['\"]?\s*:\s*['\"]?{bare}['\"]?\s*$|\[([^\[\]]*)\]\(\.?/?{bare}\)", text
    )
    return {plain(one or two) for one, two in found}


def expected_route(generator: str, inner: str, front: Mapping[str, object]) -> str:
    """As the generators' documentation has it, in other words than the package's."""
    bare = re.sub(r"\.(?:mdx?|markdown|ipynb)$", "", inner)
    folder, _, name = bare.rpartition("/")
    in_folder = f"{folder}/" if folder else ""
    slug, own_id = str(front.get("slug") or ""), str(front.get("id") or "")
    match generator:
        case "MkDocs" | "Material for MkDocs":
            return in_folder if name in ("index", "README") else f"{bare}/"
        case "mdBook":
            return f"{in_folder}index.html" if name == "README" else f"{bare}.html"
        case "Sphinx" | "Jupyter Book":
            return f"{bare}.html"
        case "VitePress":
            return in_folder if name == "index" else f"{bare}.html"
        case "VuePress":
            return in_folder if name in ("index", "README") else f"{bare}.html"
        case "Hugo":
            if front.get("url"):
                return str(front["url"]).lstrip("/")
            return (
                (in_folder if name in ("_index", "index") else f"{in_folder}{slug or name}/").lower().replace(" ", "-")
            )
        case "Starlight":
            return f"{slug.strip('/')}/" if slug else (in_folder if name == "index" else f"{bare}/").lower()
        case "Nextra":
            return folder if name in ("index", "page") else bare
        case _:
            numberless = [re.sub(r"^\d+[-_.]\s*(?=\D)", "", part) for part in bare.split("/")]
            if slug:
                return slug.lstrip("/") if slug.startswith("/") else in_folder + slug
            if name.lower() in ("index", "readme", posixpath.basename(folder).lower()):
                return "".join(f"{part}/" for part in numberless[:-1])
            return "/".join([*numberless[:-1], own_id or numberless[-1]])


# --- what was found -------------------------------------------------------------------------------


def measure(folder: Path) -> Row:
    home = folder.resolve()
    site = find_site(Files(home))
    book = read_book(folder)
    book = replace(book, base_url=book.base_url or "https://example.org")
    lessons, _ = read_lessons(folder, book)
    if site is None:
        nothing = (0, 0)
        return Row(
            folder.name, "none", 0, 0, True, nothing, nothing, nothing, 0, Counter(), 0, 0, 0, ("no site was found",)
        )
    expected = [path.relative_to(home).as_posix() for path in EXPECT[site.generator](home, site) if path]
    expected = list(dict.fromkeys(expected))
    by_file = {lesson.source_file: number for number, lesson in enumerate(lessons)}
    places = [by_file[path] for path in expected if path in by_file]
    in_order = site.generator not in ORDERED or all(one < two for one, two in pairwise(places))
    sample = [lessons[number * len(lessons) // PAGES] for number in range(PAGES)] if len(lessons) >= PAGES else lessons
    titles = [lesson for lesson in sample if is_title(home, site, lesson)]
    addresses = [lesson for lesson in sample if is_address(str(book.base_url), site, lesson)]
    links = list(check_links(lessons)) if site.anchors != "docutils" else []
    chunks = {lesson.source_file: split_lesson(lesson) for lesson in lessons}
    split = [(file, *split_listings(chunk.text)) for file, its in chunks.items() for chunk in its]
    raw = [(file, *one) for file, prose, _ in split for one in find_raw(prose)]
    listed = [(file, *one) for file, _, listing in split for one in find_raw(listing)]
    lost = [(lesson.source_file, word) for lesson in lessons for word in find_lost(lesson, chunks[lesson.source_file])]
    misses = [f"not a lesson: {path}" for path in expected if path not in by_file]
    misses += [f"title: {lesson.source_file}: {lesson.title!r}" for lesson in sample if lesson not in titles]
    misses += [f"address: {lesson.source_file}: {lesson.url}" for lesson in sample if lesson not in addresses]
    misses += [f"link: {text}" for text, is_met in links if not is_met]
    misses += [f"{kind}: {file}: {around!r}" for file, kind, around in raw]
    misses += [f"in a listing, {kind}: {file}: {around!r}" for file, kind, around in listed]
    misses += [f"lost: {file}: {word}" for file, word in lost]
    return Row(
        folder.name,
        site.generator,
        len(places),
        len(expected),
        in_order,
        (len(titles), len(sample)),
        (len(addresses), len(sample)),
        (sum(is_met for _, is_met in links), len(links)),
        sum(map(len, chunks.values())),
        Counter(kind for _, kind, _ in raw),
        len(listed),
        sum(len(find_raw(lesson.text[lesson.body_start :])) for lesson in lessons),
        sum(len(word) for _, word in lost),
        tuple(misses),
    )


def is_title(home: Path, site: Site, lesson: Lesson) -> bool:
    known = own_titles(lesson.text) | nav_titles(home, site, site.inner(lesson.source_file))
    if known:
        return plain(lesson.title) in known
    # A page without any title of its own: the site makes one of its name, or of its own.
    return bool(lesson.title.strip())


def is_address(base: str, site: Site, lesson: Lesson) -> bool:
    route = expected_route(site.generator, site.inner(lesson.source_file), front_of(lesson.text))
    return lesson.url == f"{base}/{quote(route)}"


def check_links(lessons: list[Lesson]) -> Iterator[tuple[str, bool]]:
    """Links to headings that the site's authors wrote: each must meet an anchor of the page it leads to."""
    anchors = {lesson.source_file: find_anchors(lesson) for lesson in lessons}
    by_route = {unquote(urlsplit(lesson.url).path).strip("/"): lesson.source_file for lesson in lessons}
    for lesson in lessons:
        body = INLINE_CODE.sub("", FENCE.sub("", lesson.text[lesson.body_start :]))
        for path, anchor in re.findall(r"\]\(([^()\s#:]*)#([^()\s\"]+)\)", body):
            whole = posixpath.normpath(posixpath.join(posixpath.dirname(lesson.source_file), path))
            target = lesson.source_file if not path else whole if whole in anchors else by_route.get(path.strip("/"))
            if target is not None:
                yield f"{lesson.source_file} → {path}#{anchor}", unquote(anchor) in anchors[target]


def find_anchors(lesson: Lesson) -> set[str]:
    names = Anchors(lesson.anchors)
    blocks = parse_blocks(lesson.text[lesson.body_start :].split("\n"), lesson.source_file.endswith(".mdx"))
    made = {unquote(names.take(block.title)) for block in blocks if block.kind == "heading"}
    written = re.findall(r"(?:id|name)=[\"']([^\"']+)[\"']|\{:?[ ]*#([^{}\s]+)[^{}]*\}", lesson.text)
    return made | {one or two for one, two in written}


def to_line(row: Row) -> str:
    order = "" if row.in_order else " (order differs)"
    links = f"{row.links[0]} / {row.links[1]}" if row.links[1] else "–"
    raw = ", ".join(f"{kind} {count}" for kind, count in row.raw.most_common()) or "0"
    raw += f" (and {row.listed} in listings by indent)" if row.listed else ""
    return (
        f"| {row.name} | {row.generator} | {row.found} / {row.expected}{order} | {row.titles[0]} / {row.titles[1]} "
        f"| {row.addresses[0]} / {row.addresses[1]} | {links} | {row.chunks} | {raw} of {row.written} "
        f"| {row.lost} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--misses", action="store_true", help="name what was not found or differs")
    options = parser.parse_args()
    print(
        "| site | generator | pages of its navigation | titles | addresses | links to headings "
        "| chunks | markup left | letters lost |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for folder in options.folders:
        row = measure(folder)
        print(to_line(row), flush=True)
        if options.misses:
            print("".join(f"    {miss}\n" for miss in row.misses), end="")


if __name__ == "__main__":
    main()
