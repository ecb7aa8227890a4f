"""The bodies of /v1, as OpenAI's clients write and read them. What is ours comes beside: sources, session, refusal."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from askbook.api.requests import SessionId, to_storable
from askbook.api.schemas import ChatResponse, ChatSource, CheckedStatement, RefusalBody
from askbook.errors import InputError

ANY_BOOK = "askbook"
"""The model's name for the only book there is, or for the first; `askbook/ID` names one."""
MODEL = (
    f"`{ANY_BOOK}/` and a book's id; `{ANY_BOOK}` alone is the first book that the key names, else the first there is."
)
MESSAGES_MAX = 500
TEXT_MAX = 100_000
TEXT_PARTS = ("text", "input_text", "output_text")


class _Sent(BaseModel):
    """A client may send what only its own service knows: that is left alone."""

    model_config = ConfigDict(extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _clean(cls, body: Any) -> Any:
        try:
            return to_storable(body)
        except RecursionError:
            raise PydanticCustomError("too_deep", "is nested too deeply") from None


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


class StreamOptions(_Sent):
    include_usage: bool = False


class CompletionRequest(_Sent):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"model": ANY_BOOK, "messages": [{"role": "user", "content": "What is a URDF file?"}]}]
        }
    )

    model: str = Field(max_length=200, description=MODEL)
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


class InputItem(_Said):
    """A message; what else there is (calls of tools, reasoning) has no role, and is passed over."""

    role: Literal["system", "developer", "user", "assistant"] | None = None


class ResponseRequest(_Sent):
    model_config = ConfigDict(json_schema_extra={"examples": [{"model": ANY_BOOK, "input": "What is a URDF file?"}]})

    model: str = Field(max_length=200, description=MODEL)
    input: Annotated[str, Field(max_length=TEXT_MAX)] | Annotated[list[InputItem], Field(max_length=MESSAGES_MAX)] = (
        Field(description="The question; or messages, of which the last asks, and those before are its conversation.")
    )
    stream: bool = False
    previous_response_id: str | None = Field(
        default=None, max_length=100, description="Go on from this response, in place of the earlier messages."
    )
    session_id: SessionId | None = Field(default=None, description="The same, by askbook's own name for it.")


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
    """The tokens of the model behind askbook. It counts them together: all stand under the prompt."""

    prompt_tokens: int
    completion_tokens: int = 0
    total_tokens: int

    @classmethod
    def of(cls, tokens: int) -> Usage:
        return cls(prompt_tokens=tokens, total_tokens=tokens)


class _Ours(BaseModel):
    """What askbook tells beside."""

    sources: list[ChatSource] | None = None
    session_id: str | None = None
    confidence: float | None = None
    confidence_level: str | None = None
    refusal: RefusalBody | None = None
    notices: list[str] | None = None
    removed: list[CheckedStatement] | None = None


def pick_ours(chat: ChatResponse) -> dict[str, Any]:
    return {name: getattr(chat, name) for name in _Ours.model_fields}


class ChatCompletion(_Ours):
    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
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


class ChatCompletionChunk(_Ours):
    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
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


# --- /v1/responses


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
    """As in `Usage`, all under the input."""

    input_tokens: int
    input_tokens_details: CachedTokens = CachedTokens()
    output_tokens: int = 0
    output_tokens_details: ReasoningTokens = ReasoningTokens()
    total_tokens: int


class ResponseBody(_Ours):
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
