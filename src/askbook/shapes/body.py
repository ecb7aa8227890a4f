"""How bodies are made from the values of `domain`, and how the addresses in them are completed.

A book without a base_url is shown by the server alone. Only the request knows the server's address, so addresses are
completed when a body is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields
from typing import Annotated, Any, ClassVar, Self, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, computed_field, create_model

from askbook.docstrings import read_field_docs


def describe(schema: dict[str, Any], body: type[BaseModel]) -> None:
    """Fields that say nothing of themselves have their docstrings, or those of the value that the body is made from."""
    for owner in (*body.__mro__, getattr(body, "made_from", None)):
        if owner is not None and owner.__module__.startswith("askbook."):
            for name, said in read_field_docs(owner).items():
                schema.get("properties", {}).get(name, {}).setdefault("description", said)


class Body(BaseModel):
    # A command that prints one body does not build the others.
    model_config = ConfigDict(from_attributes=True, validate_by_name=True, defer_build=True, json_schema_extra=describe)
    made_from: ClassVar[type | None] = None

    @classmethod
    def of(cls, *values: object, **named: Any) -> Self:
        """A body with the attributes of the values. The first value that has one gives it; what is named goes first."""
        wanted = {name: str(field.validation_alias or name) for name, field in cls.model_fields.items()}
        found = {
            name: getattr(value, attribute)
            for value in reversed(values)
            for name, attribute in wanted.items()
            if name not in named and hasattr(value, attribute)
        }
        return cls(**found, **named)


def taken_from(attribute: str, description: str | None = None) -> Any:
    """A field that has another name in the value that the body is made of."""
    return Field(validation_alias=attribute, description=description)


def example(**named: Any) -> ConfigDict:
    """A body as the API's page shows it."""

    def show(schema: dict[str, Any], body: type[BaseModel]) -> None:
        describe(schema, body)
        schema["examples"] = [named]

    return ConfigDict(json_schema_extra=show)


def body_of(value: type, *left_out: str) -> type[Body]:
    """A body with the fields of a value of `domain`: their names and types, and what the API's page says of them."""
    hints = get_type_hints(value)
    named: dict[str, Any] = {kept.name: (hints[kept.name], ...) for kept in fields(value) if kept.name not in left_out}
    body = create_model(f"{value.__name__}Body", __base__=Body, **named)
    body.made_from = value
    return body


# --- addresses ------------------------------------------------------------------------------------

SELECTED = "a selected text is on no page"
NOWHERE = "no server shows the book here, and it names no base_url: set one in its askbook.toml, or ASKBOOK_PUBLIC_URL"

_home: ContextVar[str | None] = ContextVar("home", default=None)


@contextmanager
def at_home(address: str | None) -> Iterator[None]:
    """Addresses within this block begin with the server's."""
    token = _home.set(address.rstrip("/") if address else None)
    try:
        yield
    finally:
        _home.reset(token)


def to_address(url: str) -> str | None:
    if not url.startswith("/"):
        return url or None
    home = _home.get()
    return home + url if home else None


def from_address(prefix: str) -> str:
    """The prefix as the index has it, without the server's address, which `to_address` adds."""
    home = _home.get()
    if home is None or not f"{prefix}/".startswith(f"{home}/"):
        return prefix
    return prefix.removeprefix(home) or "/"


Address = Annotated[
    str,
    PlainSerializer(to_address, return_type=str | None, when_used="json"),
    Field(description="Absolute; null where there is none, and `no_url` says why."),
]


class Addressed(Body):
    url: Address

    @computed_field(description="Why there is no `url`; null where there is one.")
    @property
    def no_url(self) -> str | None:
        if to_address(self.url) is not None:
            return None
        return NOWHERE if self.url else SELECTED
