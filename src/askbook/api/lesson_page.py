"""The page of a lesson: its text, the book's contents beside it, and the way to the lesson before and after."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from itertools import groupby
from string import Template
from urllib.parse import quote, unquote, urlsplit

from askbook.api.lesson_text import Rendered, Resolve, Span, rebuild_text, render_lesson
from askbook.book.pictures import is_local, list_files
from askbook.domain import Chunk, Outline, OutlineLesson
from askbook.errors import NotFound

EXTENSIONS = (".md", ".mdx", ".markdown", ".ipynb")


def read_url(public_id: str, lesson: OutlineLesson) -> str:
    """Where askbook shows a lesson. One that is published elsewhere is found by its file."""
    home = f"/read/{public_id}/"
    return lesson.url if lesson.url.startswith(home) else home + quote(lesson.source_file)


def _place_pictures(public_id: str, chunks: Iterable[Chunk]) -> Resolve:
    """Where askbook shows the book's own pictures, each by the chunk that names it; None for any other."""
    shown = {file: chunk.id for chunk in chunks for file in list_files(chunk.text)}

    def place(src: str) -> str | None:
        path = unquote(src)
        chunk_id = shown.get(path) if is_local(src) else None
        return f"/picture/{public_id}/{chunk_id}?src={quote(path, safe='')}" if chunk_id else None

    return place


def find_lesson(outline: Outline, public_id: str, path: str) -> OutlineLesson:
    """By its address, or by its file."""
    wanted = path.strip("/")
    for lesson in outline.lessons:
        own = unquote(read_url(public_id, lesson)).removeprefix(f"/read/{public_id}/").strip("/")
        if wanted in (own, lesson.source_file):
            return lesson
    raise NotFound("there is no such lesson in this book", "The contents list those there are.")


def render_page(
    outline: Outline, public_id: str, lesson: OutlineLesson, chunks: list[Chunk], cited: Sequence[Span]
) -> str:
    rebuilt = rebuild_text(chunks)
    links, pictures = _place_links(outline, public_id, lesson), _place_pictures(public_id, chunks)
    rendered = render_lesson(rebuilt.text, links, [rebuilt.find(span) for span in cited], rebuilt.anchors, pictures)
    has_title = rendered.headings and rendered.headings[0].level == 1
    at = outline.lessons.index(lesson)
    before = outline.lessons[at - 1] if at else None
    after = outline.lessons[at + 1] if at + 1 < len(outline.lessons) else None
    published = urlsplit(lesson.url).netloc
    return _template("read.html").substitute(
        title=escape(f"{lesson.title} · {outline.title}"),
        book=escape(outline.title),
        book_id=escape(public_id),
        home=escape(read_url(public_id, outline.lessons[0])),
        contents=_contents_list(outline, public_id, lesson, rendered),
        way=_breadcrumbs(outline, lesson),
        heading="" if has_title else f"<h1>{escape(lesson.title)}</h1>",
        lesson=rendered.html,
        around=_neighbour_link(public_id, before, "Previous", "prev")
        + _neighbour_link(public_id, after, "Next", "next"),
        published=f'<a href="{escape(lesson.url)}" rel="noopener noreferrer">On {escape(published)}</a>'
        if published
        else "",
    )


def render_notice(title: str, text: str, locked: bool = False) -> str:
    """A page without a lesson; `locked`: it asks for a key."""
    return _template("notice.html").substitute(
        title=escape(title), text=escape(text), state="locked" if locked else "plain"
    )


@cache
def _template(name: str) -> Template:
    return Template(files("askbook").joinpath("web", name).read_text(encoding="utf-8"))


def _place_links(outline: Outline, public_id: str, lesson: OutlineLesson) -> Resolve:
    """Where the links of a lesson lead: to other lessons in the reader, to the web, or nowhere."""
    lessons = {lesson.source_file: lesson for lesson in outline.lessons}
    folder = posixpath.dirname(lesson.source_file)

    def place(href: str) -> str | None:
        try:
            parts = urlsplit(href)
        except ValueError:
            return None
        if parts.scheme or parts.netloc:
            return href if parts.scheme in ("http", "https") and parts.netloc else None
        anchor = f"#{parts.fragment}" if parts.fragment else ""
        if not parts.path:
            return anchor or None
        path = posixpath.normpath(posixpath.join(folder, unquote(parts.path))).lstrip("/")
        names = [path, *(path + end for end in EXTENSIONS), *(f"{path}/README{end}" for end in EXTENSIONS)]
        found = next((lessons[name] for name in names if name in lessons), None)
        return read_url(public_id, found) + anchor if found else None

    return place


def _contents_list(outline: Outline, public_id: str, current: OutlineLesson, rendered: Rendered) -> str:
    modules: list[str] = []
    for _, lessons in groupby(outline.lessons, lambda lesson: lesson.module):
        of_module = list(lessons)
        title = of_module[0].module_title
        opened = " open" if current in of_module else ""
        chapters = "".join(
            (f'<p class="chapter">{escape(chapter)}</p>' if chapter and chapter != title else "")
            + f"<ol>{''.join(_entry(public_id, lesson, current, rendered) for lesson in of_chapter)}</ol>"
            for chapter, of_chapter in groupby(of_module, lambda lesson: lesson.chapter_title)
        )
        modules.append(f"<details{opened}><summary>{escape(title)}</summary>{chapters}</details>")
    return "".join(modules)


def _entry(public_id: str, lesson: OutlineLesson, current: OutlineLesson, rendered: Rendered) -> str:
    link = f'href="{escape(read_url(public_id, lesson))}"'
    if lesson != current:
        return f"<li><a {link}>{_short_title(lesson)}</a></li>"
    sections = "".join(
        f'<li><a href="#{escape(quote(heading.anchor))}">{escape(heading.title)}</a></li>'
        for heading in rendered.headings
        if heading.level == 2 and heading.title
    )
    below = f'<ol class="here">{sections}</ol>' if sections else ""
    return f'<li><a {link} aria-current="page">{_short_title(lesson)}</a>{below}</li>'


def _short_title(lesson: OutlineLesson) -> str:
    """An overview has the title of its module or chapter, which is shown above it."""
    is_overview = lesson.title in (lesson.module_title, lesson.chapter_title) and lesson.lesson == 0
    return "Overview" if is_overview else escape(lesson.title)


def _breadcrumbs(outline: Outline, lesson: OutlineLesson) -> str:
    steps: Iterable[str] = (outline.title, lesson.module_title, lesson.chapter_title)
    kept = [step for step, _ in groupby(steps) if step and step != lesson.title]
    return " › ".join(f"<span>{escape(step)}</span>" for step in kept)


def _neighbour_link(public_id: str, lesson: OutlineLesson | None, word: str, rel: str) -> str:
    if lesson is None:
        return "<span></span>"
    href = escape(read_url(public_id, lesson))
    return f'<a href="{href}" rel="{rel}" class="{rel}"><small>{word}</small>{escape(lesson.title)}</a>'
