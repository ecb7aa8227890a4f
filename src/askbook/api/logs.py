"""The server's log: one line for each event, with the request's id and without secrets."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

import structlog
from pydantic import SecretStr
from structlog.typing import EventDict, Processor

from askbook.settings import Settings
from askbook.store.keys import KEY

QUIET = ("httpx", "httpx2", "httpcore", "httpcore2", "openai", "asyncio", "aiosqlite", "alembic")
"""They log at length what askbook logs in one line."""


def configure_logs(settings: Settings) -> None:
    """For the whole process; a command that serves calls it once."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(build_formatter(settings))
    logging.basicConfig(handlers=[handler], level=settings.askbook_log_level.upper(), force=True)
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


def build_formatter(settings: Settings) -> logging.Formatter:
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _drop_colour,
    ]
    json = settings.askbook_log_format == "json"
    render: list[Processor] = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(ensure_ascii=True)]
        if json
        else [
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback)
        ]
    )
    remove_meta = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    return Masked(find_secrets(settings), foreign_pre_chain=shared, processors=[remove_meta, *render])


class Masked(structlog.stdlib.ProcessorFormatter):
    """Masks every secret in a finished line, whichever library wrote it."""

    def __init__(self, secrets: Iterable[str], **given: Any) -> None:
        super().__init__(**given)
        self._secrets = sorted(secrets, key=len, reverse=True)

    def format(self, record: logging.LogRecord) -> str:
        line = KEY.sub("***", super().format(record))
        for secret in self._secrets:
            line = line.replace(secret, "***")
        return line


def find_secrets(settings: Settings) -> set[str]:
    values = (getattr(settings, name) for name in type(settings).model_fields)
    secrets = {value.get_secret_value() for value in values if isinstance(value, SecretStr)}
    passwords = {urlsplit(secret).password or "" for secret in secrets if "://" in secret}
    return {secret for secret in secrets | passwords if secret}


def _drop_colour(_logger: object, _name: str, event: EventDict) -> EventDict:
    """uvicorn adds each message a second time, coloured for terminals."""
    event.pop("color_message", None)
    return event
