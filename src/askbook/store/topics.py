"""What a conversation is about, without a model: words that its questions and the cited sections share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from math import sqrt

from askbook.domain import Message

SUMMARY_MAX = 200
TOPICS = 5
PHRASE_WORDS = 4

# Words that name no topic: those of grammar, those of asking, and those of any book's headings.
_WORDS = """
a about above after again all also always am an and any are as at be because been before being below best better
between both but by can cannot could did do does doing done down during each either else enough ever every few for from
further get give go goes good got had has have having he her here hers him his how i if in instead into is it its
just kind know less let like long make makes many may maybe me mean means might more most much must my need needs
never new no nor not now of off ok okay on once one only or other our out over own part please possible put same say
see set shall she should show so some something sort still such sure take tell than thank thanks that the their them
then there these they thing things this those three through to together too two under until up upon us use used useful
uses using very want wants was way ways we well were what when where whether which while who whom whose why will with
within without work works would yes yet you your yours
answer answers ask describe detail details difference differences different elaborate example examples explain
question questions reason reasons right word words wrong
appendix basics book chapter conclusion course exercise exercises glossary guide introduction intro lesson module
overview page part pitfalls prerequisites quiz recap reference references section step steps summary unit
"""
_EMPTY = frozenset(_WORDS.split())
_CLAUSE = re.compile(r"[^\s\w'’./+#-]+|[.](?=\s|$)|\s[-–—]\s|\n")
_WORD = re.compile(r"[^\W_](?:[\w'’./+#-]*[\w+#])?")


def describe_topics(messages: Sequence[Message]) -> str | None:
    """ "URDF; Links and joints; Simulating sensors": at most 200 characters; None where no word tells anything."""
    asked = [_runs(message.content) for message in messages if message.role == "user"]
    cited = [_headings(message) for message in messages if message.role == "assistant"]
    weights = Counter(
        key for phrases in (*cited, *asked) for key in {key for phrase in phrases for key in _keys(phrase)}
    )
    told = list(dict.fromkeys(phrase for phrases in (*cited, *asked) for phrase in phrases))
    # A phrase that came up once is a topic only where there is no other.
    telling = [phrase for phrase in told if _weigh(phrase, weights) >= 2]
    topics = _choose(telling or told, weights)
    while len(topics) > 1 and len("; ".join(topics)) > SUMMARY_MAX:
        topics.pop()
    summary = "; ".join(topics)
    return (summary if len(summary) <= SUMMARY_MAX else f"{summary[: SUMMARY_MAX - 1]}…") or None


def _headings(message: Message) -> list[str]:
    """The steps of the cited titles, whole where they are short: "Quality of service"."""
    clauses = [clause for cited in message.cited for clause in _CLAUSE.split(cited.title)]
    whole = {clause: _trim(_WORD.findall(clause)) for clause in clauses}
    return [
        phrase
        for clause, words in whole.items()
        for phrase in ([" ".join(words)] if 0 < len(words) <= PHRASE_WORDS else _runs(clause))
    ]


def _trim(words: Sequence[str]) -> Sequence[str]:
    telling = [at for at, word in enumerate(words) if _tells(word)]
    names = [at for at in telling if not words[at].isdecimal()]
    return words[names[0] : telling[-1] + 1] if names else ()


def _runs(text: str) -> list[str]:
    """Runs of telling words within one clause."""
    runs: list[list[str]] = []
    for clause in _CLAUSE.split(text):
        for tells, group in groupby(_WORD.findall(clause), key=_tells):
            if tells and (run := _trim(list(group))):
                runs.append(list(run[:PHRASE_WORDS]))
    return [" ".join(run) for run in runs]


def _tells(word: str) -> bool:
    """ "Gazebo's" does; "don't" does not."""
    folded = _fold(word)
    return "'" not in folded and folded not in _EMPTY


def _fold(word: str) -> str:
    return word.casefold().replace("’", "'").removesuffix("'s")


def _keys(phrase: str) -> list[str]:
    return [_key(word) for word in phrase.split() if _tells(word)]


def _key(word: str) -> str:
    """The word without capitals and plural."""
    folded = _fold(word)
    plural = len(folded) > 3 and folded.endswith("s") and not folded.endswith(("ss", "us", "is"))
    return folded.removesuffix("s") if plural else folded


def _weigh(phrase: str, weights: Counter[str]) -> float:
    keys = _keys(phrase)
    return sum(weights[key] for key in keys) / sqrt(len(keys))


def _choose(phrases: Sequence[str], weights: Counter[str]) -> list[str]:
    """The heaviest phrases that share no word; of equals the first."""
    chosen: list[str] = []
    named: set[str] = set()
    for phrase in sorted(phrases, key=lambda phrase: -_weigh(phrase, weights)):
        if named.isdisjoint(_keys(phrase)) and len(chosen) < TOPICS:
            chosen.append(phrase)
            named.update(_keys(phrase))
    return chosen
