"""What must stand in the source to the letter: numbers with units, code, identifiers, names, quotations, a "not"."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache

from askbook.answer.check.numbers import UNIT, Number, read_numbers, read_units
from askbook.index.keywords import split_terms

ALIKE = 0.75
"""Two sentences that share so many words say the same, or deny each other."""

CODE_SPAN = re.compile(r"(?<!`)(`++)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()\s]*\)|\[[^\[\]]*\])")
_TAG = re.compile(r"</?[A-Za-z!][^<>]*>|https?://\S+|\[link removed\]")
_EMPHASIS = re.compile(r"(?<![\w*_])[*_]++(?=\S)|(?<=[^\s*_])[*_]++(?!\w)|\*\*|^[ \t]*#{1,6}[ \t]")
_FOLDED = str.maketrans("’‘“”−‑–‹", "''\"\"---<")
_LOOKALIKES = str.maketrans("асеһіјорԛѕхуАВСЕНІЈКМОРЅТХУΑΒΕΖΗΙΚΜΝΟΡΤΥΧο", "acehijopqsxyABCEHIJKMOPSTXYABEZHIKMNOPTYXo")
_WORD = re.compile(r"\w++")
_IDENTIFIER = re.compile(
    r"\bv?\d+(?:\.\d+){2,}\b|(?<![\w-])--[A-Za-z][\w-]*|(?<=\s)-[A-Za-z]\b"
    r"|(?<![\w/.])(?:~|\.{1,2})?(?:/[\w.~+-]*\w){1,12}/?|(?<![\w.-])[\w.-]++(?:/[\w.-]++){2,}|\b\w+(?:::\w+)+\b"
    r"|\b[A-Za-z_]\w+(?:\.[A-Za-z_]\w+)+\b|\b\w*[^\W_]_\w+\b|\b_\w+\b"
    r"|\b[a-z]+[A-Z]\w*\b|\b[A-Z][a-z0-9]+[A-Z]\w*\b|\b[A-Z]{2,}[a-z]\w*[A-Z]\w*\b|\b(?=\w*\d)(?=\w*[^\W\d_])\w+\b"
)
_GLUED = re.compile(rf"\d+(?:{UNIT}|st|nd|rd|th|x|s|k)", re.IGNORECASE)
_QUOTATION = re.compile(r'"([^"]{8,300}?)[.,]?"')
_CAPITAL = re.compile(r"(?<![\w'])[A-Z]\w+")
_OPENS = re.compile(r"(?:^|[.:!?|(\[\"]\s*|—\s*|^\W+)$")
_DENIES = re.compile(r"\b(?:not|never|no|cannot|without|neither|nor)\b|n't\b", re.IGNORECASE)
_ASIDE = re.compile(r",\s(?:and |but )?not ([^,;:.!?()]{1,200})(?=[,;.!?]|$)", re.IGNORECASE)
_NEGATIVE = re.compile(r"\b(?:un|in|im|ir|dis|non-?)(\w{5,})\b", re.IGNORECASE)
_ANSWERS = re.compile(r"(yes|no)\b[,:]\s+", re.IGNORECASE)


def to_plain(text: str) -> str:
    """On one line, without Markdown and backticks, with plain quotation marks and dashes."""
    pieces = CODE_SPAN.split(unicodedata.normalize("NFKC", text).translate(_FOLDED))
    # Text, backticks, code, text, and so on.
    for at in range(0, len(pieces), 3):
        pieces[at] = _EMPHASIS.sub("", _TAG.sub(" ", _LINK.sub(r"\1", pieces[at])))
    return " ".join("".join(piece for at, piece in enumerate(pieces) if at % 3 != 1).split())


def fold_lookalikes(text: str) -> str:
    """Rewrites words of mixed alphabets in the one that they look like, so that the rules recognize them."""
    return text if text.isascii() else _WORD.sub(lambda word: _fold(word[0]), text)


def _fold(word: str) -> str:
    return word.translate(_LOOKALIKES) if any("A" <= char <= "z" for char in word) else word


@lru_cache(maxsize=8192)
def read_stems(text: str) -> frozenset[str]:
    return frozenset(term for term in split_terms(text) if not term.isdigit())


def find_unsaid(statement: str, source: str) -> str:
    """A literal that the source lacks, in words; empty where there is none."""
    return next(_find_unsaid(statement, source), "")


def _find_unsaid(statement: str, source: str) -> Iterator[str]:
    plain = to_plain(statement)
    yield from (f"the source does not say {number}" for number in _find_unsaid_numbers(plain, source))
    prose = to_plain(CODE_SPAN.sub(" ` ", statement))
    yield from (f"the source does not have `{code}`" for code in _find_code(statement, prose) if not _has(code, source))
    yield from (f"the source does not name {name}" for name in _find_names(prose) if not _has_name(name, source))
    yield from _find_turned(plain, source)
    for words in _QUOTATION.findall(plain):
        if len(words.split()) >= 3 and words.lower() not in source.lower():
            yield f"the source does not have the words “{words}”"


# --- numbers --------------------------------------------------------------------------------------


def _find_unsaid_numbers(plain: str, source: str) -> Iterator[str]:
    theirs, units = list(read_numbers(source)), read_units(source)
    # "Two kinds" may count what the source only names: that is for the reader to see.
    firm = (
        number
        for number in read_numbers(plain)
        if number.unit or not (number.is_spelled or _has(number.written, source))
    )
    return (ours.written for ours in firm if not any(_is_said(ours, other, units) for other in theirs))


def _is_said(ours: Number, theirs: Number, units: set[str]) -> bool:
    """In a range or under a column's head, the unit stands elsewhere."""
    same_unit = not ours.unit or ours.unit == theirs.unit or (not theirs.unit and ours.unit in units)
    return same_unit and math.isclose(abs(ours.value), abs(theirs.value))


# --- code and names -------------------------------------------------------------------------------


def _find_code(statement: str, prose: str) -> Iterator[str]:
    yield from (found[2].strip() for found in CODE_SPAN.finditer(statement))
    for found in _IDENTIFIER.finditer(prose):
        code = found[0].rstrip(".")
        if len(code) > 1 and not _GLUED.fullmatch(code):
            yield code


def _has(code: str, source: str) -> bool:
    wanted = " ".join(code.translate(_FOLDED).split()).removesuffix("()")
    is_word = wanted.isalpha() and (wanted.islower() or wanted.istitle())
    left = r"(?<![\d.])" if wanted[:1].isdigit() else r"(?<!\w)" if wanted[:1].isalpha() else ""
    right = r"(?!\d)" if wanted[-1:].isdigit() else r"(?!\w)"
    return re.search(rf"{left}{re.escape(wanted)}{right}", source, re.IGNORECASE if is_word else 0) is not None


def _find_names(prose: str) -> Iterator[str]:
    """Capitalized words that open no sentence, and words in all capitals."""
    for found in _CAPITAL.finditer(prose):
        opens = _OPENS.search(prose[max(found.start() - 8, 0) : found.start()]) is not None
        if found[0].isupper() or not opens:
            yield found[0]


def _has_name(name: str, source: str) -> bool:
    """The name, another form of it ("American" for "America"), or the words of an acronym."""
    words = _words_of(source)
    if read_stems(name) <= read_stems(source) or set(_words_of(name)) <= set(words):
        return True
    if name.isupper() and len(name) > 2:
        return name.lower() in "".join(word[0] for word in words)
    stem = name.lower()[:-2] if len(name) > 6 else name.lower()
    return any(word.startswith(stem) for word in words)


@lru_cache(maxsize=512)
def _words_of(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"[^\W_]+", text.lower()))


# --- yes and no -----------------------------------------------------------------------------------


def find_denial(statement: str, sentences: Sequence[str]) -> str:
    """Every sentence with nearly the same words has one "not" more or less."""
    alike = [sentence for sentence in sentences if _share(statement, sentence) >= ALIKE]
    if alike and all(
        (_count_denied(sentence, statement) - _count_denied(statement, sentence)) % 2 for sentence in alike
    ):
        return "the source says it with one “not” more or less"
    return ""


def find_wrong_answer(statement: str, question: str) -> str:
    """ "Yes, it cannot" to "can it?": what follows is the question with a "not", or "No, it can" without."""
    opening = _ANSWERS.match(statement)
    claim = statement[opening.end() :] if opening else ""
    stems = read_stems(to_plain(question))
    if opening is None or not stems or len(stems & read_stems(to_plain(claim))) < ALIKE * len(stems):
        return ""
    turned = (_count_denials(claim) - _count_denials(question)) % 2 == 1
    said = opening[1].lower()
    return f"it says “{said}” and then the contrary" if turned == (said == "yes") else ""


def _find_turned(plain: str, source: str) -> Iterator[str]:
    """ "Unreliable" where the source has only "reliable"."""
    theirs, whole = set(_words_of(source)), source.lower()
    for found in _NEGATIVE.finditer(plain):
        if found[1].lower() in theirs and found[0].lower() not in whole:
            yield f"the source says “{found[1]}”, not “{found[0]}”"


def strip_answer(statement: str) -> str:
    """The claim without "Yes,"."""
    return _ANSWERS.sub("", statement, count=1) if _ANSWERS.match(statement) else statement


def _share(one: str, other: str) -> float:
    ours, theirs = read_stems(one), read_stems(other)
    return len(ours & theirs) / max(len(ours | theirs), 1) if len(ours & theirs) > 1 else 0.0


def _count_denied(sentence: str, other: str) -> int:
    """Counts each "not", but in asides on what the other sentence does not mention: ", not the driver, decides"."""
    theirs = read_stems(other)
    asides = _ASIDE.findall(sentence.replace("’", "'"))
    return _count_denials(sentence) - sum(theirs.isdisjoint(read_stems(aside)) for aside in asides)


def _count_denials(text: str) -> int:
    return len(_DENIES.findall(text.replace("’", "'")))
