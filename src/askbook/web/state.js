// What the pages remember in this browser: the key (for this tab), the colours, and a text to ask about.

import { call } from "./stream.js";

const KEY = "askbook-key";
const SELECTED = "askbook-selected";
const THEME = "askbook-theme";
export const SELECTED_MAX = 5000;

export function keyHeaders() {
  const key = sessionStorage.getItem(KEY);
  return key ? { "X-API-Key": key } : {};
}

/** Tries the key; the reader's pages, which follow links and send no header, get it as a cookie. */
export async function keepKey(key) {
  await call("/read", { method: "POST", headers: { "X-API-Key": key } });
  sessionStorage.setItem(KEY, key);
}

export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

export function switchTheme() {
  const theme = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  localStorage.setItem(THEME, theme);
}

/** Not by the address: a text that was selected is nobody else's business. */
export function keepSelection(selection) {
  sessionStorage.setItem(SELECTED, JSON.stringify(selection));
}

export function takeSelection() {
  const kept = sessionStorage.getItem(SELECTED);
  sessionStorage.removeItem(SELECTED);
  return kept ? JSON.parse(kept) : null;
}
