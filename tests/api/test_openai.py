"""The official client of OpenAI against /v1: streamed and not, with sources, a conversation, failures in its words."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam

from answer.robots import ingest_books, write_lessons
from answer.scripted_model import Turn, scripted_model, search
from api.service import BOOK, QUESTION, RIGHT, UNKNOWN, Service, build_settings, serve, with_model
from askbook.domain import Scope
from askbook.wiring import open_store
from builders import copy_home


@pytest.fixture(scope="module")
def service(ingested_robots: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serve(build_settings(copy_home(ingested_robots, tmp_path_factory.mktemp("openai")))) as service:
        yield service


@pytest.fixture
def client(service: Service) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{service.url}/v1", api_key="none-is-needed-here", max_retries=0) as client:
        yield client


def _asked(*texts: str) -> list[ChatCompletionMessageParam]:
    """In turn the user's and the assistant's."""
    told: list[ChatCompletionMessageParam] = [{"role": "system", "content": "You are a pirate."}]
    for number, text in enumerate(texts):
        told.append({"role": "user", "content": text} if number % 2 == 0 else {"role": "assistant", "content": text})
    return told


def test_models_are_books(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["askbook", f"askbook/{BOOK}"]
    for name in (BOOK, "askbook", f"askbook/{BOOK}"):
        told = client.models.retrieve(name)
        assert (told.id, told.owned_by) == (name, "askbook") and told.created > 0
    with pytest.raises(openai.NotFoundError, match="there is no book physics"):
        client.models.retrieve("physics")


@pytest.mark.parametrize("model", [BOOK, "askbook", f"askbook/{BOOK}"])
def test_an_answer_with_sources(client: openai.OpenAI, model: str) -> None:
    completion = client.chat.completions.create(model=model, messages=_asked(QUESTION))

    [choice] = completion.choices
    assert choice.finish_reason == "stop" and choice.message.content is not None
    assert RIGHT in choice.message.content
    assert completion.usage is not None and completion.usage.total_tokens == 0
    assert choice.message.annotations
    cited = choice.message.annotations[0].url_citation
    assert choice.message.content[cited.start_index : cited.end_index] == "[1]"
    told = completion.model_extra
    assert told is not None
    assert told["sources"][0]["url"] == cited.url and told["session_id"] and told["refusal"] is None


def test_streamed(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(model=BOOK, messages=_asked(QUESTION)).choices[0].message.content
    stream = client.chat.completions.create(
        model=BOOK, messages=_asked(QUESTION), stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)

    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-1].usage is not None and not chunks[-1].choices
    last = chunks[-2]
    assert last.choices[0].finish_reason == "stop"
    assert last.model_extra is not None and last.model_extra["sources"][0]["quote"] in text
    assert len({chunk.id for chunk in chunks}) == 1


def test_a_refusal_is_said(client: openai.OpenAI) -> None:
    completion = client.chat.completions.create(model=BOOK, messages=_asked(UNKNOWN))
    assert completion.choices[0].message.content == "I don't have information about that in the book content"
    assert completion.model_extra is not None and completion.model_extra["refusal"]["reason"] == "not_in_book"
    streamed = client.chat.completions.create(model=BOOK, messages=_asked(UNKNOWN), stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in streamed) == completion.choices[0].message.content


def test_parts_of_text_are_one_text(client: openai.OpenAI) -> None:
    parts: list[ChatCompletionMessageParam] = [
        {"role": "user", "content": [{"type": "text", "text": "With what force"}, {"type": "text", "text": QUESTION}]}
    ]
    assert RIGHT in str(client.chat.completions.create(model=BOOK, messages=parts).choices[0].message.content)
    picture: list[ChatCompletionMessageParam] = [
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.org/x.png"}}]}
    ]
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(model=BOOK, messages=picture)
    assert "not text" in str(refused.value)


WRONG: dict[str, tuple[str, list[ChatCompletionMessageParam], int, str]] = {
    "no such book": ("physics", _asked(QUESTION), 404, "there is no book physics"),
    "no question": (BOOK, _asked(QUESTION, RIGHT), 400, "the last message must be the user's"),
    "no message": (BOOK, [], 400, "messages must have at least 1 entries"),
    "too long": (BOOK, _asked("x" * 2000), 400, "A question has 1 to 1000 characters"),
}


@pytest.mark.parametrize(("model", "messages", "status", "message"), WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("stream", [False, True])
def test_what_is_wrong_is_said(
    client: openai.OpenAI,
    model: str,
    messages: list[ChatCompletionMessageParam],
    status: int,
    message: str,
    stream: bool,
) -> None:
    with pytest.raises(openai.APIStatusError) as refused:
        client.chat.completions.create(model=model, messages=messages, stream=stream)
    assert_ours(refused.value, status, message)


def assert_ours(refused: openai.APIStatusError, status: int, message: str) -> None:
    """In OpenAI's shape, and with our words where its client looks for them."""
    assert refused.status_code == status and message in str(refused)
    told = refused.response.json()
    assert told.keys() == {"error"} and told["error"].keys() == {"message", "type", "param", "code"}
    assert told["error"]["message"].startswith(message)
    kinds = {401: "authentication_error", 429: "rate_limit_error"}
    assert refused.type == kinds.get(status, "invalid_request_error" if status < 500 else "server_error")
    assert refused.code


def test_every_error_below_v1_is_in_its_shape(home: Path, robots_folder: Path) -> None:
    async def make_key() -> str:
        async with open_store(build_settings(home)) as store:
            return (await store.keys.create("ann"))[1]

    key = asyncio.run(make_key())
    settings = build_settings(home, askbook_rate_limit=3, askbook_body_bytes=2000, askbook_local_owner=False)
    with serve(settings) as service:
        with openai.OpenAI(base_url=f"{service.url}/v1", api_key="askbook_wrong", max_retries=0) as stranger:
            with pytest.raises(openai.AuthenticationError) as refused:
                stranger.models.list()
            assert_ours(refused.value, 401, "the key is not valid. It is wrong, or it was revoked.")
        with openai.OpenAI(base_url=f"{service.url}/v1", api_key=key, max_retries=0) as client:
            with pytest.raises(openai.NotFoundError) as refused:
                client.embeddings.create(model=BOOK, input="x")
            assert_ours(refused.value, 404, "there is no /v1/embeddings")
            with pytest.raises(openai.APIStatusError) as refused:
                client.chat.completions.create(model=BOOK, messages=_asked("x" * 3000))
            assert_ours(refused.value, 413, "a body has at most 2000 bytes")
            with pytest.raises(openai.BadRequestError) as refused:
                client.responses.create(model=BOOK, input=QUESTION, extra_body={"stream": "perhaps"})
            assert_ours(refused.value, 400, "stream must be")
            assert refused.value.param == "stream"
            with pytest.raises(openai.RateLimitError) as refused:
                for _ in range(4):
                    client.models.list()
            assert_ours(refused.value, 429, "more than 3 requests in a minute")
        with service.open_client() as other:
            assert other.get("/info").json()["error"] == "authentication_error", "elsewhere as ever"


def test_a_default_book_where_there_are_several(home: Path, tmp_path: Path) -> None:
    tea = write_lessons(tmp_path / "tea", {"tea": "Green tea is steeped at 75 degrees for two minutes."})
    ingest_books(home, {"tea": tea, "aardvarks": write_lessons(tmp_path / "a", {"ant": "It eats ants."})})

    async def make_keys() -> list[str]:
        async with open_store(build_settings(home)) as store:
            scopes = (Scope(books=("tea", BOOK)), Scope())
            return [(await store.keys.create("ann", scope=scope))[1] for scope in scopes]

    named, everything = asyncio.run(make_keys())
    steeped = "At how many degrees is green tea steeped?"
    with serve(build_settings(home)) as service:
        with openai.OpenAI(base_url=f"{service.url}/v1", api_key=named, max_retries=0) as client:
            # The first that the key names.
            assert "75 degrees" in client.responses.create(model="askbook", input=steeped).output_text
            assert RIGHT in client.responses.create(model=f"askbook/{BOOK}", input=QUESTION).output_text
            assert [one.id for one in client.models.list()] == ["askbook", "askbook/robots", "askbook/tea"]
        with openai.OpenAI(base_url=f"{service.url}/v1", api_key=everything, max_retries=0) as client:
            # Else the first of all.
            assert "ants" in client.responses.create(model="askbook", input="What does the ant eat?").output_text
            assert "75 degrees" in client.responses.create(model="askbook/tea", input=steeped).output_text


# --- /v1/responses --------------------------------------------------------------------------------


def test_a_response_with_sources(client: openai.OpenAI) -> None:
    response = client.responses.create(
        model="askbook", input=QUESTION, instructions="You are a pirate.", temperature=0.3, store=False, tools=[]
    )
    assert response.status == "completed" and response.error is None and RIGHT in response.output_text
    [message] = response.output
    assert message.type == "message" and message.role == "assistant" and message.status == "completed"
    [content] = message.content
    assert content.type == "output_text" and content.annotations
    cited = content.annotations[0]
    assert cited.type == "url_citation" and content.text[cited.start_index : cited.end_index] == "[1]"
    assert response.usage is not None and response.usage.total_tokens == 0
    told = response.model_extra
    assert told is not None
    assert told["sources"][0]["url"] == cited.url and told["session_id"] and told["confidence_level"]


def test_a_response_streamed(client: openai.OpenAI) -> None:
    whole = client.responses.create(model=BOOK, input=QUESTION).output_text
    events = list(client.responses.create(model=BOOK, input=QUESTION, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    kinds = [event.type for event in events]
    assert kinds[:4] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
    ]
    assert kinds[-4:] == [
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert "response.output_text.annotation.added" in kinds
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == whole
    last = events[-1]
    assert last.type == "response.completed" and last.response.output_text == whole
    assert last.response.model_extra is not None and last.response.model_extra["sources"]


def test_a_response_by_the_clients_own_stream(client: openai.OpenAI) -> None:
    with client.responses.stream(model=BOOK, input=QUESTION) as stream:
        snapshots = [event.snapshot for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()
    assert RIGHT in final.output_text and snapshots[-1] == final.output_text


def test_a_response_may_refuse(client: openai.OpenAI) -> None:
    response = client.responses.create(model=BOOK, input=UNKNOWN)
    assert response.output_text == "I don't have information about that in the book content"
    assert response.model_extra is not None and response.model_extra["refusal"]["reason"] == "not_in_book"
    with client.responses.stream(model=BOOK, input=UNKNOWN) as stream:
        assert stream.get_final_response().output_text == response.output_text


def test_responses_go_on_from_one_before(client: openai.OpenAI) -> None:
    first = client.responses.create(model=BOOK, input="What does the lidar do?")
    again = client.responses.create(model=BOOK, input="What is its range?", previous_response_id=first.id)
    assert "12 meters" in again.output_text and again.previous_response_id == first.id and again.id != first.id
    assert again.model_extra and first.model_extra
    assert again.model_extra["session_id"] == first.model_extra["session_id"]
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(model=BOOK, input="And then?", previous_response_id="resp_of_somebody_else")
    assert_ours(refused.value, 400, "there is no response resp_of_somebody_else")


def test_a_conversation_as_items(client: openai.OpenAI) -> None:
    """What a client sends back of our own output, and of tools that are none of ours."""
    first = client.responses.create(model=BOOK, input="What does the lidar do?")
    items: list[Any] = [
        {"role": "developer", "content": "You are a pirate."},
        {"role": "user", "content": [{"type": "input_text", "text": "What does the lidar do?"}]},
        *(item.model_dump() for item in first.output),
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "nothing"},
        {"role": "user", "content": "What is its range?"},
    ]
    assert "12 meters" in client.responses.create(model=BOOK, input=items).output_text
    for wrong, message in (
        (
            [{"role": "user", "content": [{"type": "input_image", "image_url": "data:,"}]}],
            "a message has a part that is",
        ),
        ([{"role": "assistant", "content": "Hello."}], "the last message must be the user's"),
        ("", "The question is empty"),
    ):
        with pytest.raises(openai.BadRequestError) as refused:
            client.responses.create(model=BOOK, input=wrong)  # type: ignore[arg-type]
        assert_ours(refused.value, 400, message)


def test_a_failure_in_a_streamed_response_is_raised_by_the_client(home: Path) -> None:
    slow = Turn(f"{RIGHT} [1]. " + "It goes on. " * 100, pace=0.05)
    with (
        scripted_model(lambda _, request: slow if request.tool_outputs else search("gripper")) as model,
        serve(build_settings(home, **with_model(model.url), askbook_answer_seconds=1.5)) as service,
        openai.OpenAI(base_url=f"{service.url}/v1", api_key="none", max_retries=0) as client,
    ):
        stream = client.responses.create(model=BOOK, input=QUESTION, stream=True)
        with pytest.raises(openai.APIError, match="no answer within"):
            list(stream)


# --- a conversation -------------------------------------------------------------------------------


def test_the_conversation_that_is_told_counts(home: Path) -> None:
    """With a model: it is told what was said before. The pirate's rules are not."""

    def script(_number: int, request: object) -> Turn:
        outputs = request.tool_outputs  # type: ignore[attr-defined]
        return Turn("The gripper must not lift more than 2 kilograms [1].") if outputs else search("gripper lift")

    with scripted_model(script) as model, serve(build_settings(home, **with_model(model.url))) as service:
        with openai.OpenAI(base_url=f"{service.url}/v1", api_key="none", max_retries=0) as client:
            completion = client.chat.completions.create(
                model=BOOK, messages=_asked(QUESTION, f"{RIGHT}.", "How much may the gripper lift?")
            )
        assert "2 kilograms" in str(completion.choices[0].message.content)
        assert completion.usage is not None and completion.usage.total_tokens > 0
        asked = model.received[0]
        assert [text for _, text in asked.messages] == [QUESTION, f"{RIGHT}.", "How much may the gripper lift?"]
        assert "pirate" not in asked.instructions


def test_a_follow_up_without_a_model(client: openai.OpenAI) -> None:
    told = _asked("What does the lidar do?", "The lidar turns ten times a second.", "What is its range?")
    assert "12 meters" in str(client.chat.completions.create(model=BOOK, messages=told).choices[0].message.content)


def test_a_kept_conversation(client: openai.OpenAI) -> None:
    first = client.chat.completions.create(model=BOOK, messages=_asked("What does the lidar do?"))
    assert first.model_extra is not None
    session = first.model_extra["session_id"]
    again = client.chat.completions.create(
        model=BOOK, messages=_asked("What is its range?"), extra_body={"session_id": session}
    )
    assert again.model_extra is not None and again.model_extra["session_id"] == session


def test_a_failure_in_a_stream_is_raised_by_the_client(home: Path) -> None:
    slow = Turn(f"{RIGHT} [1]. " + "It goes on. " * 100, pace=0.05)
    with (
        scripted_model(lambda _, request: slow if request.tool_outputs else search("gripper")) as model,
        serve(build_settings(home, **with_model(model.url), askbook_answer_seconds=1.5)) as service,
        openai.OpenAI(base_url=f"{service.url}/v1", api_key="none", max_retries=0) as client,
    ):
        stream = client.chat.completions.create(model=BOOK, messages=_asked(QUESTION), stream=True)
        with pytest.raises(openai.APIError, match="no answer within"):
            list(stream)
