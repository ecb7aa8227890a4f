"""The reading model's file: where it is, what its metadata says, and how it is run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field, FiniteFloat, TypeAdapter, ValidationError

from askbook.errors import ReaderUnavailable
from askbook.onnx import (
    INPUTS,
    TOKENIZER,
    TOKENIZER_SHA256,
    Weights,
    check_present,
    check_published,
    open_session,
    open_tokenizer,
    printable,
    sha256_of,
)
from askbook.reading.chances import to_chance
from askbook.reading.spans import Scores
from askbook.reading.windows import Asked, Pair, Place, Window, count_read, split_pieces

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Encoding, Tokenizer

BUNDLED = Path(__file__).parent / "data" / "reader.onnx"
BUNDLED_SHA256 = "edcb094d8f6e6e529fed69bef82785f7f7de23ccff4efa74eb2205153500b5c3"
BUNDLED_BYTES = 35_686_944
METADATA = "askbook_reader"
CHARACTERS_A_TOKEN = 8
"""Twice the usual. Texts are cut by it before they are tokenized, so that long ones cost no more."""
PIECES_MAX = 8
"""A statement of more pieces is not read."""

REINSTALL = "Install askbook anew, or set ASKBOOK_READER=none."
RETRAIN = "Take a reader.onnx that was exported by `make train`, or set ASKBOOK_READER=bundled."
CHOOSE = "Put reader.onnx into it, or set ASKBOOK_READER to bundled or none."


def bundled_weights(file: Path = BUNDLED, sha256: str = BUNDLED_SHA256, size: int = BUNDLED_BYTES) -> Weights:
    """The weights that come with askbook, if their size is right. Their hash is checked on loading."""
    if not file.is_file():
        raise ReaderUnavailable("The reading model is not installed", REINSTALL)
    if file.stat().st_size != size:
        raise ReaderUnavailable(f"{file.name} of the reading model is not the file that was published", REINSTALL)
    return Weights("bundled", file, TOKENIZER, sha256, TOKENIZER_SHA256)


def folder_weights(folder: Path) -> Weights:
    """With the folder's own tokenizer, or else the bundled one."""
    if not (folder / "reader.onnx").is_file():
        raise ReaderUnavailable(f"There is no reader.onnx in the folder `{folder.name}`", CHOOSE)
    tokenizer = folder / "tokenizer.json"
    return Weights(folder.name, folder / "reader.onnx", tokenizer if tokenizer.is_file() else TOKENIZER)


def _advise(weights: Weights) -> str:
    return RETRAIN if weights.model_sha256 is None else REINSTALL


# --- what a file says of itself -------------------------------------------------------------------


Curve = tuple[FiniteFloat, FiniteFloat]
"""Slope and shift: from a logit to a chance, as fitted on held-out data, for even odds: half of the statements are
true."""


@dataclass(frozen=True, slots=True)
class Contract:
    """`askbook_reader` in the metadata of the ONNX file."""

    name: str
    pair_tokens: Annotated[int, Field(ge=16, le=8192)]
    question_tokens: Annotated[int, Field(ge=1, le=4096)]
    answers: Curve
    supports: Curve
    tokenizer: str

    @property
    def passage_characters(self) -> int:
        return count_read(self.pair_tokens) * CHARACTERS_A_TOKEN

    @property
    def question_characters(self) -> int:
        return self.question_tokens * CHARACTERS_A_TOKEN


def bend(curve: Curve, logit: float) -> float:
    slope, shift = curve
    return to_chance(slope * logit + shift)


def read_contract(session: InferenceSession, weights: Weights) -> Contract:
    told = session.get_modelmeta().custom_metadata_map.get(METADATA)
    if told is None:
        raise _no_reader(weights, f"its metadata has no `{METADATA}`")
    try:
        contract = TypeAdapter(Contract).validate_json(told)
    except ValidationError as error:
        raise _no_reader(weights, f"`{METADATA}` in its metadata cannot be read") from error
    if contract.question_tokens > contract.pair_tokens // 2:
        raise _no_reader(weights, f"`{METADATA}` in its metadata leaves no room for a passage")
    if sha256_of(weights.tokenizer, ReaderUnavailable) != contract.tokenizer:
        raise ReaderUnavailable(
            f"The reading model in `{weights.model.parent.name}` was trained with another tokenizer",
            "Put the tokenizer.json that it was trained with beside reader.onnx.",
        )
    return contract


def _check_ends(session: InferenceSession, weights: Weights) -> None:
    given = {node.name: (node.type, len(node.shape)) for node in session.get_inputs()}
    made = {node.name: (node.type, len(node.shape)) for node in session.get_outputs()}
    wanted = {"scores": ("tensor(float)", 2), "spans": ("tensor(float)", 3)}
    if given != dict.fromkeys(INPUTS, ("tensor(int32)", 2)) or made != wanted:
        raise _no_reader(weights, "it has other inputs or outputs")


def _no_reader(weights: Weights, why: str) -> ReaderUnavailable:
    return ReaderUnavailable(
        f"{weights.model.name} in `{weights.model.parent.name}` is no reading model: {why}", _advise(weights)
    )


# --- the model ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Output:
    """The logits of one window."""

    relevance: float
    answerable: float
    supported: float
    null: float
    """Of the span that means "not here"."""
    starts: Scores
    ends: Scores
    """By token of the passage."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Model:
    """An open reading model, checked."""

    session: InferenceSession
    tokenizer: Tokenizer
    contract: Contract
    sha256: str
    marks: tuple[int, int]
    """[CLS] and [SEP]."""
    advice: str
    """What to do if it fails."""

    def encode_question(self, question: str) -> Asked:
        return self._encode(question[: self.contract.question_characters]).ids[: self.contract.question_tokens]

    def encode_statement(self, statement: str) -> list[Asked]:
        """In pieces that the model reads whole; none if that takes more than PIECES_MAX."""
        if len(statement) > PIECES_MAX * self.contract.question_characters:
            return []
        encoding = self._encode(statement)
        pieces = list(split_pieces(encoding.ids, encoding.word_ids, self.contract.question_tokens))
        return pieces if len(pieces) <= PIECES_MAX else []

    def encode(self, asked: Asked, passage: str) -> Pair:
        """Cuts the passage to what the model reads."""
        encoding = self._encode(passage[: self.contract.passage_characters])
        return Pair(asked, encoding.ids, _places_of_words(encoding))

    def _encode(self, text: str) -> Encoding:
        return self.tokenizer.encode(printable(text), add_special_tokens=False)

    def run(self, window: Window) -> Output:
        """One at a time: int8 rounding depends on the rest of a batch, and batches save no time here."""
        first, last = self.marks
        given = np.zeros((len(INPUTS), 1, len(window)), dtype=np.int32)
        given[0] = [first, *window.pair.asked, last, *window.pair.told[window.start : window.end], last]
        given[1] = 1
        given[2, 0, window.first :] = 1
        try:
            made: Any = self.session.run(["scores", "spans"], dict(zip(INPUTS, given, strict=True)))
        except Exception as error:  # onnxruntime raises a dozen unrelated types
            raise ReaderUnavailable("The reading model cannot be run", self.advice) from error
        scores, spans = (np.asarray(output, dtype=np.float64) for output in made)
        if scores.shape != (1, 3) or spans.shape != (1, len(window), 2):
            raise ReaderUnavailable("The reading model does not give three scores a pair and two a token", self.advice)
        if not np.isfinite(scores).all() or not np.isfinite(spans).all():
            raise ReaderUnavailable("The reading model gives something that is no number", self.advice)
        relevance, answerable, supported = map(float, scores[0])
        told = spans[0, window.first : len(window) - 1]
        return Output(relevance, answerable, supported, float(spans[0, 0].sum()), told[:, 0], told[:, 1])


def open_model(weights: Weights, threads: int) -> Model:
    bundled = REINSTALL if weights.model_sha256 else None
    check_present(ReaderUnavailable, weights.model, weights.tokenizer, hint=bundled)
    check_published(weights, ReaderUnavailable, "the reading model", REINSTALL)
    session = open_session(weights.model, threads, ReaderUnavailable)
    _check_ends(session, weights)
    contract = read_contract(session, weights)
    tokenizer = open_tokenizer(weights.tokenizer, ReaderUnavailable)
    # "[SEP]" in a passage is plain text.
    tokenizer.encode_special_tokens = True
    marks = tokenizer.encode("").ids
    if len(marks) != 2:
        raise ReaderUnavailable(
            "The tokenizer does not mark pairs with [CLS] and [SEP]", "Take one of the BERT family."
        )
    sha256 = sha256_of(weights.model, ReaderUnavailable)
    return Model(session, tokenizer, contract, sha256, (marks[0], marks[1]), _advise(weights))


def _places_of_words(encoding: Encoding) -> list[Place]:
    """A span begins and ends with a word, never inside one."""
    places: dict[int | None, Place] = {}
    for word, (start, end) in zip(encoding.word_ids, encoding.offsets, strict=True):
        first, last = places.get(word, (start, end))
        places[word] = min(first, start), max(last, end)
    return [places[word] for word in encoding.word_ids]
