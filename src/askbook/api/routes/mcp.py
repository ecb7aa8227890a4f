"""/mcp: the tools for other agents, over streamable HTTP."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec

from fastapi import APIRouter, Depends
from fastapi.responses import Response

from askbook.api.callers import get_caller

router = APIRouter(include_in_schema=False, dependencies=[Depends(get_caller)])
INSTALLED = find_spec("mcp") is not None
"""It is an extra: pip install 'askbook[mcp]'."""


@router.post("/mcp")
@router.post("/mcp/")
async def mcp() -> Response:
    # The first request imports the package, which takes as long as several answers; a thread does it.
    return await asyncio.to_thread(_begin)


def _begin() -> Response:
    from askbook.api.mcp import Exchange

    return Exchange()
