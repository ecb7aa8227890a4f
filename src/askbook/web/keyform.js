// Asks for a key where the server wants one.

import { make } from "./dom.js";
import { keepKey } from "./state.js";

export function renderKeyForm(onKept) {
  const input = make("input", { type: "password", id: "key-input", autocomplete: "off", required: true, placeholder: "askbook_…" });
  const wrong = make("p", { class: "wrong", role: "alert" });
  const form = make(
    "form",
    { class: "key-form" },
    make("label", { for: "key-input" }, "Your key"),
    input,
    wrong,
    make("button", { class: "button primary" }, "Open"),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await keepKey(input.value.trim());
      onKept();
    } catch (problem) {
      wrong.textContent = [problem.message, problem.detail].filter(Boolean).join(". ");
      input.focus();
    }
  });
  return form;
}
