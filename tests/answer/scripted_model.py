"""A stand-in for a model's service: no model, a script. A real HTTP server on loopback that speaks OpenAI's wire.

    with scripted_model([search("nodes"), say("A node is a process [1].")]) as model:
        ...                      # AgentConfig(base_url=model.url, …)
    model.received               # every Request, in order: headers, body, and what a model would make of it
    model.left                   # when a client went away before its reply was whole (time.monotonic)

It answers `POST /v1/chat/completions` and `POST /v1/responses`, streamed (the text word by word, a call's arguments
five characters at a time) and not. The script is a list, of which the last reply is given again when it is used up,
or a function of the request's number (from 0) and the request. A reply is

    say(text)                    the model writes; Turn(text, pace=0.5) writes a word each half second
    search(query, top_k=3)       the model calls retrieve_documentation; Turn(calls=(Call("{bad json"),)) for the rest
    Status(429, retry_after="7") a status and its headers
    Raw(b"data: {oops\\n\\n")      a body as it stands
    Broken("half a", how="cut")  some text, then the connection is cut; or: quiet (ends as if whole), reset, error
                                 (an error event), hang. Without text: at once, reset and hang before any status.

`quote(number, request)` is a script by itself: it searches for the question, then quotes the best result and cites it.
"""

from __future__ import annotations

import contextlib
import json
import re
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

TOOL = "retrieve_documentation"
Style = Literal["chat", "responses"]
HANG_SECONDS = 60.0


# --- what a script is made of ---------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """`arguments` as the model wrote them: JSON, or not."""

    arguments: str
    name: str = TOOL
    call_id: str | None = None


@dataclass(frozen=True)
class Turn:
    text: str = ""
    calls: tuple[Call, ...] = ()
    pace: float = 0.0
    """Seconds before each piece."""
    tokens: int = 30
    refusal: str = ""
    too_long: bool = False
    """It ended because it used up its tokens."""


@dataclass(frozen=True)
class Status:
    code: int
    retry_after: str | None = None
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Raw:
    body: bytes
    content_type: str = "text/event-stream"


@dataclass(frozen=True)
class Broken:
    text: str = ""
    how: Literal["cut", "quiet", "reset", "error", "hang"] = "cut"


Reply = Turn | Status | Raw | Broken


def say(text: str) -> Turn:
    return Turn(text)


def search(query: str, **more: Any) -> Turn:
    return Turn(calls=(Call(json.dumps({"query": query, **more})),))


# --- what it was sent -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Request:
    path: str
    headers: dict[str, str]
    body: Any

    @property
    def style(self) -> Style:
        return "responses" if self.path.endswith("/responses") else "chat"

    @property
    def items(self) -> list[dict[str, Any]]:
        return self.body["input"] if self.style == "responses" else self.body["messages"]

    @property
    def instructions(self) -> str:
        return self.body["instructions"] if self.style == "responses" else self.items[0]["content"]

    @property
    def messages(self) -> list[tuple[str, str]]:
        """(role, text) of what user and assistant said."""
        spoken = [one for one in self.items if one.get("role") in ("user", "assistant") and one.get("content")]
        return [(one["role"], _to_text(one["content"])) for one in spoken]

    @property
    def tool(self) -> dict[str, Any]:
        """Name, description and parameters of the one tool."""
        [tool] = self.body["tools"]
        return tool if self.style == "responses" else tool["function"]

    @property
    def tool_outputs(self) -> list[Any]:
        """What the calls of this question gave, as parsed JSON."""
        key = "output" if self.style == "responses" else "content"
        given = [one for one in self.items if one.get("type") == "function_call_output" or one.get("role") == "tool"]
        return [json.loads(_to_text(one[key])) for one in given]

    @property
    def results(self) -> list[dict[str, Any]]:
        return [one for output in self.tool_outputs for one in output.get("results", [])]


Script = Sequence[Reply] | Callable[[int, Request], Reply]


def quote(number: int, request: Request) -> Reply:
    if not request.tool_outputs:
        return search(request.messages[-1][1])
    if not request.results:
        return say("I don't have information about that in the book content")
    best = request.results[0]
    sentence = re.split(r"(?<=[.!?])\s", best["chunk_text"].strip())[0].rstrip(".")
    return say(f"{sentence} [{best['citation']}].")


def _to_text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


# --- the server -----------------------------------------------------------------------------------


@dataclass
class ScriptedModel:
    url: str
    received: list[Request]
    left: list[float]
    spent: list[tuple[Request, float]]
    """How long each whole reply took, the model's pace and this server's own slowness together."""


@contextlib.contextmanager
def scripted_model(script: Script) -> Iterator[ScriptedModel]:
    server = _Server(("127.0.0.1", 0), _Handler)
    server.script = script
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield ScriptedModel(f"http://127.0.0.1:{server.server_port}/v1", server.received, server.left, server.spent)
    finally:
        server.closing.set()
        server.shutdown()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256
    script: Script

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.received: list[Request] = []
        self.left: list[float] = []
        self.spent: list[tuple[Request, float]] = []
        self.lock = threading.Lock()
        self.closing = threading.Event()

    def next_reply(self, request: Request) -> Reply:
        with self.lock:
            number = len(self.received)
            self.received.append(request)
        if callable(self.script):
            return self.script(number, request)
        return self.script[min(number, len(self.script) - 1)]

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


class _Left(Exception):
    """The client went away."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride]

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.path, headers, sent)
        started = time.monotonic()
        try:
            self._reply(request, self.server.next_reply(request))
            self.server.spent.append((request, time.monotonic() - started))
        except (_Left, OSError):
            self.close_connection = True
            self.server.left.append(time.monotonic())

    def _reply(self, request: Request, reply: Reply) -> None:
        wire = _Responses(request.body["model"]) if request.style == "responses" else _Chat(request.body["model"])
        match reply:
            case Status(code, retry_after, body, more):
                headers = {"Content-Type": "application/json", **more}
                if retry_after is not None:
                    headers["Retry-After"] = retry_after
                error = {"error": {"message": "scripted", "type": "scripted", "param": None, "code": None}}
                self._send_whole(code, headers, json.dumps(error if body is None else body).encode())
            case Raw(body, content_type):
                self._send_whole(200, {"Content-Type": content_type}, body)
            case Broken(text, how):
                self._break(wire, text, how)
            case Turn() if request.body.get("stream"):
                self._start_stream()
                for piece in (*wire.open(reply), *wire.close(reply)):
                    self._pause(reply.pace)
                    self._send_piece(piece)
                self.wfile.write(b"0\r\n\r\n")
            case Turn():
                self._send_whole(200, {"Content-Type": "application/json"}, json.dumps(wire.whole(reply)).encode())

    def _break(self, wire: _Chat | _Responses, text: str, how: str) -> None:
        if text or how not in ("reset", "hang"):
            self._start_stream(chunked=how != "quiet")
            for piece in wire.open(Turn(text)) if text else ():
                self._send_piece(piece, chunked=how != "quiet")
        if how == "error":
            self._send_piece(wire.error())
            self.wfile.write(b"0\r\n\r\n")
            return
        if how == "hang":
            self._pause(HANG_SECONDS)
        if how == "reset":
            time.sleep(0.1 if text else 0.0)  # A reset takes back what was sent and not yet read.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        else:
            self.connection.shutdown(socket.SHUT_RDWR)
        self.connection.close()
        self.close_connection = True

    def _send_whole(self, code: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(code)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _start_stream(self, chunked: bool = True) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header(*(("Transfer-Encoding", "chunked") if chunked else ("Connection", "close")))
        self.end_headers()

    def _send_piece(self, piece: bytes, chunked: bool = True) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)

    def _pause(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (rest := end - time.monotonic()) > 0 and not self.server.closing.is_set():
            readable, _, _ = select.select([self.connection], [], [], min(rest, 0.5))
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                raise _Left


# --- the two wires --------------------------------------------------------------------------------


def _cut(text: str) -> list[str]:
    return re.findall(r"\s*\S+\s*", text)


def _cut_arguments(text: str) -> list[str]:
    return [text[at : at + 5] for at in range(0, len(text), 5)]


class _Names:
    """A call keeps its id within a reply; no two replies share one."""

    def __init__(self) -> None:
        self._reply = time.monotonic_ns()

    def of(self, call: Call, at: int) -> str:
        return call.call_id if call.call_id is not None else f"call_{self._reply}_{at}"


class _Chat:
    """chat.completions."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._names = _Names()

    def open(self, turn: Turn) -> Iterator[bytes]:
        yield self._chunk({"role": "assistant", "content": ""})
        for piece in _cut(turn.text):
            yield self._chunk({"content": piece})
        if turn.refusal:
            yield self._chunk({"refusal": turn.refusal})
        for at, call in enumerate(turn.calls):
            named = {
                "id": self._names.of(call, at),
                "type": "function",
                "function": {"name": call.name, "arguments": ""},
            }
            yield self._chunk({"tool_calls": [{"index": at, **named}]})
            for piece in _cut_arguments(call.arguments):
                yield self._chunk({"tool_calls": [{"index": at, "function": {"arguments": piece}}]})

    def close(self, turn: Turn) -> Iterator[bytes]:
        yield self._chunk({}, self._reason(turn))
        yield self._event({**self._head("chat.completion.chunk"), "choices": [], "usage": self._usage(turn)})
        yield b"data: [DONE]\n\n"

    def error(self) -> bytes:
        return self._event({"error": {"message": "scripted", "type": "server_error", "code": None, "param": None}})

    def whole(self, turn: Turn) -> dict[str, Any]:
        calls = [
            {
                "id": self._names.of(call, at),
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for at, call in enumerate(turn.calls)
        ]
        message = {"role": "assistant", "content": turn.text or None, "refusal": turn.refusal or None}
        choice = {
            "index": 0,
            "message": {**message, **({"tool_calls": calls} if calls else {})},
            "finish_reason": self._reason(turn),
        }
        return {**self._head("chat.completion"), "choices": [choice], "usage": self._usage(turn)}

    def _reason(self, turn: Turn) -> str:
        return "length" if turn.too_long else "tool_calls" if turn.calls else "stop"

    def _usage(self, turn: Turn) -> dict[str, int]:
        return {"prompt_tokens": turn.tokens - 10, "completion_tokens": 10, "total_tokens": turn.tokens}

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": "chatcmpl-scripted", "object": kind, "created": 1, "model": self._model}

    def _chunk(self, delta: dict[str, Any], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return self._event({**self._head("chat.completion.chunk"), "choices": [choice]})

    def _event(self, data: dict[str, Any]) -> bytes:
        return f"data: {json.dumps(data)}\n\n".encode()


class _Responses:
    """responses."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._names = _Names()
        self._number = 0

    def open(self, turn: Turn) -> Iterator[bytes]:
        yield self._event("response.created", response=self._response("in_progress"))
        yield self._event("response.in_progress", response=self._response("in_progress"))
        if turn.text or turn.refusal:
            yield self._event("response.output_item.added", output_index=0, item=self._message(Turn(), "in_progress"))
            place = {"item_id": "msg_scripted", "output_index": 0, "content_index": 0}
            for piece in _cut(turn.text):
                yield self._event("response.output_text.delta", **place, delta=piece, logprobs=[])
            if turn.refusal:
                yield self._event("response.refusal.delta", **place, delta=turn.refusal)
            if turn.text and not turn.calls:
                return
            yield self._event("response.output_item.done", output_index=0, item=self._message(turn))
        for at, call in enumerate(turn.calls, start=1):
            item = self._call(call, at)
            place = {"item_id": item["id"], "output_index": at}
            yield self._event("response.output_item.added", output_index=at, item={**item, "arguments": ""})
            for piece in _cut_arguments(call.arguments):
                yield self._event("response.function_call_arguments.delta", **place, delta=piece)
            yield self._event("response.function_call_arguments.done", **place, arguments=call.arguments)
            yield self._event("response.output_item.done", output_index=at, item=item)

    def close(self, turn: Turn) -> Iterator[bytes]:
        if turn.text and not turn.calls:
            yield self._event("response.output_item.done", output_index=0, item=self._message(turn))
        yield self._event("response.incomplete" if turn.too_long else "response.completed", response=self.whole(turn))

    def error(self) -> bytes:
        return self._event("error", code="server_error", message="scripted", param=None)

    def whole(self, turn: Turn) -> dict[str, Any]:
        said = [self._message(turn)] if turn.text or turn.refusal else []
        calls = [self._call(call, at) for at, call in enumerate(turn.calls, start=1)]
        response = self._response("incomplete" if turn.too_long else "completed", [*said, *calls])
        usage = {"input_tokens": turn.tokens - 10, "output_tokens": 10, "total_tokens": turn.tokens}
        details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        response["usage"] = {**usage, **details}
        response["incomplete_details"] = {"reason": "max_output_tokens"} if turn.too_long else None
        return response

    def _message(self, turn: Turn, status: str = "completed") -> dict[str, Any]:
        text = [{"type": "output_text", "text": turn.text, "annotations": []}] if turn.text else []
        refusal = [{"type": "refusal", "refusal": turn.refusal}] if turn.refusal else []
        head = {"id": "msg_scripted", "type": "message", "role": "assistant", "status": status}
        return {**head, "content": [*text, *refusal]}

    def _call(self, call: Call, at: int) -> dict[str, Any]:
        head = {"id": f"fc_scripted_{at}", "type": "function_call", "status": "completed"}
        return {**head, "call_id": self._names.of(call, at), "name": call.name, "arguments": call.arguments}

    def _response(self, status: str, output: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
        head = {"id": "resp_scripted", "object": "response", "created_at": 1, "model": self._model, "status": status}
        rest = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "error": None}
        return {**head, **rest, "output": list(output), "incomplete_details": None, "usage": None}

    def _event(self, kind: str, **data: Any) -> bytes:
        self._number += 1
        whole = {"type": kind, "sequence_number": self._number, **data}
        return f"event: {kind}\ndata: {json.dumps(whole)}\n\n".encode()
