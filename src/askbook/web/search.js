// The reader's search: as one types, a line for each section, with the words around what was found.

import { make, renderWrong } from "./dom.js";
import { renderKeyForm } from "./keyform.js";
import { renderMarkdown } from "./markdown.js";
import { toPart } from "./spans.js";
import { keyHeaders } from "./state.js";
import { call } from "./stream.js";

const PAUSE_MS = 200;
const SNIPPET = 170;
const TIER_MAX = 4;

/** `input`: a combobox; `box`: where its list opens; `speak(words)`: for those who do not see it. */
export function wireSearch(book, input, box, speak) {
  let waiting = 0;
  let asked = null;
  let active = -1;
  const options = () => [...box.querySelectorAll("[role=option]")];

  const show = (content) => {
    active = -1;
    box.hidden = content === null;
    box.replaceChildren(...(content ? [content] : []));
    input.setAttribute("aria-expanded", String(options().length > 0));
    input.removeAttribute("aria-activedescendant");
  };

  const move = (to) => {
    const lines = options();
    if (!lines.length) return;
    active = (to + lines.length) % lines.length;
    lines.forEach((line, at) => line.setAttribute("aria-selected", String(at === active)));
    lines[active].scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", lines[active].id);
  };

  const search = async () => {
    clearTimeout(waiting);
    asked?.abort();
    const text = input.value.trim();
    if (text.length < 3) return show(null);
    const mine = (asked = new AbortController());
    try {
      const body = { text, book_id: book, limit: 20, hardware_tier_filter: TIER_MAX };
      const { results } = await call("/search", { method: "POST", body, headers: keyHeaders(), signal: mine.signal });
      const sections = bySection(results);
      speak(sections.length === 1 ? "1 section found" : `${sections.length} sections found`);
      show(renderFound(book, sections, text));
    } catch (problem) {
      if (mine.signal.aborted) return;
      show(problem.status === 401 ? renderKeyForm(search) : renderWrong(problem));
    }
  };

  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(search, PAUSE_MS);
  });
  input.form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (active >= 0) options()[active].click();
    else search();
  });
  input.addEventListener("keydown", (event) => {
    const steps = { ArrowDown: active + 1, ArrowUp: active < 0 ? -1 : active - 1 };
    if (!(event.key in steps) || box.hidden) return;
    event.preventDefault();
    move(steps[event.key]);
  });
  addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || box.hidden) return;
    event.preventDefault();
    asked?.abort();
    show(null);
    input.focus();
  });
  addEventListener("click", (event) => {
    if (!box.contains(event.target) && event.target !== input) show(null);
  });
}

const MOST = 8;

/** The best passage of each. */
function bySection(results) {
  const sections = new Map();
  for (const one of results) {
    const name = [one.source_file, ...one.heading_path].join("\n");
    if (!sections.has(name)) sections.set(name, one);
  }
  return [...sections.values()].slice(0, MOST);
}

function renderFound(book, sections, text) {
  if (!sections.length) return make("p", {}, "Nothing in this book fits. Try other words.");
  const wanted = toPattern(text);
  const lines = sections.map((one, at) => {
    const path = one.heading_path;
    const { part, words } = findPart(one.text, wanted);
    const title = headingAbove(one.text, part) || path.at(-1);
    const where = path.slice(1, one.section_title ? -1 : undefined).filter((step) => step !== title).slice(-2);
    const place = `/read/${encodeURIComponent(book)}?chunk=${one.chunk_id}${toPart(one.text, part)}`;
    return make(
      "a",
      { href: place, id: `found-${at}`, role: "option", tabindex: "-1", "aria-selected": "false" },
      make("strong", {}, title),
      make("span", { class: "where" }, where.join(" › ")),
      make("span", { class: "snippet" }, markWords(cutAround(words, wanted), wanted)),
    );
  });
  return make("div", { role: "listbox", id: "found-list", "aria-label": "Sections found" }, lines);
}

/** Words that begin as those that were typed do, but for their ending. */
function toPattern(text) {
  const words = [...new Set(text.toLowerCase().match(/[\p{L}\p{N}_]{2,}/gu) || [])];
  const stems = words.map((word) => (word.length > 5 ? word.slice(0, -2) : word));
  return stems.length ? new RegExp(`(?<![\\p{L}\\p{N}_])(${stems.sort((a, b) => b.length - a.length).join("|")})[\\p{L}\\p{N}_]*`, "giu") : /(?!)/g;
}

/** The paragraph that holds most of the words, as it stands in the file and as it reads. */
function findPart(text, wanted) {
  const parts = text.split(/\n{2,}/).filter((part) => part.trim() && !/^\s*(#{1,6}\s|!\[|\||`{3}|~{3})/.test(part));
  const rated = parts.map((part) => ({ part, count: new Set([...part.matchAll(wanted)].map((found) => found[1].toLowerCase())).size }));
  const best = rated.sort((a, b) => b.count - a.count)[0];
  const part = best?.part.trim() ?? null;
  const drawn = renderMarkdown(part ?? text);
  for (const block of drawn.querySelectorAll("p, li, td, th, pre, .math.display")) block.append(" ");
  return { part, words: drawn.textContent.replace(/\s+/g, " ").trim() };
}

/** A passage may hold several short sections. */
function headingAbove(text, part) {
  const above = part ? [...text.slice(0, text.indexOf(part)).matchAll(/^#{2,6}\s+(.+?)\s*#*$/gm)].at(-1) : null;
  return above && renderMarkdown(above[0]).textContent;
}

function cutAround(words, wanted) {
  if (words.length <= SNIPPET) return words;
  const first = Math.max(0, words.search(wanted));
  const begin = first < SNIPPET / 2 ? 0 : words.indexOf(" ", first - SNIPPET / 3) + 1;
  const end = words.lastIndexOf(" ", begin + SNIPPET);
  return `${begin ? "… " : ""}${words.slice(begin, end > begin ? end : begin + SNIPPET)}${end < words.length ? " …" : ""}`;
}

function markWords(words, wanted) {
  const nodes = [];
  let at = 0;
  for (const found of words.matchAll(wanted)) {
    nodes.push(words.slice(at, found.index), make("mark", {}, found[0]));
    at = found.index + found[0].length;
  }
  return [...nodes, words.slice(at)];
}
