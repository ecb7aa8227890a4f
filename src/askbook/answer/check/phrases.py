"""Sentences that claim nothing of the book's subject: courtesies, openings, lists of sources, and "the book does not say"."""

from __future__ import annotations

import re

_BOOK = r"(?:book|text|documentation|docs|content|contents|material|passages?|sources?|sections?|results?|chapters?|excerpts?|lessons?|context|information (?:provided|given|available))"
_TELLS = r"(?:mention|say|cover|contain|include|provide|discuss|specify|describe|address|explain|state|give|have|offer|tell|answer|list|define|indicate|detail)"
_ABSENT = re.compile(
    rf"\b(?:i|we) (?:do not|don't|did not|didn't|could not|couldn't|cannot|can't|was not able to|am not able to|am unable to)\b"
    rf".{{0,30}}\b(?:information|details?|mention|answer|anything|find|passages?|know)\b"
    rf"|\b{_BOOK}\b[^.]{{0,60}}\b(?:do|does|did)(?: not|n't) (?:\w+ ){{0,2}}{_TELLS}\b"
    rf"|\b(?:is|are|was|were)(?: not|n't) (?:\w+ ){{0,2}}(?:mentioned|covered|discussed|described|addressed|specified|explained|stated|"
    rf"included|provided|answered|found|defined|available|listed)\b[^.]{{0,60}}\b{_BOOK}\b"
    rf"|\b(?:there is|there's|i (?:have|found)|contains?|has|have) no (?:\w+ ){{0,2}}(?:information|mention|details?|answer|passage)\b"
    rf"|\bno (?:information|mention|details?)\b[^.]{{0,60}}\b{_BOOK}\b",
    re.IGNORECASE,
)
_COURTESY = re.compile(
    r"(?:i hope (?:this|that|it)\b.*|(?:please )?(?:let me know|feel free)\b.*|(?:great|good|excellent|interesting) question\b.*"
    r"|(?:sure|certainly|of course|absolutely|okay|ok|happy to help|glad to help|yes|no|thanks?|thank you|you're welcome|indeed|right|correct|exactly)"
    r"(?:,? (?:thing|here (?:is|are) .*|i can help.*|let me .*|i'd be .*|you))?"
    r"|(?:hello|hi|hey)\b.{0,30}|(?:happy|good luck|enjoy)\b.{0,40}|.{0,120}\?"
    r"|(?:would|do) you (?:like|want|need)\b.*|if you (?:have|need|want)\b.*(?:ask|know|help|question).*|is there anything else\b.*"
    r"|(?:let me|i will|i'll|i can) (?:explain|search|look|check|find|help|break|summari[sz]e|walk|elaborate)\b.*)",
    re.IGNORECASE | re.DOTALL,
)
_FOOTER = re.compile(r"\W*(?:sources?|references|citations?|further reading|footnotes)\W*", re.IGNORECASE)
_FRAME = re.compile(
    r"(?:(?:yes|no|sure|certainly|indeed|in short|in summary|to summari[sz]e|overall|in other words|in addition|as a result|for example|for instance)[,:] +)?"
    r"(?:(?:according to|based on|as (?:described|explained|stated|mentioned|noted|shown) in|per) "
    rf"(?:the|this|these) (?:\w+ ){{0,2}}{_BOOK}\b(?: \w+)?, +"
    rf"|(?:the|this) (?:\w+ )?(?:{_BOOK}|author) (?:also )?(?:says?|explains?|states?|notes?|describes?|mentions?|recommends?)(?: that)? +)?",
    re.IGNORECASE,
)
_OPENING_TEXT = """
here are is following follow follows below step steps example examples list lists summary short brief briefly overview
key point points main answer question explain explains describe describes looks look like see reason reasons details
detail option options what how why quick simple basic general note important things types kinds ways parts include
includes work works do using use case cases main different following code snippet command commands run
"""
OPENING_WORDS = frozenset(_OPENING_TEXT.split())


def says_absent(text: str) -> bool:
    """ "The book does not mention it": no claim about the subject, but about the book."""
    return _ABSENT.search(text.replace("’", "'")) is not None


def is_courtesy(text: str) -> bool:
    return _COURTESY.fullmatch(text.replace("’", "'").strip(" *_.!:\n\t")) is not None or text.rstrip(" *_").endswith(
        "?"
    )


def is_footer(text: str) -> bool:
    """The heading of a list of sources; the reader gets one without it."""
    return _FOOTER.fullmatch(text) is not None


def is_opening(text: str) -> bool:
    return text.rstrip(" *_").endswith(":")


def strip_frame(text: str) -> str:
    """The claim itself, without "Yes," and "According to the book,"."""
    found = _FRAME.match(text)
    # What is capital behind a frame is a name: it opens nothing.
    return f"so {text[found.end() :]}" if found and found[0] else text
