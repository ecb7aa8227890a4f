"""The two wires that models speak, chat.completions and responses: what is sent on them, and what their streams say.

The SDK can read them too, and makes several objects of every word: where fifty readers ask at once, that alone was a
third of what an answer cost.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from agents import ModelSettings, TResponseInputItem
from agents.models.chatcmpl_converter import Converter
from agents.models.fake_id import FAKE_RESPONSES_ID

from askbook.answer.retrieval_tool import DESCRIPTION, NAME

LINE_MAX = 4 * 2**20
"""Bytes of one event; no answer is so long."""


@dataclass
class ToolCall:
    call_id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass
class Heard:
    """What a stream has said so far. Its text goes to `write` as it comes."""

    write: Callable[[str], None]
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    said: str = ""
    """The text that came at the end, whole: of a service that did not stream it."""
    tokens: int = 0
    declined: bool = False
    withheld: bool = False
    cut_short: bool = False
    """The model's tokens ran out."""
    failed: bool = False
    code: str | None = None
    """Why it failed, in the service's one word for it."""
    whole: bool = False


class Wire(Protocol):
    path: str

    def write(
        self, model: str, rules: str | None, items: list[TResponseInputItem], settings: ModelSettings, tool: Any
    ) -> dict[str, Any]:
        """The request. `tool`: the parameters of the one tool, as JSON Schema."""
        ...

    def read(self, event: Mapping[str, Any], heard: Heard) -> None: ...


def open_wire(api: Literal["chat", "responses"]) -> Wire:
    return ResponsesWire() if api == "responses" else ChatWire()


class ChatWire:
    path = "/chat/completions"

    def write(
        self, model: str, rules: str | None, items: list[TResponseInputItem], settings: ModelSettings, tool: Any
    ) -> dict[str, Any]:
        function = {"name": NAME, "description": DESCRIPTION, "parameters": tool, "strict": False}
        body = {
            "model": model,
            "messages": [{"role": "system", "content": rules}, *Converter.items_to_messages(items)],
            "tools": [{"type": "function", "function": function}],
            "tool_choice": settings.tool_choice,
            "temperature": settings.temperature,
            "max_tokens": settings.max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
            "store": False,
        }
        return {name: value for name, value in body.items() if value is not None}

    def read(self, event: Mapping[str, Any], heard: Heard) -> None:
        if "error" in event:
            heard.failed, heard.code = True, (event["error"] or {}).get("code")
        if usage := event.get("usage"):
            heard.tokens = usage.get("total_tokens") or 0
        for choice in (event.get("choices") or ())[:1]:
            delta = choice.get("delta") or {}
            heard.write(delta.get("content") or "")
            heard.declined = heard.declined or bool(delta.get("refusal"))
            for part in delta.get("tool_calls") or ():
                self._add(part, heard.calls)
            if reason := choice.get("finish_reason"):
                heard.whole, heard.cut_short, heard.withheld = True, reason == "length", reason == "content_filter"

    def _add(self, part: Mapping[str, Any], calls: list[ToolCall]) -> None:
        """A part of the call of its number, or of the last one. Some services give every call the same number, or none."""
        call_id, number = part.get("id") or "", part.get("index")
        at = len(calls) - 1 if number is None else number
        if not 0 <= at < len(calls) or (call_id and calls[at].call_id not in ("", call_id)):
            at = len(calls)
            calls.append(ToolCall())
        call, function = calls[at], part.get("function") or {}
        call.call_id = call.call_id or call_id
        call.name += function.get("name") or ""
        call.arguments += function.get("arguments") or ""


class ResponsesWire:
    path = "/responses"

    def write(
        self, model: str, rules: str | None, items: list[TResponseInputItem], settings: ModelSettings, tool: Any
    ) -> dict[str, Any]:
        function = {"name": NAME, "description": DESCRIPTION, "parameters": tool, "strict": False}
        body = {
            "model": model,
            "instructions": rules,
            "input": [_without_id(item) for item in items],
            "tools": [{"type": "function", **function}],
            "tool_choice": settings.tool_choice,
            "temperature": settings.temperature,
            "max_output_tokens": settings.max_tokens,
            "stream": True,
            "store": False,
        }
        return {name: value for name, value in body.items() if value is not None}

    def read(self, event: Mapping[str, Any], heard: Heard) -> None:
        match event.get("type"):
            case "response.output_text.delta":
                heard.write(event["delta"])
            case "response.refusal.delta":
                heard.declined = True
            case "response.output_item.done":
                self._add(event["item"], heard)
            case "response.completed" | "response.incomplete":
                self._end(event["response"], heard)
            case "response.failed":
                heard.failed, heard.code = True, (event["response"].get("error") or {}).get("code")
            case "error":
                heard.failed, heard.code = True, event.get("code")
            case _:
                pass

    def _add(self, item: Mapping[str, Any], heard: Heard) -> None:
        if item["type"] == "function_call":
            heard.calls.append(ToolCall(item.get("call_id") or "", item["name"], item["arguments"]))
        for part in item.get("content") or () if item["type"] == "message" else ():
            heard.said += part.get("text") or ""
            heard.declined = heard.declined or part["type"] == "refusal"

    def _end(self, response: Mapping[str, Any], heard: Heard) -> None:
        heard.whole = True
        heard.tokens = (response.get("usage") or {}).get("total_tokens") or 0
        why = (response.get("incomplete_details") or {}).get("reason")
        # Cut by AGENT_MAX_TOKENS it is whole enough: chat.completions says no more of it either.
        heard.cut_short = why == "max_output_tokens"
        heard.withheld = response.get("status") == "incomplete" and not heard.cut_short
        if not heard.calls and not heard.said:
            for item in response.get("output") or ():
                self._add(item, heard)


def _without_id(item: Any) -> Any:
    """It would refer to what the service was told not to store."""
    if item.get("id") != FAKE_RESPONSES_ID:
        return item
    return {name: value for name, value in item.items() if name != "id"}


async def read_events(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The data of each server-sent event. Split at line feeds alone: a text may hold what Unicode calls a line's end."""
    rest, data = b"", list[bytes]()
    async for part in parts:
        *lines, rest = (rest + part).split(b"\n")
        if len(rest) > LINE_MAX:
            raise ValueError("a line without an end")
        for line in lines:
            line = line.rstrip(b"\r")
            if line.startswith(b"data:"):
                data.append(line[5:].strip())
            elif not line and data:
                yield b"\n".join(data)
                data = []
    if rest.startswith(b"data:"):
        data.append(rest[5:].strip())
    if data:
        yield b"\n".join(data)


def to_event(data: bytes) -> Mapping[str, Any]:
    event = json.loads(data)
    if not isinstance(event, dict):
        raise TypeError("an event that is none")
    return event
