"""What a field may hold, as the contracts say it: each a question to put to a value."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

Kind = Callable[[Any], bool]


def any_text(value: Any) -> bool:
    return isinstance(value, str)


def text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def flag(value: Any) -> bool:
    return isinstance(value, bool)


def whole(value: Any) -> bool:
    """A whole number that is not negative."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def counted(value: Any) -> bool:
    """From one."""
    return whole(value) and value >= 1


def amount(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def share(value: Any) -> bool:
    return amount(value) and value <= 1


def nothing(value: Any) -> bool:
    return value is None


def sha256(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[0-9a-f]{64}", value) is not None


def any_uuid(value: Any) -> bool:
    return isinstance(value, str) and str(uuid.UUID(value)) == value


def uuid4(value: Any) -> bool:
    return any_uuid(value) and uuid.UUID(value).version == 4


def address(value: Any) -> bool:
    return isinstance(value, str) and re.match(r"https://[a-z.]+/\S", value) is not None


def utc_time(value: Any) -> bool:
    """ISO 8601, with a zone, of today."""
    time = datetime.fromisoformat(value)
    return time.utcoffset() == timedelta(0) and abs(datetime.now(UTC) - time) < timedelta(days=1)


def one_of(*values: Any) -> Kind:
    return lambda value: value in values and type(value) is type(values[0])


def maybe(kind: Kind) -> Kind:
    return lambda value: value is None or kind(value)


def many(kind: Kind) -> Kind:
    """A list that is not empty."""
    return lambda value: isinstance(value, list) and bool(value) and all(map(kind, value))


def table(value: Any) -> bool:
    return isinstance(value, dict)
