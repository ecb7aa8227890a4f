// The list of conversations: open, rename, delete.

import { attempt } from "./asking.js";
import { icon, make, renderWrong } from "./dom.js";

export class ThreadList {
  constructor(list, { api, onOpen, onGone }) {
    Object.assign(this, { list, api, onOpen, onGone, current: null });
  }

  async load(book, current = this.current) {
    let kept;
    try {
      kept = await this.api(`/sessions?limit=100&book_id=${encodeURIComponent(book)}`);
    } catch (problem) {
      return this.list.replaceChildren(make("li", {}, renderWrong(problem)));
    }
    const groups = Map.groupBy(kept.threads, (thread) => ageOf(new Date(thread.updated_at)));
    this.list.replaceChildren(
      ...[...groups].map(([age, some]) =>
        make("li", {}, make("h2", {}, age), make("ul", {}, some.map((thread) => this.draw(thread)))),
      ),
    );
    this.mark(current);
  }

  mark(id) {
    this.current = id;
    for (const button of this.list.querySelectorAll(".open"))
      if (button.dataset.id === id) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
  }

  draw(thread) {
    const row = make("li", { class: "thread-row" });
    const show = () => {
      const act = (name, words, what) => make("button", { type: "button", class: "quiet", "aria-label": `${words}: ${thread.title}`, onclick: what }, icon(name));
      row.replaceChildren(
        make("button", { type: "button", class: "open", "data-id": thread.thread_id, onclick: () => this.onOpen(thread.thread_id) }, thread.title),
        act("edit", "Rename", () => this.rename(thread, row, show)),
        act("bin", "Delete", () => this.confirm(thread, row)),
      );
      this.mark(this.current);
    };
    show();
    return row;
  }

  rename(thread, row, show) {
    const input = make("input", { "aria-label": "New name", maxlength: "80", value: thread.title });
    const form = make("form", {}, input);
    const back = () => {
      show();
      row.querySelector(".open").focus();
    };
    const save = async (title) => {
      if (title && title !== thread.title) thread.title = (await this.api(`/session/${thread.thread_id}`, { method: "PATCH", body: { title } })).title;
      back();
    };
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      attempt(form, () => save(input.value.trim()));
    });
    input.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      back();
    });
    row.replaceChildren(form);
    input.select();
  }

  confirm(thread, row) {
    const dialog = make("dialog", { class: "confirm", "aria-labelledby": "confirm-title" });
    const leave = make("button", { type: "button", class: "button", onclick: () => dialog.close() }, "Keep");
    const forget = async () => {
      await this.api(`/session/${thread.thread_id}`, { method: "DELETE" }).catch((problem) => {
        if (problem.status !== 404) throw problem;
      });
      dialog.close();
      row.remove();
      if (this.current === thread.thread_id) this.onGone();
    };
    const remove = make("button", { type: "button", class: "button danger", onclick: () => attempt(dialog, forget) }, "Delete");
    dialog.addEventListener("close", () => dialog.remove());
    dialog.append(make("h2", { id: "confirm-title" }, `Delete “${thread.title}”?`), make("p", {}, "The questions and answers in it are gone for good."), make("div", {}, leave, remove));
    this.list.after(dialog);
    dialog.showModal();
  }
}

function ageOf(date) {
  const today = new Date().setHours(0, 0, 0, 0);
  if (date >= today) return "Today";
  return date >= today - 6 * 86400000 ? "This week" : "Earlier";
}
