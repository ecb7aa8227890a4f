"""`askbook ask` and `askbook chat`: a question, the answer as it comes, its sources."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing
from dataclasses import replace
from typing import Annotated

import typer
from rich.live import Live

from askbook.answer.ask import get_reply
from askbook.answer.cleaning import clean
from askbook.cli.find import tell_waiting
from askbook.cli.formulas import show_formulas
from askbook.cli.render import err, out, print_json, say_error, show_reply, show_step
from askbook.cli.running import run_with_book
from askbook.domain import TIER_MAX, AnswerEvent, BookRecord, Delta, Filters, Level, Question, Reader
from askbook.errors import AskbookError, InputError, Stopped
from askbook.settings import Settings
from askbook.wiring import Askbook

UUID_LENGTH = 36
LEAVE = ("quit", "exit", "q")
HELP = "Ask anything about the book. /new starts a new thread, /help says this; quit, exit, q or Ctrl+C leaves."

Book = Annotated[str | None, typer.Option(help="Book to ask; needed when there are several.")]
ThreadId = Annotated[str | None, typer.Option("--thread", help="Go on with this thread.")]
TopK = Annotated[int | None, typer.Option("--top-k", "-k", help="Passages to answer from, 1 to 10.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Say on stderr what is searched, found and tried.")]
Tier = Annotated[
    int | None, typer.Option(help="Nothing that needs a higher hardware tier, 1 to 4.", min=1, max=TIER_MAX)
]
PreferredLevel = Annotated[Level | None, typer.Option(help="Prefer passages of this proficiency level.")]


def ask(
    text: Annotated[str, typer.Argument(help="Your question: 1 to 1000 characters.")],
    book: Book = None,
    thread: ThreadId = None,
    top_k: TopK = None,
    threshold: Annotated[float | None, typer.Option(help="Leave out passages of a lower relevance, 0 to 1.")] = None,
    selected: Annotated[
        str | None, typer.Option(help="Answer from this text alone, at most 5000 characters; - reads it from stdin.")
    ] = None,
    tier: Tier = None,
    level: PreferredLevel = None,
    verbose: Verbose = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the AgentResponse as JSON.")] = False,
) -> None:
    """Ask a book a question; get an answer with its sources, or hear that the book does not say."""

    async def answer(askbook: Askbook, record: BookRecord) -> None:
        question = await _begin(askbook, record, text, thread, top_k, tier, level, as_json)
        if threshold is not None:
            question = replace(question, threshold=threshold)
        question = replace(question, selected_text=sys.stdin.read() if selected == "-" else selected)
        await take_turn(askbook, question, verbose, as_json, before="")

    run_with_book(book, answer)


def chat(
    query: Annotated[str | None, typer.Option("--query", "-q", help="Ask this one question and leave.")] = None,
    book: Book = None,
    thread: ThreadId = None,
    top_k: TopK = None,
    tier: Tier = None,
    level: PreferredLevel = None,
    verbose: Verbose = False,
    as_json: Annotated[bool, typer.Option("--json", help="With -q: print the AgentResponse as JSON.")] = False,
) -> None:
    """Talk with a book: follow-ups, sources, a thread that is kept."""
    if as_json and query is None:
        raise InputError("--json prints one answer, and a conversation has many", 'Ask with -q "your question".')

    async def converse(askbook: Askbook, record: BookRecord) -> None:
        question = await _begin(askbook, record, query or "", thread, top_k, tier, level, as_json)
        if query is not None:
            await take_turn(askbook, question, verbose, as_json)
            return
        out.say(f"{record.title}. {HELP}")
        await talk(askbook, question, open_prompt(askbook.settings), verbose)

    try:
        run_with_book(book, converse)
    except Stopped:
        raise typer.Exit(0) from None


async def _begin(
    askbook: Askbook,
    record: BookRecord,
    text: str,
    thread: str | None,
    top_k: int | None,
    tier: int | None,
    level: str | None,
    as_json: bool,
) -> Question:
    for notice in askbook.notices:
        err.print(notice)
    tell_waiting(record)
    if thread is not None and len(thread) != UUID_LENGTH:
        # The beginning of an id, as `askbook threads` shows it.
        thread = await askbook.threads.find_id(thread)
    if askbook.agent is not None:
        # The model's seconds count from the question on, so everything else is loaded before.
        await askbook.warm()
    reader = None if tier is None and level is None else Reader(hardware_tier=tier, proficiency_level=level)
    question = Question(text, Filters(record.book_id), thread, reader=reader, streamed=not as_json, **askbook.limits)
    return question if top_k is None else replace(question, top_k=top_k)


# --- a conversation -------------------------------------------------------------------------------


async def talk(askbook: Askbook, question: Question, prompt: Callable[[], Awaitable[str]], verbose: bool) -> None:
    thread_id = question.thread_id
    while True:
        try:
            text = (await prompt()).strip()
        except (EOFError, KeyboardInterrupt):
            break
        if text.lower() in LEAVE:
            break
        match text:
            case "":
                err.print("Type a question, or q to leave.")
            case "/help":
                out.print(HELP)
            case "/new":
                thread_id = None
                out.print("A new thread.")
            case _:
                turn = take_turn(askbook, replace(question, text=text, thread_id=thread_id), verbose)
                thread_id = await _try_turn(turn) or thread_id
    if thread_id is not None:
        out.print(f"Go on with: askbook chat --book {question.filters.book_id} --thread {thread_id}")


async def _try_turn(turn: Awaitable[str]) -> str | None:
    """The thread after this turn; None after an error, and after Ctrl+C, which stops the answer alone."""
    task = asyncio.ensure_future(turn)
    pressed = asyncio.Event()
    before = signal.getsignal(signal.SIGINT)

    def stop() -> None:
        pressed.set()
        task.cancel()

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, stop)
    try:
        return await task
    except asyncio.CancelledError:
        if not pressed.is_set():
            raise
        err.print("stopped")
    except AskbookError as error:
        say_error(error)
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)
    return None


def open_prompt(settings: Settings) -> Callable[[], Awaitable[str]]:
    """Lines with history and editing in a terminal; plain lines from a pipe."""
    if not sys.stdin.isatty():
        return _read_line
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import FileHistory

    session: PromptSession[str] = PromptSession(history=FileHistory(str(settings.askbook_home / "chat_history")))
    return lambda: session.prompt_async("You: ")


async def _read_line() -> str:
    sys.stdout.write("You: ")
    sys.stdout.flush()
    loop = asyncio.get_running_loop()
    read = loop.create_future()

    def wait() -> None:
        line = sys.stdin.readline()
        with contextlib.suppress(RuntimeError):  # The loop has ended: nobody waits for the line.
            loop.call_soon_threadsafe(lambda: read.done() or read.set_result(line))

    # A daemon: Ctrl+C need not wait for a line that never comes.
    threading.Thread(target=wait, daemon=True).start()
    if not (line := await read):
        raise EOFError
    return line


# --- one question ---------------------------------------------------------------------------------


async def take_turn(
    askbook: Askbook, question: Question, verbose: bool = False, as_json: bool = False, before: str = "Agent: "
) -> str:
    """Prints the answer as it comes and then its sources, or all of it as JSON. Returns the thread."""
    async with aclosing(askbook.ask(question)) as events:
        with _open_writer(before, as_json) as write:
            replied = await get_reply(_show_events(events, write, verbose))
    if as_json:
        # The bodies take a while to load.
        from askbook.shapes.answers import AgentResponse

        print_json(AgentResponse.from_replied(replied))
    else:
        show_reply(replied, before)
    return replied.account.thread_id


async def _show_events(
    events: AsyncIterator[AnswerEvent], write: Callable[[str], None], verbose: bool
) -> AsyncIterator[AnswerEvent]:
    async for event in events:
        if verbose:
            show_step(event)
        if isinstance(event, Delta):
            write(clean(event.text))
        yield event


@contextlib.contextmanager
def _open_writer(before: str, as_json: bool) -> Iterator[Callable[[str], None]]:
    """Writes the parts of an answer to the terminal: as Markdown that grows, in a pipe as they come."""
    shown = before
    if as_json:
        yield lambda text: None
    elif out.is_terminal:
        # It imports Pygments, which takes long.
        from rich.markdown import Markdown

        with Live(console=out, auto_refresh=False, vertical_overflow="visible") as live:

            def draw(text: str) -> None:
                nonlocal shown
                shown += text
                live.update(Markdown(show_formulas(shown, escaped=True), hyperlinks=False), refresh=True)

            yield draw
    else:

        def write(text: str) -> None:
            nonlocal shown
            sys.stdout.write(shown + show_formulas(text))
            sys.stdout.flush()
            shown = ""

        yield write
