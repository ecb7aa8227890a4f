"""What is no question to a book: a command to the assistant. Told by its words alone, before anything is searched or spent.

It saves work and spares readers an odd reply; it is not what keeps the book safe, for words can always be put another way.
So it would rather let a command pass than keep a question out: a book on prompts, keys or attacks can be asked about them.
"""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from collections.abc import Iterator

from askbook.answer.cleaning import clean

OVERRIDE = "it tells the assistant to leave its rules"
EXTRACT = "it asks for the assistant's own instructions"
SECRETS = "it asks for secrets of the server"
SEND = "it asks to send or fetch something"
CROSS = "it asks for what belongs to others"
FORM = "it dictates a form that no answer has"
ENCODED = "it hides a command in code"

# --- how a command begins -------------------------------------------------------------------------

# A command stands at the beginning of a sentence or after "and then"; a question about it has it in the middle.
_WORDS_BEFORE = "please now just first instead also ok okay hey hello hi so and but then again kindly simply assistant ai chatbot bot"
_POLITE = rf"(?:(?:{_WORDS_BEFORE.replace(' ', '|')})[,:]?\s+){{0,6}}"
_ASKED = (
    r"(?:(?:can|could|will|would) you\s+|(?:i want|i need|i'd like|i would like|i order|i command) you to\s+|let's\s+"
    r"|you (?:must|should|shall|will|may|can|have to|need to|are (?:allowed|ordered|instructed) to)\s+)?"
)
_BEGINS = rf"^\W*{_POLITE}{_ASKED}{_POLITE}"
_ASKS = re.compile(r"^\W*(?:what|why|how|when|where|who|whom|which|whose|is|are|was|were|do|does|did|has|have)\b")
_SENTENCE = re.compile(r"(?<=[!?;\n])\s+|(?<=[^.]\.)\s+|\n")
_CLAUSE = re.compile(r"[,:]\s+(?:(?:and|then|but|or)\s+)*|\s+(?:and|then|but)\s+(?:then\s+)?|\s+[-–—]+\s+")
_QUOTED = re.compile(r"\"[^\"]{1,300}\"|`[^`]{1,300}`|(?<!\w)'[^']{1,300}'(?!\w)")

# --- what commands speak of -----------------------------------------------------------------------

_ME = r"(?:me\s+|us\s+|back\s+|out\s+)?"
_A = r"(?:an?\s+|the\s+|my\s+)?"
_ALL = r"(?:(?:all|any|every|the|your|my|these|those|this|of|such|other)\s+){0,4}"
_EARLIER = (
    r"(?:previous|prior|earlier|above|preceding|foregoing|former|existing|current|original|initial|system|safety|given"
    r"|past)\s+"
)
_OWN = (
    r"(?:own|full|entire|whole|exact|complete|original|initial|hidden|secret|internal|current|system|developer|base|first"
    r"|underlying|core|custom|very)\s+"
)
_RULES = (
    r"(?:instructions?|prompts?|rules?|directions?|directives?|commands?|guidelines?|constraints?|restrictions?|messages?"
    r"|orders?|programming|training|safeguards?|filters?)\b"
)
_PROMPT = r"(?:prompt|instructions?|(?:system|developer) message|directives?|guidelines|rules|programming)\b"
# "The system prompt of chapter 3" is the book's; "the system prompt, verbatim" is the assistant's.
_AND_NO_MORE = (
    r"(?=\W*$|\W*(?:verbatim|word for word|exactly|in full|completely|above|now|please|to me|for me|you|into|before|and"
    r"|then|first)\b)"
)
_BOT = r"(?:dan|ai(?: model)?|assistant|chatbot|bot|llm|language model|(?:linux )?terminal|hacker|jailbreak)\b"
_FREED = r"(?:jailbroken|unrestricted|uncensored|unfiltered)\b"
_KEPT_BACK = (
    r"(?:api[ _-]?keys?|(?:secret |access |private )?keys|secrets?|passwords?|credentials?|(?:access )?tokens?|\.env"
    r"|env(?:ironment)?(?: var(?:iable)?s?)?|database url|connection string|config(?:uration)? files?)\b"
)
_THE_SERVERS = r"(?:your|(?:the|this) (?:server|system|machine|host|admin|administrator)'s)\s+(?:\w+\s+){0,2}"
_ADDRESS = r"(?:https?|ftp)://(?!localhost|127\.|0\.0\.0\.0|\[::1\]|192\.168\.|10\.)\S+"
_TALK = r"\b(?:messages?|conversations?|chats?|history|transcripts?|(?:earlier|previous) questions?|thread)\b"

_TELL = (
    "repeat print show reveal display output write tell give copy recite list translate paraphrase encode spell quote dump "
    "leak disclose share return state provide expose echo reproduce send describe summarize summarise explain convert type"
)

# A reason, the verbs that a command begins with, and what must follow.
_COMMANDS = (
    (OVERRIDE, "ignore disregard forget override bypass neglect drop discard abandon skip circumvent",
     rf"(?:about\s+)?{_ALL}(?:{_EARLIER}){{1,3}}{_RULES}"),
    (OVERRIDE, "ignore disregard forget override bypass break violate abandon",
     rf"(?:all\s+(?:of\s+)?)?your\s+(?:{_OWN}|{_EARLIER}){{0,3}}{_RULES}"),
    (OVERRIDE, "forget ignore disregard", r"(?:about\s+)?(?:the|this|that)\s+(?:whole\s+)?book\b"),
    (OVERRIDE, "forget ignore disregard",
     r"(?:everything|anything|all|what)\s+(?:that\s+)?(?:you|i|we|above|before|was|has been)\b"),
    (OVERRIDE, "do say answer", r"anything\s+(?:now|you (?:want|like)|i (?:ask|say|want)|without)\b"),
    (OVERRIDE, "you_are you're be",
     rf"now\s+(?:in\s+)?{_A}(?:\w+\s+){{0,2}}(?:{_BOT}|{_FREED}|evil\b|free (?:of|from)\b|no longer\b"
     r"|(?:dan|god|jailbreak|developer|debug|admin|root|maintenance)[ -]mode\b)"),
    (OVERRIDE, "from_now_on",
     r",?\s*(?:you|your|answer|respond|reply|act|ignore|speak|always|never|(?:every|all) answers?)\b"),
    (OVERRIDE, "act behave respond answer reply speak roleplay role-play pretend imagine simulate play",
     rf"(?:as|like|to be|being|(?:that )?you are|the role of)\s+(?:if you (?:are|were)\s+)?{_A}(?:\w+\s+){{0,2}}"
     rf"(?:{_BOT}|{_FREED})"),
    (OVERRIDE, "enable enter activate switch_to turn_on go_into",
     r"(?:your\s+|the\s+)?(?:dan|god|jailbreak|unrestricted|uncensored|unfiltered|evil)[ -]?mode\b"),
    (OVERRIDE, "follow obey use apply here_are these_are",
     rf"(?:only\s+)?(?:my|the|these|your)\s+new\s+(?:system\s+)?{_RULES}"),
    (OVERRIDE, "new updated", r"(?:policy|system prompt|instructions?|rules)\s*:"),
    (OVERRIDE, "system developer admin",
     r"(?:(?:message|prompt|override|notice|update|note)\s*)?:\s*"
     r"(?:you|your|ignore|from now|new|do not|always|never|disregard|reveal|print|the assistant)\b"),
    (OVERRIDE, "ignoriere ignorieren", r"(?:sie\s+)?(?:alle\s+|die\s+)*(?:vorherigen|bisherigen|obigen)\s+(?:anweisungen|regeln)"),
    (OVERRIDE, "ignore ignorez", r"(?:toutes\s+)?(?:les|tes|vos)\s+(?:instructions|consignes|règles)\s+(?:précédentes|ci-dessus)"),
    (OVERRIDE, "ignora ignore ignoren", r"(?:todas\s+)?(?:las|tus|sus)\s+(?:instrucciones|reglas)\s+(?:anteriores|previas)"),
    (EXTRACT, _TELL,
     rf"{_ME}(?:what\s+)?(?:all\s+(?:of\s+)?)?your\s+(?:{_OWN}){{0,3}}{_PROMPT}(?!\s+(?:for|about|on|to)\b)"),
    (EXTRACT, _TELL, rf"{_ME}the\s+(?:{_OWN}|above\s+|previous\s+){{1,3}}(?:{_PROMPT}|message\b){_AND_NO_MORE}"),
    (EXTRACT, "repeat print output write copy echo recite display return reproduce translate show give encode reveal",
     rf"{_ME}(?:everything|all|(?:all )?the (?:text|words|content|lines?)|what(?:ever)? (?:is|was))\s+(?:that\s+)?"
     r"(?:(?:is|was|you were|you have been)\s+)?(?:written\s+|printed\s+)?(?:above|before (?:this|my)|told|given)\b"),
    (EXTRACT, _TELL,
     r".{0,40}\b(?:hidden|secret|internal)\s+(?:rules|instructions?|prompt)\s+of\s+(?:this|the)\s+"
     r"(?:assistant|chatbot|bot|ai|model)\b"),
    (SECRETS, _TELL, rf"{_ME}(?:all\s+(?:of\s+)?)?{_THE_SERVERS}{_KEPT_BACK}"),
    (SECRETS, _TELL,
     rf"{_ME}(?:all\s+)?the\s+(?:\w+\s+){{0,2}}{_KEPT_BACK}\s+(?:of|on|from|in)\s+(?:this|the|your)\s+"
     r"(?:server|machine|host|process)\b"),
    (SECRETS, _TELL,
     rf"{_ME}(?:the\s+)?(?:value of\s+)?\$?[a-z_]*(?:api_key|secret_key|access_key|database_url|_password|_token)\W*$"),
    (SEND, "fetch visit browse navigate go connect make issue", rf".{{0,30}}{_ADDRESS}\W*$"),
    (SEND, "put send post upload append encode forward submit include add email mail leak exfiltrate insert attach copy",
     rf".{{0,60}}{_TALK}.{{0,80}}(?:{_ADDRESS}|\bwebhook\b|\S+@\S+\.\w+)"),
    (SEND, "add append insert include embed end finish close start begin",
     rf".{{0,40}}(?:answer|reply|response|image|link|!\[).{{0,60}}{_ADDRESS}"),
    (CROSS, "search query read use open switch_to look quote",
     r".{0,20}\b(?:book_id|tenant_id|tenant|user_id|thread_id|session_id)\s*[=:]"),
    (CROSS, "book_id tenant_id thread_id", r"\s*[:=]\s*\S"),
    (CROSS, "continue open read show quote summarize summarise resume load print",
     r".{0,40}\b(?:thread|chat|conversation|session|questions?|messages?)\b.{0,40}\b(?:of|from|by)\s+"
     r"(?:the\s+|some\s+|any\s+|an)?other\s+(?:users?|readers?|people|persons?|tenants?|customers?)\b"),
    (FORM, "answer reply respond",
     r"(?:me\s+)?(?:only\s+)?(?:in|with|as|using)\s+(?:raw\s+)?(?:html|javascript|base ?64|rot13|morse|reverse|binary)\b"),
    (FORM, "write repeat print say output type",
     r"(?:the\s+)?(?:word|letter|phrase|sentence|string|text).{0,40}\b(?:\d[\d,.]{3,}\s+times|forever|endlessly)\b"),
    (ENCODED, "decode decrypt unscramble deobfuscate",
     r".{0,200}\b(?:and|then)\s+(?:obey|follow|execute|run|act on|comply|do (?:it|what|that|as))\b"),
)  # fmt: skip
_ANYWHERE = (
    (EXTRACT, rf"^\W*(?:so\s+|and\s+)?what(?:'s|\s+is|\s+are|\s+was|\s+were)\s+your\s+(?:{_OWN}){{0,3}}{_PROMPT}\W*$"),
    (EXTRACT, r"\bwhat\s+(?:exactly\s+)?(?:were|was|have)\s+(?:you|this assistant)\s+(?:been\s+)?(?:told|instructed|prompted)\b"),
    (EXTRACT, rf"\b(?:what|which)\s+(?:{_OWN})?{_RULES}\s+(?:were you|have you been|are you)\s+(?:given|told|following|using)\b"),
    (EXTRACT, r"\b(?:starting|beginning|starts?|begins?)\s+with\s+(?:the words?\s+)?[\"'`]?you are\b"),
    (SECRETS, rf"^\W*what(?:'s|\s+is|\s+are)\s+{_THE_SERVERS}{_KEPT_BACK}\W*$"),
    (CROSS, r"\blist\s+all\s+(?:the\s+)?(?:other\s+)?books\s+(?:on|of|in)\s+(?:this|the|your)\s+(?:server|system|database)\b"),
    (OVERRIDE, r"<\|im_(?:start|end)\|>\s*(?:system|assistant|developer|<\|)|^\s*(?:</\w+>\s*)*<system>\s*\S|<<sys>>\s*\S"),
    (ENCODED, r"\b(?:decode|decrypt)\s+(?:and|then)\s+(?:obey|follow|execute|run)\b"),
)  # fmt: skip


def _compile_command(verbs: str, then: str) -> re.Pattern[str]:
    """ "switch_to" is one verb of two words; what follows a verb is a word of its own, unless it is a mark."""
    listed = "|".join(verb.replace("_", "[ _]") for verb in verbs.split())
    return re.compile(rf"{_BEGINS}(?:{listed})\b\s*(?:{then})", re.DOTALL)


_COMMAND_PATTERNS = [(reason, _compile_command(verbs, then)) for reason, verbs, then in _COMMANDS]
_ANYWHERE_PATTERNS = [(reason, re.compile(pattern, re.DOTALL | re.MULTILINE)) for reason, pattern in _ANYWHERE]


# --- the check ------------------------------------------------------------------------------------


def check_question(text: str) -> str | None:
    """Why this is no question to a book; None where it may be asked."""
    plain = _normalise(text)
    return _find(plain) or next((ENCODED for hidden in _decode(text) if _find(_normalise(hidden))), None)


def _find(plain: str) -> str | None:
    for reason, pattern in _ANYWHERE_PATTERNS:
        if pattern.search(plain):
            return reason
    for clause in _split_clauses(plain):
        for reason, pattern in _COMMAND_PATTERNS:
            if pattern.match(clause):
                return reason
    return None


def _normalise(text: str) -> str:
    plain = unicodedata.normalize("NFKC", clean(text)).lower().replace("’", "'")
    plain = re.sub("[“”„«»]", '"', plain).strip()
    # Quotation marks around all of it quote nothing.
    return plain[1:-1] if len(plain) > 1 and plain[0] == plain[-1] and plain[0] in "\"'`" else plain


def _split_clauses(plain: str) -> Iterator[str]:
    """Each place at which a command could begin. What is quoted is spoken of; a question goes on to its end."""
    for sentence in _SENTENCE.split(_QUOTED.sub(" … ", plain)):
        yield sentence
        if not _ASKS.match(sentence):
            yield from (sentence[found.end() :] for found in _CLAUSE.finditer(sentence))


def _decode(text: str) -> Iterator[str]:
    for blob in re.findall(r"[A-Za-z0-9+/_-]{20,}={0,2}", text):
        yield from _read_blob(blob)


def _read_blob(blob: str) -> Iterator[str]:
    standard = blob.replace("-", "+").replace("_", "/").rstrip("=")
    padded = standard + "=" * (-len(standard) % 4)
    for decode in (lambda: base64.b64decode(padded, validate=True), lambda: bytes.fromhex(blob)):
        try:
            decoded = decode().decode("utf-8")
        except (binascii.Error, ValueError):
            continue
        if decoded.isprintable():
            yield decoded
