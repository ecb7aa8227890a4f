"""What a model's service says on the wire, however it is cut."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from askbook.answer.wires import EVENT_BYTES, ChatWire, ErrorSaid, Heard, ResponsesWire, Wire, read_events

STREAM = (
    b": a comment\r\n\r\n"
    b'event: x\r\ndata: {"a": 1}\r\n\r\n'
    b'data: {"text": "one\xe2\x80\xa8line\xc2\x85still"}\n\n'
    b'data: {"b":\ndata: 2}\n\n'
    b"data:\n\n"
    b"\n\ndata:[DONE]"
)
SAID = [b'{"a": 1}', b'{"text": "one\xe2\x80\xa8line\xc2\x85still"}', b'{"b":\n2}', b"[DONE]"]


async def _cut(stream: bytes, length: int) -> AsyncIterator[bytes]:
    for at in range(0, len(stream), length):
        yield stream[at : at + length]


@pytest.mark.parametrize("length", [*range(1, 20), 1000])
async def test_events_are_the_same_however_they_are_cut(length: int) -> None:
    assert [data async for data in read_events(_cut(STREAM, length))] == SAID


@pytest.mark.parametrize("length", [2**20, 100])
@pytest.mark.parametrize("line", [b"x", b"data: xxxxxxxx\n"])
async def test_an_event_without_an_end_is_given_up(line: bytes, length: int) -> None:
    """And nobody else waits while it is read: it takes no longer than it is long."""
    endless = b"data: " + line * (2 * EVENT_BYTES // len(line))
    started = time.process_time()
    with pytest.raises(ValueError, match="without an end"):
        async for _ in read_events(_cut(endless, length)):
            pass
    assert time.process_time() - started < 5.0


def _hear(*deltas: dict[str, Any]) -> Heard:
    heard = Heard(lambda text: None)
    for delta in deltas:
        ChatWire().read({"choices": [{"index": 0, "delta": delta}]}, heard)
    return heard


def _call(index: int | None, call_id: str | None, name: str | None, arguments: str | None) -> dict[str, Any]:
    return {"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}


ONE = [("a", "find", '{"q": 1}')]
TWO = [("a", "find", '{"q": 1}'), ("b", "find", '{"q": 2}')]
CALLS = {
    "in pieces": ([_call(0, "a", "find", ""), _call(0, None, None, '{"q'), _call(0, "", "", '": 1}')], ONE),
    "counted from one": ([_call(1, "a", "find", ""), _call(1, None, None, '{"q": 1}')], ONE),
    "its id and name each time": ([_call(0, "a", "find", '{"q'), _call(0, "a", "find", '": 1}')], ONE),
    "two": ([_call(0, "a", "find", '{"q": 1}'), _call(1, "b", "find", '{"q": 2}')], TWO),
    "two, mixed": (
        [
            _call(0, "a", "find", '{"q'),
            _call(1, "b", "find", '{"q'),
            _call(0, None, None, '": 1}'),
            _call(1, None, None, '": 2}'),
        ],
        TWO,
    ),
    "two without a number": ([_call(None, "a", "find", '{"q": 1}'), _call(None, "b", "find", '{"q": 2}')], TWO),
    "two of the same number, in pieces": (
        [
            _call(0, "a", "find", ""),
            _call(0, None, None, '{"q": 1}'),
            _call(0, "b", "find", ""),
            _call(0, None, None, '{"q": 2}'),
        ],
        TWO,
    ),
    "two with nothing to tell them by": (
        [_call(None, None, "find", '{"q": 1}'), _call(None, None, "find", '{"q": 2}')],
        [("", "find", '{"q": 1}'), ("", "find", '{"q": 2}')],
    ),
}


@pytest.mark.parametrize(("parts", "calls"), CALLS.values(), ids=CALLS)
def test_calls_come_as_services_send_them(
    parts: Sequence[dict[str, Any]], calls: Sequence[tuple[str, str, str]]
) -> None:
    for heard in (_hear(*({"tool_calls": [part]} for part in parts)), _hear({"tool_calls": list(parts)})):
        assert [(one.call_id, one.name, one.arguments) for one in heard.calls] == calls


@pytest.mark.parametrize("wire", [ChatWire(), ResponsesWire()], ids=["chat", "responses"])
def test_an_error_is_heard_on_either_wire(wire: Wire) -> None:
    heard = Heard(lambda text: None)
    heard.hear(wire, b'{"error": null}')
    with pytest.raises(ErrorSaid) as said:
        heard.hear(wire, b'{"error": {"code": "rate_limit_exceeded"}}')
    assert said.value.code == "rate_limit_exceeded"


@pytest.mark.parametrize(("total", "tokens"), [(12, 12), ("12", 0), (-1, 0), (None, 0), ({}, 0)])
def test_only_a_count_is_counted(total: Any, tokens: int) -> None:
    heard = Heard(lambda text: None)
    ChatWire().read({"choices": [], "usage": {"total_tokens": total}}, heard)
    ChatWire().read({"usage": 7}, heard)
    assert heard.tokens == tokens


def test_what_is_null_is_not_said() -> None:
    heard = _hear({"role": "assistant", "content": None, "tool_calls": None, "refusal": None}, {"content": "A"}, {})
    assert (heard.text, heard.calls, heard.declined) == ("A", [], False)
