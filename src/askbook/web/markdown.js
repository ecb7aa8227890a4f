// Markdown → nodes. Only elements that are named here are ever made; whatever else a text holds stays text.

import { icon, make } from "./dom.js";
import { highlight } from "./highlight.js";

const DEEPEST = 12;
const FENCE = /^( {0,3})(`{3,}|~{3,})\s*([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)(?:\s+#+|\s*\{#[^{}\s]+\}|\s*\[\[[^[\]\s]+\]\])?\s*$/;
const RULE = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])(\s+)(?=\S)/;
const TABLE = /^ {0,3}\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;
const BLANK = /^\s*$/;
// Where a formula of its own lines begins, and what ends it.
const FORMULA = /^ {0,3}[\ue000\ue001]*(\$\$|\\\[|\\begin\{((?:align|equation|gather|multline|eqnarray|alignat)\*?)\})/;
const LINES_MOST = 200;
const FORMULA_ENDS = { "$$": "$$", "\\[": "\\]" };
const AFTER_FORMULA = /^[\ue000\ue001]*\s*(?:\{#[^{}]*\}|\([\w:-]+\))?\s*$/;
// A quotation under a title in bold.
const TITLED = /^\s*([\ue000\ue001]*)\*\*((?:(?!\*\*).)+)\*\*([\ue000\ue001]*)\s*$/;
const ADMONITION = /^\s*(\ue000?)\[!(\w+)\][+-]?\s*(.*)$/;

/**
 * `cite(number)` gives the node for a mark such as [1], or null where it is no mark;
 * `mayLink(url)` says which addresses become links; `picture(url, words)` gives the node for a picture of the book.
 * Each may be left out: then marks, links and pictures are text.
 */
export function renderMarkdown(text, options = {}) {
  const fragment = document.createDocumentFragment();
  fragment.append(...blocks(String(text).replace(/\r\n?/g, "\n").replace(/\t/g, "    ").split("\n"), options, 0));
  return fragment;
}

// --- blocks ----------------------------------------------------------------------------------------

function blocks(lines, options, depth) {
  const nodes = [];
  if (depth > DEEPEST) return [make("p", {}, lines.join("\n"))];
  for (let at = 0; at < lines.length; ) {
    const [node, next] = readBlock(lines, at, options, depth);
    if (node) nodes.push(node);
    at = next;
  }
  return nodes;
}

function readBlock(lines, at, options, depth) {
  const line = lines[at];
  if (BLANK.test(line)) return [null, at + 1];
  const heading = line.match(HEADING);
  if (heading) return [make(`h${Math.min(6, heading[1].length + 2)}`, {}, inline(heading[2], options)), at + 1];
  if (FENCE.test(line)) return readFence(lines, at);
  const formula = FORMULA.test(line) && readFormula(lines, at);
  if (formula) return formula;
  if (RULE.test(line)) return [make("hr"), at + 1];
  if (QUOTE.test(line)) return readQuote(lines, at, options, depth);
  if (ITEM.test(line)) return readList(lines, at, options, depth);
  if (isTable(lines, at)) return readTable(lines, at, options);
  if (/^ {4}/.test(line)) return readIndented(lines, at);
  return readParagraph(lines, at, options);
}

function readFence(lines, at) {
  const [, indent, mark, info] = lines[at].match(FENCE);
  const closing = new RegExp(`^ {0,3}${mark[0]}{${mark.length},}\\s*$`);
  const code = [];
  for (at += 1; at < lines.length && !closing.test(lines[at]); at += 1)
    code.push(lines[at].replace(new RegExp(`^ {0,${indent.length}}`), ""));
  const language = info.trim().split(/[\s,]/)[0].replace(/^\{(\w+)\}$/, "$1").split("{")[0];
  return [language === "math" ? formula(code.join("\n"), true, "div") : codeBlock(code.join("\n"), language), at + 1];
}

/** Null where it does not end: then it is no formula. */
function readFormula(lines, at) {
  const [, opening, environment] = lines[at].match(FORMULA);
  const closing = FORMULA_ENDS[opening] || `\\end{${environment}}`;
  const inner = [lines[at].slice(lines[at].indexOf(opening) + (environment ? 0 : opening.length))];
  while (!inner.at(-1).includes(closing)) if (inner.push(lines[(at += 1)]) > LINES_MOST || at >= lines.length) return null;
  const tex = inner.join("\n");
  const end = tex.indexOf(closing);
  if (!AFTER_FORMULA.test(tex.slice(end + closing.length)) || (opening === "\\[" && !/[\\^_={}<>+]/.test(tex.slice(0, end)))) return null;
  return [formula(tex.slice(0, environment ? end + closing.length : end), true, "div"), at + 1];
}

/** As it is written; `showMath` draws it. */
function formula(tex, display, tag = "span") {
  return make(tag, { class: display ? "math display" : "math" }, tex.trim());
}

function readIndented(lines, at) {
  const code = [];
  for (; at < lines.length && (/^ {4}/.test(lines[at]) || BLANK.test(lines[at])); at += 1) code.push(lines[at].slice(4));
  return [codeBlock(code.join("\n").trimEnd(), ""), at];
}

export function codeBlock(code, language) {
  const shown = make("pre", { tabindex: "0", role: "region", "aria-label": language ? `Code, ${language}` : "Code" });
  shown.append(make("code", {}, highlight(code, language)));
  return make("div", { class: "code" }, make("div", { class: "code-head" }, make("span", {}, language || "text"), copyButton("Copy this code", () => code)), shown);
}

/** Hidden where the browser lets no page copy: over plain HTTP, beyond this machine. */
export function copyButton(label, read) {
  const button = make("button", { type: "button", class: "quiet", "aria-label": label, title: label, hidden: !navigator.clipboard }, icon("copy"));
  button.addEventListener("click", () => copyText(read(), button));
  return button;
}

/** The button shows that it was done. */
async function copyText(text, button) {
  await navigator.clipboard.writeText(text.replace(/[\ue000\ue001]/g, ""));
  const before = [...button.childNodes];
  button.replaceChildren(icon("done"), ...before.slice(1));
  setTimeout(() => button.replaceChildren(...before), 1500);
}

function readQuote(lines, at, options, depth) {
  const inner = [];
  for (; at < lines.length && !BLANK.test(lines[at]); at += 1) {
    if (!QUOTE.test(lines[at]) && opensBlock(lines[at])) break;
    inner.push(lines[at].replace(QUOTE, ""));
  }
  const titled = BLANK.test(inner[1] || "") && inner[0].match(TITLED);
  const [, mark, kind, title] = inner[0].match(ADMONITION) || [];
  if (!kind && !titled) return [make("blockquote", {}, blocks(inner, options, depth + 1)), at];
  const name = titled ? titled.slice(1).join("") : mark + (title || kind[0].toUpperCase() + kind.slice(1).toLowerCase());
  const named = (kind || name).replace(/[\ue000\ue001]/g, "").toLowerCase();
  const attributes = { class: "admonition", role: "note", "data-kind": /^\p{L}+$/u.test(named) ? named : "titled" };
  return [make("blockquote", attributes, make("p", { class: "title" }, inline(name, options)), blocks(inner.slice(1), options, depth + 1)), at];
}

function readList(lines, at, options, depth) {
  const ordered = /\d/.test(lines[at].match(ITEM)[2]);
  const start = ordered ? parseInt(lines[at].match(ITEM)[2], 10) : 1;
  const list = make(ordered ? "ol" : "ul", { start: ordered && start !== 1 && String(start) });
  let loose = false;
  while (at < lines.length) {
    const mark = lines[at].match(ITEM);
    if (!mark || /\d/.test(mark[2]) !== ordered || RULE.test(lines[at])) break;
    const width = mark[1].length + mark[2].length + Math.min(mark[3].length, 4);
    const inner = [lines[at].slice(width).replace(/^\[([ xX])\] /, (_, done) => (done === " " ? "☐ " : "☑ "))];
    let blank = false;
    for (at += 1; at < lines.length; at += 1) {
      const belongs = lines[at].startsWith(" ".repeat(width));
      if (BLANK.test(lines[at])) {
        blank = true;
        inner.push("");
      } else if (belongs || (!blank && !opensBlock(lines[at]))) {
        loose ||= blank && belongs;
        blank = false;
        inner.push(belongs ? lines[at].slice(width) : lines[at].trimStart());
      } else break;
    }
    loose ||= blank && at < lines.length && ITEM.test(lines[at]);
    list.append(make("li", {}, blocks(inner, options, depth + 1)));
  }
  if (!loose) for (const item of list.children) unwrap(item);
  return [list, at];
}

/** An item of a tight list holds its words without a paragraph around them. */
function unwrap(item) {
  for (const child of [...item.children]) if (child.tagName === "P") child.replaceWith(...child.childNodes);
}

function isTable(lines, at) {
  return lines[at].includes("|") && at + 1 < lines.length && lines[at + 1].includes("-") && TABLE.test(lines[at + 1]) &&
    cells(lines[at]).length === cells(lines[at + 1]).length;
}

function cells(line) {
  const inner = line.trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "");
  return inner.split(/(?<!\\)\|/).map((cell) => cell.trim().replace(/\\\|/g, "|"));
}

function readTable(lines, at, options) {
  const heads = cells(lines[at]);
  const sides = cells(lines[at + 1]).map((mark) => (/^:?-+:$/.test(mark) ? (mark[0] === ":" ? "center" : "right") : null));
  const row = (line, tag) =>
    make("tr", {}, heads.map((_, n) => make(tag, { class: sides[n], scope: tag === "th" && "col" }, inline(cells(line)[n] || "", options))));
  const head = make("thead", {}, row(lines[at], "th"));
  const rows = [];
  for (at += 2; at < lines.length && lines[at].includes("|") && !BLANK.test(lines[at]); at += 1) rows.push(row(lines[at], "td"));
  const table = make("table", {}, head, make("tbody", {}, rows));
  return [make("div", { class: "table", tabindex: "0", role: "region", "aria-label": "Table" }, table), at];
}

function opensBlock(line) {
  return HEADING.test(line) || FENCE.test(line) || QUOTE.test(line) || ITEM.test(line) || RULE.test(line) || FORMULA.test(line);
}

function readParagraph(lines, at, options) {
  const words = [lines[at].trimStart()];
  for (at += 1; at < lines.length && !BLANK.test(lines[at]) && !opensBlock(lines[at]) && !isTable(lines, at); at += 1)
    words.push(lines[at].trimStart());
  return [make("p", {}, inline(words.join("\n").trimEnd(), options)), at];
}

// --- inside a line ---------------------------------------------------------------------------------

const SPECIAL = new RegExp(
  [
    String.raw`\$\$(?<shown>[^$]+)\$\$`,
    String.raw`\\\[(?!\d+\])(?<shownToo>[^]{1,4000}?)\\\]`,
    String.raw`\\\((?<inlined>[^]{1,4000}?)\\\)`,
    String.raw`\\(?<escaped>[!-/:-@\[-${"`"}{-~])`,
    "(?<ticks>`+)",
    String.raw`(?<image>!)?\[(?<label>(?:[^\[\]\\]|\\.|\[[^\[\]]*\])*)\]\((?<url><[^<>\n]*>|[^\s()<>]*(?:\([^\s()]*\)[^\s()<>]*)*)(?:\s+(?:"[^"]*"|'[^']*'))?\)`,
    String.raw`\[(?<marks>\d{1,3}(?:\s*,\s*\d{1,3})*)\]`,
    String.raw`<(?<auto>https?:\/\/[^\s<>]+)>`,
    String.raw`<br\s*\/?>(?<br>)`,
    String.raw`<img\b(?<tag>[^<>]*)>`,
    String.raw`<summary\b[^<>]*>(?<summary>[^<>]*)<\/summary>`,
    String.raw`<\/?(?:details|summary|div|p|center|figure|figcaption|section|span|kbd|sub|sup|abbr|small|u)\b[^<>]*>(?<wrapper>)`,
    String.raw`(?<strong>\*\*\*|\*\*|__)(?=\S)`,
    String.raw`(?<strike>~~)(?=\S)`,
    String.raw`(?<emphasis>[*_])(?=\S)`,
    String.raw`(?<![\w$])\$(?<math>[^\s$${"`"}](?:[^$${"`"}]*[^\s$\\${"`"}])?)\$(?!\d)`,
    String.raw`\[\^(?<footnote>[^\[\]\s]{1,40})\]:?`,
    String.raw`&(?<entity>amp|lt|gt|quot|apos|nbsp|#39);`,
    String.raw`(?<hard> {2,}\n|\\\n)`,
  ].join("|"),
  "g",
);
const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0", "#39": "'" };

function inline(text, options, depth = 0) {
  const nodes = [];
  if (depth > DEEPEST) return [text];
  let at = 0;
  SPECIAL.lastIndex = 0;
  const search = new RegExp(SPECIAL);
  for (let found; (found = search.exec(text)); ) {
    const [node, end] = readInline(text, found, options, depth);
    if (node === null) {
      // Not what it looked like: its first character is a character.
      search.lastIndex = found.index + (found.groups.ticks || found.groups.strong || "x").length;
      continue;
    }
    nodes.push(text.slice(at, found.index), node);
    at = search.lastIndex = end;
  }
  return [...nodes, text.slice(at)].flat().filter((node) => node !== "");
}

function readInline(text, found, options, depth) {
  const { groups } = found;
  const end = found.index + found[0].length;
  const nested = (words) => inline(words, options, depth + 1);
  if (groups.escaped) return [groups.escaped, end];
  if (groups.entity) return [ENTITIES[groups.entity], end];
  if (groups.wrapper !== undefined) return ["", end];
  if (groups.summary !== undefined) return [make("strong", {}, groups.summary.trim()), end];
  if (groups.hard || groups.br !== undefined) return [make("br"), end];
  if (groups.ticks) return readCode(text, found.index, groups.ticks);
  const escaped = groups.shownToo ?? groups.inlined;
  // Brackets that are escaped and no more, as in \[#12\] and \(see below\).
  if (escaped && !/[\\^_={}<>+]/.test(escaped) && (groups.shownToo || /\p{L}{2}/u.test(escaped))) return [text[found.index + 1], found.index + 2];
  const display = groups.shown || groups.shownToo;
  if (display) return [formula(display, true), end];
  if (groups.math || groups.inlined) return [formula(groups.math || groups.inlined, false), end];
  if (groups.footnote) return [make("sup", {}, groups.footnote), end];
  if (groups.marks) return [readMarks(groups.marks, options), end];
  if (groups.auto) return [link(groups.auto, [groups.auto], options), end];
  if (groups.image) return [renderPicture(groups.url.replace(/^<|>$/g, ""), groups.label, options), end];
  if (groups.tag !== undefined) return [renderPicture(attribute(groups.tag, "src"), attribute(groups.tag, "alt"), options), end];
  if (groups.label !== undefined) return [link(groups.url.replace(/^<|>$/g, ""), nested(groups.label), options), end];
  const [mark, tag] = groups.strong ? [groups.strong, "strong"] : groups.strike ? ["~~", "del"] : [groups.emphasis, "em"];
  const inner = (words) => (mark === "***" ? make("em", {}, nested(words)) : nested(words));
  return readEmphasis(text, found.index, mark, (words) => make(tag, {}, inner(words)));
}

/** A picture would be fetched from wherever the text says: its words stand for it, unless it is known to be the book's. */
function renderPicture(url, words, options) {
  const isElsewhere = /^(?:[a-z][a-z0-9+.-]*:|[\\/]{2})/i.test(url);
  return (url && !isElsewhere && options.picture?.(url, words)) || make("span", { class: "picture" }, words || "image");
}

function attribute(tag, name) {
  const found = tag.match(new RegExp(`\\b${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)'|([^\\s"'>]+))`, "i"));
  return found ? found[1] ?? found[2] ?? found[3] : "";
}

function readCode(text, start, ticks) {
  const closing = new RegExp(`(?<!\`)${ticks}(?!\`)`, "g");
  closing.lastIndex = start + ticks.length;
  const close = closing.exec(text);
  if (!close) return [null, 0];
  const code = text.slice(start + ticks.length, close.index).replace(/\n/g, " ");
  return [make("code", {}, /^ .*\S.* $/.test(code) ? code.slice(1, -1) : code), close.index + ticks.length];
}

function readEmphasis(text, start, mark, wrap) {
  const inWord = (place) => /[\p{L}\p{N}]/u.test(text[place] || "");
  if (mark[0] === "_" && inWord(start - 1)) return [null, 0];
  for (let close = text.indexOf(mark, start + mark.length + 1); close > 0; close = text.indexOf(mark, close + 1)) {
    const single = mark.length === 1 && (text[close - 1] === mark || text[close + 1] === mark);
    if (single || /[\s\\]/.test(text[close - 1]) || (mark[0] === "_" && inWord(close + mark.length))) continue;
    return [wrap(text.slice(start + mark.length, close)), close + mark.length];
  }
  return [null, 0];
}

function readMarks(numbers, options) {
  const nodes = numbers.split(",").map((one) => (options.cite ? options.cite(Number(one)) : null));
  return nodes.every(Boolean) ? nodes : [`[${numbers}]`];
}

function link(url, words, options) {
  const address = safeAddress(url);
  if (!address || !options.mayLink || !options.mayLink(address)) return words;
  return make("a", { href: address, rel: "noopener noreferrer" }, words);
}

/** The address in full where it leads to the web, else null: `javascript:` and `data:` lead nowhere. */
export function safeAddress(url) {
  if (!url) return null;
  try {
    const address = new URL(url, location.origin);
    return ["http:", "https:"].includes(address.protocol) ? address.href : null;
  } catch {
    return null;
  }
}
