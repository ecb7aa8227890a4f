// Asks for a key where the server wants one.

import { attempt } from "./asking.js";
import { make } from "./dom.js";
import { keepKey } from "./state.js";

export function renderKeyForm(onKept) {
  const input = make("input", { type: "password", id: "key-input", autocomplete: "off", required: true, placeholder: "askbook_…" });
  const form = make(
    "form",
    { class: "key-form" },
    make("label", { for: "key-input" }, "Your key"),
    input,
    make("button", { class: "button primary" }, "Open"),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (await attempt(form, () => keepKey(input.value.trim()))) onKept();
    else input.focus();
  });
  return form;
}
