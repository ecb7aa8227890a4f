"""Whatever goes wrong becomes one body: what, in words, and the request's id."""

from __future__ import annotations

import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.types import Scope

from askbook.api.problems import to_outside
from askbook.api.schemas import ErrorResponse, OpenAIError
from askbook.api.wording import describe, printable
from askbook.errors import AskbookError

logger = logging.getLogger("askbook.api")

LEFT = 499
"""Nobody reads it; the log and the metrics do."""
LATER = {503: {"Retry-After": "2"}}


class ClientLeft(Exception):
    """Whoever asked is gone."""


def install_handlers(app: FastAPI) -> None:
    app.add_exception_handler(AskbookError, _on_our_own)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(ClientLeft, _on_left)


def to_response(
    problem: ErrorResponse, scope: Scope, headers: dict[str, str] | None = None, param: str | None = None
) -> Response:
    """As whoever called reads it: below /v1 that is a client of OpenAI. `param`: the field that is wrong."""
    ours = problem.model_copy(update={"request_id": scope.get("state", {}).get("request_id")})
    body = OpenAIError.from_problem(problem, param) if scope["path"].startswith("/v1/") else ours
    headers = {**LATER.get(problem.status_code, {}), **(headers or {})}
    return JSONResponse(body.model_dump(mode="json"), problem.status_code, headers)


def to_unknown(scope: Scope) -> Response:
    problem = ErrorResponse(
        error="unknown_error",
        message="something went wrong in askbook",
        detail="The log of the server says more; it is found there by the request_id.",
        status_code=500,
    )
    return to_response(problem, scope)


def get_request_id(request: Request) -> str | None:
    return getattr(request.state, "request_id", None)


async def _on_our_own(request: Request, error: Any) -> Response:
    problem = to_outside(error)
    if problem.status_code >= 500:
        logger.error("%s: %s", type(error).__name__, error.message)
    return to_response(problem, request.scope)


async def _on_invalid(request: Request, error: Any) -> Response:
    message, detail = describe(error.errors())
    problem = ErrorResponse(error="validation_error", message=message, detail=detail, status_code=400)
    place = error.errors()[0]["loc"][1:]
    return to_response(problem, request.scope, param=".".join(map(str, place)) or None)


async def _on_http(request: Request, error: Any) -> Response:
    """What the framework refuses by itself."""
    status = int(error.status_code)
    path = printable(request.url.path)[:200]
    match status:
        case 404:
            problem = ErrorResponse(error="not_found", message=f"there is no {path}", detail=_DOCS, status_code=404)
        case 405:
            message = f"{request.method} is not allowed on {path}"
            problem = ErrorResponse(error="validation_error", message=message, detail=_DOCS, status_code=405)
        case _:
            name = "validation_error" if status < 500 else "unknown_error"
            problem = ErrorResponse(error=name, message=printable(str(error.detail)), status_code=status)
    return to_response(problem, request.scope, dict(error.headers or {}))


_DOCS = "GET /docs lists what there is."


async def _on_left(_request: Request, _error: Any) -> Response:
    return Response(status_code=LEFT)
