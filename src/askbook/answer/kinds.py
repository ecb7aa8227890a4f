"""What kind of answer a question wants, and how a text shows that it gives one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from askbook.answer.units import BlockKind, UnitKind
from askbook.domain import Passage
from askbook.index.coverage import split_sentences
from askbook.index.keywords import split_terms

QuestionKind = Literal[
    "definition",
    "name",
    "how_to",
    "code",
    "list",
    "comparison",
    "number",
    "when",
    "who",
    "where",
    "why",
    "yes_no",
    "fact",
]

SUBJECT_TERMS = 6
"""A longer subject is a description: "what is the effect of … on …" asks for a fact."""


@dataclass(frozen=True, slots=True)
class Asked:
    kind: QuestionKind
    text: str
    """The question without the choices that it offers."""
    subjects: tuple[frozenset[str], ...] = ()
    """The terms of what is to be defined, whole and without what narrows it; or of each thing that is compared."""
    options: tuple[frozenset[str], ...] = ()
    """The terms that each choice adds to the question."""


# --- reading a question ---------------------------------------------------------------------------

_AUXILIARY = r"(?:is|are|was|were|do|does|did|can|could|will|would|should|shall|has|have|had|may|might|must|am)"
_MEASURED = (
    "number|amount|count|percentage|percent|fraction|ratio|rate|frequency|maximum|minimum|limit|size|length|height|width|"
    "depth|weight|mass|distance|speed|temperature|duration|timeout|port|version|cost|price|value|quota|range|latency"
)
_PLURAL = (
    "types|kinds|parts|steps|stages|phases|components|elements|features|benefits|advantages|disadvantages|reasons|causes|"
    "ways|methods|options|examples|rules|requirements|prerequisites|differences|properties|characteristics|functions|"
    "levels|layers|modes|categories|classes|forms|members|symptoms|effects|results|consequences|limitations|factors"
)
_COUNT = r"(?:two|three|four|five|six|seven|some|several|\d)"

_PATTERNS: tuple[tuple[QuestionKind, str], ...] = (
    ("name", r"_{3,}|\b(?:is|are|was|were) (?:called|named|termed|known as|referred to as)\W*(?:an?|the|\(n\)|\W)*$"),
    ("comparison", r"\bdifferences?\b|\bdifferent(?:iate)?s? (?:from|than)\b|\bdiffers?\b|\b(?:vs\.?|versus)(?=\s)"),
    ("comparison", r"\bcompar(?:e|es|ed|ison)\b|\b(?:better|worse|faster|slower|safer|cheaper)\b.*\bor\b"),
    ("code", r"\b(?:show|give|write|see|provide)\b.*\b(?:code|snippet|listing|example|commands?|script|program)\b"),
    (
        "code",
        r"\b(?:code|snippet|syntax|example code) (?:for|of|to)\b|\b(?:what|which)(?: is the)?(?: \w+)? commands?\b",
    ),
    (
        "number",
        r"\bhow (?:many|much|often|long|far|fast|large|big|high|low|old|deep|tall|wide|heavy|small|late|soon)\b",
    ),
    ("number", rf"\b(?:what|which)\b(?: [\w'’-]+){{0,4}}? (?:{_MEASURED})\b"),
    ("how_to", r"\bhow (?:to|(?:do|can|could|should|would|must|shall|might) (?:i|we|you|one|somebody|someone)\b)"),
    (
        "how_to",
        r"\b(?:steps|procedure|instructions?) (?:to|for)\b|\bwhat (?:should|must|do|can) (?:i|we) (?:do|check)\b",
    ),
    ("why", r"\bwhy\b|\bhow come\b|\bwhat causes?d?\b|\breasons? (?:for|why|that)\b|\bwhat is the (?:reason|cause)\b"),
    (
        "name",
        r"\bwhat do (?:we|you) call\b|\b(?:what|which) (?:is|are) the (?:names?|terms?|words?|keywords?)\b|\bname of\b",
    ),
    ("who", r"\bwho(?:m|se)?\b(?= (?:\w+ )?(?:is|are|was|were|did|does|has|had|can|\w+ed|\w+s|wrote|made|found)\b)"),
    ("where", rf"\bwhere\b(?= (?:{_AUXILIARY}|in|on|to)\b)"),
    ("when", rf"(?:^|[.?!,;] )\s*when (?={_AUXILIARY}\b)|\b(?:what|which) (?:year|date|day|month|century|time)\b"),
    ("list", rf"\b(?:what|which)\b(?: \w+){{0,3}}? (?:{_PLURAL})\b|\b(?:list|name|enumerate) (?:all|the|{_COUNT})\b"),
    ("list", rf"\b(?:what|which)(?: are)?(?: the)? {_COUNT}\b|\bgive {_COUNT}\b"),
    ("definition", r"\bwhat (?:does|do) .+ (?:mean|stand for)\b|\b(?:define|definition of|meaning of)\b"),
    (
        "definition",
        r"\bwhat(?:'s| is| are| was| were) (?!(?:\w+ )?(?:wrong|missing|happening|going|needed|required|best)\b)",
    ),
    ("yes_no", rf"(?:^|[.?!,;:] )\s*{_AUXILIARY} (?:\w|`)"),
)
_KINDS: tuple[tuple[QuestionKind, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _PATTERNS
)

_SENTENCE = re.compile(r"(?<=[.?!])\s+(?=\S)")
_ASKS = re.compile(
    r"\?|\b(?:what|which|who|when|where|why|how|list|name|define|explain|describe|show|give)\b|_{3,}", re.I
)
_MARKED_OPTION = re.compile(r"(?:^|(?<=\s))\(?(?P<letter>[A-Ha-h]|[1-8])[.)]\s+(?=\S)")
_LISTED_OPTION = re.compile(r"\n[ \t]*[-*+•][ \t]+(?=\S)")
_SUBJECT = re.compile(
    r"what(?:'s| is| are| was| were| does| do)\s+(?:meant by\s+)?(?P<a>.+?)(?:\s+(?:mean|stand for)\b.*|\s*[?,;(].*|\s*)$"
    r"|(?:define|definition of|meaning of)\s+(?P<b>.+?)\W*$",
    re.IGNORECASE,
)
_NARROWS = re.compile(r"\s(?:in|for|from|on|with|within|under|used|according)\s", re.IGNORECASE)
_SIDES = re.compile(
    r"\bbetween\s+(?P<a>.+?)\s+and\s+(?P<b>.+?)(?:[?.,;]|$)"
    r"|\bcompare\s+(?P<c>.+?)\s+(?:and|with|to|against)\s+(?P<d>.+?)(?:[?.,;]|$)"
    r"|(?:^|\b(?:is|are|do|does|use)\s)(?P<e>[^?.,;]{1,60}?)\s+(?:vs\.?|versus|differs? from|different from|compared? (?:to|with))\s+"
    r"(?P<f>.+?)(?:[?.,;]|$)"
    r"|\bhow (?:do|does|is|are)\s+(?P<g>.+?)\s+and\s+(?P<h>.+?)\s+(?:differ|compare)",
    re.IGNORECASE,
)


def read_question(question: str) -> Asked:
    stem, options = _take_options(" ".join(question.split(" ")).strip())
    core = _find_core(stem)
    kind = _choose_kind(core)
    own = frozenset(split_terms(stem))
    added = tuple(terms for option in options if (terms := frozenset(split_terms(option)) - own))
    subjects = _read_subjects(kind, core)
    if kind == "definition" and not subjects:
        kind = "fact"
    return Asked(kind, stem, subjects, added)


def _take_options(text: str) -> tuple[str, list[str]]:
    """The stem, and the choices behind it: "a) … b) …", or a list."""
    marks = list(_MARKED_OPTION.finditer(text))
    marks = marks if [mark["letter"].lower() for mark in marks[:2]] in (["a", "b"], ["1", "2"]) else []
    marks = marks or list(_LISTED_OPTION.finditer(text))
    if len(marks) < 2 or not text[: marks[0].start()].strip():
        return text, []
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    return text[: marks[0].start()].strip(), [
        text[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=True)
    ]


def _find_core(text: str) -> str:
    """The last sentence that asks: what stands before it tells of the asker's trouble."""
    asking = [sentence for sentence in _SENTENCE.split(text) if _ASKS.search(sentence)]
    return asking[-1] if asking else text


def _choose_kind(core: str) -> QuestionKind:
    for kind, pattern in _KINDS:
        if pattern.search(core):
            return kind
    return "fact"


def _read_subjects(kind: QuestionKind, core: str) -> tuple[frozenset[str], ...]:
    if kind == "definition":
        found = _SUBJECT.search(core)
        name = (found["a"] or found["b"]) if found else ""
        subjects = (frozenset(split_terms(each)) for each in dict.fromkeys((name, _NARROWS.split(name, maxsplit=1)[0])))
        return tuple(terms for terms in subjects if 0 < len(terms) <= SUBJECT_TERMS)
    if kind == "comparison" and (found := _SIDES.search(core)):
        sides = [frozenset(split_terms(side)) for side in found.groups() if side]
        shared = frozenset[str].intersection(*sides)
        own = tuple(side - shared for side in sides)
        return own if all(own) else ()
    return ()


_ASKING = """
about best book called compare correct define describe difference differences different example examples explain following give
kind kinds likely list mean meaning means name please say says show statement tell term true type types
"""
_ASKING_TERMS = frozenset(split_terms(_ASKING))


def find_content(asked: Asked) -> frozenset[str]:
    """The terms that name what is asked about. "What is a type?" asks about a word that otherwise only asks."""
    terms = frozenset(split_terms(asked.text))
    return terms - _ASKING_TERMS or (terms if asked.kind == "definition" else frozenset[str]())


# --- how a text shows that it answers -------------------------------------------------------------

_SIGNS: Mapping[QuestionKind, re.Pattern[str]] = {
    "why": re.compile(r"\b(?:because|since|so that|therefore|thus|hence|reasons?|due to|owing to|causes?|leads? to|results? in|otherwise)\b", re.I),
    "name": re.compile(r"\b(?:called|named|termed|known as|referred to as|term)\b|\*\*|^[^\n]{1,100}\n: ", re.I),
    "number": re.compile(r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|dozen|hundred|thousand|million|half|twice|once)\b", re.I),
    "when": re.compile(r"\b(?:1\d|20)\d\d\b|\b\d+(?:st|nd|rd|th)\b|\b(?:during|before|after|until|whenever|once|as soon as|January|February|March|April|May|June|July|August|September|October|November|December)\b|\bwhen\b", re.I),
    "who": re.compile(r"(?<=[a-z,] )[A-Z][a-z]+|\b(?:scientists?|authors?|engineers?|people|users?|team)\b"),
    "how_to": re.compile(r"^\W*(?:to \w+|use|run|set|add|create|install|open|choose|select|call|write|make|check|start|give|put|click|define|import|configure|enable|disable)\b|\byou (?:can|must|should|need)\b", re.I),
    "code": re.compile(r"`[^`]+`|\b(?:for example|for instance|such as|e\.g\.)", re.I),
    "list": re.compile(r"\b(?:include|includes|including|consists? of|divided into|following|such as|types|kinds|both)\b|(?:[^,]+,){2,}[^,]* (?:and|or) ", re.I),
    "yes_no": re.compile(r"\b(?:can|cannot|must|may|not|no|never|always|only|supports?|supported|requires?|required|recommend(?:ed)?|enough|possible)\b|n't\b", re.I),
    "where": re.compile(r"\b(?:in|on|at|under|inside|within|above|below|between|near|located|found)\b", re.I),
    "comparison": re.compile(r"\b(?:whereas|while|unlike|than|but|however|both|instead|in contrast|on the other hand|differs?|different)\b", re.I),
}  # fmt: skip
_BLOCKS: Mapping[QuestionKind, Mapping[BlockKind, float]] = {
    "how_to": {"steps": 0.12, "code": 0.06},
    "code": {"code": 0.3},
    "list": {"list": 0.1, "steps": 0.1, "table": 0.1},
    "comparison": {"table": 0.08},
    "number": {"table": 0.04},
}
UNASKED_CODE = -0.12
SIGN, DEFINES, NAMES, NARROWED = 0.05, 0.25, 0.15, 0.08

_COPULA = re.compile(r"\b(?:is|are|was|were|means?|refers? to|denotes?|stands? for)\b|\n: |\s[–—:]\s|:\s|\*\*\s*[–—-]")
_NAMED = re.compile(
    r"\b(?:called|known as|termed|named|referred to as|this is)\s+(?:an?\s+|the\s+)?(?P<name>[^.,;:()]+)", re.I
)
_MARKUP = re.compile(r"\]\([^()]*\)|[*_`\[\]]+")
_ASIDE = re.compile(r"\([^()]*\)|,[^,]*,\s*$")
_SAYS_WHAT = re.compile(r"\W*(?:an?|the|one|any|each|all|what|how|where|when)\b", re.IGNORECASE)
_SET_OFF = re.compile(r"^(?:an? |the )?(?P<mark>\*{1,3}|__?)(?P<name>[^*_]+)(?P=mark)", re.IGNORECASE)
PREDICATE_TERMS = 4
"""How near behind the verb the rest of a subject's name must follow."""


_AMOUNT = re.compile(
    r"\d|\b(?:no|none|zero|two|three|four|five|six|seven|eight|nine|ten|dozen|hundred|thousand|million|half|twice)\b",
    re.IGNORECASE,
)


def lacks_amount(question: str, texts: Iterable[str]) -> bool:
    """It asks how many or how much, and none of these says."""
    return read_question(question).kind == "number" and not any(
        _AMOUNT.search(_MARKUP.sub(" ", text)) for text in texts
    )


def rate_fit(asked: Asked, text: str, unit: UnitKind, block: BlockKind) -> float:
    """How far a text looks like an answer of the wanted kind: added to what its words and its meaning are worth."""
    form: BlockKind = unit if unit in ("code", "table") else block
    fit = _BLOCKS.get(asked.kind, {}).get(form, UNASKED_CODE if form == "code" else 0.0)
    sign = _SIGNS.get(asked.kind)
    if sign is not None and sign.search(text):
        fit += SIGN
    return fit + (rate_definition(asked, text) if asked.kind == "definition" else 0.0)


def rate_definition(asked: Asked, text: str) -> float:
    """Whether the text says what the subject is, or calls something by its name."""
    return max((_rate_definition(subject, text) for subject in asked.subjects), default=0.0)


def put_definitions_first(question: str, passages: Sequence[Passage]) -> list[Passage]:
    """Who asks what something is wants the passage that says so, though others speak of it more."""
    asked = read_question(question)
    if asked.kind != "definition":
        return list(passages)

    def defines(passage: Passage) -> bool:
        return any(rate_definition(asked, one) >= DEFINES for one in split_sentences(passage.chunk.text))

    return sorted(passages, key=lambda passage: not defines(passage))


def _rate_definition(subject: frozenset[str], text: str) -> float:
    return max(_rate_copula(subject, text), NAMES if _names(subject, text) else 0.0)


def _rate_copula(subject: frozenset[str], text: str) -> float:
    copula = _COPULA.search(text)
    if copula is None:
        return 0.0
    before = split_terms(_ASIDE.sub(" ", _MARKUP.sub(" ", text[: copula.start()])))
    after = text[copula.end() :]
    # "A full node name is" speaks of a name, not of a node; "URDF is an XML file" says what a URDF file is.
    more, said = set(before) - subject, {*before, *split_terms(after)[:PREDICATE_TERMS]}
    if not before or before[-1] not in subject or not subject <= said:
        return 0.0
    says_what = _SAYS_WHAT.match(after) or not copula[0].startswith(("is", "are", "was", "were"))
    return max((DEFINES if says_what else DEFINES / 2) - NARROWED * len(more), 0.0)


def _names(subject: frozenset[str], text: str) -> bool:
    """ "… is called a node"; or the word is set off where the sentence begins: "A **node** owns …"."""
    called = (frozenset(split_terms(found["name"])) for found in _NAMED.finditer(text))
    set_off = _SET_OFF.match(text)
    return any(subject <= name for name in called) or (
        set_off is not None and subject == {*split_terms(set_off["name"])}
    )
