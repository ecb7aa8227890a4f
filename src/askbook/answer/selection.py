"""A text that the reader selected: for one question, all the book there is."""

from __future__ import annotations

import hashlib

import numpy as np

from askbook.answer.calibration import SMALL_BOOK, Calibration
from askbook.answer.confidence import JUDGED, find_level
from askbook.answer.followups import is_bare
from askbook.domain import Chunk, Confidence, Passage, Piece, Signals
from askbook.index.coverage import Rarities, cover
from askbook.index.embedders.base import Embedder

TITLE = "Selected text"


def to_selection(text: str, book_id: str) -> Passage:
    """The text as a passage of its own; its offsets count in what was selected."""
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    chunk = Chunk(
        id=f"selection-{digest[:16]}",
        text=text,
        embed_text=text,
        embed_hash=digest,
        book_id=book_id,
        module="",
        chapter=0,
        lesson=0,
        section_title=None,
        heading_path=(TITLE,),
        hardware_tier=1,
        proficiency_level="A2",
        layer="L1",
        facets={},
        source_file="",
        url="",
        parent_doc_id="",
        chunk_index=0,
        total_chunks=1,
        prev_chunk_id=None,
        next_chunk_id=None,
        content_hash=digest,
        source_file_hash=digest,
        word_count=len(text.split()),
        token_count=len(text.split()),
        char_count=len(text),
        first_line=1,
        last_line=text.count("\n") + 1,
        start=0,
        end=len(text),
        pieces=(Piece(0, 0, len(text)),),
    )
    return Passage(chunk, score=1.0, rank=1, relevance=1.0)


async def judge_selection(
    question: str, selection: Passage, calibration: Calibration, rarities: Rarities, embedder: Embedder | None
) -> Confidence:
    """As a small book of one passage; "explain this" is always about what was selected."""
    if is_bare(question):
        return _to_confidence(1.0)
    similarity = None
    if embedder is not None:
        [vector] = await embedder.embed_passages([selection.chunk.text])
        similarity = float(np.dot(vector, await embedder.embed_query(question)))
    signals = Signals(similarity, cover(selection.chunk, rarities).whole, chunks=SMALL_BOOK)
    return _to_confidence(calibration.chance_in_book(signals))


def _to_confidence(chance: float) -> Confidence:
    # One passage is all there can be: the seed's counts are for searches.
    level = find_level(chance, JUDGED)
    return Confidence(chance, chance, chance, 1, 0.0, level, level != "insufficient")
