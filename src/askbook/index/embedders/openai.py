"""OpenAI's embeddings, or any endpoint that speaks the same."""

from __future__ import annotations

from typing import Any

from askbook.index.embedders.remote import Purpose, RemoteEmbedder
from askbook.index.remote import Patience

BASE_URL = "https://api.openai.com/v1"


class OpenAIEmbedder(RemoteEmbedder):
    vendor = "openai"
    service = "The embedding service"
    key_setting = "OPENAI_API_KEY"
    dimensions = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}  # noqa: RUF012
    batch = 128

    @classmethod
    async def open(
        cls,
        api_key: str,
        model: str = "text-embedding-3-small",
        base_url: str = BASE_URL,
        patience: Patience | None = None,
    ) -> OpenAIEmbedder:
        return await cls(api_key, model, base_url, patience or Patience())._learn_dimension()

    async def _ask(self, texts: list[str], about: Purpose) -> Any:
        body = {"model": self._model, "input": texts, "encoding_format": "float"}
        return _rows(await self._endpoint.post("/embeddings", body))


def _rows(answer: Any) -> Any:
    """In the order of the texts, whatever order the service answered in."""
    try:
        return [item["embedding"] for item in sorted(answer["data"], key=lambda item: item["index"])]
    except (KeyError, TypeError):
        return None
