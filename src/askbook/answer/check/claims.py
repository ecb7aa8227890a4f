"""What a sentence claims, as far as its words tell: its content, its numbers, its names, and which way it points."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise, takewhile

from askbook.answer.check.numbers import SPELLED, UNIT, UNIT_NAMES, UNIT_OF, Number, read_numbers
from askbook.answer.check.words import (
    LIGHT,
    LOOSE_NEGATORS,
    MULTIPLES,
    NEGATORS,
    PASSED_OVER,
    POINTING,
    QUANTIFIER_OF,
    SCALES,
)
from askbook.index.keywords import STOPWORDS, split_terms

REACH = 6
"""So many words behind a negator may still be what it denies."""
DENIED_WORDS = 3
OPENING_WORDS = 5
"""A pronoun among the first so many words stands for something named before."""
BESIDE = 60
"""So many characters before and behind a number are looked at for what it counts."""


@dataclass(frozen=True, slots=True)
class Signs:
    """How often a word stands as it is, how often it is denied or turned round, and how often that cannot be told."""

    plus: int = 0
    minus: int = 0
    either: int = 0

    def agree(self, other: Signs) -> bool:
        if self.either or other.either:
            return True
        if self.plus + self.minus == other.plus + other.minus:
            return self.minus == other.minus
        return bool((self.plus and other.plus) or (self.minus and other.minus))

    def __add__(self, other: Signs) -> Signs:
        return Signs(self.plus + other.plus, self.minus + other.minus, self.either + other.either)


@dataclass(frozen=True, slots=True)
class Counted:
    """A number, and the words with content next to it."""

    number: Number
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left` is more than `right`: faster, larger, later. "B is slower than A" is read as "A is faster than B"."""

    scale: str
    left: frozenset[str]
    right: frozenset[str]


@dataclass(frozen=True, slots=True)
class Claim:
    stems: frozenset[str]
    """Of the words that carry content; opposites have one stem."""
    signs: Mapping[str, Signs]
    denied: frozenset[str]
    """What stands right behind a "not", a "without", a "never" …"""
    denials: int
    """… and how many of these there are, …"""
    is_loose: bool
    """… besides one that may be put in another way: "rather than", "nothing"."""
    written: Mapping[str, str]
    """A stem as its first word was written."""
    counted: tuple[Counted, ...]
    units: frozenset[str]
    """Those that are named anywhere, as in the head of a table."""
    comparisons: tuple[Comparison, ...]
    quantifiers: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    """Words side by side: "global costmap"."""
    points_back: bool
    denies_back: bool
    """ "Without it"."""
    subject: str
    """The stem that comes first; empty where there is none."""


@dataclass(frozen=True, slots=True)
class Literals:
    """What must stand in the source letter by letter."""

    code: tuple[str, ...]
    names: tuple[str, ...]
    quotations: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        """Of what it may speak."""
        return self.code + self.names


@dataclass(frozen=True, slots=True)
class Sentence:
    text: str
    claim: Claim
    pieces: tuple[Claim, ...]
    """Its parts between commas and contrasts."""
    literals: Literals


# --- plain text -----------------------------------------------------------------------------------

CODE_SPAN = re.compile(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()\s]*\)|\[[^\[\]]*\])")
_TAG = re.compile(r"</?[A-Za-z!][^<>]*>|https?://\S+|\[link removed\]")
_EMPHASIS = re.compile(r"(?<!\w)[*_]+(?=[^\s*_])|(?<=[^\s*_])[*_]+(?!\w)|\*\*|^[ \t]*#{1,6}[ \t]")
_FOLDED = str.maketrans("’‘“”−‑–", "''\"\"---")


def to_plain(text: str) -> str:
    """Without Markdown, on one line, with plain quotation marks and dashes; code without its backticks."""
    pieces = CODE_SPAN.split(unicodedata.normalize("NFKC", text).translate(_FOLDED))
    # Text, backticks, code, text, and so on.
    for at in range(0, len(pieces), 3):
        pieces[at] = _EMPHASIS.sub("", _TAG.sub(" ", _LINK.sub(r"\1", pieces[at])))
    return " ".join("".join(piece for at, piece in enumerate(pieces) if at % 3 != 1).split())


# --- words, and which way they point --------------------------------------------------------------

_PHRASES = (
    (
        re.compile(
            r"\b(?:at least|no (?:less|fewer|smaller|lower|shorter) than|not (?:less|fewer) than)\b", re.IGNORECASE
        ),
        "atleast",
    ),
    (
        re.compile(
            r"\b(?:at most|no (?:more|larger|greater|higher|bigger|longer) than|not more than|up to)\b", re.IGNORECASE
        ),
        "atmost",
    ),
    (re.compile(r"\b(?:whether or not|not only|not just)\b", re.IGNORECASE), "notonly"),
    (re.compile(r"\b(?:rather than|instead of|as opposed to)\b", re.IGNORECASE), "insteadof"),
    (re.compile(r"\b(?:unable to|fail(?:s|ed|ing)? to)\b", re.IGNORECASE), "not"),
    (re.compile(r"\bonly (?=an? |once\b)", re.IGNORECASE), ""),
)
_TOKEN = re.compile(r"[^\W_]+(?:'[^\W_]+)?|[,;:.!?()|—]")
_STOPS = frozenset(",;:.!?()|—")
_BREAKING = "but while whereas although because if when so and which that"
_BREAKS = _STOPS.union(_BREAKING.split())
_ISE = re.compile(r"(?<=\w{3})is(?=(?:e[sdr]?|ing|ations?)$)")
_PIECES = re.compile(r"[,;:()—]|\b(?:but|while|whereas|although)\b", re.IGNORECASE)
_CONTRAST = re.compile(r"[;—]|\b(?:but|while|whereas|although|those of)\b", re.IGNORECASE)
_NO_CONTENT = STOPWORDS.union(
    LIGHT, NEGATORS, SPELLED, UNIT_NAMES, ("notonly", "hundred", "thousand", "million", "billion")
)


@dataclass(frozen=True, slots=True)
class _Word:
    lower: str
    stem: str
    """Empty where the word carries no content."""
    sign: int
    """0 where it may be denied or not."""
    written: str


@lru_cache(maxsize=65_536)
def _read_word(word: str) -> tuple[_Word, ...]:
    lower = word.lower()
    if lower in SCALES:
        return (_Word(lower, *SCALES[lower], word),)
    if lower in _NO_CONTENT or not word[0].isalnum():
        return (_Word(lower, "", 1, word),)
    terms = split_terms(_ISE.sub("iz", word) if word.islower() else word)
    parts = terms[1:] if len(terms) > 1 else terms
    return tuple(_Word(lower, part, 1, word) for part in parts if not part.isdigit()) or (_Word(lower, "", 1, word),)


@lru_cache(maxsize=8192)
def read_claim(text: str) -> Claim:
    plain = to_plain(text)
    words = _split_words(plain)
    heads, reached = _find_denied(words)
    turned = [_turn(word, at in heads, at in reached) for at, word in enumerate(words)]
    content = [word for word in turned if word.stem]
    return Claim(
        frozenset(word.stem for word in content),
        _count_signs(content),
        frozenset(words[at].stem for at in heads),
        sum(_is_negator(word) and word.lower not in LOOSE_NEGATORS for word in words),
        any(word.lower in LOOSE_NEGATORS for word in words),
        {word.stem: word.written for word in reversed(content)},
        tuple(_count(plain)),
        frozenset(UNIT_OF[word.written] for word in words if len(word.written) > 1 and word.written in UNIT_OF),
        tuple(_find_comparisons(turned)),
        frozenset(QUANTIFIER_OF[word.lower] for word in words if word.lower in QUANTIFIER_OF),
        frozenset((one.stem, other.stem) for one, other in pairwise(words) if one.stem and other.stem),
        any(word.lower in POINTING for word in words[:OPENING_WORDS]),
        any(_is_negator(one) and other.lower in POINTING for one, other in pairwise(words)),
        _first_stem(words),
    )


def read_sentence(text: str) -> Sentence:
    return Sentence(text, read_claim(text), read_pieces(text), read_literals(text))


def read_stems(plain: str) -> frozenset[str]:
    return frozenset(word.stem for word in _split_words(plain) if word.stem)


@lru_cache(maxsize=2048)
def read_pieces(text: str) -> tuple[Claim, ...]:
    """What stands between commas and contrasts, each read by itself."""
    return tuple(read_claim(piece) for piece in _PIECES.split(to_plain(text)) if piece.strip())


def split_contrasts(text: str) -> list[str]:
    """ "A does this, while B does that" says two things."""
    return [piece for piece in _CONTRAST.split(to_plain(text)) if piece.strip()]


def _split_words(plain: str) -> list[_Word]:
    for pattern, word in _PHRASES:
        plain = pattern.sub(word, plain)
    return [word for token in _TOKEN.findall(plain) for word in _read_word(token)]


def _count_signs(content: Iterable[_Word]) -> dict[str, Signs]:
    signs: dict[str, Signs] = {}
    for word in content:
        had = signs.get(word.stem, Signs())
        signs[word.stem] = Signs(had.plus + (word.sign > 0), had.minus + (word.sign < 0), had.either + (word.sign == 0))
    return signs


def _find_denied(words: Sequence[_Word]) -> tuple[set[int], set[int]]:
    """The first word with content behind each negator, and those behind it, which may be meant as well."""
    heads, reached = set[int](), set[int]()
    for at, word in enumerate(words):
        if _is_negator(word):
            behind = list(_find_content(words, at))
            # Two negators turn it back; "without it" and "finds nothing" deny what stands elsewhere.
            sure = word.lower not in LOOSE_NEGATORS and not (behind and words[at + 1].lower in POINTING)
            heads ^= set(behind[:1] if sure else ())
            reached |= set(behind[1:DENIED_WORDS] if sure else behind[:DENIED_WORDS])
    return heads, reached - heads


def _turn(word: _Word, denied: bool, reached: bool) -> _Word:
    return replace(word, sign=-word.sign if denied else 0) if denied or reached else word


def _is_negator(word: _Word) -> bool:
    return word.lower in NEGATORS or word.lower.endswith("n't")


def _find_content(words: Sequence[_Word], at: int) -> Iterator[int]:
    for behind in range(at + 1, min(at + 1 + REACH, len(words))):
        word = words[behind]
        if word.lower in _STOPS:
            return
        if word.stem and word.lower not in PASSED_OVER and not word.lower.endswith("ly"):
            yield behind


def _count(plain: str) -> Iterator[Counted]:
    for number in read_numbers(plain):
        before = _split_words(" ".join(plain[max(number.start - BESIDE, 0) : number.start].split()[-3:]))
        after = _split_words(" ".join(plain[number.end : number.end + BESIDE].split()[:3]))
        yield Counted(number, _first_stem(reversed(before)), _first_stem(after))


def _first_stem(words: Iterable[_Word]) -> str:
    return next((word.stem for word in words if word.stem), "")


def _find_comparisons(words: Sequence[_Word]) -> Iterator[Comparison]:
    for at, word in enumerate(words):
        if not word.stem.startswith("~") or not word.sign:
            continue
        than = next((n for n in range(at + 1, min(at + 4, len(words))) if words[n].lower == "than"), None)
        than = at if than is None and word.stem == "~before" else than
        left = frozenset(_take_clause(reversed(words[:at])))
        right = frozenset(_take_clause(words[than + 1 : than + 9])) if than is not None else frozenset[str]()
        if left and right:
            yield Comparison(word.stem, left, right) if word.sign > 0 else Comparison(word.stem, right, left)


def _take_clause(words: Iterable[_Word]) -> Iterator[str]:
    for word in takewhile(lambda one: one.lower not in _BREAKS, words):
        if word.stem and not word.stem.startswith("~"):
            yield word.stem


# --- what must stand there to the letter ----------------------------------------------------------

_IDENTIFIER = re.compile(
    r"\bv?\d+(?:\.\d+){2,}\b|(?<![\w-])--[A-Za-z][\w-]*|(?<=\s)-[A-Za-z]\b"
    r"|(?<![\w/.])(?:~|\.{1,2})?(?:/[\w.~+-]*\w){1,12}/?"
    r"|\b[\w.-]+(?:/[\w.-]+){2,}\b"
    r"|\b\w+(?:::\w+)+\b"
    r"|\b[A-Za-z_]\w+(?:\.[A-Za-z_]\w+)+\b"
    r"|\b\w*[^\W_]_\w+\b|\b_\w+\b"
    r"|\b[a-z]+[A-Z]\w*\b|\b[A-Z][a-z0-9]+[A-Z]\w*\b|\b[A-Z]{2,}[a-z]\w*[A-Z]\w*\b"
    r"|\b(?=\w*\d)(?=\w*[^\W\d_])\w+\b"
)
_GLUED = re.compile(rf"\d+(?:{UNIT}|st|nd|rd|th|x|s|k)", re.IGNORECASE)
_QUOTATION = re.compile(r'"([^"]{8,300}?)[.,]?"')
_CAPITAL = re.compile(r"(?<![\w'])[A-Z][\w]*(?:-\w+)*")
_OPENS = re.compile(r"(?:^|[.:!?|(\[\"]\s*|—\s*|^\W+)$")
_CAPITAL_TEXT = """
I A An The It If In On At To As By For And Or But So Yes No Not This That These Those You Your We Our They Their He She
His Her Its There Here When Where While What Which Who Why How Each Every All Some Both Use Note Additionally However
Therefore Finally First Second Third Then Also Step Chapter Section Lesson Module Book
"""
_NO_NAME = frozenset(_CAPITAL_TEXT.split())


def read_literals(text: str) -> Literals:
    spans = [found[2].strip() for found in CODE_SPAN.finditer(text)]
    prose = to_plain(CODE_SPAN.sub(" ` ", text))
    found = [one[0].rstrip(".") for one in _IDENTIFIER.finditer(prose)]
    identifiers = [one for one in found if len(one) > 1 and not _GLUED.fullmatch(one)]
    quotations = [one for one in _QUOTATION.findall(to_plain(text)) if len(one.split()) >= 3]
    return Literals(tuple(dict.fromkeys((*spans, *identifiers))), tuple(_find_names(prose)), tuple(quotations))


def _find_names(prose: str) -> Iterator[str]:
    """Words that are capital though they open nothing, and those that are all capitals."""
    for found in _CAPITAL.finditer(prose):
        word = found[0]
        opens = _OPENS.search(prose[: found.start()]) is not None
        acronym = word.isupper() and len(word) > 1
        if acronym or (not opens and word not in _NO_NAME and len(word) > 1):
            yield word


def find_multiples(text: str) -> Iterator[str]:
    return (word for word in re.findall(r"\w+", text.lower()) if word in MULTIPLES)
