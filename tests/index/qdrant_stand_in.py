"""A stand-in for a Qdrant server: the REST calls that askbook makes, over real HTTP on loopback, answered by
qdrant-client's own local mode. It stores and searches, but it is no Qdrant: no index, no cluster, no disk.

As a process it prints its address and serves until it is killed: qdrant_stand_in.py
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from pydantic import TypeAdapter
from qdrant_client import QdrantClient, models

DONE = models.UpdateResult(operation_id=0, status=models.UpdateStatus.COMPLETED)
Call = Callable[[QdrantClient, str, Any, str], Any]


def _as(kind: Any, body: Any) -> Any:
    return TypeAdapter(kind).validate_python(body)


def _create(client: QdrantClient, name: str, body: Any, _: str) -> bool:
    asked = _as(models.CreateCollection, body)
    return client.create_collection(
        name, vectors_config=asked.vectors or {}, sparse_vectors_config=asked.sparse_vectors
    )


def _query(client: QdrantClient, name: str, body: Any, _: str) -> Any:
    asked = _as(models.QueryRequest, body)
    nearest = asked.query.nearest if isinstance(asked.query, models.NearestQuery) else asked.query
    return client.query_points(
        name, query=nearest, using=asked.using, query_filter=asked.filter, limit=asked.limit, with_payload=False
    )


def _retrieve(client: QdrantClient, name: str, body: Any, _: str) -> list[models.Record]:
    asked = _as(models.PointRequest, body)
    return client.retrieve(name, asked.ids, with_payload=False, with_vectors=asked.with_vector or False)


def _scroll(client: QdrantClient, name: str, body: Any, _: str) -> Any:
    asked = _as(models.ScrollRequest, body)
    points, following = client.scroll(
        name, scroll_filter=asked.filter, limit=asked.limit or 10, offset=asked.offset, with_payload=False
    )
    return {"points": points, "next_page_offset": following}


def _delete(client: QdrantClient, name: str, body: Any, _: str) -> models.UpdateResult:
    client.delete(name, _as(models.PointIdsList | models.FilterSelector, body))
    return DONE


def _upsert(client: QdrantClient, name: str, body: Any, _: str) -> models.UpdateResult:
    client.upsert(name, _as(models.PointsList, body).points)
    return DONE


def _update_vectors(client: QdrantClient, name: str, body: Any, _: str) -> models.UpdateResult:
    client.update_vectors(name, _as(models.UpdateVectors, body).points)
    return DONE


CALLS: list[tuple[str, str, Call]] = [
    ("GET", r"/exists", lambda client, name, *_: {"exists": client.collection_exists(name)}),
    ("GET", r"", lambda client, name, *_: client.get_collection(name)),
    ("PUT", r"", _create),
    ("DELETE", r"", lambda client, name, *_: client.delete_collection(name)),
    ("PUT", r"/index", lambda *_: DONE),
    ("PUT", r"/points", _upsert),
    ("PUT", r"/points/vectors", _update_vectors),
    ("PUT", r"/vectors/(?P<vector>[^/]+)", lambda client, name, body, vector: _add_vector(client, name, body, vector)),
    ("POST", r"/points", _retrieve),
    ("POST", r"/points/delete", _delete),
    ("POST", r"/points/query", _query),
    ("POST", r"/points/scroll", _scroll),
]


def _add_vector(client: QdrantClient, name: str, body: Any, vector: str) -> models.UpdateResult:
    client.create_vector_name(name, vector, _as(models.DenseVectorNameConfig, body))
    return DONE


def _find_call(method: str, path: str) -> tuple[Call, str, str] | None:
    for wanted, rest, call in CALLS:
        found = re.fullmatch(rf"/collections/(?P<name>[^/]+){rest}", path)
        if method == wanted and found:
            return call, unquote(found["name"]), unquote(found.groupdict().get("vector") or "")
    return None


@contextlib.contextmanager
def stand_in_qdrant() -> Iterator[str]:
    """Its address."""
    client = QdrantClient(":memory:")
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def _answer(self) -> None:
            sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            call = _find_call(self.command, urlsplit(self.path).path)
            status, result = (404, f"{self.command} {self.path} is not stood in for") if call is None else (200, None)
            if call is not None:
                try:
                    with lock:
                        result = call[0](client, call[1], json.loads(sent) if sent else None, call[2])
                except ValueError as error:
                    status, result = (404 if "not found" in str(error) else 400), str(error)
            body = {"result": result, "status": "ok", "time": 0.0} if status == 200 else {"status": {"error": result}}
            self._send(status, TypeAdapter(Any).dump_json(body, exclude_none=True))

        def _send(self, status: int, body: bytes) -> None:
            with contextlib.suppress(OSError):
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_DELETE = _answer

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with stand_in_qdrant() as url:
        print(url, flush=True)
        threading.Event().wait()
