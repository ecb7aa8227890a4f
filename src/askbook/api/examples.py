"""What the OpenAPI document shows besides the schemas: the error responses, and how a stream looks."""

from __future__ import annotations

from typing import Any

from askbook.api.schemas import ErrorResponse, OpenAIError

Responses = dict[int | str, dict[str, Any]]

_ERRORS: dict[int, tuple[str, str, str, str]] = {
    400: (
        "A field is missing, unknown or out of its limits.",
        "validation_error",
        "query must have at most 1000 characters",
        "",
    ),
    401: (
        "No key, or one that is not valid here.",
        "authentication_error",
        "this needs a key",
        "Send it as X-API-Key.",
    ),
    404: ("There is no such thing, or it is somebody else's.", "not_found", "there is no book physics", ""),
    413: ("The body is too large.", "payload_too_large", "a body has at most 262144 bytes", "Send less at a time."),
    429: (
        "Too many requests; `Retry-After` says when to try again.",
        "rate_limited",
        "more than 100 requests in a minute",
        "Try again in 12 seconds.",
    ),
    500: ("Something went wrong in askbook.", "unknown_error", "something went wrong in askbook", ""),
    503: (
        "A part that is needed is down, or took too long.",
        "service_unavailable",
        "the vector index does not answer",
        "It is tried again and again; so may you.",
    ),
}


def errors(*statuses: int, openai: bool = False) -> Responses:
    """Those that a route may answer with, besides those that every route may."""
    describe = _describe_openai if openai else _describe
    return {status: describe(status) for status in sorted({400, 401, 429, 500, 503, *statuses})}


def _describe(status: int) -> dict[str, Any]:
    meaning, error, message, detail = _ERRORS[status]
    example = {
        "error": error,
        "message": message,
        "detail": detail or None,
        "status_code": status,
        "request_id": "1f0c7c0e5b4d4a0f9d3c2b1a09f8e7d6",
        "timestamp": "2026-11-16T09:30:00Z",
    }
    return {"model": ErrorResponse, "description": meaning, "content": {"application/json": {"example": example}}}


def _describe_openai(status: int) -> dict[str, Any]:
    meaning, error, message, detail = _ERRORS[status]
    problem = ErrorResponse(error=error, message=message, detail=detail, status_code=status)
    example = OpenAIError.from_problem(problem).model_dump()
    return {"model": OpenAIError, "description": meaning, "content": {"application/json": {"example": example}}}


STREAM_EXAMPLE = """event: tool_call
data: {"tool_name":"retrieve_documentation","query":"What is a URDF file?","session_id":"550e8400-e29b-41d4-a716-446655440000"}

event: retrieval
data: {"chunks":["…"],"scores":[0.91],"metadata":[{"chapter":"…","section":"…","url":"…","chunk_index":3,"content_hash":"…"}],"average_score":0.91,"has_sufficient_context":false,"query_embedding":null,"confidence":{"…":"…"}}

event: content
data: {"delta":"A URDF file is an XML description of a robot [1]."}

event: done
data: {"response":"A URDF file is an XML description of a robot [1].","confidence":0.91,"sources":[{"…":"…"}],"…":"…"}

"""

EVENTS = {
    "tool_call": "ToolCallEvent",
    "retrieval": "RetrievalResult",
    "content": "ContentEvent",
    "done": "ChatResponse",
    "error": "ErrorResponse",
}


def _describe_event(name: str, schema: str) -> dict[str, Any]:
    data = {
        "type": "string",
        "contentMediaType": "application/json",
        "contentSchema": {"$ref": f"#/components/schemas/{schema}"},
    }
    return {"type": "object", "properties": {"event": {"const": name}, "data": data}, "required": ["event", "data"]}


CHAT_EVENTS: dict[str, Any] = {
    "text/event-stream": {
        "itemSchema": {"oneOf": [_describe_event(*event) for event in EVENTS.items()]},
        "example": STREAM_EXAMPLE,
    }
}
COMPLETION_EVENTS: dict[str, Any] = {
    "text/event-stream": {
        "itemSchema": {"type": "object", "properties": {"data": {"type": "string"}}, "required": ["data"]},
        "example": 'data: {"id":"chatcmpl-…","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"A URDF"}}]}\n\n'
        "data: [DONE]\n\n",
    }
}
RESPONSE_EVENTS: dict[str, Any] = {
    "text/event-stream": {
        **COMPLETION_EVENTS["text/event-stream"],
        "example": "event: response.output_text.delta\n"
        'data: {"type":"response.output_text.delta","sequence_number":4,"item_id":"msg_…","output_index":0,'
        '"content_index":0,"delta":"A URDF"}\n\n',
    }
}
STREAM: dict[str, Any] = {
    "description": "Server-sent events: `tool_call` (ToolCallEvent), `retrieval` (RetrievalResult), `content` "
    "(ContentEvent), then `done` (ChatResponse) or `error` (ErrorResponse). The first two are left out where nothing is "
    "searched. The deltas together are the response. "
    "Comments keep the connection alive. A client that leaves ends the answer, and nothing of it is kept; asked again "
    "with the same session_id, the conversation goes on.",
    "content": CHAT_EVENTS,
}
MAYBE_STREAM: dict[str, Any] = {"description": "The answer; with `stream`, the events.", "content": CHAT_EVENTS}
MAYBE_COMPLETION_STREAM: dict[str, Any] = {
    "description": "The answer; with `stream`, OpenAI's chunks.",
    "content": COMPLETION_EVENTS,
}
MAYBE_RESPONSE_STREAM: dict[str, Any] = {
    "description": "The answer; with `stream`, OpenAI's events, from `response.created` to `response.completed` or `error`.",
    "content": RESPONSE_EVENTS,
}
