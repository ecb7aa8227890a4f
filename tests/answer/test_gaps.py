"""Open questions of one meaning are one gap, told with the section that should have answered."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from askbook.answer.gaps import COMMENTS, VARIANTS, find_gaps
from askbook.domain import NearSection, OpenQuestion
from askbook.errors import EmbedderUnavailable
from askbook.index.embedders.base import Embedder, Vector
from askbook.index.embedders.minilm import MiniLM

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LIDAR = NearSection("Sensors › Lidar", "/read/b/lidar#lidar", "lidar.md", "p1")
CAMERA = NearSection("Sensors › Camera", "/read/b/camera", "camera.md", "p2")

MEANINGS = [
    ["How do I calibrate the lidar?", "What are the steps of lidar calibration?", "calibrating a lidar sensor"],
    ["What is the price of the robot?", "How much does the robot cost?"],
    ["Who wrote this book?", "Who is the author?"],
    ["How do I train a reinforcement learning policy?", "training a policy with reinforcement learning"],
]


class Down:
    """An embedding service that does not answer."""

    name, dimension = "down", 3

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        raise EmbedderUnavailable("the service does not answer")

    async def embed_query(self, text: str) -> Vector:
        raise EmbedderUnavailable("the service does not answer")

    async def close(self) -> None:
        pass


def asked(text: str, minute: int = 0, nearest: NearSection | None = LIDAR, **more: object) -> OpenQuestion:
    given = {"book_id": "b", "own_words": text, "refused": "not_in_book", "unhelpful": False, "comment": None, **more}
    return OpenQuestion(text=text, asked_at=NOON + timedelta(minutes=minute), nearest=nearest, **given)  # pyright: ignore[reportArgumentType]


async def test_questions_of_one_meaning_are_one_gap() -> None:
    embedder = MiniLM()
    gaps = await find_gaps([asked(text) for group in MEANINGS for text in group], embedder)
    await embedder.close()
    assert {frozenset((gap.question, *gap.variants)) for gap in gaps} == {frozenset(group) for group in MEANINGS}
    assert [gap.count for gap in gaps] == [3, 2, 2, 2]


@pytest.mark.parametrize("embedder", [None, Down()])
async def test_without_vectors_words_decide(embedder: Embedder | None) -> None:
    texts = ["How do I calibrate the lidar?", "lidar calibration steps", "Who wrote this book?", "??"]
    gaps = await find_gaps([asked(text) for text in texts], embedder)
    assert sorted(gap.count for gap in gaps) == [1, 1, 2]


async def test_the_same_words_are_one_wording() -> None:
    (gap,) = await find_gaps(
        [asked("What is X?", 1), asked("what is  x", 3), asked("What is X ?!", 2)],
        None,
    )
    assert (gap.question, gap.count, gap.variants) == ("what is  x", 3, ())
    assert gap.last_asked == NOON + timedelta(minutes=3)


async def test_the_section_that_was_nearest_most_often_should_have_said_it() -> None:
    near = [LIDAR, CAMERA, CAMERA, None]
    (gap,) = await find_gaps([asked("What is X?", at, one) for at, one in enumerate(near)], None)
    assert gap.section == CAMERA
    (gap,) = await find_gaps([asked("What is X?", at, one) for at, one in enumerate([LIDAR, CAMERA])], None)
    assert gap.section == CAMERA
    (gap,) = await find_gaps([asked("What is X?", nearest=None)], None)
    assert gap.section is None


async def test_what_is_asked_most_comes_first_and_a_book_is_by_itself() -> None:
    once = [asked("Who wrote this?", 9), asked("Where is the index?", 5)]
    twice = [asked("What is X?", 1), asked("What is X?", 2), asked("What is X?", 3, book_id="other")]
    gaps = await find_gaps(once + twice, None)
    assert [(gap.book_id, gap.question, gap.count) for gap in gaps] == [
        ("b", "What is X?", 2),
        ("b", "Who wrote this?", 1),
        ("b", "Where is the index?", 1),
        ("other", "What is X?", 1),
    ]


async def test_thumbs_and_comments_are_told() -> None:
    said = [asked("What is X?", at, refused=None, unhelpful=True, comment=f"no {at}") for at in range(6)]
    words = [asked(f"what is x {'really ' * number}", 20) for number in range(1, 9)]
    gaps = await find_gaps([*said, *words, asked("What is X?", 30)], None)
    gap = next(gap for gap in gaps if gap.question == "What is X?")
    assert (gap.refused + gap.unhelpful, gap.unhelpful) == (gap.count, 6)
    assert gap.comments == ("no 5", "no 4", "no 3") and len(gap.comments) == COMMENTS
    assert all(len(gap.variants) <= VARIANTS for gap in gaps)


async def test_what_readers_wrote_in_their_threads_is_told() -> None:
    whole = "Lidar How far does it see? And through glass?"
    words = ["And through glass?", "through glass", "And through glass?"]
    (gap,) = await find_gaps([asked(whole, at, own_words=one) for at, one in enumerate(words)], None)
    assert (gap.question, gap.own_words) == (whole, ("And through glass?", "through glass"))
    (gap,) = await find_gaps([asked(whole)], None)
    assert gap.own_words == ()


async def test_no_question_is_no_gap() -> None:
    assert await find_gaps([], None) == []
