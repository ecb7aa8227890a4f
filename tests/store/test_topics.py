"""What a conversation is about, told from its questions and the sections they led to."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from askbook.domain import Cited, Message
from askbook.store.topics import SUMMARY_MAX, describe_topics

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def talk(*exchanges: tuple[str, ...]) -> list[Message]:
    """Each exchange: a question, and the titles that its answer cites."""
    messages: list[Message] = []
    for question, *titles in exchanges:
        cited = tuple(Cited(title, "…") for title in titles)
        messages += [Message("user", question, NOON), Message("assistant", "…", NOON, cited=cited)]
    return messages


def test_the_sections_that_the_questions_led_to_are_the_topics() -> None:
    assert (
        describe_topics(
            talk(
                ("How do I publish from a ROS 2 node in Python?", "Nodes and topics › A publisher in Python"),
                ("What about a subscriber?", "Nodes and topics › A subscriber"),
                ("which QoS should a lidar have", "Quality of service › Reliability"),
                ("What does transient_local do?", "Quality of service › Durability"),
                ("thanks, can you explain it again?", "Quality of service › Durability"),
            )
        )
        == "Quality of service; Nodes and topics; publisher in Python; subscriber; Durability"
    )


def test_words_of_asking_and_of_any_book_are_no_topics() -> None:
    chat = talk(
        ("What is URDF?", "Chapter 4: URDF › Introduction"), ("Why doesn't it work?", "Chapter 4: URDF › Summary")
    )
    assert describe_topics(chat) == "URDF"


def test_where_nothing_was_cited_the_questions_tell() -> None:
    assert describe_topics(talk(("Who won the chess olympiad?",), ("tell me more",))) == "chess olympiad; won"
    assert describe_topics(talk(("why?",), ("and then?",), ("ok",))) is None
    assert describe_topics(talk(("如何安装机器人操作系统？",))) == "如何安装机器人操作系统"


def test_capitals_and_the_plural_make_no_other_topic() -> None:
    assert describe_topics(talk(("robot sensors",), ("a Sensor of the Robot",))) == "robot sensors"


@given(st.lists(st.tuples(st.text(max_size=300), st.text(max_size=300)), max_size=8))
def test_any_talk_has_a_short_summary_and_always_the_same(exchanges: list[tuple[str, str]]) -> None:
    summary = describe_topics(talk(*exchanges))
    assert summary is None or 0 < len(summary) <= SUMMARY_MAX
    assert describe_topics(talk(*exchanges)) == summary
