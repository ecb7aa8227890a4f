"""LlamaIndex: a vector store index and BM25, fused by relative score. `refresh_ref_docs` leaves out what has not
changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from llama_index.core import (
    Settings,
    SimpleDirectoryReader,
    StorageContext,
    VectorStoreIndex,
    load_index_from_storage,
)
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.embeddings.huggingface import HuggingFaceEmbedding
from llama_index.retrievers.bm25 import BM25Retriever
from peer import BEST, CHUNK_TOKENS, Search, model_folder, run


def ingest(folder: Path, store: Path) -> dict[str, float]:
    _set_up()
    documents = SimpleDirectoryReader(
        str(folder), recursive=True, required_exts=[".md"], filename_as_id=True
    ).load_data()
    if store.exists():
        index = load_index_from_storage(StorageContext.from_defaults(persist_dir=str(store)))
        index.refresh_ref_docs(documents)
    else:
        index = VectorStoreIndex.from_documents(documents)
    index.storage_context.persist(str(store))
    return {"chunks": len(index.docstore.docs)}


@contextmanager
def open_search(store: Path) -> Iterator[Search]:
    _set_up()
    index = load_index_from_storage(StorageContext.from_defaults(persist_dir=str(store)))
    both = [
        index.as_retriever(similarity_top_k=BEST * 2),
        BM25Retriever.from_defaults(docstore=index.docstore, similarity_top_k=BEST * 2),
    ]
    fused = QueryFusionRetriever(both, num_queries=1, mode="relative_score", similarity_top_k=BEST, use_async=False)
    yield lambda question: [found.node.metadata["file_path"] for found in fused.retrieve(question)]


def _set_up() -> None:
    Settings.llm = MockLLM()
    Settings.embed_model = HuggingFaceEmbedding(model_folder(), device="cpu")
    Settings.node_parser = SentenceSplitter(chunk_size=CHUNK_TOKENS, chunk_overlap=0)


run(ingest, open_search)
