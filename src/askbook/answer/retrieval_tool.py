"""The one tool: all that a model can do here. Which book is searched, whose and how filtered, is not its to say."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from askbook.answer.cleaning import escape_for_model
from askbook.domain import LIMIT_MAX, QUERY_MAX, QUERY_MIN, RETRIEVAL_TOOL, Passage
from askbook.errors import AskbookError

Search = Callable[[str, int, float], Awaitable[Sequence[tuple[int, Passage]]]]
"""Query, top_k, threshold → passages, each with the number to cite it by."""

NAME = RETRIEVAL_TOOL
DESCRIPTION = (
    "Search the book for a question or a topic. Gives the passages that fit best, each with its text, "
    "where it stands, and the number to cite it by."
)
SEARCHES_MAX = 4


class BadCall(Exception):
    """Unusable arguments; the message tells the model why."""


class RetrievalTool:
    """The tool for one question. Failures are told to the model, and kept."""

    def __init__(self, search: Search, top_k: int, threshold: float) -> None:
        self._search, self._top_k, self._threshold = search, top_k, threshold
        self._begun = 0
        self.found = 0
        """Searches that succeeded, even with no passages."""
        self.failure: AskbookError | None = None
        self.fault: Exception | None = None
        """An unexpected error, which ends the run."""

    @property
    def schema(self) -> dict[str, Any]:
        """Written by hand: a strict schema made from a signature would require all three."""
        return {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What to look for in the book: a question or a topic"},
                "top_k": {
                    "type": "integer",
                    "description": f"How many of the best passages to get, 1 to {LIMIT_MAX} (default: {self._top_k})",
                    "default": self._top_k,
                },
                "similarity_threshold": {
                    "type": "number",
                    "description": f"Leave out passages that score lower, 0.0 to 1.0 (default: {self._threshold:.1f})",
                    "default": self._threshold,
                },
            },
            "required": ["query"],
        }

    async def call(self, arguments: str) -> str:
        given = read_arguments(arguments)
        said = given.get("query") if given else None
        query = escape_for_model(" ".join(said.split())[:QUERY_MAX]) if isinstance(said, str) else ""
        try:
            wanted = self._read_wanted(given)
            if self._begun == SEARCHES_MAX:
                raise BadCall(f"no more than {SEARCHES_MAX} searches: answer now from the results you have")
            self._begun += 1
            found = await self._search(*wanted)
        except BadCall as error:
            reply = {"error": str(error)}
        except AskbookError as error:
            self.failure = error
            reply = {"error": "the book cannot be searched now"}
        except Exception as error:
            self.fault = error
            raise
        else:
            self.found += 1
            results = [_to_result(rank, number, passage) for rank, (number, passage) in enumerate(found, start=1)]
            reply = {"results": results, "total_results": len(results)}
        return json.dumps({**reply, "query": query}, ensure_ascii=False)

    def _read_wanted(self, given: Mapping[str, Any] | None) -> tuple[str, int, float]:
        """Query, top_k and threshold of a call."""
        if given is None:
            raise BadCall('the arguments are not a JSON object such as {"query": "…"}')
        query = given.get("query")
        if not isinstance(query, str) or not QUERY_MIN <= len(query.strip()) <= QUERY_MAX:
            raise BadCall(f"query must be a text of {QUERY_MIN} to {QUERY_MAX} characters")
        top_k = _read_number(given, "top_k", self._top_k, 1, LIMIT_MAX)
        if top_k != int(top_k):
            raise BadCall(f"top_k must be a whole number, 1 to {LIMIT_MAX}")
        # The model may raise the owner's threshold, not lower it.
        threshold = max(self._threshold, _read_number(given, "similarity_threshold", self._threshold, 0, 1))
        return query.strip(), int(top_k), threshold


def read_arguments(arguments: str) -> Mapping[str, Any] | None:
    """None unless it is a JSON object."""
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    return given if isinstance(given, dict) else None


def _read_number(given: Mapping[str, Any], name: str, default: float, least: int, most: int) -> float:
    """Small models write numbers as text, and null for what they leave out."""
    value = given.get(name)
    if value is None:
        return default
    try:
        number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else None
    except (ValueError, OverflowError):
        number = None
    if number is None or not least <= number <= most:
        raise BadCall(f"{name} must be a number, {least} to {most}")
    return number


def _to_result(rank: int, number: int, passage: Passage) -> dict[str, Any]:
    chunk = passage.chunk
    page = chunk.heading_path[-2:-1] if chunk.section_title else ()
    return {
        "citation": number,
        "chunk_text": escape_for_model(chunk.text),
        "page_title": escape_for_model("".join(page or chunk.heading_path[-1:])),
        "section_heading": escape_for_model(chunk.section_title) if chunk.section_title else None,
        "source_url": escape_for_model(chunk.url),
        "similarity_score": round(min(max(passage.rating, 0.0), 1.0), 3),
        "rank": rank,
    }
