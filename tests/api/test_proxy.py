"""A keyless server behind the nginx of docs/deploy.md, and one that was told nothing: all who come are strangers."""

from __future__ import annotations

import contextlib
import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from api.service import Service, build_settings, serve, wait_until
from askbook.domain import Scope

NGINX = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin:/opt/homebrew/bin")
DEPLOY = (Path(__file__).parents[2] / "docs" / "deploy.md").read_text(encoding="utf-8")
BARE = "server {\n    listen 443 ssl;\n    location / { proxy_pass http://127.0.0.1:8000; }\n}\n"

pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed here; make proxy installs it")


def _read_documented() -> str:
    [block] = re.findall(r"```nginx\n(.*?)```", DEPLOY, re.DOTALL)
    return block


def _make_certificate(folder: Path) -> tuple[Path, Path]:
    paths = folder / "a.pem", folder / "a.key"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=ask.example.org", "-days", "2"]
    subprocess.run([*made, "-out", str(paths[0]), "-keyout", str(paths[1])], check=True, capture_output=True)
    return paths


@contextlib.contextmanager
def _run_nginx(folder: Path, written: str, upstream: str) -> Iterator[str]:
    """With another port, certificate and address to pass to, and otherwise as it is written."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    certificate, key = _make_certificate(folder)
    block = re.sub(r"\n *ssl_certificate(?:_key)? [^\n]*", "", written)
    block = block.replace("listen 443 ssl;", f"listen 127.0.0.1:{port} ssl;").replace("http://127.0.0.1:8000", upstream)
    spots = "".join(f"{one}_temp_path {folder};\n" for one in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    config = folder / "nginx.conf"
    config.write_text(
        f"daemon off;\npid {folder}/pid;\nerror_log {folder}/error.log;\nevents {{}}\nhttp {{\naccess_log off;\n{spots}"
        f"ssl_certificate {certificate};\nssl_certificate_key {key};\n{block}}}\n"
    )
    process = subprocess.Popen([str(NGINX), "-p", str(folder), "-c", str(config)], stderr=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: process.poll() is not None or _listens(port))
        assert process.poll() is None, process.stderr and process.stderr.read()
        yield f"https://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serve(build_settings(tmp_path_factory.mktemp("home"), askbook_embedder="none")) as service:
        yield service


@contextlib.contextmanager
def _open(url: str) -> Iterator[httpx2.Client]:
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    with httpx2.Client(base_url=url, verify=trusting, timeout=10) as client:
        yield client


@pytest.mark.parametrize("written", [_read_documented(), BARE], ids=["documented", "bare"])
def test_nobody_comes_through_nginx_as_the_owner(service: Service, tmp_path: Path, written: str) -> None:
    assert httpx2.get(f"{service.url}/info").status_code == 200
    with _run_nginx(tmp_path, written, service.url) as url, _open(url) as client:
        assert client.get("/health").status_code == 200
        for host in ("ask.example.org", "127.0.0.1", "localhost", service.url.removeprefix("http://")):
            for path in ("/info", "/keys", "/metrics", "/sessions"):
                assert client.get(path, headers={"Host": host}).status_code == 401, (host, path)
            assert client.post("/keys", json={"name": "x", "role": "admin"}, headers={"Host": host}).status_code == 401


async def test_with_a_key_the_documented_one_serves(service: Service, tmp_path: Path) -> None:
    _, key = await service.app.state.askbook.keys.create("ann", "admin", Scope(""))
    with _run_nginx(tmp_path, _read_documented(), service.url) as url, _open(url) as client:
        headers = {"X-API-Key": key, "Host": "ask.example.org"}
        assert client.get("/info", headers=headers).status_code == 200
        kept = client.post("/read", headers=headers)
        assert kept.status_code == 204 and "secure" in kept.headers["set-cookie"].lower()
