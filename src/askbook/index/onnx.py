"""ONNX models on this machine: a folder's files checked, a session and a tokenizer opened, failures translated."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from askbook.errors import AskbookError

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def check_present(failure: type[AskbookError], *files: Path) -> None:
    for file in files:
        if not file.is_file():
            raise failure(
                f"There is no {file.name} in the folder `{file.parent.name}`",
                "Put model.onnx and tokenizer.json into it.",
            )


def open_session(model: Path, threads: int, failure: type[AskbookError]) -> InferenceSession:
    """No threads given: one for each core."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or os.cpu_count() or 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
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
