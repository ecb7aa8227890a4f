// Which words of a passage the reader marks, for its address.

const MARKS_MOST = 50;

/** By where they stand in the passage's text, in characters. */
export function toPart(text, quote) {
  const at = quote ? text.indexOf(quote) : -1;
  const start = at < 0 ? 0 : [...text.slice(0, at)].length;
  return at < 0 ? "" : `&part=${start}-${start + [...quote].length}`;
}

/** By where they stand in the file. */
export function toSpans(places = []) {
  return places.slice(0, MARKS_MOST).map((place) => `&from=${place.start}&to=${place.end}`).join("");
}
