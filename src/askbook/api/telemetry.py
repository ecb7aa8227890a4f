"""Traces for an OpenTelemetry collector, where one is named. Without one nothing is made and nothing is sent."""

from __future__ import annotations

from fastapi.telemetry import TelemetryConfig

from askbook.errors import InputError
from askbook.settings import Settings


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
