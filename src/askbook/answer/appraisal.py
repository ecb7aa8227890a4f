"""What a search found, read: the passages in the order in which they answer, and how far a reply can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from askbook.answer.calibration import Calibration
from askbook.answer.confidence import judge
from askbook.answer.librarian import Read, merge_reads, rank_passages, read_passages, stands_alone
from askbook.answer.trust import Evidence, gather_evidence, rate_passages
from askbook.domain import Confidence, Passage, SearchOutcome
from askbook.index.ranking import reorder
from askbook.index.search import Searcher
from askbook.index.vectors.base import VectorIndex
from askbook.reading.reader import Reader

READ_AT_ONCE = 4
"""Questions: each takes about a third of a second of a core, and the next would wait for more than a second."""


@dataclass(frozen=True, slots=True)
class Appraisal:
    passages: tuple[Passage, ...]
    reads: tuple[Read, ...]
    confidence: Confidence
    evidence: Evidence | None
    """None where there is no reader, or nothing to read."""
    hurried: bool = False
    """So many asked at once that nothing was read for this one."""


@dataclass(frozen=True, slots=True)
class Appraiser:
    """The parts that it takes, open."""

    searcher: Searcher
    index: VectorIndex
    reader: Reader | None

    async def appraise(
        self, outcome: SearchOutcome, meanings: Sequence[str], calibration: Calibration, always: bool = False
    ) -> Appraisal:
        """`always`: it is answered in any case."""
        hurried = self.reader is not None and self.reader.askers >= READ_AT_ONCE
        reader = None if hurried else self.reader
        reads = await self._read(reader, outcome, meanings)
        if reader is None or not reads:
            return Appraisal(outcome.passages, reads, await judge(outcome, self.index), None, hurried)
        # A thread does not carry words that the book never uses.
        follows = len(meanings) > 1 and outcome.signals.coverage > 0
        evidence = gather_evidence(reads, calibration.chance_in_book(outcome.signals), follows)
        # Raw cosines decide the order too.
        is_raw = calibration.origin == "raw"
        ranked = outcome.passages if is_raw else reorder(outcome.passages, rank_passages(reads, outcome.passages))
        passages = tuple(rate_passages(ranked, evidence, calibration, always))
        confidence = await judge(replace(outcome, passages=passages), self.index)
        # What is cited has the score that it was found with.
        by_id = {passage.chunk.id: passage for passage in passages}
        rated = tuple(
            replace(read, excerpt=replace(read.excerpt, passage=by_id[read.excerpt.passage.chunk.id])) for read in reads
        )
        return Appraisal(passages, rated, replace(confidence, chance=evidence.chance_shown), evidence)

    async def _read(self, reader: Reader | None, outcome: SearchOutcome, meanings: Sequence[str]) -> tuple[Read, ...]:
        """Where nothing is relevant to the question as it stands, all that it may mean in its thread counts."""
        rarities = outcome.rarities
        if meanings[-1] != outcome.query:
            rarities = await self.searcher.weigh_words(" ".join(meanings), outcome.filters.book_id)
        reads: list[list[Read]] = []
        for meaning in meanings:
            reads.append(await read_passages(reader, meaning, outcome.passages, rarities))
            if stands_alone(reads[0]):
                break
        return tuple(merge_reads(reads))
