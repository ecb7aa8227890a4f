// The source beside the answer: its passage with the cited words marked, and the way to it in the book.

import { icon, make, picture, renderMarkdown, safeAddress, sectionsOf, showMath, titleOf } from "./answer.js";

// Stand in the text where the quote begins and ends until it is drawn.
const BEGIN = "\ue000";
const END = "\ue001";

export class Panel {
  constructor(element, veil, { api, readUrl }) {
    Object.assign(this, { element, veil, api, readUrl, chip: null });
  }

  async open(source, number, chip) {
    this.chip?.setAttribute("aria-expanded", "false");
    this.chip = chip;
    chip.setAttribute("aria-expanded", "true");
    this.frame(source, number);
    this.draw(source, source.chunk_text);
    this.element.hidden = this.veil.hidden = false;
    document.body.classList.add("panel-open");
    // On a phone it lies over the page.
    document.querySelector(".room").inert = matchMedia("(max-width: 50rem)").matches;
    this.element.focus();
    const whole = await this.load(source);
    if (whole && this.chip === chip) this.draw(source, whole.text, whole.path);
  }

  close() {
    if (this.element.hidden) return;
    this.element.hidden = this.veil.hidden = true;
    document.body.classList.remove("panel-open");
    document.querySelector(".room").inert = false;
    this.chip.setAttribute("aria-expanded", "false");
    this.chip.focus();
    this.chip = null;
  }

  /** The passage in full. Without it what the answer carried is shown. */
  async load(source) {
    if (!source.chunk_id) return null;
    try {
      const { chunks } = await this.api(`/context/${source.chunk_id}?reach=0&book_id=${this.bookOf(source)}`);
      const { text, metadata } = chunks[0];
      return { text, path: metadata.heading_path };
    } catch {
      return null;
    }
  }

  bookOf(source) {
    return new URL(this.readUrl(source), location.origin).pathname.split("/")[2];
  }

  picture(source, src, alt) {
    const named = encodeURIComponent(src.replace(/[\ue000\ue001]/g, ""));
    return source.chunk_id && picture(`/picture/${this.bookOf(source)}/${source.chunk_id}?src=${named}`, alt.replace(/[\ue000\ue001]/g, ""));
  }

  frame(source, number) {
    const close = make("button", { type: "button", class: "quiet", "aria-label": "Close the source", onclick: () => this.close() }, icon("close"));
    const published = safeAddress(source.url);
    const elsewhere = published && new URL(published).origin !== location.origin;
    this.body = make("div", { class: "source" });
    this.link = make("a", { class: "button primary", href: this.readUrl(source), hidden: !source.chunk_id }, icon("book"), "Read in the book");
    this.element.replaceChildren(
      make("header", {}, make("h2", {}, make("span", { class: "chip" }, String(number)), "Source"), close),
      this.body,
      make("footer", {}, this.link, elsewhere && make("a", { class: "button", href: published, rel: "noopener noreferrer", target: "_blank" }, "Published page")),
    );
  }

  /** Twice: with what the answer carried, and when the whole passage is there. Whatever has the focus keeps it. */
  draw(source, text, wayThere = []) {
    const sections = sectionsOf(source);
    const steps = sections.length === 1 ? sections[0].split(" › ") : [titleOf(source)];
    // The way to the passage leads to its first section, and the quote may stand in another.
    const path = [...wayThere.slice(0, Math.max(wayThere.lastIndexOf(steps[0]), 0)), ...steps];
    this.body.replaceChildren(
      make("p", { class: "path" }, path.slice(0, -1).join(" › ")),
      make("h3", {}, path.at(-1)),
      make("div", { class: "answer passage", tabindex: "0", role: "region", "aria-label": "The passage" }, renderPassage(text, source.places.map((one) => one.quote), path.at(-1), (src, alt) => this.picture(source, src, alt))),
    );
    this.body.querySelector("mark")?.scrollIntoView({ block: "nearest" });
  }
}

function renderPassage(text, quotes, title, picture) {
  const passage = renderMarkdown(quotes.reduce(markQuote, text), { picture });
  markBetween(passage);
  // Its own heading stands above it already.
  const first = passage.firstElementChild;
  if (/^H\d$/.test(first?.tagName) && first.textContent === title) first.remove();
  return showMath(passage);
}

function markQuote(text, quote) {
  const at = text.indexOf(quote);
  const [start, end] = at < 0 ? [0, 0] : tighten(text, at, at + quote.length);
  return end > start ? `${text.slice(0, start)}${BEGIN}${text.slice(start, end)}${END}${text.slice(end)}` : text;
}

/** Without the markup around the words: a mark before `- ` would be no list. */
function tighten(text, start, end) {
  const words = text.slice(start, end);
  const fence = words.match(/^[ \t>]*(?:`{3,}|~{3,})[^\n]*\n/)?.[0].length || 0;
  const lead = words.slice(fence).match(/^(?:[ \t>|]|(?:[-*+]|\d{1,9}[.)])[ \t]+|#{1,6}[ \t]+)*[*_~`]*/)[0].length;
  return [start + fence + lead, start + words.replace(/[\s*_~`|>]+$/, "").length];
}

function markBetween(root) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) texts.push(walker.currentNode);
  let marking = false;
  for (const node of texts) {
    if ((!marking && !node.data.includes(BEGIN)) || node.parentElement.closest(".code-head")) continue;
    const parts = node.data.split(/([\ue000\ue001])/).flatMap((part) => {
      if (part === BEGIN || part === END) {
        marking = part === BEGIN;
        return [];
      }
      return marking && part.trim() ? [make("mark", {}, part)] : [part];
    });
    node.replaceWith(...parts);
  }
}
