"""The two gates and the confidence: what is read decides whether a reply is given, and how sure it is called."""

from __future__ import annotations

from dataclasses import replace

import pytest

from askbook.answer.calibration import GATE
from askbook.answer.excerpts import split_passage
from askbook.answer.librarian import Read, keep_lesson, merge_reads, stands_alone
from askbook.answer.trust import HIGH, LEAD_MOST, MEDIUM, Evidence, gather_evidence
from askbook.domain import Passage
from askbook.reading.spans import Span
from builders import make_chunks, make_lesson

SURE = Evidence(found=0.95, answers=4.0, span=0.9, most=4.0, three=3.0, relevance=6.0, lead=3.0)


@pytest.mark.parametrize(
    "change",
    [
        {"found": 0.001, "three": -4.0, "relevance": -9.0},
        {"most": -5.0, "three": -5.0, "answers": -5.0},
    ],
    ids=["off the topic", "on the topic, not answered"],
)
def test_one_gate_is_enough_to_refuse(change: dict[str, float]) -> None:
    assert SURE.confidence >= 0.85
    assert replace(SURE, **change).confidence < GATE


def test_in_a_thread_a_question_need_not_name_the_subject() -> None:
    thin = replace(SURE, found=0.02, most=0.0, three=-0.5, relevance=-4.0)
    assert thin.confidence < GATE <= replace(thin, follows=True).confidence


def test_a_thread_does_not_carry_what_is_off_the_topic() -> None:
    off = replace(SURE, found=0.005, answers=-3.0, most=-3.0, three=-3.5, relevance=-6.0, follows=True)
    assert off.confidence < GATE


def test_a_level_says_how_often_the_text_answers() -> None:
    assert SURE.chance_shown > MEDIUM
    rising = [replace(SURE, answers=answers / 2) for answers in range(-4, 12)]
    assert [one.confidence for one in rising] == sorted(one.confidence for one in rising)
    for one in rising:
        assert (one.confidence >= 0.85) == (one.chance_shown >= HIGH)
        assert (one.confidence >= 0.75) == (one.chance_shown >= MEDIUM)


# --- what was read --------------------------------------------------------------------------------


def read(text: str, score: float, number: int = 1, **more: float) -> Read:
    lesson = make_lesson(f"m/c/{number:02}.md", number=number, text=text)
    passage = Passage(make_chunks(lesson, text)[0], score=0.5, rank=number)
    return replace(Read(split_passage(passage)[0], score), **more)


def test_the_evidence_is_that_of_the_text_shown_and_of_the_likeliest() -> None:
    reads = [
        read("Nodes run.", 3.0, 1, answers=1.0, relevance=2.0),
        read("Topics flow.", 1.0, 2, answers=4.0, relevance=5.0),
        read("Doors open.", 0.5, 3, answers=-2.0),
        read("Cats sleep.", 0.0, 4, answers=-9.0),
    ]
    found = gather_evidence([replace(reads[0], span=Span(0, 5, 0.8)), *reads[1:]], 0.7)
    assert found == Evidence(0.7, 1.0, 0.8, 4.0, 1.0, 5.0, 2.0)
    assert gather_evidence(reads[:1], 0.7).lead == LEAD_MOST


def test_what_a_question_may_mean_counts_by_its_mean() -> None:
    node, topic = "Nodes run in processes.", "Topics carry messages."
    alone = [read(node, 2.0, 1, answers=2.0), read(topic, 1.0, 2, answers=1.0)]
    whole = [read(topic, 4.0, 2, answers=3.0), read(node, -4.0, 1, answers=-4.0)]
    merged = merge_reads([alone, whole])
    assert [(one.excerpt.text, one.score, one.answers) for one in merged] == [(topic, 2.5, 2.0), (node, -1.0, -1.0)]


def test_a_question_stands_alone_where_something_is_relevant_to_it() -> None:
    assert stands_alone([read("Nodes run.", 1.0, relevance=0.1)])
    assert not stands_alone([read("Nodes run.", 1.0, relevance=-0.1)])
    assert not stands_alone([])


def test_who_asks_about_a_source_is_told_of_its_lesson() -> None:
    one, other = read("Nodes run.", 2.0, 1), read("Topics flow.", 1.0, 2)
    assert keep_lesson([one, other], other.excerpt.passage.chunk.parent_doc_id) == (other,)
    assert keep_lesson([one, other], "elsewhere") == (one, other)
