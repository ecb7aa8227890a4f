"""Builds askbook from settings. The only file that knows every room."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Literal, TypedDict, Unpack, get_args

from pydantic import SecretStr
from sqlalchemy.engine import URL

from askbook import __version__
from askbook.answer.agent import AgentConfig, BookAgent
from askbook.answer.ask import Parts, ask
from askbook.answer.calibration import Calibrations
from askbook.backup.holdings import Engines, load_dimension
from askbook.book import CHUNKER_VERSION
from askbook.breaker import Breaker
from askbook.domain import AnswerEvent, Filters, Question, SearchMode, SearchOutcome
from askbook.errors import (
    AskbookError,
    DataInUse,
    EmbedderUnavailable,
    IndexMismatch,
    IndexUnavailable,
    InputError,
    ReaderUnavailable,
)
from askbook.index.embedders.base import Embedder
from askbook.index.rerankers.base import Reranker
from askbook.index.search import WORDS_ONLY, Deadlines, Searcher
from askbook.index.vectors.base import VectorIndex
from askbook.index.vectors.checks import split_batches
from askbook.ingest.pipeline import SIZES, Sizes
from askbook.ingest.worker import Worker
from askbook.lock import Server, announce, find_server, is_taken, own_folder
from askbook.reading.model import BUNDLED, bundled_weights, folder_weights
from askbook.reading.reader import Reader
from askbook.reading.reranker import ReadingReranker
from askbook.settings import Settings
from askbook.store.database import Database, open_database
from askbook.store.jobs import SILENCE, Jobs
from askbook.store.keys import Keys
from askbook.store.ledger import Ledger
from askbook.store.questions import Questions
from askbook.store.shards import Shards
from askbook.store.threads import Threads

logger = logging.getLogger("askbook")

NO_READER = "there is no reader"
THROWN_AWAY = (
    "The index could not be read, and is built anew: run askbook verify --repair for each of the other books too."
)
Service = Literal["model", "embedder", "reranker"]
"""Services that may be remote, each with a breaker. Index, database and Redis are pinged (`api.watch`)."""


class Limits(TypedDict):
    top_k: int
    threshold: float


class SearchOptions(TypedDict, total=False):
    """What a door may choose of `Searcher.search`."""

    mode: SearchMode
    limit: int
    threshold: float
    rerank: bool | None


@dataclass(frozen=True)
class Store:
    """What SQL remembers; open to any number of processes."""

    database: Database
    ledger: Ledger
    jobs: Jobs
    threads: Threads
    keys: Keys
    questions: Questions


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """An index that a new embedder fills while readers still use the old one."""

    stored_in: str
    replaces: str


@dataclass(frozen=True)
class Askbook(Store):
    """Everything, open and ready."""

    settings: Settings
    index: VectorIndex
    embedder: Embedder | None
    reranker: Reranker | None
    reader: Reader | None
    searcher: Searcher
    calibrations: Calibrations
    agent: BookAgent | None
    worker: Worker
    breakers: Mapping[Service, Breaker]
    notices: tuple[str, ...]
    reader_notices: tuple[str, ...] = ()
    """Those of `notices` that say why there is no reader."""
    rebuilt: Rebuilt | None = None
    server: Server | None = None
    """Another process, which owns the data folder: the index is read and jobs are done through it."""

    def ask(self, question: Question) -> AsyncGenerator[AnswerEvent]:
        """What a reader gets, event by event; `answer.ask.get_reply` waits for the last."""
        parts = Parts(
            self.ledger,
            self.threads,
            self.questions,
            self.index,
            self.embedder,
            self.searcher,
            self.calibrations,
            self.reader,
            self.agent,
            self.settings.askbook_unsupported,
            self.settings.agent_max_turns,
            self.settings.askbook_answer_seconds,
            self.settings.askbook_check,
            self.settings.askbook_ask_seconds,
            (WORDS_ONLY,) if self.embedder is None and self.settings.askbook_embedder != "none" else (),
        )
        return ask(parts, question)

    @property
    def limits(self) -> Limits:
        """Those of a question that has none of its own."""
        return {"top_k": self.settings.agent_top_k, "threshold": self.settings.agent_score_threshold}

    async def search(self, text: str, filters: Filters, **how: Unpack[SearchOptions]) -> SearchOutcome:
        """A search whose scores are the calibrated relevance that every door shows."""
        relevance = (await self.calibrations.choose(filters.book_id)).calibration.relevance
        return await self.searcher.search(text, filters, relevance=relevance, **how)

    async def warm(self) -> None:
        """Load imports and weights now, so that the first question need not wait. What fails is logged."""
        works: list[Awaitable[object]] = [part.open() for part in (self.agent, self.reader) if part is not None]
        if self.embedder is not None:
            works.append(self.embedder.embed_query("Is everything ready?"))
        for failed in await asyncio.gather(*works, return_exceptions=True):
            if isinstance(failed, AskbookError):
                logger.error("not ready yet: %s", failed.message)
            elif isinstance(failed, BaseException):
                raise failed

    def announce(self, url: str, token: str) -> None:
        """Tell other processes of the same owner to go through this server."""
        if self.settings.qdrant_url is None:
            embedder = self.embedder.name if self.embedder else ""
            server = Server(url, token, __version__, self.jobs.collection, embedder)
            announce(self.settings.askbook_home, server)

    async def adopt_rebuilt(self) -> None:
        """The rebuilt index becomes the index, and the old one is dropped."""
        if self.rebuilt is not None and self.embedder is not None:
            name, embedder = self.settings.qdrant_collection_name, self.embedder
            await self.ledger.save_embedder(name, embedder.name, embedder.dimension, self.rebuilt.stored_in)
            await self.jobs.inherit(self.rebuilt.replaces)
            old = await _connect(self.settings, self.rebuilt.replaces, dimension=0)
            await old.drop()


@contextlib.asynccontextmanager
async def open_store(settings: Settings) -> AsyncIterator[Store]:
    database = await open_database(_database_url(settings))
    try:
        yield Store(database, Ledger(database), Jobs(database), Threads(database), Keys(database), Questions(database))
    finally:
        await database.close()


@contextlib.asynccontextmanager
async def open_engines(settings: Settings, dimension: int | None = None) -> AsyncIterator[Engines]:
    """Database and index alone, nothing to embed with. `dimension`: of vectors to come; None: of those there are."""
    async with contextlib.AsyncExitStack() as stack:
        server = _own_or_find_server(settings, stack, to_itself=dimension is not None)
        store = await stack.enter_async_context(open_store(settings))
        collection = settings.qdrant_collection_name
        if dimension is None:
            dimension = await load_dimension(store.database, collection)
        _, stored_in = await store.ledger.load_embedder(collection)
        index = await (_attach(server, stored_in) if server else _connect(settings, stored_in, dimension))
        stack.push_async_callback(index.close)
        yield Engines(store.database, index, collection, stored_in)


async def refuse_another_embedder(settings: Settings, made_by: str | None) -> None:
    """Refuse to carry vectors to a place whose settings name another embedder."""
    embedder, _ = build_embedder(settings)
    if embedder is None:
        return
    await embedder.close()
    if made_by not in (None, embedder.name):
        raise IndexMismatch(
            f"the vectors were made by the embedder {made_by}, and the settings name {embedder.name}",
            "Set ASKBOOK_EMBEDDER and its model to the one that made them.",
        )


@contextlib.asynccontextmanager
async def open_mending(settings: Settings, rebuild: bool = False) -> AsyncIterator[Askbook]:
    """For what writes the whole index: where that of this machine cannot be read, it is thrown away. SQL holds what
    it is made of, of every book that lay in it."""
    # Only the owner of the folder looks: a server that does not answer says nothing about its index.
    anew = settings.qdrant_url is None and not is_taken(settings.askbook_home) and not await _is_readable(settings)
    async with open_askbook(settings, rebuild, anew) as askbook:
        others = anew and len(await askbook.ledger.load_books()) > 1
        yield replace(askbook, notices=(*askbook.notices, THROWN_AWAY)) if others else askbook


async def _is_readable(settings: Settings) -> bool:
    try:
        async with open_engines(settings) as engines:
            for record in await Ledger(engines.database).load_books():
                points = [point_id async for point_id, _ in engines.index.scroll_points(record.book_id)]
                for batch in split_batches(points):
                    await engines.index.load_vectors(batch)
    except IndexUnavailable:
        return False
    return True


@contextlib.asynccontextmanager
async def open_askbook(
    settings: Settings, rebuild: bool = False, anew: bool = False, *, to_itself: bool = False
) -> AsyncIterator[Askbook]:
    """`rebuild`: where another embedder made the index, a new one is opened beside it; `adopt_rebuilt` puts it in
    place.
    `anew`: an index of this machine is opened empty.

    Where a server owns the data folder, all goes through it; `to_itself` is for whoever serves.
    """
    async with contextlib.AsyncExitStack() as stack:
        server = _own_or_find_server(settings, stack, to_itself)
        store = await stack.enter_async_context(open_store(settings))
        breakers = build_breakers(settings)
        collection = settings.qdrant_collection_name
        index: VectorIndex | None = None

        async def take_dimension(dimension: int) -> None:
            if index is not None and embedder is not None and server is None:
                await index.take_dimension(dimension)
                await store.ledger.save_embedder(collection, embedder.name, dimension, stored_in)

        def close_at_the_end(part: Embedder | Reranker | Reader | BookAgent | None) -> None:
            if part is not None:
                stack.push_async_callback(part.close)

        embedder, notices = build_embedder(settings, breakers["embedder"], take_dimension)
        close_at_the_end(embedder)
        reranker = build_reranker(settings, breakers["reranker"])
        close_at_the_end(reranker)
        reader, reader_notices = build_reader(settings)
        close_at_the_end(reader)
        stored_in, rebuilt = await _find_index(settings, store.ledger, embedder, rebuild)
        # A model that askbook does not know tells its dimension with its first vectors; the index knows it from the
        # last time.
        known = embedder.dimension or await load_dimension(store.database, collection) if embedder else 0
        if server is not None:
            _refuse_another_index(server, embedder, anew or rebuilt is not None)
            index = await _attach(server, stored_in)
        else:
            index = await _connect(settings, stored_in, known, anew)
        stack.push_async_callback(index.close)
        if embedder is not None and embedder.dimension and rebuilt is None and server is None:
            await store.ledger.save_embedder(collection, embedder.name, embedder.dimension, stored_in)
        agent = build_agent(settings, breakers["model"])
        close_at_the_end(agent)
        store = replace(store, jobs=Jobs(store.database, stored_in))
        yield Askbook(
            **vars(store),
            settings=settings,
            index=index,
            embedder=embedder,
            reranker=reranker,
            reader=reader,
            searcher=Searcher(
                index,
                embedder,
                store.ledger,
                reranker,
                Deadlines(settings.askbook_retrieval_seconds, settings.askbook_reranker_seconds),
                ReadingReranker(reader) if reader is not None else None,
            ),
            agent=agent,
            calibrations=Calibrations(
                store.ledger,
                embedder.name if embedder else None,
                CHUNKER_VERSION,
                raw=settings.askbook_confidence == "raw",
            ),
            worker=_build_worker(settings, store, index, embedder, server),
            breakers=breakers,
            notices=(*notices, *reader_notices),
            reader_notices=reader_notices,
            rebuilt=rebuilt,
            server=server,
        )


def _own_or_find_server(settings: Settings, stack: contextlib.AsyncExitStack, to_itself: bool) -> Server | None:
    """None where the data folder is ours, and where the vectors are not in it."""
    if settings.qdrant_url is not None:
        return None
    try:
        stack.enter_context(own_folder(settings.askbook_home))
    except DataInUse:
        server = find_server(settings.askbook_home)
        if server is None or to_itself:
            raise
        if server.version != __version__:
            raise DataInUse(
                f"the server at {server.url}, which has the data, is askbook {server.version}, "
                f"and this is {__version__}",
                "End it, and start it with this version.",
            ) from None
        return server
    return None


def _refuse_another_index(server: Server, embedder: Embedder | None, anew: bool) -> None:
    again = "End it, run this again, and start it with the same settings."
    if anew:
        raise DataInUse(f"the server at {server.url} uses the index that is to be made anew", again)
    if embedder is not None and embedder.name != server.embedder:
        raise IndexMismatch(
            f"the server at {server.url}, which has the data, embeds with {server.embedder or 'nothing'}, "
            f"and the settings here name {embedder.name}",
            again,
        )


def _build_worker(
    settings: Settings,
    store: Store,
    index: VectorIndex,
    embedder: Embedder | None,
    server: Server | None,
) -> Worker:
    parts = (store.jobs, Shards(store.database), store.ledger, index, embedder)
    if server is not None:
        from askbook.index.vectors.served import ServedIndex
        from askbook.ingest.served import ServedWorker

        assert isinstance(index, ServedIndex)
        return ServedWorker(*parts, server=index)
    shared = are_shared(settings)
    # The only owner of both engines knows that a job marked as running has lost its process.
    alone = settings.qdrant_url is None and settings.database_url is None
    return Worker(
        *parts,
        timedelta(0) if alone else SILENCE,
        shared=shared,
        sizes=Sizes(commit=64) if shared else SIZES,
    )


def build_breakers(settings: Settings) -> Mapping[Service, Breaker]:
    return {service: Breaker(rest=settings.askbook_rest_seconds) for service in get_args(Service)}


def build_embedder(
    settings: Settings,
    breaker: Breaker | None = None,
    when_measured: Callable[[int], Awaitable[None]] | None = None,
) -> tuple[Embedder | None, tuple[str, ...]]:
    """The embedder, and notices about it. Without the local weights askbook searches by keywords."""
    match settings.askbook_embedder:
        case "none":
            return None, ("ASKBOOK_EMBEDDER is none: searching by keywords only",)
        case "openai":
            from askbook.index.embedders.openai import OpenAIEmbedder as Remote

            key, model, url = settings.openai_api_key, settings.openai_embedding_model, settings.openai_base_url
        case "cohere":
            from askbook.index.embedders.cohere import CohereEmbedder as Remote

            key, model, url = settings.cohere_api_key, settings.cohere_model, settings.cohere_base_url
        case "local":
            from askbook.index.embedders.minilm import MiniLM, folder_weights

            folder = settings.askbook_embedder_folder
            try:
                return MiniLM(folder_weights(folder) if folder else None, settings.askbook_embedder_threads), ()
            except EmbedderUnavailable as error:
                if folder:
                    raise
                return None, (f"{error.message}: searching by keywords only. Install askbook anew.",)
    secret = _secret(key, Remote.key_setting, "embedder", "ASKBOOK_EMBEDDER=local")
    return Remote(secret, model, url, None, breaker, settings.askbook_embedding_seconds, when_measured), ()


def build_reranker(settings: Settings, breaker: Breaker | None = None) -> Reranker | None:
    match settings.askbook_reranker:
        case "none":
            return None
        case "cohere":
            from askbook.index.rerankers.cohere import CohereReranker

            key = _secret(settings.cohere_api_key, "COHERE_API_KEY", "reranker", "ASKBOOK_RERANKER=none")
            model, url = settings.cohere_rerank_model, settings.cohere_base_url
            return CohereReranker(key, model, url, breaker=breaker, seconds=settings.askbook_reranker_seconds)
        case "local":
            from askbook.index.rerankers.crossencoder import CrossEncoder

            if settings.askbook_reranker_folder is None:
                raise InputError(
                    "ASKBOOK_RERANKER_FOLDER is not set, and a local reranker needs it",
                    "Set it to a folder with model.onnx and tokenizer.json, or ASKBOOK_RERANKER=none.",
                    code="E001",
                )
            return CrossEncoder(settings.askbook_reranker_folder, settings.askbook_embedder_threads)


def build_reader(settings: Settings, bundled: Path = BUNDLED) -> tuple[Reader | None, tuple[str, ...]]:
    """The reader, and notices about it. askbook works without the bundled weights."""
    match settings.askbook_reader:
        case "none":
            return None, ()
        case "bundled":
            try:
                return Reader(bundled_weights(bundled), settings.askbook_embedder_threads), ()
            except ReaderUnavailable as error:
                return None, (f"{error.message}: {NO_READER}",)
        case folder:
            return Reader(folder_weights(folder), settings.askbook_embedder_threads), ()


def build_agent(settings: Settings, breaker: Breaker | None = None) -> BookAgent | None:
    """The model that writes answers; None where the book's own sentences are the answer."""
    key = settings.openai_api_key.get_secret_value() if settings.openai_api_key else None
    if settings.askbook_answerer == "extractive" or (settings.askbook_answerer == "auto" and not key):
        return None
    return BookAgent(
        AgentConfig(
            model=settings.openai_model,
            api=settings.openai_api,
            base_url=settings.openai_base_url,
            api_key=key,
            temperature=settings.agent_temperature,
            max_tokens=settings.agent_max_tokens,
            top_k=settings.agent_top_k,
            score_threshold=settings.agent_score_threshold,
            generation_seconds=settings.askbook_generation_seconds,
            ask_seconds=settings.askbook_ask_seconds,
            added=settings.agent_system_prompt,
        ),
        breaker,
    )


async def _find_index(
    settings: Settings, ledger: Ledger, embedder: Embedder | None, rebuild: bool
) -> tuple[str, Rebuilt | None]:
    """The collection to open, and whether it is one that replaces another."""
    made_by, stored_in = await ledger.load_embedder(settings.qdrant_collection_name)
    if embedder is None or made_by in (None, embedder.name):
        return stored_in, None
    if not rebuild:
        raise IndexMismatch(
            f"the index was made by the embedder {made_by}, and the settings name {embedder.name}",
            "Set ASKBOOK_EMBEDDER back, or embed the book anew: askbook ingest FOLDER --mode recreate.",
        )
    books = await ledger.load_books()
    if len(books) > 1:
        raise IndexMismatch(
            f"{len(books)} books are in this index, and all would have to be embedded anew",
            "Use another ASKBOOK_HOME, or another database and QDRANT_COLLECTION_NAME, for the new embedder.",
        )
    # The new embedder must work before anything is made.
    await embedder.embed_query("Does this work?")
    name = f"{settings.qdrant_collection_name}.{hashlib.sha256(embedder.name.encode()).hexdigest()[:8]}"
    return name, Rebuilt(name, stored_in)


async def _attach(server: Server, stored_in: str) -> VectorIndex:
    if server.collection != stored_in:
        raise IndexMismatch(
            f"the server at {server.url}, which has the data, serves {server.collection}, and the settings here name "
            f"{stored_in}",
            "Set QDRANT_COLLECTION_NAME alike, or end the server.",
        )
    from askbook.index.vectors.served import ServedIndex

    index = ServedIndex(server.url, server.token)
    try:
        await index.ping()
    except BaseException:
        await index.close()
        raise
    return index


async def _connect(settings: Settings, stored_in: str, dimension: int, anew: bool = False) -> VectorIndex:
    if settings.qdrant_url is None:
        from askbook.index.vectors.edge import EdgeIndex

        return await EdgeIndex.open(vectors_folder(settings).with_name(stored_in), dimension, anew)
    from askbook.index.vectors.server import Layout, ServerIndex

    key = settings.qdrant_api_key.get_secret_value() if settings.qdrant_api_key else None
    layout = Layout(
        settings.qdrant_shards, settings.qdrant_replicas, settings.qdrant_on_disk, settings.qdrant_quantization
    )
    return await ServerIndex.open(settings.qdrant_url, key, stored_in, dimension, layout)


def are_shared(settings: Settings) -> bool:
    """Whether other machines can reach both engines, and so take part in the work."""
    if settings.qdrant_url is None or settings.database_url is None:
        return False
    return not settings.database_url.get_secret_value().startswith("sqlite")


def vectors_folder(settings: Settings) -> Path:
    return settings.askbook_home / "vectors" / settings.qdrant_collection_name


def _database_url(settings: Settings) -> str | URL:
    if settings.database_url is not None:
        return settings.database_url.get_secret_value()
    settings.askbook_home.mkdir(mode=0o700, parents=True, exist_ok=True)
    return URL.create("sqlite", database=str(settings.askbook_home / "askbook.db"))


def _secret(value: SecretStr | None, name: str, part: str, instead: str) -> str:
    if value is None or not value.get_secret_value():
        raise InputError(
            f"{name} is not set, and the chosen {part} needs it", f"Set {name}, or {instead}.", code="E001"
        )
    return value.get_secret_value()
