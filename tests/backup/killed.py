"""Run as a process: saves or restores a backup, and kills itself at the named step.

killed.py save|restore HOME FILE STEP
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from askbook.backup.archive import open_archive, save_archive
from askbook.backup.holdings import read_holdings
from askbook.backup.restore import restore
from askbook.settings import Settings
from askbook.wiring import open_engines


async def main(what: str, home: Path, file: Path, deadly: str) -> None:
    def watch(step: str, _done: int, _total: int) -> None:
        if step == deadly:
            os.kill(os.getpid(), signal.SIGKILL)

    settings = Settings.model_validate({"askbook_home": home})
    if what == "save":
        async with open_engines(settings) as engines, read_holdings(engines) as holdings:
            await save_archive(file, holdings, watch)
    else:
        with open_archive(file, watch) as archive:
            async with open_engines(settings, archive.header.dimension) as engines:
                await restore(archive, engines, watch)


if __name__ == "__main__":
    what, home, file, step = sys.argv[1:]
    asyncio.run(main(what, Path(home), Path(file), step))
