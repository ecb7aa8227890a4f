"""What a point carries beside its vectors, which of it is indexed, and how Filters ask for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
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

HEADING_JOINT = " › "


def to_payload(chunk: Chunk) -> dict[str, Any]:
    return {
        "chunk_id": chunk.id,
        "book_id": chunk.book_id,
        "module": chunk.module,
        "chapter": chunk.chapter,
        "lesson": chunk.lesson,
        "hardware_tier": chunk.hardware_tier,
        "proficiency_level": chunk.proficiency_level,
        "layer": chunk.layer,
        "parent_doc_id": chunk.parent_doc_id,
        "content_hash": chunk.content_hash,
        "source_file_hash": chunk.source_file_hash,
        "text": chunk.text,
        "section_title": chunk.section_title,
        "heading_path": list(chunk.heading_path),
        "heading": HEADING_JOINT.join(chunk.heading_path),
        "source_file": chunk.source_file,
        "url": chunk.url,
        "chunk_index": chunk.chunk_index,
        "total_chunks": chunk.total_chunks,
        "prev_chunk_id": chunk.prev_chunk_id,
        "next_chunk_id": chunk.next_chunk_id,
        "word_count": chunk.word_count,
        "token_count": chunk.token_count,
        "char_count": chunk.char_count,
        "first_line": chunk.first_line,
        "last_line": chunk.last_line,
        "version": chunk.version,
        "created_at": _to_iso(chunk.created_at),
        "updated_at": _to_iso(chunk.updated_at),
        "facet_tags": [_facet_tag(name, value) for name, value in chunk.facets.items()],
        **{f"facet_{name}": _plain(value) for name, value in chunk.facets.items()},
    }


def build_filter(words: Any, filters: Filters, among: Sequence[str] | None = None) -> Any:
    """`words` is qdrant_edge or qdrant_client.models: they name their filters alike but for ranges and ids."""
    conditions = list(_conditions(words, filters))
    if among is not None:
        conditions.append(_one_of(words, among))
    return words.Filter(must=conditions)


def _conditions(words: Any, filters: Filters) -> Iterator[Any]:
    def field(key: str, **asks: Any) -> Any:
        return words.FieldCondition(key=key, **asks)

    exact = {
        "book_id": filters.book_id,
        "module": filters.module,
        "lesson": filters.lesson,
        "layer": filters.layer,
        "parent_doc_id": filters.parent_doc_id,
    }
    for key, value in exact.items():
        if value is not None:
            yield field(key, match=words.MatchValue(value=value))
    if filters.hardware_tier is not None:
        yield field("hardware_tier", range=_range(words, None, filters.hardware_tier))
    if filters.chapter_min is not None or filters.chapter_max is not None:
        yield field("chapter", range=_range(words, filters.chapter_min, filters.chapter_max))
    if filters.proficiency_levels:
        yield field("proficiency_level", match=words.MatchAny(any=list(filters.proficiency_levels)))
    for name, values in filters.facets.items():
        if values:
            yield field("facet_tags", match=words.MatchAny(any=[_facet_tag(name, value) for value in values]))
    for key, prefix in (("url", filters.url_prefix), ("heading", filters.heading_prefix)):
        if prefix:
            yield field(key, match=words.MatchPrefix(prefix=prefix))


def _range(words: Any, least: int | None, most: int | None) -> Any:
    kind = words.RangeFloat if hasattr(words, "RangeFloat") else words.Range
    return kind(gte=least, lte=most)


def _one_of(words: Any, point_ids: Sequence[str]) -> Any:
    if hasattr(words, "EdgeShard"):
        return words.HasIdCondition(set(point_ids))
    return words.HasIdCondition(has_id=list(point_ids))


def _facet_tag(name: str, value: FacetValue) -> str:
    """All facets share one indexed field: a book may declare any, and the index need not know them."""
    return f"{name}={_plain(value)}"


def _plain(value: FacetValue) -> FacetValue:
    """Qdrant Edge finds no point by a boolean."""
    return int(value) if isinstance(value, bool) else value


def _to_iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
