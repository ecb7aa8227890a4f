"""B5 and S7: a hostile book of every generator is ingested, searched, asked and read.

What it hides from its site stays hidden, what lies outside its folder stays there, nothing it says is run or fetched,
and each thing that was refused is named in a warning. The rest of the book answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from api.service import Service, build_settings, serve
from askbook.domain import Job
from askbook.wiring import open_askbook
from figures import Figure

pytestmark = [pytest.mark.row("B5"), pytest.mark.timeout(1800)]

BOOK, SECRET = "hostile", "zebrafinch-4711"
PAGE = "# The winch\n\nThe winch pulls with a force of 350 newtons. Its rope is 12 metres long.\n"
QUESTION, ANSWER = "With what force does the winch pull?", "350 newtons"
SLOWEST = 90.0
BOMB = "a: &a [x, x]\n" + "".join(f"b{n}: &b{n} [*{'a' if not n else f'b{n - 1}'}, *a]\n" for n in range(40))
SVG = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script><image href="{url}/p.png"/></svg>'
MDBOOK = "".join(f"- [x]({name}.md)\n" for name in ("a", "levers", "bomb", "link", "pipe", "../../secret"))
INCLUDES = (
    "{{{{#include {path}}}}}",
    '--8<-- "{path}"',
    "<<< {path}",
    "<!--@include: {path}-->",
    "```{{include}} {path}\n```",
    "```{{literalinclude}} {path}\n```",
    '{{{{< readfile file="{path}" >}}}}',
    "{{* {path} *}}",
    "import P from '{path}'\n\n<P />",
    "![secret]({path})",
)
OUTSIDE = ("../../secret.md", "../secret.md", "/etc/passwd", "{url}/evil.md", "link.md", "file:///etc/passwd")


def _hostile_page(url: str) -> str:
    """All that a page may try, whatever reads it."""
    includes = "\n\n".join(one.format(path=path.format(url=url)) for one in INCLUDES for path in OUTSIDE)
    formula = "$$" + r"\frac{1}{" * 2_000 + "x" + "}" * 2_000 + "$$"
    script = f'<script>fetch("{url}/x")</script><img src="{url}/p.png" onerror="alert(1)">\n\n{SVG.format(url=url)}'
    return (
        f"# Levers\n\nThe lever is 3 metres long.\n\n{includes}\n\n{script}\n\n{formula}\n\n[a](javascript:alert(1))\n"
    )


def _sites(url: str) -> dict[str, dict[str, str]]:
    """By generator: its own files, turned against whoever reads them."""
    run = f"(() => {{ require('fs').writeFileSync('proof', 'x'); fetch('{url}/run') }})()"
    circle = "```{toctree}\nindex\na\n../../secret\n```\n"
    return {
        "plain": {"askbook.toml": 'ignore = ["' + "**/" * 40 + 'x"]\n'},
        "mdbook": {"book.toml": "[book]\nsrc = 'src'\n", "src/SUMMARY.md": MDBOOK},
        "docusaurus": {
            "docusaurus.config.js": f"module.exports = {{title: {run}, presets: [['c', {{docs: {{path: '../..'}}}}]]}}",
            "docs/_category_.json": '{"label": "' + "x" * 100_000 + '"}',
        },
        "mkdocs": {"mkdocs.yml": f"site_name: X\n{BOMB}nav: [*b39, ../secret.md, a.md]\nINHERIT: mkdocs.yml\n"},
        "vitepress": {"docs/.vitepress/config.ts": f"import c from './config'\nexport default {{title: {run}, ...c}}"},
        "vuepress": {
            "docs/.vuepress/config.js": f"module.exports = {{title: {run}, themeConfig: {{sidebar: ['/../../']}}}}"
        },
        "hugo": {
            "hugo.yaml": f"baseURL: {url}\ntheme: [docsy]\ncontentDir: ../..\n{BOMB}",
            "content/_index.md": "+++\ntitle = " + "[" * 3_000 + "\n+++\n",
        },
        "sphinx": {"conf.py": f"import os; os.system('touch proof')\nproject = {SECRET!r}.upper\n", "index.md": circle},
        "jupyter": {"_config.yml": f"title: X\n{BOMB}", "_toc.yml": "format: jb-book\nroot: ../../secret\n"},
        "nextra": {"pages/_meta.json": "[" * 100_000, "theme.config.tsx": f"export default {{logo: {run}}}"},
        "starlight": {"astro.config.mjs": f"// starlight\nexport default {{title: {run}}}"},
    }


FOLDERS = {"mdbook": "src", "mkdocs": "docs", "docusaurus": "docs", "vitepress": "docs", "vuepress": "docs"} | {
    "hugo": "content",
    "nextra": "pages",
    "starlight": "src/content/docs",
}
SITES = tuple(_sites(""))


@contextlib.contextmanager
def _trap() -> Iterator[tuple[str, list[object]]]:
    """An address on this machine that a book names, and who called at it."""
    called: list[object] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def listen() -> None:
        with contextlib.suppress(OSError):
            while True:
                called.append(listener.accept()[1])

    threading.Thread(target=listen, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", called
    finally:
        listener.close()


def _write(root: Path, site: str, url: str, notebook: int) -> Path:
    (root / "secret.md").write_text(f"# Secret\n\nThe secret word is {SECRET}.\n")
    folder = root / "book"
    pages = folder / FOLDERS.get(site, "")
    files = {
        **{str(folder / name): text for name, text in _sites(url)[site].items()},
        str(pages / "a.md"): PAGE,
        str(pages / "levers.md"): _hostile_page(url),
        str(pages / "bomb.md"): f"---\n{BOMB}---\n# Bolts\n\nA bolt holds.\n",
        str(pages / "big.ipynb"): json.dumps({"cells": [{"cell_type": "markdown", "source": "x " * notebook}]}),
        str(pages / "evil.svg"): SVG.format(url=url),
    }
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    (pages / "link.md").symlink_to(root / "secret.md")
    (pages / "loop").symlink_to(folder)
    os.mkfifo(pages / "pipe.md")
    return folder


async def _ingest(home: Path, folder: Path) -> Job:
    async with open_askbook(build_settings(home)) as askbook:
        job = await askbook.jobs.submit(BOOK, str(folder), "incremental")
        return await askbook.worker.run_job(job.job_id)


def _read_everything(service: Service) -> list[str]:
    """The answer first; then what every door tells of the book."""
    with service.open_client(follow_redirects=True) as client:
        get: Callable[[str], str] = lambda path: client.get(path).raise_for_status().text  # noqa: E731
        told = [client.post("/ask", json={"query": QUESTION}).raise_for_status().text]
        for words in ("secret word", "lever", SECRET, "root daemon nologin", "bolt"):
            told.append(client.post("/search", json={"text": words, "limit": 20}).raise_for_status().text)
        told.append(get(f"/read/{BOOK}"))
        contents = get("/contents")
        for address in sorted(set(re.findall(rf'/read/{BOOK}/[^"#?]+', contents + "".join(told)))):
            told.append(get(address))
        for name in ("evil.svg", "../secret.md", "%2e%2e/secret.md", "%2Fetc%2Fpasswd"):
            picture = client.get(f"/picture/{BOOK}/{name}")
            assert picture.status_code in (400, 404), (name, picture.status_code)
        return [*told, contents]


@pytest.mark.row("S7")
@pytest.mark.parametrize("site", SITES)
def test_a_hostile_book(site: str, tmp_path: Path, torture: bool, figure: Figure) -> None:
    with _trap() as (url, called):
        folder = _write(tmp_path, site, url, 25_000_000 if torture else 10_000)
        started = time.monotonic()
        job = asyncio.run(_ingest(tmp_path / "home", folder))
        took = time.monotonic() - started
        assert job.status == "completed", job.error_message
        with serve(build_settings(tmp_path / "home")) as service:
            answer, *told = _read_everything(service)
        assert called == []
    assert ANSWER in answer, answer
    pages = "\n".join(told)
    assert "root:x:0:0" not in pages and f"secret word is {SECRET}" not in pages
    assert not re.search(r"<script>(?:fetch|alert)|<svg|onerror=\"|href=\"javascript:", pages)
    assert not (folder / "proof").exists() and not Path("proof").exists()
    named = {problem.source_file.rpartition("/")[2] for problem in job.problems}
    figure(f"B5: {site}: {took:.0f} s, {len(job.problems)} problems named", cases=1)
    assert {"link.md", "pipe.md", "bomb.md", "levers.md"} <= named, named
    assert took < SLOWEST
