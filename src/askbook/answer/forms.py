"""The forms in which people ask about a book itself. All of a question must fit one of them, or it asks for more."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from askbook.answer.places import ALIASES, BOOK, KIND

QUESTION_MAX = 200

Form = Literal["count", "list", "contents", "order", "called", "what", "end", "where", "here"]

_KINDS = rf"(?P<kinds>(?:module|chapter|lesson|section|topic|subject|{ALIASES})s)"
_ONE = rf"(?P<kind>{KIND})"
_PART, _TOPIC = r"(?P<part>.+?)", r"(?P<topic>.+?)"
_INSIDE = rf"(?: (?:in|of|for|from|within|inside) {_PART})?"
_HOLDS = r"(?:have|contain|include|cover|comprise|consist of|discuss|teach)"
_TREATED = r"(?:covered|discussed|explained|taught|treated)"
_TOLD = r"(?:covered|discussed|explained|taught|treated|introduced|described|mentioned|defined|found)"

_FORMS: dict[Form, tuple[str, ...]] = {
    "count": (
        rf"how many (?:different )?{_KINDS}(?: (?:are there|there are))?(?: in total| altogether)?{_INSIDE}",
        rf"how many {_KINDS} (?:does|do|has) {_PART} (?:{_HOLDS}|got)(?: in total| altogether)?",
        rf"how many {_KINDS} are (?:in|part of|inside) {_PART}",
        rf"(?:what is )?the (?:total )?number of {_KINDS}{_INSIDE}",
    ),
    "list": (
        rf"(?:list|name|enumerate)(?: all)?(?: of)?(?: the| its)? {_KINDS}{_INSIDE}",
        rf"(?:what|which) are (?:all )?(?:of )?the {_KINDS}{_INSIDE}",
        rf"(?:what|which) {_KINDS} are there{_INSIDE}",
        rf"(?:what|which) {_KINDS} (?:does|do) {_PART} {_HOLDS}",
        rf"(?:what|which) {_KINDS} are (?:in|part of|inside|included in|{_TREATED} in|covered by) {_PART}",
        rf"(?:all )?(?:of )?(?:the )?{_KINDS} (?:in|of|from) {_PART}",
    ),
    "contents": (
        rf"(?:what is )?(?:the |a )?(?:full |complete )?(?:table of contents|toc)(?: (?:of|for|in) {_PART})?",
        rf"(?:what (?:is|are) )?(?:the |an )?(?:contents|outline|structure|overview|syllabus) (?:of|for) {_PART}",
        rf"how is {_PART} (?:structured|organi[sz]ed|divided|laid out|arranged)",
        rf"what is {_PART} (?:all )?about",
        rf"about {_PART}",
        rf"what (?:does|do) {_PART} (?:{_HOLDS}|deal with|talk about)",
        rf"what (?:is|are)(?: there)? (?:in|inside|contained in|included in|{_TREATED} in|covered by) {_PART}",
        rf"what (?:will|can|do|would|could) (?:i|we|you) learn(?: about)? (?:in|from|with) {_PART}",
    ),
    "order": (
        rf"(?:what|which)(?: {_ONE})? (?:comes|is|goes|(?:should|do|must) (?:i|we) (?:read|do|take|study))"
        rf"(?: right| immediately| directly| just| next)? (?P<way>before|after) {_PART}",
        rf"(?:what|which)(?: {_ONE})? (?P<way>follows|precedes) {_PART}",
        rf"(?:what|which) (?:is )?(?:the )?(?P<way>next|previous|following|preceding|prior) {_ONE}"
        rf"(?: (?:after|before|to|following) {_PART})?",
        rf"what is the {_ONE} (?:right |immediately |directly |just )?(?P<way>before|after) {_PART}",
    ),
    "called": (
        rf"(?:what is )?the (?:title|name) of {_PART}",
        rf"what is {_PART} (?:called|named|titled)",
        r"(?:what|which) (?P<part>book) is this",
    ),
    "what": (rf"what is {_PART}",),
    "end": (
        rf"(?:what|which) {_ONE} (?:is|comes|goes) (?:the )?(?P<end>first|last)(?: (?:in|of) {_PART})?",
        rf"(?:where|what) does {_PART} (?P<end>start|begin|end)(?: with)?",
    ),
    "where": (
        rf"(?:which|what) {_ONE}s? (?:covers?|discuss(?:es)?|explains?|teach(?:es)?|deals? with|talks? about"
        rf"|describes?|introduces?|treats?|(?:is|are) (?:about|on)) {_TOPIC}",
        rf"(?:in )?(?:which|what) {_ONE}s? (?:is|are) {_TOPIC} (?:{_TOLD}|in)(?: in)?",
        rf"(?:in )?(?:which|what) {_ONE}s? (?:can|do|should) i (?:find|read|learn|study)"
        rf"(?: more)?(?: to learn| to understand)?(?: about)? {_TOPIC}",
        rf"(?:is|are) there (?:an? |any )?{_ONE}s? (?:on|about|covering|that covers?|dealing with) {_TOPIC}",
        rf"(?:which|what) {_ONE}s(?: are there)? (?:on|about) {_TOPIC}",
        rf"where (?:is|are) {_TOPIC} {_TREATED}(?: in {BOOK})?",
        rf"where (?:is|are) {_TOPIC} {_TOLD} in {BOOK}",
        rf"where in {BOOK} (?:is|are|(?:can|do) i (?:find|read about|learn about)) {_TOPIC}(?: {_TOLD})?",
        rf"where (?:can|do) i (?:find|read|learn)(?: more)?(?: about)? {_TOPIC} in {BOOK}",
        rf"where does {BOOK} (?:cover|discuss|explain|teach|describe|introduce|mention|talk about) {_TOPIC}",
    ),
    "here": (rf"(?:in )?(?:which|what) {_ONE} (?:is|was|are) (?:this|that|it|we)(?: (?:from|in|part of))?",),
}
_PATTERNS: list[tuple[Form, re.Pattern[str]]] = [
    (form, re.compile(pattern)) for form, patterns in _FORMS.items() for pattern in patterns
]

_COURTESY = re.compile(
    r"(?:(?:hi|hello|hey|ok|okay|so|and|now|well|please)\b[,!.]? |(?:can|could|would|will) you (?:please )?"
    r"|(?:tell|show|give) (?:me|us) |do you know |i (?:would like|want) to (?:know|see) )"
)
_CLOSING = re.compile(r"(?:[\s?!.…]|,? (?:please|thanks|thank you))+$")
THIS_BOOK = re.compile(rf"(?!the ){BOOK}")
ANY_BOOK = re.compile(BOOK)
_NAMES_PART = re.compile(rf"\b(?:{KIND}|section|ch)\b|{BOOK}|[\"“]")
BACKWARD = ("before", "precedes", "previous", "preceding", "prior")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question in the words of one form."""

    form: Form
    words: dict[str, str]


def read_forms(question: str) -> Iterator[Asked]:
    """Every form that all of the question fits."""
    text = _simplify(question)
    if len(text) > QUESTION_MAX:
        return
    for form, pattern in _PATTERNS:
        found = pattern.fullmatch(text)
        words = {name: said for name, said in found.groupdict().items() if said} if found else {}
        if found and ("part" not in words or "kind" in words or _NAMES_PART.search(words["part"])):
            yield Asked(form, words)


def _simplify(question: str) -> str:
    text = " ".join(question[: 2 * QUESTION_MAX].replace("’", "'").lower().split())
    text = _CLOSING.sub("", re.sub(r"\b(what|where|which)'s\b", r"\1 is", text))
    while opening := _COURTESY.match(text):
        text = text[opening.end() :]
    return text


def asks_structure(question: str) -> bool:
    """Whether it may be about the book itself; the outline tells whether it is."""
    return next(read_forms(question), None) is not None
