"""askbook in a terminal: a process, what it is typed, what it prints."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import processes

ASKBOOK = [sys.executable, "-c", "from askbook.cli.main import run; run()"]
OURS = ("ASKBOOK", "AGENT", "OPENAI", "COHERE", "QDRANT", "DATABASE")


@dataclass(frozen=True)
class Terminal:
    home: Path
    folder: Path

    def run(self, *arguments: str, typed: str = "", **settings: str) -> subprocess.CompletedProcess[str]:
        return self._start([*ASKBOOK, *arguments], typed, settings)

    def python(self, lines: str) -> subprocess.CompletedProcess[str]:
        return self._start([sys.executable, "-c", lines], "", {})

    def _start(self, command: list[str], typed: str, settings: dict[str, str]) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        return processes.run(
            command,
            cwd=self.folder,
            env={**kept, "ASKBOOK_HOME": str(self.home), "COLUMNS": "300", **settings},
            typed=typed,
        )
