"""What a model's service says on the wire, however it is cut."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from askbook.answer.wires import LINE_MAX, ChatWire, Heard, ToolCall, read_events

STREAM = (
    b": a comment\r\n\r\n"
    b'event: x\r\ndata: {"a": 1}\r\n\r\n'
    b'data: {"text": "one\xe2\x80\xa8line\xc2\x85still"}\n\n'
    b'data: {"b":\ndata: 2}\n\n'
    b"\n\ndata:[DONE]"
)
SAID = [b'{"a": 1}', b'{"text": "one\xe2\x80\xa8line\xc2\x85still"}', b'{"b":\n2}', b"[DONE]"]


async def _cut(stream: bytes, length: int) -> AsyncIterator[bytes]:
    for at in range(0, len(stream), length):
        yield stream[at : at + length]


@pytest.mark.parametrize("length", [*range(1, 20), 1000])
async def test_events_are_the_same_however_they_are_cut(length: int) -> None:
    assert [data async for data in read_events(_cut(STREAM, length))] == SAID


async def test_a_line_without_an_end_is_given_up() -> None:
    with pytest.raises(ValueError, match="without an end"):
        async for _ in read_events(_cut(b"data: " + b"x" * (LINE_MAX + 1), 2**20)):
            pass


def _hear(*deltas: dict[str, Any]) -> Heard:
    said: list[str] = []
    heard = Heard(said.append)
    for delta in deltas:
        ChatWire().read({"choices": [{"index": 0, "delta": delta}]}, heard)
    heard.said = "".join(said)
    return heard


def _call(index: int | None, call_id: str | None, name: str | None, arguments: str | None) -> dict[str, Any]:
    return {"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize(
    ("parts", "calls"),
    [
        pytest.param(
            [_call(0, "a", "find", ""), _call(0, None, None, '{"q'), _call(0, "", "", '": 1}')],
            [ToolCall("a", "find", '{"q": 1}')],
            id="in pieces",
        ),
        pytest.param(
            [_call(0, "a", "find", "{}"), _call(1, "b", "find", "{}")],
            [ToolCall("a", "find", "{}"), ToolCall("b", "find", "{}")],
            id="two at once",
        ),
        pytest.param(
            [_call(None, "a", "find", "{}"), _call(None, "b", "find", "{}")],
            [ToolCall("a", "find", "{}"), ToolCall("b", "find", "{}")],
            id="two without a number",
        ),
        pytest.param(
            [_call(0, "a", "find", "{}"), _call(0, "b", "find", "{}")],
            [ToolCall("a", "find", "{}"), ToolCall("b", "find", "{}")],
            id="two of the same number",
        ),
        pytest.param(
            [_call(0, "a", "find", '{"q'), _call(0, "a", None, '": 1}')],
            [ToolCall("a", "find", '{"q": 1}')],
            id="its id each time",
        ),
    ],
)
def test_calls_come_as_services_send_them(parts: Sequence[dict[str, Any]], calls: list[ToolCall]) -> None:
    assert _hear(*({"tool_calls": [part]} for part in parts)).calls == calls
    assert _hear({"tool_calls": list(parts)}).calls == calls


def test_what_is_null_is_not_said() -> None:
    heard = _hear({"role": "assistant", "content": None, "tool_calls": None, "refusal": None}, {"content": "A"}, {})
    assert (heard.said, heard.calls, heard.declined) == ("A", [], False)
