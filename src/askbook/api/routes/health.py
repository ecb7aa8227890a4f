"""How the server is: /health, /ready, /metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from askbook.answer.agent import BookAgent
from askbook.api.openapi import errors
from askbook.api.running import NEEDED, Admin, Running, Up
from askbook.domain import Scope
from askbook.errors import NotAllowed
from askbook.index.embedders.base import Embedder
from askbook.index.rerankers.base import Reranker
from askbook.wiring import Askbook
from askbook.wiring import Service as Called

router = APIRouter(tags=["operations"])

Status = Literal["healthy", "degraded", "unhealthy"]
ServiceState = Literal["connected", "disconnected", "unknown"]
Service = Literal["openai", "cohere", "qdrant"]
State = Literal["up", "down", "off"]


class DependencyHealth(BaseModel):
    status: State
    latency_ms: float | None = Field(description="Of its last call; null where none was timed.")


class HealthResponse(BaseModel):
    """Seed 000's form (`services`) and seed 004's (`dependencies`) in one."""

    status: Status
    services: dict[Service, ServiceState]
    dependencies: dict[str, DependencyHealth]
    timestamp: datetime


class PartState(BaseModel):
    state: State
    latency_ms: float | None
    detail: str


class ReadyResponse(BaseModel):
    ready: bool
    down: list[str]
    parts: dict[str, PartState]
    timestamp: datetime


@router.get("/health", responses={503: {"model": HealthResponse, "description": "The database or the index is down."}})
async def health(running: Up, response: Response) -> HealthResponse:
    """Whether askbook is alive and has what it needs. No service that costs money is called for it: `down` is one of
    those when it failed five times running, until it is found to be back."""
    parts = await _ping_parts(running)
    response.status_code = 503 if _find_down(parts, NEEDED) else 200
    status: Status = "degraded" if _find_down(parts, parts) else "healthy"
    return HealthResponse(
        status="unhealthy" if parts["database"].state == "down" else status,
        services={
            "openai": _to_service(running, parts, "openai"),
            "cohere": _to_service(running, parts, "cohere"),
            "qdrant": "connected" if parts["index"].state == "up" else "disconnected",
        },
        dependencies={
            name: DependencyHealth(status=part.state, latency_ms=part.latency_ms)
            for name, part in parts.items()
            if part.state in ("up", "down")
        },
        timestamp=datetime.now(UTC),
    )


@router.get("/ready", responses={503: {"model": ReadyResponse, "description": "The database or the index is down."}})
async def ready(running: Up, response: Response) -> ReadyResponse:
    """Whether questions can be answered: each part's state, and how long it took to say so. `down` names what is;
    without the embedder the words are searched, without the model the book's own sentences answer, without Redis each
    process counts."""
    parts = await _ping_parts(running)
    is_ready = not _find_down(parts, NEEDED)
    response.status_code = 200 if is_ready else 503
    at_work = len(running.askbook.worker.running)
    detail = f"{at_work} job runs" if at_work else "idle"
    parts["ingestion"] = PartState(state="up", latency_ms=None, detail=detail)
    return ReadyResponse(ready=is_ready, down=_find_down(parts, parts), parts=parts, timestamp=datetime.now(UTC))


@router.get("/metrics", response_class=Response, responses=errors())
async def metrics(running: Up, caller: Admin) -> Response:
    """Counts and times of the whole server, for Prometheus; for its owner, and for an admin
    who is bound to no tenant or book."""
    if caller.scope != Scope():
        raise NotAllowed(
            "the counts are of all tenants", "They need an admin's key for all books of the server itself."
        )
    return Response(running.metrics.to_text(), media_type="text/plain; version=0.0.4; charset=utf-8")


async def _ping_parts(running: Running) -> dict[str, PartState]:
    signs = await running.watch.ping_all()
    askbook = running.askbook
    parts = {
        part: PartState(state="up" if sign.up else "down", latency_ms=round(sign.latency_ms, 2), detail=sign.why)
        for part, sign in signs.items()
    }
    parts["embedder"] = _to_called(askbook, "embedder", askbook.embedder, "books are searched by their words alone")
    parts["model"] = _to_called(askbook, "model", askbook.agent, "the book's own sentences are the answer")
    parts["reranker"] = _to_called(askbook, "reranker", askbook.reranker, "passages stand as the search found them")
    return {"redis": PartState(state="off", latency_ms=None, detail="each process counts for itself")} | parts


def _find_down(parts: Mapping[str, PartState], among: Iterable[str]) -> list[str]:
    return [part for part in among if parts[part].state == "down"]


def _to_service(running: Running, parts: Mapping[str, PartState], vendor: Literal["openai", "cohere"]) -> ServiceState:
    """A vendor is connected if every part that uses it is up."""
    settings = running.settings
    asked = {"embedder": settings.askbook_embedder, "reranker": settings.askbook_reranker, "model": "openai"}
    used = [part for part, who in asked.items() if who == vendor and parts[part].state != "off"]
    if not used:
        return "unknown"
    return "disconnected" if _find_down(parts, used) else "connected"


def _to_called(
    askbook: Askbook, service: Called, part: Embedder | BookAgent | Reranker | None, instead: str
) -> PartState:
    """The state of the service's breaker. A part on this machine has one too, which never opens."""
    if part is None:
        return PartState(state="off", latency_ms=None, detail=instead)
    breaker = askbook.breakers[service]
    latency = None if breaker.latency is None else round(breaker.latency * 1000, 2)
    return PartState(state="down" if breaker.is_open else "up", latency_ms=latency, detail=part.name)
