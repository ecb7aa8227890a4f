"""Two last steps for an exported reader, on one CPU core: what the product asks of it, and where it is weakest.

*Choosing*: of the excerpts that a search found, which one answers? `choices.jsonl.gz` holds questions to nineteen books
and the excerpts that askbook would read for each. *Telling*: which of two statements is true that differ in one thing?
Our own passages about things that do not exist have five such pairs each.

The lower layers stay as they are and run as the exported file runs them. What they make of every pair is kept, so that
the upper ones are trained in half an hour. A little of all that was learnt before goes along, so that it is not
unlearnt.
"""

from __future__ import annotations

import gzip
import json
import math
import random
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
import torch.nn.functional as F
from encoder import CLS, HEADS, SEP, Bert, Layer
from features import PAIR_TOKENS, QUESTION_TOKENS, SPAN_TOKENS, open_tokenizer
from fit import ANSWERABLE, RELEVANCE, SUPPORTED
from onnx import TensorProto, helper, numpy_helper
from rows import (
    HELD_SOURCES,
    OWN_SOURCE,
    Contrast,
    is_for_calibration,
    read_contrast,
    read_questions,
    shingles,
)
from tokenizers import Tokenizer
from torch import Tensor

CHOICES = Path(__file__).parent / "choices.jsonl.gz"
HELD_BOOKS = ("PX4/PX4-user_guide", "pola-rs/polars", "webpack/webpack.js.org")
"""Books of choices that are validated on, and never trained on."""
RATE, DECAY, HEAD_RATE, WARM_UP, AVERAGE = 1.2e-4, 0.85, 1.5, 0.06, 0.998
BATCH_TOKENS, LONGEST, CONTRAST_CHARACTERS, CONTRAST_ROWS = 7000, 330, 1500, 5200
SHORT_CHARACTERS, PUBLISHED = 1000, 2000
NEGATIVES, NEGATIVES_OF_ABSENT = 4, 3
"""The likeliest of the excerpts that do not answer are trained against."""
ANSWERS, RELEVANT, PLACE = 0.72, 0.23, 0.75
"""As the product weighs them when it chooses (`answer/librarian.py`)."""
USUAL_SLOPE = 0.2
"""Of the curve from a logit to a chance, about; each file has its own."""

State = dict[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class Step:
    frozen: int
    """So many layers stay as they are."""
    epochs: float
    apart: float
    """What it counts that the true statements about a passage are above the false ones."""


CHOOSING = Step(frozen=9, epochs=1.5, apart=0.0)
TELLING = Step(frozen=6, epochs=1.0, apart=1.0)


@dataclass(frozen=True, slots=True)
class Row:
    """A question or a statement beside a passage."""

    text: str
    passage: str
    label: float
    """1: answers, or supports; 0: does not; between: holds a part of the answer."""
    is_statement: bool = False
    place: int = 0
    """Of its passage in the search."""
    is_sure: bool = True
    """Somebody has read it. Else an excerpt without the words of the answer may answer all the same."""
    was_read: bool = False
    """The reader has learnt from it before: half of what it says of it stays its aim."""


Group = list[Row]
"""The rows of one question, or those of the statements about one passage."""


def read_choices(held: bool) -> list[Group]:
    with gzip.open(CHOICES, "rt", encoding="utf-8") as lines:
        texts = json.loads(next(lines))
        choices = [one for one in map(json.loads, lines) if (one["source"] in HELD_BOOKS) == held]
    return [
        [
            Row(one["question"], texts[text], label, place=place, is_sure=bool(label or (one["absent"] and same)))
            for text, place, label, same in one["excerpts"]
        ]
        for one in choices
    ]


def read_for_choosing(data: Path) -> list[Group]:
    """And statements and near misses about contrast passages that are no longer than an excerpt may be."""
    contrast = [one for one in _read_contrast(data) if len(one.text) <= CONTRAST_CHARACTERS]
    random.Random(3).shuffle(contrast)
    groups: list[Group] = []
    for one in contrast:
        if sum(map(len, groups)) < CONTRAST_ROWS:
            groups += _group_contrast(one)
    return [*read_choices(held=False), *groups]


def read_for_telling(data: Path) -> list[Group]:
    """All statements about our own passages, twice, and a little of everything else."""
    contrast = [one for one in _read_contrast(data) if len(one.text) <= SHORT_CHARACTERS]
    own = [group for one in contrast if one.source == OWN_SOURCE for group in _group_contrast(one)]
    others = [group for one in contrast if one.source != OWN_SOURCE for group in _group_contrast(one)]
    questions, statements = own[::2], own[1::2]
    return [
        *read_choices(held=False)[::12],
        *_read_published(data),
        *others[::16],
        *others[1::16],
        *questions[::2],
        *statements,
        *statements,
    ]


def _read_contrast(data: Path) -> list[Contrast]:
    return [one for one in read_contrast(data) if one.source not in HELD_SOURCES and not is_for_calibration(one)]


def _read_published(data: Path) -> list[Group]:
    """Questions of published sets, each by itself."""
    everything = read_contrast(data)
    held = {piece for one in everything if one.source in HELD_SOURCES for piece in shingles(one.text)}
    questions = [row for row in read_questions(data, held=False) if len(row.passage) <= SHORT_CHARACTERS]
    random.Random(3).shuffle(questions)
    known = (row for row in questions if held.isdisjoint(shingles(row.passage)))
    return [[Row(one.text, one.passage, float(one.label or 0), was_read=True)] for one in islice(known, PUBLISHED)]


def _group_contrast(one: Contrast) -> Iterator[Group]:
    """Its questions, then its statements."""
    for task in ("question", "statement"):
        rows = [row for row in one.rows() if row.task == task and row.label is not None]
        is_statement, was_read = task == "statement", one.source != OWN_SOURCE
        yield [Row(row.text, row.passage, float(row.label or 0), is_statement, was_read=was_read) for row in rows]


# --- the layers that stay -------------------------------------------------------------------------


@dataclass(slots=True)
class Known:
    """A row as the frozen layers leave it, and what the reader said of it before."""

    row: Row
    types: np.ndarray
    hidden: np.ndarray
    scores: np.ndarray
    spans: np.ndarray

    def __len__(self) -> int:
        return len(self.types)

    @property
    def rank(self) -> float:
        """How the product would order it, but for the span."""
        # The span's logits say much the same as the head's: both together are twice the one.
        answers, relevance = 2 * self.scores[ANSWERABLE], self.scores[RELEVANCE]
        return ANSWERS * USUAL_SLOPE * answers + RELEVANT * relevance - PLACE * math.log1p(self.row.place)


@dataclass(slots=True)
class Lower:
    """The exported file, with a window on its frozen layers."""

    file: Path
    frozen: int
    session: onnxruntime.InferenceSession = field(init=False)
    output: str = field(init=False)
    curve: tuple[float, float] = field(init=False)
    """A logit → that of a chance, as it was fitted for this file."""
    tokenizer: Tokenizer = field(init=False)

    def __post_init__(self) -> None:
        model = onnx.load(str(self.file))
        self.output = f"layers.{self.frozen - 1}.n2"
        model.graph.output.append(helper.make_tensor_value_info(self.output, TensorProto.FLOAT, None))
        told = json.loads({one.key: one.value for one in model.metadata_props}["askbook_reader"])
        self.curve = told["answers"][0], told["answers"][1]
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(model.SerializeToString(), options)
        self.tokenizer = open_tokenizer()

    def read(self, row: Row) -> Known:
        """One at a time: int8 rounds by what else is in a batch."""
        asked = self._encode(row.text)[:QUESTION_TOKENS]
        told = self._encode(row.passage)[: PAIR_TOKENS - 3 - len(asked)]
        ids = np.array([[CLS, *asked, SEP, *told, SEP]], dtype=np.int32)
        types = np.zeros_like(ids)
        types[0, len(asked) + 2 :] = 1
        given = {"input_ids": ids, "token_type_ids": types, "attention_mask": np.ones_like(ids)}
        scores, spans, hidden = self.session.run(["scores", "spans", self.output], given)
        return Known(row, types[0], hidden[0].astype(np.float16), scores[0], spans[0])

    def _encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False).ids


def read_state(file: Path) -> State:
    """The weights of an exported file, as they are after rounding: exported again they are the same."""
    stored = {one.name: numpy_helper.to_array(one) for one in onnx.load(str(file)).graph.initializer}
    state: State = {"pe.weight": stored["places_half"].astype(np.float32)}
    for name, array in stored.items():
        if name.endswith("_int8"):
            matrix, at = array * stored[name.replace("_int8", "_scale")], name.removesuffix("_int8")
            if at == "we":
                state["we.weight"] = matrix
            elif at.endswith(".qkv"):
                for part, weight in zip("qkv", np.split(matrix.T, 3), strict=True):
                    state[f"{at[:-3]}{part}.weight"] = weight
            else:
                state[f"{at}.weight"] = matrix.T
        elif name.endswith(".qkv.bias"):
            state |= {f"{name[:-8]}{part}.bias": bias for part, bias in zip("qkv", np.split(array, 3), strict=True)}
        elif name.endswith(".matrix"):
            state[name.replace(".matrix", ".weight")] = array.T
        elif re.search(r"\.(weight|bias)$", name):
            state[name] = array
    return state


# --- the layers that learn ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Batch:
    rows: Sequence[Row]
    hidden: Tensor
    types: Tensor
    mask: Tensor
    scores: Tensor
    spans: Tensor
    group: Tensor


def collate(groups: Sequence[Sequence[Known]]) -> Batch:
    known = [one for group in groups for one in group]
    length = -(-max(map(len, known)) // 16) * 16
    hidden, spans = torch.zeros(len(known), length, known[0].hidden.shape[1]), torch.zeros(len(known), length, 2)
    types, mask = torch.zeros(len(known), length), torch.zeros(len(known), length, dtype=torch.bool)
    for at, one in enumerate(known):
        size = len(one)
        hidden[at, :size] = torch.from_numpy(one.hidden.astype(np.float32))
        spans[at, :size] = torch.from_numpy(one.spans.astype(np.float32))
        types[at, :size] = torch.from_numpy(one.types)
        mask[at, :size] = True
    scores = torch.tensor(np.stack([one.scores for one in known]))
    group = torch.tensor([number for number, members in enumerate(groups) for _ in members])
    return Batch([one.row for one in known], hidden, types, mask, scores, spans, group)


def read_upper(reader: Bert, frozen: int, batch: Batch) -> tuple[Tensor, Tensor]:
    blind = torch.zeros(len(batch.rows), 1, 1, batch.mask.shape[1]).masked_fill(~batch.mask[:, None, None], -1e4)
    with torch.autocast("cpu", torch.bfloat16):
        x = batch.hidden
        for layer in reader.layers[frozen:]:
            x = _through(layer, x, blind.to(torch.bfloat16))
        scores = torch.cat([getattr(reader, head)(x[:, 0]) for head in HEADS], dim=1)
        return scores.float(), reader.span(x).float()


def _through(layer: Layer, x: Tensor, blind: Tensor) -> Tensor:
    """As the layer itself, without dropout: PyTorch's own attention takes several times as long on a CPU with it."""
    batch, length, width = x.shape
    parts = (
        part(x).view(batch, length, layer.attention_heads, -1).transpose(1, 2) for part in (layer.q, layer.k, layer.v)
    )
    q, k, v = parts
    weights = (q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5 + blind).softmax(-1).to(v.dtype)
    x = layer.n1(x + layer.o((weights @ v).transpose(1, 2).reshape(batch, length, width)))
    return layer.n2(x + layer.u(F.gelu(layer.i(x))))


def find_answers(batch: Batch, scores: Tensor, spans: Tensor, curve: Sequence[float]) -> tuple[Tensor, Tensor]:
    """The logit of the chance that each answers, as the product reckons it; the spans that are possible."""
    inside = (batch.types == 1) & batch.mask
    inside = inside.scatter(1, batch.mask.sum(1, keepdim=True) - 1, False)
    possible = spans.masked_fill(~inside[..., None], -1e4)
    ones = torch.ones(spans.shape[1], spans.shape[1], dtype=torch.bool)
    band = ones.triu() & ~ones.triu(SPAN_TOKENS)
    both = (possible[:, :, None, 0] + possible[:, None, :, 1]).masked_fill(~band, -3e4)
    slope, shift = curve
    return slope * (scores[:, ANSWERABLE] + both.flatten(1).amax(1) - spans[:, 0].sum(1)) + shift, possible


def _loss(batch: Batch, scores: Tensor, spans: Tensor, curve: Sequence[float], apart: float) -> Tensor:
    """Answers are learnt, support is learnt further, and relevance and spans stay what they were."""
    rows, size = batch.rows, len(batch.rows)
    answers, possible = find_answers(batch, scores, spans, curve)
    before, possible_before = find_answers(batch, batch.scores, batch.spans, curve)
    label = torch.tensor([row.label for row in rows])
    states = torch.tensor([row.is_statement for row in rows])
    sure = torch.tensor([row.is_sure for row in rows])
    part = (label > 0) & (label < 1)
    # An excerpt that nobody read may answer: what was thought of it counts too.
    aim = torch.where(sure, label, 0.5 * before.sigmoid())
    aim = torch.where(part, 0.6, aim)
    known = torch.tensor([row.was_read for row in rows])
    aim = torch.where(known, 0.5 * label + 0.5 * before.sigmoid(), aim)
    weight = torch.where(part, 0.3, torch.where(sure, 1.0, 0.7)) * ~states
    supported = scores[:, SUPPORTED]
    kept = F.kl_div(possible.log_softmax(1), possible_before.log_softmax(1), log_target=True, reduction="none").sum(
        (1, 2)
    )
    total = (F.binary_cross_entropy_with_logits(answers, aim, reduction="none") * weight).sum()
    total = total + (0.15 * kept * ~states).sum()
    total = total + (0.02 * (scores[:, RELEVANCE] - batch.scores[:, RELEVANCE]) ** 2 * ~states).sum()
    aim = torch.where(known, 0.5 * label + 0.5 * batch.scores[:, SUPPORTED].sigmoid(), 0.03 + 0.94 * label)
    total = total + 1.5 * (F.binary_cross_entropy_with_logits(supported, aim, reduction="none") * states).sum()
    total = total + apart * _tell_apart(supported, label, states, batch.group)
    place = torch.tensor([math.log1p(row.place) for row in rows])
    order = ANSWERS * answers + RELEVANT * scores[:, RELEVANCE].detach() - PLACE * place
    return total / size + 0.6 * _choose(order, label == 1, ~states & ~part, batch.group)


def _tell_apart(supported: Tensor, label: Tensor, states: Tensor, group: Tensor) -> Tensor:
    """Of the statements about one passage the true ones are to be above the false ones."""
    above = (group[:, None] == group) & states[:, None] & (label[:, None] == 1) & (label == 0)
    behind = F.softplus(supported - supported[:, None]) * above
    return (behind.sum(1) / above.sum(1).clamp(min=1)).sum()


def _choose(order: Tensor, right: Tensor, counts: Tensor, group: Tensor) -> Tensor:
    """How unlikely a right one is to be picked, where there is one beside others."""
    missed = order.new_zeros(())
    groups = int(group.max()) + 1
    for number in range(groups):
        members = (group == number) & counts
        chosen = order[members & right]
        if 0 < len(chosen) < int(members.sum()):
            missed = missed + order[members].logsumexp(0) - chosen.logsumexp(0)
    return missed / groups


def tune(reader: Bert, step: Step, groups: Sequence[Sequence[Known]], curve: Sequence[float], seed: int) -> None:
    """`reader` is changed in place, and ends with the averaged weights."""
    groups = [lean for group in groups if (lean := _leave_easy_out(group))]
    learning = _parameters(reader, step.frozen)
    optimizer = torch.optim.AdamW(learning, lr=RATE, weight_decay=0.01)
    parameters = [parameter for one in learning for parameter in one["params"]]
    kept = [parameter.detach().clone() for parameter in parameters]
    steps = math.ceil(step.epochs * len(_make_batches(groups, seed)))
    batches = (batch for epoch in range(math.ceil(step.epochs)) for batch in _make_batches(groups, seed + epoch))
    started = time.monotonic()
    reader.train()
    for number, members in enumerate(batches, start=1):
        if number > steps:
            break
        done = number / steps
        for one in optimizer.param_groups:
            one["lr"] = RATE * one["scale"] * min(done / WARM_UP, max(0.03, (1 - done) / (1 - WARM_UP)))
        batch = collate(members)
        loss = _loss(batch, *read_upper(reader, step.frozen, batch), curve, step.apart)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        torch._foreach_lerp_(kept, [p.detach() for p in parameters], 1 - min(AVERAGE, 1 - 10 / (10 + number)))  # pyright: ignore[reportPrivateUsage]
        if number % 100 == 0 or number == steps:
            print(f"  step {number} of {steps}, loss {loss.item():.3f}, {time.monotonic() - started:.0f} s", flush=True)
    with torch.no_grad():
        for parameter, average in zip(parameters, kept, strict=True):
            parameter.copy_(average)
    reader.eval()


def _leave_easy_out(group: Sequence[Known]) -> list[Known]:
    short = [one for one in group if len(one) <= LONGEST]
    if any(one.row.is_statement for one in group):
        return short
    right = [one for one in short if one.row.label]
    wrong = sorted((one for one in short if not one.row.label), key=lambda one: -one.rank)
    return [*right, *wrong[: NEGATIVES if right else NEGATIVES_OF_ABSENT]]


def _make_batches(groups: Sequence[Sequence[Known]], seed: int) -> list[list[Sequence[Known]]]:
    """Whole groups, near in length, at most so many tokens each with their padding."""
    rng = random.Random(seed)
    longest = [max(map(len, group)) for group in groups]
    order = sorted(range(len(groups)), key=lambda at: longest[at] * rng.uniform(0.8, 1.2))
    batches: list[list[Sequence[Known]]] = [[]]
    tokens = 0
    for at in order:
        cost = len(groups[at]) * longest[at]
        if batches[-1] and tokens + cost > BATCH_TOKENS:
            batches.append([])
            tokens = 0
        batches[-1].append(groups[at])
        tokens += cost
    rng.shuffle(batches)
    return batches


def _parameters(reader: Bert, frozen: int) -> list[dict]:
    groups = []
    for name, parameter in reader.named_parameters():
        part, _, rest = name.partition(".")
        number = int(rest.partition(".")[0]) if part == "layers" else 0
        learns = number >= frozen if part == "layers" else part in (*HEADS, "span")
        parameter.requires_grad = learns
        if learns:
            scale = DECAY ** (len(reader.layers) - 1 - number) if part == "layers" else HEAD_RATE
            groups.append({"params": [parameter], "scale": scale})
    return groups


# --- what it reaches ------------------------------------------------------------------------------


def measure_choices(groups: Sequence[Group], answerable: np.ndarray, relevance: np.ndarray) -> dict[str, float]:
    """Of questions that an excerpt answers, how often the first one does; how well absent facts are told apart.

    `answerable` and `relevance` are logits of all rows, in their order.
    """
    rows = [row for group in groups for row in group]
    place = np.log1p([row.place for row in rows])
    order = ANSWERS * USUAL_SLOPE * answerable + RELEVANT * relevance - PLACE * place
    ends = np.cumsum([len(group) for group in groups])
    first, answered, absent = [], [], []
    for end, group in zip(ends, groups, strict=True):
        members = slice(end - len(group), end)
        likeliest = np.sort(answerable[members])[::-1][:3]
        evidence = likeliest[0] + likeliest.mean()
        if any(row.label == 1 for row in group):
            first.append(group[int(order[members].argmax())].label == 1)
            answered.append(evidence)
        elif not any(row.label for row in group):
            absent.append(evidence)
    bar = np.quantile(answered, 0.05)
    return {
        "questions": len(first),
        "first answers": float(np.mean(first)),
        "absent": len(absent),
        "absent refused where .05 are refused by mistake": float(np.mean(np.array(absent) < bar)),
    }
