"""The doors of other sites and of authors: `/widget.js`, which a page of any origin loads, and `/admin`."""

from __future__ import annotations

from importlib.resources import files

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from askbook.api.routes import pages

router = APIRouter(include_in_schema=False)


@router.get("/widget.js")
async def widget(request: Request) -> Response:
    return await pages.asset("widget.js", request)


@router.get("/admin")
async def admin() -> HTMLResponse:
    """A shell without data; what it shows it asks of the API, with the author's key."""
    page = files("askbook").joinpath("web", "admin.html").read_text(encoding="utf-8")
    return HTMLResponse(page, headers=pages.PAGE_HEADERS)
