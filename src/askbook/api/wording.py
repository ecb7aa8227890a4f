"""What is wrong with a request, in words that a person understands: which field, and which limit."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from askbook.api.requests import BOOK_ID, NOT_BLANK, UUID, UUID4

SHOWN = 5
NAME_MAX = 100
KEY = "[key]"
"""Pydantic's step to what is wrong with a name itself, after the name."""
Context = Mapping[str, Any]

PATTERNS = {
    UUID4: "must be a UUID4, as 550e8400-e29b-41d4-a716-446655440000",
    UUID: "must be a UUID, as 6ba7b810-9dad-11d1-80b4-00c04fd430c8",
    BOOK_ID: "must be a book's id: letters, digits, `-`, `_` and `.`, at most 64",
    NOT_BLANK: "must not be blank",
}

WORDS: dict[str, Callable[[Context], str]] = {
    "missing": lambda _: "is required",
    "extra_forbidden": lambda _: "is not known here",
    "blank": lambda _: "cannot be empty",
    "string_too_short": lambda ctx: (
        "cannot be empty" if ctx["min_length"] == 1 else f"must have at least {ctx['min_length']} characters"
    ),
    "string_too_long": lambda ctx: f"must have at most {ctx['max_length']} characters",
    "string_type": lambda _: "must be text",
    "string_unicode": lambda _: "must be valid text",
    "string_pattern_mismatch": lambda ctx: PATTERNS.get(ctx["pattern"], f"must match {ctx['pattern']}"),
    "int_type": lambda _: "must be a whole number",
    "int_parsing": lambda _: "must be a whole number",
    "int_parsing_size": lambda _: "is too large",
    "int_from_float": lambda _: "must be a whole number",
    "float_type": lambda _: "must be a number",
    "float_parsing": lambda _: "must be a number",
    "finite_number": lambda _: "must be a finite number",
    "bool_type": lambda _: "must be true or false",
    "bool_parsing": lambda _: "must be true or false",
    "greater_than_equal": lambda ctx: f"must be {_number(ctx['ge'])} or more",
    "less_than_equal": lambda ctx: f"must be {_number(ctx['le'])} or less",
    "literal_error": lambda ctx: f"must be {ctx['expected']}",
    "list_type": lambda _: "must be a list",
    "too_long": lambda ctx: f"must have at most {ctx['max_length']} entries",
    "too_short": lambda ctx: f"must have at least {ctx['min_length']} entries",
    "dict_type": lambda _: "must be an object",
    "model_type": lambda _: "must be an object",
    "model_attributes_type": lambda _: "must be a JSON object, sent as Content-Type: application/json",
    "json_invalid": lambda ctx: f"is not JSON: {ctx.get('error', 'it cannot be read')}",
}


def _number(limit: float) -> str:
    return f"{limit:,.0f}" if limit == int(limit) else f"{limit:g}"


def describe(errors: Sequence[Mapping[str, Any]]) -> tuple[str, str | None]:
    """What is wrong first, and all that is wrong where there is more."""
    said = list(dict.fromkeys(_describe_one(error) for error in errors))
    return said[0], "; ".join(said[:SHOWN]) if len(said) > 1 else None


def _describe_one(error: Mapping[str, Any]) -> str:
    words = WORDS.get(error["type"])
    what = words(error.get("ctx") or {}) if words else str(error["msg"])
    return f"{_name(error)} {what}"


def _name(error: Mapping[str, Any]) -> str:
    """`reader.hardware_tier`; what the caller wrote in it is shown as text, never as it is."""
    where, *steps = error["loc"]
    if error["type"] == "json_invalid" or not steps:
        return f"the {where}"
    if len(steps) > 2 and steps[-1] == KEY:
        return f"a name in {_join(steps[:-2])}"
    return _join(steps) or "a field"


def _join(steps: Sequence[object]) -> str:
    return printable(".".join(str(step) for step in steps if not _is_branch(step)))[:NAME_MAX]


def _is_branch(step: object) -> bool:
    """Pydantic names the branch of a union that it tried; nobody wrote that."""
    return isinstance(step, str) and (step in ("str", "int") or step.startswith(("constrained-", "function-")))


def printable(text: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f\ud800-\udfff]", "\ufffd", text)
