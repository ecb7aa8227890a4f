"""What the image, the compose file and docs/deploy.md name is there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.core import TyperGroup

from askbook.cli.main import COMMANDS, load_command
from askbook.settings import setting_names

ROOT = Path(__file__).parents[1]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
DEPLOY = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
OURS = {name: service for name, service in COMPOSE["services"].items() if service["image"] == "askbook"}


def commands() -> dict[str, set[str]]:
    """Each command with its options, `keys create` among them."""

    def walk(group: TyperGroup, before: str = "") -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for name, command in group.commands.items():
            found |= {f"{before}{name}": {option for one in command.params for option in one.opts}}
            found |= walk(command, f"{name} ") if isinstance(command, TyperGroup) else {}
        return found

    return walk(TyperGroup(commands={name: load_command(name) for name in COMMANDS}))


def test_every_setting_in_the_compose_file_is_one() -> None:
    assert {"askbook", "worker", "tables"} == OURS.keys()
    for service in OURS.values():
        assert service["environment"].keys() <= setting_names().keys()
    assert set(re.findall(r"\b(ASKBOOK_[A-Z_]+)=", DOCKERFILE)) <= setting_names().keys()
    named = set(re.findall(r"`(?:[^`]*\s)?([A-Z]+_[A-Z_]+)[=`]", DEPLOY)) - {"REPEATABLE_READ"}
    assert named and named <= setting_names().keys() | {"POSTGRES_PASSWORD"}


@pytest.mark.parametrize("name", OURS)
def test_every_command_in_the_compose_file_is_one(name: str) -> None:
    [command] = OURS[name]["command"]
    assert command in commands()


def test_the_compose_file_holds_together() -> None:
    services = COMPOSE["services"]
    assert {"postgres", "redis", "qdrant"} <= services.keys()
    for service in services.values():
        assert service.get("depends_on", {}).keys() <= services.keys()
    assert services["qdrant"]["environment"]["QDRANT__TELEMETRY_DISABLED"] == "true"
    assert services["askbook"]["deploy"]["replicas"] == services["worker"]["deploy"]["replicas"] == 2
    # Nothing but the API is reached from outside, and that over a proxy on this machine.
    assert [name for name, service in services.items() if "ports" in service] == ["askbook"]
    assert all(port.startswith("127.0.0.1:") for port in services["askbook"]["ports"])
    text = (ROOT / "compose.yaml").read_text(encoding="utf-8")
    assert not re.search(r"(?i)(password|api_key): +[^$\s]", text), "secrets come from .env"


def test_docker_takes_the_compose_file() -> None:
    docker = shutil.which("docker")
    if not docker or subprocess.run([docker, "compose", "version"], capture_output=True).returncode:
        pytest.skip("docker compose is not installed here")
    secrets = {"POSTGRES_PASSWORD": "x", "QDRANT_API_KEY": "x"}
    checked = subprocess.run(
        [docker, "compose", "--file", "compose.yaml", "config", "--quiet"],
        cwd=ROOT,
        env=os.environ | secrets,
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stderr


def test_the_image_is_pinned_small_and_nobody_s() -> None:
    stages = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    assert stages == ["python:3.11-slim"] * 2
    assert "--require-hashes -r requirements.lock" in DOCKERFILE
    assert re.search(r"^USER \d+$", DOCKERFILE, re.MULTILINE)
    assert "/health" in DOCKERFILE.split("HEALTHCHECK")[1]
    extras = re.search(r"'\.\[(.+)\]'", DOCKERFILE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert extras and set(extras[1].split(",")) == project["project"]["optional-dependencies"].keys()
    allowed = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    for sources in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE):
        assert all((ROOT / one).exists() and f"!{one}" in allowed for one in sources.split())


# Those that are written by hand and name commands.
GUIDES = [
    "README.md",
    *(f"docs/{name}.md" for name in ("guide-authors", "guide-developers", "guide-readers", "deploy")),
]
GUIDES += [f"docs/{name}.md" for name in ("widget", "mcp", "python", "capacity")]


def commands_of(page: str) -> list[str]:
    """Each command line of a page, in a block or between backticks, without its `askbook`."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = "\n".join(re.findall(r"```bash\n(.+?)```", text, re.DOTALL))
    in_blocks = re.findall(r"^(?:.*[ /])?askbook ([a-z]+(?: [^\n`#]*)?)", blocks, re.MULTILINE)
    return in_blocks + re.findall(r"`askbook ([a-z][^`]*)`", text)


@pytest.mark.parametrize("page", GUIDES)
def test_every_command_in_a_page_is_one(page: str) -> None:
    known = commands()
    lines = commands_of(page)
    assert lines
    for line in lines:
        words = line.split()
        name = " ".join(words[:2]) if words[0] == "keys" else words[0]
        assert name in known, line
        assert {word for word in words if word.startswith("--")} <= known[name], line


def test_the_deploy_page_shows_how() -> None:
    assert len(commands_of("docs/deploy.md")) > 10


def test_whatever_make_installs_is_pinned_by_hash() -> None:
    lines = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    installs = [one for line in lines for one in re.split(r"&&|\|\|", line) if "pip install" in one]
    assert len(installs) >= 6
    # Of itself nothing is fetched.
    assert [
        one for one in installs if "--require-hashes" not in one and "--no-deps --no-build-isolation" not in one
    ] == []


def test_every_test_that_the_security_page_names_is_there() -> None:
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    named = re.findall(r"`(?:tests/)?((?:\w+/)?test_\w+\.py)`", page)
    assert len(named) > 15
    assert [name for name in named if not [*ROOT.glob(f"tests/**/{name}")]] == []
