// The author's page: how the book is read, its jobs, what it could not answer, and the keys.

import { capital, icon, make, table } from "./dom.js";
import { copyButton, safeAddress } from "./markdown.js";
import { call } from "./stream.js";
import { barChart, shareChart } from "./charts.js";

const BUSY_MS = 3000;
const IDLE_MS = 15000;
const GAPS = 8;
const KEPT = "askbook-key";

const at = (id) => document.getElementById(id);
const count = (number, one, many = `${one}s`) => `${number.toLocaleString()} ${number === 1 ? one : many}`;
const share = (part, whole) => (whole ? `${Math.round((100 * part) / whole)} %` : "–");
const sum = (numbers) => numbers.reduce((total, one) => total + one, 0);

let key = sessionStorage.getItem(KEPT) || "";
let books = [];
let timer = 0;
let known = null;
let drawn = "";

const api = (path, options = {}) => call(path, { ...options, headers: key ? { "X-API-Key": key } : {} });

// --- coming in -------------------------------------------------------------------------------------

async function start(before = null) {
  try {
    await loadJobs();
  } catch (problem) {
    if (problem.status !== 401) return show(problem);
    if (!key) return askForKey(before);
    // Whoever sits at the machine needs none.
    forget();
    return start(problem);
  }
  at("alert").hidden = true;
  at("main").hidden = false;
  at("leave").hidden = !key;
  await Promise.all([poll(), loadReading(), loadKeys()]);
  if (location.hash) document.querySelector(`[id="${CSS.escape(location.hash.slice(1))}"]`)?.scrollIntoView();
}

function askForKey(problem) {
  forget();
  at("door-problem").hidden = !problem;
  at("door-problem").textContent = problem ? `${capital(problem.message)}.` : "";
  if (!at("door").open) at("door").showModal();
}

function forget() {
  clearTimeout(timer);
  sessionStorage.removeItem(KEPT);
  key = "";
  known = null;
  at("main").hidden = at("leave").hidden = true;
}

at("door").addEventListener("cancel", (event) => event.preventDefault());
at("leave").addEventListener("click", () => {
  forget();
  start();
});
at("enter").addEventListener("submit", (event) => {
  event.preventDefault();
  key = new FormData(event.target).get("key").trim();
  sessionStorage.setItem(KEPT, key);
  event.target.reset();
  at("door").close();
  start();
});

function show(problem) {
  if (problem.status === 401) return askForKey(problem);
  at("alert").textContent = [capital(problem.message), problem.detail].filter(Boolean).join(". ");
  at("alert").hidden = false;
}

/** What fails is told, and the rest of the page goes on. */
async function attempt(work) {
  try {
    const done = await work();
    at("alert").hidden = true;
    return done;
  } catch (problem) {
    show(problem);
  }
}

// --- books and jobs --------------------------------------------------------------------------------

/** While a job runs this is one request: the books are asked for again when one has begun or ended. */
async function loadJobs() {
  // Asked first: whoever may not see the jobs may see nothing here.
  const { jobs } = await api("/ingestion/status?limit=10");
  const stages = jobs.map((job) => `${job.job_id} ${job.status}`).join();
  const changed = stages !== known;
  if (changed) await loadBooks();
  known = stages;
  // Drawn anew only where something changed: what somebody has opened stays open.
  const told = JSON.stringify([books, jobs]);
  if (told !== drawn) {
    drawn = told;
    showShelf(jobs);
    showJobs(jobs);
  }
  return { changed, busy: jobs.some(isOpen) };
}

async function loadBooks() {
  books = (await api("/info")).books;
  for (const choice of document.querySelectorAll("select[name=book_id]")) {
    const chosen = choice.value;
    choice.replaceChildren(choice.options[0], ...books.map((book) => make("option", { value: book.book_id }, book.title)));
    choice.value = chosen;
  }
}

async function poll() {
  clearTimeout(timer);
  const { changed, busy } = (await attempt(loadJobs)) || {};
  if (changed) loadReading();
  if (!at("main").hidden) timer = setTimeout(poll, busy ? BUSY_MS : IDLE_MS);
}

const isOpen = (job) => job.status === "queued" || job.status === "running";

function showShelf(jobs) {
  const cards = books.map((book) => bookCard(book, jobs.find((job) => job.book_id === book.book_id)));
  const arriving = jobs.filter((job) => isOpen(job) && !books.some((book) => book.book_id === job.book_id));
  cards.push(...arriving.map((job) => make("article", { class: "card book", "data-book": job.book_id }, make("h2", {}, job.book_id), progress(job))));
  const none = make("p", { class: "empty" }, "No book yet: ", make("code", {}, "askbook ingest FOLDER"), " makes one.");
  keepFocus(at("shelf"), () => at("shelf").replaceChildren(...(cards.length ? cards : [none])));
}

function bookCard(book, job) {
  const latest = [book.last_incremental_update, book.last_full_ingest].filter(Boolean).sort().at(-1);
  const facts = [count(book.total_files, "lesson"), count(book.total_chunks, "chunk"), book.modules.length > 1 && count(book.modules.length, "module")];
  const again = make("button", { type: "button", class: "button", id: `again-${book.book_id}`, "aria-disabled": Boolean(job && isOpen(job)) && "true", onclick: () => ingest(book, job) }, "Re-ingest");
  return make(
    "article",
    { class: "card book", "data-book": book.book_id, "aria-label": book.title },
    make("div", { class: "head" }, make("div", {}, make("h2", {}, book.title), make("p", { class: "note" }, book.book_id)), again),
    make("p", { class: "facts" }, facts.filter(Boolean).join(" · ")),
    job && isOpen(job) ? progress(job) : make("p", { class: "note" }, [latest ? `Updated ${ago(latest)}` : "Not ingested yet", book.unembedded_chunks > 0 && `${count(book.unembedded_chunks, "chunk")} without vectors`].filter(Boolean).join(" · ")),
    job && job.error_message && make("p", { class: "problem" }, job.error_message),
    job && job.problems.length > 0 && warnings(job.problems),
  );
}

function progress(job) {
  const far = Math.round(100 * job.progress);
  const words = job.status === "queued" ? "Waiting for its turn" : `${capital(job.phase || "starting")} · ${far} %`;
  return make("div", { class: "progress" }, make("progress", { max: "100", value: String(far), "aria-label": "How far the ingestion is" }), make("p", { class: "note" }, words));
}

function warnings(problems) {
  const files = groupByFile(problems);
  const items = [...files].map(([file, found]) =>
    make("li", {}, make("code", {}, file), make("ul", {}, found.map((one) => make("li", {}, one.skipped && make("b", {}, "Left out: "), one.message)))));
  return make("details", { class: "warnings", open: problems.some((one) => one.skipped) }, make("summary", {}, `${count(problems.length, "warning")} in ${count(files.size, "file")}`), make("ul", {}, items));
}

function groupByFile(problems) {
  const files = new Map();
  for (const one of problems) files.set(one.source_file, [...(files.get(one.source_file) || []), one]);
  return files;
}

async function ingest(book, latest) {
  if (latest && isOpen(latest)) return;
  await attempt(() => api("/ingestion/trigger", { method: "POST", body: { book_id: book.book_id } }));
  await poll();
}

const STATES = { queued: "Waiting", running: "Running", completed: "Done", failed: "Failed" };

function showJobs(jobs) {
  const rows = jobs.map((job) => [
    make("span", { class: `state ${job.status}` }, STATES[job.status]),
    [`${job.book_id} · ${job.mode}`, job.error_message && make("p", { class: "problem" }, job.error_message)],
    isOpen(job) ? `${Math.round(100 * job.progress)} %` : `${job.files_processed} of ${job.files_total} files`,
    `+${job.chunks_created} −${job.chunks_deleted}`,
    job.problems.length ? count(job.problems.length, "warning") : "–",
    job.duration_seconds === null ? "–" : `${job.duration_seconds} s`,
    ago(job.created_at),
  ]);
  at("jobs").replaceChildren(grid(["State", "Job", "Files", "Chunks", "Warnings", "Took", "When"], rows, "No job yet."));
}

// --- how it is read --------------------------------------------------------------------------------

at("choice").addEventListener("change", () => loadReading());
at("choice").addEventListener("submit", (event) => event.preventDefault());

async function loadReading() {
  const asked = new URLSearchParams([...new FormData(at("choice"))].filter(([, value]) => value));
  const [usage, gaps] = (await attempt(() => Promise.all([api(`/usage?${asked}`), api(`/gaps?limit=${GAPS}&${asked}`)]))) || [];
  if (!usage) return;
  showUsage(usage);
  showOpinions(usage.opinions);
  showGaps(gaps);
}

const SERIES = { high: "Well supported", medium: "Supported", low: "Weakly supported", other: "Answered", refused: "Refused" };
const REASONS = { not_in_book: "Not in the book", below_threshold: "Below the threshold", ambiguous: "Ambiguous", unverified: "Could not be verified", index_empty: "Nothing ingested yet", provider_down: "A service was down" };

function showUsage({ days }) {
  const parts = days.map(toParts);
  const total = (name) => sum(parts.map((day) => day.parts[name] || 0));
  const asked = sum(days.map((day) => day.asked));
  const [up, down] = [sum(days.map((day) => day.helpful)), sum(days.map((day) => day.unhelpful))];
  at("tiles").replaceChildren(
    tile("Questions", asked.toLocaleString(), `${Number((asked / days.length).toFixed(asked < days.length * 10 ? 1 : 0))} a day`),
    tile("Answered", share(asked - total("refused"), asked), count(asked - total("refused"), "answer")),
    tile("Well supported", share(total("high"), asked - total("refused")), "of the answers"),
    tile("Thumbs up", share(up, up + down), up + down ? `${up} up, ${down} down` : "no thumbs yet"),
  );
  const used = Object.fromEntries(Object.entries(SERIES).filter(([name]) => name !== "other" || total("other")));
  at("asked").replaceChildren(asked ? barChart("Questions a day", parts, used) : empty("Nobody has asked yet."));
  at("quality").replaceChildren(...(asked ? outcomes(days, total) : [empty("Nothing to tell yet.")]));
}

function toParts({ day, asked, levels, refused }) {
  const gone = sum(Object.values(refused));
  return { day, parts: { ...levels, other: asked - gone - sum(Object.values(levels)), refused: gone } };
}

function outcomes(days, total) {
  const reasons = Object.entries(REASONS).map(([name, title]) => ({ name: "refused", title, count: sum(days.map((day) => day.refused[name] || 0)) }));
  const levels = Object.entries(SERIES).slice(0, 4).map(([name, title]) => ({ name, title, count: total(name) }));
  return [
    make("h3", {}, "Answers"),
    levels.some((one) => one.count) ? shareChart(levels) : empty("None."),
    make("h3", {}, "Refusals"),
    reasons.some((one) => one.count) ? shareChart(reasons) : empty("None: every question was answered."),
  ];
}

function tile(title, value, note) {
  return make("div", { class: "card" }, make("dt", {}, title), make("dd", { class: "value" }, value), make("dd", { class: "note" }, note));
}

function showOpinions(opinions) {
  const items = opinions.map((one) =>
    make("li", {}, icon(one.helpful ? "up" : "down"), make("div", {}, make("p", {}, make("span", { class: "unseen" }, one.helpful ? "Thumb up: " : "Thumb down: "), one.question), one.comment && make("blockquote", {}, one.comment), make("p", { class: "note" }, ago(one.given_at)))));
  items.forEach((item, number) => item.classList.add(opinions[number].helpful ? "good" : "bad"));
  at("opinions").replaceChildren(items.length ? make("ul", { class: "opinions" }, items) : empty("No thumbs yet."));
}

function showGaps({ gaps, total }) {
  const items = gaps.map((gap) => {
    const how = [count(gap.count, "time"), gap.unhelpful && count(gap.unhelpful, "thumb down", "thumbs down"), `last ${ago(gap.last_asked)}`];
    return make(
      "li",
      {},
      make("h2", {}, gap.question),
      make("p", { class: "note" }, `Asked ${how.filter(Boolean).join(" · ")}`),
      gap.own_words.length > 0 && make("p", { class: "note" }, `In a thread: ${gap.own_words.map((one) => `“${one}”`).join(", ")}`),
      gap.section && make("p", { class: "near" }, "Nearest: ", nearest(gap.section)),
      gap.comments.map((one) => make("blockquote", {}, one)),
      gap.variants.length > 0 && make("details", {}, make("summary", {}, count(gap.variants.length, "other wording")), make("ul", {}, gap.variants.map((one) => make("li", {}, one)))),
    );
  });
  const more = total > gaps.length && make("p", { class: "note" }, `${total - gaps.length} more: `, make("code", {}, "askbook gaps"));
  at("open").replaceChildren(...(items.length ? [make("ol", { class: "gaps" }, items), more].filter(Boolean) : [empty("No open question. Refused and thumbed-down questions are gathered here.")]));
}

function nearest(section) {
  const href = safeAddress(section.url);
  const title = section.title || section.source_file;
  return href ? make("a", { href, target: "_blank", rel: "noopener noreferrer", title: section.source_file }, title) : make("span", { title: section.source_file }, title);
}

// --- keys ------------------------------------------------------------------------------------------

async function loadKeys() {
  const found = await attempt(() => api("/keys"));
  if (!found) return;
  if (!key && found.keys.length === 0) {
    at("made").replaceChildren(make("p", { class: "notice" }, "There is no key yet. Whoever sits at this machine is the author, and stays so when there are keys: they are for everybody else."));
  }
  showSites();
  const rows = found.keys.map((one) => [
    make("span", {}, one.name, make("code", { class: "note" }, one.key_id)),
    one.origins.length ? "widget" : one.role,
    one.books ? one.books.join(", ") : "all",
    one.origins.length ? one.origins.join(", ") : "–",
    one.last_used_at ? ago(one.last_used_at) : "never",
    one.revoked_at ? make("span", { class: "state failed" }, "Revoked") : revoker(one),
  ]);
  at("key-list").replaceChildren(grid(["Name", "Role", "Books", "Sites", "Last used", ""], rows, "No key yet."));
}

function revoker(one) {
  const own = key.split("_")[1] === one.key_id;
  const button = make("button", { type: "button", class: "button small", "aria-label": `Revoke ${one.name}` }, "Revoke");
  button.addEventListener("click", async () => {
    if (!button.classList.contains("danger")) {
      button.classList.add("danger");
      button.textContent = own ? "Revoke your own key?" : "Really revoke?";
      button.setAttribute("aria-label", `Really revoke ${one.name}`);
      return setTimeout(() => button.isConnected && loadKeys(), 5000);
    }
    await attempt(() => api(`/keys/${one.key_id}`, { method: "DELETE" }));
    await loadKeys();
  });
  return button;
}

function showSites() {
  const forSite = at("new-key").elements.role.value === "site";
  at("sites").hidden = !forSite;
  at("new-key").elements.origins.required = forSite;
}

at("new-key").elements.role.addEventListener("change", showSites);
at("new-key").addEventListener("submit", async (event) => {
  event.preventDefault();
  const { name, role, origins, book_id } = Object.fromEntries(new FormData(event.target));
  const body = { name, role: role === "site" ? "reader" : role, books: book_id ? [book_id] : null, origins: role === "site" ? origins.split(/[\s,]+/).filter(Boolean) : [] };
  const made = await attempt(() => api("/keys", { method: "POST", body }));
  if (!made) return;
  await loadKeys();
  event.target.reset();
  showSites();
  showMade(made);
});

function showMade(made) {
  const line = `<script src="${location.origin}/widget.js" data-key="${made.key}" defer></` + "script>";
  at("made").replaceChildren(
    make("div", { class: "made" },
      make("p", {}, make("b", {}, `The key “${made.name}”. `), made.origins.length ? "Put this line into your site’s pages:" : "Keep it now: it is not shown again."),
      make("p", { class: "secret" }, make("code", {}, made.origins.length ? line : made.key), copyButton("Copy", () => (made.origins.length ? line : made.key))),
    ),
  );
}

// --- small things ----------------------------------------------------------------------------------

function grid(heads, rows, none) {
  return rows.length ? table(heads, rows) : empty(none);
}

function empty(words) {
  return make("p", { class: "empty" }, words);
}

function ago(moment) {
  const seconds = (Date.now() - new Date(moment)) / 1000;
  if (seconds < 45) return "just now";
  const [size, unit] = [[86400, "day"], [3600, "hour"], [60, "minute"]].find(([size]) => seconds >= size) || [60, "minute"];
  return new Intl.RelativeTimeFormat("en", { numeric: "auto" }).format(-Math.round(seconds / size), unit);
}

/** What is drawn anew while somebody is on it keeps them there. */
function keepFocus(element, draw) {
  const id = element.contains(document.activeElement) && document.activeElement.id;
  draw();
  if (id) at(id)?.focus();
}

start();
