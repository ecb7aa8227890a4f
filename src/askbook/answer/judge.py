"""The model as a judge: asked once, for all sentences that the reader is unsure of."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, ValidationError

from askbook.answer.check.passages import read_passage
from askbook.answer.citations import Doubt
from askbook.answer.cleaning import escape_for_model

_NUMBER_AND_VERDICT = {"sentence": {"type": "integer"}, "supported": {"type": "boolean"}}
_VERDICT = {"type": "object", "properties": _NUMBER_AND_VERDICT, "required": [*_NUMBER_AND_VERDICT]}
_LIST = {"verdicts": {"type": "array", "items": {**_VERDICT, "additionalProperties": False}}}
SCHEMA = {"type": "object", "properties": _LIST, "required": [*_LIST], "additionalProperties": False}
"""As strict services want it, without references, which not every service follows."""


class _Verdict(BaseModel):
    model_config = ConfigDict(strict=True)

    sentence: int
    supported: bool


class _Verdicts(BaseModel):
    verdicts: list[_Verdict]


def write_case(doubts: Sequence[Doubt]) -> str:
    """Each passage once, as data, and each sentence with the numbers of its passages."""
    chunks = {passage.chunk.id: passage.chunk for doubt in doubts for passage in doubt.passages}
    numbers = {chunk_id: at for at, chunk_id in enumerate(chunks, 1)}
    told = [
        {"number": numbers[chunk.id], "text": escape_for_model(read_passage(chunk).premise)}
        for chunk in chunks.values()
    ]
    sentences = [
        {
            "number": at,
            "text": escape_for_model(doubt.sentence),
            "passages": [numbers[passage.chunk.id] for passage in doubt.passages],
        }
        for at, doubt in enumerate(doubts, 1)
    ]
    return json.dumps({"passages": told, "sentences": sentences}, ensure_ascii=False)


def read_verdicts(said: str, count: int) -> list[bool]:
    """False where a verdict is missing, contradictory or unreadable."""
    try:
        verdicts = _Verdicts.model_validate_json(said).verdicts
    except ValidationError:
        return [False] * count
    return [
        {verdict.supported for verdict in verdicts if verdict.sentence == at} == {True} for at in range(1, count + 1)
    ]
