"""The bodies of /v1, as OpenAI's clients write and read them, with askbook's own fields added: sources, session, refusal."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from askbook.api.requests import SessionId, clean_body
from askbook.domain import Replied
from askbook.errors import InputError
from askbook.shapes.answers import ChatResponse, ChatSource, CheckedStatement, RefusalBody
from askbook.shapes.body import example

ANY_BOOK = "askbook"
"""The model's name for the only book there is, or for the first; `askbook/ID` names one."""
ModelName = Annotated[
    str,
    Field(
        max_length=200,
        description=f"`{ANY_BOOK}/` and a book's id; `{ANY_BOOK}` alone is the first book that the key names, else the "
        "first there is.",
    ),
]
MESSAGES_MAX = 500
TEXT_MAX = 100_000
TEXT_PARTS = ("text", "input_text", "output_text")


# --- what is sent ---------------------------------------------------------------------------------


class _Sent(BaseModel):
    """Unknown fields are ignored: a client may send what only its usual service knows."""

    model_config = ConfigDict(extra="ignore")

    _clean = model_validator(mode="before")(clean_body)


class MessagePart(_Sent):
    type: str = Field(max_length=40)
    text: str | None = Field(default=None, max_length=TEXT_MAX)


class _Said(_Sent):
    content: str | list[MessagePart] | None = Field(default=None, max_length=TEXT_MAX)

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            if any(part.type not in TEXT_PARTS for part in self.content):
                raise InputError("a message has a part that is not text", "askbook reads text alone.")
            return "\n".join(part.text or "" for part in self.content)
        return self.content or ""


class SentMessage(_Said):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]


class InputItem(_Said):
    """A message. Other items (tool calls, reasoning) have no role and are skipped."""

    role: Literal["system", "developer", "user", "assistant"] | None = None


class StreamOptions(_Sent):
    include_usage: bool = False


class CompletionRequest(_Sent):
    model_config = example(model=ANY_BOOK, messages=[{"role": "user", "content": "What is a URDF file?"}])

    model: ModelName
    messages: list[SentMessage] = Field(
        min_length=1,
        max_length=MESSAGES_MAX,
        description="The last is the question; those before are its conversation.",
    )
    stream: bool = False
    stream_options: StreamOptions | None = None
    session_id: SessionId | None = Field(
        default=None, description="Go on with a conversation that askbook keeps, in place of the earlier messages."
    )


class ResponseRequest(_Sent):
    model_config = example(model=ANY_BOOK, input="What is a URDF file?")

    model: ModelName
    input: Annotated[str, Field(max_length=TEXT_MAX)] | Annotated[list[InputItem], Field(max_length=MESSAGES_MAX)] = (
        Field(description="The question; or messages, of which the last asks, and those before are its conversation.")
    )
    stream: bool = False
    previous_response_id: str | None = Field(
        default=None, max_length=100, description="Go on from this response, in place of the earlier messages."
    )
    session_id: SessionId | None = Field(default=None, description="The same, by askbook's own name for it.")


# --- what is told ---------------------------------------------------------------------------------


class _OwnFields(BaseModel):
    """The fields that askbook adds."""

    sources: list[ChatSource] | None = None
    session_id: str | None = None
    confidence: float | None = None
    confidence_level: str | None = None
    refusal: RefusalBody | None = None
    notices: list[str] | None = None
    removed: list[CheckedStatement] | None = None


def to_own_fields(replied: Replied, session_id: str) -> dict[str, Any]:
    chat = ChatResponse.from_replied(replied, session_id)
    return {name: getattr(chat, name) for name in _OwnFields.model_fields}


class UrlCitation(BaseModel):
    start_index: int
    end_index: int
    title: str
    url: str


class Annotation(BaseModel):
    """Where in the text a source is cited."""

    type: Literal["url_citation"] = "url_citation"
    url_citation: UrlCitation


class CompletionMessage(BaseModel):
    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None
    annotations: list[Annotation]


class Choice(BaseModel):
    index: int = 0
    message: CompletionMessage
    finish_reason: Literal["stop"] = "stop"
    logprobs: None = None


class Usage(BaseModel):
    """The tokens of the model behind askbook. They are counted together and reported as tokens of the prompt."""

    prompt_tokens: int
    completion_tokens: int = 0
    total_tokens: int

    @classmethod
    def of(cls, tokens: int) -> Self:
        return cls(prompt_tokens=tokens, total_tokens=tokens)


class _Completion(_OwnFields):
    id: str
    created: int
    model: str


class ChatCompletion(_Completion):
    object: Literal["chat.completion"] = "chat.completion"
    choices: list[Choice]
    usage: Usage


class ChunkDelta(BaseModel):
    role: Literal["assistant"] | None = None
    content: str | None = None
    annotations: list[Annotation] | None = None


class ChunkChoice(BaseModel):
    index: int = 0
    delta: ChunkDelta
    finish_reason: Literal["stop"] | None = None
    logprobs: None = None


class ChatCompletionChunk(_Completion):
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    choices: list[ChunkChoice]
    usage: Usage | None = None


class ModelInfo(BaseModel):
    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "askbook"


class ModelList(BaseModel):
    object: Literal["list"] = "list"
    data: list[ModelInfo]


# --- /v1/responses --------------------------------------------------------------------------------


class ResponseAnnotation(UrlCitation):
    type: Literal["url_citation"] = "url_citation"


class OutputText(BaseModel):
    type: Literal["output_text"] = "output_text"
    text: str = ""
    annotations: list[ResponseAnnotation] = []
    logprobs: list[Any] = []


class OutputMessage(BaseModel):
    id: str
    type: Literal["message"] = "message"
    role: Literal["assistant"] = "assistant"
    status: Literal["in_progress", "completed"]
    content: list[OutputText]


class CachedTokens(BaseModel):
    cached_tokens: int = 0
    cache_write_tokens: int = 0


class ReasoningTokens(BaseModel):
    reasoning_tokens: int = 0


class ResponseUsage(BaseModel):
    """As in `Usage`, all tokens are reported as input."""

    input_tokens: int
    input_tokens_details: CachedTokens = CachedTokens()
    output_tokens: int = 0
    output_tokens_details: ReasoningTokens = ReasoningTokens()
    total_tokens: int


class ResponseBody(_OwnFields):
    id: str
    object: Literal["response"] = "response"
    created_at: int
    status: Literal["in_progress", "completed"] = "in_progress"
    model: str
    output: list[OutputMessage] = []
    previous_response_id: str | None = None
    usage: ResponseUsage | None = None
    error: None = None
    incomplete_details: None = None
    instructions: None = None
    metadata: dict[str, str] = {}
    parallel_tool_calls: bool = False
    tool_choice: Literal["none"] = "none"
    tools: list[Any] = []
    temperature: None = None
    top_p: None = None
