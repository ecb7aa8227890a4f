"""Calls to the model's service: each tried, watched and told how it failed. Imports the SDK, which takes 1.7 s: import it late."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import re
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal, cast

import httpx2
import openai
from agents import AgentsException, Model, OpenAIChatCompletionsModel, OpenAIResponsesModel
from agents.items import ModelResponse, TResponseStreamEvent
from agents.models.fake_id import FAKE_RESPONSES_ID
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseErrorEvent,
    ResponseFailedEvent,
    ResponseFunctionToolCall,
    ResponseIncompleteEvent,
    ResponseOutputItem,
    ResponseOutputItemDoneEvent,
    ResponseOutputMessage,
    ResponseTextDeltaEvent,
)

from askbook.answer.breaker import Breaker, Outcome
from askbook.answer.retrieval_tool import NAME, RetrievalTool, read_arguments
from askbook.domain import QUERY_MAX, RetryState, Tried

log = logging.getLogger("askbook.model")

TRIES = 3
JITTER = 0.25
"""Waits are up to so much longer, so that callers who failed together do not come back together."""
CONNECT_SECONDS = 5.0
TEXT_MAX = 40_000
"""Characters of one call; no answer is so long."""
LINGER_SECONDS = 0.5
"""How long the end of a stream is waited for once the answer is whole; its connection can then be used again."""

LATER = "Try again later."
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
_ASK_ELSE = "Ask in other words."
_UNREADABLE = "Check that OPENAI_BASE_URL is an OpenAI-compatible address that streams, and that OPENAI_API fits it."


class CallFailed(Exception):
    """A call came to nothing. `why` carries no text, no key and nothing that the service said but its code."""

    def __init__(
        self, why: str, hint: str = LATER, *, again: bool = True, outage: bool = True, wait: float | None = None
    ) -> None:
        super().__init__(why)
        self.why, self.hint = why, hint
        self.again = again
        """Whether another try may help."""
        self.outage = outage
        """Whether it counts against the service."""
        self.wait = wait
        """The seconds that the service asked for."""


# --- the client -----------------------------------------------------------------------------------


_ABOUT_THIS_MACHINE = [
    f"x-stainless-{name}" for name in ("arch", "async", "lang", "os", "package-version", "runtime", "runtime-version")
]


def open_client(base_url: str, api_key: str | None, seconds: float) -> openai.AsyncOpenAI:
    """It tries once, and follows no redirect: what is asked goes to the configured address alone."""

    async def send_no_more(request: httpx2.Request) -> None:
        for name in (*_ABOUT_THIS_MACHINE, *(() if api_key else ("authorization",))):
            request.headers.pop(name, None)

    timeout = httpx2.Timeout(seconds, connect=CONNECT_SECONDS)
    http = openai.DefaultAsyncHttpxClient(
        follow_redirects=False,
        timeout=timeout,
        event_hooks={"request": [send_no_more], "response": [_watch_stream]},
    )
    # Given no key, the client would take one from the environment and send it to whatever address this is.
    return openai.AsyncOpenAI(
        api_key=api_key or "none", base_url=base_url, timeout=timeout, max_retries=0, http_client=http
    )


def open_model(client: openai.AsyncOpenAI, model: str, api: Literal["chat", "responses"]) -> Model:
    return OpenAIResponsesModel(model, client) if api == "responses" else OpenAIChatCompletionsModel(model, client)


async def _watch_stream(response: httpx2.Response) -> None:
    if response.status_code != 200:
        return
    content_type = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if content_type in ("application/json", "text/html"):
        raise CallFailed(f"answered with {content_type} where a stream was asked for", _UNREADABLE)
    if response.request.url.path.endswith("/chat/completions") and "Content-Encoding" not in response.headers:
        response.stream = _WholeStream(cast(httpx2.AsyncByteStream, response.stream), _ending.get())


@dataclass
class _Ending:
    cut_short: bool = False
    """The model's tokens ran out."""


_ending: ContextVar[_Ending] = ContextVar("_ending")
"""Of the call that is being made: the SDK does not say why a chat stream ended."""


class _WholeStream(httpx2.AsyncByteStream):
    """A chat stream that ends without its end mark was cut. The SDK asks for the mark of OpenAI's own host alone."""

    _END = re.compile(rb'data: *\[DONE\]|"finish_reason" *: *"')
    _CUT_SHORT = re.compile(rb'"finish_reason" *: *"length"')

    def __init__(self, stream: httpx2.AsyncByteStream, ending: _Ending) -> None:
        self._stream, self._ending = stream, ending

    async def __aiter__(self) -> AsyncIterator[bytes]:
        tail, ended = b"", False
        async for part in self._stream:
            tail += part
            ended = ended or self._END.search(tail) is not None
            self._ending.cut_short = self._ending.cut_short or self._CUT_SHORT.search(tail) is not None
            tail = tail[-64:]
            yield part
        if tail and not ended:
            raise httpx2.RemoteProtocolError("the stream ended before the answer")

    async def aclose(self) -> None:
        await self._stream.aclose()


# --- why a call failed ----------------------------------------------------------------------------


def to_failure(error: Exception) -> CallFailed:
    match error:
        case CallFailed():
            return error
        case TimeoutError() | openai.APITimeoutError():
            return CallFailed("gave no answer in time")
        case openai.APIConnectionError(__cause__=httpx2.ConnectError()):
            return CallFailed("cannot be reached", "Check OPENAI_BASE_URL, or try again later.")
        case openai.APIConnectionError():
            return CallFailed("broke off")
        case openai.APIStatusError():
            return _read_status(error)
        case openai.APIError():
            return _read_error_event(error.code)
        case _:
            return CallFailed(f"answered with something that cannot be read ({type(error).__name__})", _UNREADABLE)


def _read_status(error: openai.APIStatusError) -> CallFailed:
    status = error.status_code
    why = f"answered {status}{_show_codes(error.code, error.param)}"
    if status == 429 or status in (408, 409) or status >= 500:
        return CallFailed(why, outage=status != 429, wait=_read_retry_after(error.response.headers))
    hint = _MOVED if status < 400 else _HINTS.get(status, _REFUSED)
    return CallFailed(why, hint, again=False, outage=False)


def _read_error_event(code: str | None) -> CallFailed:
    return CallFailed(f"answered 200, then an error{_show_codes(code)}", outage=code != "rate_limit_exceeded")


def _show_codes(*codes: str | None) -> str:
    """Codes and names of parameters are safe to show; sentences may quote the question, or the key."""
    shown = [code for code in codes if isinstance(code, str) and re.fullmatch(r"[a-z][a-z_.]{2,40}", code)]
    return f" ({': '.join(shown)})" if shown else ""


def _read_retry_after(headers: httpx2.Headers) -> float | None:
    """In seconds. A date is held against the service's own clock: ours may be wrong."""
    given = headers.get("Retry-After")
    if given is None:
        return None
    try:
        return max(0.0, float(given))
    except ValueError:
        until = _read_date(given)
    if until is None:
        return None
    now = _read_date(headers.get("Date", "")) or datetime.now(UTC)
    return max(0.0, (until - now).total_seconds())


def _read_date(text: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


_UNREADABLE_ERRORS = (
    AgentsException,
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    AssertionError,
    RecursionError,
)
"""What the SDKs raise on an answer that is not of the form they expect."""


# --- the calls of one question --------------------------------------------------------------------


class RetryingModel(Model):
    """The model for one question: the only layer that tries again, and only while nobody has read a word of the answer.

    The runner gets each response when it is whole, the reader gets the text as it comes; so a call that fails is tried
    again without repeating the searches before it. Nothing is written before the book was searched: to a model that
    answers at once, the question is searched for as if it had asked.
    """

    def __init__(
        self,
        model: Model,
        tool: RetrievalTool,
        question: str,
        breaker: Breaker,
        deadline: float,
        first_wait: float,
        tell: Callable[[Tried], None],
        write: Callable[[str], None],
    ) -> None:
        self._model, self._tool, self._question = model, tool, question
        self._breaker, self._deadline, self._first_wait = breaker, deadline, first_wait
        self._tell, self._pass_on = tell, write
        self._call_ids: set[str] = set()
        self._searched_for_it = False
        self.wrote = False
        self.cut_short = False
        """The tokens of the last response ran out: its last sentence may lack its end."""
        self.tokens = 0
        self.tries = 0

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        raise NotImplementedError("answers are streamed")

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[TResponseStreamEvent]:
        response = await self._call(lambda: self._model.stream_response(*args, **kwargs))
        yield ResponseCompletedEvent(response=response, sequence_number=0, type="response.completed")

    async def _call(self, start: Callable[[], AsyncIterator[TResponseStreamEvent]]) -> Response:
        self._note("pending", 1)
        for attempt in range(1, TRIES + 1):
            text = _Text(self._write_text if self._tool.found else None, after="\n\n" if self.wrote else "")
            try:
                response = await self._try(start, text, attempt)
            except CallFailed as failure:
                wait = None if text.passed_on or attempt == TRIES else self._choose_wait(failure, attempt)
                if wait is None:
                    self._note("failed_permanent", attempt, failure.why)
                    raise
                self._note("retrying", attempt, failure.why)
                await asyncio.sleep(wait)
            else:
                self._note("succeeded", attempt)
                return response
        raise AssertionError("the last try ends it")

    def _choose_wait(self, failure: CallFailed, attempt: int) -> float | None:
        """None where there is no use in another try, or no time."""
        wait = self._first_wait * 2 ** (attempt - 1) if failure.wait is None else failure.wait
        if not failure.again or wait >= self._left():
            return None
        spread = random.uniform(1.0, 1.0 + JITTER)  # noqa: S311 it hides nothing
        return min(wait * spread, self._left())

    async def _try(
        self, start: Callable[[], AsyncIterator[TResponseStreamEvent]], text: _Text, attempt: int
    ) -> Response:
        ticket = self._breaker.enter()
        if ticket is None:
            rest = self._breaker.rests_for
            why = "has failed too often and is left alone for now"
            raise CallFailed(why, f"Try again in {max(rest, 1.0):.0f} s.", again=False, outage=False)
        self.tries += 1
        self._note("executing", attempt)
        outcome: Outcome = "neither"
        ending = _Ending()
        _ending.set(ending)
        try:
            # A try that is silent leaves half of the time to the next.
            patience = self._left() / 2 if attempt < TRIES else None
            response = self._accept(await _read(start(), text, patience), text)
            outcome = "succeeded"
            self.cut_short = ending.cut_short or response.incomplete_details is not None
            return response
        except (CallFailed, openai.OpenAIError, TimeoutError, httpx2.HTTPError, *_UNREADABLE_ERRORS) as error:
            failure = to_failure(error)
            outcome = "failed" if failure.outage else "neither"
            # What the service said may quote the key: it stays out of every traceback.
            raise failure from None
        except asyncio.CancelledError:
            if self._left() <= 0.01:
                outcome = "failed"
                self._note("failed_permanent", attempt, "gave no whole answer in time")
            raise
        finally:
            self._breaker.settle(ticket, outcome)

    def _accept(self, response: Response, text: _Text) -> Response:
        """The response as the runner needs it: its calls and its text, or what is done instead."""
        self.tokens += (response.usage and response.usage.total_tokens) or 0
        calls = [item for item in response.output if isinstance(item, ResponseFunctionToolCall)]
        messages = [item for item in response.output if isinstance(item, ResponseOutputMessage)]
        if not calls and any(part.type == "refusal" for item in messages for part in item.content):
            raise CallFailed("was reached, but its model declined to answer", _ASK_ELSE, again=False, outage=False)
        if not text.any:
            text.add("".join(part.text for item in messages for part in item.content if part.type == "output_text"))
        if not calls and not text.any:
            raise CallFailed("answered with nothing", _UNREADABLE)
        if not calls and not self._tool.found and not self._tool.failure and not self._searched_for_it:
            self._searched_for_it = True
            calls, messages = [_search_for(self._question)], []
        output = [*(_without_id(item) for item in messages), *(self._rename(call) for call in calls)]
        return response.model_copy(update={"output": output})

    def _rename(self, call: ResponseFunctionToolCall) -> ResponseOutputItem:
        """The runner takes an id that it knows for the same call, and stumbles over arguments that are not JSON."""
        call_id = call.call_id if call.call_id and call.call_id not in self._call_ids else uuid.uuid4().hex[:9]
        self._call_ids.add(call_id)
        arguments = "{}" if read_arguments(call.arguments) is None else call.arguments
        # No id of the item: it would refer to what the service was told not to store.
        return ResponseFunctionToolCall(type="function_call", call_id=call_id, name=call.name, arguments=arguments)

    def _write_text(self, text: str) -> None:
        self.wrote = True
        self._pass_on(text)

    def _left(self) -> float:
        return self._deadline - asyncio.get_running_loop().time()

    def _note(self, state: RetryState, attempt: int, why: str = "") -> None:
        level = logging.WARNING if state in ("retrying", "failed_permanent") else logging.INFO
        log.log(level, "model call %s, try %d%s", state, attempt, f": {why}" if why else "")
        self._tell(Tried(state, attempt, why))


class _Text:
    """The text of one call: passed on as it comes, or held where nobody may read it yet."""

    def __init__(self, write: Callable[[str], None] | None, after: str = "") -> None:
        self._write = write
        self._after = after
        self._length = 0

    @property
    def any(self) -> bool:
        return self._length > 0

    @property
    def passed_on(self) -> bool:
        return self.any and self._write is not None

    def add(self, text: str) -> None:
        if not text:
            return
        if not isinstance(text, str):
            raise TypeError("a text that is none")
        if self._length + len(text) > TEXT_MAX:
            raise CallFailed("was reached, but its model wrote on and on", _ASK_ELSE, again=False, outage=False)
        if self._write is not None:
            self._write(text if self.any else self._after + text)
        self._length += len(text)


async def _read(events: AsyncIterator[TResponseStreamEvent], text: _Text, patience: float | None) -> Response:
    """The whole response. `patience` is for silence before its first word; the deadline is watched from outside."""
    items: list[ResponseOutputItem] = []
    async with aclosing(cast(AsyncGenerator[TResponseStreamEvent, None], events)) as stream:
        while True:
            async with asyncio.timeout(None if text.passed_on else patience):
                event = await anext(stream, None)
            match event:
                case None:
                    raise CallFailed("broke off before its answer was whole")
                case ResponseTextDeltaEvent():
                    text.add(event.delta)
                case ResponseOutputItemDoneEvent():
                    items.append(event.item)
                case ResponseCompletedEvent() | ResponseIncompleteEvent():
                    await _drain(stream)
                    return _take_response(event, items)
                case ResponseFailedEvent():
                    raise _read_error_event(event.response.error.code if event.response.error else None)
                case ResponseErrorEvent():
                    raise _read_error_event(event.code)
                case _:
                    pass


def _take_response(
    event: ResponseCompletedEvent | ResponseIncompleteEvent, items: list[ResponseOutputItem]
) -> Response:
    """Cut by AGENT_MAX_TOKENS it is whole enough: chat.completions says no more of it either."""
    response, details = event.response, event.response.incomplete_details
    if isinstance(event, ResponseIncompleteEvent) and (details is None or details.reason != "max_output_tokens"):
        raise CallFailed("was reached, but its answer was withheld", _ASK_ELSE, again=False, outage=False)
    return response if response.output else response.model_copy(update={"output": items})


async def _drain(stream: AsyncIterator[TResponseStreamEvent]) -> None:
    with suppress(TimeoutError, openai.OpenAIError, *_UNREADABLE_ERRORS):
        async with asyncio.timeout(LINGER_SECONDS):
            async for _ in stream:
                pass


def _search_for(question: str) -> ResponseFunctionToolCall:
    arguments = json.dumps({"query": question[-QUERY_MAX:]})
    return ResponseFunctionToolCall(type="function_call", call_id="", name=NAME, arguments=arguments)


def _without_id(message: ResponseOutputMessage) -> ResponseOutputMessage:
    return message.model_copy(update={"id": FAKE_RESPONSES_ID})
