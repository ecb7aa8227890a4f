"""The two wires that models speak, chat.completions and responses: what is sent on them, and what their streams say.

Why the SDK does not read them: docs/decisions/0024.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agents import ModelSettings, TResponseInputItem
from agents.models.chatcmpl_converter import Converter
from agents.models.fake_id import FAKE_RESPONSES_ID

from askbook.answer.retrieval_tool import DESCRIPTION, NAME

VERDICTS = "verdicts"
EVENT_BYTES = 4 * 2**20
TEXT_MAX = 40_000
"""Characters of one call."""

LATER = "Try again later."
ASK_ELSE = "Ask in other words."


class CallFailed(Exception):
    """A call came to nothing. `why` carries no text, no key and nothing that the service said but its code."""

    def __init__(
        self, why: str, hint: str = LATER, *, again: bool = True, outage: bool = True, wait: float | None = None
    ) -> None:
        super().__init__(why)
        self.why, self.hint = why, hint
        self.again = again
        self.outage = outage
        """Whether the breaker counts it."""
        self.wait = wait


class ErrorSaid(CallFailed):
    """The stream reports an error."""

    def __init__(self, error: Any) -> None:
        self.code = error.get("code") if isinstance(error, dict) else None
        why = f"answered 200, then an error{show_codes(self.code)}"
        super().__init__(why, outage=self.code != "rate_limit_exceeded")


def show_codes(*codes: str | None) -> str:
    """Codes and names of parameters are safe to show; sentences may quote the question, or the key."""
    shown = [code for code in codes if isinstance(code, str) and re.fullmatch(r"[a-z][a-z_.]{2,40}", code)]
    return f" ({': '.join(shown)})" if shown else ""


@dataclass(frozen=True)
class Request:
    """What is asked of the model: text or a call of the tool, or JSON of a schema."""

    rules: str | None
    items: list[TResponseInputItem]
    settings: ModelSettings
    tool: dict[str, Any] | None = None
    """Its parameters, as JSON Schema."""
    schema: dict[str, Any] | None = None


@dataclass
class ToolCall:
    call_id: str = ""
    name: str = ""
    arguments: str = ""
    number: int | None = None


@dataclass
class Heard:
    """What the stream of one call has said so far."""

    write: Callable[[str], None] | None = None
    """Gets the text as it comes; None where nobody may read it yet."""
    after: str = ""
    """Written before the text, where an earlier call wrote some."""
    text: str = ""
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    tokens: int = 0
    declined: bool = False
    withheld: bool = False
    cut_short: bool = False
    """The model ran out of tokens."""
    whole: bool = False

    @property
    def passed_on(self) -> bool:
        return bool(self.text) and self.write is not None

    def hear(self, wire: Wire, data: bytes) -> None:
        if data == b"[DONE]":
            self.whole = True
            return
        event = json.loads(data)
        if error := event.get("error"):
            raise ErrorSaid(error)
        wire.read(event, self)

    def add(self, text: str) -> None:
        if not isinstance(text, str):
            raise TypeError("a text that is none")
        if len(self.text) + len(text) > TEXT_MAX:
            raise CallFailed("was reached, but its model wrote on and on", ASK_ELSE, again=False, outage=False)
        if text and self.write is not None:
            self.write(text if self.text else self.after + text)
        self.text += text

    def count(self, usage: Any) -> None:
        total = usage.get("total_tokens") if isinstance(usage, dict) else None
        if isinstance(total, int) and total >= 0:
            self.tokens = total


class ChatWire:
    path = "/chat/completions"

    def write(self, asked: Request) -> dict[str, Any]:
        """This wire's own fields; those that are None are left out."""
        verdicts = {"name": VERDICTS, "strict": True, "schema": asked.schema}
        return {
            "messages": [{"role": "system", "content": asked.rules}, *Converter.items_to_messages(asked.items)],
            "tools": asked.tool and [{"type": "function", "function": _to_function(asked.tool)}],
            "response_format": asked.schema and {"type": "json_schema", "json_schema": verdicts},
            "max_tokens": asked.settings.max_tokens,
            "stream_options": {"include_usage": True},
        }

    def read(self, event: Mapping[str, Any], heard: Heard) -> None:
        heard.count(event.get("usage"))
        for choice in (event.get("choices") or ())[:1]:
            delta = choice.get("delta") or {}
            if not heard.whole:
                heard.add(delta.get("content") or "")
            heard.declined = heard.declined or bool(delta.get("refusal"))
            for part in delta.get("tool_calls") or ():
                self._add(part, heard.calls)
            if reason := choice.get("finish_reason"):
                heard.whole = True
                heard.cut_short = heard.cut_short or reason == "length"
                heard.withheld = heard.withheld or reason == "content_filter"

    def _add(self, part: Mapping[str, Any], calls: list[ToolCall]) -> None:
        """Continues the last call of this number. Some services give all calls the same number, or no number or id."""
        call_id, number, function = part.get("id") or "", part.get("index"), part.get("function") or {}
        name = function.get("name") or ""
        call = next((begun for begun in reversed(calls) if begun.number == number), None)
        if call is None or (call_id and call.call_id not in ("", call_id)) or (name and not call_id and number is None):
            call = ToolCall(number=number)
            calls.append(call)
        call.call_id = call.call_id or call_id
        call.name = name or call.name
        call.arguments += function.get("arguments") or ""


class ResponsesWire:
    path = "/responses"

    def write(self, asked: Request) -> dict[str, Any]:
        verdicts = {"type": "json_schema", "name": VERDICTS, "strict": True, "schema": asked.schema}
        return {
            "instructions": asked.rules,
            "input": [_without_id(item) for item in asked.items],
            "tools": asked.tool and [{"type": "function", **_to_function(asked.tool)}],
            "text": asked.schema and {"format": verdicts},
            "max_output_tokens": asked.settings.max_tokens,
        }

    def read(self, event: Mapping[str, Any], heard: Heard) -> None:
        match event.get("type"):
            case "response.output_text.delta":
                if not heard.whole:
                    heard.add(event["delta"])
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
        elif item["type"] == "message":
            heard.declined = heard.declined or any(part["type"] == "refusal" for part in item.get("content") or ())

    def _end(self, response: Mapping[str, Any], heard: Heard) -> None:
        heard.whole = True
        heard.count(response.get("usage"))
        why = (response.get("incomplete_details") or {}).get("reason")
        # An answer cut by AGENT_MAX_TOKENS counts as whole, as it does on chat.completions.
        heard.cut_short = why == "max_output_tokens"
        heard.withheld = response.get("status") == "incomplete" and not heard.cut_short


Wire = ChatWire | ResponsesWire


def _without_id(item: Any) -> Any:
    """The made-up id would refer to something that the service did not store."""
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
        # Only new bytes are searched: an event may come byte by byte.
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
    """The data of this line with a line feed; empty for any other field."""
    said = line[5:].strip() if line.startswith(b"data:") else bytearray()
    return said + b"\n" if said else said
