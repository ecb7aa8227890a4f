"""What is no question to a book: a command to the assistant, told by its words alone, before anything is searched.

It spares readers an odd reply; it is not what keeps the book safe, for words can always be put another way. So it would
rather let a command pass than keep a question out: a book on prompts, keys or attacks can be asked about them.
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
_FREED = r"(?:dan|ai|assistant|chatbot|bot|(?:linux )?terminal|unrestricted|uncensored|unfiltered)\b"
_KEPT_BACK = r"(?:api[ _-]?keys?|secrets?|passwords?|credentials?|tokens?|\.env|environment(?: variables?)?)\b"
_SERVERS = r"(?:your|(?:the|this) (?:server|system|machine)'s)\s+(?:\w+\s+){0,2}"
_ADDRESS = r"https?://(?!localhost|127\.|192\.168\.|10\.)\S+"
_TELL = (
    r"(?:repeat|print|show|reveal|output|write|tell|give|copy|recite|list|translate|encode|dump|leak|send|summari[sz]e)"
    r"\s+(?:me\s+|us\s+|out\s+)?"
)
_COMMANDS = (
    # To leave its rules.
    rf"(?:ignore|disregard|forget|override|bypass)\s+(?:(?:all|any|every|the|of|these)\s+)*{_EARLIER}+{_RULES}",
    rf"(?:ignore|disregard|forget|override|bypass)\s+(?:all\s+(?:of\s+)?)?your\s+(?:\w+\s+){{0,3}}{_RULES}",
    r"(?:ignore|disregard|forget)\s+(?:th(?:e|is) book\b|(?:everything|all|what)\s+(?:that\s+)?(?:you|i|we)\b)",
    rf"(?:you are|you're|be) now\s+(?:\w+\s+){{0,2}}{_FREED}",
    r"from now on,?\s+(?:you|your|answer|respond|reply|act|always|never|(?:every|all) answers?)\b",
    rf"(?:act|behave|respond|answer|pretend|roleplay)\s+(?:as|like|to be|you are)\s+(?:\w+\s+){{0,2}}{_FREED}",
    r"ignor(?:iere|ez|e|a)\s.{0,20}\b(?:anweisungen|consignes|instructions pr|instrucciones)",
    r"(?:enable|enter|activate|switch to)\s+(?:\w+\s+)?(?:dan|god|jailbreak|unrestricted|evil)[ -]mode\b",
    rf"(?:follow|obey|use|here are)\s+(?:my|the|these|your)\s+new\s+{_RULES}",
    r"(?:new policy|(?:system|developer)(?: message)?)\s*:\s*"
    r"(?:you|ignore|from now|do not|always|never|cite|reveal)\b",
    # To tell what only the server knows.
    rf"{_TELL}(?:all\s+(?:of\s+)?)?your\s+(?:\w+\s+){{0,3}}{_RULES}(?!\s+(?:for|about|on|to)\b)",
    rf"{_TELL}the\s+{_EARLIER}+{_RULES}(?=\W*$|\W*(?:verbatim|word for word|in full|above|now|you|and|then)\b)",
    rf"{_TELL}(?:everything|all|all the text|what)\s+(?:you were\s+)?(?:above|before this|told|given)\b",
    rf"{_TELL}(?:all\s+)?{_SERVERS}{_KEPT_BACK}",
    rf"{_TELL}(?:the\s+)?(?:value of\s+)?\$?[a-z_]*(?:api_key|secret_key|database_url|_password|_token)\W*$",
    # To reach outside the book.
    rf"(?:fetch|visit|browse|go|connect|open)\s.{{0,30}}{_ADDRESS}\W*$",
    rf"(?:put|send|post|upload|append|add|insert|include|end)\s.{{0,60}}"
    rf"\b(?:messages?|conversation|chat|history|answer|reply|image)\b.{{0,80}}{_ADDRESS}",
    r"(?:(?:search|query|read|use|open|switch to)\s.{0,20})?\b(?:book_id|tenant_id|user_id|thread_id)\s*[=:]\s*\S",
    r"(?:continue|open|read|show|quote|summari[sz]e)\s.{0,40}\b(?:thread|chat|conversation|questions|messages)\b"
    r".{0,40}other (?:users?|readers?|people|tenants?)\b",
    # To answer in a form that no answer has.
    r"(?:answer|reply|respond)\s+(?:only\s+)?(?:in|with|as)\s+(?:raw\s+)?"
    r"(?:html|javascript|base ?64|rot13|morse)\b",
    r"(?:write|repeat|print|say)\s+the\s+(?:word|letter|phrase|text).{0,40}\b(?:\d[\d,.]{3,} times|forever)\b",
    r"decode\s.{0,200}\b(?:and|then)\s+(?:obey|follow|execute|do (?:it|what|that))\b",
)
_ANYWHERE = re.compile(
    rf"^[^\w\n]*+what(?:'s| is| are)\s+(?:your\s+(?:\w+\s+){{0,2}}{_RULES}|{_SERVERS}{_KEPT_BACK})\W*$"
    rf"|\bwhat\s+(?:were|was|have)\s+you\s+(?:been\s+)?(?:told|instructed)\b|\bwhich\s+{_RULES}\s+were you given\b"
    r"|\b(?:starting|beginning) with\s+(?:the words?\s+)?[\"'`]?you are\b"
    r"|\blist all\s+(?:\w+\s+){0,2}books on (?:this|the|your) (?:server|system)\b"
    r"|<\|im_(?:start|end)\|>\s*(?:system|assistant|<\|)|^[^\S\n]*+<system>\s*\S",
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
