"""Chances and logits."""

from __future__ import annotations

import math


def to_logit(chance: float) -> float:
    chance = min(max(chance, 1e-6), 1 - 1e-6)
    return math.log(chance / (1 - chance))


def to_chance(logit: float) -> float:
    return 1 / (1 + math.exp(-min(max(logit, -30.0), 30.0)))
