"""ONNX models on this machine: checks their files, opens session and tokenizer, runs them in a thread."""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakValueDictionary

from askbook.errors import AskbookError, ShuttingDown, StorageError

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
TOKENIZER = Path(__file__).parent / "data" / "tokenizer.json"
"""BERT's uncased word pieces: every bundled model reads by them."""
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
STEP_BACK = 10
"""By how much an ingestion lowers its priority, so that answers come first."""

Model = TypeVar("Model")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Weights:
    """Two files and what they must hash to. No expected hash: a folder that the user named, and trusts."""

    name: str
    model: Path
    tokenizer: Path
    model_sha256: str | None = None
    tokenizer_sha256: str | None = None


def check_present(failure: type[AskbookError], *files: Path, hint: str | None = None) -> None:
    for file in files:
        if not file.is_file():
            names = " and ".join(needed.name for needed in files)
            raise failure(
                f"There is no {file.name} in the folder `{file.parent.name}`", hint or f"Put {names} into it."
            )


def check_published(weights: Weights, failure: type[AskbookError], of: str, hint: str) -> None:
    """`of`: the model, in words for the message."""
    expected = ((weights.model, weights.model_sha256), (weights.tokenizer, weights.tokenizer_sha256))
    for file, sha256 in expected:
        if sha256 is not None and sha256_of(file, failure) != sha256:
            raise failure(f"{file.name} of {of} is not the file that was published", hint)


def sha256_of(file: Path, failure: type[AskbookError] = StorageError) -> str:
    """Remembered for as long as the file stays as it is."""
    try:
        found = file.stat()
        return _sha256_of(file, found.st_mtime_ns, found.st_size)
    except OSError as error:
        raise failure(
            f"{file.name} in `{file.parent.name}` cannot be read", "Is it there, and may it be read?"
        ) from error


@lru_cache(maxsize=8)
def _sha256_of(file: Path, changed_at: int, size: int) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


_shared: WeakValueDictionary[tuple[object, ...], Any] = WeakValueDictionary()


def share(open_model: Callable[[Weights, int], Model], weights: Weights, threads: int) -> Model:
    """One model for all that use the same files, while any of them holds it. Changed files are checked again."""
    try:
        found = [file.stat() for file in (weights.model, weights.tokenizer)]
    except OSError:
        return open_model(weights, threads)  # Which says what is missing.
    key = (open_model, weights, threads, *((status.st_mtime_ns, status.st_size) for status in found))
    model = _shared.get(key)
    # Two that open it at the same time do not wait for each other; one is dropped.
    return _shared.setdefault(key, open_model(weights, threads)) if model is None else model


def open_session(model: Path, threads: int, failure: type[AskbookError]) -> InferenceSession:
    """No threads given: one for each core."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or os.cpu_count() or 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Windows are of any length: a plan of memory would be kept for each.
    options.enable_mem_pattern = False
    # Threads that spin while they wait cost a question three times its CPU, and everything else its share.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime raises a dozen unrelated types
        raise failure(f"The model in `{model.parent.name}` cannot be loaded", f"{model.name} is not sound.") from error


def open_tokenizer(file: Path, failure: type[AskbookError]) -> Tokenizer:
    """It neither cuts nor pads, whatever its file says."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # tokenizers raises plain Exception
        raise failure("The tokenizer cannot be read", f"{file.name} is not sound.") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def printable(text: str) -> str:
    """A lone surrogate cannot be handed to a tokenizer."""
    return text.encode("utf-8", "replace").decode("utf-8")


class Lane(Generic[Model]):
    """A model, loaded when first used, and the thread that runs it; with `steps_back` at low priority."""

    def __init__(self, name: str, load: Callable[[], Model], steps_back: bool = False) -> None:
        self._load = load
        self._thread = ThreadPoolExecutor(1, name, initializer=_step_back if steps_back else None)
        # Loading is slow: neither `close` nor `run` may wait for it.
        self._loading = threading.Lock()
        self._lock = threading.Lock()
        self._loaded: Model | None = None
        self._closed = False

    @property
    def loaded(self) -> Model | None:
        return self._loaded

    async def run(self, work: Callable[[Model], Result]) -> Result:
        with self._lock:
            self._check_open()
            job = self._thread.submit(lambda: work(self.load()))
        try:
            return await asyncio.wrap_future(job)
        except asyncio.CancelledError:
            asker = asyncio.current_task()
            if asker is None or not asker.cancelling():
                self._check_open()
            raise

    def load(self) -> Model:
        with self._loading:
            with self._lock:
                self._check_open()
                if self._loaded is not None:
                    return self._loaded
            loaded = self._load()
            with self._lock:
                self._check_open()
                self._loaded = loaded
            return loaded

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._loaded = None
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _check_open(self) -> None:
        if self._closed:
            raise ShuttingDown("askbook is shutting down", "Ask again in a moment.")


def _step_back() -> None:
    """Where the system knows priorities of threads. Those that the model starts for itself inherit it."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), STEP_BACK)
