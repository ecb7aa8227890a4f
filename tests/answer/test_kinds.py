"""What a question wants: a definition, steps, a list, a number; and which words of it are choices, not question."""

from __future__ import annotations

import pytest

from askbook.answer.kinds import QuestionKind, find_content, rate_definition, read_question


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("What is a node?", "definition"),
        ("define discovery", "definition"),
        ("What does QoS stand for?", "definition"),
        ("Nodes that find each other do so by ________.", "name"),
        ("What is the name of the environment variable?", "name"),
        ("How do I start two nodes?", "how_to"),
        ("steps to build a workspace", "how_to"),
        ("It hangs for ever. What should I check?", "how_to"),
        ("Show me an example of a launch file", "code"),
        ("which command lists the nodes", "code"),
        ("What are the types of joints?", "list"),
        ("Name three stop categories", "list"),
        ("What is the difference between a topic and a service?", "comparison"),
        ("URDF vs SDF", "comparison"),
        ("How many beams does it have?", "number"),
        ("What is the maximum timeout?", "number"),
        ("When was it published?", "when"),
        ("Who wrote the planner?", "who"),
        ("Where is the map kept?", "where"),
        ("My node hangs. Why?", "why"),
        ("Is the domain id a protection?", "yes_no"),
        ("Can I stop it half way?", "yes_no"),
        ("Tell me about navigation", "fact"),
        ("What is wrong with my code?", "fact"),
    ],
)
def test_the_kind_of_a_question(question: str, kind: QuestionKind) -> None:
    assert read_question(question).kind == kind


@pytest.mark.parametrize(
    "question",
    [
        "Which sign sends commands to Gazebo? a) the bracket b) the arrow c) the dollar",
        "Which sign sends commands to Gazebo?\nA. the bracket\nB. the arrow\nC. the dollar",
        "Which sign sends commands to Gazebo?\n- the bracket\n- the arrow\n- the dollar",
    ],
)
def test_choices_are_told_from_the_question(question: str) -> None:
    asked = read_question(question)
    assert asked.text == "Which sign sends commands to Gazebo?"
    assert asked.options == (frozenset({"bracket"}), frozenset({"arrow"}), frozenset({"dollar"}))


def test_the_sides_of_a_comparison() -> None:
    for question in ("difference between a topic and a service?", "topics vs services", "Compare topics with services"):
        assert read_question(question).subjects == (frozenset({"topic"}), frozenset({"servic"}))


def test_words_that_only_ask_are_no_content() -> None:
    assert find_content(read_question("Show me an example of a planner")) == {"planner"}
    assert find_content(read_question("explain")) == frozenset()
    assert find_content(read_question("What is a type?")) == {"type"}


@pytest.mark.parametrize(
    ("text", "defines"),
    [
        ("A **node** is one participant in the graph.", True),
        ("Nodes are the participants of the graph.", True),
        ("node\n: one participant", True),
        ("**Node**: one participant", True),
        ("A participant of the graph is called a node.", True),
        ("A **node** owns publishers and timers.", True),
        ("A full node name is a namespace plus a base name.", False),
        ("The graph is the set of all nodes.", False),
        ("It is slow.", False),
    ],
)
def test_a_definition_has_its_subject_first(text: str, defines: bool) -> None:
    assert (rate_definition(read_question("What is a node?"), text) > 0) is defines


def test_a_definition_may_stand_around_an_aside() -> None:
    asked = read_question("What is a URDF file?")
    assert rate_definition(asked, "**URDF**, the Unified Robot Description Format, is an XML file of links.") > 0
    assert rate_definition(asked, "A large URDF is a file.") < rate_definition(asked, "URDF is a file.")
    assert rate_definition(asked, "This chapter speaks of URDF, the file that states it.") == 0
