// What the pages share around a question: the field that it is written in, the thumbs below its answer, what failed.

import { icon, make, renderWrong } from "./dom.js";

/** Enter and the form ask; while an answer comes, the form stops it. `asking()`: the answer's AbortController, or null. */
export function wireComposer(form, field, { asking, ask }) {
  field.addEventListener("input", () => grow(field));
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (!asking()) ask(field.value);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (asking()) asking().abort();
    else ask(field.value);
  });
}

/** To the height of its text; the style sheet says how high it may be. */
function grow(field) {
  field.style.setProperty("height", "auto");
  field.style.setProperty("height", `${field.scrollHeight}px`);
}

export function empty(field) {
  field.value = "";
  grow(field);
}

/** The button asks, or it stops the answer. */
export function showAsking(button, asking) {
  button.setAttribute("aria-label", asking ? "Stop" : "Ask");
  button.replaceChildren(icon(asking ? "stop" : "send"));
}

/** `send(helpful)` keeps the thumb, and `kept(helpful)` is what follows. */
export function renderThumbs(bar, send, kept = () => {}) {
  const judge = async (helpful, button) => {
    await send(helpful);
    for (const one of bar.querySelectorAll("[aria-pressed]")) one.setAttribute("aria-pressed", String(one === button));
    kept(helpful);
  };
  const thumb = (name, words, helpful) =>
    make("button", { type: "button", class: "quiet", "aria-label": words, title: words, "aria-pressed": "false", onclick: ({ currentTarget }) => attempt(bar, () => judge(helpful, currentTarget)) }, icon(name));
  bar.append(thumb("up", "This helped", true), thumb("down", "This did not help", false));
  return bar;
}

/** What fails is told beside it. Whether it was done. */
export async function attempt(place, work) {
  place.querySelector(".wrong")?.remove();
  try {
    await work();
    return true;
  } catch (problem) {
    place.append(renderWrong(problem));
  }
}
