"""What a question means in its thread: it is searched and read together with what came before it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from askbook.answer.calibration import SMALL_BOOK
from askbook.domain import LIMIT_MAX, QUERY_MAX, QUERY_MIN, Cited, Filters, Passage, Quote, SearchOutcome
from askbook.index.keywords import STOPWORDS, rarity_of
from askbook.index.ranking import Relevance, average_score, cut, rate
from askbook.index.search import Searcher

LEANING = 0.4
"""What the question counts for with its thread before it; as it stands it counts 1 (docs/decisions/0007)."""
NAMES_LITTLE, NAMES_ENOUGH = 0.75, 1.75
"""Words that no chunk has, each as rare as can be: a question worth fewer than the first leans on its thread, one worth
more than the second stands alone."""
EARLIER, FADING, EARLIER_MOST = 1.0, 0.6, 4
"""What the earlier questions count for together where one leans on them, how much less each does than the one after
it, and how many are searched."""
QUOTED_WORDS = 40


@dataclass(frozen=True, slots=True)
class Turn:
    """An earlier question of the thread, and what its answer cites, in the order of the numbers shown."""

    question: str
    cited: tuple[Cited, ...] = ()


@dataclass(frozen=True, slots=True)
class Resolved:
    """What to search, each text with the weight that its scores have, and what to read in the passages found."""

    kind: Literal["alone", "follows", "bare", "source"]
    searches: Mapping[str, float]
    meanings: tuple[str, ...]
    meant: Cited | None = None
    """The cited passage that "the second source" names."""
    earlier: Mapping[str, float] = field(default_factory=dict[str, float])
    """Questions of the thread, the newest first: searched again for a question that names little. They add up to 1."""

    @property
    def text(self) -> str:
        """The question made whole."""
        return next(iter(self.searches))


def to_cited(passage: Passage, quotes: tuple[Quote, ...] = ()) -> Cited:
    """With the title above its section's: "Summary" alone names nothing."""
    chunk = passage.chunk
    title = " ".join(chunk.heading_path[-2:] if chunk.section_title else chunk.heading_path[-1:])
    return Cited(title, chunk.text, chunk.url, chunk.id, chunk.parent_doc_id, quotes)


_FILLERS = """
about again also another any anything continue detail details difference elaborate else example examples expand explain
further give go good hear hello hey hi just know let like mean more ok okay one please reason really say see show some
something sure tell thank thanks thing things us want well yes
"""
_GREETED = "bye cheers cool good great hello hey hi much nice no ok okay perfect so sure thank thanks very you"
_GREETINGS = frozenset(_GREETED.split())
_NAMES_NOTHING = STOPWORDS.union(_FILLERS.split())
_WORD = re.compile(r"\w+(?:['-]\w+)*")
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_PLACES = {word: at for at, word in enumerate(_ORDINALS)} | {"last": -1}
_NAMES_SOURCE = re.compile(
    rf"\b(?P<word>{'|'.join(_PLACES)}) (?:one$|(?P<source>source|passage|reference|citation))\b(?! of\b)"
    r"|\b(?:source|passage|reference|citation) (?P<number>[1-9]\d?)\b|(?<!\w)\[(?P<mark>[1-9]\d?)\]",
    re.IGNORECASE,
)


def is_bare(question: str) -> bool:
    """ "Tell me more", "and why?": no word that says what it is about."""
    return not _find_content(question)


def asks_nothing(question: str) -> bool:
    """ "Hello", "ok thanks", signs alone: nobody waits for an answer."""
    return _GREETINGS.issuperset(_WORD.findall(question.lower()))


def resolve_question(question: str, turns: Sequence[Turn]) -> Resolved:
    # Clients may bring messages that are too long or too short to search.
    turns = [Turn(asked, turn.cited) for turn in turns if len(asked := _join(turn.question)) >= QUERY_MIN]
    if not turns:
        return Resolved("alone", {question: 1.0}, (question,))
    meant = _find_source(question, turns[-1].cited)
    if meant is not None:
        asked = _find_content(_NAMES_SOURCE.sub(" ", question))
        text = _join(meant.title, *meant.text.split()[:QUOTED_WORDS], *asked)
        return Resolved("source", {text: 1.0}, (text,), meant)
    last = max((at for at, turn in enumerate(turns) if not is_bare(turn.question)), default=0)
    if is_bare(question):
        # What was found before is found again, and read for what is wanted of it now.
        before = resolve_question(turns[last].question, turns[:last])
        return replace(before, kind="bare", meanings=tuple(_join(one, question) for one in before.meanings))
    title = [turn.cited[0].title for turn in turns if turn.cited][-1:]
    whole = _join(*title, turns[last].question, question)
    return Resolved(
        "follows", {whole: LEANING, question: 1.0}, (question, whole), earlier=_weigh_earlier(question, turns)
    )


def _weigh_earlier(question: str, turns: Sequence[Turn]) -> dict[str, float]:
    asked = dict.fromkeys(turn.question for turn in reversed(turns) if not is_bare(turn.question))
    others = [text for text in asked if text != question and len(text) >= QUERY_MIN][:EARLIER_MOST]
    weights = [FADING**age for age in range(len(others))]
    return {text: weight / sum(weights) for text, weight in zip(others, weights, strict=True)}


def names_missing_source(question: str, turns: Sequence[Turn]) -> bool:
    """ "The ninth source", where the last answer that cites something has three."""
    cited = next((turn.cited for turn in reversed(turns) if turn.cited), ())
    found = _NAMES_SOURCE.search(question.rstrip(" .?!"))
    # "The second one" and "[4]" may mean something else than a source.
    if found is None or not cited or not (found["source"] or found["number"]):
        return False
    return _to_place(found) >= len(cited)


def _find_source(question: str, cited: Sequence[Cited]) -> Cited | None:
    found = _NAMES_SOURCE.search(question.rstrip(" .?!")) if cited else None
    return next(iter(cited[_to_place(found) :]), None) if found else None


def _to_place(found: re.Match[str]) -> int:
    name = found["word"]
    return _PLACES[name.lower()] if name else int(found["number"] or found["mark"]) - 1


def _find_content(text: str) -> list[str]:
    words = _WORD.findall(text.replace("’", "'").lower())
    return [word for word in words if _NAMES_NOTHING.isdisjoint((word, word.split("'")[0]))]


def _join(*texts: str) -> str:
    """The end is the newest: it stays when all is too long to search."""
    return " ".join(" ".join(texts).split())[-QUERY_MAX:].strip()


async def search_thread(
    searcher: Searcher, resolved: Resolved, filters: Filters, limit: int, relevance: Relevance | None
) -> SearchOutcome:
    """The passages for what the question means. `query` and the raw scores are those of the question made whole.

    The signals are of the question as it stands: what is off the topic gains nothing from a topic that the book has.
    """
    search = partial(searcher.search, filters=filters, relevance=relevance)
    if len(resolved.searches) == 1:
        return await search(resolved.text, limit=limit)
    weights = dict(resolved.searches)
    outcomes = await _search_all(search, weights)
    alone = outcomes[-1]
    if lean := _lean_on_thread(alone):
        weights[resolved.text] += LEANING * lean
        earlier = {text: EARLIER * lean * share for text, share in resolved.earlier.items() if text not in weights}
        outcomes += await _search_all(search, earlier)
        weights |= earlier
    merged = _add_scores(outcomes, list(weights.values()))
    # Relevance lies around the mean of the scores it is given, which are the merged ones now.
    signals = replace(alone.signals, mean_score=average_score(merged))
    embedding, retrieval = sum(one.embedding_ms for one in outcomes), sum(one.retrieval_ms for one in outcomes)
    notices = tuple(dict.fromkeys(notice for one in outcomes for notice in one.notices))
    outcome = replace(outcomes[0], signals=signals, embedding_ms=embedding, retrieval_ms=retrieval, notices=notices)
    ranked = await searcher.rerank(replace(outcome, passages=tuple(rate(merged, signals, relevance))))
    return cut(ranked, limit, 0.0)


async def _search_all(search: Callable[..., Awaitable[SearchOutcome]], texts: Iterable[str]) -> list[SearchOutcome]:
    return await asyncio.gather(*(search(text, limit=LIMIT_MAX, rerank=False) for text in texts))


def _lean_on_thread(alone: SearchOutcome) -> float:
    """1 for "is it safe?", 0 for a question that names its subject: by how rare its words are in this book."""
    chunks = alone.signals.chunks
    # In a small book hardly a word is rare.
    worth = sum(alone.rarities.values()) / rarity_of(0, chunks)
    return min(max((NAMES_ENOUGH - worth) / (NAMES_ENOUGH - NAMES_LITTLE), 0.0), 1.0) * min(chunks / SMALL_BOOK, 1.0)


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
