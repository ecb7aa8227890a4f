"""`askbook keys`: who may ask over HTTP, and of which books."""

from __future__ import annotations

from typing import Annotated

import typer

from askbook.cli.render import clean, err, out, print_json, show_time
from askbook.cli.running import run_with_store
from askbook.domain import Key, Role, Scope, to_internal_id
from askbook.shapes.readers import CreatedKey, KeyBody, KeyList
from askbook.wiring import Store

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")


@app.callback()
def keys() -> None:
    """Make, list and revoke the keys that callers over HTTP show."""


AsJson = Annotated[bool, typer.Option("--json", help="Print it as JSON.")]


@app.command()
def create(
    name: Annotated[str, typer.Option(help="Whose key it is, for you to recognise.")] = "reader",
    role: Annotated[
        Role, typer.Option(help="reader: asks and searches; admin: ingests and sees the gaps too.")
    ] = "reader",
    book: Annotated[
        list[str] | None, typer.Option(help="A book that it may read; may be given again. Default: all of its tenant.")
    ] = None,
    tenant: Annotated[
        str, typer.Option(help="Whose books; a tenant's book is ingested with --book TENANT/BOOK. Default: yours.")
    ] = "",
    origin: Annotated[
        list[str] | None,
        typer.Option(help="A site whose pages hold the key, as https://docs.example.org; may be given again."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a key. It is shown once: askbook keeps its hash alone."""
    scope = Scope(tenant, tuple(dict.fromkeys(book)) if book else None)

    async def make(store: Store) -> tuple[Key, str, list[str]]:
        made, text = await store.keys.create(name, role, scope, origin or ())
        there = {record.book_id for record in await store.ledger.load_books()}
        wanted = [to_internal_id(tenant, public_id) for public_id in scope.books or ()]
        return made, text, [book_id for book_id in wanted if book_id not in there]

    made, text, missing = run_with_store(make)
    for book_id in missing:
        err.print(f"There is no book {book_id} yet: askbook ingest FOLDER --book {book_id} makes it.")
    if as_json:
        return print_json(CreatedKey.from_key(made, key=text))
    # Alone on stdout, so that KEY=$(askbook keys create) is the key.
    err.print(f"{_describe(made)}. Keep this key now: it is not shown again.")
    out.print(text)


@app.command("list")
def list_keys(as_json: AsJson = False) -> None:
    """List the keys, the revoked ones too."""
    found = run_with_store(lambda store: store.keys.load_all())
    if as_json:
        return print_json(KeyList(keys=[KeyBody.from_key(key) for key in found]))
    if not found:
        out.print("No key yet: askbook keys create makes one.")
    for key in found:
        out.say(_describe(key), ("  revoked", "yellow") if key.revoked_at else "")
        used = f"last used {show_time(key.last_used_at)}" if key.last_used_at else "never used"
        out.say(f"  made {show_time(key.created_at)} · {used}", style="dim")


@app.command()
def revoke(
    key_id: Annotated[str, typer.Argument(help="The key's id, as askbook keys list shows it.")], as_json: AsJson = False
) -> None:
    """Take a key back, at once and for good."""
    revoked = run_with_store(lambda store: store.keys.revoke(key_id))
    if as_json:
        print_json(KeyBody.from_key(revoked))
    else:
        out.print(f"{_describe(revoked)} is revoked.")


def _describe(key: Key) -> str:
    books = "all books" if key.scope.books is None else ", ".join(key.scope.books)
    of = f" of {key.scope.tenant}" if key.scope.tenant else ""
    on = f", on {', '.join(key.origins)} only" if key.origins else ""
    return clean(f"{key.key_id} “{key.name}”: {key.role}, {books}{of}{on}")
