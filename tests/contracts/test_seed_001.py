"""The second contract, field by field: the agent, its one tool, the conversation; a scripted model behind real HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from answer.scripted_model import Call, Request, ScriptedModel, Turn, quote, say, scripted_model
from answer.scripted_model import Reply as ModelReply
from answer.scripted_model import search as search_for
from api.service import KEY, build_settings, read_events, serve, with_model
from builders import copy_home
from contracts.kinds import Kind, address, counted, many, maybe, one_of, share, table, text, utc_time, uuid4, whole
from contracts.terminal import Terminal
from contracts.textbook import BOOK, QUESTION, REFUSAL, RIGHT, UNKNOWN

HEARD = "The gripper closes with a force of 40 newtons [1]."


@dataclass
class Speaker:
    """The model: it searches, then says what it found."""

    calls: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """What it asks of its tool where the wrist is asked about, whatever comes back."""

    def __call__(self, number: int, request: Request) -> ModelReply:
        question, done = request.messages[-1][1], len(request.tool_outputs)
        if "wrist" in question and done < len(self.calls):
            return Turn(calls=(Call(json.dumps(self.calls[done])),))
        if question != QUESTION:
            return quote(number, request)
        return search_for("force of the gripper", top_k=3) if not done else say(HEARD)


@dataclass(frozen=True)
class Talk:
    """Two questions to a server with a model, what it replied, and all that the model was sent."""

    client: httpx2.Client
    speaker: Speaker
    model: ScriptedModel
    replies: list[dict[str, Any]]
    sent: list[Request]

    @property
    def history(self) -> dict[str, Any]:
        return self.client.get(f"/session/{self.replies[0]['session_id']}/history").json()

    @property
    def tool_output(self) -> dict[str, Any]:
        [output] = self.sent[1].tool_outputs
        return output


@pytest.fixture(scope="module")
def talk(ingested_textbook: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Talk]:
    home = copy_home(ingested_textbook, tmp_path_factory.mktemp("talk"))
    speaker = Speaker()
    with (
        scripted_model(speaker) as model,
        serve(build_settings(home, **with_model(model.url))) as service,
        service.open_client() as client,
    ):
        first = client.post("/chat/run", json={"message": QUESTION}).json()
        follow = {"message": "When must the battery be charged?", "session_id": first["session_id"]}
        second = client.post("/chat/run", json=follow).json()
        yield Talk(client, speaker, model, [first, second], list(model.received))


# --- configuration --------------------------------------------------------------------------------


def test_the_model_is_called_as_configured(talk: Talk) -> None:
    for request in talk.sent:
        assert (request.body["model"], request.body["temperature"]) == ("scripted", 0.0)
        assert "max_tokens" not in request.body
        assert request.headers["authorization"] == f"Bearer {KEY}"


RULES = {
    "searches first": "Search before you answer, always",
    "only the results": "Write only what the results say",
    "says so where nothing fits": REFUSAL,
    "nothing from elsewhere": "Add nothing that you know from elsewhere",
    "cites": "name the place in the book by its page title and section heading",
    "follow-ups": 'Where an earlier message says what "it"',
    "answers at once": "Answer at once and briefly",
    "every source": "or [1][3] for two",
}


@pytest.mark.parametrize("rule", RULES)
def test_prompt(talk: Talk, rule: str) -> None:
    assert all(RULES[rule] in request.instructions for request in talk.sent)


def test_the_prompt_is_the_first_message_of_every_call(talk: Talk) -> None:
    assert len(talk.sent) == 4
    assert all(request.items[0]["role"] == "system" and text(request.items[0]["content"]) for request in talk.sent)


SETTINGS: dict[str, tuple[list[object], list[object]]] = {
    "openai_model": (["gpt-3.5-turbo", "gpt-4-turbo"], [""]),
    "agent_temperature": ([0.0, 1.0], [-0.1, 1.1]),
    "agent_max_tokens": ([None, 1], [0, -1]),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_setting(tmp_path: Path, name: str) -> None:
    good, bad = SETTINGS[name]
    for value in good:
        assert getattr(build_settings(tmp_path, **{name: value}), name) == value
    for value in bad:
        with pytest.raises(ValueError, match=name):
            build_settings(tmp_path, **{name: value})


def test_a_wrong_setting_is_named_in_the_terminal(terminal: Terminal) -> None:
    told = terminal.run("ask", QUESTION, AGENT_TEMPERATURE="1.1")
    assert (told.returncode, "AGENT_TEMPERATURE" in told.stderr) == (1, True)


def test_the_names_of_the_environment(tmp_path: Path) -> None:
    """Each is read as the contract's `.env` has it."""
    names = {
        "QDRANT_URL": "https://qdrant.example.org",
        "QDRANT_API_KEY": "q",
        "QDRANT_COLLECTION_NAME": "documentation",
        "COHERE_API_KEY": "c",
        "COHERE_MODEL": "embed-multilingual-v3.0",
        "OPENAI_API_KEY": KEY,
        "OPENAI_MODEL": "gpt-3.5-turbo",
    }
    (tmp_path / ".env").write_text("".join(f"{name}={value}\n" for name, value in names.items()))
    told = Terminal(tmp_path / "home", tmp_path).python(
        "from askbook.settings import load_settings; s = load_settings()\n"
        "secret = lambda one: one.get_secret_value() if hasattr(one, 'get_secret_value') else one\n"
        f"print([secret(getattr(s, name.lower())) for name in {list(names)!r}])\n"
    )
    assert told.stdout.strip() == repr(list(names.values())), told.stderr


def test_defaults_where_nothing_is_set(tmp_path: Path) -> None:
    settings = build_settings(tmp_path)
    assert (settings.cohere_model, settings.openai_api_key) == ("embed-english-v3.0", None)
    assert (settings.agent_temperature, settings.agent_max_tokens) == (0.0, None)


# --- the tool -------------------------------------------------------------------------------------

PARAMETERS = {
    "query": ("string", None),
    "top_k": ("integer", 5),
    "similarity_threshold": ("number", 0.0),
}


def test_there_is_one_tool_of_the_contracts_name(talk: Talk) -> None:
    [tool] = talk.sent[0].body["tools"]
    assert (tool["type"], tool["function"]["name"]) == ("function", "retrieve_documentation")
    assert text(tool["function"]["description"])
    assert tool["function"]["parameters"]["type"] == "object"
    assert tool["function"]["parameters"]["required"] == ["query"]


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameter(talk: Talk, name: str) -> None:
    parameter = talk.sent[0].tool["parameters"]["properties"][name]
    assert (parameter["type"], parameter.get("default")) == PARAMETERS[name]
    assert text(parameter["description"])


CALLS: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "query": ([{"query": "arm"}], [{"query": ""}, {"query": "  "}, {}]),
    "top_k": ([{"top_k": 1}, {"top_k": 20}], [{"top_k": 0}, {"top_k": 21}]),
    "similarity_threshold": (
        [{"similarity_threshold": 0.0}, {"similarity_threshold": 1.0}],
        [{"similarity_threshold": -0.1}, {"similarity_threshold": 1.1}],
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_call(talk: Talk, name: str) -> None:
    """What the model asks for at the limit gives results, and beyond it an error that it can read."""
    good, bad = CALLS[name]
    base = {} if name == "query" else {"query": "step of the arm"}
    talk.speaker.calls = [base | one for one in (*good, *bad)]
    talk.client.post("/ask", json={"query": "In which step is the wrist of the arm checked?"})
    outputs = talk.model.received[-1].tool_outputs
    assert [set(one) for one in outputs[: len(good)]] == [{"results", "total_results", "query"}] * len(good)
    assert [set(one) for one in outputs[len(good) :]] == [{"error", "query"}] * len(bad)
    assert all(name in one["error"] for one in outputs[len(good) :])


OUTPUT: dict[str, Kind] = {
    "results": many(table),
    "total_results": counted,
    "query": one_of("force of the gripper"),
}
RESULT: dict[str, Kind] = {
    "chunk_text": text,
    "page_title": text,
    "section_heading": maybe(text),
    "source_url": address,
    "similarity_score": share,
    "rank": counted,
}


@pytest.mark.parametrize("name", OUTPUT)
def test_output(talk: Talk, name: str) -> None:
    assert OUTPUT[name](talk.tool_output[name])


@pytest.mark.parametrize("name", RESULT)
def test_result(talk: Talk, name: str) -> None:
    assert [one[name] for one in talk.tool_output["results"] if not RESULT[name](one[name])] == []


def test_results_are_counted_and_ranked_from_one(talk: Talk) -> None:
    told = talk.tool_output
    assert told["total_results"] == len(told["results"]) == 3
    assert [one["rank"] for one in told["results"]] == [1, 2, 3]
    first = told["results"][0]
    assert (first["page_title"], first["section_heading"]) == ("The gripper", "What a gripper does")
    assert "error" not in told


def test_a_result_tells_more_over_http(talk: Talk) -> None:
    """Its way through the book, its place in the lesson and all else that is known of it."""
    found = talk.client.post("/search", json={"text": "force of the gripper"}).json()["results"][0]
    assert " › ".join(found["heading_path"]).endswith("Chapter 1: Hands › The gripper › What a gripper does")
    assert (found["chunk_index"], found["rank"]) == (0, 1) and table(found["facets"])


# --- the conversation -----------------------------------------------------------------------------

STATE: dict[str, Kind] = {
    "thread_id": uuid4,
    "messages": many(table),
    "retrieval_history": many(table),
    "created_at": utc_time,
    "turn_count": one_of(2),
}
MESSAGE: dict[str, Kind] = {
    "role": one_of("user", "assistant"),
    "content": text,
    "tool_calls": lambda value: isinstance(value, list),
    "timestamp": utc_time,
}
TOOL_CALL: dict[str, Kind] = {
    "tool_name": one_of("retrieve_documentation"),
    "query": text,
    "results_count": whole,
    "avg_similarity": share,
    "timestamp": utc_time,
}


@pytest.mark.parametrize("name", STATE)
def test_state(talk: Talk, name: str) -> None:
    assert STATE[name](talk.history[name])


@pytest.mark.parametrize("name", MESSAGE)
def test_message(talk: Talk, name: str) -> None:
    assert all(MESSAGE[name](one[name]) for one in talk.history["messages"])


@pytest.mark.parametrize("name", TOOL_CALL)
def test_tool_call(talk: Talk, name: str) -> None:
    assert all(TOOL_CALL[name](one[name]) for one in talk.history["retrieval_history"])


def test_every_search_counts_what_it_returned(talk: Talk) -> None:
    """The model's own asked for three."""
    counts = [one["results_count"] for one in talk.history["messages"][1]["tool_calls"]]
    assert counts[-1] == talk.tool_output["total_results"] == 3


def test_only_an_answer_has_tool_calls(talk: Talk) -> None:
    assert [bool(one["tool_calls"]) for one in talk.history["messages"]] == [False, True] * 2


def test_a_turn_is_a_question_a_call_its_result_and_an_answer(talk: Talk) -> None:
    roles = [one["role"] for one in talk.sent[1].items]
    assert roles == ["system", "user", "assistant", "tool"]
    called, given = talk.sent[1].items[2:]
    assert called["tool_calls"][0]["function"]["name"] == "retrieve_documentation"
    assert given["tool_call_id"] == called["tool_calls"][0]["id"]
    assert [one["role"] for one in talk.history["messages"]] == ["user", "assistant"] * 2


def test_the_next_turn_is_told_the_one_before(talk: Talk) -> None:
    asked, said, question = talk.sent[2].messages
    assert (asked, question) == (("user", QUESTION), ("user", "When must the battery be charged?"))
    assert said[0] == "assistant" and said[1].startswith(RIGHT)


def test_every_turn_searches(talk: Talk) -> None:
    assert [request.body["tool_choice"] for request in (talk.sent[0], talk.sent[2])] == ["required"] * 2


def test_an_answer_cites_its_chapter(talk: Talk) -> None:
    first = talk.replies[0]
    assert first["response"] == HEARD
    [source] = first["sources"]
    assert (source["chapter"], source["section"]) == ("Chapter 1: Hands", "What a gripper does")
    assert address(source["url"]) and RIGHT in source["quote"]


def test_a_cited_source_has_the_score_that_it_was_found_with(talk: Talk) -> None:
    with talk.client.stream("POST", "/chat/stream", json={"message": "How far does the lidar see?"}) as response:
        events = [(one.event, one.data) for one in read_events(response.iter_lines())]
    [source] = dict(events)["done"]["sources"]
    assert source["similarity_score"] == dict(events)["retrieval"]["scores"][0]


def test_off_topic_is_refused_and_the_model_is_not_asked(talk: Talk) -> None:
    before = len(talk.model.received)
    told = talk.client.post("/chat/run", json={"message": UNKNOWN}).json()
    assert (told["response"], told["should_answer"]) == (REFUSAL, False)
    assert len(talk.model.received) == before


def test_twelve_turns_stay_one_conversation(talk: Talk) -> None:
    """The contract's ten and two more; all are kept and counted."""
    session = None
    for _ in range(12):
        body = {"message": QUESTION} | ({"session_id": session} if session else {})
        told = talk.client.post("/chat/run", json=body).json()
        session = told["session_id"]
        assert RIGHT in told["response"]
    thread = talk.client.get(f"/session/{session}/history").json()
    assert (thread["turn_count"], len(thread["messages"]), thread["book_id"]) == (12, 24, BOOK)
    spoken = [role for role, _ in talk.model.received[-1].messages]
    assert spoken == ["user", "assistant"] * 11 + ["user"]
