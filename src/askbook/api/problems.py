"""Error → name and status: one table."""

from __future__ import annotations

from askbook.api.schemas import ErrorResponse
from askbook.errors import (
    AskbookError,
    BookError,
    DataInUse,
    EmbedderUnavailable,
    IndexMismatch,
    IndexUnavailable,
    InputError,
    JobFailed,
    NotFound,
    Stopped,
    StorageError,
)

PROBLEMS: dict[type[AskbookError], tuple[str, int]] = {
    InputError: ("validation_error", 400),
    BookError: ("validation_error", 400),
    NotFound: ("not_found", 404),
    DataInUse: ("service_unavailable", 503),
    StorageError: ("service_unavailable", 503),
    IndexUnavailable: ("service_unavailable", 503),
    EmbedderUnavailable: ("service_unavailable", 503),
    IndexMismatch: ("retrieval_error", 500),
    JobFailed: ("unknown_error", 500),
    Stopped: ("unknown_error", 500),
}


def to_problem(error: AskbookError) -> ErrorResponse:
    name, status = PROBLEMS[type(error)]
    return ErrorResponse(error=name, message=error.message, detail=error.hint, status_code=status)
