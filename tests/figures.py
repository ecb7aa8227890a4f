"""What a test measured is told at the end of the run: `figure("L3: …", cases=300)`, with the fixture of that name.

What begins with the name of a row is told in its line of docs/reliability.md.
"""

from __future__ import annotations

from typing import Protocol


class Figure(Protocol):
    def __call__(self, text: str, cases: int = 0) -> None: ...
