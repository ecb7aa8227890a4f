"""Seed 000: “`url` must be a valid URL format (https://...)”. Absolute where there is one, else null and why."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from api.service import QUESTION, RIGHT, build_settings, open_client, read_events

HERE = "http://127.0.0.1:8000"


def find_urls(body: Any) -> Iterator[tuple[str, Any, Any]]:
    """Every field named `url`, with the reason beside it."""
    if isinstance(body, dict):
        for name, value in body.items():
            if name in ("url", "read_url"):
                yield name, value, body.get("no_url")
            yield from find_urls(value)
    elif isinstance(body, list):
        for one in body:
            yield from find_urls(one)


CALLS: list[tuple[str, str, dict[str, Any] | None]] = [
    ("POST", "/ask", {"query": QUESTION}),
    ("POST", "/ask", {"query": "Which yeast do I need for the gripper?"}),
    ("POST", "/chat/run", {"message": QUESTION}),
    ("POST", "/search", {"text": QUESTION}),
    ("POST", "/v1/chat/completions", {"model": "askbook", "messages": [{"role": "user", "content": QUESTION}]}),
    ("GET", "/contents", None),
]


def test_without_a_base_url_an_address_is_the_servers(home: Path) -> None:
    with open_client(build_settings(home)) as client:
        for method, path, body in CALLS:
            answered = client.request(method, path, json=body)
            urls = list(find_urls(answered.json()))
            assert urls, path
            for _, url, why in urls:
                assert url.startswith(f"{HERE}/read/robots/") and why is None, (path, url)
        [source, *_] = client.post("/ask", json={"query": QUESTION}).json()["sources"]
        assert client.get(urlsplit(source["url"]).path).status_code == 200
        lesson = client.get(f"/lesson/{source['document_id']}").json()
        assert all(url.startswith(HERE) for _, url, _ in find_urls(lesson))


def test_an_address_that_was_shown_is_a_prefix_to_search_below(home: Path) -> None:
    with open_client(build_settings(home)) as client:
        shown = client.post("/search", json={"text": QUESTION}).json()["results"][0]["url"]
        for prefix in (shown, HERE, urlsplit(shown).path):
            found = client.post("/search", json={"text": QUESTION, "url_prefix": prefix}).json()["results"]
            assert found and found[0]["url"] == shown, prefix
        elsewhere = {"text": QUESTION, "url_prefix": f"{HERE}1/read"}
        assert client.post("/search", json=elsewhere).json()["results"] == []
        both = {"text": QUESTION, "url_prefix": "/read", "heading_prefix": "Robots"}
        assert client.post("/search", json=both).json()["filter_applied"] == "/read and Robots"


def test_a_stream_and_its_history_tell_whole_addresses(home: Path) -> None:
    with open_client(build_settings(home)) as client:
        streamed = client.post("/chat/stream", json={"message": QUESTION})
        events = list(read_events(iter(streamed.text.splitlines())))
        history = client.get(f"/session/{streamed.headers['X-Session-ID']}/history").json()
    for body in (*(event.data for event in events), history):
        assert all(url.startswith(HERE) for _, url, _ in find_urls(body))
    assert list(find_urls(events[-1].data)) and list(find_urls(history))


def test_the_address_that_is_set_wins(home: Path) -> None:
    settings = build_settings(home, askbook_public_url="https://ask.example.org/", askbook_local_owner=True)
    with open_client(settings) as client:
        [source, *_] = client.post("/ask", json={"query": QUESTION}).json()["sources"]
    assert source["url"].startswith("https://ask.example.org/read/robots/")


@pytest.mark.parametrize("host", ['evil.org"><script>', "evil.org/path", "evil org"])
def test_a_host_that_is_none_is_not_repeated(home: Path, host: str) -> None:
    with open_client(build_settings(home)) as client:
        answered = client.post("/search", json={"text": QUESTION}, headers={"Host": host})
    assert "evil" not in answered.text


def test_a_selected_text_has_no_address_and_says_so(home: Path) -> None:
    with open_client(build_settings(home)) as client:
        asked = client.post("/ask", json={"query": QUESTION, "selected_text": f"{RIGHT}. It is red."}).json()
        body = {"message": QUESTION, "selected_text": f"{RIGHT}. It is red."}
        streamed = client.post("/chat/stream", json=body)
        history = client.get(f"/session/{streamed.headers['X-Session-ID']}/history").json()
    events = [event.data for event in read_events(iter(streamed.text.splitlines()))]
    urls = list(find_urls([asked, *events, history]))
    assert len(urls) > 3
    for _, url, why in urls:
        assert url is None and "selected" in why


def test_in_the_terminal_there_is_no_address_without_one(home: Path) -> None:
    from typer.testing import CliRunner

    from askbook.cli.main import app

    asked = CliRunner().invoke(app, ["ask", QUESTION, "--json"], env={"ASKBOOK_HOME": str(home)})
    urls = list(find_urls(json.loads(asked.stdout)))
    assert urls and all(url is None and "ASKBOOK_PUBLIC_URL" in why for _, url, why in urls)
    env = {"ASKBOOK_HOME": str(home), "ASKBOOK_PUBLIC_URL": "https://ask.example.org"}
    asked = CliRunner().invoke(app, ["ask", QUESTION, "--json"], env=env)
    assert all(url.startswith("https://ask.example.org/read/") for _, url, _ in find_urls(json.loads(asked.stdout)))
