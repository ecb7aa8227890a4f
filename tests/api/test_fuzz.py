"""B1: every operation of the OpenAPI document, called as it says and as it does not, on both databases: no 5xx.

schemathesis makes the calls from the document that the server itself serves. Into some of them go strings that no client
means to send: NUL, half of a character, controls.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import APIOperation, Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from answer.robots import LESSONS, write_lessons
from api.service import Service, build_settings, ingest, serve
from databases import fresh_postgres

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
ODD = ("\0", "a\0b", "\ud800", "x\udfff", "\x1b[31m", "\u202e", "\ufeff", "😀" * 300, "%00", "../../etc/passwd")
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
EACH, EACH_TORTURE = 12, 120
"""Calls for one operation, in one mode, on one database: 23 operations make 1,104 in all, or 11,040."""
SECONDS = 10.0
NO_KEY = {"X-API-Key": "", "Authorization": ""}
JSON = {"Content-Type": "application/json"}
QUIET = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large, HealthCheck.large_base_example)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    changes: dict[str, Any] = {"askbook_embedder": "none", "askbook_webhook_secret": "whsec-any"}
    if request.param == "postgresql":
        changes["database_url"] = asyncio.run(fresh_postgres(request.getfixturevalue("postgres_url")))
    folder: Path = tmp_path_factory.mktemp("fuzzed")
    chosen = build_settings(folder / "home", **changes)
    asyncio.run(ingest(chosen, write_lessons(folder / "robots", LESSONS)))
    with serve(chosen) as service:
        yield service


def test_no_call_is_a_5xx(service: Service, torture: bool) -> None:
    with service.open_client() as client:
        document = client.get("/openapi.json").json()
    schema = schemathesis.openapi.from_dict(document)
    answers: Counter[int] = Counter()
    slowest = 0.0
    with requests.Session() as session:
        for found in schema.get_all_operations():
            for mode in MODES:
                took = _fuzz(found.ok(), mode, service.url, session, answers, EACH_TORTURE if torture else EACH)
                slowest = max(slowest, took)
    told = ", ".join(f"{count} × {status}" for status, count in sorted(answers.items()))
    print(f"B1: {answers.total()} calls: {told}; the slowest took {slowest:.2f} s")
    assert not any(status >= 500 for status in answers)
    assert answers[200] and answers[400] and answers[404]
    assert slowest < SECONDS


def _fuzz(
    operation: APIOperation, mode: GenerationMode, url: str, session: requests.Session, answers: Counter[int], most: int
) -> float:
    slowest = 0.0

    @settings(max_examples=most, deadline=None, derandomize=True, database=None, suppress_health_check=QUIET)
    @given(case=operation.as_strategy(generation_mode=mode), odd=st.none() | st.sampled_from(ODD), at=st.integers(0, 9))
    def call(case: Case, odd: str | None, at: int) -> None:
        nonlocal slowest
        started = time.monotonic()
        # Without a key: on this machine there is none, and a wrong one would be all that is ever seen.
        response = case.call(base_url=url, session=session, headers=NO_KEY)
        case.validate_response(response, checks=CHECKS)
        answers[response.status_code] += 1
        slowest = max(slowest, time.monotonic() - started)
        if odd is not None and isinstance(case.body, dict):
            body = json.dumps(_replace_text(case.body, odd, at))
            spoilt = session.post(f"{url}{case.formatted_path}", body, headers={**NO_KEY, **JSON}, params=case.query)
            answers[spoilt.status_code] += 1
            assert spoilt.status_code < 500 and b"Traceback" not in spoilt.content, (body, spoilt.text)

    call()
    return slowest


def _replace_text(value: Any, odd: str, at: int) -> Any:
    """The at-th text of a body, or one near it, made odd."""
    places = list(_texts(value, ()))
    if not places:
        return value
    return _put(value, places[at % len(places)], odd)


def _texts(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, str):
        yield path
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, one in steps:
        yield from _texts(one, (*path, step))


def _put(value: Any, path: tuple[Any, ...], odd: str) -> Any:
    if not path:
        return odd
    copied = value.copy()
    copied[path[0]] = _put(value[path[0]], path[1:], odd)
    return copied
