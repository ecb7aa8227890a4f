"""Formulas in Markdown: `$…$`, `$$…$$`, `\\(…\\)`, `\\[…\\]` and the environments of LaTeX. `$5 and $10` is money."""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

MATH = "math"
DISPLAY = "display"
LINES_MOST, BLOCK_MOST, LENGTH_MOST = 200, 8000, 4000

# The marks of where cited words begin and end; they may be just before or after a formula.
_MARKS = "[\ue000\ue001]*"
INLINE = re.compile(
    r"\$\$(?P<shown>[^$]+)\$\$"
    r"|\\\[(?P<bracketed>.{1,4000}?)\\\]"
    r"|\\\((?P<inlined>.{1,4000}?)\\\)"
    r"|(?<![A-Za-z0-9_$\\])\$(?P<dollars>[^\s$`](?:[^$`]*[^\s$`\\])?)\$(?!\d)",
    re.DOTALL,
)
_OPENS = re.compile(
    rf"{_MARKS}(?P<opening>\$\$|\\\["
    r"|\\begin\{(?P<environment>(?:align|equation|gather|multline|eqnarray|alignat)\*?)\})"
)
_SIGN, _WORD = re.compile(r"[\\^_={}<>+]"), re.compile(r"[^\W\d_]{2}")
_CLOSINGS = {"$$": "$$", "\\[": "\\]"}
_PAIRS = {"\\(": "\\)", "\\[": "\\]"}
_AFTER = re.compile(rf"{_MARKS}\s*(?:\{{#[^{{}}]*\}}|\([\w:-]+\))?\s*")


def add_formulas(parser: MarkdownIt) -> MarkdownIt:
    """Tokens of the type `math`: `content` is the TeX, `info` is `display` for one that stands by itself."""
    parser.inline.ruler.before("escape", MATH, _read_inline)
    parser.block.ruler.before("fence", MATH, _read_block, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    return parser


def find_tex(found: re.Match[str]) -> str | None:
    """Of a match of INLINE; None for brackets that are escaped and no more, as in `\\[#12\\]` and `\\(see below\\)`."""
    tex = (found[found.lastgroup] if found.lastgroup else "").strip()
    signs = found.lastgroup in ("shown", "dollars") or _SIGN.search(tex)
    return tex if signs or (found.lastgroup == "inlined" and not _WORD.search(tex)) else None


def _read_inline(state: StateInline, silent: bool) -> bool:
    found = INLINE.match(state.src, state.pos, state.posMax) if _may_open(state) else None
    tex = find_tex(found) if found else None
    if found is None or tex is None:
        return False
    if not silent:
        token = state.push(MATH, "span", 0)
        token.content = tex
        token.info = DISPLAY if found.lastgroup in ("shown", "bracketed") else ""
    state.pos = found.end()
    return True


def _may_open(state: StateInline) -> bool:
    """Where nothing closes it, it is not looked for letter by letter."""
    opening = state.src[state.pos : state.pos + 2]
    if opening in _PAIRS:
        return state.src.find(_PAIRS[opening], state.pos, state.pos + LENGTH_MOST) > 0
    return opening.startswith("$")


def _read_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    first = _line(state, start)
    found = None if state.is_code_block(start) else _OPENS.match(first)
    if found is None:
        return False
    environment, opening = found["environment"], found["opening"]
    closing = f"\\end{{{environment}}}" if environment else _CLOSINGS[opening]
    begin = state.bMarks[start]
    if state.src.find(closing, begin + state.tShift[start] + len(opening), begin + BLOCK_MOST) < 0:
        return False
    lines, last = [first[found.start("opening") if environment else found.end() :]], start
    while closing not in lines[-1]:
        last += 1
        if last >= min(end, start + LINES_MOST) or (state.sCount[last] < state.blkIndent and not state.isEmpty(last)):
            return False
        lines.append(_line(state, last))
    tex, _, after = "\n".join(lines).partition(closing)
    if not _AFTER.fullmatch(after) or (opening == "\\[" and not _SIGN.search(tex)):
        return False
    if not silent:
        token = state.push(MATH, "div", 0)
        # Cited words may begin before the formula, and end behind it.
        around = first[: found.start("opening")], re.match(_MARKS, after)[0]  # pyright: ignore[reportOptionalSubscript]
        token.content = f"{around[0]}{(tex + closing if environment else tex).strip()}{around[1]}"
        token.info, token.map, token.block = DISPLAY, [start, last + 1], True
        state.line = last + 1
    return True


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]]
