"""What a point carries beside its vectors, which of it is indexed, and how Filters ask for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any, Literal

from askbook.domain import Chunk, FacetValue, Filters

DENSE, KEYWORDS = "dense", "keywords"
IndexKind = Literal["tenant", "keyword", "integer", "prefix"]

INDEXED: dict[str, IndexKind] = {
    "book_id": "tenant",
    "module": "keyword",
    "chapter": "integer",
    "lesson": "integer",
    "hardware_tier": "integer",
    "proficiency_level": "keyword",
    "layer": "keyword",
    "parent_doc_id": "keyword",
    "content_hash": "keyword",
    "source_file_hash": "keyword",
    "facet_tags": "keyword",
    "url": "prefix",
    "heading": "prefix",
}


# What the ledger alone keeps, and what the payload has in a form of its own.
_NOT_COPIED = {"id", "embed_text", "embed_hash", "embedded_at", "embedding_model", "start", "end", "pieces", "sections"}
_NOT_COPIED |= {"heading_path", "facets", "created_at", "updated_at", "module_order"}
COPIED = [field.name for field in fields(Chunk) if field.name not in _NOT_COPIED]


def to_payload(chunk: Chunk) -> dict[str, Any]:
    return {
        "chunk_id": chunk.id,
        **{name: getattr(chunk, name) for name in COPIED},
        "heading_path": list(chunk.heading_path),
        "heading": chunk.way,
        "created_at": chunk.created_at.isoformat() if chunk.created_at else None,
        "updated_at": chunk.updated_at.isoformat() if chunk.updated_at else None,
        "facet_tags": [_facet_tag(name, value) for name, value in chunk.facets.items()],
        **{f"facet_{name}": _plain(value) for name, value in chunk.facets.items()},
    }


def build_filter(words: Any, filters: Filters, among: Sequence[str] | None = None) -> Any:
    """`words` is qdrant_edge or qdrant_client.models: they name their filters alike but for ranges and ids."""
    conditions = list(_conditions(words, filters))
    if among is not None:
        conditions.append(_one_of(words, among))
    return words.Filter(must=conditions)


def filter_embedded(words: Any, point_ids: Sequence[str]) -> Any:
    """Those of the points that have a dense vector."""
    dense = {"vector" if is_edge(words) else "has_vector": DENSE}
    return words.Filter(must=[_one_of(words, point_ids), words.HasVectorCondition(**dense)])


def is_edge(words: Any) -> bool:
    return hasattr(words, "EdgeShard")


def _conditions(words: Any, filters: Filters) -> Iterator[Any]:
    for key in ("book_id", "module", "lesson", "layer", "parent_doc_id"):
        if (value := getattr(filters, key)) is not None:
            yield words.FieldCondition(key=key, match=words.MatchValue(value=value))
    between = words.RangeFloat if is_edge(words) else words.Range
    for key, least, most in (
        ("hardware_tier", None, filters.hardware_tier),
        ("chapter", filters.chapter_min, filters.chapter_max),
    ):
        if least is not None or most is not None:
            yield words.FieldCondition(key=key, range=between(gte=least, lte=most))
    for key, wanted in (
        ("proficiency_level", filters.proficiency_levels),
        *(("facet_tags", [_facet_tag(name, value) for value in values]) for name, values in filters.facets.items()),
    ):
        if wanted:
            yield words.FieldCondition(key=key, match=words.MatchAny(any=list(wanted)))
    for key, prefix in (("url", filters.url_prefix), ("heading", filters.heading_prefix)):
        if prefix:
            yield words.FieldCondition(key=key, match=words.MatchPrefix(prefix=prefix))


def _one_of(words: Any, point_ids: Sequence[str]) -> Any:
    return words.HasIdCondition(**({"point_ids": set(point_ids)} if is_edge(words) else {"has_id": list(point_ids)}))


def _facet_tag(name: str, value: FacetValue) -> str:
    """All facets share one indexed field: a book may declare any, and the index need not know them."""
    return f"{name}={_plain(value)}"


def _plain(value: FacetValue) -> FacetValue:
    """Qdrant Edge finds no point by a boolean."""
    return int(value) if isinstance(value, bool) else value
