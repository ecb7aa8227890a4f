"""Everything that askbook raises on purpose.

AskbookError                 says what happened; `hint` says what to do next
├── BookError                the folder or its askbook.toml cannot be used
├── InputError               a question, filter or setting out of its limits
├── NotFound                 no such book, lesson, chunk or job
├── DataInUse                another process owns the data folder
├── StorageError             the disk or the database refused
├── IndexUnavailable         the vector index does not answer
├── IndexMismatch            the index was built by another embedder
├── EmbedderUnavailable      the embedding service or its weights failed
├── JobFailed                an ingestion job ended in an error
└── Stopped                  somebody pressed Ctrl+C
"""


class AskbookError(Exception):
    retryable = False

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class BookError(AskbookError): ...


class InputError(AskbookError): ...


class NotFound(AskbookError): ...


class DataInUse(AskbookError):
    retryable = True


class StorageError(AskbookError):
    retryable = True


class IndexUnavailable(AskbookError):
    retryable = True


class IndexMismatch(AskbookError): ...


class EmbedderUnavailable(AskbookError):
    retryable = True


class JobFailed(AskbookError): ...


class Stopped(AskbookError):
    retryable = True
