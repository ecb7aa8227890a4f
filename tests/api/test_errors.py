"""What goes wrong is said in one body, with an id, in words; and nothing that a client sends is a 5xx."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from api.service import BOOK, QUESTION, build_settings, open_client
from askbook.api.app import create_app
from askbook.errors import AskbookError, StorageError
from askbook.shapes.problems import PROBLEMS, TOLD_OUTSIDE, to_outside

FIELDS = {"error", "message", "detail", "status_code", "request_id", "timestamp"}
NAMES = {
    "validation_error",
    "authentication_error",
    "not_found",
    "payload_too_large",
    "rate_limited",
    "service_unavailable",
    "timeout",
    "agent_error",
    "retrieval_error",
    "unknown_error",
}


def _all_errors(kind: type[AskbookError] = AskbookError) -> set[type[AskbookError]]:
    return {one for sub in kind.__subclasses__() for one in (sub, *_all_errors(sub))}


def test_every_error_has_a_name_and_a_status() -> None:
    assert {kind for kind in _all_errors() if kind.__module__ == "askbook.errors"} == set(PROBLEMS)
    assert {name for name, _ in PROBLEMS.values()} <= NAMES


def test_no_path_of_the_server_leaves_it() -> None:
    told = to_outside(StorageError("the database /srv/secret/askbook.db refused", "See /srv/secret."))
    assert "/srv" not in told.model_dump_json()
    assert set(TOLD_OUTSIDE) <= set(PROBLEMS)


def test_request_ids(client: TestClient) -> None:
    made = client.get("/health").headers["X-Request-ID"]
    assert made and made != client.get("/health").headers["X-Request-ID"]
    assert client.get("/health", headers={"X-Request-ID": "trace-1.2:3"}).headers["X-Request-ID"] == "trace-1.2:3"
    for wrong in ("x" * 65, "a b", "<script>", ""):
        assert client.get("/health", headers={"X-Request-ID": wrong}).headers["X-Request-ID"] != wrong
    response = client.get("/nowhere", headers={"X-Request-ID": "mine"})
    assert response.json()["request_id"] == response.headers["X-Request-ID"] == "mine"


def test_unknown_routes_and_methods(client: TestClient) -> None:
    missing = client.get("/nowhere")
    assert (missing.status_code, missing.json()["error"], set(missing.json())) == (404, "not_found", FIELDS)
    wrong = client.get("/ask")
    assert (wrong.status_code, wrong.json()["error"]) == (405, "validation_error")
    assert wrong.headers["Allow"] == "POST"
    assert wrong.json()["message"] == "GET is not allowed on /ask"


BROKEN: dict[str, tuple[bytes, str, str]] = {
    "no JSON": (b"{oops", "application/json", "the body is not JSON"),
    "no content type": (b'{"query": "x"}', "text/plain", "the body must be a JSON object"),
    "empty": (b"", "application/json", "the body is required"),
    "null": (b"null", "application/json", "the body must be a JSON object"),
    "a number": (b"1", "application/json", "the body must be"),
    "deep": (b"[" * 100_000, "application/json", "There was an error parsing the body"),
    "no UTF-8": (b'{"query": "\xff\xfe"}', "application/json", "There was an error parsing the body"),
    "a large number": (b'{"query": "x", "top_k": ' + b"9" * 5000 + b"}", "application/json", "There was an error"),
    "NaN": (b'{"message": "x", "similarity_threshold": NaN}', "application/json", "query is required"),
}


@pytest.mark.parametrize(("body", "kind", "message"), BROKEN.values(), ids=BROKEN)
def test_broken_bodies(client: TestClient, body: bytes, kind: str, message: str) -> None:
    response = client.post("/ask", content=body, headers={"Content-Type": kind})
    assert (response.status_code, response.json()["error"]) == (400, "validation_error")
    assert response.json()["message"].startswith(message)


def test_nesting_that_json_bears_and_we_do_not(client: TestClient) -> None:
    for depth in (100, 400, 900, 990):
        body = b'{"query": "x", "reader": ' + b"[" * depth + b"]" * depth + b"}"
        response = client.post("/ask", content=body, headers={"Content-Type": "application/json"})
        assert response.status_code == 400, depth


# NUL, half of a character, controls, what turns the reading direction, and what is longer in UTF-8 than it seems.
ODD = ["a\0b", "\ud800", "x\udfffy", "\x1b[31m", "\u202eabc", "\uffff", "😀" * 250, "\x7f", "\u2028"]
STRINGS: dict[str, tuple[str, str, Any]] = {
    "ask": ("POST", "/ask", lambda odd: {"query": f"gripper {odd}"}),
    "selected": ("POST", "/ask", lambda odd: {"query": QUESTION, "selected_text": f"The gripper {odd} closes."}),
    "user": ("POST", "/ask", lambda odd: {"query": QUESTION, "reader": {"user_id": f"u{odd}"[:128]}}),
    "book": ("POST", "/ask", lambda odd: {"query": QUESTION, "book_id": odd}),
    "unknown field": ("POST", "/ask", lambda odd: {"query": QUESTION, odd: odd}),
    "chat": ("POST", "/chat/run", lambda odd: {"message": f"gripper {odd}"}),
    "stream": ("POST", "/chat/stream", lambda odd: {"message": f"gripper {odd}"}),
    "session": ("POST", "/chat/run", lambda odd: {"message": QUESTION, "session_id": odd}),
    "search": ("POST", "/search", lambda odd: {"text": f"gripper {odd}"}),
    "module": ("POST", "/search", lambda odd: {"text": "gripper", "module_filter": odd}),
    "facet": ("POST", "/search", lambda odd: {"text": "gripper", "facets": {odd[:64]: [odd]}}),
    "url": ("POST", "/search", lambda odd: {"text": "gripper", "url_prefix": odd}),
    "heading": ("POST", "/search", lambda odd: {"text": "gripper", "heading_prefix": odd}),
    "trigger": ("POST", "/ingestion/trigger", lambda odd: {"book_id": odd}),
    "completion": (
        "POST",
        "/v1/chat/completions",
        lambda odd: {
            "model": BOOK,
            "messages": [
                {"role": "user", "content": odd},
                {"role": "assistant", "content": odd},
                {"role": "user", "content": f"gripper {odd}"},
            ],
        },
    ),
    "model": (
        "POST",
        "/v1/chat/completions",
        lambda odd: {"model": odd, "messages": [{"role": "user", "content": "x"}]},
    ),
    "feedback": ("POST", "/feedback", lambda odd: {"session_id": odd, "helpful": True, "comment": odd}),
}


@pytest.mark.parametrize(("method", "path", "make"), STRINGS.values(), ids=STRINGS)
def test_no_string_is_a_5xx(client: TestClient, method: str, path: str, make: Any) -> None:
    for odd in ODD:
        # As JSON writes it: half a character has an escape, and is sent as one.
        body = json.dumps(make(odd)).encode()
        response = client.request(method, path, content=body, headers={"Content-Type": "application/json"})
        assert response.status_code < 500, (odd, response.text)
        assert response.content.decode("utf-8") is not None


@pytest.mark.parametrize(
    "odd", ["%00", "%ff%fe", "%ed%a0%80", "..%2f..%2fetc", "%0d%0aSet-Cookie:x", "a" * 5000, "%F0%9F%98%80"]
)
def test_no_address_is_a_5xx(client: TestClient, odd: str) -> None:
    for path in (
        f"/session/{odd}/history",
        f"/context/{odd}",
        f"/lesson/{odd}",
        f"/ingestion/status/{odd}",
        f"/v1/models/{odd}",
        f"/search?x={odd}",
        f"/sessions?book_id={odd}&limit={odd}",
        f"/ingestion/changes?book_id={odd}",
        f"/{odd}",
    ):
        response = client.get(path)
        assert 400 <= response.status_code < 500, (path, response.text)
        told = response.json()
        assert told["error"]["code"] if path.startswith("/v1") else told["status_code"] == response.status_code
    assert client.delete(f"/session/{odd}").status_code in (400, 404)


def test_what_nobody_foresaw_is_500_without_a_traceback(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    app = create_app(build_settings(home))

    @app.get("/broken")
    async def broken() -> None:
        raise ZeroDivisionError("the canary in /srv/secret")

    with TestClient(app, base_url="http://127.0.0.1", client=("127.0.0.1", 1)) as client:
        response = client.get("/broken", headers={"X-Request-ID": "mine"})
    assert (response.status_code, response.json()["error"], set(response.json())) == (500, "unknown_error", FIELDS)
    assert "canary" not in response.text and "Traceback" not in response.text
    assert response.json()["request_id"] == "mine" == response.headers["X-Request-ID"]
    assert "ZeroDivisionError" in caplog.text, "the log has all of it"


# --- headers --------------------------------------------------------------------------------------


def test_every_answer_has_the_headers_that_browsers_obey(client: TestClient) -> None:
    for path in ("/health", "/nowhere", "/openapi.json", "/docs"):
        headers = client.get(path).headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert headers["Referrer-Policy"] == "no-referrer"
        assert "server" not in headers


def test_cors_by_list(home: Path) -> None:
    with open_client(
        build_settings(home, askbook_cors_origins="https://book.example, http://localhost:3000")
    ) as client:
        for origin, allowed in (("https://book.example", True), ("https://evil.example", False), ("null", False)):
            asked = {
                "Origin": origin,
                "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "X-API-Key",
            }
            before = client.options("/ask", headers=asked)
            assert (before.headers.get("Access-Control-Allow-Origin") == origin) is allowed
            after = client.get("/health", headers={"Origin": origin})
            assert (after.headers.get("Access-Control-Allow-Origin") == origin) is allowed
            assert after.headers.get("Access-Control-Allow-Origin") != "*"
            assert "Access-Control-Allow-Credentials" not in after.headers


def test_no_cors_unless_asked_for(client: TestClient) -> None:
    assert "Access-Control-Allow-Origin" not in client.get("/health", headers={"Origin": "https://x.example"}).headers
    with pytest.raises(ValueError, match="no site"):
        build_settings(Path("/nowhere"), askbook_cors_origins="*")


# --- the document ---------------------------------------------------------------------------------


def test_the_document_is_whole(client: TestClient) -> None:
    document = client.get("/openapi.json").json()
    schemas = document["components"]["schemas"]
    assert "HTTPValidationError" not in schemas
    assert {"ToolCallEvent", "RetrievalResult", "ContentEvent", "ChatResponse", "ErrorResponse"} <= set(schemas)
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert "422" not in operation["responses"], path
            assert operation.get("summary") and operation["tags"], (method, path)
            if path not in ("/health", "/ready"):
                assert {"400", "401", "429", "500", "503"} <= set(operation["responses"]), (method, path)
    references = set(_references(document))
    assert {one.rpartition("/")[2] for one in references} <= set(schemas)
    stream = document["paths"]["/chat/stream"]["post"]["responses"]["200"]["content"]
    assert set(stream) == {"text/event-stream"}


def _references(value: Any) -> Any:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for one in value.values():
            yield from _references(one)
    elif isinstance(value, list):
        for one in value:
            yield from _references(one)


def test_the_docs_page_needs_nothing_from_elsewhere(client: TestClient) -> None:
    response = client.get("/docs")
    assert response.status_code == 200
    assert "http://" not in response.text and "https://" not in response.text and "src=" not in response.text
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and policy.count("sha256-") == 2
