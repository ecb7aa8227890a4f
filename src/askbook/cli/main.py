"""`askbook`: the commands, and what happens when one fails."""

from __future__ import annotations

import gc
import logging
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from askbook import __version__
from askbook.errors import AskbookError

COMMANDS = {
    "demo": "demo:demo",
    "init": "book:init",
    "ingest": "book:ingest",
    "ask": "converse:ask",
    "chat": "converse:chat",
    "serve": "serve:serve",
    "mcp": "mcp:mcp",
    "worker": "worker:worker",
    "search": "find:search",
    "explain": "judge:explain",
    "calibrate": "judge:calibrate",
    "threads": "threads:threads",
    "gaps": "gaps:gaps",
    "keys": "keys:keys",
    "jobs": "care:jobs",
    "verify": "care:verify",
    "doctor": "care:doctor",
    "backup": "backup:backup",
    "restore": "backup:restore",
    "move": "backup:move",
    "eval": "measure:evaluate",
}
"""Where each command is, in the order of the help."""


def read_line(name: str) -> str:
    """The first line of a command's help, read from its file: the list is shown without importing any."""
    module, _, function = COMMANDS[name].partition(":")
    source = Path(__file__).with_name(f"{module}.py").read_text(encoding="utf-8")
    found = re.search(rf'^def {function}\(.*?\) -> None:\n    """(.+?)(?:\n|""")', source, re.DOTALL | re.MULTILINE)
    assert found, f"{name} says nothing of itself"
    return found[1]


def load_command(name: str) -> TyperCommand | TyperGroup:
    import stamina

    module, _, function = COMMANDS[name].partition(":")
    parts = vars(import_module(f"askbook.cli.{module}"))
    found = parts.get("app") or parts[function]
    gc.freeze()
    gc.enable()
    # The default hook would print to stdout, before the JSON.
    stamina.instrumentation.set_on_retry_hooks([stamina.instrumentation.LoggingOnRetryHook])
    holder = typer.Typer(rich_markup_mode="rich", pretty_exceptions_enable=False, add_completion=False)
    if isinstance(found, typer.Typer):
        holder.add_typer(found, name=name)
    else:
        holder.command(name)(found)
    (command,) = typer.main.get_group(holder).commands.values()
    assert isinstance(command, TyperCommand | TyperGroup)
    return command


class Commands(TyperGroup):
    """Imports the command that is called, and no other."""

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        self.commands.update({name: TyperCommand(name) for name in COMMANDS})

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        if command is not None and command.help is None:
            command.help = read_line(cmd_name)
        return command

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
    # Commands print what a log would tell.
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
