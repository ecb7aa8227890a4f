"""The pages for people: `/` (chat), `/read/…` (lessons), `/picture/…`, `/admin`, `/docs`, `/widget.js`, and `/assets`.

They load nothing from elsewhere. `/` is a shell without data: it asks the API for what it shows, with the reader's key.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from collections.abc import Callable, Coroutine
from functools import cache
from importlib.resources import files
from pathlib import Path as Folder
from typing import Annotated, Any
from urllib.parse import unquote

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute
from pydantic import Field

from askbook.answer.quotes import find_stretch
from askbook.api.callers import Caller, find_books, get_caller
from askbook.api.lesson_page import find_lesson, read_url, render_notice, render_page
from askbook.api.lesson_text import CITED_ID, Span
from askbook.api.requests import BOOK_ID, UUID
from askbook.api.running import Reader, Running, Up
from askbook.book.pictures import list_files, read_picture
from askbook.domain import Chunk, Outline
from askbook.errors import NotAllowed, NotFound

router = APIRouter(include_in_schema=False)

TYPES = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
WRITTEN = (".html", *(f".{kind}" for kind in TYPES))
COOKIE = "askbook_reader"
"""A browser that follows a link sends no key: this cookie holds it for `/read` and `/picture`, and for nothing else."""
PAGE_HEADERS = {"Content-Security-Policy": POLICY, "Cache-Control": "no-cache"}
PICTURE_HEADERS = {
    # An SVG that is opened as a page could run a script; in an <img> it cannot.
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'",
    "Cache-Control": "private, max-age=300",
}
PRIVATE_HEADERS = {"Content-Security-Policy": POLICY, "Cache-Control": "no-store"}


@router.get("/")
async def chat() -> HTMLResponse:
    return HTMLResponse(_read_files()["index.html"], headers=PAGE_HEADERS)


@router.get("/assets/{name}")
async def asset(name: str, request: Request) -> Response:
    """Public, also for other origins, because the widget uses the same files. Browsers revalidate by the ETag."""
    kind = TYPES.get(name.rpartition(".")[2])
    body = _read_files().get(name)
    if kind is None or body is None:
        raise NotFound("there is no such file")
    tag = f'"{hashlib.sha256(body.encode()).hexdigest()[:20]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache", "Access-Control-Allow-Origin": "*"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(body, media_type=kind, headers={**headers, "Cross-Origin-Resource-Policy": "cross-origin"})


@router.get("/widget.js")
async def widget(request: Request) -> Response:
    return await asset("widget.js", request)


@router.get("/admin")
async def admin() -> HTMLResponse:
    """Also a shell without data, which asks with the author's key."""
    return HTMLResponse(_read_files()["admin.html"], headers=PAGE_HEADERS)


# --- the reader -----------------------------------------------------------------------------------


BookPath = Annotated[str, Path(pattern=BOOK_ID)]
ChunkId = Annotated[str | None, Query(pattern=UUID)]
Offsets = tuple[Annotated[int, Field(ge=0, le=2**31)], ...]
MARKS_MOST = 50


@router.post("/read", status_code=204)
async def keep_key(request: Request, caller: Reader) -> Response:
    """Keeps the key that was sent in its header for the reader's pages, until the browser is closed."""
    response = Response(status_code=204)
    if caller.key_id:
        key = request.headers.get("x-api-key") or request.headers["authorization"].partition(" ")[2]
        # What a proxy says of its own side can only make it stricter.
        secure = "https" in (request.url.scheme, request.headers.get("x-forwarded-proto"))
        for path in ("/read", "/picture"):
            response.set_cookie(COOKIE, key, path=path, httponly=True, samesite="strict", secure=secure)
    return response


async def _get_page_reader(request: Request) -> Caller:
    return await get_caller(request, request.headers.get("x-api-key") or request.cookies.get(COOKIE), None)


PageReader = Annotated[Caller, Depends(_get_page_reader)]


class ReaderRoute(APIRoute):
    """Says in a page, not in JSON, that a key is needed or that there is no such lesson."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_as_page(request: Request) -> Response:
            try:
                return await handle(request)
            except NotAllowed as error:
                notice, status = render_notice("A key is needed", error.message, locked=True), 401
            except NotFound as error:
                notice, status = render_notice("Not in this library", error.message), 404
            return HTMLResponse(notice, status, PRIVATE_HEADERS)

        return handle_as_page


reader_router = APIRouter(prefix="/read", include_in_schema=False, route_class=ReaderRoute)


@reader_router.get("")
async def choose_book(running: Up, reader: PageReader) -> Response:
    """Leads to the only book, or to the page where one is chosen."""
    books = find_books(reader, await running.askbook.ledger.load_books())
    place = f"/read/{books[0].public_id}" if len(books) == 1 else "/"
    return RedirectResponse(place, headers={"Cache-Control": "no-cache"})


@reader_router.get("/{book_id}")
async def find_page(
    book_id: BookPath, request: Request, running: Up, reader: PageReader, chunk: ChunkId = None
) -> Response:
    """Leads to the lesson that holds the chunk, or to the first one."""
    outline = await _load_outline(running, reader, book_id)
    files_of_chunk = {held.source_file for held in await _find_chunk(running, outline.book_id, chunk)}
    lesson = next((lesson for lesson in outline.lessons if lesson.source_file in files_of_chunk), outline.lessons[0])
    query = f"?{request.url.query}#{CITED_ID}" if chunk else ""
    return RedirectResponse(read_url(book_id, lesson) + query, headers={"Cache-Control": "no-cache"})


@reader_router.get("/{book_id}/{path:path}")
async def read(
    book_id: BookPath,
    path: str,
    running: Up,
    reader: PageReader,
    chunk: ChunkId = None,
    starts: Annotated[Offsets, Query(alias="from", max_length=MARKS_MOST)] = (),
    ends: Annotated[Offsets, Query(alias="to", max_length=MARKS_MOST)] = (),
    part: Annotated[str | None, Query(pattern=r"^\d{1,7}-\d{1,7}$")] = None,
) -> Response:
    """A lesson. It marks each `from` to its `to`, offsets in its file; or a `part` of the chunk; or the chunk."""
    outline = await _load_outline(running, reader, book_id)
    lesson = find_lesson(outline, book_id, path)
    chunks = await running.askbook.ledger.load_lesson(outline.book_id, lesson.parent_doc_id)
    told = [(start, end) for start, end in zip(starts, ends, strict=False) if start < end]
    cited = told or _find_cited(chunks, chunk, part)
    # A long lesson takes a while to render, so a thread does it.
    page = await asyncio.to_thread(render_page, outline, book_id, lesson, chunks, cited)
    return HTMLResponse(page, headers=PRIVATE_HEADERS)


@router.get("/picture/{book_id}/{chunk_id}")
async def show_picture(
    book_id: BookPath,
    chunk_id: Annotated[str, Path(pattern=UUID)],
    src: Annotated[str, Query(min_length=1, max_length=1000)],
    running: Up,
    reader: PageReader,
) -> Response:
    """A picture of the book's folder. Only pictures that the chunk's text names are served."""
    book = await running.find_book(reader, book_id)
    [chunk] = await running.askbook.ledger.load_neighbours(book.book_id, chunk_id.lower(), 0)
    if unquote(src) not in list_files(chunk.text):
        raise NotFound("there is no such picture in this chunk")
    body, kind = await asyncio.to_thread(read_picture, Folder(book.folder), chunk.source_file, src)
    return Response(body, media_type=kind, headers=PICTURE_HEADERS)


async def _load_outline(running: Running, caller: Caller, book_id: str) -> Outline:
    book = await running.find_book(caller, book_id)
    outline = await running.askbook.ledger.load_outline(book.book_id)
    if not outline.lessons:
        raise NotFound("this book holds no lesson yet", "`askbook ingest FOLDER` fills it.")
    return outline


async def _find_chunk(running: Running, book_id: str, chunk: str | None) -> list[Chunk]:
    """Empty where the chunk is gone because its lesson was edited."""
    try:
        return await running.askbook.ledger.load_neighbours(book_id, chunk.lower(), 0) if chunk else []
    except NotFound:
        return []


def _find_cited(chunks: list[Chunk], chunk_id: str | None, part: str | None) -> list[Span]:
    chunk = next((chunk for chunk in chunks if chunk_id and chunk.id == chunk_id.lower()), None)
    if chunk is None:
        return []
    first, last = map(int, part.split("-")) if part else (0, 0)
    return [find_stretch(chunk, first, last) or (chunk.start, chunk.end)]


router.include_router(reader_router)


# --- the API's page -------------------------------------------------------------------------------


@router.get("/docs")
async def docs() -> HTMLResponse:
    page = _read_files()["docs.html"]
    return HTMLResponse(page, headers={"Content-Security-Policy": _inline_policy(page), "Cache-Control": "no-cache"})


@cache
def _read_files() -> dict[str, str]:
    web = files("askbook").joinpath("web")
    return {file.name: file.read_text(encoding="utf-8") for file in web.iterdir() if file.name.endswith(WRITTEN)}


@cache
def _inline_policy(page: str) -> str:
    """A policy under which the page's own script and style run, and no other."""
    scripts, styles = (_hash_inline(tag, page) for tag in ("script", "style"))
    policy = f"default-src 'none'; connect-src 'self'; script-src {scripts}; style-src {styles}"
    return f"{policy}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


def _hash_inline(tag: str, page: str) -> str:
    found = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
    return " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in found)
