"""What reads the text of a model or a book takes time in proportion to it, whatever the text.

Every pattern and every function of one text in the rooms that read such text is found, not listed: a new one is
measured with the rest. Time is the processor's, so that a busy machine slows nothing down.
"""

from __future__ import annotations

import ast
import asyncio
import importlib
import inspect
import pkgutil
import re
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from types import FrameType, ModuleType

import pytest
from yaml import YAMLError

import askbook
from askbook.answer.check.listings import check_listing, read_listing
from askbook.answer.check.literals import find_unsaid
from askbook.answer.check.marks import read_marks
from askbook.answer.check.passages import read_passage
from askbook.answer.check.stream import Cutter
from askbook.answer.citations import Checking
from askbook.answer.cleaning import keep_book_links
from askbook.api.lesson_text import render_lesson
from askbook.book.chunker import split_lesson
from askbook.book.includes import expand_includes
from askbook.book.markup import read_markup
from askbook.domain import Passage
from askbook.errors import AskbookError
from askbook.reading.plain import read_out
from builders import make_chunks, make_lesson

Read = Callable[[str], object]
Write = Callable[[int], str]

ROOMS = ("answer", "book", "reading", "text", "api.lesson_text", "index.keywords", "index.coverage", "store.outline")
TEXTS = ("text", "raw", "question", "statement", "plain", "said", "body", "line", "title")
"""What a function calls a text of any length."""
ANCHORED = {"match", "fullmatch"}

FLOOR, SLOW_FLOOR = 0.006, 0.05
"""Seconds that prove nothing: what is worse than linear takes longer at the last size."""
MOST = 8.0
"""Times as long for a text four times as long: 4 is linear, 16 quadratic."""
FOR_EVER = 10.0
PATTERN_SIZES = (2048, 8192)
FUNCTION_SIZES = (256, 1024, 4096)
LESSON_SIZES = (2048, 8192)
STREAM_SIZES = (4096, 16384)
"""A cutter looks back over one sentence, of 2,000 signs at most."""

SIGNS = [*"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ \n\ta0A", *"。！…’“»›｜аａ\u200b\u200d\ufe0f\u0301٣\u3000🙂"]
_PAIRS = """
.a a- a. a, a' a_ a/ a: a= a( a[ a* a` a| a> 1. 1, 1- 1) 1x .! !? [a [1 [[ [^ ![ !a ]( [] () (a )( *a _a __a `a ``a $a
<a <! <!-- <| </ <a> <br {# {a {/* {{ }} :: --- => -> -a ## #a |a |- \\a &a; http:// https://a javascript:
"a 'a (" [link a@b aB Aa a1 1a 1/ 1e £1 e.g.
"""
SPACED = [
    "a ",
    ". ",
    " .",
    "! ",
    "A. ",
    "1 ",
    "- ",
    "> ",
    "( ",
    "[ ",
    "\t ",
    "[1] ",
    "a, and ",
    "1 - ",
    "the no ",
]
LINED = [
    "a\n",
    " \n",
    "\n ",
    "\n>",
    "- a\n",
    "a  \n",
    "\n#",
    "\n|",
    "\n`",
    "\n1. ",
    "|a|\n",
    "```\n",
    "~~~\n",
    "a|b\n-|-\n",
]
ALL = list(dict.fromkeys([*SIGNS, *_PAIRS.split(), *SPACED, *LINED]))
UNITS = [(unit, tail) for unit in ALL for tail in ("", "§")]
FEW = [
    (unit, "") for unit in (*"!.?-*`[(<|$~_> \n\t0a。", ".a", "a-", "`a", "[1] ", "A. ", "a\n", "\n- ", "<!--", "](")
]


# --- what is found --------------------------------------------------------------------------------


@cache
def find_modules() -> list[ModuleType]:
    names = [module.name for module in pkgutil.walk_packages(askbook.__path__, "askbook.")]
    inside = [name for name in names if any(f"{name}.".startswith(f"askbook.{room}.") for room in ROOMS)]
    return [importlib.import_module(name) for name in inside]


@cache
def find_patterns() -> dict[str, Read]:
    """Those that a module holds and those that stand in a call of `re`, each used as the source uses it."""
    sources = {module: ast.parse(Path(str(module.__file__)).read_text()) for module in find_modules()}
    used: defaultdict[re.Pattern[str], set[str]] = defaultdict(set)
    for module, tree in sources.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                for pattern in _patterns_in(vars(module).get(node.value.id)):
                    used[pattern].add(node.attr)
    found: dict[str, Read] = {}
    known: set[re.Pattern[str]] = set()
    for module, tree in sources.items():
        for name, value in vars(module).items():
            for at, pattern in enumerate(_patterns_in(value)):
                if pattern not in known:
                    known.add(pattern)
                    found[f"{module.__name__}.{name}[{at}]"] = _to_reading(pattern, used[pattern])
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            if (method := _method_of_re(call)) and (pattern := _evaluate(call, module)) is not None:
                found[f"{module.__name__}:{call.lineno}"] = _to_reading(pattern, {method})
    return found


def _patterns_in(value: object) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        if isinstance(value.pattern, str):
            yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _patterns_in(one)


def _method_of_re(call: ast.Call) -> str | None:
    match call.func:
        case ast.Attribute(ast.Name("re"), method) if method not in ("compile", "escape"):
            return method
        case _:
            return None


def _evaluate(call: ast.Call, module: ModuleType) -> re.Pattern[str] | None:
    """None where a pattern is made of what its function knows alone; the functions are measured below."""
    flags = [one for one in (*call.args[1:], *(word.value for word in call.keywords)) if "re." in ast.unparse(one)]
    try:
        values = [eval(ast.unparse(one), dict(vars(module))) for one in (call.args[0], *flags)]
    except NameError:
        return None
    return re.compile(*values)


def _to_reading(pattern: re.Pattern[str], methods: set[str]) -> Read:
    if methods and methods <= ANCHORED:
        return pattern.fullmatch if methods == {"fullmatch"} else pattern.match
    return lambda text: sum(1 for _ in pattern.finditer(text))


@cache
def find_functions() -> dict[str, Read]:
    """Every function of these rooms that needs one text and nothing else."""
    found = ((module, name, value) for module in find_modules() for name, value in vars(module).items())
    return {
        f"{module.__name__}.{name}": value
        for module, name, value in found
        if inspect.isfunction(value) and value.__module__ == module.__name__ and _needs_one_text(value)
    }


def _needs_one_text(function: Callable[..., object]) -> bool:
    needed = [one for one in inspect.signature(function).parameters.values() if one.default is one.empty]
    is_async = inspect.iscoroutinefunction(function)
    return not is_async and len(needed) == 1 and needed[0].annotation == "str" and needed[0].name in TEXTS


# --- functions of more than a text ----------------------------------------------------------------


def _quote(text: str) -> Passage:
    return Passage(make_chunks(make_lesson(), text[:2000] or "a")[0], 0.5, 1)


def _cut(text: str) -> None:
    """As a model writes, by single signs."""
    cutter = Cutter()
    for one in text:
        list(cutter.feed(one))
    list(cutter.finish())


def _check(text: str) -> None:
    async def check() -> None:
        checking = Checking({1: _quote("The robot walks.")}, "drop", lambda _: False, secret="Never tell anyone this.")
        for at in range(0, len(text), 5):
            await checking.feed(text[at : at + 5])
        await checking.finish()

    asyncio.run(check())


def _list(text: str) -> None:
    numbered = {1: _quote("```\n" + text)}
    check_listing(read_listing("```\n" + text.replace("`", "'"), "", numbered), numbered)


def _read_lesson(suffix: str, text: str) -> None:
    split_lesson(make_lesson(f"m/c/01-a.{suffix}", text=f"# A\n\n{text}"))


STREAMS: dict[str, Read] = {"cut": _cut, "checked": _check}
BY_HAND: dict[str, Read] = {
    "a listing": _list,
    "links": lambda text: keep_book_links(text, lambda _: True),
    "marks": lambda text: read_marks(text, {1: _quote("The robot walks.")}),
    "literals": lambda text: find_unsaid(text[:2000], "The robot walks."),
    "a passage": lambda text: read_passage(_quote(text).chunk),
    "read out": lambda text: read_out(text, 40_000),
}
LESSONS: dict[str, Read] = {
    "chunks": partial(_read_lesson, "md"),
    "chunks of MDX": partial(_read_lesson, "mdx"),
    "markup of MDX": lambda text: read_markup(text, 0, True, {}),
    "markup": lambda text: read_markup(text, 0, False, {}),
    "includes": lambda text: expand_includes("a.md", text, 0, lambda _: None),
    "the page": lambda text: render_lesson(text, lambda _: None, [(len(text) // 3, len(text) // 2)]),
}


# --- how long it takes ----------------------------------------------------------------------------


def _repeat(unit: str, tail: str, length: int) -> str:
    return unit * (length // len(unit)) + tail


def _give_up(_: int, __: FrameType | None) -> None:
    raise TimeoutError


def measure(read: Read, text: str) -> float:
    """In seconds. What refuses a text may do so, in time."""
    signal.setitimer(signal.ITIMER_VIRTUAL, FOR_EVER)
    started = time.thread_time()
    try:
        result = read(text)
        if inspect.isgenerator(result):
            list(result)
    except (AskbookError, YAMLError, ValueError):
        pass
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return time.thread_time() - started


def find_growth(read: Read, write: Write, sizes: tuple[int, ...], floor: float) -> str:
    """What was measured, where it is more than linear."""
    try:
        if measure(read, write(sizes[-1])) <= floor:
            return ""  # Shorter texts took no longer.
    except TimeoutError:
        pass
    before = measure(read, write(sizes[0]))
    for size in sizes[1:]:
        try:
            took = measure(read, write(size))
            if took > max(floor, MOST * before):
                before = min(measure(read, write(size // 4)) for _ in range(5))
                took = min(took, *(measure(read, write(size)) for _ in range(4)))
            if took > max(floor, MOST * before):
                return f"{size} signs in {took * 1000:.0f} ms, a quarter of them in {before * 1000:.1f} ms"
        except TimeoutError:
            return f"{size} signs in more than {FOR_EVER:g} s"
        before = took
    return ""


def find_all_growth(
    reads: dict[str, Read], sizes: tuple[int, ...], units: list[tuple[str, str]] = UNITS, floor: float = FLOOR
) -> list[str]:
    signal.signal(signal.SIGVTALRM, _give_up)
    return [
        f"{name} on {unit!r}…{tail!r}: {why}"
        for name, read in reads.items()
        for unit, tail in units
        if (why := find_growth(read, partial(_repeat, unit, tail), sizes, floor))
    ]


def test_every_pattern_that_reads_foreign_text_is_linear() -> None:
    assert len(find_patterns()) > 150
    assert find_all_growth(find_patterns(), PATTERN_SIZES) == []


def test_every_function_that_reads_foreign_text_is_linear() -> None:
    assert len(find_functions()) > 40
    assert find_all_growth(find_functions(), FUNCTION_SIZES) == []


@pytest.mark.parametrize("name", BY_HAND)
def test_what_reads_a_model_is_linear(name: str) -> None:
    assert find_all_growth({name: BY_HAND[name]}, FUNCTION_SIZES) == []


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_is_linear(name: str) -> None:
    assert find_all_growth({name: STREAMS[name]}, STREAM_SIZES, FEW, SLOW_FLOOR) == []


@pytest.mark.parametrize("name", LESSONS)
def test_what_reads_a_book_is_linear(name: str) -> None:
    assert find_all_growth({name: LESSONS[name]}, LESSON_SIZES, [(unit, "") for unit in ALL], SLOW_FLOOR) == []


@pytest.mark.parametrize("pattern", [r"[.!?]+\s", r"(?:a-?)+$", r"\s+$", r"<!--.*?-->"])
def test_a_pattern_that_is_not_linear_is_found(pattern: str) -> None:
    reading = _to_reading(re.compile(pattern), {"search"})
    assert find_all_growth({pattern: reading}, PATTERN_SIZES, [(".", ""), ("a", "§"), (" ", "§"), ("<!--", "")])


async def _count_turns(said: str) -> int:
    """How often something else ran while a model's text was checked that came in one piece."""
    turns = 0

    async def wait() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    await Checking({1: _quote("The robot walks.")}, "drop", lambda _: False).feed(said)
    waiting.cancel()
    return turns


@pytest.mark.parametrize("said", ["The robot flies. " * 200, "```\n" + "x = 1\n" * 20_000 + "```\nSo it is.\n\n"])
async def test_a_text_that_comes_at_once_lets_others_have_their_turn(said: str) -> None:
    assert await _count_turns(said) > 20
