"""Everything that askbook raises on purpose.

AskbookError                 says what happened; `hint` says what to do next
├── BookError                the folder or its askbook.toml cannot be used
├── InputError               a question, filter or setting out of its limits
├── NotFound                 no such book, lesson, chunk or job
├── NotAllowed               no key, a wrong one, or one that may not do this
├── TooManyRequests          a key has used up its minute
├── TooLarge                 a body of too many bytes
│   └── HeadersTooLarge      … or headers, or an address
├── TooSlow                  a request that does not come to its end
├── DataInUse                another process owns the data folder
├── StorageError             the disk or the database refused
├── IndexUnavailable         the vector index does not answer
├── IndexMismatch            the index was built by another embedder
├── EmbedderUnavailable      the embedding service or its weights failed
├── RerankerUnavailable      the reranking service or its weights failed
├── ReaderUnavailable        the reading model's weights failed
├── ModelUnavailable         the model's service failed, or refused the key
│   └── BrokenOff            … when some of the answer was written
├── DeadlinePassed           an answer took longer than it may
├── ShuttingDown             the server is about to end
├── JobFailed                an ingestion job ended in an error
└── Stopped                  somebody pressed Ctrl+C
"""

CODES = {
    "E001": "the configuration is wrong",
    "E002": "there is no collection: nothing was ingested yet, or no book of that name",
    "E003": "Qdrant does not answer",
    "E004": "OpenAI, or the compatible service, does not answer or refuses",
    "E005": "the question is empty",
    "E006": "Cohere, or the compatible service, does not answer or refuses",
}
"""Seed 002's, which the terminal shows."""


class AskbookError(Exception):
    retryable = False
    code: str | None = None

    def __init__(self, message: str, hint: str | None = None, *, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code or self.code


class BookError(AskbookError): ...


class InputError(AskbookError): ...


class NotFound(AskbookError): ...


class NotAllowed(AskbookError): ...


class TooManyRequests(AskbookError):
    retryable = True


class TooLarge(AskbookError): ...


class HeadersTooLarge(TooLarge): ...


class TooSlow(AskbookError):
    retryable = True


class DataInUse(AskbookError):
    retryable = True


class StorageError(AskbookError):
    retryable = True


class IndexUnavailable(AskbookError):
    retryable = True
    code = "E003"


class IndexMismatch(AskbookError): ...


class EmbedderUnavailable(AskbookError):
    retryable = True


class RerankerUnavailable(AskbookError):
    retryable = True


class ReaderUnavailable(AskbookError):
    retryable = True


class ModelUnavailable(AskbookError):
    retryable = True
    code = "E004"


class BrokenOff(ModelUnavailable): ...


class DeadlinePassed(AskbookError):
    retryable = True


class ShuttingDown(AskbookError):
    retryable = True


class JobFailed(AskbookError): ...


class Stopped(AskbookError):
    retryable = True
