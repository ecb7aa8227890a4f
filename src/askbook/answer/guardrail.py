"""What is no question to a book: a command to leave or to tell the assistant's rules, known by its words alone.

It spares readers an odd reply; it is not what keeps the book safe, for words can always be put another way. Other
commands are refused as any question is that the book does not answer.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from askbook.answer.cleaning import clean, decode_hidden

# A command is at the start of a sentence or after "and then"; a question about one has it in the middle.
_BEGINS = (
    r"^\W*+(?:(?:please|now|also|just|ok|hey|so|and|but|then|assistant)[,:]?\s+){0,6}"
    r"(?:(?:can|could|will|would) you (?:please )?|i want you to |you (?:must|should|may|can|have to) )?"
)
_ASKS = re.compile(r"^\W*(?:what|why|how|when|where|who|which|is|are|was|were|do|does|did|has|have)\b")
_SENTENCE = re.compile(r"(?<=[!?;\n])\s+|(?<=[^.]\.)\s+|\n")
_CLAUSE = re.compile(
    r"(?:[,:]\s++(?:(?:and|then|but|or)\s++)*|(?<!\s)\s++(?:(?:and|then|but)\s++(?:then\s++)?|[-–—]++\s++))\W*+"
)
_QUOTED = re.compile(r"\"[^\"]{1,300}\"|`[^`]{1,300}`|(?<!\w)'[^']{1,300}'(?!\w)")

_RULES = r"(?:instructions?|prompts?|rules|directives?|commands|guidelines|messages?|programming|filters)\b"
_EARLIER = r"(?:(?:previous|prior|earlier|above|preceding|system|safety|original|initial|hidden)\s+)"
_TELL = (
    r"(?:repeat|print|show|reveal|output|write|tell|give|copy|recite|list|translate|encode|dump|leak|send|summari[sz]e)"
    r"\s+(?:me\s+|us\s+|out\s+)?"
)
_COMMANDS = (
    rf"(?:ignore|disregard|forget|override|bypass)\s+(?:(?:all|any|every|the|of|these)\s+)*{_EARLIER}+{_RULES}",
    rf"(?:ignore|disregard|forget|override|bypass)\s+(?:all\s+(?:of\s+)?)?your\s+(?:\w+\s+){{0,3}}{_RULES}",
    r"(?:ignore|disregard|forget)\s+(?:th(?:e|is) book\b|(?:everything|all|what)\s+(?:that\s+)?(?:you|i|we)\b)",
    rf"{_TELL}(?:all\s+(?:of\s+)?)?your\s+(?:\w+\s+){{0,3}}{_RULES}(?!\s+(?:for|about|on|to)\b)",
    rf"{_TELL}the\s+{_EARLIER}+{_RULES}(?=\W*$|\W*(?:verbatim|word for word|in full|above|now|you|and|then)\b)",
    rf"{_TELL}(?:everything|all|all the text|what)\s+(?:you were\s+)?(?:above|before this|told|given)\b",
)
_ANYWHERE = re.compile(
    rf"^[^\w\n]*+what(?:'s| is| are)\s+your\s+(?:\w+\s+){{0,2}}{_RULES}\W*$"
    rf"|\bwhat\s+(?:were|was|have)\s+you\s+(?:been\s+)?(?:told|instructed)\b|\bwhich\s+{_RULES}\s+were you given\b",
    re.MULTILINE,
)
_PATTERNS = [re.compile(_BEGINS + command, re.DOTALL) for command in _COMMANDS]


def is_command(text: str) -> bool:
    """Even where it is hidden in Base64 or hexadecimal."""
    return _commands(text) or any(map(_commands, decode_hidden(text)))


def _commands(text: str) -> bool:
    plain = re.sub("[“”„«»]", '"', unicodedata.normalize("NFKC", clean(text)).lower().replace("’", "'")).strip()
    # Quotation marks around everything quote nothing.
    plain = plain[1:-1] if len(plain) > 1 and plain[0] == plain[-1] and plain[0] in "\"'`" else plain
    begun = (pattern.match(clause) for clause in _split_clauses(plain) for pattern in _PATTERNS)
    return _ANYWHERE.search(plain) is not None or any(begun)


def _split_clauses(plain: str) -> Iterator[str]:
    """Each clause that could be a command. Quoted text is no command, and neither is the rest of a question."""
    for sentence in _SENTENCE.split(_QUOTED.sub(" … ", plain)):
        yield sentence
        if not _ASKS.match(sentence):
            yield from (sentence[found.end() :] for found in _CLAUSE.finditer(sentence))
