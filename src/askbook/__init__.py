"""Ask a book a question; get an answer with its sources, or an honest "the book does not say"."""

__version__ = "0.1.0"
