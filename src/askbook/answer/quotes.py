"""Where a chunk's words stand in the book: a quote is always the file's own characters."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from askbook.domain import Chunk, Passage, Source


def to_source(number: int, passage: Passage, start: int, end: int) -> Source | None:
    """The source that quotes `chunk.text[start:end]`; None where the file does not have it in one run."""
    place = place_quote(passage.chunk, start, end)
    if place is None:
        return None
    return Source(number, replace(passage, chunk=passage.chunk.at(place[0])), passage.chunk.text[start:end], *place)


def place_quote(chunk: Chunk, start: int, end: int) -> tuple[int, int] | None:
    """The file's offsets of these characters of the chunk."""
    at, source_start, source_at = start, None, None
    for piece in chunk.pieces:
        if not piece.text_at <= at < piece.text_at + piece.length:
            continue
        source = piece.source_at + at - piece.text_at
        if source_at is not None and source != source_at:
            return None
        source_start = source if source_start is None else source_start
        taken = min(end, piece.text_at + piece.length) - at
        at, source_at = at + taken, source + taken
        if at == end:
            return source_start, source_at
    return None


def find_runs(chunk: Chunk, start: int, end: int) -> list[tuple[int, int]]:
    """The stretches that the file has in one run each, in order."""
    runs: list[tuple[int, int]] = []
    for piece in chunk.pieces:
        first, last = max(start, piece.text_at), min(end, piece.text_at + piece.length)
        if first >= last:
            continue
        if runs and place_quote(chunk, runs[-1][0], last) is not None:
            runs[-1] = runs[-1][0], last
        else:
            runs.append((first, last))
    return runs


def find_own_runs(chunk: Chunk, start: int, end: int) -> dict[tuple[int, int], tuple[int, int]]:
    """The runs and their places in the file, without a repeated table head, which stands above the chunk."""
    places = {run: place_quote(chunk, *run) for run in find_runs(chunk, start, end)}
    return {run: place for run, place in places.items() if place is not None and place[0] >= chunk.start}


def find_longest_run(chunk: Chunk, start: int, end: int) -> tuple[int, int]:
    """The longest stretch that the file has in one run; everything where there is none."""
    return max(find_own_runs(chunk, start, end), key=lambda run: run[1] - run[0], default=(start, end))


def find_stretch(chunk: Chunk, start: int, end: int) -> tuple[int, int] | None:
    """From the first to the last of these characters in the file, with the unseen markup between."""
    places = list(find_own_runs(chunk, start, end).values())
    in_order = all(one[1] <= after[0] for one, after in pairwise(places))
    return (places[0][0], places[-1][1]) if places and in_order else None
