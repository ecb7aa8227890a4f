"""How the server is: /health, /ready, /metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel

from askbook.api.examples import errors
from askbook.api.running import Admin, Running, Up
from askbook.api.watch import Sign

router = APIRouter(tags=["operations"])

Status = Literal["healthy", "degraded", "unhealthy"]
ServiceState = Literal["connected", "disconnected", "unknown"]
Service = Literal["openai", "cohere", "qdrant"]
State = Literal["up", "down", "unknown", "off"]


class DependencyHealth(BaseModel):
    status: Literal["up", "down"]
    latency_ms: float


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
    """Whether askbook is alive and has what it needs. No service that costs money is called for it."""
    signs = await running.watch.look()
    status = _to_status(running, signs)
    response.status_code = 200 if all(sign.up for sign in signs.values()) else 503
    return HealthResponse(
        status=status,
        services={
            "openai": _to_service(running, "openai"),
            "cohere": _to_service(running, "cohere"),
            "qdrant": "connected" if signs["index"].up else "disconnected",
        },
        dependencies={
            part: DependencyHealth(status="up" if sign.up else "down", latency_ms=round(sign.latency_ms, 2))
            for part, sign in signs.items()
        },
        timestamp=datetime.now(UTC),
    )


@router.get("/ready", responses={503: {"model": ReadyResponse, "description": "`down` names what is."}})
async def ready(running: Up, response: Response) -> ReadyResponse:
    """Whether questions can be answered: each part's state, and how long it took to say so."""
    signs = await running.watch.look()
    parts = {part: _to_part(sign) for part, sign in signs.items()}
    parts |= {"embedder": _embedder(running), "model": _model(running), "ingestion": _ingestion(running)}
    down = [part for part in _needed(signs) if parts[part].state == "down"]
    response.status_code = 503 if down else 200
    return ReadyResponse(ready=not down, down=down, parts=parts, timestamp=datetime.now(UTC))


@router.get("/metrics", response_class=Response, responses=errors())
async def metrics(running: Up, _caller: Admin) -> Response:
    """Counts and times, for Prometheus."""
    return Response(running.metrics.to_text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _needed(signs: Mapping[str, Sign]) -> Iterable[str]:
    """Without a model the book's own sentences answer, and without ingestion the books stay as they are."""
    return (*signs, "embedder")


def _to_status(running: Running, signs: Mapping[str, Sign]) -> Status:
    if not signs["database"].up:
        return "unhealthy"
    resting = running.askbook.agent is not None and running.askbook.agent.is_resting
    return "degraded" if resting or not signs["index"].up else "healthy"


def _to_service(running: Running, service: Service) -> ServiceState:
    askbook, settings = running.askbook, running.settings
    if service == "openai" and askbook.agent is not None:
        return "disconnected" if askbook.agent.is_resting else "connected"
    uses = settings.askbook_embedder == service or settings.askbook_reranker == service
    return "connected" if uses and askbook.embedder is not None else "unknown"


def _to_part(sign: Sign) -> PartState:
    state: State = "up" if sign.up else "down"
    return PartState(state=state, latency_ms=round(sign.latency_ms, 2), detail=sign.why)


def _embedder(running: Running) -> PartState:
    embedder = running.askbook.embedder
    if embedder is None:
        return PartState(state="off", latency_ms=None, detail="books are searched by their words alone")
    return PartState(state="up", latency_ms=None, detail=embedder.name)


def _model(running: Running) -> PartState:
    agent = running.askbook.agent
    if agent is None:
        return PartState(state="off", latency_ms=None, detail="the book's own sentences are the answer")
    return PartState(state="down" if agent.is_resting else "up", latency_ms=None, detail=agent.name)


def _ingestion(running: Running) -> PartState:
    at_work = len(running.askbook.worker.running)
    return PartState(state="up", latency_ms=None, detail=f"{at_work} job runs" if at_work else "idle")
