"""The terminal."""

import sys


def run() -> None:
    """Where the command begins: Ctrl+C while it still gathers its parts is an end, and no traceback."""
    try:
        from askbook.cli.main import run

        run()
    except KeyboardInterrupt:
        sys.exit(130)
