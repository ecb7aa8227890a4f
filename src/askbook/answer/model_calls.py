"""Calls to the model's service: each tried, watched and told how it failed.

Imports the SDK, which takes 1.7 s: import it late.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, suppress
from typing import Any, Literal, cast

import httpx2
from agents import Model, ModelSettings, TResponseInputItem, Usage
from agents.items import ModelResponse, TResponseStreamEvent
from agents.models.fake_id import FAKE_RESPONSES_ID
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputItem,
    ResponseOutputMessage,
    ResponseOutputText,
)

from askbook import __version__
from askbook.answer.agent import AgentConfig, Written, read_prompt
from askbook.answer.judge import SCHEMA
from askbook.answer.retrieval_tool import NAME, RetrievalTool, read_arguments
from askbook.answer.wires import (
    ASK_ELSE,
    LATER,
    CallFailed,
    ChatWire,
    Heard,
    Request,
    ResponsesWire,
    ToolCall,
    Wire,
    read_events,
    show_codes,
)
from askbook.breaker import LEFT_ALONE, Breaker, Outcome, Ticket
from askbook.domain import QUERY_MAX, RetryState, Tried
from askbook.index.remote import read_retry_after

log = logging.getLogger("askbook.model")

TRIES = 3
JITTER = 0.25
"""Waits grow by up to this share, so that callers who failed together do not return together."""
CONNECT_SECONDS = 5.0
CONNECTIONS = httpx2.Limits(max_connections=1000, max_keepalive_connections=100)
ERROR_BYTES = 64 * 1024
"""How much of an error's body is read for its code."""
JUDGE_SECONDS = 20.0
LINGER_SECONDS = 0.5
"""How long the rest of a stream is awaited once the answer is whole, so that its connection can be reused."""
LEAST_SHARE = 0.5
"""A call that had a smaller share of the question's time is not blamed for being late."""
MOMENT = 0.01
"""Two timers set for the same moment may fire this far apart."""

_REFUSED = (
    "Check OPENAI_MODEL, AGENT_TEMPERATURE and AGENT_MAX_TOKENS: the model may not allow them, or not call tools."
)
_MOVED = "Check OPENAI_BASE_URL."
_HINTS = {
    401: "Check OPENAI_API_KEY.",
    403: "Check OPENAI_API_KEY and what it may use.",
    404: "Check OPENAI_MODEL and OPENAI_BASE_URL.",
    405: _MOVED,
}
_UNREADABLE = "Check that OPENAI_BASE_URL is an OpenAI-compatible address that streams, and that OPENAI_API fits it."


_UNREADABLE_ERRORS = (ValueError, TypeError, AttributeError, LookupError, RecursionError)
"""What the code that reads an answer raises when the answer is malformed."""
_FAILURES = (CallFailed, TimeoutError, httpx2.HTTPError, *_UNREADABLE_ERRORS)


# --- the service ----------------------------------------------------------------------------------


class Service:
    """A model at its address. No redirect is followed: questions go to this address only."""

    def __init__(
        self, base_url: str, api_key: str | None, model: str, api: Literal["chat", "responses"], seconds: float
    ) -> None:
        self._model = model
        self._wire: Wire = ResponsesWire() if api == "responses" else ChatWire()
        self._client = httpx2.AsyncClient(
            base_url=base_url,
            headers={
                "Accept": "application/json",
                "User-Agent": f"askbook/{__version__}",
                **({"Authorization": f"Bearer {api_key}"} if api_key else {}),
            },
            timeout=httpx2.Timeout(seconds, connect=CONNECT_SECONDS, read=None),
            limits=CONNECTIONS,
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def ask(self, asked: Request, heard: Heard, patience: float | None, deadline: float) -> None:
        """Hears the whole response. `patience` is for silence before its first word; the deadline is watched from
        outside."""
        given = {
            "model": self._model,
            "tool_choice": asked.settings.tool_choice,
            "temperature": asked.settings.temperature,
            "stream": True,
            "store": False,
            **self._wire.write(asked),
        }
        body = {name: value for name, value in given.items() if value is not None}
        now = asyncio.get_running_loop().time
        async with (
            asyncio.timeout(patience) as silence,
            self._client.stream("POST", self._wire.path, json=body) as response,
        ):
            if response.status_code != 200:
                raise _read_status(response, await _read_error(response))
            async with aclosing(cast(AsyncGenerator[bytes, None], read_events(response.aiter_bytes()))) as events:
                async for data in events:
                    heard.hear(self._wire, data)
                    if heard.whole:
                        break
                    silence.reschedule(None if patience is None or heard.passed_on else now() + patience)
                silence.reschedule(None)
                # The rest of the stream tells the cost, and once it is read the connection can be reused.
                with suppress(*_FAILURES):
                    async with asyncio.timeout_at(min(now() + LINGER_SECONDS, deadline - LINGER_SECONDS)):
                        async for data in events:
                            heard.hear(self._wire, data)
        if not heard.whole:
            raise CallFailed(
                "broke off before its answer was whole", LATER if heard.text or heard.calls else _UNREADABLE
            )
        if heard.withheld:
            raise CallFailed("was reached, but its answer was withheld", ASK_ELSE, again=False, outage=False)


async def _read_error(response: httpx2.Response) -> dict[str, Any]:
    """Empty where no error can be read: the status is enough."""
    body = b""
    try:
        async with asyncio.timeout(LINGER_SECONDS):
            async for part in response.aiter_bytes():
                body += part
                if len(body) > ERROR_BYTES:
                    return {}
        error = json.loads(body)["error"]
    except (TimeoutError, httpx2.HTTPError, *_UNREADABLE_ERRORS):
        return {}
    return error if isinstance(error, dict) else {}


# --- why a call failed ----------------------------------------------------------------------------


def _to_failure(error: Exception) -> CallFailed:
    match error:
        case CallFailed():
            return error
        case TimeoutError() | httpx2.TimeoutException():
            return CallFailed("gave no answer in time")
        case httpx2.ConnectError():
            return CallFailed("cannot be reached", "Check OPENAI_BASE_URL, or try again later.")
        case httpx2.HTTPError():
            return CallFailed("broke off")
        case _:
            return CallFailed(f"answered with something that cannot be read ({type(error).__name__})", _UNREADABLE)


def _read_status(response: httpx2.Response, error: dict[str, Any]) -> CallFailed:
    status = response.status_code
    why = f"answered {status}{show_codes(error.get('code'), error.get('param'))}"
    if status == 429 or status in (408, 409) or status >= 500:
        return CallFailed(why, outage=status != 429, wait=read_retry_after(response.headers))
    hint = _MOVED if status < 400 else _HINTS.get(status, _REFUSED)
    return CallFailed(why, hint, again=False, outage=False)


# --- the calls of one question --------------------------------------------------------------------


class RetryingModel(Model):
    """The model for one question: the only layer that tries again, and only while nobody has read a word of the answer.

    The runner gets each response when it is whole, the reader gets the text as it comes; so a call that fails is tried
    again without repeating the searches before it. Nothing is written before the book was searched: to a model that
    answers at once, the question is searched for as if it had asked.
    """

    def __init__(
        self,
        service: Service,
        breaker: Breaker,
        config: AgentConfig,
        tool: RetrievalTool,
        question: str,
        begin_by: float,
        send: Callable[[Tried | Written], None],
    ) -> None:
        self._service, self._breaker, self._config = service, breaker, config
        self._tool, self._question, self._send = tool, question, send
        self.deadline = asyncio.get_running_loop().time() + config.generation_seconds
        self._begin_by = min(begin_by, self.deadline)
        self._searched_for_it = False
        self._probe: Ticket | None = None
        """Kept over tool calls: a service counts as back once an answer is whole."""
        self._silent_since = 0.0
        self.wrote = False
        self.cut_short = False
        """The last response ran out of tokens, so its last sentence may lack its end."""
        self.tokens = self.tries = 0

    async def get_response(
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],
        model_settings: ModelSettings,
        *_: Any,
        **__: Any,
    ) -> ModelResponse:
        items = cast("list[TResponseInputItem]", input)
        request = Request(system_instructions, items, model_settings, tool=self._tool.schema)
        return ModelResponse(output=await self._call(request), usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[TResponseStreamEvent]:
        raise NotImplementedError("the reader is told past the runner")

    async def _call(self, request: Request) -> list[ResponseOutputItem]:
        self._note("pending", 1)
        for attempt in range(1, TRIES + 1):
            heard = Heard(self._write_text if self._tool.found else None, after="\n\n" if self.wrote else "")
            try:
                items = await self._try(request, heard, attempt)
            except CallFailed as failure:
                wait = self._config.first_wait * 2 ** (attempt - 1) if failure.wait is None else failure.wait
                if heard.passed_on or attempt == TRIES or not failure.again or wait >= self._left():
                    self._note("failed_permanent", attempt, failure.why)
                    raise
                self._note("retrying", attempt, failure.why)
                spread = random.uniform(1.0, 1.0 + JITTER)  # noqa: S311 it hides nothing
                await asyncio.sleep(min(wait * spread, self._left()))
            else:
                self._note("succeeded", attempt)
                return items
        raise AssertionError("the last try ends it")

    async def _try(self, request: Request, heard: Heard, attempt: int) -> list[ResponseOutputItem]:
        ticket, self._probe = self._probe or self._breaker.enter(), None
        if ticket is None:
            raise CallFailed(LEFT_ALONE, self._breaker.say_rest(), again=False, outage=False)
        self.tries += 1
        self._silent_since = asyncio.get_running_loop().time()
        self._note("executing", attempt)
        outcome: Outcome = "neither"
        try:
            # A silent try leaves half of the time to the next one.
            patience = self._until(self.deadline) / 2 if attempt < TRIES else None
            await self._service.ask(request, heard, patience, self.deadline)
            items = self._accept(heard)
            if all(item.type == "message" for item in items):
                outcome = "succeeded"
            elif self._breaker.is_open:
                self._probe = ticket
            self.cut_short = heard.cut_short
            return items
        except _FAILURES as error:
            failure = _to_failure(error)
            outcome = "failed" if failure.outage else "neither"
            # The service's words may quote the key: they stay out of tracebacks.
            raise failure from None
        except asyncio.CancelledError:
            if self._was_cut_for_silence():
                outcome = "failed"
                self._note("failed_permanent", attempt, "gave no whole answer in time")
            raise
        finally:
            if self._probe is None:
                self._breaker.settle(ticket, outcome)

    def let_go(self) -> None:
        """Settles a probe that led to no whole answer."""
        if self._probe is not None:
            self._breaker.settle(self._probe, "neither")
            self._probe = None

    def _was_cut_for_silence(self) -> bool:
        """As opposed to: the reader left, or the search took the time."""
        silent = -self._until(self._silent_since)
        time_is_up = self._until(self._begin_by + (self._config.ask_seconds if self.wrote else 0.0)) <= MOMENT
        return (
            self._until(self.deadline) <= MOMENT
            or silent >= self._config.ask_seconds - MOMENT
            or (time_is_up and silent >= self._config.ask_seconds * LEAST_SHARE)
        )

    def _accept(self, heard: Heard) -> list[ResponseOutputItem]:
        """The response as the runner needs it: text and tool calls."""
        self.tokens += heard.tokens
        calls = heard.calls
        if not calls and heard.declined:
            raise CallFailed("was reached, but its model declined to answer", ASK_ELSE, again=False, outage=False)
        if not calls and not heard.text:
            raise CallFailed("answered with nothing", _UNREADABLE)
        part = ResponseOutputText(type="output_text", text=heard.text, annotations=[])
        message = ResponseOutputMessage(
            type="message", id=FAKE_RESPONSES_ID, role="assistant", status="completed", content=[part]
        )
        said = [message] if heard.text else []
        if not calls and not self._tool.found and not self._tool.failure and not self._searched_for_it:
            self._searched_for_it = True
            calls, said = [ToolCall("", NAME, json.dumps({"query": self._question[-QUERY_MAX:]}))], []
        return [*said, *(self._to_item(call) for call in calls)]

    def _to_item(self, call: ToolCall) -> ResponseOutputItem:
        """With an id of our own: services repeat theirs. The runner fails on arguments that are not JSON."""
        arguments = "{}" if read_arguments(call.arguments) is None else call.arguments
        call_id = uuid.uuid4().hex[:9]
        return ResponseFunctionToolCall(type="function_call", call_id=call_id, name=call.name, arguments=arguments)

    def _write_text(self, text: str) -> None:
        self.wrote = True
        self._silent_since = asyncio.get_running_loop().time()
        self._send(Written(text))

    def _left(self) -> float:
        return self._until(self.deadline if self.wrote else self._begin_by)

    def _until(self, when: float) -> float:
        return when - asyncio.get_running_loop().time()

    def _note(self, state: RetryState, attempt: int, why: str = "") -> None:
        log.log(
            logging.WARNING if why else logging.DEBUG, "model call %s, try %d%s", state, attempt, why and f": {why}"
        )
        self._send(Tried(state, attempt, why))


async def judge_once(service: Service, case: str, temperature: float, breaker: Breaker) -> tuple[str, int]:
    """What the judge says, and the tokens it took. It is not asked again: a judge that fails means no.

    Its word is no whole answer: a model that writes a sentence, is judged and hangs is not well.
    """
    asked: list[TResponseInputItem] = [{"role": "user", "content": case}]
    request = Request(read_prompt("judge"), asked, ModelSettings(temperature=temperature), schema=SCHEMA)
    ticket = breaker.enter()
    if ticket is None:
        raise CallFailed(LEFT_ALONE, again=False, outage=False)
    outcome: Outcome = "neither"
    heard = Heard()
    try:
        deadline = asyncio.get_running_loop().time() + JUDGE_SECONDS
        async with asyncio.timeout_at(deadline):
            await service.ask(request, heard, None, deadline)
        return heard.text, heard.tokens
    except _FAILURES as error:
        failure = _to_failure(error)
        outcome = "failed" if failure.outage else "neither"
        raise failure from None
    finally:
        breaker.settle(ticket, outcome)
