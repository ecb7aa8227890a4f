"""Streams over a real server: they flow, they keep alive, they end when their reader leaves or a part fails."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from answer.scripted_model import Broken, ScriptedModel, Turn, scripted_model, search
from api.service import QUESTION, RIGHT, Service, build_settings, read_events, serve, wait_until, with_model
from askbook.api.running import Patience
from figures import Figure

LOOK = search("force of the gripper")
SLOW = Turn(f"{RIGHT} [1]. " + "The lidar cannot see glass [2]. " * 100, pace=0.05)


@contextlib.contextmanager
def serve_model(home: Path, *script: Turn | Broken, **changes: object) -> Iterator[tuple[Service, ScriptedModel]]:
    patience = Patience(keepalive=0.2, grace=1.0)
    with (
        scripted_model(lambda number, _: script[number % len(script)]) as model,
        serve(build_settings(home, **with_model(model.url), **changes), patience) as service,
    ):
        yield service, model


def _count_sessions(service: Service) -> int:
    with service.open_client() as client:
        return len(client.get("/sessions").json()["threads"])


def _open_streams(service: Service) -> float:
    return service.app.state.running.metrics.streams._value.get()


def test_an_answer_flows(home: Path) -> None:
    text = f"{RIGHT} [1]. A gripper must not lift more than 2 kilograms [1]."
    with serve_model(home, LOOK, Turn(text, pace=0.05)) as (service, _), service.open_client() as client:
        times: dict[str, float] = {}
        with client.stream("POST", "/chat/stream", json={"message": QUESTION}) as response:
            assert response.headers["x-session-id"]
            events = []
            for event in read_events(response.iter_lines()):
                times.setdefault(event.event, time.monotonic())
                events.append(event)
        assert [event.event for event in events][-1] == "done"
        assert (
            "".join(event.data["delta"] for event in events if event.event == "content") == events[-1].data["response"]
        )
        assert events[-1].data["response"].startswith(RIGHT)
        assert events[-1].data["metadata"]["model"] == "scripted"
        assert times["done"] - times["content"] > 0.2, "the first words came before the last were written"
        assert _count_sessions(service) == 1


def test_a_silent_stream_says_that_it_is_there(home: Path) -> None:
    with serve_model(home, LOOK, Turn(f"{RIGHT} [1].", pace=0.3)) as (service, _), service.open_client() as client:
        with client.stream("POST", "/chat/stream", json={"message": QUESTION}) as response:
            lines = list(response.iter_lines())
        assert ": ping" in lines


LEAVERS = ["after the first event", "midway", "by a reset"]


@pytest.mark.parametrize("how", LEAVERS)
def test_who_leaves_stops_the_model(home: Path, how: str) -> None:
    with serve_model(home, LOOK, SLOW) as (service, model):
        before = _count_tasks(service)
        with service.open_client() as client:
            _leave(client, how)
            left = time.monotonic()
            # Who leaves at once may be gone before the model was ever called.
            wait_until(lambda: model.left or not (model.received or _open_streams(service)), 5)
            assert not model.left or model.left[0] - left < 2
        wait_until(lambda: _open_streams(service) == 0, 2)
        wait_until(lambda: _count_tasks(service) <= before, 5)
        assert _count_sessions(service) == 0, "nothing of half an answer is kept"
        assert service.app.state.running.leaving == set()


def _leave(client: httpx2.Client, how: str) -> None:
    with client.stream("POST", "/chat/stream", json={"message": QUESTION}) as response:
        if how == "by a reset":
            taken: socket.socket = response.extensions["network_stream"].get_extra_info("socket")
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        for event in read_events(response.iter_lines()):
            if event.event == ("tool_call" if how == LEAVERS[0] else "content"):
                break


def _count_tasks(service: Service) -> int:
    loop = service.app.state.running.runner._task.get_loop()

    async def count() -> int:
        return len(asyncio.all_tasks())

    return asyncio.run_coroutine_threadsafe(count(), loop).result(5)


@pytest.mark.parametrize("path", ["/ask", "/chat/run", "/v1/chat/completions"])
def test_who_does_not_wait_for_a_whole_answer_stops_the_model(home: Path, path: str) -> None:
    body = {
        "/ask": {"query": QUESTION},
        "/chat/run": {"message": QUESTION},
        "/v1/chat/completions": {"model": "askbook", "messages": [{"role": "user", "content": QUESTION}]},
    }[path]
    with serve_model(home, LOOK, SLOW) as (service, model), service.open_client() as client:
        with pytest.raises(httpx2.ReadTimeout):
            client.post(path, json=body, timeout=1.5)
        left = time.monotonic()
        wait_until(lambda: model.left, 5)
        assert model.left[0] - left < 2
        assert _count_sessions(service) == 0


def test_what_fails_after_the_first_byte_is_an_event(home: Path) -> None:
    with (
        serve_model(home, LOOK, SLOW, askbook_answer_seconds=1.5) as (service, _),
        service.open_client() as client,
        client.stream("POST", "/chat/stream", json={"message": QUESTION}) as response,
    ):
        assert response.status_code == 200
        *_, last = read_events(response.iter_lines())
        assert (last.event, last.data["error"], last.data["status_code"]) == ("error", "timeout", 503)
        assert last.data["request_id"] == response.headers["x-request-id"]


def test_a_stream_ends_with_a_word_when_the_server_does(home: Path) -> None:
    with (
        serve_model(home, LOOK, SLOW) as (service, model),
        service.open_client() as client,
        client.stream("POST", "/chat/stream", json={"message": QUESTION}) as response,
    ):
        events = read_events(response.iter_lines())
        assert next(events).event == "tool_call"
        _call(service, service.app.state.running.closing.begin)
        *_, last = events
        assert (last.event, last.data["error"]) == ("error", "service_unavailable")
        assert "shutting down" in last.data["message"]
        wait_until(lambda: model.left, 2)
        assert _count_sessions(service) == 0


def _call(service: Service, what: object) -> None:
    service.app.state.running.runner._task.get_loop().call_soon_threadsafe(what)


def test_an_answer_that_ends_in_time_ends_well(home: Path) -> None:
    with (
        serve_model(home, LOOK, Turn(f"{RIGHT} [1]. {RIGHT} at most [1].", pace=0.03)) as (service, _),
        service.open_client() as client,
        client.stream("POST", "/chat/stream", json={"message": QUESTION}) as response,
    ):
        events = read_events(response.iter_lines())
        # The grace is four seconds: all that may be slow on a busy machine, search and reading, is over by now.
        assert any(event.event == "content" for event in events)
        _call(service, service.app.state.running.closing.begin)
        assert [event.event for event in events][-1] == "done"
        assert _count_sessions(service) == 1


@pytest.mark.row("L3")
def test_readers_who_leave_at_every_moment_leave_nothing_behind(home: Path, torture: bool, figure: Figure) -> None:
    """L3: before the first byte, after it, in the middle of the answer."""
    readers = 300 if torture else 50

    async def leave(client: httpx2.AsyncClient, number: int) -> None:
        request = client.stream("POST", "/chat/stream", json={"message": QUESTION})
        if number % 3 == 0:
            # Before the first byte.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.001 * (number % 100)):
                    async with request:
                        pass
            return
        async with request as response:
            async for line in response.aiter_lines():
                if line.startswith("event: content") or number % 3 == 1:
                    return

    async def leave_all(url: str) -> None:
        async with httpx2.AsyncClient(
            base_url=url, timeout=30, limits=httpx2.Limits(max_connections=readers)
        ) as client:
            await asyncio.gather(*(leave(client, number) for number in range(readers)))

    with (
        scripted_model(lambda _, request: SLOW if request.tool_outputs else LOOK) as model,
        serve(build_settings(home, **with_model(model.url))) as service,
    ):
        before = _count_tasks(service)
        asyncio.run(leave_all(service.url))
        took = wait_until(lambda: _open_streams(service) == 0 and _count_tasks(service) <= before, 10)
        figure(f"L3: {readers} readers left; nothing was left of them after {took:.2f} s", cases=readers)
        assert took < 2
        assert _count_sessions(service) == 0
        with service.open_client() as client:
            assert client.get("/ready").json()["ready"] is True
