"""Questions with known answers: a set's folder, or a `questions.yaml` that a user wrote for their own book."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from askbook.book.front_matter import read_front_matter
from askbook.book.reader import find_files, read_book
from askbook.domain import QUERY_MIN
from askbook.errors import InputError
from askbook.index.search import check_query

QUERIES, CONVERSATIONS, CORPUS, MARKDOWN = "queries.jsonl", "conversations.jsonl", "corpus.jsonl", "md"
NOT_IN_BOOK, KIND = "not_in_book", "kind"
QUESTION_KEYS = ("question", "lesson", NOT_IN_BOOK, KIND, "id", "note", "history")

FACT_WORDS = 5

Json = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class EvalQuestion:
    """A question and what should come of it. `answerable` is None where nobody has judged it."""

    id: str
    question: str
    history: tuple[str, ...] = ()
    """The questions asked before it in the same conversation."""
    gold: frozenset[str] = frozenset()
    answers: tuple[str, ...] = ()
    answerable: bool | None = True
    neg_type: str | None = None
    """Why there is no answer: another book's question, a removed chapter, a near miss …"""
    form: str | None = None
    """How the set asks it: to fill in, to choose …"""
    follow: bool = False
    context_dependent: bool = False
    note: str = ""

    @property
    def has_gold(self) -> bool:
        return bool(self.gold) and self.answerable is not False

    @property
    def facts(self) -> tuple[str, ...]:
        """The known answers that a text can hold word for word; a longer one is an explanation, with many wordings."""
        return tuple(answer for answer in self.answers if len(answer.split()) <= FACT_WORDS) if self.answerable else ()


@dataclass(frozen=True, slots=True)
class EvalSet:
    name: str
    questions: tuple[EvalQuestion, ...]
    folder: Path | None
    """What to ingest; None for a book that its user has ingested already."""
    pages: Mapping[str, str]
    """Source file → page id, where the two differ."""
    left_out: int = 0
    """How many more questions it has, where this is a sample."""

    def take_sample(self, most: int) -> EvalSet:
        """At most this many questions of each kind and form, the same ones each time."""
        taken: Counter[tuple[object, ...]] = Counter()
        kept: set[str] = set()
        for question in sorted(self.questions, key=lambda question: _hash(question.id)):
            taken[group := (question.answerable, question.neg_type, question.form)] += 1
            if taken[group] <= most:
                kept.add(question.id)
        questions = tuple(question for question in self.questions if question.id in kept)
        return replace(self, questions=questions, left_out=len(self.questions) - len(questions))


def _hash(name: str) -> str:
    return hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()


# --- a set's folder -------------------------------------------------------------------------------


def load_set(folder: Path, working_folder: Path) -> EvalSet:
    """A set's questions and pages. Pages that come without Markdown are written as Markdown below `working_folder`."""
    name = folder.resolve().name
    questions = tuple(_read_conversations(folder) if (folder / CONVERSATIONS).is_file() else _read_queries(folder))
    _refuse_doubles(folder, questions)
    if (folder / MARKDOWN).is_dir():
        return EvalSet(name, questions, folder / MARKDOWN, _find_pages(folder))
    target = working_folder / "pages" / name
    return EvalSet(name, questions, target, _write_pages(folder, target))


def _read_queries(folder: Path) -> Iterator[EvalQuestion]:
    for place, row in _read_rows(folder / QUERIES):
        yield _to_question(place, row, _text(place, row, "id"), history=(), follow=False)


def _read_conversations(folder: Path) -> Iterator[EvalQuestion]:
    """Every turn that needs an answer; turns marked `history` are context only."""
    for place, row in _read_rows(folder / CONVERSATIONS):
        turns = row.get("turns")
        if not isinstance(turns, list) or not all(isinstance(turn, dict) for turn in turns):
            raise InputError(f"{place}: a conversation has a list of `turns`")
        asked: list[str] = []
        for at, turn in enumerate(turns):
            where = f"{place}, turn {at}"
            if not turn.get("history"):
                name = f"{_text(place, row, 'id')}@{at}"
                yield _to_question(where, turn, name, history=tuple(asked), follow=at > 0)
            earlier = _text(where, turn, "question")
            # "ok" asks nothing that could be searched.
            if len(earlier.strip()) >= QUERY_MIN:
                asked.append(earlier)


def _to_question(place: str, row: Json, name: str, history: tuple[str, ...], follow: bool) -> EvalQuestion:
    answerable, neg_type = row.get("answerable", True), row.get("neg_type")
    return EvalQuestion(
        id=name,
        question=_checked(place, _text(place, row, "question")),
        history=history,
        gold=frozenset(_texts(place, row, "gold_ids")),
        answers=_texts(place, row, "answers"),
        answerable=answerable if isinstance(answerable, bool) else None,
        neg_type=str(neg_type) if neg_type else None,
        form=str(row["kind"]) if row.get("kind") else None,
        follow=follow,
        context_dependent=row.get("context_dependent") is True,
    )


def _find_pages(folder: Path) -> dict[str, str]:
    """A page is named by its path below md/, or by its front matter's slug where the corpus says so."""
    known = {_text(place, row, "id") for place, row in _read_rows(folder / CORPUS)}
    pages: dict[str, str] = {}
    files, _ = find_files(folder / MARKDOWN, read_book(folder / MARKDOWN))
    for source_file, path in files.items():
        if source_file not in known:
            slug = read_front_matter(path.read_text(encoding="utf-8", errors="replace")).text("slug") or ""
            if slug.removeprefix("/") in known:
                pages[source_file] = slug.removeprefix("/")
    return pages


def _write_pages(folder: Path, target: Path) -> dict[str, str]:
    target.mkdir(parents=True, exist_ok=True)
    pages: dict[str, str] = {}
    for place, row in _read_rows(folder / CORPUS):
        page = _text(place, row, "id")
        readable = re.sub(r"[^A-Za-z0-9]+", "-", page)[:60]
        source_file = f"{readable}-{_hash(page)[:6]}.md"
        title = str(row.get("title") or "").replace("\n", " ")
        text = f"---\ntitle: {json.dumps(title)}\n---\n{row.get('text') or ''}\n"
        (target / source_file).write_text(text, encoding="utf-8")
        pages[source_file] = page
    for left_over in set(target.iterdir()) - {target / source_file for source_file in pages}:
        left_over.unlink()
    return pages


def _read_rows(path: Path) -> Iterator[tuple[str, Json]]:
    """Each line of a JSONL file, with the words that name it in a message."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}", f"A set's folder holds {QUERIES} and {CORPUS}.") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        place = f"{path}, line {number}"
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise InputError(f"{place}: not JSON: {error.msg}") from error
        if not isinstance(row, dict):
            raise InputError(f"{place}: an object is expected")
        yield place, row


# --- questions.yaml -------------------------------------------------------------------------------


def load_questions(path: Path) -> EvalSet:
    """A user's own questions: each names the lesson that answers it, or says that the book does not."""
    try:
        entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    except yaml.YAMLError as error:
        raise InputError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(entries, list) or not entries:
        raise InputError(f"{path}: a list of questions is expected", "Each is `- question: …` and `lesson: path.md`.")
    questions = tuple(_read_entry(f"{path}, question {at}", entry) for at, entry in enumerate(entries, start=1))
    _refuse_doubles(path, questions)
    return EvalSet(path.stem, questions, None, {})


def _read_entry(place: str, entry: object) -> EvalQuestion:
    if not isinstance(entry, dict):
        raise InputError(f"{place}: `question:` and `lesson:` are expected")
    if unknown := sorted(str(key) for key in entry if key not in QUESTION_KEYS):
        raise InputError(f"{place}: {unknown[0]!r} is not known", f"The keys are {', '.join(QUESTION_KEYS)}.")
    text = _checked(place, _text(place, entry, "question"))
    lessons, absent = _texts(place, entry, "lesson"), entry.get(NOT_IN_BOOK, False)
    if not isinstance(absent, bool):
        raise InputError(
            f"{place}: `{NOT_IN_BOOK}` is true or false, not {absent!r}",
            f"`{KIND}:` tells kinds of such questions apart.",
        )
    if bool(lessons) == absent:
        raise InputError(
            f"{place}: say which lesson answers it, or `{NOT_IN_BOOK}: true`",
            "`lesson:` takes the path of a lesson in the book, or a list of paths.",
        )
    if KIND in entry and not absent:
        raise InputError(f"{place}: `{KIND}` is for a question with `{NOT_IN_BOOK}: true`")
    history = tuple(_checked(f"{place}, history", earlier) for earlier in _texts(place, entry, "history"))
    return EvalQuestion(
        # Without an id the question itself is one: it stays the same when others are added before it.
        id=str(entry.get("id") or text),
        question=text,
        history=history,
        gold=frozenset(lessons),
        answerable=bool(lessons),
        neg_type=None if lessons else _text(place, {KIND: NOT_IN_BOOK, **entry}, KIND),
        follow=bool(history),
        note=str(entry.get("note") or ""),
    )


def check_lessons(eval_set: EvalSet, lessons: Collection[str]) -> None:
    """Every expected lesson must be in the book: a lesson that was renamed is a mistake, not a wrong answer."""
    for question in eval_set.questions:
        for lesson in sorted(question.gold - set(lessons)):
            near = difflib.get_close_matches(lesson, lessons, n=1, cutoff=0.3)
            hint = f"The nearest is {near[0]}." if near else "`askbook ingest` brings a changed book up to date."
            raise InputError(f"{eval_set.name}: “{question.id}” expects {lesson}, which is not in the book", hint)


# --- values, checked ------------------------------------------------------------------------------


def _text(place: str, row: Json, key: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{place}: `{key}` must be a text")
    return value


def _texts(place: str, row: Json, key: str) -> tuple[str, ...]:
    """One text or a list of them; nothing at all is an empty list."""
    value = row.get(key)
    values: list[object] = [] if value is None else value if isinstance(value, list) else [value]
    texts = tuple(text for text in values if isinstance(text, str) and text.strip())
    if len(texts) < len(values):
        raise InputError(f"{place}: `{key}` must be a text or a list of texts")
    return texts


def _checked(place: str, question: str) -> str:
    try:
        return check_query(question)
    except InputError as error:
        raise InputError(f"{place}: {error.message}") from error


def _refuse_doubles(path: Path, questions: tuple[EvalQuestion, ...]) -> None:
    seen: set[str] = set()
    for question in questions:
        if question.id in seen:
            raise InputError(f"{path}: two questions have the id {question.id!r}", "Give one of them another `id`.")
        seen.add(question.id)
