"""The teacher learns from labels, the student from labels and from the teacher. Both by one loop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from encoder import HEADS, Reader
from features import NONE, Batch, Deck, Pairs, make_batches
from torch import Tensor

RELEVANCE, ANSWERABLE, SUPPORTED = range(len(HEADS))


@dataclass(frozen=True, slots=True)
class Schedule:
    epochs: float
    planned: float
    """The learning rate falls to nothing over so many epochs."""
    rate: float
    decay: float
    """Each layer learns so much slower than the one above it."""
    rows: int
    tokens: int
    """The most of a batch: rows, and tokens with their padding."""
    head_rate: float = 3.0
    warm_up: float = 0.06
    average: float = 0.9995
    """The weights kept are the mean over about the last 1 / (1 - average) steps."""
    pairwise: float = 1.0
    seed: int = 0


TEACHER = Schedule(epochs=2, planned=2, rate=5e-5, decay=0.93, rows=160, tokens=40_000)
# The third epoch of the pace is the one that rounds.
STUDENT = Schedule(epochs=2, planned=3, rate=2e-4, decay=0.9, rows=224, tokens=56_000)
# From where the student's second epoch ends, and as slow as its third would have been.
ROUNDING = Schedule(epochs=1, planned=1, rate=7e-5, decay=0.9, rows=224, tokens=56_000, warm_up=0.02)


@dataclass(frozen=True, slots=True)
class Taught:
    """What the teacher said of each pair: three logits, and for questions the logits of spans."""

    scores: np.ndarray
    spans: np.ndarray
    """Of every token of every pair, one pair after the other."""


def fit(
    reader: Reader,
    pairs: Pairs,
    schedule: Schedule,
    device: str,
    taught: Taught | None = None,
    keep: Callable[[dict[str, Tensor]], None] | None = None,
) -> None:
    """`reader` is changed in place and ends with the averaged weights; `keep` is given them after each epoch."""
    started = time.monotonic()
    per_epoch = len(make_batches(pairs, schedule.tokens, schedule.seed, schedule.rows))
    steps, planned = math.ceil(per_epoch * schedule.epochs), math.ceil(per_epoch * schedule.planned)
    optimizer = torch.optim.AdamW(_parameters(reader, schedule), lr=schedule.rate, fused=device == "cuda")
    kept = [parameter.detach().clone() for parameter in reader.parameters()]
    deck = Deck(pairs, device)
    soft = tuple(torch.from_numpy(one).to(device) for one in (taught.scores, taught.spans)) if taught else None
    reader.train()
    step = 0
    while step < steps:
        epoch = step // per_epoch
        batches = make_batches(pairs, schedule.tokens, schedule.seed + 1000 * epoch, schedule.rows)[: steps - step]
        for batch in deck.deal(batches):
            for group in optimizer.param_groups:
                group["lr"] = schedule.rate * group["scale"] * _pace(step / planned, schedule.warm_up)
            with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
                said, spans = reader(batch.ids, batch.types, batch.mask)
            loss = _hard_loss(batch, said, spans, schedule.pairwise)
            if soft:
                loss = 0.5 * loss + _soft_loss(batch, said, spans, soft[0][batch.pairs], soft[1][batch.tokens].float())
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(reader.parameters(), 1.0)
            optimizer.step()
            step += 1
            average = min(schedule.average, 1 - 10 / (10 + step))
            torch._foreach_lerp_(kept, [p.detach() for p in reader.parameters()], 1 - average)  # pyright: ignore[reportPrivateUsage]
            if step % 200 == 0 or step == steps:
                print(
                    f"  step {step} of {steps}, loss {loss.item():.3f}, {time.monotonic() - started:.0f} s", flush=True
                )
        if keep:
            keep(dict(zip((name for name, _ in reader.named_parameters()), kept, strict=True)))
    with torch.no_grad():
        for parameter, average in zip(reader.parameters(), kept, strict=True):
            parameter.copy_(average)
    reader.eval()


@torch.no_grad()
def teach(teacher: Reader, ranker: Reader, pairs: Pairs, device: str) -> Taught:
    """What the teacher says of every pair; how relevant a passage is, the ranker says."""
    deck = Deck(pairs, device)
    scores = torch.zeros(len(pairs), len(HEADS), device=device)
    spans = torch.zeros(int(deck.at[-1]), 2, dtype=torch.float16, device=device)
    teacher.eval()
    ranker.eval()
    for batch in deck.deal(make_batches(pairs, 160_000, None)):
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            said, spotted = teacher(batch.ids, batch.types, batch.mask)
            ranked, _ = ranker(batch.ids, batch.types, batch.mask)
        said[:, RELEVANCE] = ranked[:, RELEVANCE]
        scores[batch.pairs] = said
        spans[batch.tokens[batch.mask]] = spotted[batch.mask].clamp(-60, 60).half()
    return Taught(scores.cpu().numpy(), spans.cpu().numpy())


# --- losses ---------------------------------------------------------------------------------------


def _hard_loss(batch: Batch, said: Tensor, spans: Tensor, pairwise: float) -> Tensor:
    asked = batch.is_question
    logit = torch.where(asked, said[:, ANSWERABLE], said[:, SUPPORTED])
    label = batch.label
    known = label != NONE
    size = len(batch.pairs)
    loss = (F.binary_cross_entropy_with_logits(logit, label.clamp(0, 1), reduction="none") * known).sum() / size
    possible = _mask_spans(batch, spans)
    for side, place in enumerate((batch.start, batch.end)):
        loss = loss + 0.5 * F.cross_entropy(possible[..., side], place, ignore_index=NONE, reduction="sum") / size
    if pairwise:
        same = (batch.group[:, None] == batch.group[None, :]) & (batch.group != -1)[:, None]
        above = same & (label == 1)[:, None] & (known & (label < 1))[None, :]
        margin = F.softplus(logit[None, :] - logit[:, None]) * above
        # Each row counts once, however many it is held against.
        loss = loss + pairwise * (margin.sum(1) / above.sum(1).clamp(min=1)).sum() / size
    return loss


def _soft_loss(batch: Batch, said: Tensor, spans: Tensor, taught: Tensor, taught_spans: Tensor) -> Tensor:
    asked = batch.is_question
    size = len(batch.pairs)
    head = torch.where(asked, ANSWERABLE, SUPPORTED)[:, None]
    student, teacher = said.gather(1, head)[:, 0], taught.gather(1, head)[:, 0]
    loss = F.binary_cross_entropy_with_logits(student, teacher.sigmoid(), reduction="sum") / size
    far = (said[:, RELEVANCE] - taught[:, RELEVANCE]) ** 2
    loss = loss + 0.03 * (far * asked).sum() / size
    ours, theirs = (_mask_spans(batch, logits).log_softmax(1) for logits in (spans, taught_spans))
    apart = F.kl_div(ours, theirs, log_target=True, reduction="none").sum((1, 2))
    return loss + 0.5 * (apart * asked).sum() / size


def _mask_spans(batch: Batch, spans: Tensor) -> Tensor:
    """An answer stands in the passage; the first token means none."""
    possible = (batch.types == 1) & batch.mask
    possible[:, 0] = True
    return spans.masked_fill(~possible[..., None], -1e4)


def _pace(done: float, warm_up: float) -> float:
    return done / warm_up if done < warm_up else max(0.02, (1 - done) / (1 - warm_up))


def _parameters(reader: Reader, schedule: Schedule) -> list[dict[str, Any]]:
    groups: dict[tuple[float, float], dict[str, Any]] = {}
    depth = len(reader.layers)
    for name, parameter in reader.named_parameters():
        part = name.split(".")[0]
        if part == "layers":
            scale = schedule.decay ** (depth - int(name.split(".")[1]))
        else:
            scale = schedule.head_rate if part in (*HEADS, "span") else schedule.decay ** (depth + 1)
        decay = 0.01 if parameter.ndim > 1 else 0.0
        group = groups.setdefault((scale, decay), {"params": [], "scale": scale, "weight_decay": decay})
        group["params"].append(parameter)
    return list(groups.values())
