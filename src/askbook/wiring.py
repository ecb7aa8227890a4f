"""Builds askbook from settings. The only file that knows every room."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from pydantic import SecretStr
from sqlalchemy.engine import URL

from askbook.answer.calibration import Calibrations
from askbook.book.chunker import CHUNKER_VERSION
from askbook.errors import EmbedderUnavailable, IndexMismatch, InputError
from askbook.index.embedders.base import Embedder
from askbook.index.search import Searcher
from askbook.index.vectors.base import VectorIndex
from askbook.ingest.worker import Worker
from askbook.lock import own_folder
from askbook.settings import Settings
from askbook.store.database import Database, open_database
from askbook.store.jobs import SILENCE, Jobs
from askbook.store.ledger import Ledger


@dataclass(frozen=True)
class Store:
    """What SQL remembers; open to any number of processes."""

    database: Database
    ledger: Ledger
    jobs: Jobs


@dataclass(frozen=True)
class Askbook:
    """Everything, open and ready."""

    settings: Settings
    ledger: Ledger
    jobs: Jobs
    index: VectorIndex
    embedder: Embedder | None
    searcher: Searcher
    calibrations: Calibrations
    worker: Worker
    notices: tuple[str, ...]


@contextlib.asynccontextmanager
async def open_store(settings: Settings) -> AsyncIterator[Store]:
    database = await open_database(_database_url(settings))
    try:
        yield Store(database, Ledger(database), Jobs(database))
    finally:
        await database.close()


@contextlib.asynccontextmanager
async def open_askbook(settings: Settings, rebuild: bool = False) -> AsyncIterator[Askbook]:
    """`rebuild`: an index that another embedder made may be emptied and made anew."""
    async with contextlib.AsyncExitStack() as stack:
        alone = settings.qdrant_url is None
        if alone:
            stack.enter_context(own_folder(settings.askbook_home))
        store = await stack.enter_async_context(open_store(settings))
        embedder, notices = await build_embedder(settings)
        if embedder is not None:
            stack.push_async_callback(embedder.close)
        index = await _open_index(settings, store.ledger, embedder, rebuild)
        stack.push_async_callback(index.close)
        yield Askbook(
            settings=settings,
            ledger=store.ledger,
            jobs=store.jobs,
            index=index,
            embedder=embedder,
            searcher=Searcher(index, embedder, store.ledger),
            calibrations=Calibrations(
                store.ledger,
                embedder.name if embedder else None,
                CHUNKER_VERSION,
                raw=settings.askbook_confidence == "raw",
            ),
            # Whoever owns both engines alone knows that a job marked as running has lost its process.
            worker=Worker(
                store.jobs,
                store.ledger,
                index,
                embedder,
                timedelta(0) if alone and settings.database_url is None else SILENCE,
            ),
            notices=notices,
        )


async def build_embedder(settings: Settings) -> tuple[Embedder | None, tuple[str, ...]]:
    """The embedder, and what a person should know of it. Without local weights askbook goes on with keywords."""
    match settings.askbook_embedder:
        case "none":
            return None, ("ASKBOOK_EMBEDDER is none: searching by keywords only",)
        case "openai":
            from askbook.index.embedders.openai import OpenAIEmbedder

            key = _secret(settings.openai_api_key, "OPENAI_API_KEY")
            return await OpenAIEmbedder.open(key, settings.openai_embedding_model, settings.openai_base_url), ()
        case "cohere":
            from askbook.index.embedders.cohere import CohereEmbedder

            key = _secret(settings.cohere_api_key, "COHERE_API_KEY")
            return await CohereEmbedder.open(key, settings.cohere_model, settings.cohere_base_url), ()
        case "local":
            from askbook.index.embedders.minilm import MiniLM, folder_weights

            folder = settings.askbook_embedder_folder
            try:
                return MiniLM(folder_weights(folder) if folder else None, settings.askbook_embedder_threads), ()
            except EmbedderUnavailable as error:
                if folder:
                    raise
                return None, (f"{error.message}: searching by keywords only",)


async def _open_index(settings: Settings, ledger: Ledger, embedder: Embedder | None, rebuild: bool) -> VectorIndex:
    if embedder is None:
        return await _connect(settings, dimension=0)
    collection = settings.qdrant_collection_name
    made_by = await ledger.load_embedder(collection)
    if made_by is not None and made_by != embedder.name:
        if not rebuild:
            raise IndexMismatch(
                f"the index was made by the embedder {made_by}, and the settings name {embedder.name}",
                "Set ASKBOOK_EMBEDDER back, or embed the book anew: askbook ingest FOLDER --mode recreate.",
            )
        # Before the old index goes, the new embedder shows that it works.
        await embedder.embed_query("Does this work?")
        await _empty_index(settings, ledger)
    index = await _connect(settings, embedder.dimension)
    await ledger.save_embedder(collection, embedder.name, embedder.dimension)
    return index


async def _empty_index(settings: Settings, ledger: Ledger) -> None:
    books = await ledger.load_books()
    if len(books) > 1:
        raise IndexMismatch(
            f"{len(books)} books are in this index, and all would have to be embedded anew",
            "Use another ASKBOOK_HOME or QDRANT_COLLECTION_NAME for the new embedder.",
        )
    index = await _connect(settings, dimension=0)
    try:
        for book in books:
            await ledger.forget_book(book.book_id)
        await index.drop()
    finally:
        await index.close()


async def _connect(settings: Settings, dimension: int) -> VectorIndex:
    if settings.qdrant_url is None:
        from askbook.index.vectors.edge import EdgeIndex

        return await EdgeIndex.open(vectors_folder(settings), dimension)
    from askbook.index.vectors.server import ServerIndex

    key = settings.qdrant_api_key.get_secret_value() if settings.qdrant_api_key else None
    return await ServerIndex.open(settings.qdrant_url, key, settings.qdrant_collection_name, dimension)


def vectors_folder(settings: Settings) -> Path:
    return settings.askbook_home / "vectors" / settings.qdrant_collection_name


def _database_url(settings: Settings) -> str | URL:
    if settings.database_url is not None:
        return settings.database_url.get_secret_value()
    settings.askbook_home.mkdir(parents=True, exist_ok=True)
    return URL.create("sqlite", database=str(settings.askbook_home / "askbook.db"))


def _secret(value: SecretStr | None, name: str) -> str:
    if value is None or not value.get_secret_value():
        raise InputError(
            f"{name} is not set, and the chosen embedder needs it", f"Set {name}, or ASKBOOK_EMBEDDER=local."
        )
    return value.get_secret_value()
