"""One path from a question to a reply, for every door: understand, search, read, write, check, save.

Where the model fails, the book's own sentences answer; where the check leaves nothing, the reply is a refusal.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from askbook.answer.agent import BookAgent, Spent, Written, read_prompt
from askbook.answer.appraisal import Appraisal, Appraiser
from askbook.answer.calibration import Calibration, Calibrations
from askbook.answer.citations import Checking, Doubt, say_left_out
from askbook.answer.cleaning import clean
from askbook.answer.confidence import NOT_IN_BOOK, find_nearest, refuse
from askbook.answer.extract import compose
from askbook.answer.followups import (
    Resolved,
    Turn,
    asks_nothing,
    is_bare,
    names_missing_source,
    resolve_question,
    search_thread,
    to_cited,
)
from askbook.answer.guardrail import is_command
from askbook.answer.librarian import choose_excerpts, keep_lesson
from askbook.answer.personal import narrow_to_tier, prefer, to_metadata
from askbook.answer.places import names_place, narrow_to_place
from askbook.answer.selection import search_selection
from askbook.answer.sending import read_sent
from askbook.answer.structure import Line, answer_structure, asks_structure, cite_structure
from askbook.domain import (
    QUERY_MAX,
    QUERY_MIN,
    Account,
    Answer,
    AnswerEvent,
    CheckChoice,
    Confidence,
    Delta,
    Failed,
    Filters,
    Message,
    Passage,
    PassagesFound,
    Question,
    Refusal,
    RefusalReason,
    Replied,
    Reply,
    RequestState,
    Retrieval,
    Searching,
    SearchOutcome,
    StateChanged,
    Thread,
    Tried,
    UnsupportedChoice,
)
from askbook.errors import AskbookError, DeadlinePassed, InputError, ModelUnavailable
from askbook.index.embedders.base import Embedder
from askbook.index.search import WORDS_ONLY, Searcher
from askbook.index.vectors.base import VectorIndex
from askbook.reading.reader import Reader
from askbook.store.ledger import Ledger
from askbook.store.questions import Questions
from askbook.store.threads import Threads

logger = logging.getLogger("askbook.ask")

TOP_K_MAX = 10
SELECTED_MAX = 5000
ASKS_FOR_MORE = ("bare", "source")
LOW = "I am not sure of this: the passages fit the question only in part."
HURRIED = "Many ask at once: this was found by the search alone, and not read."
MODEL_DOWN = "The model did not answer; these are the book's own sentences."
TOO_SLOW = "The model took too long; these are the book's own sentences."
SEARCH_SLOW = "The search left a model too little time; these are the book's own sentences."
TOO_LONG = "The model took too long; what is here was checked."
UNVERIFIED = "I found passages, but no answer that they prove"
NOT_BY_WORDS = "I did not find this by the book's words, and cannot search by its meaning now"
NOT_ANSWERED = "The nearest sections do not answer it: name the topic, or look into them."
LATER = "Ask again later: the embedder does not answer."
BROKEN_OFF = "The model broke off; what is here was checked."
SURE = Confidence(1.0, 1.0, 1.0, 1, 0.0, "high", True)
"""The confidence of what the book's structure answers."""


@dataclass(frozen=True)
class Parts:
    ledger: Ledger
    threads: Threads
    questions: Questions
    index: VectorIndex
    embedder: Embedder | None
    searcher: Searcher
    calibrations: Calibrations
    reader: Reader | None = None
    agent: BookAgent | None = None
    unsupported: UnsupportedChoice = "drop"
    max_turns: int = 50
    seconds: float = 90.0
    check: CheckChoice = "model"
    ask_seconds: float = 5.0
    outages: tuple[str, ...] = ()
    """Services that were down when askbook started."""


def ask(parts: Parts, question: Question) -> AsyncGenerator[AnswerEvent]:
    """The events of one question; the last is Replied or Failed. Closed early, it stops the model and saves nothing."""
    return read_sent(lambda send: _Inquiry(parts, question, send).run())


async def get_reply(events: AsyncIterator[AnswerEvent | None]) -> Replied:
    """The last event of a question; raises what made it fail."""
    async for event in events:
        if isinstance(event, Replied):
            return event
        if isinstance(event, Failed):
            raise event.error
    raise AssertionError("a question ends in a reply or a failure")


@dataclass(frozen=True)
class _Asked:
    """What is known of a question before anything is searched."""

    text: str
    thread: Thread
    history: Sequence[Message]
    turns: Sequence[Turn]
    meaning: Resolved
    filters: Filters
    calibration: Calibration


class _Inquiry:
    """One question: its steps in order, and what they cost."""

    def __init__(self, parts: Parts, question: Question, send: Callable[[AnswerEvent], None]) -> None:
        self.parts, self.question, self.send = parts, question, send
        self.clock = asyncio.get_running_loop().time
        self.started, self.asked_at = self.clock(), datetime.now(UTC)
        self.begin_by = self.started + parts.ask_seconds
        """A model that has written nothing by then is given up."""
        self.searched = ""
        self.outcomes: list[SearchOutcome] = []
        self.outages: list[str] = []
        """Notices about services that did not take part."""
        self.found = Appraisal((), (), SURE, None)
        self.rated: dict[str, Passage] = {}
        """Every passage that was found for the question, by chunk id."""
        self.retrievals: list[Retrieval] = []
        self.retrieved: set[str] = set()
        """Chunk ids over all searches."""
        self.generation_seconds = 0.0
        self.model: str | None = None
        self.tokens = self.tries = 0

    async def run(self) -> None:
        try:
            async with asyncio.timeout(self.parts.seconds):
                self.send(await self._answer())
        except TimeoutError:
            self._fail(DeadlinePassed(f"no answer within {self.parts.seconds:g} s", "Ask again, or ask for less."))
        except AskbookError as error:
            self._fail(error)
        except Exception as error:
            logger.exception("question failed unexpectedly")
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        logger.info("question failed: %s", type(error).__name__)
        self._enter("failed")
        self.send(Failed(error))

    def _enter(self, state: RequestState) -> None:
        logger.log(logging.INFO if state == "completed" else logging.DEBUG, "question %s", state)
        self.send(StateChanged(state))

    async def _answer(self) -> Replied:
        question, parts = self.question, self.parts
        self._enter("received")
        self._enter("validating")
        text = self.searched = _check(question)
        is_empty = not await parts.ledger.count_chunks(question.filters.book_id)
        thread = await parts.threads.open(
            question.thread_id, question.filters.book_id, question.owner, to_metadata(question.reader)
        )
        self._enter("processing")
        reply = self._tell_outages(await self._reply(text, thread, is_empty))
        if isinstance(reply, Refusal) and reply.confidence:
            # The figures must agree with the refusal, whoever decided it.
            reply = replace(reply, confidence=replace(reply.confidence, should_answer=False))
        thread = await self._save(thread, text, reply)
        self._enter("completed")
        return Replied(reply, self._account(thread.thread_id))

    async def _reply(self, text: str, thread: Thread, is_empty: bool) -> Reply:
        """The question's way: what it may mean, the search, the reading, the writing."""
        asked = await self._understand(text, thread)
        if not isinstance(asked, _Asked):
            return asked
        self.searched = asked.meaning.text
        self._enter("retrieving")
        outcome = await self._search(asked)
        refusal = await self._read(asked, outcome, is_empty)
        self.send(PassagesFound(self.found.passages, self.found.confidence, outcome))
        return refusal or await self._write(asked)

    # --- what is asked ------------------------------------------------------------------------------

    async def _understand(self, text: str, thread: Thread) -> _Asked | Reply:
        """A Reply where there is nothing to search for: a command, no question, or one about the book's structure."""
        if is_command(text):
            return _decline("Ask about what the book says.")
        question, parts = self.question, self.parts
        filters = narrow_to_tier(question.filters, question.reader)
        history, most = thread.messages[-2 * parts.max_turns :], parts.max_turns
        if thread.archived_messages and 2 * most > len(thread.messages):
            history = await parts.threads.load_history(thread.thread_id, thread.owner, most)
        is_selected = question.selected_text is not None
        pairs = zip(history[::2], history[1::2], strict=False)
        turns = [] if is_selected else [Turn(asked.content, said.cited) for asked, said in pairs]
        meaning = resolve_question(text, turns)
        if not is_selected:
            names = asks_structure(text) or names_place(text)
            outline = await parts.ledger.load_outline(filters.book_id) if names else None
            if outline and (lines := answer_structure(text, outline)):
                return await self._show_structure(lines, filters)
            too_short = any(len(searched) < QUERY_MIN for searched in meaning.searches)
            if too_short or (not turns and is_bare(text)) or asks_nothing(text):
                return _decline("Say in a few words what you want to know", "ambiguous")
            if names_missing_source(text, turns):
                return _decline("The last answer has fewer sources: name one of them by its number", "ambiguous")
            filters = narrow_to_place(filters, text, outline) if outline else filters
        calibration = (await parts.calibrations.choose(filters.book_id)).calibration
        return _Asked(text, thread, history, turns, meaning, filters, calibration)

    async def _show_structure(self, lines: Sequence[Line], filters: Filters) -> Answer:
        ledger, tier = self.parts.ledger, filters.hardware_tier
        statements, sources = await cite_structure(lines, filters.book_id, ledger, tier)
        self.found = replace(self.found, passages=tuple(source.passage for source in sources))
        body = "\n".join(statement.text for statement in statements)
        self.send(Delta(body))
        return Answer(body, sources, statements, (), SURE, "extractive")

    # --- is it in the book? -------------------------------------------------------------------------

    async def _search(self, asked: _Asked) -> SearchOutcome:
        selected = self.question.selected_text
        if selected is None:
            self.send(Searching(asked.meaning.text))
            return await self._search_book(asked, asked.meaning, TOP_K_MAX)
        rarities = await self.parts.searcher.weigh_words(asked.text, asked.filters.book_id)
        outcome = await search_selection(asked.text, selected, asked.filters, rarities, self.parts.embedder)
        self.outages += outcome.notices
        return outcome

    async def _search_book(self, asked: _Asked, meaning: Resolved, limit: int) -> SearchOutcome:
        relevance = asked.calibration.relevance
        outcome = await search_thread(self.parts.searcher, meaning, asked.filters, limit, relevance)
        self.outcomes.append(outcome)
        self.outages += (*self.parts.outages, *outcome.notices)
        return outcome

    async def _read(self, asked: _Asked, outcome: SearchOutcome, is_empty: bool) -> Refusal | None:
        """Reads what was found; a Refusal where the book does not say."""
        question, meant, is_selected = self.question, asked.meaning.meant, self.question.selected_text is not None
        preferred = replace(outcome, passages=tuple(prefer(outcome.passages, question.reader)))
        appraiser = Appraiser(self.parts.searcher, self.parts.index, self.parts.reader)
        always = is_selected and is_bare(asked.text)
        found = await appraiser.appraise(preferred, asked.meaning.meanings, asked.calibration, always)
        self.rated = {passage.chunk.id: passage for passage in found.passages}
        # Passages below the threshold are neither shown nor read out; the confidence was judged before.
        shown = [passage for passage in found.passages if passage.rating >= question.threshold][: question.top_k]
        ids = {passage.chunk.id for passage in shown}
        reads = keep_lesson(found.reads, meant.parent_doc_id) if meant else found.reads
        reads = tuple(read for read in reads if read.excerpt.passage.chunk.id in ids)
        confidence = found.confidence
        is_too_low = confidence.should_answer and not shown
        if is_too_low:
            confidence = replace(confidence, confidence_level="insufficient", should_answer=False)
        self.found = replace(found, passages=tuple(shown), reads=reads, confidence=confidence)
        if not is_selected:
            self._note_retrieval(outcome.query, shown)
        if is_too_low:
            why = f"No passage reaches the threshold of {question.threshold:g}"
            nearest = find_nearest(found.passages)
            return Refusal("below_threshold", why, nearest, "Ask with a lower threshold.", confidence)
        if is_selected and not confidence.should_answer:
            return _decline("The selected text does not say; ask without it.", confidence=confidence)
        refusal = None if is_selected else refuse(outcome, confidence, is_empty)
        return refusal and replace(refusal, confidence=confidence)

    def _note_retrieval(self, query: str, returned: Sequence[Passage]) -> None:
        average = sum(passage.rating for passage in returned) / len(returned) if returned else 0.0
        self.retrievals.append(Retrieval(query, len(returned), average, datetime.now(UTC)))
        self.retrieved |= {passage.chunk.id for passage in returned}

    # --- the answer ---------------------------------------------------------------------------------

    async def _write(self, asked: _Asked) -> Reply:
        self._enter("generating")
        started = self.clock()
        unknown = self.outcomes[0].signals.unknown_words[:5] if self.outcomes else ()
        told = (
            *([LOW] if self.found.confidence.confidence_level == "low" else ()),
            *([HURRIED] if self.found.hurried else ()),
            *([f"The book never uses {', '.join(f'“{word}”' for word in unknown)}."] if unknown else ()),
        )
        try:
            if self.parts.agent is None:
                return self._extract(asked, told)
            return await self._generate(asked, self.parts.agent, told)
        finally:
            self.generation_seconds = self.clock() - started

    def _extract(self, asked: _Asked, notices: tuple[str, ...]) -> Reply:
        """In the book's own words. A reader who asks for more is not shown again what the thread already said."""
        self.model, confidence = None, self.found.confidence
        told = asked.thread.messages if asked.meaning.kind in ASKS_FOR_MORE else ()
        said = "\n".join(message.content for message in told if message.role == "assistant")
        excerpts = choose_excerpts(self.found.reads, said)
        if not excerpts:
            advice = "No sentence of the nearest sections answers this: look into them."
            return replace(_decline(advice, confidence=confidence), nearest=find_nearest(self.found.passages))
        draft = compose(excerpts)
        for delta in draft.deltas:
            self.send(Delta(delta))
        return Answer(draft.text, draft.sources, draft.statements, (), confidence, "extractive", notices)

    async def _generate(self, asked: _Asked, agent: BookAgent, notices: tuple[str, ...]) -> Reply:
        """By a model. Every sentence is checked before it is sent."""
        numbered: dict[int, Passage] = {}
        is_cut_short, is_late, tool_seconds, begun = False, False, 0.0, self.clock()

        def allow() -> float:
            """Until when a model that writes may go on: an answer sent whole has as long again; one that is read as it
            comes may take its time, while it is not silent for so long."""
            return (self.clock() if self.question.streamed else self.begin_by) + self.parts.ask_seconds

        async def judge(doubts: Sequence[Doubt]) -> Sequence[bool]:
            supported, tokens = await agent.judge(doubts, allow() - self.clock())
            self.tokens += tokens
            self.tries += 1
            return supported

        async def search(query: str, top_k: int, threshold: float) -> list[tuple[int, Passage]]:
            """Searches this book with these filters only. A passage keeps its number over all searches."""
            nonlocal tool_seconds
            searching = self.clock()
            try:
                passages = await self._search_for_model(asked, query, top_k, threshold)
            finally:
                tool_seconds += self.clock() - searching
            numbers = {passage.chunk.id: number for number, passage in numbered.items()}
            found = [(numbers.setdefault(passage.chunk.id, len(numbers) + 1), passage) for passage in passages]
            numbered.update(dict(found) | numbered)
            return found

        def show(text: str) -> None:
            if text:
                self.send(Delta(text))

        if begun >= self.begin_by:
            return self._extract(asked, (*notices, SEARCH_SLOW))
        checking = Checking(
            numbered,
            self.parts.unsupported,
            # Links in an answer lead to the pages that it was made from.
            lambda url: url.partition("#")[0] in {passage.chunk.url.partition("#")[0] for passage in numbered.values()},
            read_prompt("answer").replace(NOT_IN_BOOK, ""),
            self.parts.reader,
            judge if self.parts.check == "model" else None,
            asked.text,
        )
        self.model = agent.name
        try:
            async with (
                asyncio.timeout_at(self.begin_by) as limit,
                contextlib.aclosing(agent.write(asked.text, asked.history, search, self.begin_by)) as events,
            ):
                async for event in events:
                    match event:
                        case Written(text):
                            limit.reschedule(allow())
                            show(await checking.feed(text))
                        case Spent():
                            self.tokens, self.tries, is_cut_short = event.tokens, event.tries, event.cut_short
                        case Tried():
                            self.send(event)
        except (ModelUnavailable, TimeoutError) as error:
            is_cut_short, is_late = True, isinstance(error, TimeoutError)
            logger.warning("the model failed: %s", "it took too long" if is_late else error)
            if not checking.statements and not is_late:
                return self._extract(asked, (*notices, MODEL_DOWN))
        show(await checking.finish(is_cut_short))
        if is_late and not checking.statements:
            # As the breaker counts: with less than half of the time the model has not failed.
            had_time = self.clock() - begun - tool_seconds >= self.parts.ask_seconds / 2
            return self._extract(asked, (*notices, TOO_SLOW if had_time else SEARCH_SLOW))
        if is_cut_short:
            notices = (*notices, TOO_LONG if is_late else BROKEN_OFF)
        return self._conclude(checking, notices)

    async def _search_for_model(self, asked: _Asked, query: str, top_k: int, threshold: float) -> Sequence[Passage]:
        if self.question.selected_text is not None:
            return self.found.passages
        # A model that only repeats "tell me more" means what its reader means.
        meaning = resolve_question(query, asked.turns if is_bare(query) else ())
        outcome = await self._search_book(asked, meaning, top_k)
        # One scale for a reply: the rating for the reader's question, or at most the best of these.
        best = max((passage.rating for passage in self.rated.values()), default=1.0)
        rated = [
            self.rated.get(passage.chunk.id) or replace(passage, relevance=min(passage.rating, best))
            for passage in outcome.passages
        ]
        returned = [passage for passage in rated if passage.rating >= max(threshold, self.question.threshold)]
        self._note_retrieval(outcome.query, returned)
        return returned

    def _conclude(self, checking: Checking, notices: tuple[str, ...]) -> Reply:
        confidence, removed = self.found.confidence, tuple(checking.removed)
        if checking.statements:
            statements, notices = tuple(checking.statements), (*notices, *say_left_out(removed))
            return Answer(checking.text, checking.sources(), statements, removed, confidence, "model", notices)
        refusal = Refusal("unverified", UNVERIFIED, (), "Look into the nearest sections.", confidence)
        if checking.said_not_in_book:
            refusal = _decline(NOT_ANSWERED, confidence=confidence)
        return replace(refusal, nearest=find_nearest(self.found.passages), removed=removed)

    # --- what is kept -----------------------------------------------------------------------------

    def _tell_outages(self, reply: Reply) -> Reply:
        """Adds the notices. After a search by words alone, "not in the book" becomes "provider down"."""
        notices = tuple(dict.fromkeys(self.outages))
        if isinstance(reply, Refusal) and reply.reason == "not_in_book" and WORDS_ONLY in notices:
            return replace(reply, reason="provider_down", text=NOT_BY_WORDS, advice=LATER, notices=notices)
        return replace(reply, notices=(*reply.notices, *notices))

    async def _save(self, thread: Thread, text: str, reply: Reply) -> Thread:
        sources = reply.sources if isinstance(reply, Answer) else ()
        is_selected = self.question.selected_text is not None
        said = Message(
            "assistant",
            reply.text,
            datetime.now(UTC),
            confidence=reply.confidence.average_similarity if reply.confidence else None,
            cited=tuple(to_cited(source.passage, source.quotes) for source in sources),
            tool_calls=tuple(self.retrievals),
            refusal=reply.reason if isinstance(reply, Refusal) else None,
        )
        return await self.parts.threads.save_exchange(
            thread,
            Message("user", text, self.asked_at),
            said,
            tokens_used=self.tokens,
            model=self.model,
            metadata=to_metadata(self.question.reader),
            along=lambda connection, saved: self.parts.questions.save_asked(
                connection, saved, text, self.searched, reply, is_selected
            ),
        )

    def _account(self, thread_id: str) -> Account:
        first = self.outcomes[0] if self.outcomes else None
        return Account(
            question=self.question.text,
            searched=self.searched,
            passages=self.found.passages,
            response_ms=(self.clock() - self.started) * 1000,
            embedding_ms=sum(outcome.embedding_ms for outcome in self.outcomes),
            retrieval_ms=sum(outcome.retrieval_ms for outcome in self.outcomes),
            generation_ms=self.generation_seconds * 1000,
            created_at=datetime.now(UTC),
            cache_hit=first is not None and first.cache_hit,
            thread_id=thread_id,
            model=self.model,
            tokens_used=self.tokens,
            retrievals=tuple(self.retrievals),
            outcome=first,
            retrieved=len(self.retrieved | {passage.chunk.id for passage in self.found.passages}),
            tries=self.tries,
        )


def _check(question: Question) -> str:
    """The cleaned question: no NUL, no lone surrogates, no blanks around it."""
    text = clean(question.text.encode("utf-8", "replace").decode("utf-8")).strip()
    if not text:
        raise InputError("The question is empty", "Ask something about the book.", code="E005")
    if len(text) > QUERY_MAX:
        raise InputError(f"A question has 1 to {QUERY_MAX} characters; this one has {len(text)}", "Ask in fewer words.")
    if not 1 <= question.top_k <= TOP_K_MAX:
        raise InputError(f"top_k is 1 to {TOP_K_MAX}, not {question.top_k}")
    if not 0.0 <= question.threshold <= 1.0:
        raise InputError(f"threshold is 0 to 1, not {question.threshold}")
    if question.selected_text is not None and not 1 <= len(question.selected_text.strip()) <= SELECTED_MAX:
        raise InputError(f"A selected text has 1 to {SELECTED_MAX} characters", "Select less, or nothing.")
    return text


def _decline(advice: str, reason: RefusalReason = "not_in_book", confidence: Confidence | None = None) -> Refusal:
    return Refusal(reason, NOT_IN_BOOK if reason == "not_in_book" else advice, (), advice, confidence)
