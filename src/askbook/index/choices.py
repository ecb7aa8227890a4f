"""Filters that name what a book does not have are mistakes, and are said to be."""

from __future__ import annotations

from collections.abc import Iterable

from askbook.domain import LAYERS, PROFICIENCY_LEVELS, TIER_MAX, BookRecord, FacetValue, Filters
from askbook.errors import InputError


def check_choices(filters: Filters, book: BookRecord) -> None:
    tiers = book.facets.get("hardware_tier") or range(1, TIER_MAX + 1)
    levels = book.facets.get("proficiency_level") or PROFICIENCY_LEVELS
    layers = book.facets.get("layer") or LAYERS
    if filters.hardware_tier is not None:
        _check("the hardware tier", filters.hardware_tier, tiers)
    for level in filters.proficiency_levels:
        _check("the proficiency level", level, levels)
    if filters.layer is not None:
        _check("the layer", filters.layer, layers)
    if filters.module is not None:
        _check("the module", filters.module, book.modules)
    for number, name in (
        (filters.chapter_min, "chapter"),
        (filters.chapter_max, "chapter"),
        (filters.lesson, "lesson"),
    ):
        if number is not None and number < 0:
            raise InputError(f"a {name} number is 0 or more, not {number}")
    lowest, highest = filters.chapter_min, filters.chapter_max
    if lowest is not None and highest is not None and lowest > highest:
        raise InputError(
            f"the chapters end ({highest}) before they begin ({lowest})", "Write the smaller number first."
        )
    for name, values in filters.facets.items():
        if name not in book.facets:
            raise InputError(f"the book {book.book_id} has no facet {name!r}", f"It declares: {_listed(book.facets)}.")
        for value in values:
            if book.facets[name]:
                _check(f"the facet {name}", value, book.facets[name])


def _check(what: str, value: FacetValue, allowed: Iterable[FacetValue]) -> None:
    if value not in allowed:
        raise InputError(f"{what} {value!r} is not in this book", f"It may be: {_listed(allowed)}.")


def _listed(values: Iterable[FacetValue]) -> str:
    return ", ".join(map(str, values)) or "none"
