"""The official client of OpenAI against /v1: streamed and not, with sources, a conversation, and failures in its words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam

from answer.scripted_model import Turn, scripted_model, search
from api.service import BOOK, QUESTION, RIGHT, UNKNOWN, Service, build_settings, serve, with_model
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
    assert [model.id for model in client.models.list()] == [BOOK]
    assert client.models.retrieve(BOOK).owned_by == "askbook"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("physics")


@pytest.mark.parametrize("model", [BOOK, "askbook"])
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
    assert "not text" in refused.value.response.json()["message"]


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
    assert refused.value.status_code == status
    assert refused.value.response.json()["message"].startswith(message)


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
