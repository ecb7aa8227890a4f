"""The weights that come with askbook: they are the published ones, and they read."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator

import pytest

from askbook.onnx import TOKENIZER_SHA256, sha256_of
from askbook.reading.model import BUNDLED, BUNDLED_BYTES, BUNDLED_SHA256, bundled_weights, open_model
from askbook.reading.reader import Reader

BYTES_MAX = 36_000_000

PASSAGE = (
    "## Looking up a transform\n\nThe tf2 buffer keeps the transforms of the last ten seconds. "
    "A node that asks for an older one gets an ExtrapolationException.\n\n"
    "```python\nbuffer = Buffer(cache_time=Duration(seconds=30))\n```\n\n"
    "The listener fills the buffer from the topics `/tf` and `/tf_static`; static transforms never expire."
)
ELSEWHERE = (
    "Black tea wants boiling water and four minutes. Green tea is steeped at 75 degrees, or it becomes bitter. "
    "The leaves of both come from the same plant."
)
NEAR = (
    "A buffer is created once for each node, and a listener is attached to it. "
    "Several listeners may share a buffer, which saves memory on small machines."
)


@pytest.fixture(scope="module")
def weights_are_published() -> None:
    assert BUNDLED.is_file()
    assert sha256_of(BUNDLED) == BUNDLED_SHA256


@pytest.fixture
async def reader(weights_are_published: None) -> AsyncIterator[Reader]:
    reader = Reader(bundled_weights(), threads=1)
    yield reader
    await reader.close()


def test_the_file_is_one_that_git_and_a_wheel_can_carry() -> None:
    assert BUNDLED.stat().st_size == BUNDLED_BYTES <= BYTES_MAX


def test_the_file_says_how_it_is_read(weights_are_published: None) -> None:
    contract = open_model(bundled_weights(), threads=1).contract
    assert 320 <= contract.pair_tokens <= 512 and contract.question_tokens == 80
    assert contract.tokenizer == TOKENIZER_SHA256
    assert contract.answers[0] > 0 and contract.supports[0] > 0


async def test_a_passage_that_answers_stands_out(reader: Reader) -> None:
    there, near, elsewhere = await reader.read(
        "How long does the tf2 buffer keep transforms?", [PASSAGE, NEAR, ELSEWHERE]
    )
    assert there.answers > 0.5 > elsewhere.answers
    assert there.answers > near.answers
    assert there.relevance > elsewhere.relevance
    best = there.spans[0]
    assert "ten seconds" in PASSAGE[best.start : best.end]


async def test_the_answer_is_found_at_the_end_of_a_long_passage(reader: Reader) -> None:
    passage = f"{ELSEWHERE} " * 15 + PASSAGE
    (reading,) = await reader.read("How long does the tf2 buffer keep transforms?", [passage])
    assert reading.answers > 0.5
    assert "ten seconds" in passage[reading.spans[0].start : reading.spans[0].end]


async def test_true_statements_are_told_from_false_ones(reader: Reader) -> None:
    true = await reader.check("The buffer holds transforms for ten seconds.", [PASSAGE])
    verbatim = await reader.check("Static transforms never expire.", [PASSAGE])
    false = await reader.check("The buffer holds transforms for ten minutes.", [PASSAGE])
    foreign = await reader.check("The buffer holds transforms for ten seconds.", [ELSEWHERE])
    assert min(true, verbatim) > max(false, foreign)
    assert foreign < 0.5 < verbatim


async def test_a_long_statement_is_read_to_its_end(reader: Reader) -> None:
    true = (
        "The tf2 buffer keeps the transforms of the last ten seconds. Static transforms never expire. "
        "A node that asks for an older transform gets an ExtrapolationException. "
    )
    false = (
        "The listener deletes every transform from the buffer after ten minutes and publishes all of them to the "
        "topic of the laser scanner, so that green tea, which is steeped at 75 degrees on every small machine, never "
        "becomes bitter while the wheels of the robot are turning backwards."
    )
    model = open_model(bundled_weights(), threads=1)
    assert len(model.encode_statement(true)) == 1 < len(model.encode_statement(true + false))
    assert await reader.check(true, [PASSAGE]) > 0.5
    assert await reader.check(true + false, [PASSAGE]) < min(0.5, await reader.check(false, [PASSAGE]) + 0.1)


async def test_a_batch_reads_as_each_passage_alone(reader: Reader) -> None:
    """Int8 rounds by all that is run at once: what is beside a passage must not be."""
    question = "What happens when a transform is too old?"
    passages = [PASSAGE, NEAR, ELSEWHERE, "x", PASSAGE[:120]]
    together = await reader.read(question, passages)
    alone = Reader(bundled_weights(), threads=1)
    assert together == [reading for passage in passages for reading in await alone.read(question, [passage])]
    await alone.close()


async def test_any_text_is_read(reader: Reader) -> None:
    texts = ["", "\0", "\ud800", "x", "🤖", "バッファは変換を保持します。", "[CLS] [SEP]", "word " * 20_000]
    for question in ("", "Why?", "🤖\0\ud800", "word " * 500):
        for reading in await reader.read(question, texts):
            assert math.isfinite(reading.relevance) and 0.0 <= reading.answers <= 1.0
        assert 0.0 <= await reader.check(question, texts[:3]) <= 1.0
