// Formulas as MathML. KaTeX is fetched with the first formula; what it cannot draw, or should not, stays as it was written.

import { make } from "./dom.js";

const LONGEST = 4000;
const DEEPEST = 24;
const NUMBER = /\\tag\*?\{[^{}]*\}/;
const OPTIONS = { output: "mathml", throwOnError: true, strict: "ignore", trust: false, maxSize: 20, maxExpand: 200 };

let katex = null;

/** Draws the formulas below `root`: at once where KaTeX is here, else as soon as it is. */
export function showMath(root) {
  const formulas = [...root.querySelectorAll(".math:not(:has(math))")];
  if (!formulas.length) return root;
  if (katex) formulas.forEach(draw);
  else load().then(() => formulas.forEach(draw), (error) => console.info("askbook: formulas stay as they are written:", error.message));
  return root;
}

/** It names itself on the page, which may be somebody else's and have one of its own. */
async function load() {
  const theirs = self.katex;
  await import("./katex.min.js");
  if (self.katex !== theirs) {
    katex = self.katex;
    self.katex = theirs;
  }
  if (!katex) throw new Error("KaTeX did not come");
}

function draw(formula) {
  // In an answer a number in brackets is written \[1], so that it is no mark.
  const tex = formula.textContent.replace(/[\ue000\ue001]/g, "").replace(/\\\[(?=\d+\])/g, "[");
  if (tex.length > LONGEST || depthOf(tex) > DEEPEST) return;
  let drawn;
  try {
    const displayMode = formula.classList.contains("display");
    drawn = prepare(katex.__renderToDomTree(displayMode ? alignLines(tex) : tex, { ...OPTIONS, displayMode })).toNode();
  } catch {
    // Not TeX, or more than is allowed.
    return;
  }
  formula.replaceChildren(formula.querySelector("mark") ? make("mark", {}, drawn) : drawn);
}

/** The pages' policy allows no style but their own, and browsers know columns that are aligned by style alone. */
function prepare(node) {
  if (node.attributes) delete node.attributes.style;
  const sides = node.type === "mtable" && node.attributes.columnalign?.split(" ");
  if (sides) for (const row of node.children) row.children?.forEach((cell, at) => cell.classes?.push(sides[at] || sides.at(-1)));
  node.children?.forEach(prepare);
  return node;
}

/** KaTeX would run the lines of a formula together that stand in no environment: as Sphinx does, they are given one. */
function alignLines(tex) {
  if (![...marksOf(tex)].some(([mark, depth]) => mark === "\\\\" && depth === 0)) return tex;
  const number = tex.match(NUMBER)?.[0] ?? "";
  return `\\begin{aligned}${tex.replace(number, "")}\\end{aligned}${number}`;
}

/** Laid out, each level of fractions in fractions costs a multiple of the one before. */
function depthOf(tex) {
  return Math.max(0, ...[...marksOf(tex)].map(([, depth]) => depth));
}

/** What opens, closes and parts in a formula, each with the depth that it leads to. */
function* marksOf(tex) {
  let depth = 0;
  for (const [mark] of tex.matchAll(/\\\\|\\[{}]|\\(?:begin|end|left|right)\b|[{}]/g)) {
    if (mark === "{" || mark === "\\begin" || mark === "\\left") depth += 1;
    else if (mark === "}" || mark === "\\end" || mark === "\\right") depth -= 1;
    yield [mark, depth];
  }
}
