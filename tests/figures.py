"""What a test measured is told at the end of the run: `figure("L3: …")`, with the fixture of that name."""

from __future__ import annotations

from collections.abc import Callable

Figure = Callable[[str], None]
