"""Haystack: BM25 and embeddings of its in-memory store, joined by reciprocal ranks.

Its cache checker leaves out what is there already: a file is known by the hash of its text, and what was made of an
older text is deleted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from haystack import Document, Pipeline
from haystack.components.caching import CacheChecker
from haystack.components.joiners import DocumentJoiner
from haystack.components.preprocessors import DocumentSplitter
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever, InMemoryEmbeddingRetriever
from haystack.components.writers import DocumentWriter
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.utils import ComponentDevice
from haystack_integrations.components.embedders.sentence_transformers import (
    SentenceTransformersDocumentEmbedder,
    SentenceTransformersTextEmbedder,
)
from peer import BEST, CHUNK_WORDS, Search, model_folder, read_files, run

CPU = ComponentDevice.from_str("cpu")


def ingest(folder: Path, store: Path) -> dict[str, float]:
    documents = InMemoryDocumentStore.load_from_disk(str(store)) if store.exists() else InMemoryDocumentStore()
    hashes = {hashlib.sha256(text.encode()).hexdigest(): (file, text) for file, text in read_files(folder).items()}
    missing = CacheChecker(documents, cache_field="meta.sha256").run(items=list(hashes))["misses"]
    stale = documents.filter_documents({"field": "meta.sha256", "operator": "not in", "value": list(hashes)})
    documents.delete_documents([one.id for one in stale])
    if missing:
        pipeline = Pipeline()
        pipeline.add_component("split", DocumentSplitter(split_by="word", split_length=CHUNK_WORDS))
        pipeline.add_component(
            "embed", SentenceTransformersDocumentEmbedder(model=model_folder(), device=CPU, progress_bar=False)
        )
        pipeline.add_component("write", DocumentWriter(documents))
        pipeline.connect("split", "embed")
        pipeline.connect("embed", "write")
        new = [Document(content=hashes[one][1], meta={"file": hashes[one][0], "sha256": one}) for one in missing]
        pipeline.run({"split": {"documents": new}})
    documents.save_to_disk(str(store))
    return {"chunks": documents.count_documents()}


@contextmanager
def open_search(store: Path) -> Iterator[Search]:
    documents = InMemoryDocumentStore.load_from_disk(str(store))
    pipeline = Pipeline()
    pipeline.add_component(
        "embed", SentenceTransformersTextEmbedder(model=model_folder(), device=CPU, progress_bar=False)
    )
    pipeline.add_component("dense", InMemoryEmbeddingRetriever(documents, top_k=BEST * 2))
    pipeline.add_component("words", InMemoryBM25Retriever(documents, top_k=BEST * 2))
    pipeline.add_component("join", DocumentJoiner(join_mode="reciprocal_rank_fusion", top_k=BEST))
    pipeline.connect("embed.embedding", "dense.query_embedding")
    pipeline.connect("dense", "join")
    pipeline.connect("words", "join")

    def search(question: str) -> list[str]:
        found = pipeline.run({"embed": {"text": question}, "words": {"query": question}})
        return [one.meta["file"] for one in found["join"]["documents"]]

    yield search


run(ingest, open_search)
