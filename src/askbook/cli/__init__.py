"""The terminal."""

import gc
import os
import sys


def run() -> None:
    """Where the command begins. Ctrl+C during the imports ends it without a traceback."""
    # Imports make no garbage; the search for it takes a seventh of their time. `load_command` turns it on again.
    gc.disable()
    # To find plugins pydantic reads the metadata of every package; askbook has none.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        from askbook.cli.main import run

        run()
    except KeyboardInterrupt:
        sys.exit(130)
