"""Seed 001: `results_count` is how many chunks were returned. Seed 002: `retrieval_count`, how many were retrieved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from answer.robots import BOOK, LESSONS, open_with_model
from answer.scripted_model import say, search
from askbook.answer.ask import get_reply
from askbook.domain import Answer, Filters, Question, Replied
from askbook.shapes.answers import AgentResponse, ResponseMetadata

QUESTION = "With what force does the gripper close?"


def metadata(replied: Replied) -> ResponseMetadata:
    return AgentResponse.from_replied(replied).metadata


async def test_chunks_are_counted_as_they_are_returned(home: Path) -> None:
    script = [
        search("force of the gripper", top_k=2),
        search("weight of the gripper", top_k=6),
        say("It is not there."),
    ]
    async with open_with_model(home, script) as (askbook, _):
        replied = await get_reply(askbook.ask(Question(QUESTION, Filters(BOOK), top_k=3)))
        thread = await askbook.threads.load(replied.account.thread_id)
    told = metadata(replied)
    assert [one.results_count for one in replied.account.retrievals] == [3, 2, 6]
    assert [one.results_count for one in thread.retrieval_history] == [3, 2, 6]
    assert told.retrieval_count == len(LESSONS), "a chunk that was found twice is one chunk"
    assert told.chunk_count == 3


async def test_without_a_model_what_was_retrieved_is_what_the_answer_looked_at(home: Path) -> None:
    async with open_with_model(home, [say("")]) as (askbook, _):
        replied = await get_reply(replace(askbook, agent=None).ask(Question(QUESTION, Filters(BOOK), top_k=3)))
    told = metadata(replied)
    assert [one.results_count for one in replied.account.retrievals] == [3]
    assert (told.retrieval_count, told.chunk_count) == (3, 3)


async def test_what_a_model_cites_is_on_the_scale_of_the_question(home: Path) -> None:
    """Of a passage beyond top_k, and of one that only the model's own search found."""
    script = [
        search("The wheel encoder counts 4096 ticks in a turn", top_k=10),
        say(
            "The wheel encoder counts 4096 ticks in a turn [1]. The camera takes 30 pictures a second [2, 3, 4, 5, 6]."
        ),
    ]
    async with open_with_model(home, script) as (askbook, _):
        replied = await get_reply(askbook.ask(Question(QUESTION, Filters(BOOK), top_k=1)))
    assert isinstance(replied.reply, Answer)
    best = replied.reply.confidence.max_similarity
    assert replied.reply.sources and all(one.passage.rating <= best for one in replied.reply.sources)
    assert [one.chunk.id for one in replied.account.passages][:1] == [
        AgentResponse.from_replied(replied).sources[0].chunk_id
    ]
