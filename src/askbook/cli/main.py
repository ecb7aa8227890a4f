"""`askbook`: the commands, and what happens when one fails."""

from __future__ import annotations

import logging
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from askbook import __version__
from askbook.errors import AskbookError

COMMANDS = {
    "demo": (
        "demo:demo",
        "Ingest the bundled book on robotics (or a folder of your own), ask it, and serve the page where readers ask.",
    ),
    "init": ("book:init", "Write an askbook.toml that says what askbook makes of a folder, for you to change."),
    "ingest": (
        "book:ingest",
        "Bring the index into step with a folder. Stopped halfway, it goes on when run again.",
    ),
    "ask": (
        "converse:ask",
        "Ask a book a question; get an answer with its sources, or hear that the book does not say.",
    ),
    "chat": ("converse:chat", "Talk with a book: follow-ups, sources, a thread that is kept."),
    "serve": (
        "serve:serve",
        "Serve the books over HTTP: the page where readers ask, and the API, of which /docs tells.",
    ),
    "mcp": (
        "mcp:mcp",
        "Be an MCP server on stdin and stdout: search_book, ask_book, read_lesson, list_books for an agent or an editor.",
    ),
    "worker": (
        "worker:worker",
        "Take part in every ingestion, with other workers on any machine, until it is stopped.",
    ),
    "search": ("find:search", "Find the passages of a book that fit your words."),
    "explain": (
        "judge:explain",
        "Show why a question would be answered or refused: the signals, what decided, the nearest sections.",
    ),
    "calibrate": (
        "judge:calibrate",
        "Fit the confidence to your own book: it is asked about its own headings and sentences, with and without them.",
    ),
    "threads": ("threads:threads", "List the conversations, or show one; name it, or delete it."),
    "gaps": (
        "gaps:gaps",
        "Show the questions that were refused or got a thumb down, grouped, with the section that should have answered.",
    ),
    "keys": ("keys:app", "Make, list and revoke the keys that callers over HTTP show."),
    "jobs": ("care:jobs", "List the ingestion jobs, or show one."),
    "verify": (
        "care:verify",
        "Prove that folder, ledger and index agree, and say what differs. Exit 1 when something does.",
    ),
    "doctor": (
        "care:doctor",
        "Say what is configured, what works, and what to do. Exit 1 when something is broken.",
    ),
    "backup": (
        "backup:backup",
        "Save everything in one file: books, vectors, threads, feedback, calibrations, jobs, and the hashes of keys.",
    ),
    "restore": (
        "backup:restore",
        "Fill an empty data folder, or an empty database and collection, from a backup. Nothing is embedded.",
    ),
    "move": (
        "backup:move",
        "Carry everything to other engines, such as from this machine onto servers. Nothing is embedded.",
    ),
    "eval": (
        "measure:evaluate",
        "Ask known questions, and measure how well the book answers them: a table, a report, a check for CI.",
    ),
}
"""Where each command is, and the first line of its help: the list of them is shown without importing any."""


def load_command(name: str) -> TyperCommand | TyperGroup:
    import stamina

    where, line = COMMANDS[name]
    module, _, attribute = where.partition(":")
    found = getattr(import_module(f"askbook.cli.{module}"), attribute)
    # On stdout it would stand before the JSON.
    stamina.instrumentation.set_on_retry_hooks([stamina.instrumentation.LoggingOnRetryHook])
    holder = typer.Typer(rich_markup_mode="rich", pretty_exceptions_enable=False, add_completion=False)
    if isinstance(found, typer.Typer):
        holder.add_typer(found, name=name, help=line)
    else:
        holder.command(name)(found)
    (command,) = typer.main.get_group(holder).commands.values()
    assert isinstance(command, TyperCommand | TyperGroup)
    return command


class Commands(TyperGroup):
    """Imports the command that is called, and no other."""

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        self.commands.update({name: TyperCommand(name, help=line) for name, (_, line) in COMMANDS.items()})

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] in COMMANDS:
            self.commands[args[0]] = load_command(args[0])
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=Commands,
    name="askbook",
    help="Ask a book a question; get an answer with its sources, or an honest “the book does not say”.\n\n"
    "Start with [bold]askbook demo[/], or with your own folder of Markdown: [bold]askbook ingest FOLDER[/], "
    'then [bold]askbook ask "your question"[/], or [bold]askbook chat[/].',
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,
)


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
    try:
        app()
    except AskbookError as error:
        from askbook.cli.render import say_error

        say_error(error, as_json="--json" in sys.argv[1:])
        sys.exit(1)
    except BrokenPipeError:
        # The reader of our output has left, as `| head` does.
        sys.stderr.close()
        sys.exit(1)
