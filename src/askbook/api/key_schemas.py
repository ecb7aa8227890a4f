"""The bodies of `/keys`, and what `askbook keys --json` prints."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field

from askbook.api.requests import BookId, RequestBody
from askbook.domain import Key, Role, Scope
from askbook.store.keys import NAME_MAX

LIST_MAX = 50
KEY_EXAMPLE: dict[str, Any] = {
    "key_id": "5f1b0c7c0e5b",
    "name": "docs site",
    "role": "reader",
    "tenant": "",
    "books": ["robotics"],
    "origins": ["https://docs.example.org"],
    "created_at": "2026-11-16T09:30:00Z",
    "revoked_at": None,
    "last_used_at": None,
}


class KeyRequest(RequestBody):
    """A key to be made, for the tenant of the key that asks."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"name": "docs site", "books": ["robotics"], "origins": ["https://docs.example.org"]}]
        }
    )

    name: str = Field(min_length=1, max_length=NAME_MAX, description="Whose key it is.")
    role: Role = Field(default="reader", description="reader: asks and searches; admin: ingests and manages keys too.")
    books: list[BookId] | None = Field(
        default=None, min_length=1, max_length=LIST_MAX, description="The books that it may read; null: all."
    )
    origins: list[str] = Field(
        default_factory=list[str],
        max_length=LIST_MAX,
        description="The sites whose pages hold it, for all to read: it works on them alone.",
    )

    def to_scope(self, tenant: str) -> Scope:
        return Scope(tenant, tuple(dict.fromkeys(self.books)) if self.books else None)


class KeyBody(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [KEY_EXAMPLE]})

    key_id: str
    name: str
    role: Role
    tenant: str
    books: list[str] | None
    origins: list[str] = Field(description="Empty: a secret of its bearer, good everywhere.")
    created_at: datetime
    revoked_at: datetime | None
    last_used_at: datetime | None

    @classmethod
    def from_key(cls, made: Key, /, **more: Any) -> Self:
        return cls(
            key_id=made.key_id,
            name=made.name,
            role=made.role,
            tenant=made.scope.tenant,
            books=None if made.scope.books is None else list(made.scope.books),
            origins=list(made.origins),
            created_at=made.created_at,
            revoked_at=made.revoked_at,
            last_used_at=made.last_used_at,
            **more,
        )


class CreatedKey(KeyBody):
    model_config = ConfigDict(json_schema_extra={"examples": [{**KEY_EXAMPLE, "key": "askbook_5f1b0c7c0e5b_…"}]})

    key: str = Field(description="Shown this once.")


class KeyList(BaseModel):
    keys: list[KeyBody] = Field(description="The oldest first, the revoked ones too.")
