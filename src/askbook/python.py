"""A book in Python: `async with open_book(…)` or `with open_book(…)`. No server and no key is needed."""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypedDict, TypeVar, Unpack

from anyio.from_thread import BlockingPortal, start_blocking_portal

from askbook.answer.ask import get_reply
from askbook.book.reader import read_book
from askbook.domain import (
    AnswerEvent,
    FacetValue,
    Failed,
    Filters,
    IngestMode,
    Job,
    Passage,
    Question,
    Reader,
    Reply,
    SearchMode,
)
from askbook.errors import InputError, JobFailed, NotFound
from askbook.index.choices import check_choices
from askbook.settings import Settings, load_settings
from askbook.wiring import Askbook, SearchOptions, open_askbook

P = ParamSpec("P")
T = TypeVar("T")


class QuestionOptions(TypedDict, total=False):
    """What a question may carry."""

    thread_id: str
    """A UUID4 of your own: questions with the same one are one conversation."""
    top_k: int
    threshold: float
    selected_text: str
    reader: Reader


class FilterOptions(TypedDict, total=False):
    """Where to search; all must hold."""

    hardware_tier: int
    module: str
    chapter_min: int
    chapter_max: int
    lesson: int
    proficiency_levels: tuple[str, ...]
    layer: str
    parent_doc_id: str
    facets: dict[str, tuple[FacetValue, ...]]
    url_prefix: str
    heading_prefix: str


class OpenBook:
    """A book that is open. Its methods return values of `askbook.domain`."""

    def __init__(self, askbook: Askbook, book_id: str, folder: str) -> None:
        self._askbook = askbook
        self.book_id = book_id
        self.folder = folder

    async def ingest(self, mode: IngestMode = "incremental") -> Job:
        """Bring the index into step with the folder."""
        job = await self._askbook.jobs.submit(self.book_id, self.folder, mode)
        job = await self._askbook.worker.run_job(job.job_id)
        if job.status == "failed":
            raise JobFailed(job.error_message or "the ingestion failed", "Mend that and ingest again: it goes on.")
        return job

    async def search(
        self,
        text: str,
        limit: int = 5,
        mode: SearchMode = "hybrid",
        threshold: float = 0.0,
        rerank: bool | None = None,
        **only: Unpack[FilterOptions],
    ) -> tuple[Passage, ...]:
        """The passages that fit, the best first."""
        filters = Filters(self.book_id, **only)
        check_choices(filters, await self._askbook.ledger.load_book(self.book_id))
        how = SearchOptions(mode=mode, limit=limit, threshold=threshold, rerank=rerank)
        return (await self._askbook.search(text, filters, **how)).passages

    async def ask(self, text: str, **asked: Unpack[QuestionOptions]) -> Reply:
        """An Answer with its sources, or a Refusal that says why."""
        async with aclosing(self._follow(text, asked, streamed=False)) as events:
            return (await get_reply(events)).reply

    async def stream(self, text: str, **asked: Unpack[QuestionOptions]) -> AsyncGenerator[AnswerEvent]:
        """The same, event by event: `Delta` is the next part of the answer, the last event is `Replied`."""
        async with aclosing(self._follow(text, asked, streamed=True)) as events:
            async for event in events:
                yield event

    async def _follow(self, text: str, asked: QuestionOptions, streamed: bool) -> AsyncGenerator[AnswerEvent]:
        question = Question(text, Filters(self.book_id), streamed=streamed, **{**self._askbook.limits, **asked})
        async with aclosing(self._askbook.ask(question)) as events:
            async for event in events:
                if isinstance(event, Failed):
                    raise event.error
                yield event


def _blocking(
    method: Callable[Concatenate[OpenBook, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[BlockingBook, P], T]:
    @functools.wraps(method)
    def call(book: BlockingBook, *args: P.args, **kwargs: P.kwargs) -> T:
        return book.portal.call(functools.partial(method, book.opened, *args, **kwargs))

    return call


class BlockingBook:
    """The same book without `await`. Its event loop runs in a thread of its own, so that it works in a notebook."""

    def __init__(self, opened: OpenBook, portal: BlockingPortal) -> None:
        self.opened = opened
        self.portal = portal

    ingest = _blocking(OpenBook.ingest)
    search = _blocking(OpenBook.search)
    ask = _blocking(OpenBook.ask)

    def stream(self, text: str, **asked: Unpack[QuestionOptions]) -> Iterator[AnswerEvent]:
        events = self.opened.stream(text, **asked)
        try:
            while (event := self.portal.call(anext, events, None)) is not None:
                yield event
        finally:
            self.portal.call(events.aclose)


class Door:
    """What `open_book` returns: a context manager for `with` and `async with`, which may be entered again."""

    def __init__(self, open_it: Callable[[], AbstractAsyncContextManager[OpenBook]]) -> None:
        self._open = open_it
        self._opened = AsyncExitStack()
        self._thread = ExitStack()

    async def __aenter__(self) -> OpenBook:
        return await self._opened.enter_async_context(self._open())

    async def __aexit__(self, *raised: Any) -> None:
        await self._opened.__aexit__(*raised)

    def __enter__(self) -> BlockingBook:
        with ExitStack() as stack:
            portal = stack.enter_context(start_blocking_portal())
            opened = stack.enter_context(portal.wrap_async_context_manager(self._open()))
            self._thread = stack.pop_all()
        return BlockingBook(opened, portal)

    def __exit__(self, *raised: Any) -> None:
        self._thread.__exit__(*raised)


def open_book(book: str | Path, *, home: str | Path | None = None, **settings: Any) -> Door:
    """Open a folder of Markdown, or by its id a book that was ingested before; for `async with`, or for `with`.

    `home` is the folder that holds askbook's data. Any other setting goes by its name, in lower case.
    """
    if unknown := settings.keys() - Settings.model_fields.keys():
        raise InputError(f"there is no setting {', '.join(sorted(unknown))}", "docs/settings.md lists every setting.")
    return Door(functools.partial(_open, book, load_settings(**{**settings, "askbook_home": home})))


@asynccontextmanager
async def _open(book: str | Path, settings: Settings) -> AsyncIterator[OpenBook]:
    async with open_askbook(settings) as askbook:
        if askbook.agent is not None:
            await askbook.warm()
        yield OpenBook(askbook, *await _find(askbook, book))


async def _find(askbook: Askbook, book: str | Path) -> tuple[str, str]:
    """Its id, and the folder that it is made from."""
    books = {record.book_id: record for record in await askbook.ledger.load_books()}
    if not Path(book).is_dir():
        if str(book) not in books:
            raise NotFound(
                f"there is neither a folder nor a book {book}",
                f"Books that were ingested: {', '.join(books) or 'none'}; of any other, give the folder.",
            )
        return str(book), books[str(book)].folder
    book_id, folder = read_book(Path(book)).book_id, Path(book).resolve()
    known = Path(books[book_id].folder) if book_id in books else folder
    if known != folder and known.is_dir():
        raise InputError(
            f"the book {book_id} is already made from {known}",
            "Give this folder a book_id of its own in its askbook.toml, or open it with another home.",
        )
    return book_id, str(folder)
