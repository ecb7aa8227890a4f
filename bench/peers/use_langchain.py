"""LangChain: FAISS and BM25 in an ensemble. Its `index` with a record manager leaves out what has not changed."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import faiss
from langchain_classic.indexes import SQLRecordManager, index
from langchain_classic.retrievers import EnsembleRetriever
from langchain_community.docstore.in_memory import InMemoryDocstore
from langchain_community.retrievers import BM25Retriever
from langchain_community.vectorstores import FAISS
from langchain_core.documents import Document
from langchain_huggingface import HuggingFaceEmbeddings
from langchain_text_splitters import MarkdownTextSplitter
from peer import BEST, CHUNK_CHARACTERS, Search, model_folder, read_files, run


def ingest(folder: Path, store: Path) -> dict[str, float]:
    embedder = _open_embedder()
    store.mkdir(exist_ok=True)
    records = SQLRecordManager("bench", db_url=f"sqlite:///{store}/records.db")
    records.create_schema()
    if (store / "index.faiss").exists():
        vectors = FAISS.load_local(str(store), embedder, allow_dangerous_deserialization=True)
    else:
        width = len(embedder.embed_query("how wide"))
        vectors = FAISS(embedder, faiss.IndexFlatL2(width), InMemoryDocstore(), {})
    splitter = MarkdownTextSplitter(chunk_size=CHUNK_CHARACTERS, chunk_overlap=0)
    documents = [Document(text, metadata={"file": file}) for file, text in read_files(folder).items()]
    chunks = splitter.split_documents(documents)
    index(chunks, records, vectors, cleanup="incremental", source_id_key="file", key_encoder="sha256")
    vectors.save_local(str(store))
    (store / "chunks.pickle").write_bytes(pickle.dumps(chunks))
    return {"chunks": len(chunks)}


@contextmanager
def open_search(store: Path) -> Iterator[Search]:
    vectors = FAISS.load_local(str(store), _open_embedder(), allow_dangerous_deserialization=True)
    words = BM25Retriever.from_documents(pickle.loads((store / "chunks.pickle").read_bytes()), k=BEST * 2)
    both = [words, vectors.as_retriever(search_kwargs={"k": BEST * 2})]
    ensemble = EnsembleRetriever(retrievers=both, weights=[0.5, 0.5])
    yield lambda question: [one.metadata["file"] for one in ensemble.invoke(question)[:BEST]]


def _open_embedder() -> HuggingFaceEmbeddings:
    return HuggingFaceEmbeddings(model_name=model_folder(), model_kwargs={"device": "cpu"})


run(ingest, open_search)
