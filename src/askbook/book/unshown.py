"""What a page shows otherwise than its site may: formulas too long to draw, scripts in drawings, frames without end."""

from __future__ import annotations

import html
import posixpath
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from askbook.book.pictures import list_files, read_picture
from askbook.errors import NotFound

# The pages draw none that is longer.
LONGEST_FORMULA = 4_000
DEEPEST = 50
# The page's own Markdown parser goes no deeper.
DEEPEST_QUOTE = 19

_FENCE = re.compile(
    r"\n[ \t>]*(?:(?P<mark>`{3,}|~{3,})(?P<info>[^`\n]*)|(?P<colons>:{3,})(?P<math>\{math\})[^\n]*)$", re.MULTILINE
)
_OPTIONS = re.compile(r"\A(?:[ \t>]*:[\w-]+:[^\n]*\n)+")
_LONG = f"{{{LONGEST_FORMULA},}}+"
_LINE_END = r"\n(?![ \t]*\n)"
_FORMULA = re.compile(
    rf"\$\$(?P<block>(?:[^$\n]|{_LINE_END}){_LONG})\$\$"
    rf"|(?<!\\)\\[\[(](?P<bracket>(?:\\[^\[\]()\n]|[^\\\n]|{_LINE_END}){_LONG})\\[\])]"
    rf"|\{{math\}}`(?P<role>(?:[^`\n]|{_LINE_END}){_LONG})`"
    rf"|(?<![\\$\w])\$(?=[^\s$])(?P<inline>(?:\\[^\n]|[^$\\\n]|{_LINE_END}){_LONG})(?<=\S)\$(?![\d$])"
)
# Without one of these, what stands between two dollars is a price.
_TEX = re.compile(r"[\\^_]")
_DEEP = re.compile(rf"\n(?:[ \t]{{{4 * DEEPEST},}}+(?:===|!!!|\?\?\?)|[ \t]{{0,3}}:{{{DEEPEST},}}+[ \t]*\{{?\w)")
_DEEP_QUOTE = re.compile(rf"\n[ \t]{{0,3}}(?:>[ \t]?){{{DEEPEST_QUOTE + 1},}}+")
_CODE = re.compile(r"`[^`\n]+`")
_FRAME = re.compile(
    r"<(?P<end>/?)(?P<tag>details|div|section|blockquote|[A-Z][\w.]*)\b[^<>]*>"
    r"|\{\{[%<][ \t]*(?P<close>/?)[ \t]*(?P<shortcode>[\w/-]+)[^{}\n]*\}\}"
    r"|\n[ \t]*(?P<colons>:{3,})[ \t]*(?P<opens>\{?\w)?"
)
_SCRIPT = re.compile(rb"<(?:[\w-]+:)?(?:script|iframe|embed|object)\b|\son[a-z]{3,20}\s{0,9}=", re.IGNORECASE)
_SCRIPT_ADDRESS = re.compile(r"\s*".join("javascript:"), re.IGNORECASE)


def find_unshown(folder: Path, source_file: str, text: str, seen: set[str]) -> Iterator[str]:
    """As sentences. `seen` are the drawings that other pages of the book showed already."""
    fenced, prose = _split_fences(text)
    formulas = [_OPTIONS.sub("", formula).strip() for formula in fenced]
    may_hold = len(prose) > LONGEST_FORMULA and any(sign in prose for sign in ("$", "\\[", "\\(", "{math}"))
    for found in _FORMULA.finditer(prose) if may_hold else ():
        formula = next(filter(None, found.groups()))
        if found.lastgroup != "inline" or _TEX.search(formula):
            formulas.append(formula)
    for formula in (formula for formula in formulas if len(formula) >= LONGEST_FORMULA):
        yield f"a formula of {len(formula):,} characters is too long to be drawn; it is shown as it is written"
    if _DEEP.search(prose) or _find_depth(prose) > DEEPEST:
        yield f"tabs or notes are nested deeper than {DEEPEST}; they are shown one below the other"
    if _DEEP_QUOTE.search(prose):
        yield (
            f"quotes are nested deeper than {DEEPEST_QUOTE}; their words are found, and the page leaves out those below"
        )
    for src in sorted(list_files(text)) if ".svg" in text else ():
        drawing = posixpath.normpath(posixpath.join(posixpath.dirname(source_file), src))
        if drawing not in seen:
            seen.add(drawing)
            if _holds_script(folder, source_file, src):
                yield f"“{src}” holds a script or a frame; it is shown, and neither is ever run"


def _split_fences(text: str) -> tuple[list[str], str]:
    """The formulas of fences, and the text without its listings; what a directive holds is text."""
    formulas: list[str] = []
    prose: list[str] = []
    directives: list[str] = []
    # Patterns that open with a newline, here and below, are found several times as fast as `^`.
    text, at = f"\n{text}", 0
    while opening := _FENCE.search(text, at):
        mark, info = opening["mark"] or opening["colons"], (opening["info"] or opening["math"] or "").strip()
        is_formula = re.match(r"\{?math\b", info) is not None
        closes = not info and bool(directives) and mark.startswith(directives[-1])
        if closes or (info.startswith("{") and not is_formula and not info.startswith("{code")):
            if closes:
                directives.pop()
            else:
                directives.append(mark)
            prose.append(text[at : opening.end()])
            at = opening.end()
            continue
        closing = re.compile(rf"\n[ \t>]*{mark}{mark[0]}*[ \t]*$", re.MULTILINE).search(text, opening.end())
        if is_formula:
            formulas.append(text[opening.end() + 1 : closing.start() + 1 if closing else len(text)])
        prose.append(text[at : opening.start()])
        at = closing.end() if closing else len(text)
    prose.append(text[at:])
    return formulas, "\n".join(prose)


def _find_depth(prose: str) -> int:
    """How deep frames stand in each other. One named as a component and not closed may be none: `List<Item>`."""
    stack: list[str] = []
    inner = [0]
    waiting = Counter[str]()

    def leave(closed: bool) -> None:
        name = stack.pop()
        waiting[name] -= 1
        depth = inner.pop() + (closed or name[0] == ":" or name[0].islower())
        inner[-1] = max(inner[-1], depth)

    for found in _FRAME.finditer(_CODE.sub("", prose)):
        name = found["tag"] or found["colons"] or "{" + found["shortcode"]
        is_end = bool(found["end"] or found["close"]) or (found["colons"] is not None and not found["opens"])
        if not is_end and not found[0].endswith("/>"):
            stack.append(name)
            inner.append(0)
            waiting[name] += 1
        elif is_end and waiting[name]:
            while stack[-1] != name:
                leave(closed=False)
            leave(closed=True)
    while stack:
        leave(closed=False)
    return inner[0]


def _holds_script(folder: Path, source_file: str, src: str) -> bool:
    try:
        raw, kind = read_picture(folder, source_file, src)
    except NotFound:
        return False
    if kind != "image/svg+xml":
        return False
    return _SCRIPT.search(raw) is not None or _SCRIPT_ADDRESS.search(html.unescape(raw.decode("latin-1"))) is not None
