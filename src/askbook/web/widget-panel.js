// The widget's panel: a conversation with one book, in a shadow root of its own, on a page that is somebody else's.

import { askStream, call, icon, make, renderAnswer, renderMarkdown, renderReply, safeAddress, showMath, titleOf, wordsOf } from "./answer.js";
import { capital } from "./dom.js";
import { empty, renderThumbs, showAsking, wireComposer } from "./asking.js";

const READER = "askbook-reader";
const SESSION = "askbook-session";

/** Builds it, closed. `root`: the shadow root it goes into; `onClose`: gives the focus back. */
export async function createPanel({ home, key, book, theme, title, accent, isBright, root: outer, onClose }) {
  const panel = make("div", { role: "dialog", "aria-modal": "true", "aria-label": title, hidden: true });
  const root = panel.attachShadow({ mode: "open" });
  root.adoptedStyleSheets = await Promise.all([`${home}/assets/base.css`, `${home}/assets/widget.css`].map(loadSheet));
  if (accent) root.adoptedStyleSheets.push(accentSheet(accent, isBright(accent)));
  outer.append(panel);

  const headers = { "X-Reader": readToken(), ...(key && { "X-API-Key": key }) };
  const named = book ? { book_id: book } : {};
  // A book without a base_url is read on askbook's own pages, which a site's visitors may not open.
  const linkTo = ({ url }) => (!url || new URL(url).href.startsWith(`${home}/read/`) ? null : url);
  let session = remember(sessionStorage, SESSION);
  let turns = 0;
  let selected = "";
  let asking = null;
  let begun = false;

  // --- what it is made of --------------------------------------------------------------------------

  const log = make("div", { class: "log", role: "log", "aria-label": "Conversation", tabindex: "0" });
  const input = make("textarea", { rows: "1", maxlength: "1000", "aria-label": "Your question", placeholder: "Ask a question…", enterkeyhint: "send" });
  const send = make("button", { class: "send", "aria-label": "Ask" }, icon("send"));
  const quote = make("div", { class: "selected", hidden: true });
  const form = make("form", {}, quote, make("div", { class: "box" }, input, send), make("p", { class: "foot" }, "Answers come from the book alone, with their sources."));
  const anew = make("button", { type: "button", class: "quiet", "aria-label": "New conversation", title: "New conversation", onclick: restart }, icon("plus"));
  const shut = make("button", { type: "button", class: "quiet", "aria-label": "Close", title: "Close", onclick: close }, icon("close"));
  root.append(make("header", {}, icon("book"), make("h2", {}, title), anew, shut), log, form);

  wireComposer(form, input, { asking: () => asking, ask: (text) => text.trim() && ask(text.trim()) });
  panel.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
    if (event.key === "Tab") keepInside(event);
  });
  // What is typed here is no shortcut of the page, which sees an element that is no field.
  for (const kind of ["keydown", "keyup", "keypress"]) panel.addEventListener(kind, (event) => event.stopPropagation());

  function keepInside(event) {
    const stops = [...root.querySelectorAll("a[href], button, textarea, summary, [tabindex='0']")].filter((one) => one.checkVisibility());
    const [first, last] = [stops[0], stops.at(-1)];
    if (root.activeElement !== (event.shiftKey ? first : last)) return;
    event.preventDefault();
    (event.shiftKey ? last : first).focus();
  }

  // --- open and closed -----------------------------------------------------------------------------

  function open(text) {
    const colours = theme === "auto" ? coloursOfPage() : theme;
    if (["light", "dark"].includes(colours)) panel.dataset.theme = colours;
    else delete panel.dataset.theme;
    panel.hidden = false;
    if (text) choose(text);
    input.focus();
    if (!begun) begin();
    begun = true;
  }

  function close() {
    panel.hidden = true;
    onClose();
  }

  function choose(text) {
    selected = text;
    quote.hidden = !text;
    const drop = make("button", { type: "button", class: "quiet", "aria-label": "Ask without the selected text", onclick: () => (choose(""), input.focus()) }, icon("close"));
    quote.replaceChildren(icon("quote"), make("p", {}, make("span", { class: "unseen" }, "About the selected text: "), text), drop);
    input.placeholder = text ? "What about it?" : "Ask a question…";
  }

  async function begin() {
    if (!session || !(await resume())) await greet();
  }

  async function greet() {
    const hello = make("div", { class: "hello" }, make("p", {}, "What would you like to know?"));
    log.replaceChildren(hello);
    const contents = await call(`${home}/contents?${new URLSearchParams(named)}`, { headers }).catch(() => null);
    if (!contents || !hello.isConnected) return;
    const questions = contents.suggestions.slice(0, 3).map((text) => make("li", {}, make("button", { type: "button", onclick: () => ask(text) }, text)));
    if (questions.length) hello.append(make("ul", { "aria-label": "Questions to begin with" }, questions));
  }

  /** The conversation of the page before; false where it is gone. */
  async function resume() {
    const thread = await call(`${home}/session/${session}/history`, { headers }).catch(() => null);
    if (!thread) return false;
    turns = thread.turn_count;
    for (const { role, content, cited, refusal } of thread.messages) {
      if (role === "user") addQuestion(content);
      else addReply({ response: content, sources: cited.map((one) => ({ ...one, quote: one.text })), refusal: refusal && {} });
    }
    return true;
  }

  function restart() {
    asking?.abort();
    session = remember(sessionStorage, SESSION, "");
    turns = 0;
    choose("");
    greet();
    input.focus();
  }

  // --- asking --------------------------------------------------------------------------------------

  async function ask(text) {
    root.querySelector(".hello")?.remove();
    const about = selected;
    addQuestion(text, about);
    empty(input);
    const answer = add(make("div", { class: "theirs" }, make("p", { class: "waiting" }, "Looking into the book…")));
    let written = "";
    switchTo(new AbortController());
    const mine = asking;
    try {
      const body = { message: text, ...named, ...(session && { session_id: session }), ...(about && { selected_text: about }) };
      const on = {
        tool_call: (event) => keepSession(event.session_id),
        content: ({ delta }) => {
          written += delta;
          answer.replaceChildren(renderAnswer(written, null));
          follow();
        },
      };
      const reply = await askStream({ endpoint: home, headers, body, signal: mine.signal, on });
      keepSession(reply.session_id);
      turns += 1;
      answer.remove();
      addReply(reply, turns);
    } catch (problem) {
      if (mine.signal.aborted) answer.replaceChildren(...(written ? [renderAnswer(written, null)] : []), make("p", { class: "waiting" }, "Stopped."));
      else answer.replaceChildren(renderProblem(problem, () => (answer.previousSibling?.remove(), answer.remove(), ask(text))));
      follow();
    }
    if (asking === mine) switchTo(null);
  }

  function keepSession(id) {
    session = remember(sessionStorage, SESSION, id);
  }

  function switchTo(controller) {
    asking = controller;
    showAsking(send, controller);
  }

  // --- the conversation ----------------------------------------------------------------------------

  function add(element) {
    log.append(element);
    follow();
    return element;
  }

  function follow() {
    log.scrollTop = log.scrollHeight;
  }

  function addQuestion(text, about) {
    add(make("div", { class: "mine" }, about && make("blockquote", {}, about), make("p", {}, make("span", { class: "unseen" }, "You: "), text)));
  }

  function addReply(reply, turn) {
    const own = new Set([location.origin, ...(reply.sources || []).map(linkTo).filter(Boolean).map((url) => new URL(url).origin)]);
    const shown = make("div", { class: "source", hidden: true });
    const onSource = (source, number, chip) => showSource(shown, source, number, chip);
    const whole = renderReply(reply, { onSource, linkTo, headers, mayLink: (address) => own.has(new URL(address).origin) });
    const message = make("div", { class: "theirs" }, whole, shown, turn && thumbs(turn));
    for (const link of message.querySelectorAll("a[href]")) Object.assign(link, { target: "_blank", rel: "noopener" });
    const question = log.lastElementChild;
    add(message);
    // A long answer is read from its question on.
    if (message.offsetHeight > log.clientHeight && question) log.scrollTop = question.offsetTop - 16;
  }

  function showSource(shown, source, number, chip) {
    const again = chip.getAttribute("aria-expanded") === "true";
    for (const one of root.querySelectorAll("[aria-expanded='true']")) one.setAttribute("aria-expanded", "false");
    for (const one of root.querySelectorAll(".source")) one.hidden = true;
    if (again) return;
    chip.setAttribute("aria-expanded", "true");
    const back = make("button", { type: "button", class: "quiet", "aria-label": "Close the source", onclick: () => (showSource(shown, source, number, chip), chip.focus()) }, icon("close"));
    const href = safeAddress(linkTo(source));
    const link = href && make("a", { class: "button", href, target: "_blank", rel: "noopener" }, "Read it in the book");
    shown.replaceChildren(make("div", { class: "head" }, make("b", {}, `${number}`), make("span", {}, titleOf(source)), back), make("div", { class: "answer", tabindex: "0", role: "region", "aria-label": "What it says" }, showMath(renderMarkdown(wordsOf(source)))), link || "");
    shown.hidden = false;
    shown.scrollIntoView({ block: "nearest" });
    (link || back).focus();
  }

  function thumbs(turn) {
    const send = (helpful) => call(`${home}/feedback`, { method: "POST", headers, body: { session_id: session, helpful, position: 2 * turn - 1 } });
    return renderThumbs(make("div", { class: "thumbs" }), send);
  }

  return { open };
}

function renderProblem(problem, again) {
  return make("div", { class: "problem", role: "alert" }, make("p", {}, `${capital(problem.message)}. ${problem.detail || ""}`), make("button", { type: "button", class: "button", onclick: again }, "Try again"));
}

// --- the page it is on -----------------------------------------------------------------------------

/** What Docusaurus and Material for MkDocs have chosen; elsewhere the system's. */
function coloursOfPage() {
  const material = document.body.dataset.mdColorScheme;
  return document.documentElement.dataset.theme || (material && (material === "slate" ? "dark" : "light"));
}

async function loadSheet(address) {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`${address} is not there`);
  return new CSSStyleSheet().replace(await response.text());
}

/** Readable on both grounds: darker on light, lighter on dark. */
function accentSheet(accent, bright) {
  const sheet = new CSSStyleSheet();
  const onLight = bright ? `color-mix(in oklab, ${accent} 55%, black)` : accent;
  sheet.replaceSync(`:host { --accent: light-dark(${onLight}, color-mix(in oklab, ${accent} 55%, white)); --on-accent: light-dark(#fff, #111); --tint: color-mix(in oklab, ${accent} 13%, var(--surface)); }`);
  return sheet;
}

/** What tells this reader's conversations from those of the site's others; nobody else knows it. */
function readToken() {
  const known = remember(localStorage, READER);
  if (known) return known;
  const made = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return remember(localStorage, READER, made);
}

/** Reads, or writes where there is something to write. A browser that keeps nothing has it for this page alone. */
function remember(storage, name, value) {
  try {
    if (value === undefined) return storage.getItem(name) || "";
    storage.setItem(name, value);
  } catch {
    return value || "";
  }
  return value;
}
