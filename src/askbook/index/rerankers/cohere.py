"""Cohere's reranker, or any endpoint that speaks the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from askbook.breaker import Breaker
from askbook.errors import RerankerUnavailable
from askbook.index.remote import Endpoint, Patience, Unusable, sendable

# A reader waits: one more try at once, then the order that is there.
PATIENCE = Patience(tries=2, first_wait=0.2)


class CohereReranker:
    def __init__(
        self,
        api_key: str,
        model: str,
        base_url: str,
        patience: Patience = PATIENCE,
        breaker: Breaker | None = None,
        seconds: float | None = None,
    ) -> None:
        """`seconds`: how long a search waits."""
        self._model = model
        self._seconds = seconds
        self._endpoint = Endpoint(
            "The reranker", base_url, api_key, "COHERE_API_KEY", patience, RerankerUnavailable, breaker, "E006"
        )

    @property
    def name(self) -> str:
        return f"cohere/{self._model}"

    async def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        documents = [sendable(text) for text in texts]
        body = {"model": self._model, "query": sendable(question), "documents": documents, "top_n": len(documents)}
        return await self._endpoint.post(
            "/v2/rerank", body, lambda answer: _read_scores(answer, len(documents)), self._seconds
        )

    async def close(self) -> None:
        await self._endpoint.close()


def _read_scores(answer: Any, count: int) -> list[float]:
    """In the order of the texts, whatever order the service answered in."""
    try:
        results = answer["results"]
        by_index = {item["index"]: float(item["relevance_score"]) for item in results}
        scores = [by_index[at] for at in range(count)]
    except (KeyError, TypeError, ValueError):
        scores = results = []
    if len(results) != count or not all(0.0 <= score <= 1.0 for score in scores):
        raise Unusable(f"did not answer with {count} scores from 0 to 1")
    return scores
