"""The reader on real ONNX files and the real tokenizer: what it says, checked by a plain reading of its contract."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_readers import CONTRACT, COUNTING, MADE_UP, MOODY, SLOW, write_reader
from tokenizers import Tokenizer

from askbook.errors import ShuttingDown
from askbook.onnx import INPUTS, TOKENIZER
from askbook.reading.model import PIECES_MAX, Model, folder_weights, open_model
from askbook.reading.reader import Reader, Reading
from onnx_files import Nodes

Build = Callable[..., Reader]

QUESTION = "How long does the buffer keep transforms?"
ANSWER = "The tf2 buffer keeps transforms for ten seconds."
FILLER = " ".join(f"Sentence number {n} is about weather in a harbour." for n in range(150))
SCRIPTS = [
    "Буфер хранит преобразования десять секунд.",
    "バッファは変換を十秒間保持します。",
    "缓冲区将变换保留十秒钟。",
    "버퍼는 변환을 10초 동안 보관합니다.",
    "يحتفظ المخزن المؤقت بالتحويلات لمدة عشر ثوانٍ.",
    "המאגר שומר טרנספורמציות למשך עשר שניות.",
    "बफ़र दस सेकंड तक रूपांतरण रखता है।",
    "บัฟเฟอร์เก็บการแปลงไว้สิบวินาที",
    "Ο ενδιάμεσος χώρος κρατά μετασχηματισμούς.",
    "naïve Ünïcode ﬁne e\u0301 Ω ẞ İ",
    "🤖👩‍👩‍👧‍👦🏳️‍🌈 robots 🤖",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 \U000e0001 \u202eright to left\u202c \ufeff\u200b",
]
ODD = [
    "",
    " \n\t ",
    "\0",
    "a\0b \x07",
    "\ud800",
    "half a character \udfff and more",
    "\u0301" * 50,
    "x",
    "x" * 5000,
    "[CLS] [SEP] [PAD] [MASK] [UNK]",
    "```\ncode();\n```\n\n| a | b |\n|---|---|\n",
]


@pytest.fixture
async def build(tmp_path: Path) -> AsyncIterator[Build]:
    built: list[Reader] = []

    def build(nodes: Nodes = COUNTING, **contract: Any) -> Reader:
        folder = write_reader(tmp_path / str(len(built)), nodes, **contract)
        built.append(Reader(folder_weights(folder), threads=1))
        return built[-1]

    yield build
    for reader in built:
        await reader.close()


# --- what it says ---------------------------------------------------------------------------------


def sigmoid(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))


def read_plainly(file: Path, text: str, passage: str) -> tuple[float, float, float]:
    """Relevance, the chance that it answers and that it supports: no windows, no batches, every stretch counted."""
    tokenizer = Tokenizer.from_file(str(TOKENIZER))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    pair = tokenizer.encode(text, passage)
    ids = (pair.ids, pair.attention_mask, pair.type_ids)
    fed = {name: np.array([one], np.int32) for name, one in zip(INPUTS, ids, strict=True)}
    made: Any = onnxruntime.InferenceSession(str(file)).run(["scores", "spans"], fed)
    relevance, answerable, supported = map(float, made[0][0])
    spans = made[1][0].astype(float)
    told = [at for at, kind in enumerate(pair.type_ids) if kind == 1][:-1]
    best = max(spans[s, 0] + spans[e, 1] for s in told for e in told if s <= e < s + 40)
    slope, shift = CONTRACT["answers"]
    answers = sigmoid(slope * (answerable + best - spans[0].sum()) + shift)
    slope, shift = CONTRACT["supports"]
    return relevance, answers, sigmoid(slope * supported + shift)


@pytest.mark.parametrize("nodes", [COUNTING, MADE_UP], ids=["counting", "made up"])
async def test_readings_are_those_of_a_plain_reading(tmp_path: Path, nodes: Nodes) -> None:
    folder = write_reader(tmp_path, nodes)
    reader = Reader(folder_weights(folder))
    passages = [ANSWER, "x", FILLER[:1000], *SCRIPTS, "Keep the buffer.\n\n- one\n- two\n"]
    for passage, reading in zip(passages, await reader.read(QUESTION, passages), strict=True):
        relevance, answers, supports = read_plainly(folder / "reader.onnx", QUESTION, passage)
        assert reading.relevance == pytest.approx(relevance, abs=1e-4)
        assert reading.answers == pytest.approx(answers, abs=1e-4)
        assert await reader.check(QUESTION, [passage]) == pytest.approx(supports, abs=1e-4)
    await reader.close()


async def test_spans_are_the_words_of_the_passage_that_answer(build: Build) -> None:
    (reading,) = await build().read("transforms buffer", [ANSWER])
    shown = [ANSWER[span.start : span.end] for span in reading.spans]
    assert set(shown[:2]) == {"buffer", "transforms"}
    assert reading.spans[0].chance + reading.spans[1].chance > 0.99


async def test_a_span_is_never_half_a_word(build: Build) -> None:
    """Its first token alone is in the question."""
    passage = "Told unhelpfully."
    (reading,) = await build().read("un", [passage])
    assert passage[reading.spans[0].start : reading.spans[0].end] == "unhelpfully"


async def test_places_are_those_of_the_passage_as_it_was_given(build: Build) -> None:
    passage = "\0\ud800 🤖 e\u0301t\u0301e\u0301 İ ﬁ  \n\t 한국어 … BUFFER\u200b!"
    (reading,) = await build().read("buffer", [passage])
    best = reading.spans[0]
    assert passage[best.start : best.end].startswith("BUFFER")


async def test_passages_together_give_what_each_passage_alone_gives(build: Build) -> None:
    passages = [ANSWER, *ODD, *SCRIPTS, FILLER, *(FILLER[: 40 * n] for n in range(1, 12))]
    together = await build(MADE_UP).read(QUESTION, passages)
    alone = build(MADE_UP)
    for passage, reading in zip(passages, together, strict=True):
        (by_itself,) = await alone.read(QUESTION, [passage])
        assert by_itself == reading


async def test_the_tail_of_a_long_passage_is_read(build: Build) -> None:
    reader = build()
    passage = f"{FILLER}\n\n{ANSWER}"
    without, with_tail = await reader.read("buffer transforms", [FILLER, passage])
    assert with_tail.answers > without.answers + 0.3
    assert with_tail.relevance > without.relevance
    assert {passage[span.start : span.end] for span in with_tail.spans[:2]} == {"buffer", "transforms"}
    assert await reader.check("buffer transforms", [passage]) > await reader.check("buffer transforms", [FILLER]) + 0.1


async def test_a_long_question_is_cut_and_leaves_room_for_the_passage(build: Build) -> None:
    reader = build()
    (reading,) = await reader.read("why " * 500 + "buffer", [ANSWER])
    (cut,) = await reader.read("why " * 80, [ANSWER])
    assert reading == cut


def test_marks_in_a_passage_are_plain_text(model: Model) -> None:
    pair = model.encode(model.encode_question("[CLS]"), "One [SEP] two [PAD]")
    assert not {0, *model.marks} & {*pair.asked, *pair.told}


# --- statements -----------------------------------------------------------------------------------


async def test_a_statement_is_as_good_as_its_best_passage(build: Build) -> None:
    reader = build()
    alone = await reader.check("the buffer keeps transforms", [ANSWER])
    assert alone > 0.5
    assert await reader.check("the buffer keeps transforms", [FILLER, ANSWER]) == alone
    assert await reader.check("the buffer keeps transforms", []) == 0.0


async def test_what_two_passages_say_together_is_supported(build: Build) -> None:
    """Half of its words are in each."""
    reader = build()
    halves = ["A buffer keeps.", "It has transforms and seconds."]
    each = [await reader.check("buffer keeps transforms seconds", [half]) for half in halves]
    assert max(each) < 0.5 < await reader.check("buffer keeps transforms seconds", halves)


async def test_passages_that_no_window_holds_are_not_read_together(build: Build) -> None:
    reader = build()
    halves = [f"A buffer keeps. {FILLER[:900]}", f"It has transforms and seconds. {FILLER[:900]}"]
    each = [await reader.check("buffer keeps transforms seconds", [half]) for half in halves]
    assert await reader.check("buffer keeps transforms seconds", halves) == max(each)


async def test_a_long_statement_is_as_good_as_its_worst_piece(build: Build) -> None:
    """The last piece says hardly anything that the passage says."""
    reader = build()
    true = "the buffer keeps transforms " * 20
    assert await reader.check(true, [ANSWER]) > 0.9
    long = await reader.check(true + "weather " * 79 + "buffer", [ANSWER])
    assert long == await reader.check("weather " * 79 + "buffer", [ANSWER]) < 0.5


async def test_each_piece_of_a_statement_may_have_a_passage_of_its_own(build: Build) -> None:
    reader = build()
    passages = [ANSWER, f"{ANSWER} {FILLER[:900]}", f"weather in a harbour {FILLER[:1000]}"]
    statement = "the buffer keeps transforms " * 20 + "weather in a harbour " * 20
    assert await reader.check(statement, passages) > 0.9 > await reader.check(statement, passages[:1])


async def test_a_statement_of_too_many_pieces_has_no_support(build: Build) -> None:
    reader = build()
    whole = "buffer " * 80 * PIECES_MAX
    assert await reader.check(whole, [ANSWER]) > 0.9
    assert await reader.check(f"{whole} buffer", [ANSWER]) == 0.0
    assert await reader.check(" " * 10_000 + "buffer", [ANSWER]) == 0.0


# --- odd texts ------------------------------------------------------------------------------------


def assert_sound(reading: Reading, passage: str) -> None:
    assert math.isfinite(reading.relevance)
    assert 0.0 <= reading.answers <= 1.0
    for span in reading.spans:
        assert 0 <= span.start < span.end <= len(passage)
        assert 0.0 <= span.chance <= 1.0


@pytest.mark.parametrize("nodes", [COUNTING, MADE_UP], ids=["counting", "made up"])
async def test_any_question_may_be_asked_of_any_passage(build: Build, nodes: Nodes) -> None:
    reader = build(nodes)
    texts = [*ODD, *SCRIPTS]
    for question in texts:
        for passage, reading in zip(texts, await reader.read(question, texts), strict=True):
            assert_sound(reading, passage)
        assert 0.0 <= await reader.check(question, texts) <= 1.0


@pytest.mark.parametrize("nothing", ["", "  \n", "\0", "\u0301\u0301"])
async def test_nothing_answers_nothing(build: Build, nothing: str) -> None:
    reader = build(MADE_UP)
    for question, passage in ((nothing, ANSWER), (QUESTION, nothing), (nothing, nothing)):
        (reading,) = await reader.read(question, [passage])
        assert (reading.answers, reading.spans) == (0.0, ())
        assert await reader.check(question, [passage]) == 0.0
    assert await reader.read(QUESTION, []) == []


async def test_a_passage_of_one_token_has_one_span(build: Build) -> None:
    (reading,) = await build().read("buffer", ["buffer"])
    (span,) = reading.spans
    assert (span.start, span.end) == (0, 6) and span.chance > 0.9


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return open_model(folder_weights(write_reader(tmp_path_factory.mktemp("reader"))), threads=1)


@given(question=st.text(), passage=st.text())
def test_every_token_has_a_place_in_what_was_written(model: Model, question: str, passage: str) -> None:
    pair = model.encode(model.encode_question(question), passage)
    assert len(pair.told) == len(pair.words)
    assert all(0 <= start < end <= len(passage) for start, end in pair.words)


@pytest.mark.parametrize(
    "hostile",
    [
        "word " * 20_000,
        "x" * 10_000_000,
        "\u0301" * 10_000_000,
        "🤖" * 10_000_000,
        "한" * 10_000_000,
        ".\0" * 5_000_000,
    ],
    ids=["20,000 tokens", "one word", "accents", "emoji", "syllables", "dots"],
)
async def test_a_huge_passage_costs_no_more_than_its_windows(build: Build, hostile: str) -> None:
    reader = build(MADE_UP)
    await reader.open()
    started = time.process_time()
    (reading,) = await reader.read(QUESTION, [hostile])
    chance = await reader.check(hostile, [hostile, hostile])
    assert time.process_time() - started < 3.0
    assert_sound(reading, hostile)
    assert 0.0 <= chance <= 1.0


# --- what is known already ------------------------------------------------------------------------


async def test_what_was_read_is_not_read_again(build: Build) -> None:
    """This one says something else each time that it reads."""
    reader = build(MOODY)
    first = await reader.read(QUESTION, [ANSWER, FILLER[:300]])
    new, *again = await reader.read(QUESTION, ["Something new.", ANSWER, FILLER[:300]])
    assert again == first
    assert await reader.read(QUESTION, ["Something new."]) == [new]
    assert await reader.read("Another question?", [ANSWER]) != [first[0]]
    assert await reader.read(QUESTION, [f"{ANSWER} "]) != [first[0]]


async def test_a_checked_statement_is_known_as_well(build: Build) -> None:
    reader = build(MOODY)
    chance = await reader.check(QUESTION, [ANSWER])
    assert await reader.check(QUESTION, [ANSWER]) == chance
    assert await reader.check("Another?", [ANSWER]) != chance


async def test_a_passage_given_twice_is_read_once(build: Build) -> None:
    one, other = await build(MOODY).read(QUESTION, [ANSWER, ANSWER])
    assert one == other


# --- askers beside each other ---------------------------------------------------------------------


def long_passages(name: str, count: int = 10) -> list[str]:
    """Each a window."""
    return [f"{name} {n} {FILLER[:1100]}" for n in range(count)]


async def test_an_asker_who_leaves_holds_up_nobody(build: Build) -> None:
    reader = build(SLOW)
    await reader.open()
    started = time.perf_counter()
    await reader.read(QUESTION, long_passages("whole"))
    whole = time.perf_counter() - started

    leaving = asyncio.create_task(reader.read(QUESTION, long_passages("left")))
    await asyncio.sleep(whole / 5)
    assert not leaving.done()
    leaving.cancel()
    started = time.perf_counter()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    assert time.perf_counter() - started < whole / 10
    await reader.read("quick?", ["Yes."])
    # Of the one who left the window that was running, and a window of one's own.
    assert time.perf_counter() - started < whole / 2


async def test_what_was_read_before_its_asker_left_is_known(build: Build) -> None:
    reader = build(SLOW)
    passages = long_passages("left", 60)
    await reader.open()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(reader.read(QUESTION, passages), 0.5)
    started = time.perf_counter()
    await reader.read(QUESTION, passages[:1])
    known = time.perf_counter() - started
    await reader.read(QUESTION, passages[-1:])
    assert known < (time.perf_counter() - started) / 5


async def test_askers_take_turns(build: Build) -> None:
    reader = build(SLOW)
    await reader.open()
    long = asyncio.create_task(reader.read(QUESTION, long_passages("long")))
    await asyncio.sleep(0.05)
    await reader.read("quick?", ["Yes."])
    assert not long.done()
    assert len(await long) == 10


async def test_tokenizing_takes_turns_as_well(build: Build) -> None:
    reader = build(MADE_UP)
    await reader.open()
    started = time.perf_counter()
    long = asyncio.create_task(reader.read(QUESTION, [f"{n} {FILLER[:50]}" + "e\u0301 " * 20_000 for n in range(20)]))
    await asyncio.sleep(0)
    await reader.read("quick?", ["Yes."])
    quick = time.perf_counter() - started
    await long
    assert quick < (time.perf_counter() - started) / 4


async def test_a_closed_reader_leaves_nobody_waiting(build: Build) -> None:
    reader = build(SLOW)
    await reader.open()
    asking = [asyncio.create_task(reader.read(QUESTION, long_passages(str(n)))) for n in range(3)]
    await asyncio.sleep(0.05)
    await reader.close()
    for one in asking:
        with pytest.raises(ShuttingDown):
            await asyncio.wait_for(one, 5)


async def test_a_closed_reader_reads_no_more(build: Build) -> None:
    reader = build()
    await reader.read(QUESTION, [ANSWER])
    await reader.close()
    await reader.close()
    for passage in (ANSWER, "Something new."):
        with pytest.raises(ShuttingDown):
            await reader.read(QUESTION, [passage])
    with pytest.raises(ShuttingDown):
        await reader.open()
