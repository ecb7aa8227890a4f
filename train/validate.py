"""Figures of a reader on sources it was never trained on."""

from __future__ import annotations

import json
import re
import string
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from choices import measure_choices, read_choices
from encoder import Reader
from features import SPAN_TOKENS, Deck, make_batches, open_tokenizer, to_windows
from fit import ANSWERABLE, RELEVANCE, SUPPORTED
from rows import HELD_SETS, HELD_SOURCES, Contrast, Row, is_for_calibration, read_contrast, read_questions

Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Read:
    """What a reader says of pairs of texts: the best window of each."""

    relevance: np.ndarray
    answerable: np.ndarray
    """The head's logit plus how far the best span is above none."""
    supported: np.ndarray
    spans: list[str]


ReadPairs = Callable[[Sequence[tuple[str, str]]], Read]


@torch.no_grad()
def read_pairs(reader: Reader, texts: Sequence[tuple[str, str]], device: str) -> Read:
    windows, of = to_windows(texts)
    tokenizer = open_tokenizer()
    offsets = {text: tokenizer.encode(text, add_special_tokens=False).offsets for text in {p for _, p in texts}}
    best = np.full((len(texts), 3), -1e9)
    spans = [""] * len(texts)
    reader.eval()
    # On a CPU one window at a time, as the product reads: int8 rounds by the largest value of a batch.
    batches = make_batches(windows, 100_000 if device == "cuda" else 1, None)
    for batch in Deck(windows, device).deal(batches):
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            scores, logits = reader(batch.ids, batch.types, batch.mask)
        null = logits[:, 0].sum(1)
        inside = (batch.types == 1) & batch.mask
        inside.scatter_(1, batch.mask.sum(1, keepdim=True) - 1, False)
        logits = logits.masked_fill(~inside[..., None], -1e4)
        length = logits.shape[1]
        ones = torch.ones(length, length, device=logits.device, dtype=torch.bool)
        band = ones.triu() & ~ones.triu(SPAN_TOKENS)
        both = (logits[:, :, None, 0] + logits[:, None, :, 1]).masked_fill(~band, -3e4)
        top, place = both.flatten(1).max(1)
        said = scores.cpu().numpy()
        answered = said[:, ANSWERABLE] + (top - null).cpu().numpy()
        for row, number in enumerate(batch.pairs.tolist()):
            at = of[number]
            best[at, RELEVANCE] = max(best[at, RELEVANCE], said[row, RELEVANCE])
            best[at, SUPPORTED] = max(best[at, SUPPORTED], said[row, SUPPORTED])
            if answered[row] > best[at, ANSWERABLE]:
                best[at, ANSWERABLE] = answered[row]
                begin = int(batch.types[row].argmax()) - windows.first[number]
                start, end = (x - begin for x in divmod(int(place[row]), length))
                found = offsets[texts[at][1]]
                spans[at] = texts[at][1][found[start][0] : found[end][1]] if 0 <= start <= end < len(found) else ""
    return Read(best[:, RELEVANCE], best[:, ANSWERABLE], best[:, SUPPORTED], spans)


def measure(read: ReadPairs, data: Path) -> Figures:
    contrast = read_contrast(data)
    held = [one for one in contrast if one.source in HELD_SOURCES and not one.twins]
    twins = [one for one in contrast if one.source in HELD_SOURCES and one.twins]
    figures: Figures = {"squad2": _measure_squad(read, data)}
    figures |= _measure_contrast(read, held)
    figures["twins"] = _measure_twins(read, twins)
    choices = list(read_choices(held=True))
    found = read([(choice.question, one.text) for choice in choices for one in choice.excerpts])
    figures["choices"] = measure_choices(choices, found.answerable, found.relevance)
    for name in HELD_SETS:
        rows = [row for row in read_questions(data, held=True) if row.kind == name]
        if rows:
            found = read([(row.text, row.passage) for row in rows])
            figures[name] = auc(found.answerable, [bool(row.label) for row in rows])
    return figures


def fit_chances(read: ReadPairs, data: Path) -> dict[str, list[float]]:
    """Slope and shift of a logistic curve for each head, on passages kept for it."""
    kept = [one for one in read_contrast(data) if is_for_calibration(one)]
    rows = [row for one in kept for row in one.rows()]
    found = read([(row.text, row.passage) for row in rows])
    chances = {}
    for name, task, scores in (("answers", "question", found.answerable), ("supports", "statement", found.supported)):
        chosen = [at for at, row in enumerate(rows) if row.task == task]
        chances[name] = _fit_logistic(scores[chosen], np.array([rows[at].label for at in chosen]))
    return chances


def _fit_logistic(scores: np.ndarray, labels: np.ndarray) -> list[float]:
    slope, shift = torch.zeros(1, requires_grad=True), torch.zeros(1, requires_grad=True)
    x, y = torch.tensor(scores, dtype=torch.float32), torch.tensor(labels, dtype=torch.float32)
    weight = torch.where(y == 1, 0.5 / y.sum(), 0.5 / (1 - y).sum())

    def loss() -> torch.Tensor:
        return torch.nn.functional.binary_cross_entropy_with_logits(slope * x + shift, y, weight, reduction="sum")

    _minimise(loss, [slope, shift])
    return [round(slope.item(), 4), round(shift.item(), 4)]


def _minimise(loss: Callable[[], torch.Tensor], parameters: list[torch.Tensor]) -> None:
    optimizer = torch.optim.LBFGS(parameters, max_iter=200)

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        return value

    optimizer.step(step)  # pyright: ignore[reportArgumentType]


# --- the sets -------------------------------------------------------------------------------------


def _measure_squad(read: ReadPairs, data: Path) -> Figures:
    asked = [
        (question["question"], paragraph["context"], [answer["text"] for answer in question["answers"]])
        for article in json.loads((data / "dev-v2.0.json").read_text(encoding="utf-8"))["data"]
        for paragraph in article["paragraphs"]
        for question in paragraph["qas"]
    ]
    found = read([(question, passage) for question, passage, _ in asked])
    answered = np.array([bool(answers) for *_, answers in asked])
    f1 = np.array([best_f1(span, answers) for span, (*_, answers) in zip(found.spans, asked, strict=True)])
    return {"n": len(asked), "auc": auc(found.answerable, answered), "span_f1": round(float(f1[answered].mean()), 4)}


def _measure_contrast(read: ReadPairs, held: Sequence[Contrast]) -> Figures:
    rows = [row for one in held for row in one.rows()]
    found = read([(row.text, row.passage) for row in rows])
    alone = read([(row.text, "") for row in rows])
    asked = np.array([row.task == "question" for row in rows])
    label = np.array([row.label for row in rows])
    answered = np.flatnonzero(asked & (label == 1))
    f1 = [best_f1(found.spans[at], [rows[at].passage[slice(*rows[at].span or ())]]) for at in answered]
    stated, questions = np.flatnonzero(~asked), np.flatnonzero(asked)
    words = [round(overlap(row) * 20) for row in rows]
    balanced = stated[_balance(label[stated], [words[at] for at in stated])]
    return {
        "answered": {
            "n": int(asked.sum()),
            "auc": auc(found.answerable[asked], label[asked]),
            "span_f1": round(float(np.mean(f1)), 4),
            "question_alone": auc(alone.answerable[asked], label[asked]),
        },
        "supported": _measure_support([rows[at] for at in stated], found.supported[stated])
        | {"claim_alone": auc(alone.supported[stated], label[stated])},
        "balanced": _measure_support([rows[at] for at in balanced], found.supported[balanced]),
        "without_style": _measure_without_style(rows, questions, stated, found, alone),
    }


def _measure_without_style(
    rows: Sequence[Row], questions: np.ndarray, stated: np.ndarray, found: Read, alone: Read
) -> Figures:
    """Where neither the words of a text nor those it shares with its passage tell which is which."""
    figures: Figures = {}
    for name, chosen, read, unread in (
        ("answered", questions, found.answerable, alone.answerable),
        ("supported", stated, found.supported, alone.supported),
    ):
        some = [rows[at] for at in chosen]
        label = np.array([row.label for row in some])
        style = _guess_by_style(some)
        deciles = np.searchsorted(np.quantile(style, np.linspace(0.1, 0.9, 9)), style)
        kept = _balance(label, [(round(overlap(row) * 10), int(ten)) for row, ten in zip(some, deciles, strict=True)])
        at, label = chosen[kept], label[kept]
        figures[name] = {
            "style_auc": auc(style, [row.label for row in some]),
            "style_auc_kept": auc(style[kept], label),
            "alone": auc(unread[at], label),
        }
        figures[name] |= (
            _measure_support([rows[one] for one in at], read[at])
            if name == "supported"
            else {
                "n": len(at),
                "overlap_auc": auc([overlap(rows[one]) for one in at], label),
                "auc": auc(read[at], label),
            }
        )
    return figures


def _guess_by_style(rows: Sequence[Row], folds: int = 5) -> np.ndarray:
    """What words and pairs of words alone say of a text: a linear classifier, fitted to texts about other passages."""
    passages = {passage: number for number, passage in enumerate(sorted({row.passage for row in rows}))}
    fold = np.array([passages[row.passage] % folds for row in rows])
    label = torch.tensor([float(row.label or 0) for row in rows])
    texts = [Counter(_list_words(row.text)) for row in rows]
    said = np.zeros(len(rows))
    for held in range(folds):
        train = np.flatnonzero(fold != held)
        counts = Counter(word for at in train for word in texts[at])
        known = {word: number for number, word in enumerate(word for word, n in counts.items() if n > 1)}
        x = torch.zeros(len(rows), len(known))
        for at, words in enumerate(texts):
            x[at, [known[word] for word in words if word in known]] = 1.0
        weights, shift = _fit_words(x[train], label[train])
        test = np.flatnonzero(fold == held)
        said[test] = (x[test] @ weights + shift).numpy()
    return said


def _fit_words(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    weights, shift = torch.zeros(x.shape[1], requires_grad=True), torch.zeros(1, requires_grad=True)

    def loss() -> torch.Tensor:
        misfit = torch.nn.functional.binary_cross_entropy_with_logits(x @ weights + shift, y)
        return misfit + 0.002 * weights.square().sum()

    _minimise(loss, [weights, shift])
    return weights.detach(), shift.detach()


def _list_words(text: str) -> list[str]:
    words = re.findall(r"[a-z0-9_']+", text.lower())
    return [*words, *map(" ".join, pairwise(words))]


def _measure_support(rows: Sequence[Row], scores: np.ndarray) -> Figures:
    label = np.array([row.label for row in rows])
    kept = {share: np.quantile(scores[label == 1], 1 - share) for share in (0.9, 0.95)}
    by_kind = defaultdict(list)
    for row, score in zip(rows, scores, strict=True):
        if not row.label:
            by_kind[row.kind].append(score < kept[0.9])
    return {
        "n": len(rows),
        "overlap_auc": auc([overlap(row) for row in rows], label),
        "auc": auc(scores, label),
        "caught_at_90": round(float((scores[label == 0] < kept[0.9]).mean()), 4),
        "caught_at_95": round(float((scores[label == 0] < kept[0.95]).mean()), 4),
        "kinds": {kind: [round(float(np.mean(caught)), 3), len(caught)] for kind, caught in sorted(by_kind.items())},
    }


def _measure_twins(read: ReadPairs, held: Sequence[Contrast]) -> Figures:
    """The share of pairs whose true statement is above its false twin, and all statements together."""
    pairs = [(one.text, true, false) for one in held for true, false, _ in one.twins]
    if not pairs:
        return {}
    true = read([(statement, text) for text, statement, _ in pairs]).supported
    false = read([(statement, text) for text, _, statement in pairs]).supported
    labels = [1] * len(pairs) + [0] * len(pairs)
    return {
        "n": len(pairs),
        "above": round(float((true > false).mean()), 4),
        "auc": auc(np.concatenate([true, false]), labels),
    }


def _balance(labels: np.ndarray, likeness: Sequence[Hashable]) -> np.ndarray:
    """As many true as false texts of each likeness."""
    bins = defaultdict(lambda: ([], []))
    for at, (label, alike) in enumerate(zip(labels, likeness, strict=True)):
        bins[alike][label].append(at)
    chosen = []
    for false, true in bins.values():
        size = min(len(false), len(true))
        chosen += false[:size] + true[:size]
    return np.array(sorted(chosen))


# --- measures -------------------------------------------------------------------------------------


def auc(scores: Sequence[float] | np.ndarray, labels: Sequence[bool | int] | np.ndarray) -> float:
    """The chance that a true one is above a false one; a tie counts half."""
    scores, positive = np.asarray(scores, dtype=float), np.asarray(labels) == 1
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    rank = (np.cumsum(counts) - (counts - 1) / 2)[place]
    n = positive.sum()
    return round(float((rank[positive].sum() - n * (n + 1) / 2) / (n * (len(scores) - n))), 4)


def overlap(row: Row) -> float:
    words = set(re.findall(r"[a-z0-9_]{3,}", row.text.lower()))
    return len(words & set(re.findall(r"[a-z0-9_]{3,}", row.passage.lower()))) / max(1, len(words))


def best_f1(answer: str, known: Sequence[str]) -> float:
    return max((_f1(_plain(answer), _plain(one)) for one in known), default=0.0)


def _f1(a: list[str], b: list[str]) -> float:
    common = sum((Counter(a) & Counter(b)).values())
    return 2 * common / (len(a) + len(b)) if common else 0.0


def _plain(text: str) -> list[str]:
    bare = "".join(char for char in text.lower() if char not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", bare).split()
