"""The generators' markup that takes whole lines: admonitions, tabs, directives, titles of listings, formulas.

One pass over the lines. A body that is indented under its marker moves left; a marker becomes its title or its label.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from askbook.book.markup.spans import LABELS, Hidden, Span
from askbook.book.markup.tags import ESM, statement_end

_PREFIX = r"(?P<prefix>[ \t]*+(?:(?:>|[-*+]|\d{1,9}[.)])(?:[ \t]++|(?=>)|$))*+)"
_FENCE = re.compile(
    rf"{_PREFIX}(?P<mark>`{{3,}}+(?=[^`\n]*+$)|~{{3,}}+|:{{3,}}+|/{{3,}}+(?=[ \t\n]|$))(?P<info>[^\n]*+)"
)
_ESM = re.compile(ESM)
_LIST_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_LINE = re.compile(
    r"(?P<material>(?:!!!|\?\?\?\+?)[ \t]++[A-Za-z])"
    r"|(?P<tab>===[!+]?[ \t]++[\"'])"
    r"|(?P<footnote>\[\^[^\]\s]{1,100}\]:)"
    r"|(?P<abbreviation>\*\[[^\]\n]{1,100}\]:)"
    r"|(?P<d2l>:(?:begin_tab:|end_tab:))"
    r"|(?P<label>\([\w:./-]+\)=[ \t]*$|:label:`[^`\n]*`[ \t]*$)"
    r"|(?P<contents>(?:\[TOC\]|\[\[_?toc_?\]\]|\[(?://|comment)\]:[ \t]*(?:#|<>)[^\n]*)[ \t]*$)"
    r"|(?P<unresolved><<<[ \t]+[@./]\S|-+8<-+(?:[ \t]|$)|\{\*[ \t]+\S+[^\n]*\*\}[ \t]*$|\{!>?[ \t]*[^\s!{}]+[ \t]*!\}[ \t]*$)"
    r"|(?P<changed>\{(?:\+\+|--|==|~~|>>)[ \t]*$|(?:\+\+|--|==|~~|<<)\}[ \t]*$)"
    r"|(?P<shortcode>\{\{<[ \t]*(?P<code>tabpane|tab|highlight)\b(?P<told>[^{}\n]*)>\}\}[ \t]*$)"
    r"|(?P<comment><!--|\{/\*|<(?P<unseen>script|style)\b)"
    r"|(?P<alert>>[ \t]?\[!(?P<kind>\w+)\][+-]?)"
    r"|(?P<math>\$\$|\\\[|\\begin\{(?P<env>[a-z]+\*?)\})"
    r"|(?P<definition>:(?:[ ]{3}|\t)\S)"
    r"|(?P<myst>%[ \t]|\+\+\+(?:[ \t]|$))",
    re.IGNORECASE,
)
_MYST = re.compile(r"^[ \t]*(?:`{3,}|:{3,})\{[\w:-]+\}|\{[\w:-]+\}`[^`\n]+`", re.MULTILINE)
_MATERIAL = re.compile(r"(?:!!!|\?\?\?\+?)[ \t]++(?P<kind>[\w-]++)[^\"\n]*+(?:\"(?P<title>[^\n]*)\")?")
_TAB = re.compile(r"===[!+]?[ \t]++([\"'])(?P<title>[^\n]*)\1")
_OPTIONS = re.compile(
    r"(?:[ \t>]*:[\w-]++:[^\n]*+(?:\n|\Z))++|[ \t>]*---[ \t]*\n(?:(?![ \t>]*---)[^\n]*\n){0,50}[ \t>]*---[ \t]*(?:\n|\Z)"
)
_API_OPTIONS = re.compile(r"(?:[ \t]{4,}[^\n]*(?:\n|\Z))+")
_CAPTION = re.compile(r"^[ \t>]*:?(?:caption|header):[ \t]*(.+)$", re.MULTILINE)
_ALT = re.compile(r"^[ \t>]*:?alt:[ \t]*(.+)$", re.MULTILINE)
_PATH = re.compile(r"(?!\w+:|//)[^\s\"'()<>\[\]{}`\\]{1,1000}")
_CONTAINER = re.compile(
    r"[ \t]*(?:\{(?P<directive>[\w:.+-]++)\}[ \t]*(?P<argument>[^\n]*)"
    r"|\{(?P<classes>[.#][^{}\n]*|[\w-]+=[^{}\n]*)\}"
    r"|(?P<name>[\w-]++)(?P<dotted>\.[\w.]+[ \t]*$)?[ \t]*(?:\[(?P<boxed>[^\n]*)\])?(?P<attributes>\{[^{}\n]*\})?[ \t]*(?:\|[ \t]*+)?(?P<rest>[^\n]*))"
)
_TITLE = re.compile(r"\b(?:title|filename|caption|label)=(?:\"(?P<d>[^\"\n]*)\"|'(?P<s>[^'\n]*)')")
_BOXED = re.compile(r"\[(?P<d>[^\[\]\n]+)\](?:[ \t]*\{[^{}\n]*\})?[ \t]*$")
_LANGUAGE = re.compile(r"[ \t]*(?P<name>(?![\w-]+=)[^\s{\[]*)")
_FOR_GENERATOR = re.compile(
    r"(?:[ \t]*(?:\{[^{}\n]*\}|\[[^\[\]\n]*\]|/[^/\n]+/|:?[\w-]+=(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s\"'{}]+|\{[^{}\n]*\})|:[\w-]+"
    r"|showLineNumbers|lineNumbers|wordWrap|twoslash|noInline|live|copy|editable))+[ \t]*"
)
_CLASS = re.compile(r"\{[ \t]*\.?(?P<name>[\w+#-]+)")
_TRAILING = re.compile(r"(?<![ \t])[ \t]*+(?:\{[^{}\n]*\}[ \t]*+)?$")
_UNSEEN_CODE = re.compile(r"[ \t]*(?://|#|<!--|/\*)[ \t]*highlight-(?:next-line|start|end)[ \t]*(?:-->|\*/)?[ \t]*$")
_RUST_HIDDEN = re.compile(r"[ \t]*#(?:[ \t][^\n]*)?$")

_CODE_NAMES = """
code code-block code-cell sourcecode prompt ipython doctest testcode jupyter-execute parsed-literal
mermaid graphviz eval-rst console highlight
"""
_CODE = frozenset(_CODE_NAMES.split())
_UNSEEN_NAMES = """
toctree tableofcontents contents bibliography index raw only currentmodule module sectionauthor meta iframe video include
literalinclude click
"""
_UNSEEN = frozenset(_UNSEEN_NAMES.split())
_FORMULA_LABEL = re.compile(r"[ \t]*\([\w:.-]+\)(?=[ \t]*(?:\n|\Z))")
_PREFIXES = {
    "versionadded": "New in version ",
    "versionchanged": "Changed in version ",
    "deprecated": "Deprecated since version ",
} | {
    name: f"{name.capitalize()}: "
    for name in ["theorem", "lemma", "proof", "corollary", "definition", "exercise", "algorithm"]
}
_BLOCKS = LABELS | {"admonition", "caption", "define", "details", "figure-caption", "html", "table-caption", "tab"}
"""What Material's `/// name | Title` may be; anything else behind three slashes is text."""
_CLASSED = frozenset(("div", "container", "class", "rst-class", "grid", "grid-item"))
_PICTURES = frozenset(("figure", "image", "figure-md", "subfigure"))
_FORMULA_MAX, _FORMULA_LINES = 20_000, 200


@dataclass(slots=True)
class _Body:
    """What an opened marker holds: lines indented to `indent` at least, or all up to the line of `mark`s."""

    indent: int = 0
    mark: str = ""
    unseen_from: int | None = None


@dataclass(slots=True)
class Blocks:
    hidden: list[Hidden] = field(default_factory=list)
    code: list[Span] = field(default_factory=list)
    """Where nothing is markup."""
    math: list[Span] = field(default_factory=list)


def _width(prefix: str) -> int:
    return len(prefix.expandtabs(4))


def read_blocks(text: str, start: int, mdx: bool) -> Blocks:
    scan = _Scan(text, mdx)
    at = start
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        if at >= scan.passed:
            scan.read_line(at, end)
        at = end + 1
    scan.close_all(len(text))
    return scan.blocks


class _Scan:
    def __init__(self, text: str, mdx: bool) -> None:
        self._text = text
        self._mdx = mdx
        self._is_myst = ("}`" in text or "`{" in text or ":{" in text) and _MYST.search(text) is not None
        self._last = {mark: text.rfind(mark) for mark in ("-->", "*/}", "</script>", "</style>")}
        self.blocks = Blocks()
        self.passed = 0
        """Lines before this place are done."""
        self._bodies: list[_Body] = []
        self._indents: list[int] = []
        """The places in `_bodies` of those that are indented."""
        self._fence: tuple[str, int, int, str] | None = None
        """The marks of the open listing, where it began, how many bodies hold it, and its language."""
        self._fence_indent = 0
        self._after_blank = True
        self._in_list = False
        self._in_code = False
        self._after_text = False
        self._line_is_hidden = False
        self._pane_is_code = False
        # What never ends costs a look ahead; when all of them have cost this much, the rest stay as they are.
        self._patience = 2 * len(text) + 10_000

    # --- lines ------------------------------------------------------------------------------------

    def read_line(self, begin: int, end: int) -> None:
        line = self._text[begin:end]
        bare = line.lstrip(" \t")
        if not bare:
            self._after_blank, self._after_text = True, False
            return
        self._line_is_hidden = False
        lead = len(line) - len(bare)
        indent = _width(line[:lead]) if lead else 0
        self._leave_bodies(indent, begin)
        column = 0
        if self._indents:
            taken = self._move_left(begin, lead)
            begin, lead = begin + taken, lead - taken
            column = 4 * len(self._indents)
        if self._fence is not None:
            self._read_code(begin, end)
        elif not self._is_indented_code(indent - column, begin, end, bare):
            self._read_markup(begin, begin + lead, end, indent)
        self._after_blank, self._after_text = False, not self._line_is_hidden

    def _leave_bodies(self, indent: int, begin: int) -> None:
        while self._indents and self._bodies[self._indents[-1]].indent > indent:
            self._close(self._indents.pop(), begin)

    def _close(self, at: int, place: int) -> None:
        """The body at this depth and all that it holds."""
        if self._fence is not None and self._fence[2] > at:
            self._end_fence(place)
        while len(self._bodies) > at:
            body = self._bodies.pop()
            while self._indents and self._indents[-1] >= len(self._bodies):
                self._indents.pop()
            if body.unseen_from is not None:
                self._hide_from(body.unseen_from, place)

    def close_all(self, end: int) -> None:
        if self._fence is not None:
            self._end_fence(end)
        if self._in_code:
            self.blocks.code[-1] = self.blocks.code[-1][0], end
        # What is never closed is no directive that hides its content.
        self._bodies = [body for body in self._bodies if body.unseen_from is None]

    def _hide_from(self, start: int, end: int) -> None:
        while self.blocks.hidden and self.blocks.hidden[-1].end > start:
            self.blocks.hidden.pop()
        self._hide(start, end)

    def _move_left(self, begin: int, lead: int) -> int:
        """Four columns for each body that the line stands in."""
        wanted, column, taken = 4 * len(self._indents), 0, 0
        while taken < lead and column < wanted:
            column += 4 - column % 4 if self._text[begin + taken] == "\t" else 1
            taken += 1
        if taken:
            self._hide(begin, begin + taken)
        return taken

    def _hide(self, start: int, end: int, filler: str = "", parsed: str | None = None) -> None:
        self.blocks.hidden.append(Hidden(start, end, filler, parsed))

    def _hide_line(self, begin: int, end: int) -> None:
        start = self._text.rfind("\n", 0, begin) + 1
        if self.blocks.hidden and self.blocks.hidden[-1].start >= start:
            self.blocks.hidden.pop()
        self._hide(start, min(end + 1, len(self._text)))
        self._line_is_hidden = True

    def _is_indented_code(self, indent: int, begin: int, end: int, bare: str) -> bool:
        if _LIST_ITEM.match(bare) and (indent < 4 or self._in_list):
            self._in_list = True
        elif self._after_blank and indent <= 0:
            self._in_list = False
        goes_on = self._in_code and indent >= 4
        if not goes_on and (self._mdx or self._in_list or indent < 4 or not self._after_blank):
            self._in_code = False
            return False
        if goes_on:
            self.blocks.code[-1] = self.blocks.code[-1][0], end
        else:
            self.blocks.code.append((begin, end))
        self._in_code = True
        return True

    # --- listings and directives ------------------------------------------------------------------

    def _read_markup(self, begin: int, at: int, end: int, indent: int) -> None:
        if self._mdx and at == begin and _ESM.match(self._text, at):
            # What an import or export holds is a program, whatever its lines look like.
            self.passed = statement_end(self._text, at) or 0
            return
        if fence := _FENCE.match(self._text, begin, end):
            if fence["mark"][0] in ":/":
                self._read_colons(fence, end)
            else:
                self._read_fence(fence, end)
        elif found := _LINE.match(self._text, at, end):
            self._read_line_markup(found, begin, at, end, indent)

    def _closes(self, mark: str) -> int | None:
        """The depth of the body that a line of these marks closes; one left open inside it closes with it."""
        depth = len(self._bodies)
        while depth and (own := self._bodies[depth - 1].mark) and own[0] == mark[0] and len(own) <= len(mark):
            depth -= 1
            if len(own) == len(mark):
                break
        return depth if depth < len(self._bodies) else None

    def _close_with(self, mark: str, begin: int, end: int) -> bool:
        depth = self._closes(mark)
        if depth is None:
            return False
        body = self._bodies[depth]
        if body.unseen_from is not None:
            self._close(depth, min(end + 1, len(self._text)))
            return True
        self._close(depth, begin)
        self._hide_line(begin, end)
        return True

    def _read_colons(self, fence: re.Match[str], end: int) -> None:
        mark, info, begin = fence["mark"], fence["info"].strip(), fence.start("mark")
        if not info:
            self._close_with(mark, begin, end)
            return
        found = _CONTAINER.match(self._text, fence.start("info"), end)
        if found is None or (mark[0] == "/" and (found["name"] or "").lower() not in _BLOCKS):
            return
        if found["dotted"]:
            self._hide(begin, found.start("name"), "`")
            self._hide(found.end("dotted"), end, "`")
            if options := _API_OPTIONS.match(self._text, end + 1):
                self._hide(*options.span())
                self.passed = options.end()
        elif found["directive"]:
            self._read_directive(found, mark, begin, end)
        else:
            self._bodies.append(_Body(mark=mark))
            self._read_named(found, begin, end)
            if mark[0] == "/" and (options := _API_OPTIONS.match(self._text, end + 1)):
                self._hide(*options.span())
                self.passed = options.end()

    def _read_named(self, found: re.Match[str], begin: int, end: int) -> None:
        """`:::tip[Title]`, `::: info Title`, `::: {.callout-note title="Title"}`."""
        kind = (found["name"] or "").lower()
        if found["classes"]:
            kinds = re.findall(r"\.(?:callout-)?([\w-]+)", found["classes"])
            kind = next((one for one in kinds if one in LABELS), "")
        title = next((found.span(name) for name in ("boxed", "rest") if (found[name] or "").strip()), None)
        if title and found["rest"] and title == found.span("rest") and (tail := _TRAILING.search(self._text, *title)):
            title = title[0], tail.start()
        if title is None or title[0] == title[1]:
            attribute = _TITLE.search(self._text, begin, end)
            title = next((attribute.span(n) for n in "ds" if attribute[n] is not None), None) if attribute else None
        self._label(begin, end, title, kind if kind in LABELS else "")

    def _read_directive(self, found: re.Match[str], mark: str, begin: int, end: int) -> None:
        """MyST: ```{note} Title, :::{figure} picture.png."""
        name = found["directive"].lower().rpartition(":")[2]
        options = _OPTIONS.match(self._text, end + 1) if end < len(self._text) else None
        body = _Body(mark=mark)
        self._bodies.append(body)
        if name in ("only", "raw") and "html" in found["argument"]:
            self._hide_line(begin, end)
            return
        if name in _UNSEEN or name.startswith("auto"):
            body.unseen_from = self._text.rfind("\n", 0, begin) + 1
            return
        argument = found.span("argument") if found["argument"].strip() else None
        if name in ("figure", "image") and self._show_picture(begin, end, found["argument"].strip(), options):
            return
        if name in _PICTURES or name in _CLASSED or name.startswith("solution") or name.endswith(("-start", "-end")):
            # A path, a label or a class, which no reader sees.
            argument, name = None, name.removesuffix("-start")
        caption = _ALT if name == "image" else _CAPTION
        seen = caption.search(self._text, *options.span()) if options and argument is None else None
        if seen:
            self._hide(begin, options.start() if options else end + 1)
            self._hide_options(options, seen)
            return
        self._label(begin, end, argument, name if name in LABELS else "", _PREFIXES.get(name, ""))
        if options:
            self._hide_options(options, None)

    def _show_picture(self, begin: int, end: int, path: str, options: re.Match[str] | None) -> bool:
        """As Markdown has it, on the line of its words where it has some; what a figure holds stands below it."""
        before = "\n" if self._after_text else ""
        alt = _ALT.search(self._text, *options.span()) if options else None
        if not _PATH.fullmatch(path) or (alt and any(sign in alt[1] for sign in "[]")):
            return False
        if options is None or alt is None:
            self._hide(begin, end, f"{before}![]({path})\n", f"![]({path})")
            self._hide_options(options, None)
        else:
            opens_item = self._text[self._text.rfind("\n", 0, begin) + 1 : begin].strip(" \t>")
            (self._hide if opens_item else self._hide_line)(begin, end)
            self._hide(alt.end() - len(alt[0].lstrip(" \t>")), alt.start(1), f"{before}![", "![")
            self._hide(alt.end(1), alt.end(1), f"]({path})\n", f"]({path})")
            for start, stop in ((options.start(), alt.start()), (alt.end() + 1, options.end())):
                if start < stop:
                    self._hide(start, stop)
            self.passed = options.end()
        self._line_is_hidden = True
        return True

    def _hide_options(self, options: re.Match[str] | None, seen: re.Match[str] | None) -> None:
        if options is None:
            return
        self.passed = options.end()
        if seen is None:
            self._hide(*options.span())
            return
        self._hide(options.start(), seen.start(1), "**")
        self._hide(seen.end(1), seen.end(1), "**\n", "**")
        if seen.end() + 1 < options.end():
            self._hide(seen.end() + 1, options.end())

    def _read_fence(self, fence: re.Match[str], end: int) -> None:
        mark, begin = fence["mark"], fence.start("mark")
        info = fence["info"].strip()
        if not info and self._close_with(mark, begin, end):
            return
        self._fence_indent = _width(fence["prefix"])
        if info == "mdx-code-block":
            self._bodies.append(_Body(mark=mark))
            self._hide_line(begin, end)
            return
        found = _CONTAINER.match(self._text, fence.start("info"), end) if info.startswith("{") else None
        directive = found["directive"].lower().rpartition(":")[2] if found and found["directive"] else None
        if found and directive == "math":
            self._open_formula(mark, begin, end)
        elif found and directive and directive not in _CODE and not self._is_language(found):
            self._read_directive(found, mark, begin, end)
        else:
            language = self._read_info(fence, found, directive, end)
            self._fence = mark, begin, len(self._bodies), language

    def _is_language(self, found: re.Match[str]) -> bool:
        """R Markdown has ```{r}."""
        return found["directive"].lower() in ("r", "python", "julia", "bash", "sql", "js", "ojs")

    def _read_info(self, fence: re.Match[str], found: re.Match[str] | None, directive: str | None, end: int) -> str:
        """What a listing's first line says beyond its language is for the generator; its title is for readers."""
        text, info = self._text, fence.start("info")
        if not text[info:end].strip():
            return ""
        options = _OPTIONS.match(text, end + 1) if found and found["directive"] and end < len(text) else None
        if found and found["directive"] in _CODE:
            word = _LANGUAGE.match(text, found.start("argument"), end)
        elif text[info:end].lstrip().startswith("{"):
            word = _CLASS.match(text, info + len(text[info:end]) - len(text[info:end].lstrip()), end)
        else:
            word = _LANGUAGE.match(text, info, end)
        language = word.span("name") if word else (end, end)
        title = _TITLE.search(text, language[1], end) or _BOXED.search(text, language[1], end)
        named = title and (title["d"] if title["d"] is not None else title["s"])
        if options and (caption := _CAPTION.search(text, *options.span())):
            named = caption[1]
        if named and not fence["prefix"].strip():
            indent = " " * len(fence["prefix"])
            self._hide(
                fence.start("mark"), fence.end("mark"), f"**{named.strip()}**\n\n{indent}{fence['mark']}", fence["mark"]
            )
        if text[info : language[0]].strip():
            self._hide(info, language[0])
        if _FOR_GENERATOR.fullmatch(text, language[1], end):
            self._hide(language[1], end)
        if options:
            self._hide_options(options, None)
        return text[slice(*language)].lower()

    def _read_code(self, begin: int, end: int) -> None:
        assert self._fence is not None
        mark, language = self._fence[0], self._fence[3]
        closing = _FENCE.match(self._text, begin, end)
        # One that stands four columns further in belongs to a listing that is shown in this one.
        is_own = closing and closing["mark"].startswith(mark) and _width(closing["prefix"]) < self._fence_indent + 4
        if closing and is_own and not closing["info"].strip():
            self._end_fence(end)
        elif _UNSEEN_CODE.match(self._text, begin, end) or (
            language.startswith("rust") and _RUST_HIDDEN.match(self._text, begin, end)
        ):
            self._hide_line(begin, end)

    def _end_fence(self, end: int) -> None:
        assert self._fence is not None
        self.blocks.code.append((self._fence[1], end))
        self._fence = None

    def _open_formula(self, mark: str, begin: int, end: int) -> None:
        """```{math} reads as $$."""
        closing = re.compile(rf"^[ \t>]*{re.escape(mark)}[ \t]*$", re.MULTILINE)
        found = closing.search(self._text, end, end + _FORMULA_MAX)
        if found is None:
            self._fence = mark, begin, len(self._bodies), ""
            return
        self._hide(begin, end, "$$")
        options = _OPTIONS.match(self._text, end + 1)
        if options and options.end() <= found.start():
            self._hide(*options.span())
        self._hide(found.end() - len(found[0].lstrip(" \t>")), found.end(), "$$")
        self._pass_formula(begin, found.end())

    # --- lines that mark something ----------------------------------------------------------------

    def _read_line_markup(self, found: re.Match[str], begin: int, at: int, end: int, indent: int) -> None:
        match found.lastgroup:
            case "material" if whole := _MATERIAL.match(self._text, at, end):
                title = whole.span("title") if whole["title"] else None
                kind = whole["kind"].lower() if whole["title"] is None else ""
                self._indent_body(indent)
                self._label(at, end, title, kind)
            case "tab" if whole := _TAB.match(self._text, at, end):
                self._indent_body(indent)
                self._label(at, end, whole.span("title"), "")
            case "footnote":
                name = self._text[at + 2 : found.end() - 2]
                self._indent_body(indent)
                self._hide(at, found.end(), f"Footnote {name}:" if name.isdigit() else "Footnote:")
            case "abbreviation":
                self._hide(at, at + 2)
                self._hide(found.end() - 2, found.end() - 1)
            case "d2l":
                name = re.compile(r":begin_tab:`([^`\n]*)`").match(self._text, at, end)
                self._label(at, end, name.span(1) if name else None, "")
            case "label" | "contents" | "unresolved" | "changed":
                self._hide_line(begin, end)
            case "shortcode" | "code" | "told":
                self._read_shortcode(found, at, end)
            case "comment" | "unseen":
                self._hide_comment(found, begin, at)
            case "alert" | "kind":
                self._read_alert(found, end)
            case "math" | "env":
                self._read_formula(found, at)
            case "definition":
                self._indent_body(indent)
            case "myst" if self._is_myst:
                self._hide_line(begin, end)
            case _:
                pass

    def _read_shortcode(self, found: re.Match[str], at: int, end: int) -> None:
        """Docsy shows the content of a tab as a listing, unless its pane says that it is text."""
        name, told = found["code"], found["told"]
        if name == "tabpane":
            self._pane_is_code = not re.search(r"text=\"?true", told)
        if told.rstrip().endswith("/") or name == "tabpane" or (name == "tab" and not self._pane_is_code):
            return
        closing = re.compile(rf"^[ \t]*\{{\{{<[ \t]*/[ \t]*{name}[ \t]*>\}}\}}[ \t]*$", re.MULTILINE)
        stop = closing.search(self._text, end, end + _FORMULA_MAX) if self._patience > 0 else None
        self._patience -= 0 if stop else _FORMULA_MAX
        if stop is None or "```" in self._text[end : stop.start()]:
            return
        title = re.search(r"\b(?:header|title)=\"([^\"\n]+)\"", told)
        language = re.search(r"\blang=\"?([\w+-]+)" if name == "tab" else r"^[ \t]*([\w+-]+)", told)
        fence = f"```{language[1] if language else ''}"
        self._hide(at, end, f"**{title[1]}**\n\n{fence}" if title else fence, fence)
        self._hide(*stop.span(), "```", "```")
        self.blocks.code.append((end, stop.start()))
        self.passed = stop.end()

    def _indent_body(self, indent: int) -> None:
        self._indents.append(len(self._bodies))
        self._bodies.append(_Body(indent=indent + 4))

    def _label(self, begin: int, end: int, title: Span | None, kind: str, prefix: str = "") -> None:
        """A marker's line as readers see it: its title, else what it is; a paragraph of its own."""
        before = "\n" if self._after_text else ""
        if title is not None and self._text[slice(*title)].strip():
            bold = "" if re.search(r"[*_`$\[]", self._text[slice(*title)]) else "**"
            self._hide(begin, title[0], before + bold + prefix, bold)
            self._hide(title[1], end, f"{bold}\n", bold)
        elif kind:
            words = "See also" if kind == "seealso" else kind.replace("-", " ").capitalize()
            self._hide(begin, end, f"{before}**{words}**\n", f"**{words}**")
        else:
            self._hide_line(begin, end)
        # A blank line stands below it already.
        self._line_is_hidden = True

    def _read_alert(self, found: re.Match[str], end: int) -> None:
        """GitHub's `> [!NOTE]`, and with a title, as others have it."""
        begin = self._text.find("[", found.start())
        title = self._text[found.end() : end]
        if title.strip():
            self._hide(begin, end - len(title.lstrip()), "**")
            self._hide(end, end, "**\n>", "**")
        else:
            self._hide(begin, end, f"**{found['kind'].capitalize()}**\n>", f"**{found['kind'].capitalize()}**")

    def _hide_comment(self, found: re.Match[str], begin: int, at: int) -> None:
        opening = found[0].lower()
        closing = "-->" if opening == "<!--" else "*/}" if opening == "{/*" else f"</{found['unseen'].lower()}>"
        if opening == "{/*" and not self._mdx:
            return
        if at < self._last[closing]:
            stop = self._text.find(closing, at) + len(closing)
            self._hide(at, stop)
            # What stands behind the comment on its last line is read as that line's beginning.
            line_end = self._text.find("\n", stop)
            line_end = len(self._text) if line_end < 0 else line_end
            self.passed = line_end
            if not self._text[stop:line_end].strip():
                self.blocks.hidden.pop()
                self._hide(
                    at if self._text[begin:at].strip() else self._text.rfind("\n", 0, at) + 1,
                    min(line_end + 1, len(self._text)),
                )

    def _read_formula(self, found: re.Match[str], at: int) -> None:
        """A formula on lines of its own is one paragraph, blank lines and all."""
        closing = {"$$": "$$", "\\[": "\\]"}.get(found[0], f"\\end{{{found['env']}}}")
        stop = self._text.find(closing, found.end(), found.end() + _FORMULA_MAX)
        if stop >= 0 and self._text.count("\n", at, stop) <= _FORMULA_LINES:
            if label := _FORMULA_LABEL.match(self._text, stop + len(closing)):
                self._hide(*label.span())
            self._pass_formula(at, stop + len(closing))

    def _pass_formula(self, start: int, end: int) -> None:
        if "\n" in self._text[start:end]:
            line_end = self._text.find("\n", end)
            self._note_indents(start, end)
            self.blocks.math.append((start, end))
            self.passed = len(self._text) if line_end < 0 else line_end

    def _note_indents(self, start: int, end: int) -> None:
        """The lines of a formula move left with the body that they stand in."""
        at = self._text.find("\n", start, end) + 1
        while self._indents and at > 0:
            line = self._text[at : at + 4 * len(self._indents)]
            self._move_left(at, len(line) - len(line.lstrip(" \t")))
            at = self._text.find("\n", at, end) + 1
