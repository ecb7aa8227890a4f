// Pictures of the book's own folder. One that cannot be shown is its words.

import { make } from "./dom.js";

/** `headers`: where the page is another site's, which no cookie knows. */
export function picture(address, alt, headers = null) {
  const image = make("img", { class: "shown", alt, loading: "lazy" });
  settle(image);
  if (!headers) image.src = address;
  else fetchPicture(address, headers).then((url) => (image.src = url), () => giveUp(image));
  return image;
}

/** Those that stand in what an answer cites, each once. */
export function renderPictures(sources, headers) {
  const shown = new Map((sources || []).flatMap((one) => one.pictures || []).reverse().map((one) => [one.url, one]));
  const figures = [...shown.values()].reverse().slice(0, 3).map(({ url, alt }) => make("figure", {}, picture(url, alt, headers), alt && make("figcaption", { "aria-hidden": "true" }, alt)));
  return figures.length ? [make("div", { class: "pictures" }, figures)] : [];
}

/** For one that the page was made with. */
export function settle(image) {
  if (image.getAttribute("src") && image.complete && !image.naturalWidth) giveUp(image);
  else image.addEventListener("error", () => giveUp(image), { once: true });
}

function giveUp(image) {
  const figure = image.closest("figure");
  if (figure) figure.remove();
  else image.replaceWith(make("span", { class: "picture" }, image.alt || "image"));
}

async function fetchPicture(address, headers) {
  const response = await fetch(address, { headers });
  if (!response.ok) throw new Error(`no picture: ${response.status}`);
  const whole = await response.blob();
  return new Promise((resolve, reject) => {
    const reader = Object.assign(new FileReader(), { onload: () => resolve(reader.result), onerror: () => reject(reader.error) });
    reader.readAsDataURL(whole);
  });
}
