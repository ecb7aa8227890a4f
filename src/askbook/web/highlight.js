// Colours for code: comments, texts, numbers and the words of a language. Enough to read by, and it never fails.

const WORDS = {
  python:
    "and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield match case None True False self",
  javascript:
    "async await break case catch class const continue default delete do else export extends finally for from function if import in instanceof let new of return static super switch this throw try typeof var void while yield null undefined true false interface type enum implements private public readonly as",
  c: "alignas auto bool break case catch char class const constexpr continue default delete do double else enum explicit extern false final float for friend if inline int long namespace new noexcept nullptr operator override private protected public return short signed sizeof static struct switch template this throw true try typedef typename union unsigned using virtual void volatile while std",
  rust: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while",
  go: "break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var nil true false",
  java: "abstract boolean break byte case catch char class const continue default do double else enum extends final finally float for if implements import instanceof int interface long native new null package private protected public return short static super switch this throw throws true false try var void while",
  sh: "if then else elif fi for while do done case esac in function return export local set cd echo source sudo exit",
  sql: "select from where insert into values update set delete create table index drop alter join left right inner outer on group by order having limit as and or not null is in like distinct union primary key references",
  css: "auto inherit initial none revert unset",
  data: "true false null yes no on off",
};
const SAME = {
  py: "python", python3: "python", pycon: "python", js: "javascript", jsx: "javascript", ts: "javascript",
  tsx: "javascript", typescript: "javascript", cpp: "c", "c++": "c", h: "c", hpp: "c", cc: "c", rs: "rust",
  golang: "go", kotlin: "java", cs: "java", bash: "sh", shell: "sh", zsh: "sh", console: "sh", yaml: "data",
  yml: "data", json: "data", toml: "data", ini: "data", xml: "markup", html: "markup", urdf: "markup",
  xacro: "markup", sdf: "markup", svg: "markup",
};
const HASHES = new Set(["python", "sh", "data"]);
const MAX = 50000;

const STRING = String.raw`"""[\s\S]*?"""|'''[\s\S]*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|` + "`[^`]*`";
const NUMBER = String.raw`\b(?:0x[\da-fA-F]+|\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)\b`;
const WORD = String.raw`[A-Za-z_$][\w$]*`;

function pattern(language) {
  if (language === "markup")
    return new RegExp(String.raw`(?<comment><!--[\s\S]*?-->)|(?<string>"[^"\n]*"|'[^'\n]*')|(?<word></?[\w:.-]+|/?>)`, "g");
  const comment = HASHES.has(language) ? "#[^\\n]*" : language === "sql" ? "--[^\\n]*" : String.raw`\/\/[^\n]*|\/\*[\s\S]*?\*\/`;
  return new RegExp(`(?<comment>${comment})|(?<string>${STRING})|(?<number>${NUMBER})|(?<word>${WORD})`, "g");
}

/** The code as nodes: plain text, and a `span` for each word that has a colour. */
export function highlight(code, name = "") {
  const pieces = document.createDocumentFragment();
  const language = SAME[name.toLowerCase()] || name.toLowerCase();
  if ((language !== "markup" && !WORDS[language]) || code.length > MAX) {
    pieces.append(code);
    return pieces;
  }
  const words = new Set((WORDS[language] || "").split(" "));
  let at = 0;
  for (const found of code.matchAll(pattern(language))) {
    const kind = Object.keys(found.groups).find((one) => found.groups[one] !== undefined);
    const known = kind !== "word" || language === "markup" || words.has(language === "sql" ? found[0].toLowerCase() : found[0]);
    if (!known) continue;
    pieces.append(code.slice(at, found.index));
    const span = document.createElement("span");
    span.className = `code-${kind}`;
    span.textContent = found[0];
    pieces.append(span);
    at = found.index + found[0].length;
  }
  pieces.append(code.slice(at));
  return pieces;
}
