"""The small-scope table of the seeds (lessons A, B and C), as points with vectors that can be checked by hand."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

import numpy as np

from askbook.domain import Chunk
from askbook.index.embedders.base import Vector
from askbook.index.keywords import keyword_text, weigh_chunk
from askbook.index.vectors.base import Point
from builders import make_chunks, make_lesson

DIMENSION = 16


def axis(*weights: float) -> Vector:
    vector = np.zeros(DIMENSION, dtype=np.float32)
    vector[: len(weights)] = weights
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def on_axis(number: int) -> Vector:
    return axis(*([0.0] * number + [1.0]))


def lesson_chunks(number: int, *texts: str, **changes: Any) -> list[Chunk]:
    return make_chunks(make_lesson(f"m/c/{number:02}-lesson.md", number=number, **changes), *texts)


def to_point(chunk: Chunk, dense: Vector | None = None, point_id: str | None = None) -> Point:
    return Point(point_id or chunk.id, chunk, weigh_chunk(keyword_text(chunk)), dense)


def small_scope() -> list[Chunk]:
    """Lesson A has 5 chunks of tiers 1, 1, 2, 3, 1; B has 3; C has 1."""
    a = lesson_chunks(
        1,
        *(f"alpha topic number {n}" for n in range(5)),
        module="ros2",
        chapter=1,
        layer="L1",
        facets={"robot": "arm", "year": 2024},
        url="https://example.org/ros2/alpha",
        title="Alpha",
    )
    a = [replace(chunk, hardware_tier=tier) for chunk, tier in zip(a, (1, 1, 2, 3, 1), strict=True)]
    b = lesson_chunks(
        2,
        *(f"beta topic number {n}" for n in range(3)),
        module="gazebo",
        chapter=3,
        hardware_tier=4,
        proficiency_level="B1",
        layer="L2",
        facets={"robot": "légged", "year": 2025},
        url="https://example.org/gazebo/beta",
        title="Beta › Überblick",
    )
    c = lesson_chunks(
        3,
        "gamma topic 日本語 🤖",
        module="isaac",
        chapter=7,
        hardware_tier=2,
        proficiency_level="C1",
        layer="L4",
        facets={"draft": True},
        url="https://example.org/ros2",
        title="Gamma",
    )
    return [*a, *b, *c]


def point_id(number: int) -> str:
    return str(uuid.UUID(int=number))
