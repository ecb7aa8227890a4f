"""The demo book behind a real server, and a browser to read it with."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from api.service import Service, build_settings, serve
from builders import copy_home
from web.browsing import find_chromium, open_browser


@pytest.fixture(scope="module")
def site(ingested_demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    home = copy_home(ingested_demo, tmp_path_factory.mktemp("site"))
    with serve(build_settings(home)) as service:
        yield service


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    """For tests marked `pytest.mark.asyncio(loop_scope="module")`."""
    path = find_chromium()
    if path is None:
        pytest.skip("no chromium: apt-get install chromium")
    async with open_browser(path) as browser:
        yield browser
