"""One path from a question to a reply, for every door.

Load the thread, resolve the question, search, judge, answer, check the citations, save. What the book's structure tells is
answered from it; a selected text is all the book there is. A reply comes from the book or not at all: where the model
fails, the book's own sentences answer, and where the check leaves nothing, that is a refusal.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial

from askbook.answer.agent import AgentEvent, BookAgent, Search, Spent, Written, read_prompt
from askbook.answer.appraisal import Appraiser
from askbook.answer.calibration import Calibration, Calibrations
from askbook.answer.citations import Checking, Doubt, say_left_out
from askbook.answer.cleaning import clean
from askbook.answer.confidence import NOT_IN_BOOK, find_nearest, refuse
from askbook.answer.extract import compose
from askbook.answer.followups import (
    Turn,
    asks_nothing,
    is_bare,
    names_missing_source,
    resolve_question,
    search_thread,
    to_cited,
)
from askbook.answer.guardrail import check_question
from askbook.answer.librarian import Read, choose_excerpts, keep_lesson
from askbook.answer.personal import narrow, prefer, to_metadata
from askbook.answer.places import find_place, names_place, narrow_to_place
from askbook.answer.selection import search_selection
from askbook.answer.structure import answer_structure, asks_structure, cite_structure
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
LATER = "Ask again later: the embedder does not answer."
BROKEN_OFF = "The model broke off; what is here was checked."
SURE = Confidence(1.0, 1.0, 1.0, 1, 0.0, "high", True)
"""Of what the structure of the book tells."""


@dataclass(frozen=True)
class Parts:
    """What answering needs, open."""

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
    """What has been missing from the start."""


async def ask(parts: Parts, question: Question) -> AsyncGenerator[AnswerEvent]:
    """The events of one question; the last is Replied or Failed. Closed early, it stops the model and saves nothing."""
    events: asyncio.Queue[AnswerEvent] = asyncio.Queue()
    task = asyncio.create_task(_Inquiry(parts, question, events.put_nowait).run())
    try:
        while True:
            event = await events.get()
            yield event
            if isinstance(event, Replied | Failed):
                return
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def get_reply(events: AsyncIterator[AnswerEvent]) -> Replied:
    """The last event of a question; raises what made it fail."""
    async for event in events:
        if isinstance(event, Replied):
            return event
        if isinstance(event, Failed):
            raise event.error
    raise AssertionError("a question ends in a reply or a failure")


@dataclass
class _Inquiry:
    """One question on its way. What becomes known of it is kept for its account."""

    parts: Parts
    question: Question
    send: Callable[[AnswerEvent], None]
    started: float = field(default_factory=time.perf_counter)
    asked_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    filters: Filters = field(init=False)
    calibration: Calibration | None = None
    history: Sequence[Message] = ()
    turns: Sequence[Turn] = ()
    searched: str = ""
    said: str = ""
    """What a reader who asks for more has been told already."""
    outcomes: list[SearchOutcome] = field(default_factory=list[SearchOutcome])
    outages: list[str] = field(default_factory=list[str])
    """What readers are told of services that did not take part."""
    reads: tuple[Read, ...] = ()
    hurried: bool = False
    passages: tuple[Passage, ...] = ()
    appraised: dict[str, Passage] = field(default_factory=dict[str, Passage])
    """What was found for the question as it was rated, by its chunk: also what is below the threshold or beyond top_k."""
    retrievals: list[Retrieval] = field(default_factory=list[Retrieval])
    retrieved: set[str] = field(default_factory=set[str])
    """The ids of all chunks that a search returned."""
    tool_seconds: float = 0.0
    """What the searches of the model took."""
    generation_ms: float = 0.0
    model: str | None = None
    tokens: int = 0
    tries: int = 0
    cut_short: bool = False

    def __post_init__(self) -> None:
        self.filters = narrow(self.question.filters, self.question.reader)

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
        self._enter("received")
        self._enter("validating")
        text = self.searched = _check(self.question)
        book_id = self.question.filters.book_id
        chunks = await self.parts.ledger.count_chunks(book_id)
        metadata = to_metadata(self.question.reader)
        thread = await self.parts.threads.open(self.question.thread_id, book_id, self.question.owner, metadata)
        self.history = await self._recall(thread)
        self._enter("processing")
        reply = self._tell_outages(_settle(await self._reply(text, thread, empty=not chunks)))
        thread = await self._save(thread, text, reply)
        self._enter("completed")
        return Replied(reply, self._account(thread.thread_id))

    async def _recall(self, thread: Thread) -> Sequence[Message]:
        """The turns that count, the archived ones too where so many do."""
        most = self.parts.max_turns
        if thread.archived_messages and 2 * most > len(thread.messages):
            return await self.parts.threads.load_history(thread.thread_id, thread.owner, most)
        return thread.messages[-2 * most :]

    async def _reply(self, text: str, thread: Thread, empty: bool) -> Reply:
        if check_question(text) is not None:
            return _decline("Ask about what the book says.")
        if self.question.selected_text is not None:
            return await self._reply_from_selection(text, self.question.selected_text, thread)
        return await self._reply_from_structure(text, thread) or await self._reply_from_search(text, thread, empty)

    def _tell_outages(self, reply: Reply) -> Reply:
        """What did not take part is said; and what half a search did not find may still be in the book."""
        notices = tuple(dict.fromkeys(self.outages))
        if isinstance(reply, Refusal) and reply.reason == "not_in_book" and WORDS_ONLY in notices:
            return replace(reply, reason="provider_down", text=NOT_BY_WORDS, advice=LATER, notices=notices)
        return replace(reply, notices=(*reply.notices, *notices)) if notices else reply

    # --- where the answer is looked for -----------------------------------------------------------

    async def _reply_from_structure(self, text: str, thread: Thread) -> Answer | None:
        if not asks_structure(text):
            return None
        outline = await self.parts.ledger.load_outline(self.question.filters.book_id)
        found = answer_structure(text, outline, _last_lesson(thread.messages))
        if found is None:
            return None
        statements, sources = await cite_structure(found, self.parts.ledger, self.filters.hardware_tier)
        self.passages = tuple(source.passage for source in sources)
        body = "\n".join(statement.text for statement in statements)
        self.send(Delta(body))
        return Answer(body, sources, statements, (), SURE, "extractive")

    async def _reply_from_selection(self, text: str, selected: str, thread: Thread) -> Reply:
        self._enter("retrieving")
        rarities = await self.parts.searcher.weigh_words(text, self.question.filters.book_id)
        outcome = await search_selection(text, selected, self.filters, rarities, self.parts.embedder)
        self.outages += outcome.notices
        confidence = await self._appraise(outcome, (text,), always=is_bare(text))
        self.passages = self.passages[:1]
        confidence, refusal = self._apply_threshold(confidence)
        self.send(PassagesFound(self.passages, confidence, outcome))
        if refusal is None and not confidence.should_answer:
            refusal = _decline("The selected text does not say; ask without it.", confidence=confidence)
        return refusal or await self._write(text, thread, confidence)

    async def _reply_from_search(self, text: str, thread: Thread, empty: bool) -> Reply:
        self.turns = _to_turns(self.history)
        resolved = resolve_question(text, self.turns)
        too_short = any(len(one) < QUERY_MIN for one in resolved.searches)
        if too_short or (not self.turns and is_bare(text)) or asks_nothing(text):
            return _decline("Say in a few words what you want to know", "ambiguous")
        if names_missing_source(text, self.turns):
            return _decline("The last answer has fewer sources: name one of them by its number", "ambiguous")
        self.searched = resolved.text
        if resolved.kind in ASKS_FOR_MORE:
            self.said = "\n".join(one.content for one in thread.messages if one.role == "assistant")
        self._enter("retrieving")
        self.send(Searching(resolved.text))
        await self._narrow_to_named_place(text, thread)
        outcome = await self._search(text, self.turns, TOP_K_MAX)
        confidence = await self._appraise(outcome, resolved.meanings)
        if resolved.meant:
            self.reads = keep_lesson(self.reads, resolved.meant.parent_doc_id)
        confidence, too_low = self._apply_threshold(confidence)
        self._note_retrieval(outcome.query, self.passages)
        self.send(PassagesFound(self.passages, confidence, outcome))
        if too_low:
            return too_low
        if refusal := refuse(outcome, confidence, empty):
            return replace(refusal, confidence=confidence)
        return await self._write(text, thread, confidence)

    def _apply_threshold(self, confidence: Confidence) -> tuple[Confidence, Refusal | None]:
        """What lies below it is not shown and not read out; how sure the rest is was judged before."""
        above = tuple(one for one in self.passages if one.rating >= self.question.threshold)
        nearest, self.passages = find_nearest(self.passages), above[: self.question.top_k]
        kept = {one.chunk.id for one in self.passages}
        self.reads = tuple(one for one in self.reads if one.excerpt.passage.chunk.id in kept)
        if above or not confidence.should_answer:
            return confidence, None
        confidence = replace(confidence, confidence_level="insufficient", should_answer=False)
        low = f"No passage reaches the threshold of {self.question.threshold:g}"
        return confidence, Refusal("below_threshold", low, nearest, "Ask with a lower threshold.", confidence)

    async def _narrow_to_named_place(self, text: str, thread: Thread) -> None:
        """ "In chapter 3, …" is looked for in chapter 3."""
        if not names_place(text):
            return
        outline = await self.parts.ledger.load_outline(self.question.filters.book_id)
        place = find_place(text, outline, _last_lesson(thread.messages))
        if place is not None:
            self.filters = narrow_to_place(self.filters, place)

    async def _search(self, text: str, turns: Sequence[Turn], limit: int) -> SearchOutcome:
        relevance = (await self._choose_calibration()).relevance
        outcome = await search_thread(self.parts.searcher, text, turns, self.filters, limit=limit, relevance=relevance)
        self.outcomes.append(outcome)
        self.outages += (*self.parts.outages, *outcome.notices)
        return outcome

    def _note_retrieval(self, query: str, returned: Sequence[Passage]) -> None:
        relevances = [one.rating for one in returned]
        average = sum(relevances) / len(relevances) if relevances else 0.0
        self.retrievals.append(Retrieval(query, len(relevances), average, datetime.now(UTC)))
        self.retrieved |= {one.chunk.id for one in returned}

    async def _appraise(self, outcome: SearchOutcome, meanings: Sequence[str], always: bool = False) -> Confidence:
        preferred = replace(outcome, passages=tuple(prefer(outcome.passages, self.question.reader)))
        appraiser = Appraiser(self.parts.searcher, self.parts.index, self.parts.reader)
        found = await appraiser.appraise(preferred, meanings, await self._choose_calibration(), always)
        self.passages, self.reads, self.hurried = found.passages, found.reads, found.hurried
        self.appraised = {one.chunk.id: one for one in found.passages}
        return found.confidence

    async def _choose_calibration(self) -> Calibration:
        """One for all searches of a question."""
        if self.calibration is None:
            self.calibration = (await self.parts.calibrations.choose(self.question.filters.book_id)).calibration
        return self.calibration

    # --- who writes it ----------------------------------------------------------------------------

    async def _write(self, text: str, thread: Thread, confidence: Confidence) -> Reply:
        self._enter("generating")
        started = time.perf_counter()
        notices = (LOW,) if confidence.confidence_level == "low" else ()
        if self.hurried:
            notices = (*notices, HURRIED)
        if self.outcomes and (unknown := self.outcomes[0].signals.unknown_words):
            notices = (*notices, f"The book never uses {', '.join(f'“{word}”' for word in unknown[:5])}.")
        try:
            if self.parts.agent is None:
                return self._extract(confidence, notices)
            return await self._generate(self.parts.agent, text, thread, confidence, notices)
        finally:
            self.generation_ms = (time.perf_counter() - started) * 1000

    def _extract(self, confidence: Confidence, notices: tuple[str, ...]) -> Reply:
        excerpts = choose_excerpts(self.reads, self.said)
        if not excerpts:
            nothing = _decline("No sentence of the nearest sections answers this: look into them.", "not_in_book")
            return replace(nothing, nearest=find_nearest(self.passages), confidence=confidence)
        draft = compose(excerpts)
        for delta in draft.deltas:
            self.send(Delta(delta))
        return Answer(draft.text, draft.sources, draft.statements, (), confidence, "extractive", notices)

    async def _generate(
        self, agent: BookAgent, text: str, thread: Thread, confidence: Confidence, notices: tuple[str, ...]
    ) -> Reply:
        numbered: dict[int, Passage] = {}
        rules = read_prompt().replace(NOT_IN_BOOK, "")
        checking = Checking(
            numbered,
            self.parts.unsupported,
            lambda url: _is_page(url, numbered.values()),
            rules,
            self.parts.reader,
            partial(self._ask_judge, agent) if self.parts.check == "model" else None,
            text,
        )
        if self._left() <= 0:
            return self._extract(confidence, (*notices, SEARCH_SLOW))
        self.model = agent.name
        begun = time.perf_counter()
        begin_by = asyncio.get_running_loop().time() + self._left()
        late = False
        try:
            async with (
                asyncio.timeout_at(begin_by) as limit,
                contextlib.aclosing(agent.write(text, self.history, self._search_for(numbered), begin_by)) as events,
            ):
                async for event in events:
                    if isinstance(event, Written):
                        limit.reschedule(self._allow(begin_by))
                    await self._follow(event, checking)
        except (ModelUnavailable, TimeoutError) as error:
            late = isinstance(error, TimeoutError)
            logger.warning("the model failed: %s", "it took too long" if late else error)
            self.cut_short = True
            if not checking.statements and not late:
                self.model = None
                return self._extract(confidence, (*notices, MODEL_DOWN))
        self._pass_on(await checking.finish(self.cut_short))
        if late and not checking.statements:
            self.model = None
            had = time.perf_counter() - begun - self.tool_seconds
            # As its breaker counts: with less than half of the time it has not failed.
            return self._extract(confidence, (*notices, TOO_SLOW if had >= self.parts.ask_seconds / 2 else SEARCH_SLOW))
        if self.cut_short:
            notices = (*notices, TOO_LONG if late else BROKEN_OFF)
        return self._conclude(checking, confidence, notices)

    def _left(self) -> float:
        """Of the seconds after which a model that has not begun is waited for no longer."""
        return self.started + self.parts.ask_seconds - time.perf_counter()

    def _allow(self, begin_by: float) -> float:
        """Until when a model that writes may go on: an answer sent whole has as long again; one that is read as it comes
        may take its time, while it is not silent for so long."""
        since = asyncio.get_running_loop().time() if self.question.streamed else begin_by
        return since + self.parts.ask_seconds

    async def _follow(self, event: AgentEvent, checking: Checking) -> None:
        match event:
            case Written(text):
                self._pass_on(await checking.feed(text))
            case Spent(tokens, tries, cut_short):
                self.tokens, self.tries, self.cut_short = tokens, tries, cut_short
            case Tried():
                self.send(event)

    async def _ask_judge(self, agent: BookAgent, doubts: Sequence[Doubt]) -> Sequence[bool]:
        seconds = self.parts.ask_seconds
        judged = await agent.judge(doubts, seconds if self.question.streamed else self._left() + seconds)
        self.tokens += judged.tokens
        self.tries += 1
        return judged.supported

    def _pass_on(self, checked: str) -> None:
        if checked:
            self.send(Delta(checked))

    def _search_for(self, numbered: dict[int, Passage]) -> Search:
        """The model's search: of this book and these filters alone. A passage keeps its number over all searches."""

        async def search(query: str, top_k: int, threshold: float) -> list[tuple[int, Passage]]:
            passages = await self._find_for_model(query, top_k, threshold)
            numbers = {one.chunk.id: number for number, one in numbered.items()}
            found: list[tuple[int, Passage]] = []
            for passage in passages:
                number = numbers.get(passage.chunk.id, len(numbered) + 1)
                numbered.setdefault(number, passage)
                found.append((number, passage))
            return found

        return search

    async def _find_for_model(self, query: str, top_k: int, threshold: float) -> Sequence[Passage]:
        if self.question.selected_text is not None:
            return self.passages
        started = time.perf_counter()
        try:
            # A model that only repeats "tell me more" means what the reader means.
            outcome = await self._search(query, self.turns if is_bare(query) else (), top_k)
        finally:
            self.tool_seconds += time.perf_counter() - started
        least = max(threshold, self.question.threshold)
        rated = map(self._rate_for_question, outcome.passages)
        returned = [one for one in rated if one.rating >= least]
        self._note_retrieval(outcome.query, returned)
        return returned

    def _rate_for_question(self, passage: Passage) -> Passage:
        """One scale for a reply: as it was rated for the reader's question, or no better than the best of these."""
        if known := self.appraised.get(passage.chunk.id):
            return known
        best = max((one.rating for one in self.appraised.values()), default=1.0)
        return replace(passage, relevance=min(passage.rating, best))

    def _conclude(self, checking: Checking, confidence: Confidence, notices: tuple[str, ...]) -> Reply:
        nearest = find_nearest(self.passages)
        removed = tuple(checking.removed)
        if checking.statements:
            return Answer(
                checking.text,
                checking.sources(),
                tuple(checking.statements),
                removed,
                confidence,
                "model",
                (*notices, *say_left_out(removed)),
            )
        if checking.said_not_in_book:
            advice = "The nearest sections do not answer it: name the topic, or look into them."
            return Refusal("not_in_book", NOT_IN_BOOK, nearest, advice, confidence, removed)
        return Refusal("unverified", UNVERIFIED, nearest, "Look into the nearest sections.", confidence, removed)

    # --- what is kept -----------------------------------------------------------------------------

    async def _save(self, thread: Thread, text: str, reply: Reply) -> Thread:
        asked = Message("user", text, self.asked_at)
        said = Message(
            "assistant",
            reply.text,
            datetime.now(UTC),
            confidence=reply.confidence.average_similarity if reply.confidence else None,
            cited=tuple(to_cited(one.passage, one.quotes) for one in reply.sources)
            if isinstance(reply, Answer)
            else (),
            tool_calls=tuple(self.retrievals),
            refusal=reply.reason if isinstance(reply, Refusal) else None,
        )
        selected = self.question.selected_text is not None
        return await self.parts.threads.save_exchange(
            thread,
            asked,
            said,
            tokens_used=self.tokens,
            model=self.model,
            metadata=to_metadata(self.question.reader),
            along=lambda connection, saved: self.parts.questions.save_asked(
                connection, saved, text, self.searched, reply, selected
            ),
        )

    def _account(self, thread_id: str) -> Account:
        return Account(
            question=self.question.text,
            searched=self.searched,
            passages=self.passages,
            response_ms=(time.perf_counter() - self.started) * 1000,
            embedding_ms=sum(outcome.embedding_ms for outcome in self.outcomes),
            retrieval_ms=sum(outcome.retrieval_ms for outcome in self.outcomes),
            generation_ms=self.generation_ms,
            cache_hit=bool(self.outcomes) and self.outcomes[0].cache_hit,
            thread_id=thread_id,
            model=self.model,
            tokens_used=self.tokens,
            retrievals=tuple(self.retrievals),
            outcome=self.outcomes[0] if self.outcomes else None,
            retrieved=len(self.retrieved | {one.chunk.id for one in self.passages}),
            tries=self.tries,
            created_at=datetime.now(UTC),
        )


def _check(question: Question) -> str:
    """The question as it is asked: no NUL, no half of a character, no blanks around it."""
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


def _settle(reply: Reply) -> Reply:
    """Whoever decided that there is no answer, the figures of the reply say so too."""
    if isinstance(reply, Answer) or reply.confidence is None:
        return reply
    return replace(reply, confidence=replace(reply.confidence, should_answer=False))


def _to_turns(messages: Sequence[Message]) -> list[Turn]:
    pairs = zip(messages[::2], messages[1::2], strict=False)
    return [Turn(asked.content, said.cited) for asked, said in pairs]


def _last_lesson(messages: Sequence[Message]) -> str | None:
    """The lesson that the last answer was about."""
    return next((said.cited[0].parent_doc_id for said in reversed(messages) if said.cited), None)


def _is_page(url: str, passages: Iterable[Passage]) -> bool:
    """Links in an answer lead to the pages that it was made from."""
    page = url.partition("#")[0]
    return any(one.chunk.url.partition("#")[0] == page for one in passages)
