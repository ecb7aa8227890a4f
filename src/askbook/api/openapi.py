"""The OpenAPI document: what FastAPI makes of the routes, with the error responses and the events of streams."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from askbook.api.failing import OpenAIError, to_unknown
from askbook.api.watch import to_outage
from askbook.domain import RETRIEVAL_TOOL
from askbook.errors import InputError, NotAllowed, NotFound, TooLarge, TooManyRequests
from askbook.shapes.answers import CHAT_EVENTS
from askbook.shapes.problems import ErrorResponse, to_problem

DESCRIPTION = (
    "Ask a book a question; get an answer with its sources, or an honest “the book does not say”.\n\n"
    "Every error has the same body: `error`, `message`, `detail`, `status_code`, `request_id`, `timestamp`; below "
    "`/v1` it is OpenAI's: `error` with `message`, `type`, `param` and `code`."
)
REFERENCE = "#/components/schemas/{model}"


def describe_app(app: FastAPI) -> dict[str, Any]:
    """FastAPI's document, with 400 in place of 422 and with the bodies that a stream carries."""
    if app.openapi_schema is None:
        schema = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes, servers=[{"url": "/"}]
        )
        for operations in schema["paths"].values():
            for operation in operations.values():
                operation["responses"].pop("422", None)
        schemas = schema["components"]["schemas"]
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        carried: list[tuple[type[BaseModel], JsonSchemaMode]] = [
            (body, "serialization") for body in CHAT_EVENTS.values()
        ]
        _, told = models_json_schema(carried, ref_template=REFERENCE)
        schema["components"]["schemas"] = told["$defs"] | schemas
        app.openapi_schema = schema
    return app.openapi_schema


# --- errors ---------------------------------------------------------------------------------------

Responses = dict[int | str, dict[str, Any]]

_ERRORS = {
    400: ("A field is missing, unknown or out of its limits.", InputError("query must have at most 1000 characters")),
    401: ("No key, or one that is not valid here.", NotAllowed("this needs a key", "Send it as X-API-Key.")),
    404: ("There is no such thing, or it is somebody else's.", NotFound("there is no book physics")),
    413: ("The body is too large.", TooLarge("a body has at most 262144 bytes", "Send less at a time.")),
    429: (
        "Too many requests; `Retry-After` says when to try again.",
        TooManyRequests("more than 100 requests in a minute", "Try again in 12 seconds."),
    ),
    500: ("Something went wrong in askbook.", None),
    503: ("A part that is needed is down, or took too long.", to_outage("index")),
}
"""What each status means, and a failure that has it."""


def errors(*statuses: int, openai: bool = False) -> Responses:
    """The given statuses and those that every route may answer with."""
    return {status: _describe_error(status, openai) for status in sorted({400, 401, 429, 500, 503, *statuses})}


def _describe_error(status: int, openai: bool) -> dict[str, Any]:
    meaning, error = _ERRORS[status]
    problem = to_problem(error) if error else to_unknown()
    fixed = {"request_id": "1f0c7c0e5b4d4a0f9d3c2b1a09f8e7d6", "timestamp": "2026-11-16T09:30:00Z"}
    example = OpenAIError.from_problem(problem).model_dump() if openai else problem.model_dump() | fixed
    return {
        "model": OpenAIError if openai else ErrorResponse,
        "description": meaning,
        "content": {"application/json": {"example": example}},
    }


# --- streams --------------------------------------------------------------------------------------

CHAT_EXAMPLE = (
    "event: tool_call\n"
    f'data: {{"tool_name":"{RETRIEVAL_TOOL}","query":"What is a URDF file?",'
    '"session_id":"550e8400-e29b-41d4-a716-446655440000"}\n\n'
    "event: retrieval\n"
    'data: {"chunks":["…"],"scores":[0.91],"metadata":[{"chapter":"…","section":"…","url":"…","chunk_index":3,'
    '"content_hash":"…"}],"average_score":0.91,"has_sufficient_context":false,"query_embedding":null,'
    '"confidence":{"…":"…"}}\n\n'
    'event: content\ndata: {"delta":"A URDF file is an XML description of a robot [1]."}\n\n'
    'event: done\ndata: {"response":"A URDF file is an XML description of a robot [1].","confidence":0.91,'
    '"sources":[{"…":"…"}],"…":"…"}\n\n'
)
COMPLETION_EXAMPLE = (
    'data: {"id":"chatcmpl-…","object":"chat.completion.chunk",'
    '"choices":[{"index":0,"delta":{"content":"A URDF"}}]}\n\n'
    "data: [DONE]\n\n"
)
RESPONSE_EXAMPLE = (
    "event: response.output_text.delta\n"
    'data: {"type":"response.output_text.delta","sequence_number":4,"item_id":"msg_…","output_index":0,'
    '"content_index":0,"delta":"A URDF"}\n\n'
)


def _describe_chat_event(name: str, body: type[BaseModel]) -> dict[str, Any]:
    data = {
        "type": "string",
        "contentMediaType": "application/json",
        "contentSchema": {"$ref": REFERENCE.format(model=body.__name__)},
    }
    return {
        "type": "object",
        "properties": {"event": {"const": name}, "data": data},
        "required": ["event", "data"],
    }


def _describe_stream(description: str, item: dict[str, Any], example: str) -> dict[str, Any]:
    return {"description": description, "content": {"text/event-stream": {"itemSchema": item, "example": example}}}


_CHAT = {"oneOf": [_describe_chat_event(*event) for event in CHAT_EVENTS.items()]}
_DATA = {"type": "object", "properties": {"data": {"type": "string"}}, "required": ["data"]}

STREAM = _describe_stream(
    f"Server-sent events: {', '.join(f'`{name}` ({body.__name__})' for name, body in CHAT_EVENTS.items())}. "
    "The last is `done` or `error`. The first two are left out where nothing is searched. "
    "The deltas together are the response. "
    "Comments keep the connection alive. A client that leaves ends the answer, and nothing of it is kept; asked again "
    "with the same session_id, the conversation goes on.",
    _CHAT,
    CHAT_EXAMPLE,
)
MAYBE_STREAM = _describe_stream("The answer; with `stream`, the events.", _CHAT, CHAT_EXAMPLE)
MAYBE_COMPLETION_STREAM = _describe_stream("The answer; with `stream`, OpenAI's chunks.", _DATA, COMPLETION_EXAMPLE)
MAYBE_RESPONSE_STREAM = _describe_stream(
    "The answer; with `stream`, OpenAI's events, from `response.created` to `response.completed` or `error`.",
    _DATA,
    RESPONSE_EXAMPLE,
)
