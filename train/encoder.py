"""The encoders in PyTorch: BERT as the student, MPNet as the teacher, and the four heads that both have."""

from __future__ import annotations

import math
from typing import TypeVar

import torch
import torch.nn.functional as F
from bases import Arrays, count_layers, to_state
from torch import Tensor, nn

CLS, SEP = 101, 102
"""Ids of BERT's uncased word pieces. MPNet has the same pieces, four places further on."""
HEADS = ("relevance", "answerable", "supported")

Loaded = TypeVar("Loaded", bound="Reader")


class Layer(nn.Module):
    def __init__(self, width: int, attention_heads: int, inner: int, epsilon: float, dropout: float) -> None:
        super().__init__()
        self.attention_heads, self.dropout = attention_heads, dropout
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.i, self.u = nn.Linear(width, inner), nn.Linear(inner, width)
        self.n1, self.n2 = nn.LayerNorm(width, eps=epsilon), nn.LayerNorm(width, eps=epsilon)
        self.rounds = False
        """Whether weights and values are rounded as the exported file rounds them."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        batch, length, width = x.shape
        seen = mask[:, 0, -1, :, None]
        rounded = self._round(x, seen)
        q, k, v = (
            self._through(linear, rounded).view(batch, length, self.attention_heads, -1).transpose(1, 2)
            for linear in (self.q, self.k, self.v)
        )
        dropout = self.dropout if self.training else 0.0
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)
        mixed = mixed.transpose(1, 2).reshape(batch, length, width)
        mixed = self._through(self.o, self._round(mixed, seen))
        # What goes on to the next layer is as precise as the products are.
        x = self.n1(x + F.dropout(mixed, self.dropout, self.training)).to(mixed.dtype)
        wide = F.gelu(self._through(self.i, self._round(x, seen)))
        wide = self._through(self.u, self._round(wide, seen))
        return self.n2(x + F.dropout(wide, self.dropout, self.training)).to(wide.dtype)

    def _round(self, x: Tensor, seen: Tensor) -> Tensor:
        return round_values(x.float(), seen) if self.rounds else x

    def _through(self, linear: nn.Linear, x: Tensor) -> Tensor:
        return F.linear(x, round_weights(linear.weight), linear.bias) if self.rounds else linear(x)


def round_weights(matrix: Tensor) -> Tensor:
    """To seven bits, a scale for each output; the gradient passes as if nothing had been rounded."""
    scale = matrix.abs().amax(1, keepdim=True).clamp(min=1e-12) / 64
    return matrix + ((matrix / scale).round() * scale - matrix).detach()


def round_values(x: Tensor, seen: Tensor) -> Tensor:
    """To eight bits between the least and the largest value of the text; padding does not count."""
    known = x.detach().masked_fill(~seen, 0.0)
    least, most = known.amin((1, 2), keepdim=True), known.amax((1, 2), keepdim=True)
    scale = (most - least).clamp(min=1e-9) / 255
    zero = (-least / scale).round()
    rounded = (((x / scale).round() + zero).clamp(0, 255) - zero) * scale
    return x + (rounded - x).detach()


class Reader(nn.Module):
    """An encoder and its heads. `scores`: a logit for each of HEADS; `spans`: start and end logits of every token."""

    def __init__(
        self,
        layers: int,
        width: int,
        attention_heads: int,
        vocabulary: int,
        positions: int,
        epsilon: float,
        dropout: float,
    ) -> None:
        super().__init__()
        self.we, self.pe, self.te = (nn.Embedding(n, width) for n in (vocabulary, positions, 2))
        self.n = nn.LayerNorm(width, eps=epsilon)
        self.layers = nn.ModuleList(Layer(width, attention_heads, 4 * width, epsilon, dropout) for _ in range(layers))
        self.dropout = dropout
        self.span = nn.Linear(width, 2)
        for head in HEADS:
            setattr(self, head, nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)))

    def encode(self, ids: Tensor, types: Tensor, mask: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, ids: Tensor, types: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.encode(ids, types, mask)
        first = hidden[:, 0]
        return torch.cat([getattr(self, head)(first) for head in HEADS], dim=1).float(), self.span(hidden).float()

    def through_layers(self, x: Tensor, mask: Tensor) -> Tensor:
        x = F.dropout(self.n(x), self.dropout, self.training)
        for layer in self.layers:
            x = layer(x, mask)
        return x


class Bert(Reader):
    def __init__(self, layers: int = 12, width: int = 384, dropout: float = 0.1) -> None:
        super().__init__(layers, width, 12, 30522, 512, 1e-12, dropout)

    def encode(self, ids: Tensor, types: Tensor, mask: Tensor) -> Tensor:
        x = self.we(ids) + self.pe.weight[: ids.shape[1]] + self.te(types)
        return self.through_layers(x, mask[:, None, None, :].expand(-1, 1, ids.shape[1], -1))


class MPNet(Reader):
    """Its token types are new, and zero to begin with; its positions start at 2, and a bias tells tokens' distance."""

    def __init__(self, dropout: float = 0.1) -> None:
        super().__init__(12, 768, 12, 30527, 514, 1e-5, dropout)
        nn.init.zeros_(self.te.weight)
        self.distance = nn.Embedding(32, 12)

    def encode(self, ids: Tensor, types: Tensor, mask: Tensor) -> Tensor:
        ids = torch.where(ids == CLS, 0, torch.where(ids == SEP, 2, ids + 4))
        ids = torch.where(mask, ids, 1)
        length = ids.shape[1]
        x = self.we(ids) + self.pe.weight[2 : length + 2] + self.te(types)
        # Distances stay as they were learnt: a gradient for each would cost as much as the attention itself.
        bias = self.distance(_buckets(length, ids.device)).permute(2, 0, 1)[None].detach()
        bias = bias.masked_fill(~mask[:, None, None, :], -1e4)
        return self.through_layers(x, bias.to(torch.bfloat16) if ids.is_cuda else bias)


def _buckets(length: int, device: torch.device) -> Tensor:
    """T5's: near distances one by one, far ones by their logarithm, before and behind apart."""
    place = torch.arange(length, device=device)
    distance = place[:, None] - place[None, :]
    far = 8 + (torch.log(distance.abs().float().clamp(min=1) / 8) / math.log(16) * 8).long()
    return (distance < 0).long() * 16 + torch.where(distance.abs() < 8, distance.abs(), far.clamp(max=15))


def compile_layers(reader: Reader) -> None:
    """One compiled layer serves all of them, for every length: on a GPU that saves a third of the time."""
    # cuDNN plans each shape of a batch anew, which takes longer than its attention does.
    torch.backends.cuda.enable_cudnn_sdp(False)
    torch._dynamo.config.cache_size_limit = 64  # pyright: ignore[reportPrivateUsage]
    torch._dynamo.config.suppress_errors = True  # pyright: ignore[reportPrivateUsage]
    for layer in reader.layers:
        layer.compile(dynamic=True)


def load_bert(base: Arrays, dropout: float = 0.1) -> Bert:
    return _load(Bert(count_layers(base), base["embeddings.LayerNorm.weight"].shape[0], dropout), base)


def load_mpnet(base: Arrays) -> MPNet:
    return _load(MPNet(), base)


def _load(reader: Loaded, base: Arrays) -> Loaded:
    state = {name: torch.tensor(array) for name, array in to_state(base).items()}
    missing, unknown = reader.load_state_dict(state, strict=False)
    new = [name for name in missing if name.split(".")[0] not in (*HEADS, "span", "te")]
    if new or unknown:
        raise ValueError(f"the published weights do not fit the encoder: {new + unknown}")
    return reader
