"""Every failure becomes one body: what went wrong, in words that a person understands, and the request's id."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.types import Scope

from askbook.api.requests import BOOK_ID, NOT_BLANK, UUID, UUID4
from askbook.errors import AskbookError
from askbook.shapes.problems import ErrorResponse, to_outside

logger = logging.getLogger("askbook.api")

LEFT = 499
"""The client is gone; only the log and the metrics show this status."""
LATER = {503: {"Retry-After": "2"}}
DOCS = "GET /docs lists what there is."


def to_unknown(detail: str | None = None) -> ErrorResponse:
    """For an unforeseen failure: the caller is told only that there was one."""
    return ErrorResponse(
        error="unknown_error", message="something went wrong in askbook", detail=detail, status_code=500
    )


class ClientLeft(Exception):
    """The client left before its answer."""


class OpenAIErrorBody(BaseModel):
    message: str
    type: str
    param: str | None = None
    code: str = Field(description="The `error` of all other routes.")


class OpenAIError(BaseModel):
    """An error in the form that OpenAI's clients read, also in a stream."""

    error: OpenAIErrorBody

    @classmethod
    def from_problem(cls, problem: ErrorResponse, param: str | None = None) -> Self:
        kinds = {"authentication_error": "authentication_error", "rate_limited": "rate_limit_error"}
        kind = kinds.get(problem.error, "invalid_request_error" if problem.status_code < 500 else "server_error")
        return cls(error=OpenAIErrorBody(message=problem.to_sentence(), type=kind, param=param, code=problem.error))


def to_response(
    problem: ErrorResponse, scope: Scope, headers: Mapping[str, str] | None = None, param: str | None = None
) -> Response:
    """Below /v1 in OpenAI's form. `param`: the field that is wrong."""
    ours = problem.model_copy(update={"request_id": scope.get("state", {}).get("request_id")})
    body = OpenAIError.from_problem(problem, param) if scope["path"].startswith("/v1/") else ours
    headers = {**LATER.get(problem.status_code, {}), **(headers or {})}
    return JSONResponse(body.model_dump(mode="json"), problem.status_code, headers)


def install_handlers(app: FastAPI) -> None:
    app.add_exception_handler(AskbookError, _on_known_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(ClientLeft, _on_left)


async def _on_known_error(request: Request, error: Any) -> Response:
    problem = to_outside(error)
    if problem.status_code >= 500:
        logger.error("%s: %s", type(error).__name__, error.message)
    return to_response(problem, request.scope)


async def _on_invalid(request: Request, error: Any) -> Response:
    message, detail = describe_invalid(error.errors())
    problem = ErrorResponse(error="validation_error", message=message, detail=detail, status_code=400)
    place = error.errors()[0]["loc"][1:]
    return to_response(problem, request.scope, param=".".join(map(str, place)) or None)


async def _on_http(request: Request, error: Any) -> Response:
    """An error that the framework raises by itself."""
    status = int(error.status_code)
    path = printable(request.url.path)[:200]
    name, message, detail = "validation_error" if status < 500 else "unknown_error", str(error.detail), None
    if status == 404:
        name, message, detail = "not_found", f"there is no {path}", DOCS
    elif status == 405:
        message, detail = f"{request.method} is not allowed on {path}", DOCS
    problem = ErrorResponse(error=name, message=printable(message), detail=detail, status_code=status)
    return to_response(problem, request.scope, error.headers)


async def _on_left(_request: Request, _error: Any) -> Response:
    return Response(status_code=LEFT)


# --- what is wrong with a request: which field, and which limit -----------------------------------

SHOWN = 5
NAME_MAX = 100
KEY = "[key]"
"""Pydantic adds this step where the name is wrong instead of its value."""

PATTERNS = {
    UUID4: "must be a UUID4, as 550e8400-e29b-41d4-a716-446655440000",
    UUID: "must be a UUID, as 6ba7b810-9dad-11d1-80b4-00c04fd430c8",
    BOOK_ID: "must be a book's id: letters, digits, `-`, `_` and `.`, at most 64",
    NOT_BLANK: "must not be blank",
}

WORDS: dict[str, str | Callable[[Mapping[str, Any]], str]] = {
    "missing": "is required",
    "extra_forbidden": "is not known here",
    "blank": "cannot be empty",
    "string_too_short": lambda ctx: (
        "cannot be empty" if ctx["min_length"] == 1 else f"must have at least {ctx['min_length']} characters"
    ),
    "string_too_long": "must have at most {max_length} characters",
    "string_type": "must be text",
    "string_unicode": "must be valid text",
    "string_pattern_mismatch": lambda ctx: PATTERNS.get(ctx["pattern"], f"must match {ctx['pattern']}"),
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "is too large",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "greater_than_equal": lambda ctx: f"must be {_number(ctx['ge'])} or more",
    "less_than_equal": lambda ctx: f"must be {_number(ctx['le'])} or less",
    "literal_error": "must be {expected}",
    "list_type": "must be a list",
    "too_long": "must have at most {max_length} entries",
    "too_short": "must have at least {min_length} entries",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be a JSON object, sent as Content-Type: application/json",
    "json_invalid": lambda ctx: f"is not JSON: {ctx.get('error', 'it cannot be read')}",
}


def _number(limit: float) -> str:
    return f"{limit:,.0f}" if limit == int(limit) else f"{limit:g}"


def describe_invalid(errors: Sequence[Mapping[str, Any]]) -> tuple[str, str | None]:
    """The first error, and a list of all where there are several."""
    said = list(dict.fromkeys(_describe_one(error) for error in errors))
    return said[0], "; ".join(said[:SHOWN]) if len(said) > 1 else None


def _describe_one(error: Mapping[str, Any]) -> str:
    words, context = WORDS.get(error["type"], str(error["msg"]).replace("{", "{{").replace("}", "}}")), error.get("ctx")
    return f"{_name_field(error)} {words.format(**context or {}) if isinstance(words, str) else words(context or {})}"


def _name_field(error: Mapping[str, Any]) -> str:
    """`reader.hardware_tier`. Control characters that the caller wrote are replaced."""
    where, *steps = error["loc"]
    if error["type"] == "json_invalid" or not steps:
        return f"the {where}"
    if len(steps) > 2 and steps[-1] == KEY:
        return f"a name in {_join_steps(steps[:-2])}"
    return _join_steps(steps) or "a field"


def _join_steps(steps: Sequence[object]) -> str:
    return printable(".".join(str(step) for step in steps if not _is_branch(step)))[:NAME_MAX]


def _is_branch(step: object) -> bool:
    """Whether the step is a branch of a union, which pydantic names and no caller wrote."""
    return isinstance(step, str) and (step in ("str", "int") or step.startswith(("constrained-", "function-")))


def printable(text: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f\ud800-\udfff]", "\ufffd", text)
