"""Reading questions: a set's folder, and a user's questions.yaml with its mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from askbook.errors import InputError
from askbook.evals.sets import EvalQuestion, EvalSet, check_lessons, load_questions, load_set


def _jsonl(path: Path, *rows: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def _yaml(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "questions.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_page_is_named_by_its_path_or_by_its_slug(tmp_path: Path) -> None:
    folder = tmp_path / "tea"
    _jsonl(folder / "corpus.jsonl", {"id": "leaves/green.md"}, {"id": "tea/m2"})
    _jsonl(
        folder / "queries.jsonl",
        {"id": "q1", "question": "How hot is it?", "gold_ids": ["tea/m2"], "answers": ["hot"], "answerable": True},
        {"id": "q2", "question": "Who won?", "gold_ids": [], "answers": [], "answerable": False, "neg_type": "other"},
    )
    (folder / "md" / "leaves").mkdir(parents=True)
    (folder / "md" / "leaves" / "green.md").write_text("# Green\n")
    (folder / "md" / "leaves" / "black.md").write_text("---\nslug: /tea/m2\n---\n# Black\n")

    tea = load_set(folder, tmp_path / "work")
    assert (tea.name, tea.folder) == ("tea", folder / "md")
    assert tea.pages == {"leaves/black.md": "tea/m2"}
    first, second = tea.questions
    assert (first.gold, first.answers, first.has_gold) == (frozenset({"tea/m2"}), ("hot",), True)
    assert (second.answerable, second.neg_type, second.has_gold) == (False, "other", False)


def test_pages_without_markdown_are_written_as_markdown(tmp_path: Path) -> None:
    folder = tmp_path / "wiki"
    # The title would end the front matter, and the text holds a line break of its own that is none in JSONL.
    _jsonl(folder / "corpus.jsonl", {"id": "Tea: a\u2028b/1", "title": 'On "tea"\n---', "text": "Hot\u2028water."})
    _jsonl(folder / "queries.jsonl", {"id": "q", "question": "How hot?", "gold_ids": ["Tea: a\u2028b/1"]})
    wiki = load_set(folder, tmp_path / "work")
    assert load_set(folder, tmp_path / "work") == wiki
    assert wiki.folder is not None
    (source_file,) = (path.name for path in wiki.folder.iterdir())
    assert wiki.pages == {source_file: "Tea: a\u2028b/1"}
    text = (wiki.folder / source_file).read_text(encoding="utf-8")
    assert text == '---\ntitle: "On \\"tea\\" ---"\n---\nHot\u2028water.\n'


def test_a_conversation_gives_each_turn_what_was_asked_before(tmp_path: Path) -> None:
    folder = tmp_path / "talk"
    _jsonl(folder / "corpus.jsonl", {"id": "p", "title": "P", "text": "Text."})
    turns = [
        {"question": "What is tea?", "history": True},
        {"question": "Is it hot?", "gold_ids": ["p"], "answers": [], "answerable": True, "context_dependent": True},
        {"question": "Hello there", "gold_ids": [], "answers": [], "answerable": None},
    ]
    _jsonl(folder / "conversations.jsonl", {"id": "c", "turns": turns})
    hot, hello = load_set(folder, tmp_path / "work").questions
    assert (hot.id, hot.history, hot.follow, hot.context_dependent) == ("c@1", ("What is tea?",), True, True)
    assert (hello.id, hello.answerable, hello.has_gold) == ("c@2", None, False)
    assert hello.history == ("What is tea?", "Is it hot?")


def test_a_sample_has_so_many_of_each_kind_and_form() -> None:
    asked = [EvalQuestion(f"a{number}", "Why?", form="free") for number in range(9)]
    asked += [EvalQuestion(f"b{number}", "Why?", form="mcq") for number in range(2)]
    asked += [EvalQuestion(f"c{number}", "Why?", answerable=False, neg_type="far") for number in range(9)]
    sample = EvalSet("tea", tuple(asked), None, {}).take_sample(3)
    assert [one.id[0] for one in sample.questions] == ["a"] * 3 + ["b"] * 2 + ["c"] * 3
    assert sample.left_out == 12
    grown = EvalSet("tea", (*reversed(asked), EvalQuestion("d", "Why?", form="new")), None, {}).take_sample(3)
    assert {one.id for one in sample.questions} < {one.id for one in grown.questions}, "the same ones each time"


def test_an_explanation_cannot_be_held_word_for_word() -> None:
    answers = ("boiling water", "because the leaves are fully oxidised before they are dried")
    assert EvalQuestion("q", "Why?", answers=answers).facts == ("boiling water",)
    assert EvalQuestion("q", "Why?", answers=answers, answerable=False).facts == ()


def test_a_users_own_questions(tmp_path: Path) -> None:
    questions = load_questions(
        _yaml(
            tmp_path,
            """
            - question: How hot is green tea?
              lesson: green.md
            - id: both
              question: "And black?"
              lesson: [black.md, green.md]
              history: ["How hot is green tea?"]
              note: two
            - {question: "Who won the cup?", not_in_book: true}
            - {question: "What does green tea cost?", not_in_book: true, kind: near_miss}
            - {question: "Is green tea green?", not_in_book: false, lesson: green.md}
            """,
        )
    ).questions
    assert [one.id for one in questions] == [
        "How hot is green tea?", "both", "Who won the cup?", "What does green tea cost?", "Is green tea green?"
    ]  # fmt: skip
    assert questions[1].gold == {"black.md", "green.md"} and questions[1].follow and questions[1].note == "two"
    assert [one.neg_type for one in questions] == [None, None, "not_in_book", "near_miss", None]
    assert [one.answerable for one in questions] == [True, True, False, False, True]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("question: no list", "a list of questions"),
        ("[]", "a list of questions"),
        ("- [", "not valid YAML"),
        ("- just text", "question 1"),
        (
            "- {question: Who is it, lesson: a.md}\n- {question: Who is it, answer: me}",
            "question 2: 'answer' is not known",
        ),
        ("- {question: Who is it}", "say which lesson"),
        ("- {question: Who is it, lesson: a.md, not_in_book: true}", "say which lesson"),
        ("- {question: Who is it, not_in_book: false}", "say which lesson"),
        (
            "- {question: Who is it, lesson: a.md}\n- {question: What is it, not_in_book: 'no'}",
            "question 2: `not_in_book` is true or false, not 'no'",
        ),
        ("- {question: Who is it, lesson: a.md, not_in_book: 'no'}", "question 1: `not_in_book` is true or false"),
        ("- {question: Who is it, not_in_book: 1}", "`not_in_book` is true or false, not 1"),
        ("- {question: Who is it, not_in_book: }", "`not_in_book` is true or false, not None"),
        ("- {question: Who is it, lesson: a.md, kind: hard}", "`kind` is for a question with"),
        ("- {question: Who is it, not_in_book: true, kind: 3}", "`kind` must be a text"),
        ("- {question: 42, lesson: a.md}", "`question` must be a text"),
        ("- {question: Who is it, lesson: [1]}", "`lesson` must be a text or a list"),
        ("- {question: Y, lesson: a.md}", "3 to 1000 characters"),
        (
            "- {question: Who is it, lesson: a.md}\n- {question: Who is it, lesson: b.md}",
            "two questions have the id 'Who is it'",
        ),
    ],
)
def test_a_mistake_in_the_file_is_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        load_questions(_yaml(tmp_path, text))
    assert words in caught.value.message
    assert "questions.yaml" in caught.value.message


def test_a_mistake_in_a_set_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"queries\.jsonl cannot be read"):
        load_set(tmp_path, tmp_path / "work")
    (tmp_path / "queries.jsonl").write_text('{"id": "a", "question": "Who?"}\n{"id": \n')
    with pytest.raises(InputError, match=r"queries\.jsonl, line 2: not JSON"):
        load_set(tmp_path, tmp_path / "work")
    (tmp_path / "queries.jsonl").write_text('{"id": "a"}\n')
    with pytest.raises(InputError, match=r"line 1: `question` must be a text"):
        load_set(tmp_path, tmp_path / "work")


def test_a_lesson_that_is_not_there_is_named_with_the_nearest(tmp_path: Path) -> None:
    questions = load_questions(_yaml(tmp_path, "- {question: Who is it, lesson: leaves/green.md}"))
    check_lessons(questions, {"leaves/green.md"})
    with pytest.raises(InputError) as caught:
        check_lessons(questions, {"leaves/01-green.md", "other.md"})
    assert "leaves/green.md, which is not in the book" in caught.value.message
    assert caught.value.hint == "The nearest is leaves/01-green.md."
