"""`askbook threads`: the conversations that are kept."""

from __future__ import annotations

from typing import Annotated

import typer

from askbook.cli.render import clean, out, print_json, show_time
from askbook.cli.running import run_with_store
from askbook.domain import Message, Thread, to_mark
from askbook.shapes.answers import ConversationThread, ThreadList, ThreadOverview
from askbook.wiring import Store

SHORT_ID = 8


def threads(
    thread: Annotated[str | None, typer.Argument(help="One thread, whole; the beginning of its id will do.")] = None,
    book: Annotated[str | None, typer.Option(help="Only threads about this book.")] = None,
    limit: Annotated[int, typer.Option(help="How many, the latest first.", min=1, max=1000)] = 50,
    delete: Annotated[bool, typer.Option("--delete", help="Delete the thread and its messages, for good.")] = False,
    rename: Annotated[str | None, typer.Option(help="Give the thread a name, in place of its first question.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the ConversationThread as JSON.")] = False,
) -> None:
    """List the conversations, or show one; name it, or delete it."""
    if thread is None and (delete or rename is not None):
        raise typer.BadParameter("say which thread: askbook threads ID --delete, or --rename NAME")
    if delete and rename is not None:
        raise typer.BadParameter("--delete and --rename do not go together")
    if thread is None:
        _list_threads(book, limit, as_json)
    elif delete:
        _delete_thread(thread, as_json)
    else:
        _show_thread(thread, rename, as_json)


def _list_threads(book: str | None, limit: int, as_json: bool) -> None:
    found = run_with_store(lambda store: store.threads.load_all(book_id=book, limit=limit))
    if as_json:
        return print_json(ThreadList(threads=[ThreadOverview.of(thread) for thread in found]))
    if not found:
        out.print('No conversation yet: askbook ask "your question" starts one.')
    for thread in found:
        # Two lines, so that the whole id and the whole title fit into a narrow terminal.
        archived = ("  archived", "yellow") if thread.archived_at else ""
        out.say((thread.thread_id[:SHORT_ID], "bold cyan"), f"  {thread.title}", archived)
        turns = f"{thread.turn_count} {'turn' if thread.turn_count == 1 else 'turns'}"
        facts = (thread.thread_id, thread.book_id, turns, show_time(thread.updated_at))
        out.say(f"  {' · '.join(facts)}", style="dim")


def _show_thread(beginning: str, rename: str | None, as_json: bool) -> None:
    async def load(store: Store) -> tuple[Thread, tuple[Message, ...]]:
        thread_id = await store.threads.find_id(beginning)
        if rename is not None:
            await store.threads.change(thread_id, title=rename)
        return await store.threads.load(thread_id), await store.threads.load_history(thread_id)

    found, history = run_with_store(load)
    if as_json:
        print_json(ConversationThread.from_history(found, history))
    elif rename is not None:
        out.print(f"{found.thread_id} is now called: {clean(found.title)}")
    else:
        _print_head(found)
        for message in history:
            _print_message(message)


def _print_head(thread: Thread) -> None:
    out.say(thread.title, style="bold")
    facts = (
        thread.thread_id,
        f"book {thread.book_id}",
        f"{thread.turn_count} turns",
        f"{show_time(thread.created_at)} to {show_time(thread.updated_at)}",
        f"{thread.archived_messages} older messages archived" if thread.archived_messages else "",
        "archived" if thread.archived_at else "",
        f"{thread.tokens_used} tokens" if thread.tokens_used else "",
    )
    out.say(" · ".join(filter(None, facts)), style="dim")
    if thread.topic_summary:
        out.say(f"Topics: {thread.topic_summary}", style="dim")


def _print_message(message: Message) -> None:
    out.print()
    out.say(("You: ", "bold green") if message.role == "user" else ("Agent: ", "bold cyan"), message.content)
    for number, cited in enumerate(message.cited, start=1):
        out.say(f"{to_mark(number)} {cited.title}  {cited.url}".rstrip(), style="dim")


def _delete_thread(beginning: str, as_json: bool) -> None:
    async def remove(store: Store) -> Thread:
        found = await store.threads.load(await store.threads.find_id(beginning))
        await store.threads.delete(found.thread_id)
        return found

    gone = run_with_store(remove)
    if as_json:
        print_json({"thread_id": gone.thread_id, "deleted": True})
    else:
        out.print(f"{gone.thread_id} is deleted: {clean(gone.title)} ({gone.turn_count} turns)")
