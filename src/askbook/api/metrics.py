"""What is counted, for Prometheus, each process for itself; and traces, where a collector is named."""

from __future__ import annotations

from functools import partial

from fastapi.telemetry import TelemetryConfig
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from askbook.domain import Account, Answer, AnswerEvent, Failed, Job, Replied, Reply, Tried
from askbook.errors import InputError
from askbook.ingest.pipeline import Step, Tally
from askbook.settings import Settings

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 30.0, 90.0)


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        count, level = partial(Counter, registry=self.registry), partial(Gauge, registry=self.registry)
        time = partial(Histogram, buckets=SECONDS, registry=self.registry)
        self.requests = count("askbook_requests", "Requests", ("route", "method", "status"))
        self.request_seconds = time("askbook_request_seconds", "How long requests took", ("route",))
        self.stage_seconds = time("askbook_stage_seconds", "How long the stages of an answer took", ("stage",))
        self.answers = count("askbook_answers", "Answers", ("by",))
        self.refusals = count("askbook_refusals", "Refusals", ("reason",))
        self.failures = count("askbook_failures", "Questions that failed", ("error",))
        self.confidence = count("askbook_confidence", "Replies by how sure they are", ("level",))
        self.cache_hits = count("askbook_cache_hits", "Questions that were searched before")
        self.tokens = count("askbook_tokens", "Tokens of the model", ("model",))
        self.model_calls = count("askbook_model_calls", "Calls to the model's service", ("state",))
        self.sentences_removed = count("askbook_sentences_removed", "Sentences that the check took out")
        self.streams = level("askbook_streams", "Streams that are open")
        self.breaker_open = level(
            "askbook_breaker_open",
            "1 from when the service is left alone until a call to it has succeeded",
            ("service",),
        )
        self.part_up = level("askbook_part_up", "1 while the part answers", ("part",))
        self.jobs = count("askbook_jobs", "Ingestion jobs that ended", ("status",))
        self.job_progress = level("askbook_job_progress", "How far the running job is, 0 to 1")
        self.job_files = level("askbook_job_files", "Files of the running job", ("state",))
        self.job_chunks = level("askbook_job_chunks", "Chunks of the running job", ("state",))

    def to_text(self) -> bytes:
        return generate_latest(self.registry)

    def note_event(self, event: AnswerEvent) -> None:
        match event:
            case Tried(state=state):
                self.model_calls.labels(state).inc()
            case Failed(error):
                self.failures.labels(type(error).__name__).inc()
            case Replied(reply, account):
                if isinstance(reply, Answer):
                    self.answers.labels(reply.answered_by).inc()
                else:
                    self.refusals.labels(reply.reason).inc()
                self._note_reply(reply, account)
            case _:
                pass

    def _note_reply(self, reply: Reply, account: Account) -> None:
        self.confidence.labels(reply.confidence.confidence_level if reply.confidence else "none").inc()
        self.sentences_removed.inc(len(reply.removed))
        for stage, took_ms in {
            "embedding": account.embedding_ms,
            "retrieval": account.retrieval_ms,
            "generation": account.generation_ms,
            "whole": account.response_ms,
        }.items():
            self.stage_seconds.labels(stage).observe(took_ms / 1000)
        self.cache_hits.inc(account.cache_hit)
        if account.model is not None:
            self.tokens.labels(account.model).inc(account.tokens_used)

    def note_step(self, _job: Job, _step: Step, tally: Tally) -> None:
        done = tally.files_processed + tally.files_skipped
        read = done / tally.files_total if tally.files_total else 0.0
        embedded = tally.chunks_embedded / tally.chunks_to_embed if tally.chunks_to_embed else 0.0
        self.job_progress.set(0.1 * read + 0.9 * embedded)
        self.job_files.labels("total").set(tally.files_total)
        self.job_files.labels("done").set(done)
        self.job_chunks.labels("to_embed").set(tally.chunks_to_embed)
        self.job_chunks.labels("embedded").set(tally.chunks_embedded)


def build_telemetry(settings: Settings) -> TelemetryConfig:
    """FastAPI's own spans: routes, statuses and times. No logs, which would hold what exceptions say."""
    endpoint = settings.otel_exporter_otlp_endpoint
    if endpoint is None:
        return {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise InputError(
            "OTEL_EXPORTER_OTLP_ENDPOINT is set, and OpenTelemetry is not installed",
            "Run: pip install 'askbook[telemetry]'",
        ) from error
    provider = TracerProvider(resource=Resource.create({"service.name": "askbook"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces")))
    return {"tracer_provider": provider, "tracing": True, "metrics": False, "logs": False, "auto_configure": False}
