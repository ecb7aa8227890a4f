"""What callers are told when something fails. One table: error → name and status."""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic import BaseModel, Field

from askbook import errors
from askbook.errors import AskbookError

PROBLEMS: dict[type[AskbookError], tuple[str, int]] = {
    errors.InputError: ("validation_error", 400),
    errors.BookError: ("validation_error", 400),
    errors.NotFound: ("not_found", 404),
    errors.NotAllowed: ("authentication_error", 401),
    errors.TooManyRequests: ("rate_limited", 429),
    errors.TooLarge: ("payload_too_large", 413),
    errors.HeadersTooLarge: ("payload_too_large", 431),
    errors.TooSlow: ("timeout", 408),
    errors.DataInUse: ("service_unavailable", 503),
    errors.StorageError: ("service_unavailable", 503),
    errors.IndexUnavailable: ("service_unavailable", 503),
    errors.EmbedderUnavailable: ("service_unavailable", 503),
    errors.RerankerUnavailable: ("service_unavailable", 503),
    errors.ReaderUnavailable: ("service_unavailable", 503),
    errors.ModelUnavailable: ("agent_error", 503),
    errors.BrokenOff: ("agent_error", 503),
    errors.DeadlinePassed: ("timeout", 503),
    errors.ShuttingDown: ("service_unavailable", 503),
    errors.IndexMismatch: ("retrieval_error", 500),
    errors.JobFailed: ("unknown_error", 500),
    errors.Stopped: ("unknown_error", 500),
}

TOLD_OUTSIDE: dict[type[AskbookError], tuple[str, str]] = {
    errors.StorageError: ("the database does not answer", "Try again in a moment."),
    errors.DataInUse: ("the data is in use by another process", "Try again in a moment."),
    errors.IndexUnavailable: ("the vector index does not answer", "Try again in a moment."),
    errors.IndexMismatch: (
        "the index was made by another embedder",
        "Whoever runs the server must ingest the books anew.",
    ),
    errors.BookError: ("the book's folder cannot be read", "The log of the server says why."),
}
"""The messages of these errors are for the server's owner, because they may name folders and addresses."""


class ErrorResponse(BaseModel):
    error: str
    message: str
    detail: str | None = None
    status_code: int = Field(ge=400, le=599)
    request_id: str | None = None
    timestamp: datetime = Field(default_factory=lambda: datetime.now(UTC))

    def to_sentence(self) -> str:
        return ". ".join(said.rstrip(".") for said in (self.message, self.detail) if said) + "."


def to_problem(error: AskbookError) -> ErrorResponse:
    name, status = PROBLEMS[type(error)]
    return ErrorResponse(error=name, message=error.message, detail=error.hint, status_code=status)


def to_outside(error: AskbookError) -> ErrorResponse:
    """The same for any caller, without the server's folders and addresses."""
    told = TOLD_OUTSIDE.get(type(error))
    problem = to_problem(error)
    return problem.model_copy(update={"message": told[0], "detail": told[1]}) if told else problem
