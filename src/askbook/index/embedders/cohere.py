"""Cohere's embeddings, which tell a passage from a question."""

from __future__ import annotations

from typing import Any

from askbook.index.embedders.remote import Purpose, RemoteEmbedder
from askbook.index.remote import Patience

BASE_URL = "https://api.cohere.com"


class CohereEmbedder(RemoteEmbedder):
    vendor = "cohere"
    service = "Cohere"
    key_setting = "COHERE_API_KEY"
    dimensions = {  # noqa: RUF012
        "embed-english-v3.0": 1024,
        "embed-multilingual-v3.0": 1024,
        "embed-english-light-v3.0": 384,
        "embed-multilingual-light-v3.0": 384,
    }
    batch = 96

    @classmethod
    async def open(
        cls, api_key: str, model: str = "embed-english-v3.0", base_url: str = BASE_URL, patience: Patience | None = None
    ) -> CohereEmbedder:
        return await cls(api_key, model, base_url, patience or Patience())._learn_dimension()

    async def _ask(self, texts: list[str], about: Purpose) -> Any:
        input_type = "search_query" if about == "query" else "search_document"
        body = {"model": self._model, "texts": texts, "input_type": input_type, "embedding_types": ["float"]}
        return _rows(await self._endpoint.post("/v2/embed", body))


def _rows(answer: Any) -> Any:
    try:
        return answer["embeddings"]["float"]
    except (KeyError, TypeError):
        return None
