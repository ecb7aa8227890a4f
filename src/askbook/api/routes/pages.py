"""/docs: the API on one page, made from openapi.json by a script of our own. Nothing of it comes from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

router = APIRouter(include_in_schema=False)


@router.get("/docs")
async def docs() -> HTMLResponse:
    page, policy = _read_page("docs.html")
    return HTMLResponse(page, headers={"Content-Security-Policy": policy, "Cache-Control": "no-cache"})


@cache
def _read_page(name: str) -> tuple[str, str]:
    """The page, and a policy under which its own script and style run, and no other."""
    page = files("askbook").joinpath("web", name).read_text(encoding="utf-8")
    scripts, styles = (_hash_inline(tag, page) for tag in ("script", "style"))
    policy = f"default-src 'none'; connect-src 'self'; script-src {scripts}; style-src {styles}"
    return page, f"{policy}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


def _hash_inline(tag: str, page: str) -> str:
    found = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
    return " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'" for one in found)
