"""What one answer of a model costs here: our reading of the wire against the SDK's own client and stream.

    .venv/bin/python bench/model_client.py

The model is the tests' stand-in over loopback. Counted is the CPU of the client's thread, the median of twelve calls.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from agents import ModelSettings, ModelTracing, set_tracing_disabled
from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel
from agents.models.openai_responses import OpenAIResponsesModel
from openai import AsyncOpenAI

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from answer.scripted_model import say, scripted_model
from askbook.answer.model_calls import Service
from askbook.answer.wires import Heard, Request

WORDS = (100, 200, 300)
"""Each comes in an event of its own."""
ROUNDS = 12
ASKED: list[Any] = [{"role": "user", "content": "What is a node?"}]
Call = Callable[[], Awaitable[str]]


def build_ours(url: str, api: Any) -> Call:
    service = Service(url, "sk-x", "scripted", api, 60)

    async def call() -> str:
        heard = Heard(lambda _: None)
        request = Request("rules", ASKED, ModelSettings(tool_choice="auto"), tool={"type": "object"})
        await service.ask(request, heard, None, asyncio.get_running_loop().time() + 60)
        return heard.text

    return call


def build_theirs(url: str, api: Any) -> Call:
    client = AsyncOpenAI(base_url=url, api_key="sk-x", max_retries=0)
    model = (OpenAIChatCompletionsModel if api == "chat" else OpenAIResponsesModel)("scripted", client)
    settings = ModelSettings(store=False, include_usage=True)
    nothing: dict[str, Any] = dict.fromkeys(("previous_response_id", "conversation_id", "prompt"))

    async def call() -> str:
        events = model.stream_response("rules", ASKED, settings, [], None, [], ModelTracing.DISABLED, **nothing)
        return "".join([event.delta async for event in events if event.type == "response.output_text.delta"])

    return call


async def measure(call: Call, text: str) -> float:
    took: list[float] = []
    for at in range(3 + ROUNDS):
        started = time.thread_time()
        assert await call() == text
        took += [(time.thread_time() - started) * 1000] if at >= 3 else []
    return statistics.median(took)


async def main() -> None:
    set_tracing_disabled(True)
    for words in WORDS:
        text = " ".join(f"word{number}" for number in range(words))
        with scripted_model([say(text)]) as model:
            for api in ("chat", "responses"):
                ours = await measure(build_ours(model.url, api), text)
                theirs = await measure(build_theirs(model.url, api), text)
                print(f"{words} words, {api}: {ours:.1f} ms ours, {theirs:.1f} ms the SDK's")


asyncio.run(main())
