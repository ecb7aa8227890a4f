"""What a client of each contract sends and gets here: real requests and replies, shortened for docs/contracts.md.

Made anew by `python tests/contracts/moving.py`, with `src` and `tests` in PYTHONPATH; test_moving.py keeps them true.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx2

from answer.robots import ingest_books
from answer.scripted_model import TOOL, Reply, Request, ScriptedModel, quote, scripted_model, search
from api.service import Sent, build_settings, read_events, serve, with_model
from builders import copy_home
from contracts.terminal import Terminal
from contracts.textbook import BOOK, QUESTION, UNKNOWN, write_textbook

FILE = Path(__file__).with_name("moving_over.json")
SESSION, OTHER = "f47ac10b-58cc-4372-a567-0e02b2c3d479", "7c9e6679-7425-40de-944b-e07fc1f90ae7"
CALL: dict[str, Any] = {"query": QUESTION, "top_k": 1}
TEXT_MAX = 96

ANSWER = ("answer", "sources", "metadata")
SOURCE = ("content", "url", "chunk_id", "document_id", "similarity_score", "position")
TIMES = ("response_time_ms", "chunk_count", "embedding_time_ms", "retrieval_time_ms", "generation_time_ms")
PROBLEM = ("error", "message", "detail", "status_code")
RESULT = ("text", "score", "source_file", "section_title", "module", "chapter", "lesson", "hardware_tier")
CHAIN = ("chunk_index", "total_chunks", "parent_doc_id", "prev_chunk_id", "next_chunk_id")
FOUND = ("query", "results", "total_found", "hardware_tier_filter", "module_filter", "book_id")
JOB = ("job_id", "mode", "status", "files_processed", "files_skipped", "chunks_created", "chunks_deleted")
CHAT = ("response", "confidence", "sources", "session_id", "timestamp", "confidence_level", "should_answer")
CHAT_SOURCE = ("chunk_text", "similarity_score", "chapter", "section", "url", "chunk_index")
TOOL_RESULT = ("chunk_text", "page_title", "section_heading", "source_url", "similarity_score", "rank")


@dataclass(frozen=True)
class Example:
    seed: str
    says: str
    request: str
    response: str


def record(client: httpx2.Client, home: Path, folder: Path) -> list[Example]:
    """`client`: of a server over the textbook; `home`: another with it, never ingested again, to write into."""
    asked = [*_first(client), _third(Terminal(home, folder)), _fourth(client), *_fifth(client)]
    with (
        scripted_model(_search_one) as model,
        serve(build_settings(home, **with_model(model.url))) as service,
        service.open_client() as owner,
    ):
        told = [_second(owner, model), _ingestion(owner)]
    return sorted([*asked, *told], key=lambda one: (one.seed, one.says))


def _first(client: httpx2.Client) -> list[Example]:
    good, bad = {"query": QUESTION, "top_k": 1, "include_sources": True}, {"query": "", "top_k": 1}
    answer = client.post("/ask", json=good).json()
    told = _pick(answer, ANSWER) | {
        "sources": [_pick(one, SOURCE) for one in answer["sources"]],
        "metadata": _pick(answer["metadata"], TIMES),
    }
    problem = client.post("/ask", json=bad).json()
    return [
        Example("000", "A question.", _request("POST /ask", good), _show(told)),
        Example("000", "An error.", _request("POST /ask", bad), _show(_pick(problem, PROBLEM))),
    ]


def _search_one(number: int, request: Request) -> Reply:
    return quote(number, request) if request.tool_outputs else search(**CALL)


def _second(client: httpx2.Client, model: ScriptedModel) -> Example:
    client.post("/ask", json={"query": QUESTION})
    [output] = model.received[1].tool_outputs
    told = output | {"results": [_pick(one, TOOL_RESULT) for one in output["results"]]}
    call = {"name": TOOL, "arguments": CALL}
    return Example("001", "What the model asks of its tool, and what it is told.", _show(call), _show(told))


def _third(terminal: Terminal) -> Example:
    typed = terminal.run("chat", "-q", QUESTION, "-k", "3")
    return Example("002", "A question in the terminal.", f'askbook chat -q "{QUESTION}" -k 3', _cut_prose(typed.stdout))


def _fourth(client: httpx2.Client) -> Example:
    query = {"text": "elbow of the arm", "hardware_tier_filter": 1, "module_filter": "ros2", "limit": 1}
    found = client.post("/search", json=query).json()
    told = _pick(found, FOUND) | {"results": [_pick(one, (*RESULT, *CHAIN)) for one in found["results"]]}
    return Example("003", "A search.", _request("POST /search", query), _show(told))


def _ingestion(client: httpx2.Client) -> Example:
    trigger = {"book_id": BOOK, "mode": "incremental"}
    job = client.post("/ingestion/trigger", json=trigger).json()
    return Example("003", "An ingestion.", _request("POST /ingestion/trigger", trigger), _show(_pick(job, JOB)))


def _fifth(client: httpx2.Client) -> list[Example]:
    question = {"message": QUESTION, "session_id": SESSION, "top_k": 5}
    answer = client.post("/chat/run", json=question).json()
    told = _pick(answer, CHAT) | {"sources": [_pick(one, CHAT_SOURCE) for one in answer["sources"]]}
    unknown = {"message": UNKNOWN, "session_id": OTHER}
    with client.stream("POST", "/chat/stream", json=unknown) as response:
        events = list(read_events(response.iter_lines()))
    lines = [f"event: {one.event}\ndata: {_show_event(one)}" for one in events]
    return [
        Example("004", "A question.", _request("POST /chat/run", question), _show(told)),
        Example("004", "A refusal, streamed.", _request("POST /chat/stream", unknown), "\n\n".join(lines)),
    ]


# --- shortening -----------------------------------------------------------------------------------


def _pick(body: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """What the contract names, and no more."""
    return {name: body[name] for name in names}


def _request(route: str, body: Mapping[str, Any]) -> str:
    return f"{route}\n{_show(body)}"


def _show(body: Any, indent: int | None = 2) -> str:
    return json.dumps(_cut(body), ensure_ascii=False, indent=indent)


def _show_event(event: Sent) -> str:
    """Of what was found, only that it comes: it is long."""
    if event.event == "retrieval":
        return "{…}"
    return _show(_pick(event.data, CHAT) if event.event == "done" else event.data, None)


def _cut(value: Any) -> Any:
    match value:
        case str():
            return value if len(value) <= TEXT_MAX else f"{value[:TEXT_MAX]}…"
        case float():
            return round(value, 2)
        case dict():
            return {name: _cut(one) for name, one in value.items()}
        case list():
            return [_cut(one) for one in value]
        case _:
            return value


def _cut_prose(text: str) -> str:
    """Lines of sources are shown whole."""
    return "\n".join(line if "http" in line else _cut(line) for line in text.strip().splitlines())


def load_examples() -> list[Example]:
    return [Example(**one) for one in json.loads(FILE.read_text(encoding="utf-8"))]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        place = Path(made)
        served = ingest_books(place / "served", {BOOK: write_textbook(place / "textbook")})
        home = copy_home(served, place)
        with serve(build_settings(served)) as running, running.open_client() as caller:
            examples = record(caller, home, place)
    FILE.write_text(
        json.dumps([asdict(one) for one in examples], ensure_ascii=False, indent=2) + "\n", encoding="utf-8"
    )
