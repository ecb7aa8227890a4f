"""The rows that a scope may read."""

from __future__ import annotations

from sqlalchemy import Column, ColumnElement

from askbook.domain import Scope, to_internal_id


def within(scope: Scope, book_id: Column[str]) -> ColumnElement[bool]:
    """As `Scope.holds`, in SQL."""
    if scope.books is not None:
        return book_id.in_([to_internal_id(scope.tenant, public_id) for public_id in scope.books])
    if scope.tenant:
        return book_id.startswith(f"{scope.tenant}/", autoescape=True)
    return ~book_id.contains("/")
