"""Cohere's embeddings, which tell a passage from a question."""

from __future__ import annotations

from typing import Any

from askbook.index.embedders.remote import Purpose, RemoteEmbedder


class CohereEmbedder(RemoteEmbedder):
    vendor = "cohere"
    service = "Cohere"
    key_setting = "COHERE_API_KEY"
    base_url = "https://api.cohere.com"
    dimensions = {  # noqa: RUF012
        "embed-english-v3.0": 1024,
        "embed-multilingual-v3.0": 1024,
        "embed-english-light-v3.0": 384,
        "embed-multilingual-light-v3.0": 384,
    }
    batch = 96
    path = "/v2/embed"
    code = "E006"

    def _write(self, texts: list[str], about: Purpose) -> dict[str, Any]:
        input_type = "search_query" if about == "query" else "search_document"
        return {"model": self._model, "texts": texts, "input_type": input_type, "embedding_types": ["float"]}

    def _rows(self, answer: Any) -> Any:
        try:
            return answer["embeddings"]["float"]
        except (KeyError, TypeError):
            return None
