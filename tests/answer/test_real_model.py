"""A real small model goes the whole way: real weights, a real server, the demo book, and the check of every sentence.

SmolLM2-135M is good for this because it is bad at it: it calls no tool, loses the thread, says things again and again
and makes things up. What a reader gets of that is what this measures: `make torture`.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from answer.small_model import MODEL, SHA256, find_weights, is_installed, small_model
from askbook.answer.ask import MODEL_DOWN, get_reply
from askbook.domain import Answer, Filters, Question, Replied, Statement
from askbook.evals.sets import load_questions
from askbook.settings import Settings
from askbook.wiring import open_askbook
from builders import is_verbatim
from figures import Figure

pytestmark = [
    pytest.mark.torture,
    pytest.mark.row("M1"),
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not is_installed(), reason="a real model is installed by make torture alone"),
]

BOOK = "physical-ai-robotics"
IN_THE_BOOK = Path(__file__).parents[1] / "evals" / "demo_questions.yaml"
MORE = (
    "What is a URDF file?",
    "What does robot_state_publisher do?",
    "What is the difference between a topic and a service?",
    "How does an action report its progress?",
    "What is domain randomisation?",
    "What does the inflation layer of a costmap do?",
    # These ask for what the book does not tell.
    "In which year was the URDF format invented, and by whom?",
    "What does the lidar of the book's robot cost?",
    "Which university developed Gazebo?",
    "How many people use ROS 2 today?",
)
SETTINGS = {
    "askbook_answerer": "model",
    "openai_model": MODEL,
    "agent_top_k": 3,
    "agent_max_tokens": 120,
    # On a busy machine a small model is slow; being slow is not what is measured.
    "askbook_generation_seconds": 600,
    "askbook_answer_seconds": 900,
    "askbook_ask_seconds": 600,
}


@dataclass(frozen=True)
class Asked:
    question: str
    replied: Replied

    @property
    def kind(self) -> str:
        reply = self.replied.reply
        if not isinstance(reply, Answer):
            return f"refusal: {reply.reason}{'' if self.reached_model else ', before the model was asked'}"
        return f"answer: {reply.answered_by}"

    @property
    def reached_model(self) -> bool:
        return self.replied.account.tries > 0

    @property
    def kept(self) -> Sequence[Statement]:
        reply = self.replied.reply
        return reply.statements if isinstance(reply, Answer) and reply.answered_by == "model" else ()

    @property
    def removed(self) -> Sequence[Statement]:
        return self.replied.reply.removed


async def test_what_a_real_model_invents_is_caught(demo_home: Path, figure: Figure) -> None:
    in_the_book = [one.question for one in load_questions(IN_THE_BOOK).questions if one.gold]
    questions = [*in_the_book, *MORE]
    assert len(questions) == 50

    started = time.monotonic()
    with small_model() as url:
        asked = await _ask_all(demo_home, url, questions)
    figure(_report(asked, time.monotonic() - started))

    by_model = [one for one in asked if one.reached_model]
    assert len(by_model) >= 30
    # It cannot call a tool, so the search is made for it, and it is asked again.
    assert all(one.replied.account.tries >= 2 for one in by_model)
    assert all(one.replied.account.tokens_used > 0 for one in by_model)
    assert not any(isinstance(one.replied.reply, Answer) and MODEL_DOWN in one.replied.reply.notices for one in asked)
    assert sum(len(one.removed) for one in asked) > sum(len(one.kept) for one in asked) > 0
    for one in asked:
        _check_sources(one)


def test_the_weights_are_the_ones_that_were_pinned() -> None:
    assert find_weights().is_file() and len(SHA256) == 64


async def _ask_all(home: Path, url: str, questions: Sequence[str]) -> list[Asked]:
    settings = Settings.model_validate({**SETTINGS, "askbook_home": home, "openai_base_url": url})
    async with open_askbook(settings) as askbook:
        return [Asked(text, await get_reply(askbook.ask(Question(text, Filters(BOOK))))) for text in questions]


def _check_sources(asked: Asked) -> None:
    """By other means than the check itself: each quote is the book's, no number and no code comes from elsewhere."""
    answer = asked.replied.reply
    if not isinstance(answer, Answer):
        return
    assert answer.sources and all(is_verbatim(source) for source in answer.sources)
    told = {source.number: source.passage.chunk.text for source in answer.sources}
    for statement in asked.kept:
        assert statement.cites and set(statement.cites) <= set(told)
        cited = "\n".join(told[number] for number in statement.cites)
        bare = re.sub(r"\[\d+\]", "", statement.text)
        named = re.findall(r"`([^`\n]+)`", bare) + re.findall(r"\d+(?:\.\d+)?", bare)
        foreign = [one for one in named if one not in cited]
        assert not foreign, (asked.question, statement.text)


def _report(asked: Sequence[Asked], seconds: float) -> str:
    kept = [statement for one in asked for statement in one.kept]
    removed = [statement for one in asked for statement in one.removed]
    written = len(kept) + len(removed)
    tokens = sum(one.replied.account.tokens_used for one in asked)
    different = [len({one.text for one in some}) for some in (kept, removed)]
    return "\n".join(
        (
            f"\n{MODEL}: {len(asked)} questions in {seconds:.0f} s, {tokens} tokens",
            *(f"  {count:3}  {kind}" for kind, count in Counter(one.kind for one in asked).most_common()),
            f"  its sentences: {written}; kept {len(kept)} ({len(kept) / written:.0%}), removed {len(removed)}",
            f"  each counted once: kept {different[0]}, removed {different[1]}",
            *(line for one in asked for line in _show(one)),
        )
    )


def _show(asked: Asked) -> list[str]:
    kept = [f"    + {statement.text!r} ({statement.verdict})" for statement in asked.kept]
    removed = Counter((statement.text, statement.why) for statement in asked.removed)
    lines = [f"    - {times} x {text[:160]!r}: {why}" for (text, why), times in removed.items()]
    return [f"{asked.question} → {asked.kind}", *kept, *lines]
