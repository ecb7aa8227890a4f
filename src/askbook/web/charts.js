// Charts of plain elements, drawn by the style sheet; what they show is in a table too, for those who hear the page.

import { make, table } from "./dom.js";

/** `days`: `{ day, parts: { name: count } }`, the oldest first; `series`: `{ name: title }`, the lowest first. */
export function barChart(title, days, series) {
  const total = (day) => Object.values(day.parts).reduce((sum, count) => sum + count, 0);
  const top = niceTop(Math.max(...days.map(total)));
  const bars = make("div", { class: "bars" }, days.map((day) => bar(day, series, top, total(day))));
  const grid = make("div", { class: "grid" }, [top, top / 2, 0].map((value) => make("span", {}, String(value))));
  const ends = make("div", { class: "ends" }, make("span", {}, shortDay(days[0].day)), make("span", {}, shortDay(days.at(-1).day)));
  const picture = make("div", { class: "plot", "aria-hidden": "true" }, grid, bars, ends);
  const rows = days.filter(total).reverse().map((day) => [shortDay(day.day), ...Object.keys(series).map((name) => String(day.parts[name] || 0))]);
  const told = table(["Day", ...Object.values(series)], rows, make("caption", {}, title));
  return make("figure", {}, legend(series), picture, make("details", { class: "as-table" }, make("summary", {}, "As a table"), told));
}

function bar(day, series, top, total) {
  const parts = Object.keys(series).filter((name) => day.parts[name]).map((name) => {
    const part = make("span", { class: `part ${name}` });
    part.style.setProperty("height", `${(100 * day.parts[name]) / top}%`);
    return part;
  });
  const words = Object.entries(series).filter(([name]) => day.parts[name]).map(([name, told]) => `${day.parts[name]} ${told.toLowerCase()}`);
  const tip = make("span", { class: "tip" }, make("b", {}, shortDay(day.day)), make("span", {}, total ? words.join(" · ") : "nothing asked"));
  return make("div", { class: "bar" }, parts, tip);
}

/** Rows of one share each: `{ name, title, count }`. */
export function shareChart(rows) {
  const all = rows.reduce((sum, row) => sum + row.count, 0);
  return make("ul", { class: "shares" }, rows.filter((row) => row.count).map(({ name, title, count }) => {
    const filled = make("span", { class: `part ${name}` });
    filled.style.setProperty("width", `${(100 * count) / all}%`);
    const told = make("span", { class: "told" }, make("span", {}, title), make("span", {}, `${count} · ${Math.round((100 * count) / all)} %`));
    return make("li", {}, told, make("span", { class: "track", "aria-hidden": "true" }, filled));
  }));
}

function legend(series) {
  return make("p", { class: "legend", "aria-hidden": "true" }, Object.entries(series).map(([name, title]) => make("span", {}, make("i", { class: `part ${name}` }), title)));
}

/** A round number that is even, so that its half is a number of questions too. */
function niceTop(most) {
  const steps = [4, 6, 8, 10, 20, 30, 40, 60, 80, 100];
  const scale = 10 ** Math.max(0, Math.ceil(Math.log10(most || 1)) - 2);
  return steps.map((step) => step * scale).find((step) => step >= most) || most;
}

function shortDay(day) {
  return new Date(`${day}T00:00Z`).toLocaleDateString(undefined, { day: "numeric", month: "short", timeZone: "UTC" });
}
