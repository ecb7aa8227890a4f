"""Ask a book a question; get an answer with its sources, or an honest "the book does not say"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from askbook.python import open_book

__version__ = "0.1.0"
__all__ = ["__version__", "open_book"]


def __getattr__(name: str) -> Any:
    """`import askbook` stays cheap: what opens a book is imported when it is asked for."""
    if name == "open_book":
        from askbook.python import open_book

        return open_book
    raise AttributeError(f"module 'askbook' has no attribute {name!r}")
