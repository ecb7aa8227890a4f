// The one way in which these pages make markup: elements and text, never HTML.

/** `make("a", { href, class: "chip", onclick }, "text", node)`. A property that is null or false is left out. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function table(heads, rows, ...before) {
  const head = make("thead", {}, make("tr", {}, heads.map((one) => (one ? make("th", { scope: "col" }, one) : make("td")))));
  return make("table", {}, ...before, head, make("tbody", {}, rows.map((row) => make("tr", {}, row.map((cell) => make("td", {}, cell))))));
}

export function capital(words) {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** What went wrong, beside what was tried. */
export function renderWrong(problem) {
  return make("p", { class: "wrong", role: "alert" }, [problem.message, problem.detail].filter(Boolean).join(". "));
}

const SHAPES = {
  plus: "M12 5v14M5 12h14",
  send: "M12 19V5M5.5 11.5 12 5l6.5 6.5",
  stop: "M7 7h10v10H7z",
  close: "M6 6l12 12M18 6 6 18",
  menu: "M4 7h16M4 12h16M4 17h10",
  copy: "M9 9h10v11H9zM5 15V4h10",
  done: "M5 12.5 10 17.5 19.5 7",
  up: "M7 11v9H4v-9zM7 11l4-8c1.5 0 2.5 1 2.5 2.5V9H19c1 0 1.8 1 1.5 2l-1.6 7c-.2 1-1 2-2 2H7",
  down: "M7 13V4H4v9zM7 13l4 8c1.5 0 2.5-1 2.5-2.5V15H19c1 0 1.8-1 1.5-2l-1.6-7c-.2-1-1-2-2-2H7",
  edit: "M5 19l1-4L16 5l3 3L9 18zM14 7l3 3",
  bin: "M5 7h14M9 7V4h6v3M7 7l1 13h8l1-13M10 11v5M14 11v5",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.4 1.4M17.6 17.6 19 19M19 5l-1.4 1.4M6.4 17.6 5 19",
  book: "M12 6c-2-1.5-5-2-8-2v14c3 0 6 .5 8 2 2-1.5 5-2 8-2V4c-3 0-6 .5-8 2zM12 6v14",
  search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM16 16l4.5 4.5",
  filter: "M4 6h16M7 12h10M10 18h4",
  left: "M14 6l-6 6 6 6",
  right: "M10 6l6 6-6 6",
  quote: "M5 17c3-1 4-3 4-6H5V6h6v5c0 4-2 7-5 8zM14 17c3-1 4-3 4-6h-4V6h6v5c0 4-2 7-5 8z",
};

/** A drawing that says nothing by itself: whatever holds it has the words. */
export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  for (const [key, value] of Object.entries({ class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" }))
    svg.setAttribute(key, value);
  path.setAttribute("d", SHAPES[name]);
  svg.append(path);
  return svg;
}
