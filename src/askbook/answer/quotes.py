"""Where a chunk's words stand in the book: a quote is always the file's own characters."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from askbook.domain import Chunk, Passage, Source

Span = tuple[int, int]


def to_source(number: int, passage: Passage, start: int, end: int) -> Source | None:
    """The source that quotes `chunk.text[start:end]`; None where the file does not have it in one run."""
    place = place_quote(passage.chunk, start, end)
    if place is None:
        return None
    return Source(number, replace(passage, chunk=passage.chunk.at(place[0])), passage.chunk.text[start:end], *place)


def place_quote(chunk: Chunk, start: int, end: int) -> Span | None:
    """The file's offsets of these characters of the chunk; None where the file does not have them in one run."""
    return find_runs(chunk, start, end).get((start, end))


def find_runs(chunk: Chunk, start: int, end: int) -> dict[Span, Span]:
    """The stretches that the file has in one run each, in order, and their places in the file."""
    runs: list[tuple[Span, Span]] = []
    for piece in chunk.pieces:
        first, last = max(start, piece.text_at), min(end, piece.text_at + piece.length)
        if first >= last:
            continue
        by = piece.source_at - piece.text_at
        run, place = runs[-1] if runs else ((-1, -1), (-1, -1))
        if run[1] == first and place[1] == first + by:
            runs[-1] = (run[0], last), (place[0], last + by)
        else:
            runs.append(((first, last), (first + by, last + by)))
    return dict(runs)


def find_own_runs(chunk: Chunk, start: int, end: int) -> dict[Span, Span]:
    """Without a repeated table head, which stands above the chunk."""
    return {run: place for run, place in find_runs(chunk, start, end).items() if place[0] >= chunk.start}


def find_longest_run(chunk: Chunk, start: int, end: int) -> Span:
    """The longest stretch that the file has in one run; everything where there is none."""
    return max(find_own_runs(chunk, start, end), key=lambda run: run[1] - run[0], default=(start, end))


def find_stretch(chunk: Chunk, start: int, end: int) -> Span | None:
    """From the first to the last of these characters in the file, with the unseen markup between."""
    places = list(find_own_runs(chunk, start, end).values())
    in_order = all(one[1] <= after[0] for one, after in pairwise(places))
    return (places[0][0], places[-1][1]) if places and in_order else None
