"""What a question means in its thread, without a model: "tell me more", "and why?", "the second source"."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from askbook.domain import LIMIT_MAX, QUERY_MAX, Cited, Filters, Passage, SearchMode, SearchOutcome
from askbook.index.keywords import STOPWORDS, split_terms
from askbook.index.ranking import Relevance, average_score, cut, rate

FollowUpKind = Literal["alone", "same_topic", "refers", "fragment", "continues", "bare", "source"]

TOPIC_WEIGHTS: Mapping[FollowUpKind, float] = {"refers": 0.7, "continues": 0.7, "fragment": 0.5, "same_topic": 0.4}
"""What the question with its topic before it counts for, beside the question as it stands: more, the more it leans."""
FRAGMENT_WORDS = 2
"""So few content words do not stand alone; one less, if they make a question."""
ANTECEDENT_WORDS = 3
"""After so many content words, a pronoun speaks of the question's own words."""
QUOTED_WORDS = 40
"""So many words of a cited passage find it again."""


@dataclass(frozen=True, slots=True)
class Turn:
    """An earlier question of the thread, and what its answer cites, in the order of the numbers shown."""

    question: str
    cited: tuple[Cited, ...] = ()


@dataclass(frozen=True, slots=True)
class Weighed:
    text: str
    weight: float


@dataclass(frozen=True, slots=True)
class Resolved:
    """What to search; the scores are added, each by its weight. The first search is the question made whole."""

    kind: FollowUpKind
    searches: tuple[Weighed, ...]
    meant: Cited | None = None
    """The cited passage that "the second source" names."""

    @property
    def text(self) -> str:
        return self.searches[0].text


def to_cited(passage: Passage) -> Cited:
    """With the title above its section's: "Summary" alone names nothing."""
    chunk = passage.chunk
    title = " ".join(chunk.heading_path[-2:] if chunk.section_title else chunk.heading_path[-1:])
    return Cited(title, chunk.text, chunk.url, chunk.id, chunk.parent_doc_id)


# --- the words that tell --------------------------------------------------------------------------

# To refer; to ask something of the subject without naming it; to say nothing.
_REFERRING = "it its they them their theirs he him his she her hers this that these those ones both"
_WANTED = "why how when where who example examples reason reasons difference details"
_FILLERS = """
about actually again also another any anything back bit case come continue different elaborate else even expand explain
further general get give go good hear hello hey hi interested interesting just kind know learn let like little lot made make many mean morning
more much now ok okay one other please really same say see show some something sort still sure tell thank thanks thing
things type types us use used want way well yes
"""
_PREPOSITIONS = ("at", "by", "for", "from", "in", "of", "on", "to", "with", "without")
_PRONOUNS, _ASKING = frozenset(_REFERRING.split()), frozenset(_WANTED.split())
_EMPTY = STOPWORDS.union(_PRONOUNS, _ASKING, _FILLERS.split())

_WORD = re.compile(r"\w+(?:['-]\w+)*")
# "Is it possible to …" speaks of nothing before it; "this book" is always the one that is open.
_NO_PRONOUN = re.compile(
    r"\b(?:is|was) it (?:possible|true|safe|legal|necessary|common|better|worth)\b"
    r"|\bthis (?:book|course|module|chapter|lesson)\b",
    re.IGNORECASE,
)
_CONTINUES = re.compile(r"\s*(?:and|but|so|or|then|also|what about|how about|what else)\b", re.IGNORECASE)
_NAMES_SUBJECT = re.compile(
    r"^\s*(?:what|who) (?:is|are|was|were)\b|\b(?:tell me|know|learn|hear|read) (?:more )?about\b"
    r"|\b(?:explain|describe|define|interested in)\b",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"\s*(?:what|who|when|where|why|how|which|is|are|was|were|do|does|did|can|could|has|have|should|will)\b",
    re.IGNORECASE,
)
_ORDINALS = ("first", "second", "third", "fourth", "fifth")
_NAMES_SOURCE = re.compile(
    rf"\b(?P<ordinal>{'|'.join(_ORDINALS)}|last) (?:(?P<one>one)|source|passage|reference|citation)\b(?! of\b)"
    r"|\b(?:source|passage|reference|citation) (?P<number>\d)\b|(?<!\w)\[(?P<mark>\d)\]",
    re.IGNORECASE,
)


def _words(text: str) -> list[str]:
    found = _WORD.findall(text.replace("’", "'").lower())
    return [word if word in STOPWORDS else word.split("'")[0] for word in found]


def _content(text: str) -> list[str]:
    return [word for word in _words(text) if word not in _EMPTY]


def is_bare(question: str) -> bool:
    """ "Tell me more", "explain this": no word that says what it is about."""
    return not _content(question)


def _join(*texts: str) -> str:
    """The end is the newest: it stays when all is too long to search."""
    return " ".join(" ".join(texts).split())[-QUERY_MAX:].strip()


# --- reading a question ---------------------------------------------------------------------------


def resolve_question(question: str, turns: Sequence[Turn]) -> Resolved:
    if not turns:
        return _search_once("alone", question)
    *earlier, last = turns
    meant = _find_source(question, last.cited)
    if meant is not None:
        quoted = meant.text.split()[:QUOTED_WORDS]
        return _search_once("source", _join(meant.title, *quoted, *_content(_NAMES_SOURCE.sub(" ", question))), meant)
    previous = resolve_question(last.question, earlier).text
    topic = last.cited[0].title if last.cited else previous
    kind = _choose_kind(question, f"{last.question} {topic}")
    match kind:
        case "alone":
            return _search_once(kind, question)
        case "bare":
            return _search_once(kind, _join(previous, *(word for word in _words(question) if word in _ASKING)))
        case _:
            whole = Weighed(_join(previous if kind == "continues" else topic, question), TOPIC_WEIGHTS[kind])
            alone = Weighed(question, 1.0)
            # A question on the same topic is whole already: confidence must not rise because its topic is in the book.
            return Resolved(kind, (alone, whole) if kind == "same_topic" else (whole, alone))


def _search_once(kind: FollowUpKind, text: str, meant: Cited | None = None) -> Resolved:
    return Resolved(kind, (Weighed(text, 1.0),), meant)


def _choose_kind(question: str, before: str) -> FollowUpKind:
    if is_bare(question):
        return "bare"
    content = _content(question)
    if _refers(question):
        return "refers"
    if _CONTINUES.match(question) and len(content) <= ANTECEDENT_WORDS:
        return "continues"
    if not _NAMES_SUBJECT.search(question) and len(content) <= FRAGMENT_WORDS - bool(_ASKS.match(question)):
        return "fragment"
    shared = set(split_terms(" ".join(content))).intersection(split_terms(" ".join(_content(before))))
    return "same_topic" if shared else "alone"


def _refers(question: str) -> bool:
    """A pronoun, unless the question itself says before it what it stands for."""
    words = _words(_NO_PRONOUN.sub(" ", question))
    content = 0
    for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False):
        # After a noun "that" opens a clause, "the node that publishes"; "measure that on a robot" has none.
        opens_clause = word == "that" and before and before not in _EMPTY and after and after not in _PREPOSITIONS
        if word in _PRONOUNS and not opens_clause:
            return True
        content += word not in _EMPTY
        if content == ANTECEDENT_WORDS:
            return False
    return False


def _find_source(question: str, cited: Sequence[Cited]) -> Cited | None:
    found = _NAMES_SOURCE.search(question)
    if found is None:
        return None
    # "Which node was the first one to publish a map?" asks of the book.
    if found["one"] and len(_content(_NAMES_SOURCE.sub(" ", question))) > FRAGMENT_WORDS:
        return None
    name = (found["ordinal"] or found["number"] or found["mark"]).lower()
    if name == "last":
        return cited[-1] if cited else None
    number = int(name) if name.isdigit() else _ORDINALS.index(name) + 1
    return cited[number - 1] if 1 <= number <= len(cited) else None


# --- searching ------------------------------------------------------------------------------------


class Searches(Protocol):
    async def search(
        self,
        text: str,
        filters: Filters,
        mode: SearchMode,
        limit: int,
        threshold: float,
        relevance: Relevance | None,
        *,
        rerank: bool = True,
    ) -> SearchOutcome: ...

    async def rerank(self, outcome: SearchOutcome) -> SearchOutcome: ...


async def search_thread(
    searcher: Searches,
    question: str,
    turns: Sequence[Turn],
    filters: Filters,
    mode: SearchMode = "hybrid",
    limit: int = 5,
    threshold: float = 0.0,
    relevance: Relevance | None = None,
) -> SearchOutcome:
    """The passages for what the question means. `query` and the raw scores are those of the question made whole."""
    searches = resolve_question(question, turns).searches
    if len(searches) == 1:
        return await searcher.search(searches[0].text, filters, mode, limit, threshold, relevance)
    outcomes = await asyncio.gather(
        *(searcher.search(one.text, filters, mode, LIMIT_MAX, 0.0, relevance, rerank=False) for one in searches)
    )
    merged = _add_scores(outcomes, [one.weight for one in searches])
    # Relevance lies around the mean of the scores it is given, which are the merged ones now.
    signals = replace(outcomes[0].signals, mean_score=average_score(merged))
    outcome = replace(
        outcomes[0],
        passages=tuple(rate(merged, signals, relevance)),
        signals=signals,
        embedding_ms=sum(outcome.embedding_ms for outcome in outcomes),
        retrieval_ms=sum(outcome.retrieval_ms for outcome in outcomes),
    )
    if mode == "hybrid":
        outcome = await searcher.rerank(outcome)
    return cut(outcome, limit, threshold)


def _add_scores(outcomes: Sequence[SearchOutcome], weights: Sequence[float]) -> list[Passage]:
    """The weighted mean of each passage's scores, so that they stay on the searcher's own scale."""
    found = {one.chunk.content_hash: one for outcome in reversed(outcomes) for one in outcome.passages}
    sums = dict.fromkeys(found, 0.0)
    for outcome, weight in zip(outcomes, weights, strict=True):
        scores = {one.chunk.content_hash: one.score for one in outcome.passages}
        # What fell off the end of a full list scores no more than its last.
        rest = outcome.passages[-1].score if len(outcome.passages) == LIMIT_MAX else 0.0
        for key in found:
            sums[key] += weight * scores.get(key, rest)
    merged = [replace(one, score=sums[key] / sum(weights)) for key, one in found.items()]
    return sorted(merged, key=lambda one: (-one.score, one.chunk.id))
