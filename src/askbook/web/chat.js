// The chat page: what is asked, what is answered, and what stands around it.

import { Problem, askStream, call, copyButton, icon, make, renderAnswer, renderReply, toPlainText } from "./answer.js";
import { capital } from "./dom.js";
import { attempt, empty, renderThumbs, showAsking, wireComposer } from "./asking.js";
import { renderFilters } from "./filters.js";
import { renderKeyForm } from "./keyform.js";
import { Panel } from "./panel.js";
import { SELECTED_MAX, keyHeaders, switchTheme, takeSelection } from "./state.js";
import { toSpans } from "./spans.js";
import { ThreadList } from "./threads.js";

const $ = (id) => document.getElementById(id);
const LOOK_MS = 3000;
const LOOKS = 10;
const SUGGESTED = 4;
const api = (path, options = {}) => call(path, { ...options, headers: keyHeaders() });
const state = { books: [], ingesting: [], book: null, contents: null, session: null, messages: 0, asking: null, attached: null, filters: {}, scrolled: false, entered: false };

const panel = new Panel($("panel"), $("veil"), { api, readUrl });
const threads = new ThreadList($("threads"), { api, onOpen: openThread, onGone: startThread });

function readUrl(source) {
  return `/read/${encodeURIComponent(state.book.book_id)}?chunk=${encodeURIComponent(source.chunk_id)}${toSpans(source.places)}`;
}

// --- opening the page ------------------------------------------------------------------------------

async function open() {
  let info;
  try {
    info = await api("/info");
  } catch (problem) {
    return showTrouble(problem, open);
  }
  state.books = info.books.filter((one) => one.total_chunks);
  state.ingesting = info.ingesting;
  if (!state.books.length) {
    showNoBook(info.ingesting[0]);
    return setTimeout(open, LOOK_MS);
  }
  const asked = new URLSearchParams(location.search);
  const book = state.books.find((one) => one.book_id === asked.get("book")) || state.books[0];
  state.attached = takeSelection();
  await openBook(book, asked.get("thread"));
}

async function openBook(book, thread = null) {
  Object.assign(state, { book, contents: null, filters: {} });
  document.title = `${book.title} · askbook`;
  $("book-title").textContent = book.title;
  renderBookPicker();
  try {
    state.contents = await api(`/contents?book_id=${encodeURIComponent(book.book_id)}`);
  } catch (problem) {
    return showTrouble(problem, () => openBook(book, thread));
  }
  renderFilters($("filters"), $("filters-open"), book, state.contents, (filters) => (state.filters = filters));
  $("to-book").href = `/read/${encodeURIComponent(book.book_id)}`;
  $("to-book").hidden = false;
  showAttached();
  threads.load(book.book_id);
  if (thread) await openThread(thread);
  else startThread();
  if (state.entered) ask($("question").value);
}

function renderBookPicker() {
  const picker = $("book");
  picker.hidden = state.books.length < 2;
  $("book-title").classList.toggle("unseen", !picker.hidden);
  picker.replaceChildren(...state.books.map((one) => make("option", { value: one.book_id, selected: one === state.book }, one.title)));
}

function note(thread) {
  state.session = thread;
  const address = new URLSearchParams({ ...(state.books.length > 1 && { book: state.book.book_id }), ...(thread && { thread }) });
  history.replaceState(null, "", address.size ? `/?${address}` : "/");
  threads.mark(thread);
}

function startThread(notice = null) {
  state.asking?.abort();
  note(null);
  state.messages = 0;
  panel.close();
  const lessons = allLessons().length;
  $("thread").replaceChildren(
    make(
      "section",
      { class: "welcome" },
      notice && make("p", { class: "notice", role: "status" }, notice),
      make("h2", {}, "What would you like to know?"),
      make("p", {}, `Ask “${state.book.title}”: ${lessons} ${lessons === 1 ? "lesson" : "lessons"}, and every answer shows where it stands.`),
      make("ul", { class: "suggestions", "aria-label": "Questions to begin with", hidden: true }),
      make("div", { class: "ingesting", hidden: true }),
    ),
  );
  drawSuggestions();
  followBook(LOOKS);
  $("question").focus();
}

function drawSuggestions() {
  const list = $("thread").querySelector(".suggestions");
  list.hidden = !state.contents.suggestions.length;
  list.replaceChildren(...state.contents.suggestions.slice(0, SUGGESTED).map((text) => make("li", {}, make("button", { type: "button", onclick: () => ask(text) }, text))));
}

/** While a job is at work on the book the page says so; then it shows the book as it is, with questions that it answers. */
function followBook(looks) {
  const welcome = $("thread").querySelector(".welcome");
  const job = state.ingesting.find((one) => one.book_id === state.book.book_id);
  const box = welcome.querySelector(".ingesting");
  box.hidden = !job;
  if (job) renderProgress(box, job, "New pages of this book are being read in. You can ask meanwhile.");
  if (!job && (state.contents.suggestions.length || looks <= 0)) return;
  setTimeout(async () => {
    if (!welcome.isConnected) return;
    const info = await api("/info").catch(() => ({ ingesting: [] }));
    const isOver = !info.ingesting.some((one) => one.book_id === state.book.book_id);
    const contents = isOver ? await api(`/contents?book_id=${encodeURIComponent(state.book.book_id)}`).catch(() => state.contents) : state.contents;
    if (!welcome.isConnected) return;
    Object.assign(state, { ingesting: info.ingesting, contents });
    drawSuggestions();
    followBook(job ? LOOKS : looks - 1);
  }, LOOK_MS);
}

function renderProgress(box, job, words) {
  const share = Math.round(100 * job.progress);
  const bar = box.querySelector("progress") || make("progress", { max: "100", "aria-label": "Read in" });
  bar.value = share;
  const files = job.files_total ? `${job.files_processed} of ${job.files_total} files · ` : "";
  box.replaceChildren(make("p", {}, words), bar, make("p", { class: "share" }, `${files}${share} %`));
}

// --- an earlier conversation -----------------------------------------------------------------------

async function openThread(id) {
  state.asking?.abort();
  panel.close();
  let thread;
  try {
    thread = await api(`/session/${encodeURIComponent(id)}/history`);
  } catch (problem) {
    return [400, 404].includes(problem.status) ? startThread("That conversation is not here: it was deleted, or its address is wrong.") : showTrouble(problem, () => openThread(id));
  }
  const other = state.books.find((one) => one.book_id === thread.book_id);
  if (other && other !== state.book) return openBook(other, id);
  $("thread").replaceChildren();
  state.messages = 0;
  for (const message of [...thread.earlier_messages, ...thread.messages]) {
    state.messages += 1;
    if (message.role === "user") addQuestion(message.content);
    else finish(addAnswer(), toReply(message), id);
  }
  note(id);
  scrollDown();
  $("question").focus();
}

/** A kept message as the stream would have given it. */
function toReply(message) {
  const sources = message.cited.map((one) => ({ ...one, title: nameOf(one), chunk_text: one.text }));
  if (message.refusal) return { response: message.content, refusal: { reason: message.refusal, advice: "", nearest: sources }, sources: [], notices: [] };
  return { response: message.content, sources, notices: [], refusal: null, confidence: message.confidence, confidence_level: levelOf(message.confidence) };
}

/** As the stream names it: a kept source has the titles of its place in one line. */
function nameOf(cited) {
  const address = cited.url?.split("#")[0];
  const lesson = allLessons().find((one) => one.url === address);
  const section = lesson?.sections.findLast((one) => cited.title.endsWith(one.title));
  return lesson ? [lesson.title, section?.title].filter(Boolean).join(" › ") : cited.title;
}

function allLessons() {
  return state.contents.modules.flatMap((module) => module.chapters.flatMap((chapter) => chapter.lessons));
}

function levelOf(confidence) {
  const limits = [[0.85, "high"], [0.75, "medium"], [0, "low"]];
  return confidence === null ? null : limits.find(([limit]) => confidence >= limit)[1];
}

// --- asking ----------------------------------------------------------------------------------------

async function ask(text) {
  const question = text.trim();
  // Entered before the page has its book: the field keeps it, and `openBook` asks it.
  state.entered = question !== "" && !state.contents;
  if (!question || state.asking || state.entered) return;
  const attached = state.attached;
  $("thread").querySelector(".welcome")?.remove();
  addQuestion(question, attached);
  const turn = addAnswer();
  const signal = begin();
  const body = { message: question, book_id: state.book.book_id, ...state.filters };
  if (state.session) body.session_id = state.session;
  if (attached) body.selected_text = attached.text;
  detach();
  let written = "";
  let drawn = 0;
  const draw = () => {
    drawn = 0;
    if (!turn.classList.contains("done")) turn.querySelector(".body").replaceChildren(renderAnswer(written, null));
    if (!state.scrolled) scrollDown();
  };
  try {
    const reply = await askStream({
      headers: keyHeaders(),
      body,
      signal,
      on: {
        tool_call: () => say(turn, "Searching the book …"),
        retrieval: (found) => say(turn, `Reading ${found.chunks.length} passages …`),
        content: ({ delta }) => {
          written += delta;
          drawn ||= requestAnimationFrame(draw);
        },
      },
    });
    state.messages += 2;
    finish(turn, reply, reply.session_id);
    speak(turn.querySelector(".answer").innerText);
    note(reply.session_id);
    threads.load(state.book.book_id, reply.session_id);
  } catch (problem) {
    cancelAnimationFrame(drawn);
    const again = () => retry(turn, question, attached);
    if (signal.aborted) stopAt(turn, written, again);
    else fail(turn, problem, again);
  } finally {
    if (state.asking?.signal === signal) end();
    if (!state.scrolled) scrollDown();
  }
}

function begin() {
  state.asking = new AbortController();
  state.scrolled = false;
  showAsking($("send"), true);
  empty($("question"));
  return state.asking.signal;
}

function end() {
  state.asking = null;
  showAsking($("send"), false);
}

function addQuestion(text, attached = null) {
  const about = attached && make("blockquote", {}, attached.text.length > 240 ? `${attached.text.slice(0, 240)} …` : attached.text);
  $("thread").append(make("article", { class: "asked", "aria-label": "You asked" }, about, make("p", {}, text)));
}

function addAnswer() {
  const turn = make(
    "article",
    { class: "answered", "aria-label": "Answer" },
    make("p", { class: "doing" }, make("span", { class: "pulse", "aria-hidden": "true" }), make("span", {}, "Searching the book …")),
    make("div", { class: "body" }),
  );
  $("thread").append(turn);
  scrollDown();
  return turn;
}

function say(turn, words) {
  turn.querySelector(".doing span:last-child").textContent = words;
  speak(words);
}

function speak(words) {
  $("spoken").textContent = words;
}

function finish(turn, reply, session) {
  turn.classList.add("done");
  turn.querySelector(".doing").remove();
  const whole = renderReply(reply, { onSource: (source, number, chip) => panel.open(source, number, chip), linkTo: readUrl, mayLink });
  turn.querySelector(".body").replaceChildren(whole, renderActions(reply, session, state.messages - 1));
}

/** Links of an answer lead into the book or stay here. */
function mayLink(address) {
  const { origin } = new URL(address);
  return origin === location.origin || allLessons().some((one) => one.url?.startsWith(`${origin}/`));
}

function stopAt(turn, written, again) {
  turn.querySelector(".doing").remove();
  if (written) turn.querySelector(".body").replaceChildren(renderAnswer(written, null));
  const button = make("button", { type: "button", class: "link", onclick: again }, "Ask again");
  turn.append(make("p", { class: "stopped" }, "Stopped. Nothing of this answer is kept. ", button));
  speak("Stopped");
}

function fail(turn, problem, again) {
  turn.replaceChildren(renderTrouble(problem, again));
  if (!(problem instanceof Problem)) throw problem;
}

function retry(turn, question, attached) {
  turn.previousElementSibling.remove();
  turn.remove();
  state.attached = attached;
  ask(question);
}

// --- below an answer -------------------------------------------------------------------------------

function renderActions(reply, session, position) {
  const bar = make("div", { class: "actions" }, copyButton("Copy with citations", () => toPlainText(reply, readUrl)));
  const send = (helpful, comment) => api("/feedback", { method: "POST", body: { session_id: session, helpful, position, comment } });
  return renderThumbs(bar, send, (helpful) => {
    bar.querySelector("form, .thanks")?.remove();
    bar.append(renderComment((comment) => attempt(bar, () => send(helpful, comment)), helpful));
  });
}

function renderComment(send, helpful) {
  const input = make("input", { "aria-label": "A comment", maxlength: "1000", placeholder: helpful ? "What helped? (optional)" : "What was missing? (optional)" });
  const form = make("form", {}, input, make("button", { class: "button" }, "Send"));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (input.value.trim() && !(await send(input.value.trim()))) return;
    form.replaceWith(make("span", { class: "thanks", role: "status" }, "Thank you."));
  });
  return form;
}

// --- when something is wrong -----------------------------------------------------------------------

const NEXT = {
  rate_limited: (problem) => `Too many questions in a minute. Try again in ${problem.seconds || 60} seconds.`,
  offline: () => "Is the server running? Check your connection, then try again.",
  timeout: () => "It took too long. Try again, or ask something narrower.",
  service_unavailable: () => "A part of askbook is not available just now. Try again in a moment.",
};

function renderTrouble(problem, again) {
  if (problem.status === 401) return make("div", { class: "trouble calm" }, make("h2", {}, "This library needs a key"), make("p", {}, problem.detail || ""), renderKeyForm(again));
  const advice = NEXT[problem.error]?.(problem) || problem.detail || "Try again.";
  return make(
    "div",
    { class: "trouble", role: "alert" },
    make("h2", {}, capital(problem.message)),
    make("p", {}, advice),
    make("button", { type: "button", class: "button", onclick: again }, "Try again"),
  );
}

function showTrouble(problem, again) {
  if (!(problem instanceof Problem)) throw problem;
  $("thread").replaceChildren(renderTrouble(problem, again));
}

/** It becomes the book's page by itself. */
function showNoBook(job) {
  const about = job
    ? [make("h2", {}, "This book is being read in"), make("div", { class: "ingesting" })]
    : [make("h2", {}, "There is no book yet"), make("p", {}, "Make one from a folder of Markdown files:"), make("pre", {}, "askbook ingest FOLDER")];
  $("thread").replaceChildren(make("section", { class: "welcome" }, about));
  if (job) renderProgress($("thread").querySelector(".ingesting"), job, "You can ask as soon as its first pages are there. This page shows it by itself.");
}

// --- the text that a question is about -------------------------------------------------------------

function showAttached() {
  const box = $("attached");
  box.hidden = !state.attached;
  box.replaceChildren();
  if (!state.attached) return;
  state.attached.text = state.attached.text.slice(0, SELECTED_MAX);
  const remove = make("button", { type: "button", class: "quiet", "aria-label": "Remove the selected text", onclick: detach }, icon("close"));
  box.append(icon("quote"), make("p", {}, make("strong", {}, "About this text"), make("span", {}, state.attached.text)), remove);
}

function detach() {
  state.attached = null;
  showAttached();
  $("question").focus();
}

// --- the frame -------------------------------------------------------------------------------------

/** To the end, but never past the beginning of the last question: a long answer is read from its top. */
function scrollDown() {
  const main = $("main");
  const last = [...$("thread").querySelectorAll(".asked")].at(-1);
  main.scrollTop = Math.min(main.scrollHeight, last ? last.offsetTop - main.offsetTop - 16 : Infinity);
}

function toggleSide(open) {
  document.body.classList.toggle("side-open", open);
  $("side-open").setAttribute("aria-expanded", String(open));
  document.querySelector(".room").inert = open;
  if (open) $("side-close").focus();
}

function wire() {
  $("send").append(icon("send"));
  $("new").prepend(icon("plus"));
  $("theme").append(icon("sun"), "Theme");
  $("to-book").prepend(icon("book"));
  $("side-open").append(icon("menu"));
  $("side-close").append(icon("close"));
  $("theme").addEventListener("click", switchTheme);
  $("new").addEventListener("click", () => {
    toggleSide(false);
    if (state.contents) startThread();
  });
  $("side-open").addEventListener("click", () => toggleSide(true));
  $("side-close").addEventListener("click", () => {
    toggleSide(false);
    $("side-open").focus();
  });
  $("threads").addEventListener("click", (event) => event.target.closest(".open") && toggleSide(false));
  $("veil").addEventListener("click", () => {
    toggleSide(false);
    panel.close();
  });
  $("book").addEventListener("change", (event) => openBook(state.books.find((one) => one.book_id === event.target.value)));
  wireComposer($("composer"), $("question"), { asking: () => state.asking, ask });
  // Whoever scrolls while an answer comes is left where they are.
  for (const how of ["wheel", "touchmove"]) $("main").addEventListener(how, () => (state.scrolled = true), { passive: true });
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      if (document.body.classList.contains("side-open")) $("side-close").click();
      else panel.close();
    } else if (event.key === "/" && !event.target.closest("input, textarea, select")) {
      event.preventDefault();
      $("question").focus();
    }
  });
}

wire();
open();
