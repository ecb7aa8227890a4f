"""Bad files, bad folders, a full disk: a clear message, the rest is ingested, nothing is lost."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from world import ingest, settings_for, write_book

from askbook.domain import Filters
from askbook.ingest.verify import verify_book
from askbook.wiring import open_askbook
from figures import Figure


def break_book(folder: Path) -> None:
    """Everything that people and accidents put into a folder."""
    outside = folder.parent / "outside.md"
    outside.write_text("# Secret\n\nThe secret word is hippopotamus.\n")
    (folder / "yaml-broken.md").write_text(
        "---\ntitle: [unclosed\n---\n# Broken\n\nThe broken page talks of walruses.\n"
    )
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "\n".join(
        f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    )
    (folder / "yaml-bomb.md").write_text(f"---\n{bomb}\n---\n# Bomb\n\nThe bomb page talks of otters.\n")
    (folder / "not-utf8.md").write_bytes(b"# Latin\n\nCaf\xe9 au lait.\n")
    (folder / "long-line.md").write_text("# Long\n\n" + "aardvark " * (10 * 2**20 // 9))
    nested = "".join(f"{'  ' * depth}- level {depth}\n" for depth in range(1000))
    (folder / "nested.md").write_text(f"# Nested\n\n{nested}\nAfter the lists come pelicans.\n")
    (folder / "leads-out.md").symlink_to(outside)
    (folder / "loop").symlink_to(folder)
    os.mkfifo(folder / "pipe.md")


async def test_bad_files_are_reported_and_the_rest_is_ingested(tmp_path: Path, figure: Figure) -> None:
    folder = write_book(tmp_path / "book")
    break_book(folder)
    # Keywords only: the ten megabytes of one line are about cutting, not about embedding.
    async with open_askbook(settings_for(tmp_path / "home", askbook_embedder="none")) as askbook:
        started = time.monotonic()
        job = await ingest(askbook, folder)
        took = time.monotonic() - started
        assert job.status == "completed", job.error_message
        assert job.files_processed + job.files_skipped == job.files_total
        said = {problem.source_file: problem for problem in job.problems}
        for file, skipped in (
            ("yaml-broken.md", False),
            ("yaml-bomb.md", False),
            ("not-utf8.md", True),
            ("leads-out.md", True),
            ("pipe.md", True),
        ):
            assert said[file].skipped is skipped, said[file]
        for words in ("walruses", "otters", "aardvark", "pelicans", "wiring of the gripper"):
            outcome = await askbook.searcher.search(words, Filters("book"))
            assert outcome.passages, words
        assert not (await askbook.searcher.search("hippopotamus", Filters("book"))).passages
        assert (await verify_book("book", askbook.ledger, askbook.index, embeds=False)).differences == ()
    figure(f"bad input: {job.files_total} files in {took:.1f} s, {len(job.problems)} problems named")


async def test_an_emptied_folder_does_not_empty_the_book(tmp_path: Path) -> None:
    """An unmounted disk or a failed checkout looks like a folder whose every file was deleted."""
    folder = write_book(tmp_path / "book")
    async with open_askbook(settings_for(tmp_path / "home", askbook_embedder="none")) as askbook:
        await ingest(askbook, folder)
        for file in folder.rglob("*.md"):
            file.unlink()
        job = await ingest(askbook, folder)
        assert job.status == "failed"
        assert "no Markdown" in (job.error_message or "")
        assert (await askbook.searcher.search("wiring of the gripper", Filters("book"))).passages


@pytest.mark.row("F2")
def test_a_full_disk_fails_clearly_and_a_retry_completes(tmp_path: Path) -> None:
    """On a real file system of a few megabytes, in a mount namespace of its own."""
    allowed = (
        subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode == 0 if _has_unshare() else False
    )
    if not allowed:
        pytest.skip("no mount namespace may be made here")
    folder = write_book(tmp_path / "book")
    for number in range(500):
        (folder / f"{number:03}-page.md").write_text(f"# Page {number}\n\n" + f"Words of page {number} on tea. " * 300)
    disk = tmp_path / "disk"
    disk.mkdir()
    askbook = f'{sys.executable} -c "from askbook.cli.main import run; run()"'
    script = f"""
        mount -t tmpfs -o size=105m tmpfs {disk} || exit 90
        export ASKBOOK_HOME={disk}/home ASKBOOK_EMBEDDER=none
        {askbook} ingest {folder}; echo "first: $?"
        {askbook} jobs 1 --json > {tmp_path}/job.json
        mount -o remount,size=600m {disk} || exit 91
        {askbook} ingest {folder}; echo "second: $?"
        {askbook} verify; echo "verify: $?"
    """
    run = subprocess.run(["unshare", "-rm", "bash", "-c", script], capture_output=True, text=True, timeout=300)
    told = run.stdout + run.stderr
    if run.returncode in (90, 91):
        pytest.skip(f"no file system may be mounted here: {run.stderr.strip()}")
    assert "first: 1" in run.stdout, told
    assert re.search(r"full|space", told), told
    assert "Traceback" not in told, told
    job = json.loads((tmp_path / "job.json").read_text())
    assert job["status"] == "failed" and job["files_processed"] > 0, job
    assert "second: 0" in run.stdout, told
    assert "verify: 0" in run.stdout, told


def _has_unshare() -> bool:
    from shutil import which

    return which("unshare") is not None
