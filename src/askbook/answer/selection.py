"""A text that the reader selected: for one question, all the book there is."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import replace

import numpy as np

from askbook.domain import Chunk, Filters, Passage, Piece, SearchOutcome, Signals
from askbook.errors import EmbedderUnavailable
from askbook.index.coverage import Rarities, cover
from askbook.index.embedders.base import Embedder
from askbook.index.search import WORDS_ONLY

log = logging.getLogger("askbook")

TITLE = "Selected text"


def to_selection(text: str, book_id: str) -> Passage:
    """The selected text as a passage; its offsets count in that text, with normalized line ends."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
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


async def search_selection(
    question: str, text: str, filters: Filters, rarities: Rarities, embedder: Embedder | None
) -> SearchOutcome:
    """The search outcome of a book with only this text."""
    selection = to_selection(text, filters.book_id)
    similarity, notices = None, ()
    try:
        # Both as questions: somebody waits, and questions have the shorter timeout.
        if embedder is not None:
            similarity = float(np.dot(await embedder.embed_query(text), await embedder.embed_query(question)))
    except EmbedderUnavailable as error:
        log.warning("A selected text was compared by its words alone: %s", error.message)
        notices = (WORDS_ONLY,)
    coverage = cover(selection.chunk, rarities).whole
    # It has no vector in the index: only the signals have its similarity.
    passage = replace(selection, coverage=coverage)
    signals = Signals(similarity, coverage, selection.score, selection.score, chunks=1)
    return SearchOutcome(
        question, filters, "hybrid", (passage,), 1, 0.0, 0.0, signals, notices=notices, rarities=rarities
    )
