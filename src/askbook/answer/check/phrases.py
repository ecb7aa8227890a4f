"""Sentences that claim nothing of the book's subject: courtesies, lists of sources, and "the book does not say"."""

from __future__ import annotations

import re

_BOOK = (
    r"(?:book|text|documentation|docs|contents?|material|passages?|sources?|sections?|results?"
    r"|chapters?|lessons?|context)"
)
_ABSENT = re.compile(
    r"\b(?:i|we) (?:do|did|could|can|am)(?: ?not|n't| unable to)\b.{0,30}"
    r"\b(?:information|details?|mention|answer|anything|find)\b"
    rf"|\b{_BOOK}\b[^.]{{0,60}}\b(?:do|does|did)(?: not|n't) (?:\w+ ){{0,2}}"
    r"(?:mention|say|cover|contain|include|provide|discuss|specify|describe|explain|state|give|answer|define)\b"
    r"|\b(?:is|are|was|were)(?: not|n't) (?:\w+ ){0,2}"
    r"(?:mentioned|covered|discussed|described|specified|explained|stated|found)"
    rf"\b[^.]{{0,60}}\b{_BOOK}\b|\bno (?:information|mention|details?)\b",
    re.IGNORECASE,
)
_COURTESY = re.compile(
    r"\W*(?:i hope|let me|feel free|happy to|glad to|good luck|enjoy|thank|hello|hi\b|if you (?:have|need)|i can help"
    r"|you're welcome)|.*\?[\s*_]*$"
    r"|\W*(?:sure|certainly|of course|absolutely|okay|yes|no|indeed|right|correct|exactly|great question)\W*$",
    re.IGNORECASE | re.DOTALL,
)
_FOOTER = re.compile(r"\W*(?:sources?|references|citations?|further reading|footnotes)\W*", re.IGNORECASE)


def says_absent(text: str) -> bool:
    """ "The book does not mention it" is no claim about the subject."""
    return _ABSENT.search(text.replace("’", "'")) is not None


def is_courtesy(text: str) -> bool:
    return _COURTESY.match(text.replace("’", "'")) is not None


def is_footer(text: str) -> bool:
    """The heading of a list of sources, which every door shows by itself."""
    return _FOOTER.fullmatch(text) is not None


def is_opening(text: str) -> bool:
    return text.rstrip(" *_").endswith(":")
