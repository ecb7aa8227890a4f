"""Error → name and status: one table."""

from __future__ import annotations

from askbook.api.schemas import ErrorResponse
from askbook.errors import (
    AskbookError,
    BookError,
    BrokenOff,
    DataInUse,
    DeadlinePassed,
    EmbedderUnavailable,
    HeadersTooLarge,
    IndexMismatch,
    IndexUnavailable,
    InputError,
    JobFailed,
    ModelUnavailable,
    NotAllowed,
    NotFound,
    ReaderUnavailable,
    RerankerUnavailable,
    ShuttingDown,
    Stopped,
    StorageError,
    TooLarge,
    TooManyRequests,
    TooSlow,
)

PROBLEMS: dict[type[AskbookError], tuple[str, int]] = {
    InputError: ("validation_error", 400),
    BookError: ("validation_error", 400),
    NotFound: ("not_found", 404),
    NotAllowed: ("authentication_error", 401),
    TooManyRequests: ("rate_limited", 429),
    TooLarge: ("payload_too_large", 413),
    HeadersTooLarge: ("payload_too_large", 431),
    TooSlow: ("timeout", 408),
    DataInUse: ("service_unavailable", 503),
    StorageError: ("service_unavailable", 503),
    IndexUnavailable: ("service_unavailable", 503),
    EmbedderUnavailable: ("service_unavailable", 503),
    RerankerUnavailable: ("service_unavailable", 503),
    ReaderUnavailable: ("service_unavailable", 503),
    ModelUnavailable: ("agent_error", 503),
    BrokenOff: ("agent_error", 503),
    DeadlinePassed: ("timeout", 503),
    ShuttingDown: ("service_unavailable", 503),
    IndexMismatch: ("retrieval_error", 500),
    JobFailed: ("unknown_error", 500),
    Stopped: ("unknown_error", 500),
}


# What these say is for whoever runs the server: it may name its folders and its addresses.
TOLD_OUTSIDE: dict[type[AskbookError], tuple[str, str]] = {
    StorageError: ("the database does not answer", "Try again in a moment."),
    DataInUse: ("the data is in use by another process", "Try again in a moment."),
    IndexUnavailable: ("the vector index does not answer", "Try again in a moment."),
    IndexMismatch: ("the index was made by another embedder", "Whoever runs the server must ingest the books anew."),
    BookError: ("the book's folder cannot be read", "The log of the server says why."),
}


def to_problem(error: AskbookError) -> ErrorResponse:
    name, status = PROBLEMS[type(error)]
    return ErrorResponse(error=name, message=error.message, detail=error.hint, status_code=status)


def to_outside(error: AskbookError) -> ErrorResponse:
    """The same, as anybody may read it."""
    told = TOLD_OUTSIDE.get(type(error))
    problem = to_problem(error)
    return problem.model_copy(update={"message": told[0], "detail": told[1]}) if told else problem
