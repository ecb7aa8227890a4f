"""The two wires that models speak, chat.completions and responses: what is sent on them, and what their streams say.

The SDK can read them too, and makes several objects of every word: where fifty readers ask at once, that alone was a
third of what an answer cost.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from agents import ModelSettings, TResponseInputItem
from agents.models.chatcmpl_converter import Converter
from agents.models.fake_id import FAKE_RESPONSES_ID

from askbook.answer.retrieval_tool import DESCRIPTION, NAME

VERDICTS = "verdicts"
EVENT_BYTES = 4 * 2**20
"""No event is so long."""


class ErrorSaid(Exception):
    """The stream says that the call failed, perhaps in one word."""

    def __init__(self, error: Any) -> None:
        super().__init__()
        self.code = error.get("code") if isinstance(error, dict) else None


@dataclass
class ToolCall:
    call_id: str = ""
    name: str = ""
    arguments: str = ""
    number: int | None = None


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
    whole: bool = False

    def hear(self, wire: Wire, data: bytes) -> None:
        if data == b"[DONE]":
            self.whole = True
            return
        event = json.loads(data)
        if error := event.get("error"):
            raise ErrorSaid(error)
        wire.read(event, self)

    def count(self, usage: Any) -> None:
        total = usage.get("total_tokens") if isinstance(usage, dict) else None
        if isinstance(total, int) and total >= 0:
            self.tokens = total

    def listen_to_the_rest(self) -> None:
        """What is written after the end is no part of the answer."""
        self.write = lambda text: None


class Wire(Protocol):
    path: str

    def write(
        self, rules: str | None, items: list[TResponseInputItem], settings: ModelSettings, form: Form
    ) -> dict[str, Any]:
        """What its request has besides what both have; None is left out of it."""
        ...

    def read(self, event: Mapping[str, Any], heard: Heard) -> None: ...


@dataclass(frozen=True)
class Form:
    """What an answer may be: a call of the one tool or a text, or JSON of this schema alone."""

    tool: dict[str, Any] | None = None
    """The parameters of the tool, as JSON Schema."""
    schema: dict[str, Any] | None = None


class ChatWire:
    path = "/chat/completions"

    def write(
        self, rules: str | None, items: list[TResponseInputItem], settings: ModelSettings, form: Form
    ) -> dict[str, Any]:
        verdicts = {"name": VERDICTS, "strict": True, "schema": form.schema}
        return {
            "messages": [{"role": "system", "content": rules}, *Converter.items_to_messages(items)],
            "tools": form.tool and [{"type": "function", "function": _to_function(form.tool)}],
            "response_format": form.schema and {"type": "json_schema", "json_schema": verdicts},
            "max_tokens": settings.max_tokens,
            "stream_options": {"include_usage": True},
        }

    def read(self, event: Mapping[str, Any], heard: Heard) -> None:
        heard.count(event.get("usage"))
        for choice in (event.get("choices") or ())[:1]:
            delta = choice.get("delta") or {}
            heard.write(delta.get("content") or "")
            heard.declined = heard.declined or bool(delta.get("refusal"))
            for part in delta.get("tool_calls") or ():
                self._add(part, heard.calls)
            if reason := choice.get("finish_reason"):
                heard.whole = True
                heard.cut_short = heard.cut_short or reason == "length"
                heard.withheld = heard.withheld or reason == "content_filter"

    def _add(self, part: Mapping[str, Any], calls: list[ToolCall]) -> None:
        """A part of the last call of its number. Some services give every call the same number, or none, or no id."""
        call_id, number, function = part.get("id") or "", part.get("index"), part.get("function") or {}
        name = function.get("name") or ""
        call = next((one for one in reversed(calls) if one.number == number), None)
        if call is None or (call_id and call.call_id not in ("", call_id)) or (name and not call_id and number is None):
            call = ToolCall(number=number)
            calls.append(call)
        call.call_id = call.call_id or call_id
        call.name = name or call.name
        call.arguments += function.get("arguments") or ""


class ResponsesWire:
    path = "/responses"

    def write(
        self, rules: str | None, items: list[TResponseInputItem], settings: ModelSettings, form: Form
    ) -> dict[str, Any]:
        verdicts = {"type": "json_schema", "name": VERDICTS, "strict": True, "schema": form.schema}
        return {
            "instructions": rules,
            "input": [_without_id(item) for item in items],
            "tools": form.tool and [{"type": "function", **_to_function(form.tool)}],
            "text": form.schema and {"format": verdicts},
            "max_output_tokens": settings.max_tokens,
        }

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
                raise ErrorSaid(event["response"].get("error"))
            case "error":
                raise ErrorSaid(event)
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
        heard.count(response.get("usage"))
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


def _to_function(tool: dict[str, Any]) -> dict[str, Any]:
    return {"name": NAME, "description": DESCRIPTION, "parameters": tool, "strict": False}


async def read_events(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The data of each server-sent event. Lines end at line feeds alone: a text may hold what Unicode calls an end."""
    rest, data = bytearray(), bytearray()
    async for part in parts:
        rest += part
        # Looked for in what is new alone: an event may come byte by byte.
        *lines, rest = rest.split(b"\n") if b"\n" in part else [rest]
        for line in lines:
            if line := line.rstrip(b"\r"):
                data += _read_data(line)
            elif data:
                yield bytes(data.strip())
                data.clear()
        if len(data) + len(rest) > EVENT_BYTES:
            raise ValueError("an event without an end")
    data += _read_data(rest)
    if data:
        yield bytes(data.strip())


def _read_data(line: bytearray) -> bytearray:
    """With a line feed after it: data of several lines stays in several. Nothing of any other field."""
    said = line[5:].strip() if line.startswith(b"data:") else bytearray()
    return said + b"\n" if said else said
