"""The agent: a model that reads the book by one tool and writes an answer that cites it.

What it writes is not yet to be trusted: `citations` checks it. What goes wrong with its service is told apart here:
ModelUnavailable where there is nothing to show, BrokenOff where some of the answer was written.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Literal, NoReturn
from urllib.parse import urlsplit

from askbook.answer.citations import Doubt
from askbook.answer.cleaning import escape_for_model
from askbook.answer.judge import read_verdicts, write_case
from askbook.answer.retrieval_tool import DESCRIPTION, NAME, SEARCHES_MAX, RetrievalTool, Search
from askbook.answer.sending import read_sent
from askbook.breaker import Breaker
from askbook.domain import MARK, Message, Tried
from askbook.errors import BrokenOff, InputError, ModelUnavailable

if TYPE_CHECKING:
    from agents import TResponseInputItem

    from askbook.answer.model_calls import RetryingModel, Service

log = logging.getLogger("askbook.model")

TURNS_MAX = SEARCHES_MAX + 4
"""Model calls for one question: its searches, one search too many, the answer, and two failed calls."""
HISTORY_CHARACTERS = 12_000
MESSAGE_CHARACTERS = 3_000
KEY_LENGTH = 40
ADDED = "The owner of the book adds, within the rules above:"
_MARK = re.compile(rf" ?(?<!\w){MARK.pattern}")


@dataclass(frozen=True, slots=True)
class Written:
    text: str


@dataclass(frozen=True, slots=True)
class Spent:
    """Always the last event: the tokens that the service counted, and the calls to it."""

    tokens: int
    tries: int
    cut_short: bool = False
    """The model ran out of tokens."""


AgentEvent = Tried | Written | Spent


# --- configuration --------------------------------------------------------------------------------


@cache
def read_prompt(name: str) -> str:
    return files("askbook.answer").joinpath(f"prompts/{name}.md").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class AgentConfig:
    model: str
    api: Literal["chat", "responses"] = "chat"
    base_url: str = "https://api.openai.com/v1"
    api_key: str | None = field(default=None, repr=False)
    temperature: float = 0.0
    max_tokens: int | None = None
    top_k: int = 5
    score_threshold: float = 0.0
    generation_seconds: float = 60.0
    """For the whole answer, with all calls, searches, retries and waits."""
    ask_seconds: float = 5.0
    """How long a question waits for a silent model."""
    first_wait: float = 1.0
    """Before the second try; each further wait is twice as long."""
    added: str = field(default="", repr=False)
    """What the book's owner adds to the rules."""

    @property
    def instructions(self) -> str:
        rules, added = read_prompt("answer"), self.added.strip()
        return f"{rules}\n\n{ADDED}\n{added}" if added else rules


def check_config(config: AgentConfig) -> None:
    """Raises an InputError that names the setting and never shows the key. Ranges of numbers are in the settings."""

    def refuse(why: str, hint: str) -> NoReturn:
        raise InputError(why, hint, code="E001")

    host, key = urlsplit(config.base_url).hostname or "", config.api_key or ""
    if not config.model.strip():
        refuse("no model is named", "Set OPENAI_MODEL.")
    if not config.base_url.startswith(("http://", "https://")) or not host:
        refuse("OPENAI_BASE_URL is no address", "It looks like https://api.openai.com/v1.")
    if not key.isascii() or not key.isprintable() or key != key.strip():
        refuse("OPENAI_API_KEY has characters that no key has", "Copy it again, without blanks or line breaks.")
    is_own = host == "api.openai.com" or host.endswith(".api.openai.com")
    if is_own and not (key.startswith("sk-") and len(key) >= KEY_LENGTH):
        looks = f'It begins with "sk-" and has {KEY_LENGTH} characters or more.'
        why = "OPENAI_API_KEY is no key of OpenAI" if key else "OPENAI_API_KEY is missing"
        refuse(why, f"{looks} Without a key, leave ASKBOOK_ANSWERER at auto.")


# --- the agent ------------------------------------------------------------------------------------


class BookAgent:
    """One model at one address. All questions share its connections and its breaker."""

    def __init__(self, config: AgentConfig, breaker: Breaker | None = None) -> None:
        check_config(config)
        self._config = config
        self._breaker = breaker or Breaker()
        self._opening = asyncio.Lock()
        self._service: Service | None = None

    @property
    def name(self) -> str:
        return self._config.model

    async def open(self) -> Service:
        """The first question does it, unless it was done before: importing the SDK takes time."""
        async with self._opening:
            if self._service is None:
                self._service = await asyncio.to_thread(_open_service, self._config)
        return self._service

    async def close(self) -> None:
        service, self._service = self._service, None
        if service is not None:
            await service.close()

    def write(
        self, question: str, history: Sequence[Message], search: Search, begin_by: float = math.inf
    ) -> AsyncGenerator[AgentEvent]:
        """The events of one answer. Closed early, it ends the call to the service; a model that has written nothing by
        `begin_by`, the loop's time, has then failed."""

        async def answer(send: Callable[[AgentEvent], None]) -> None:
            config, model = self._config, None
            tool = RetrievalTool(search, config.top_k, config.score_threshold)
            try:
                service = await self.open()
                from askbook.answer.model_calls import RetryingModel

                model = RetryingModel(service, self._breaker, config, tool, question, begin_by, send)
                await self._run(model, tool, to_input(question, history))
            finally:
                if model is not None:
                    model.let_go()
                    send(Spent(model.tokens, model.tries, model.cut_short))

        return read_sent(answer)

    async def judge(self, doubts: Sequence[Doubt], seconds: float = math.inf) -> tuple[list[bool], int]:
        """Which of these sentences their passages say, asked once, and the tokens it took. Where the model fails, or
        takes longer, none."""
        service = await self.open()
        from askbook.answer.model_calls import judge_once
        from askbook.answer.wires import CallFailed

        try:
            async with asyncio.timeout(min(seconds, self._config.generation_seconds)):
                said, tokens = await judge_once(service, write_case(doubts), self._config.temperature, self._breaker)
        except (TimeoutError, CallFailed) as error:
            log.warning("the judge failed: %s", error)
            return [False] * len(doubts), 0
        return read_verdicts(said, len(doubts)), tokens

    async def _run(self, model: RetryingModel, tool: RetrievalTool, messages: list[TResponseInputItem]) -> None:
        """Runs the SDK's runner and translates its failures."""
        from agents import Agent, AgentsException, FunctionTool, MaxTurnsExceeded, ModelSettings, RunConfig, Runner

        from askbook.answer.wires import LATER, CallFailed

        def give_up(why: str, hint: str) -> ModelUnavailable:
            return (BrokenOff if model.wrote else ModelUnavailable)(f"the model's service {why}", hint)

        agent = Agent(
            name="askbook",
            instructions=self._config.instructions,
            model=model,
            model_settings=ModelSettings(
                temperature=self._config.temperature,
                max_tokens=self._config.max_tokens,
                # For the first call only: the runner resets it once a tool was used.
                tool_choice="required",
            ),
            tools=[
                FunctionTool(
                    name=NAME,
                    description=DESCRIPTION,
                    params_json_schema=tool.schema,
                    on_invoke_tool=lambda _, arguments: tool.call(arguments),
                    strict_json_schema=False,
                )
            ],
        )
        quietly = RunConfig(
            tracing_disabled=True,
            trace_include_sensitive_data=False,
            tool_not_found_behavior="return_error_to_model",
        )
        try:
            async with asyncio.timeout_at(model.deadline):
                await Runner.run(agent, messages, max_turns=TURNS_MAX, run_config=quietly)
        except TimeoutError:
            raise give_up(f"gave no whole answer within {self._config.generation_seconds:g} s", LATER) from None
        except MaxTurnsExceeded:
            why = "was reached, but its model searched on and on and wrote no answer"
            raise give_up(why, "Try another OPENAI_MODEL.") from None
        except CallFailed as failure:
            raise give_up(failure.why, failure.hint) from None
        except AgentsException as error:
            if tool.fault is not None:
                raise tool.fault from None
            why = f"answered with something that cannot be used ({type(error).__name__})"
            raise give_up(why, LATER) from None
        if not tool.found:
            why = "was reached, but its model answered without the book"
            raise tool.failure or give_up(why, "Try another OPENAI_MODEL: one that calls tools.")


def _open_service(config: AgentConfig) -> Service:
    try:
        from agents import set_tracing_disabled

        from askbook.answer.model_calls import Service
    except ImportError as error:
        raise ModelUnavailable(
            "the packages that call a model are not installed", "Run: pip install 'askbook[model]'"
        ) from error
    # The SDK would send questions and answers to its vendor, wherever the model is.
    set_tracing_disabled(True)
    # It also logs each failed call as an error; "askbook.model" logs the outcome.
    logging.getLogger("openai.agents").setLevel(logging.CRITICAL)
    return Service(config.base_url, config.api_key, config.model, config.api, config.generation_seconds)


# --- what the model is told of the thread ---------------------------------------------------------


def to_input(question: str, history: Sequence[Message]) -> list[TResponseInputItem]:
    """The newest whole turns that fit, then the question."""
    told: list[TResponseInputItem] = []
    room = HISTORY_CHARACTERS
    for asked, said in reversed([*zip(history[::2], history[1::2], strict=False)]):
        texts = [escape_for_model(message.content)[:MESSAGE_CHARACTERS] for message in (asked, said)]
        if said.cited:
            # Its marks have another question's numbers; its sources stay, since a reader may mention them.
            count = len(said.cited)
            texts[1] = _MARK.sub(lambda mark, count=count: "" if int(mark[1]) <= count else mark[0], texts[1])
            titles = "; ".join(f"source {at}: {cited.title}" for at, cited in enumerate(said.cited, start=1))
            texts[1] += f"\n\n({escape_for_model(titles)})"
        room -= sum(map(len, texts))
        if room < 0:
            break
        told = [{"role": "user", "content": texts[0]}, {"role": "assistant", "content": texts[1]}, *told]
    return [*told, {"role": "user", "content": escape_for_model(question)}]
