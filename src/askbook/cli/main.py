"""`askbook`: the commands, and what happens when one fails."""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import stamina
import typer

from askbook import __version__
from askbook.cli import (
    backup,
    book,
    care,
    converse,
    demo,
    find,
    gaps,
    judge,
    keys,
    mcp,
    measure,
    serve,
    threads,
    worker,
)
from askbook.cli.render import say_error
from askbook.errors import AskbookError

app = typer.Typer(
    name="askbook",
    help="Ask a book a question; get an answer with its sources, or an honest “the book does not say”.\n\n"
    "Start with [bold]askbook demo[/], or with your own folder of Markdown: [bold]askbook ingest FOLDER[/], "
    'then [bold]askbook ask "your question"[/], or [bold]askbook chat[/].',
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command()(demo.demo)
app.command()(book.init)
app.command()(book.ingest)
app.command()(converse.ask)
app.command()(converse.chat)
app.command()(serve.serve)
app.command()(mcp.mcp)
app.command()(worker.worker)
app.command()(find.search)
app.command()(judge.explain)
app.command()(judge.calibrate)
app.command()(threads.threads)
app.command()(gaps.gaps)
app.add_typer(keys.app, name="keys", help="Make, list and revoke the keys that callers over HTTP show.")
app.command()(care.jobs)
app.command()(care.verify)
app.command()(care.doctor)
app.command()(backup.backup)
app.command()(backup.restore)
app.command()(backup.move)
app.command("eval")(measure.evaluate)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"askbook {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    pass


def run() -> None:
    """Exit 0: done; 1: it could not be done, and why was said; 2: the command line was wrong."""
    # What a log would tell, the terminal says in its own words.
    for name in ("askbook", "stamina"):
        logging.getLogger(name).addHandler(logging.NullHandler())
    # On stdout it would stand before the JSON.
    stamina.instrumentation.set_on_retry_hooks([stamina.instrumentation.LoggingOnRetryHook])
    try:
        app()
    except AskbookError as error:
        say_error(error, as_json="--json" in sys.argv[1:])
        sys.exit(1)
    except BrokenPipeError:
        # The reader of our output has left, as `| head` does.
        sys.stderr.close()
        sys.exit(1)
