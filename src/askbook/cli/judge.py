"""`askbook explain` and `askbook calibrate`: what a confidence is made of, and how it is fitted to a book."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import typer

from askbook.answer.appraisal import Appraiser
from askbook.answer.ask import TOP_K_MAX
from askbook.answer.calibration import Calibration, Weights, load_built_in, name_origin
from askbook.answer.confidence import JUDGED, name_gate, refuse
from askbook.answer.probes import (
    Asked,
    ask_probes,
    check_enough,
    find_curves,
    fit_calibration,
    make_probes,
    measure_probes,
)
from askbook.answer.trust import Evidence
from askbook.cli.render import err, out, print_json
from askbook.cli.running import run_with_book
from askbook.domain import BookRecord, Filters, Passage, Signals
from askbook.errors import InputError
from askbook.shapes.answers import ConfidenceMetrics, Explanation, SearchResult, SearchSignals
from askbook.wiring import Askbook


def explain(
    text: Annotated[str, typer.Argument(help="The question: 3 to 1000 characters.")],
    book: Annotated[str | None, typer.Option(help="Book to ask; needed when there are several.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the explanation as JSON.")] = False,
) -> None:
    """Show why a question would be answered or refused: the signals, what decided, the nearest sections."""

    async def ask(askbook: Askbook, record: BookRecord) -> tuple[Explanation, Sequence[Passage]]:
        chosen = await askbook.calibrations.choose(record.book_id)
        relevance = chosen.calibration.relevance
        outcome = await askbook.searcher.search(text, Filters(record.book_id), limit=TOP_K_MAX, relevance=relevance)
        appraiser = Appraiser(askbook.searcher, askbook.index, askbook.reader)
        found = await appraiser.appraise(outcome, (text,), chosen.calibration)
        outcome = replace(outcome, passages=found.passages[:JUDGED])
        refusal = refuse(outcome, found.confidence, book_is_empty=not record.total_chunks)
        signals = _to_signals(outcome.signals, chosen.calibration, found.evidence)
        shown = refusal.nearest if refusal else outcome.passages
        explanation = Explanation(
            query=outcome.query,
            book_id=record.book_id,
            mode=outcome.mode,
            calibration=name_origin(chosen.calibration),
            notice=chosen.notice,
            gate=name_gate(found.confidence, signals.chance_in_book, found.evidence),
            confidence=ConfidenceMetrics.of(found.confidence),
            signals=signals,
            refusal=refusal.reason if refusal else None,
            advice=refusal.advice if refusal else None,
            nearest=[SearchResult.from_passage(passage) for passage in shown],
        )
        return explanation, shown

    explanation, shown = run_with_book(book, ask)
    if as_json:
        print_json(explanation)
    else:
        _print_explanation(explanation, shown)


def calibrate(
    book: Annotated[str | None, typer.Option(help="Book to calibrate on; needed when there are several.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the calibration as JSON.")] = False,
) -> None:
    """Fit the confidence to your own book: it is asked about its own headings and sentences, with and without them."""

    async def fit(askbook: Askbook, record: BookRecord) -> tuple[Calibration, Calibration, list[Asked]]:
        if askbook.embedder is not None and record.unembedded_chunks:
            waiting = f"{record.unembedded_chunks} chunks of {record.book_id} wait for their vectors"
            raise InputError(waiting, f"Finish first: askbook ingest {record.folder}.")
        chunks = [draft.chunk for draft in await askbook.ledger.load_drafts(record.book_id)]
        probes = make_probes(chunks)
        check_enough(record.book_id, record.total_files, probes)
        now, before = askbook.calibrations.now, await askbook.calibrations.choose(record.book_id)
        asked = await ask_probes(askbook.searcher, record.book_id, probes)
        # Always from the calibration that ships, so that fitting twice gives the same result.
        after = fit_calibration(asked, load_built_in(now), replace(now, revision=record.revision))
        await askbook.ledger.save_calibration(record.book_id, now.embedder, after.to_json())
        return before.calibration, after, asked

    before, after, asked = run_with_book(book, fit)
    if as_json:
        sys.stdout.write(after.to_json() + "\n")
        return
    then, now = measure_probes(asked, before), measure_probes(asked, after)
    out.print(f"{now.asked} questions made from the book; {now.first_right} find their own lesson first.")
    out.print(f"Before, the calibration was {name_origin(before)}.")
    out.print(f"Refused although the book answers them: {now.refused} (before: {then.refused}).")
    out.print(f"Refused once their lesson is hidden: {now.caught} (before: {then.caught}).")
    was, became = find_curves(asked, before).in_book, find_curves(asked, after).in_book
    out.print(f"  the book answers it: {'unchanged' if was == became else f'{_join(was)} became {_join(became)}'}")
    out.print("Saved; it holds until the book, the embedder or the chunker changes.")
    if before.origin == "raw":
        out.print("It is not used while ASKBOOK_CONFIDENCE is raw.")


def _join(weights: Weights) -> str:
    return ", ".join(f"{weight:g}" for weight in weights)


def _to_signals(signals: Signals, calibration: Calibration, evidence: Evidence | None) -> SearchSignals:
    raw = calibration.origin == "raw"
    read = ("chance_on_topic", "chance_answered", "chance_shown")
    return SearchSignals.of(
        signals,
        chance_in_book=None if raw else calibration.chance_in_book(signals),
        chance_right_place=None if raw else calibration.chance_right_place(signals),
        **{name: getattr(evidence, name, None) for name in read},
    )


def _print_explanation(explanation: Explanation, passages: Sequence[Passage]) -> None:
    if explanation.notice:
        err.print(explanation.notice)
    metrics, signals = explanation.confidence, explanation.signals
    refused = not metrics.should_answer
    out.say((f"{metrics.confidence_level}: ", "bold red" if refused else "bold green"), explanation.gate)
    meaning = "no vectors" if signals.similarity is None else f"mean cosine of the five best {signals.similarity:.2f}"
    words = f"{meaning}, {signals.coverage:.0%} of its words in one passage"
    _show_chance("the book answers it", signals.chance_in_book, words)
    lead = f"the best lesson leads by {signals.lead:.2f}, its score is {signals.score:.2f}"
    _show_chance("the first passage is the place", signals.chance_right_place, lead)
    if signals.chance_shown is not None:
        out.print(
            f"  as read: it speaks of this {signals.chance_on_topic:.2f}, an excerpt answers it "
            f"{signals.chance_answered:.2f}, the one that would be shown does {signals.chance_shown:.2f}"
        )
    out.print(f"  calibration: {explanation.calibration}")
    out.print(
        f"  relevance: average {metrics.average_similarity:.2f}, {metrics.min_similarity:.2f} to "
        f"{metrics.max_similarity:.2f} of {metrics.num_chunks} passages, diversity {metrics.chunk_diversity:.2f}"
    )
    if signals.unknown_words:
        out.say(f"  the book never uses: {', '.join(signals.unknown_words)}")
    if explanation.advice:
        out.say(explanation.advice)
    if passages:
        out.print("Nearest:" if refused else "Found:")
    for passage in passages:
        chunk = passage.chunk
        out.say(f"  {passage.rating:.2f}  {chunk.way}  {chunk.source_file}:{chunk.first_line}")


def _show_chance(what: str, chance: float | None, why: str) -> None:
    out.print(f"  {what}{'' if chance is None else f' {chance:.2f}'}: {why}")
