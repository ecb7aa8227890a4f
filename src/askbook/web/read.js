// The reader: the lesson is there already; this adds the search, the colours of code, and asking about what was selected.

import { copyButton } from "./markdown.js";
import { highlight } from "./highlight.js";
import { showMath } from "./math.js";
import { settle } from "./pictures.js";
import { wireSearch } from "./search.js";
import { icon } from "./dom.js";
import { renderKeyForm } from "./keyform.js";
import { SELECTED_MAX, keepSelection, switchTheme } from "./state.js";

const book = document.body.dataset.book;
const find = (selector) => document.querySelector(selector);

if (find('[data-state="locked"]'))
  find("main > p").after(renderKeyForm(() => location.reload()));
if (book) {
  dressListings();
  showMath(find(".lesson"));
  document.querySelectorAll(".lesson img").forEach(settle);
  wireTop();
  const search = find(".find input");
  wireSearch(book, search, find(".found"), (words) => (find("[data-spoken]").textContent = words));
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || isTyping(event)) return;
    event.preventDefault();
    search.focus();
  });
  wireSelection();
  // By hand: scrollIntoView would make the next Tab begin there.
  const contents = find(".contents");
  contents.scrollTop = contents.querySelector("[aria-current]").offsetTop - contents.clientHeight / 3;
  // After the browser has gone to the address's own anchor.
  addEventListener("load", () => requestAnimationFrame(() => find(".lesson mark")?.scrollIntoView({ block: "center" })));
}

function dressListings() {
  for (const listing of document.querySelectorAll(".lesson .code")) {
    const code = listing.querySelector("code");
    listing.querySelector(".code-head").append(copyButton("Copy this code", () => code.textContent));
    // Marked words stay marked rather than coloured.
    if (!code.querySelector("mark")) code.replaceChildren(highlight(code.textContent, code.dataset.language));
  }
}

function wireTop() {
  const theme = find('[data-do="theme"]');
  theme.append(icon("sun"));
  theme.addEventListener("click", switchTheme);
  const opener = find('[data-do="contents"]');
  opener.append(icon("menu"));
  opener.addEventListener("click", () => {
    const open = find(".contents").classList.toggle("open");
    opener.setAttribute("aria-expanded", String(open));
  });
  find(".contents").addEventListener("click", (event) => {
    if (event.target.closest("a")) find(".contents").classList.remove("open");
  });
}

// --- ask about what is selected --------------------------------------------------------------------

function wireSelection() {
  const button = find(".ask-about");
  const lesson = find(".lesson");
  const selected = () => {
    const selection = getSelection();
    const inside = selection.rangeCount && lesson.contains(selection.getRangeAt(0).commonAncestorContainer);
    return inside ? selection.toString().trim() : "";
  };
  const ask = () => {
    keepSelection({ text: selected().slice(0, SELECTED_MAX), title: document.title, url: location.href });
    location.assign(`/?book=${encodeURIComponent(book)}`);
  };
  const place = () => {
    button.hidden = selected().length < 3;
    if (button.hidden) return;
    const around = getSelection().getRangeAt(0).getBoundingClientRect();
    const top = around.top > 110 ? around.top - button.offsetHeight - 8 : Math.min(around.bottom + 8, innerHeight - 60);
    button.style.top = `${Math.max(70, top)}px`;
    button.style.left = `${Math.max(8, Math.min(around.left + around.width / 2 - button.offsetWidth / 2, innerWidth - button.offsetWidth - 8))}px`;
  };
  document.addEventListener("selectionchange", place);
  addEventListener("scroll", place, { passive: true });
  // Pressing a button must not take the selection away.
  button.addEventListener("pointerdown", (event) => event.preventDefault());
  button.addEventListener("click", ask);
  addEventListener("keydown", (event) => {
    const plain = !event.ctrlKey && !event.metaKey && !event.altKey;
    if (event.key.toLowerCase() === "a" && plain && !isTyping(event) && selected().length >= 3) ask();
  });
}

function isTyping(event) {
  return event.target.closest?.("input, textarea, select");
}
