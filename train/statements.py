"""Statements made from a passage's own sentences: edits that keep a sentence true, and edits that make it false.

Both kinds are applied on top of each other, so that neither "word for word" nor "changed" tells true from false.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from itertools import pairwise

_SENTENCE = re.compile(r"(?<=[.!?])[\"”’)]*\s+(?=[A-Z`\"“])|\n{2,}|\n(?=[-*#|>]|\d+\.)")
_MARKUP = re.compile(
    r"\[([^\[\]]*)\](?:\([^()]*\)|\{[^{}]*\})|\{:[^{}]*\}|</?[a-zA-Z][^<>]*>|\*+|__|^#+\s+|^[-*>]\s+|^\d+\.\s+"
)
_NUMBER = re.compile(r"(?<![\w.,-])\d[\d,]*(?:\.\d+)?(?![\w-])")
_NAME = re.compile(r"`[^`\n]{2,40}`|(?<=[a-z,] )[A-Z][\w’']+(?: (?:of |the )?[A-Z][\w’']+)*")
_RELATIVE = re.compile(r", (?:which|who|where|whose) [^,.;:]{8,80}(?=[,.])")
_OPENING = re.compile(
    r"^(?:However|For example|For instance|In addition|Therefore|Thus|Also|Moreover|Furthermore|In fact|Then|Finally"
    r"|Note that|As a result|In general|Similarly|Instead),? ",
    re.IGNORECASE,
)
_TAIL = re.compile(r", (?:and|but|while|although|whereas|so) [^.]{12,}(?=\.?$)")
_CONDITION = re.compile(r"^(If|When|Once|Unless|After|Before) ([^,]{8,90}), ([^.]{12,160})\.?$")
_VERB = re.compile(r" (is|are|was|were|can|has|have|will|must|should|does|do) ")
_NOT = re.compile(r"\b(is|are|was|were|can|could|will|would|should|must|may|does|do|did|has|have) (not |n't )?")
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")

ALIKE = [
    ("in order to", "to"),
    ("because", "since"),
    ("about", "approximately"),
    ("begin", "start"),
    ("large", "big"),
    ("use", "make use of"),
    ("many", "a lot of"),
    ("allows you to", "lets you"),
    ("however", "but"),
    ("called", "known as"),
    ("such as", "like"),
    ("is not", "isn't"),
    ("cannot", "can't"),
    ("do not", "don't"),
    ("occurs", "happens"),
    ("requires", "needs"),
    ("create", "make"),
    ("important", "significant"),
    ("also", "in addition"),
    ("often", "frequently"),
    ("whole", "entire"),
    ("shows", "indicates"),
    ("before", "prior to"),
    ("help", "assist"),
    ("get", "obtain"),
]
OPPOSITE = [
    ("before", "after"),
    ("more", "less"),
    ("more", "fewer"),
    ("increase", "decrease"),
    ("increases", "decreases"),
    ("increased", "decreased"),
    ("first", "last"),
    ("always", "never"),
    ("minimum", "maximum"),
    ("above", "below"),
    ("can", "cannot"),
    ("enable", "disable"),
    ("enabled", "disabled"),
    ("same", "different"),
    ("higher", "lower"),
    ("high", "low"),
    ("larger", "smaller"),
    ("large", "small"),
    ("earlier", "later"),
    ("early", "late"),
    ("input", "output"),
    ("client", "server"),
    ("read", "write"),
    ("add", "remove"),
    ("added", "removed"),
    ("start", "stop"),
    ("open", "closed"),
    ("true", "false"),
    ("left", "right"),
    ("public", "private"),
    ("required", "optional"),
    ("internal", "external"),
    ("north", "south"),
    ("east", "west"),
    ("old", "new"),
    ("older", "newer"),
    ("long", "short"),
    ("longer", "shorter"),
    ("fast", "slow"),
    ("faster", "slower"),
    ("positive", "negative"),
    ("strong", "weak"),
    ("with", "without"),
    ("all", "some"),
    ("all", "none of the"),
    ("only", "not only"),
    ("most", "few"),
    ("both", "neither"),
    ("at least", "at most"),
    ("rise", "fall"),
    ("gain", "lose"),
    ("parent", "child"),
    ("local", "remote"),
    ("inside", "outside"),
    ("success", "failure"),
    ("explicitly", "implicitly"),
    ("better", "worse"),
    ("usually", "rarely"),
    ("often", "seldom"),
    ("majority", "minority"),
]


def split_sentences(passage: str) -> list[str]:
    """The sentences that can stand as a statement, without their markup."""
    prose = re.sub(r"```.*?```|~~~.*?~~~", "\n\n", passage, flags=re.S)
    cleaned = (" ".join(_MARKUP.sub(r"\1", piece).split()) for piece in _SENTENCE.split(prose))
    return [
        one
        for one in cleaned
        if 7 <= len(one.split()) <= 45 and one[0].isupper() and one[-1] in '.!”"' and "|" not in one
    ]


def make_pair(sentence: str, passage: str, others: list[str], rng: random.Random) -> tuple[str, str] | None:
    """A statement that the passage supports and one that it does not, alike in everything else."""
    true = sentence
    edits = rng.choice((0, 1, 1, 2, 3))
    for edit in rng.sample(KEEPING, len(KEEPING)):
        edited = edit(true, rng) if edits else None
        if edited:
            true, edits = edited, edits - 1
    for edit in rng.sample(BREAKING, len(BREAKING)):
        false = edit(true, passage, others, rng)
        if false and false != true and false.lower() not in passage.lower():
            return true, false
    return None


# --- edits that keep it true ----------------------------------------------------------------------


def _drop_parenthesis(text: str, rng: random.Random) -> str | None:
    return re.sub(r" ?\([^()]*\)", "", text) if "(" in text else None


def _drop_opening(text: str, rng: random.Random) -> str | None:
    rest = _OPENING.sub("", text)
    return rest[:1].upper() + rest[1:] if rest != text else None


def _drop_relative(text: str, rng: random.Random) -> str | None:
    rest = _RELATIVE.sub("", text, count=1)
    return re.sub(r",\s*\.", ".", rest) if rest != text else None


def _drop_tail(text: str, rng: random.Random) -> str | None:
    rest = _TAIL.sub("", text)
    return rest if rest != text and len(rest.split()) >= 6 else None


def _turn_condition(text: str, rng: random.Random) -> str | None:
    found = _CONDITION.match(text)
    if not found:
        return None
    word, condition, rest = found.groups()
    return f"{rest[:1].upper()}{rest[1:]} {word.lower()} {condition}."


def _say_alike(text: str, rng: random.Random) -> str | None:
    return _replace_word(text, ALIKE, rng)


def _spell_number(text: str, rng: random.Random) -> str | None:
    for number, word in enumerate(_WORDS):
        if re.search(rf"(?<![\d.,]){number}(?![\d.,%])", text) and number > 1:
            return re.sub(rf"(?<![\d.,]){number}(?![\d.,%])", word, text, count=1)
        if number > 1 and re.search(rf"\b{word}\b", text):
            return re.sub(rf"\b{word}\b", str(number), text, count=1)
    return None


def _attribute(text: str, rng: random.Random) -> str | None:
    text = _OPENING.sub("", text)
    opening = rng.choice(("According to the text, ", "The book says that ", "Note that ", "In short, "))
    return opening + (text[:1].lower() + text[1:] if text.split()[0].lower() in _LOWER else text)


_LOWER = {
    "the",
    "a",
    "an",
    "if",
    "when",
    "in",
    "this",
    "these",
    "it",
    "you",
    "for",
    "there",
    "some",
    "most",
    "each",
    "all",
}
KEEPING: list[Callable[[str, random.Random], str | None]] = [
    _drop_parenthesis,
    _drop_opening,
    _drop_relative,
    _drop_tail,
    _turn_condition,
    _say_alike,
    _spell_number,
    _attribute,
]

# --- edits that make it false ---------------------------------------------------------------------


def _change_number(text: str, passage: str, others: list[str], rng: random.Random) -> str | None:
    numbers = list(_NUMBER.finditer(text))
    if not numbers:
        return None
    found = rng.choice(numbers)
    value = found.group()
    near = [other for other in _NUMBER.findall(passage) if other != value]
    if near and rng.random() < 0.6:
        new = rng.choice(near)
    else:
        plain = value.replace(",", "")
        new = (
            f"{float(plain) * rng.choice((0.5, 2, 10)):g}"
            if "." in plain
            else str(int(plain) + rng.choice((-2, -1, 1, 2, 5, 10)))
        )
    return text[: found.start()] + new + text[found.end() :] if new != value else None


def _change_name(text: str, passage: str, others: list[str], rng: random.Random) -> str | None:
    names = list(_NAME.finditer(text))
    if not names:
        return None
    found = rng.choice(names)
    code = found.group().startswith("`")
    near = [name for name in set(_NAME.findall(passage)) if name.startswith("`") == code and name not in text]
    return text[: found.start()] + rng.choice(sorted(near)) + text[found.end() :] if near else None


def _exchange_names(text: str, passage: str, others: list[str], rng: random.Random) -> str | None:
    names = list(_NAME.finditer(text))
    pairs = [(a, b) for a, b in pairwise(names) if a.group() != b.group()]
    pairs = [(a, b) for a, b in pairs if not re.fullmatch(r",?( and| or|,) ?", text[a.end() : b.start()])]
    if not pairs:
        return None
    a, b = rng.choice(pairs)
    return text[: a.start()] + b.group() + text[a.end() : b.start()] + a.group() + text[b.end() :]


def _negate(text: str, passage: str, others: list[str], rng: random.Random) -> str | None:
    found = _NOT.search(text)
    if not found:
        return None
    verb, negation = found.groups()
    return text[: found.start()] + (f"{verb} " if negation else f"{verb} not ") + text[found.end() :]


def _say_opposite(text: str, passage: str, others: list[str], rng: random.Random) -> str | None:
    pairs = [pair if rng.random() < 0.5 else pair[::-1] for pair in OPPOSITE]
    return _replace_word(text, pairs, rng)


def _join_wrongly(text: str, passage: str, others: list[str], rng: random.Random) -> str | None:
    found = _VERB.search(text)
    if not found or found.start() < 4:
        return None
    for other in rng.sample(others, len(others)):
        there = re.search(f" {found.group(1)} ", other)
        if other != text and there and len(other[there.end() :].split()) >= 4:
            return text[: found.end()] + other[there.end() :]
    return None


def _change_condition(text: str, passage: str, others: list[str], rng: random.Random) -> str | None:
    found = _CONDITION.match(text)
    if not found:
        return None
    _, condition, rest = found.groups()
    if rng.random() < 0.5:
        return f"{rest[:1].upper()}{rest[1:]}, whether or not {condition}."
    for other in rng.sample(others, len(others)):
        there = _CONDITION.match(other)
        if there and there.group(2) != condition:
            return f"{there.group(1)} {there.group(2)}, {rest}."
    return None


BREAKING: list[Callable[[str, str, list[str], random.Random], str | None]] = [
    _change_number,
    _change_name,
    _exchange_names,
    _negate,
    _say_opposite,
    _say_opposite,
    _join_wrongly,
    _join_wrongly,
    _change_condition,
]


def _replace_word(text: str, pairs: list[tuple[str, str]], rng: random.Random) -> str | None:
    for old, new in rng.sample(pairs, len(pairs)):
        found = re.search(rf"\b{re.escape(old)}\b", text)
        if found:
            return text[: found.start()] + new + text[found.end() :]
    return None
