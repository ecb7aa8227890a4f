"""OpenAI's embeddings, or any endpoint that speaks the same."""

from __future__ import annotations

from typing import Any

from askbook.index.embedders.remote import Purpose, RemoteEmbedder


class OpenAIEmbedder(RemoteEmbedder):
    vendor = "openai"
    service = "The embedding service"
    key_setting = "OPENAI_API_KEY"
    base_url = "https://api.openai.com/v1"
    dimensions = {  # noqa: RUF012
        "text-embedding-3-small": 1536,
        "text-embedding-3-large": 3072,
        "text-embedding-ada-002": 1536,
    }
    batch = 128
    path = "/embeddings"
    code = "E004"

    def _write(self, texts: list[str], about: Purpose) -> dict[str, Any]:
        return {"model": self._model, "input": texts, "encoding_format": "float"}

    def _rows(self, answer: Any) -> Any:
        """In the order of the texts, whatever order the service answered in."""
        try:
            return [item["embedding"] for item in sorted(answer["data"], key=lambda item: item["index"])]
        except (KeyError, TypeError):
            return None
