// An answer as readers see it: its text with chips for the marks, its sources, how sure it is, or a refusal that helps.
// The chat page and the widget both use it; nothing here looks at the page it is on.

import { make } from "./dom.js";
import { codeBlock, copyButton, renderMarkdown, safeAddress } from "./markdown.js";
import { showMath } from "./math.js";
import { picture, renderPictures } from "./pictures.js";

export { renderMarkdown, copyButton, codeBlock, picture, safeAddress, showMath };
export { askStream, call, Problem } from "./stream.js";
export { make, icon, renderWrong } from "./dom.js";

/**
 * `reply`: a ChatResponse. `onSource(source, number, chip)`: a chip was chosen; without it chips are links.
 * `linkTo(source)`: the address of a passage, for links; by default its own. `mayLink(url)`: which links of the text live.
 * `headers`: what a picture is asked for with, where that takes any.
 */
export function renderReply(reply, options = {}) {
  const settings = { linkTo: (source) => source.url, mayLink: isOwn, ...options };
  const whole = make("div", { class: "reply" });
  whole.append(reply.refusal ? renderRefusal(reply, settings) : renderAnswer(reply.response, reply.sources, settings));
  for (const notice of reply.notices || []) whole.append(make("p", { class: "notice", role: "note" }, notice));
  whole.append(...renderRemoved(reply.removed));
  if (!reply.refusal) whole.append(...renderPictures(reply.sources, settings.headers), ...renderSources(reply.sources, settings), renderConfidence(reply));
  return whole;
}

/** The text alone, as it streams in: a mark whose source is not known yet is a chip that does nothing. */
export function renderAnswer(text, sources, options = {}) {
  const cite = (number) => (!sources ? make("span", { class: "chip" }, String(number)) : chip(sources[number - 1], number, options));
  return showMath(make("div", { class: "answer" }, renderMarkdown(text, { mayLink: isOwn, ...options, cite })));
}

/** What the model wrote and the book does not support, for those who ask. */
function renderRemoved(removed) {
  if (!removed || !removed.length) return [];
  const lines = removed.map((one) => make("li", {}, make("q", {}, one.text), ` ${one.why}`));
  return [make("details", { class: "removed" }, make("summary", {}, "What was left out"), make("ul", {}, lines))];
}

function isOwn(address) {
  return new URL(address).origin === location.origin;
}

/** All that its quotes stand in, each once; none where they were kept without. */
export function sectionsOf(source) {
  return [...new Set((source.places ?? []).map((one) => one.section))].filter(Boolean);
}

export function titleOf(source) {
  const sections = sectionsOf(source);
  if (sections.length > 1) return sections.join(" · ");
  return source.title || [source.chapter, source.section].filter((one, at, all) => one && one !== all[at - 1]).join(" › ");
}

function chip(source, number, options) {
  return source ? withTip(pointTo(source, number, options, "chip", "Source", String(number)), source) : null;
}

/** A button where the page shows sources itself, else a link. */
function pointTo(source, number, { onSource, linkTo }, kind, does, ...words) {
  const about = { class: kind, "aria-label": `${does} ${number}: ${titleOf(source)}` };
  if (!onSource) return make("a", { ...about, href: safeAddress(linkTo(source)) }, ...words);
  return make("button", { ...about, type: "button", onclick: ({ currentTarget }) => onSource(source, number, currentTarget) }, ...words);
}

/** All that the answer leans on, one below the other; of a source that was kept without it, the passage. */
export function wordsOf(source) {
  return source.places.map((one) => one.quote).join("\n\n") || source.chunk_text;
}

const LEAVING_MS = 150;
let tips = 0;

/** What the source says, while one points at its mark, holds it or comes to it by the keyboard; Escape takes it away. */
function withTip(mark, source) {
  let tip = null;
  let leaving = 0;
  const hide = () => {
    tip?.remove();
    tip = null;
    mark.removeAttribute("aria-describedby");
  };
  const leave = () => (leaving = setTimeout(hide, LEAVING_MS));
  const show = (event) => {
    clearTimeout(leaving);
    const byHand = event.type === "focus" && !mark.matches(":focus-visible");
    if (tip || byHand || mark.getAttribute("aria-expanded") === "true") return;
    const says = showMath(renderMarkdown(wordsOf(source)));
    tip = make("div", { class: "tip", role: "tooltip", id: `tip-${(tips += 1)}`, onpointerenter: () => clearTimeout(leaving), onpointerleave: leave }, make("strong", {}, titleOf(source)), says);
    mark.after(tip);
    keepInView(tip, mark);
    mark.setAttribute("aria-describedby", tip.id);
  };
  for (const [event, what] of Object.entries({ pointerenter: show, focus: show, pointerleave: leave, blur: hide, click: hide })) mark.addEventListener(event, what);
  mark.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !tip) return;
    event.stopPropagation();
    hide();
  });
  return mark;
}

/** Above its mark, where the end of the page or the field for questions would hide it. */
function keepInView(tip, mark) {
  const { left, bottom, height } = tip.getBoundingClientRect();
  const isSeen = tip.contains(tip.getRootNode().elementFromPoint(left + 9, bottom - 9));
  if (!isSeen && mark.getBoundingClientRect().top > height) tip.style.top = `${mark.offsetTop - tip.offsetHeight - 8}px`;
}

function renderSources(sources, options) {
  if (!sources || !sources.length) return [];
  const lines = sources.map((source, at) => {
    const words = [make("span", { class: "number", "aria-hidden": "true" }, String(at + 1)), make("span", {}, titleOf(source))];
    return make("li", {}, pointTo(source, at + 1, options, null, "Show source", ...words));
  });
  return [make("ol", { class: "sources", "aria-label": "Sources" }, lines)];
}

// --- how sure --------------------------------------------------------------------------------------

const LEVELS = {
  high: "Well supported",
  medium: "Supported",
  low: "Weakly supported",
  insufficient: "Not supported",
};
const MEANINGS = {
  high: "What was found fits your question closely.",
  medium: "What was found fits your question; details may stand elsewhere in the book.",
  low: "What was found touches your question only in part. Read the sources before you rely on it.",
  insufficient: "Nothing that was found fits your question.",
};

function renderConfidence(reply) {
  if (!LEVELS[reply.confidence_level]) return "";
  return make(
    "details",
    { class: "confidence", "data-level": reply.confidence_level },
    make("summary", {}, make("span", { class: "gauge", "aria-hidden": "true" }), LEVELS[reply.confidence_level]),
    make("p", {}, [MEANINGS[reply.confidence_level], ...explain(reply)].join(" ")),
  );
}

function explain(reply) {
  const about = reply.metadata || {};
  const share = Math.round(reply.confidence * 100);
  return [
    about.chunk_count && `${about.chunk_count} ${about.chunk_count === 1 ? "passage was" : "passages were"} read; their mean relevance is ${share} %.`,
    about.answered_by === "extractive" && "The sentences are the book’s own.",
    about.answered_by === "model" && `Written by ${about.model || "a model"}; every sentence was checked against its source.`,
  ].filter(Boolean);
}

// --- the book does not say -------------------------------------------------------------------------

function renderRefusal(reply, options) {
  const nearest = reply.refusal.nearest || [];
  const links = nearest.map((source) => {
    const steps = titleOf(source).split(" › ");
    const words = [make("span", { class: "where" }, steps.slice(1, -1).join(" › ")), make("span", {}, steps.at(-1))];
    const href = safeAddress(options.linkTo(source));
    return make("li", {}, make(href ? "a" : "p", { href }, words));
  });
  return make(
    "div",
    { class: "refusal" },
    make("div", { class: "answer" }, renderMarkdown(reply.response)),
    reply.refusal.advice && make("p", { class: "advice" }, reply.refusal.advice),
    links.length > 0 && make("p", { class: "closest" }, "The closest the book has:"),
    links.length > 0 && make("ul", { class: "nearest" }, links),
  );
}

// --- to take along ---------------------------------------------------------------------------------

/** The answer as text, its sources below with their addresses. */
export function toPlainText(reply, linkTo = (source) => source.url) {
  const lines = (reply.sources || []).map((source, at) => `[${at + 1}] ${titleOf(source)}: ${safeAddress(linkTo(source))}`);
  return [reply.response, lines.length ? `Sources:\n${lines.join("\n")}` : ""].filter(Boolean).join("\n\n");
}
