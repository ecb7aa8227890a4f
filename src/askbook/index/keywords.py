"""BM25 as sparse vectors: a chunk carries its term frequencies, a question the rarity of its terms.

The rarity is counted from the live chunks, on the question's side, so that what the index still holds of deleted
chunks never disturbs a score.
"""

from __future__ import annotations

import math
import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from itertools import chain

import Stemmer

from askbook.domain import Chunk
from askbook.index.vectors.base import Sparse

K1, B = 1.2, 0.75
AVERAGE_TERMS = 220
"""About the terms of a chunk of 400 tokens with its headings. Fixed, so that no chunk's weights depend on others."""

_STOPWORDS = """
a an and are as at be been but by can could did do does for from had has have he her his how i if in into is it its
may me might my no not of on or our shall she should so such than that the their them then there these they this
those to was we were what when where which while who whom why will with would you your aren't can't couldn't didn't
doesn't don't hasn't haven't isn't shouldn't wasn't weren't won't wouldn't
"""
STOPWORDS = frozenset(_STOPWORDS.split())
_ASKING = """
about actually all also any between best better called describe difference different each else ever every exactly
example examples explain far give happen happening happens just kind kinds know like list long main many mean means
more most much must name need often only other please possible same several show some someone something sort sorts
tell thing things too type types use used uses using usually very want way ways without
"""
ASKING = frozenset(_ASKING.split())
"""Words that people ask with: that a book never uses one of them says nothing of what it is about."""

_WORD = re.compile(r"\w+(?:[.\-'/:]+\w+)*")
_JOINT = re.compile(r"[.\-/:_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z]{2})(?=[0-9])")
_local = threading.local()


def keyword_text(chunk: Chunk) -> str:
    """What a chunk is found by: its headings and its text."""
    return " ".join((*chunk.heading_path, chunk.text))


def split_terms(text: str) -> list[str]:
    """`max_depth` gives the whole and its parts, so that both a name and a word in it are found."""
    return [term for word in _split_words(text) for term in _terms_of(word)]


def _split_words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text).replace("’", "'"))


def _terms_of(word: str) -> Iterator[str]:
    word = word.strip("_").removesuffix("'s")
    parts = [part for piece in _JOINT.split(word) for part in _HUMP.split(piece) if part]
    if len(parts) > 1:
        yield word.casefold()
    for part in parts:
        folded = part.casefold()
        if folded not in STOPWORDS:
            yield _stem(folded)


def _stem(word: str) -> str:
    # A stemmer may not be entered by two threads at once.
    if not hasattr(_local, "stemmer"):
        _local.stemmer = Stemmer.Stemmer("english")
    return _local.stemmer.stemWord(word)


def term_id(term: str) -> int:
    return int.from_bytes(blake2b(term.encode("utf-8", "replace"), digest_size=4).digest(), "big")


@lru_cache(maxsize=65_536)
def _ids_of(word: str) -> tuple[int, ...]:
    return tuple(map(term_id, _terms_of(word)))


def term_ids(text: str) -> Counter[int]:
    """How often each term occurs in a text."""
    return Counter(chain.from_iterable(map(_ids_of, _split_words(text))))


def different_terms(text: str) -> set[int]:
    return set(chain.from_iterable(map(_ids_of, _split_words(text))))


def find_terms(text: str, wanted: Mapping[int, float]) -> set[int]:
    """The wanted terms that occur in a text."""
    return wanted.keys() & different_terms(text)


def weigh_terms(text: str, frequencies: Mapping[int, int], total: int) -> dict[int, float]:
    """How rare each term of a question is; one that the book never uses is the rarest."""
    return {term: rarity_of(frequencies.get(term, 0), total) for term in term_ids(text)}


def find_unknown_words(text: str, frequencies: Mapping[int, int]) -> list[str]:
    """Words of which the book uses no part, as they were written."""
    words = dict.fromkeys(_split_words(text))
    return [
        word
        for word in words
        if word.casefold() not in ASKING and (ids := _ids_of(word)) and not any(map(frequencies.get, ids))
    ]


def weigh_chunk(text: str) -> Sparse:
    counts = term_ids(text)
    damping = K1 * (1 - B + B * counts.total() / AVERAGE_TERMS)
    return _to_sparse({term: count * (K1 + 1) / (count + damping) for term, count in counts.items()})


def weigh_query(text: str, frequencies: Mapping[int, int], total: int) -> Sparse:
    """`frequencies`: in how many of `total` chunks each term occurs. A term in none of them finds nothing."""
    counts = term_ids(text)
    return _to_sparse(
        {term: count * rarity_of(frequencies[term], total) for term, count in counts.items() if frequencies.get(term)}
    )


def best_score(question: Sparse) -> float:
    """What a chunk of nothing but the question's words would come near."""
    return (K1 + 1) * sum(question.values)


def rarity_of(frequency: int, total: int) -> float:
    return math.log(1 + (max(total - frequency, 0) + 0.5) / (frequency + 0.5))


def count_terms(texts: Iterable[str]) -> Counter[int]:
    """In how many of these texts each term occurs."""
    counts: Counter[int] = Counter()
    for text in texts:
        counts.update(term_ids(text).keys())
    return counts


def _to_sparse(weights: Mapping[int, float]) -> Sparse:
    terms = sorted(weights)
    return Sparse(tuple(terms), tuple(weights[term] for term in terms))
