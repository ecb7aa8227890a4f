"""The generators' markup that takes whole lines: admonitions, tabs, directives, titles of listings, formulas.

One pass over the lines. A body that is indented under its marker moves left; a marker becomes its title or its label.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile

from askbook.book.markup.spans import LABELS, Hidden, Span, names, to_target
from askbook.book.markup.tags import ESM, statement_end

_PREFIX = r"(?P<prefix>[ \t]*+(?:(?:>|[-*+]|\d{1,9}[.)])(?:[ \t]++|(?=>)|$))*+)"
_FENCE = re.compile(
    rf"{_PREFIX}(?P<mark>`{{3,}}+(?=[^`\n]*+$)|~{{3,}}+|:{{3,}}+|/{{3,}}+(?=[ \t\n]|$))(?P<info>[^\n]*+)"
)
_ESM = re.compile(ESM)
_LIST_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_LINE = re.compile(
    r"(?P<material>(?:!!!|\?\?\?\+?)[ \t]++[A-Za-z]|\?\?\?\+?[ \t]++\"[^\n]*\"[ \t]*$)"
    r"|(?P<tab>===[!+]?[ \t]++[\"'])"
    r"|(?P<footnote>\[\^[^\]\s]{1,100}\]:)"
    r"|(?P<defined>\[[^\[\]^\n][^\[\]\n]{0,200}\]:)"
    r"|(?P<abbreviation>\*\[[^\]\n]{1,100}\]:)"
    r"|(?P<d2l>:(?:begin_tab:|end_tab:))"
    r"|(?P<label>\([\w:./-]+\)=[ \t]*$|:label:`[^`\n]*`[ \t]*$)"
    r"|(?P<hook>#{1,6}[ \t]+<!--[ \t]*\w+:\w+[ \t]+(?P<words>[^\n]*?)[ \t]*-->[ \t]*$)"
    r"|(?P<contents>(?:#{1,6}(?:[ \t]+<br[ \t]*/?>)*|\[TOC\]|\[\[_?toc_?\]\]"
    r"|\[(?://|comment)\]:[ \t]*(?:#|<>)[^\n]*)[ \t]*$)"
    r"|(?P<unresolved><<<[ \t]+[@./]\S|-+8<-+(?:[ \t]|$)|\{\*[ \t]+\S+[^\n]*\*\}[ \t]*$"
    r"|\{!>?[ \t]*[^\s!{}]+[ \t]*!\}[ \t]*$|!!![ \t]*include\([^()\n]*\)[ \t]*!!![ \t]*$)"
    r"|(?P<changed>\{(?:\+\+|--|==|~~|>>)[ \t]*$|(?:\+\+|--|==|~~|<<)\}[ \t]*$)"
    r"|(?P<shortcode>\{\{<[ \t]*(?P<code>tabpane|tab|highlight)\b(?P<told>[^{}\n]*)>\}\}[ \t]*$)"
    r"|(?P<comment><!--|\{/\*|<(?P<unseen>script|style)\b)"
    r"|(?P<pre>(?:<[a-z][^<>\n]*+>[ \t]*+)*?<(?P<raw>pre|textarea)\b[^<>\n]*+>(?:</?(?:code|span)\b[^<>\n]*+>)*+)"
    r"|(?P<box>(?:<(?P<component>[A-Z]\w*)\b[^<>\n]*(?<!/)>"
    r"|\{(?:\{[<%]|%)[ \t]*(?P<hint>\w+)\b[^{}\n]*[>%]\}\}?)[ \t]*$)"
    r"|(?P<alert>>[ \t]?\[!(?P<kind>\w+)\][+-]?)"
    r"|(?P<math>(?:>[ \t]*+)*+(?P<sign>\$\$|\\\[|\\begin\{(?P<env>[a-z]+\*?)\}))"
    r"|(?P<definition>:(?:[ ]{1,3}|\t)\S)"
    r"|(?P<myst>%|\+\+\+(?:[ \t]|$))",
    re.IGNORECASE,
)
_DEFINED = re.compile(
    r"\[(?P<name>[^\[\]\n]+)\]:[ \t]*(?:\n[ \t]*)?(?P<target><[^<>\n]*>|(?![<>])(?:\{\{[<%][^{}\n]*[%>]\}\}|\S)++)"
    r"(?:[ \t]*\n?[ \t]+(?:\"[^\"\n]*\"|'[^'\n]*'|\([^()\n]*\)))?[ \t]*$",
    re.MULTILINE,
)
_REF = re.compile(r"\{\{[<%]\s*(?:rel)?ref\s+\"?(?P<page>[^\"{}\s]+)\"?\s*[%>]\}\}")
_MYST = re.compile(r"^[ \t]*(?:`{3,}|:{3,})\{[\w:-]+\}|\{[\w:-]+\}`[^`\n]+`", re.MULTILINE)
_MATERIAL = re.compile(r"(?:!!!|\?\?\?\+?)[ \t]++(?P<kind>[\w-]*+)[^\"\n]*+(?:\"(?P<title>[^\n]*)\")?")
_TAB = re.compile(r"===[!+]?[ \t]++([\"'])(?P<title>[^\n]*)\1")
_OPTIONS = re.compile(
    r"(?:[ \t>]*:[\w-]++:[^\n]*+(?:\n|\Z))++"
    r"|[ \t>]*---[ \t]*\n(?:(?![ \t>]*---)[^\n]*\n){0,50}[ \t>]*---[ \t]*(?:\n|\Z)"
)
_API_OPTIONS = re.compile(r"(?:[ \t]{4,}[^\n]*(?:\n|\Z))+")
_CAPTION = re.compile(r"^[ \t>]*:?(?:caption|header):[ \t]*(.+)$", re.MULTILINE)
_ALT = re.compile(r"^[ \t>]*:?alt:[ \t]*(.+)$", re.MULTILINE)
_PATH = re.compile(r"(?!\w+:|//)[^\n\"'<>\[\]{}`\\]{1,1000}")
_CONTAINER = re.compile(
    r"[ \t]*(?:\{(?P<directive>[\w:.+-]++)\}[ \t]*(?P<argument>[^\n]*)"
    r"|\{(?P<classes>[.#][^{}\n]*|[\w-]+=[^{}\n]*)\}"
    r"|(?P<name>[\w-]++)(?P<dotted>\.[\w.]+[ \t]*$)?[ \t]*(?:\[(?P<boxed>[^\n]*)\])?"
    r"(?P<attributes>\{[^{}\n]*\})?[ \t]*(?:\|[ \t]*+)?(?P<rest>[^\n]*))"
)
_TITLE = re.compile(r"\b(?:title|filename|caption|label)=(?:\"(?P<d>[^\"\n]*)\"|'(?P<s>[^'\n]*)')")
_BOXED = re.compile(r"\[(?P<d>[^\[\]\n]+)\](?:[ \t]*\{[^{}\n]*\})?[ \t]*$")
_LANGUAGE = re.compile(r"[ \t]*(?P<name>(?![\w-]+=)[^\s{\[]*)")
_FOR_GENERATOR = re.compile(
    r"(?:[ \t]*(?:\{[^{}\n]*\}|\[[^\[\]\n]*\]|/[^/\n]+/"
    r"|:?[\w-]+=(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s\"'{}]+|\{[^{}\n]*\})|:[\w-]+"
    r"|showLineNumbers|lineNumbers|wordWrap|twoslash|noInline|live|copy|editable))+[ \t]*"
)
_CLASS = re.compile(r"\{[ \t]*\.?(?P<name>[\w+#-]+)")
_TRAILING = re.compile(r"(?<![ \t])[ \t]*+(?:\{[^{}\n]*\}[ \t]*+)?$")
_ADMONISH = re.compile(
    r"[ \t]*+admonish(?:[ \t]++(?![\w-]++=)(?P<kind>[\w-]++)[\w.-]*+)?+"
    r"(?:[ \t]*+(?:title=)?\"(?P<title>(?:[^\"\\\n]|\\.)*+)\"|[ \t]++title='(?P<own>[^'\n]*+)'"
    r"|[ \t]++\w++=(?:\"(?:[^\"\\\n]|\\.)*+\"|'[^'\n]*+'|[^\s\"']++))*+[ \t]*+"
)
"""```admonish warning.big "Title"`, of a program that makes mdBook's pages."""
_TAGS = re.compile(r"^[ \t>]*:?tags:[ \t]*(?:\[[^\]]*\]|[^\n]*(?:\n[ \t>]*-[ \t][^\n]*)*)", re.MULTILINE)
_REMOVED = re.compile(r"(?<![\w-])remove[-_](?:cell|input)(?![\w-])")
_RST_LINE = re.compile(
    r"^[ \t]*(?:\.\.[ \t]+(?P<name>[\w:-]+)::[ \t]*(?P<argument>[^\n]*?)|(?P<comment>\.\.(?:[ \t][^\n]*)?)"
    r"|(?P<option>:[\w-]+:[^`\n]*)|(?P<words>[^\s.:][^\n]*|[.:][^\n]+))[ \t]*$",
    re.MULTILINE,
)
_UNSEEN_CODE = re.compile(r"[ \t]*(?://|#|<!--|/\*)[ \t]*highlight-(?:next-line|start|end)[ \t]*(?:-->|\*/)?[ \t]*$")
_REMARK = re.compile(r"(?:#|//|--|;|/\*|<!--)[ \t]*\(\d{1,3}\)!")
_HTML_OPENS = re.compile(
    r"</?(?P<name>address|article|aside|blockquote|center|dd|details|dialog|div|dl|dt|fieldset|figcaption|figure|footer|form"
    r"|h[1-6]|header|li|main|nav|ol|p|section|summary|table|tbody|td|tfoot|th|thead|tr|ul)(?=[\s/>]|$)",
    re.IGNORECASE,
)
# A comment that nothing closes is looked through once: none goes on past the next that opens.
_OF_HTML = re.compile(
    r"<!--(?:[^<-]|-(?!->)|<(?!!--))*+-->|</?(?P<name>[A-Za-z][\w-]*+)[^<>]*+>|(?P<sign>&(?:\w{2,30}|#\w{2,8});)"
)
_HTML_LANGUAGE = re.compile(r"\b(?:lang(?:uage)?-|lang=[\"']?|data-lang=[\"']?)(?P<name>[\w+#-]+)")
_ALONE = re.compile(r"<[^<>]*+>?[ \t]*+")
_UNCLOSED = names("dd dt li p tbody td tfoot th thead tr")
"""Their end may be left out."""
_HUGO_TAB = re.compile(r"\{\{[<%][ \t]*(?P<ends>/?)[ \t]*tab\b[^{}\n]*+(?<!/[>%])(?<!/ [>%])\}\}")
_TAB_ENDS = re.compile(r"(?:[ \t]*\{\{[<%][ \t]*/[ \t]*tab(?:pane|s)?[ \t]*[>%]\}\})+[ \t]*$")
_RUST_HIDDEN = re.compile(r"[ \t]*#(?:[ \t][^\n]*)?$")

_CODE = names(
    """code code-block code-cell sourcecode prompt ipython doctest testcode jupyter-execute parsed-literal mermaid
    graphviz eval-rst console highlight"""
)
_CODE_OF_R = names("r python julia bash sql js ojs")
_UNSEEN = names(
    """toctree tableofcontents contents bibliography index raw only currentmodule module sectionauthor meta iframe video
    include literalinclude click"""
)
_RST_OBJECTS = names("attribute class data exception function method property")
_FORMULA_LABEL = re.compile(r"[ \t]*\((?P<name>[\w:./-]+)\)(?=[ \t]*(?:\n|\Z))")
_LABEL = re.compile(r"^[ \t>]*:?label:[ \t]*(?P<name>\S+)", re.MULTILINE)
_COUNTED = re.compile(r"\\(?:tag\b|begin\{(?:align|equation|gather|multline|eqnarray|alignat)\})")
_PREFIXES = {
    "versionadded": "New in version ",
    "versionchanged": "Changed in version ",
    "deprecated": "Deprecated since version ",
} | {name: f"{name.capitalize()}: " for name in names("theorem lemma proof corollary definition exercise algorithm")}
_BLOCKS = LABELS | names("admonition caption define details figure-caption html table-caption tab")
"""What Material's `/// name | Title` may be without a word in its configuration."""
_CLASSED = names("div container class rst-class grid grid-item")
_FRAMED = LABELS | {"admonition", "details"}
_FRAMED_TAGS = names("note tip info warning caution danger important callout aside admonition alert hint notice")
FRAMES_MOST = 2
_PICTURES = names("figure image figure-md subfigure")
_NO_FORMULA = re.compile(r"\n[ \t>]*+(?:#{1,6}[ \t]|`{3}|~{3})")
_FORMULA_MAX, _FORMULA_LINES = 20_000, 200


@dataclass(slots=True)
class _Body:
    """What an opened marker holds: lines indented to `indent` at least, all up to a line of `mark`s, or to `until`."""

    indent: int = 0
    mark: str = ""
    unseen_from: int | None = None
    until: int | None = None
    width: int = 0
    """Columns that its lines move left by."""
    column: int = 0
    """Where its marker stands in its line; there each line of a frame has its `> `."""
    framed: bool = False


def _width(prefix: str) -> int:
    return len(prefix.expandtabs(4))


def _closing(mark: str) -> str:
    return rf"^[ \t>]*{re.escape(mark)}[ \t]*$"


def _is_rst_unseen(name: str) -> bool:
    return name in _UNSEEN or name.startswith("auto")


def read_blocks(text: str, start: int, mdx: bool, titles: Mapping[str, str]) -> Blocks:
    """`titles`: what references read as; a formula that is referred to has its number there."""
    blocks = Blocks(text, mdx, titles)
    at = start
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        if at >= blocks.passed:
            blocks.read_line(at, end)
        at = end + 1
    blocks.close_all(len(text))
    return blocks


class Blocks:
    """What is read line by line, and the bodies that are open at the line that is read."""

    def __init__(self, text: str, mdx: bool, titles: Mapping[str, str]) -> None:
        self._text, self._titles = text, titles
        self._mdx = mdx
        self._is_myst = ("}`" in text or "`{" in text or ":{" in text) and _MYST.search(text) is not None
        self._last = {mark: text.rfind(mark) for mark in ("-->", "*/}", "</script>", "</style>")}
        self.hidden: list[Hidden] = []
        self.code: list[Span] = []
        """Where nothing is markup."""
        self.math: list[Span] = []
        self.parsed: list[Hidden] = []
        """What the parser is given for the lines around a listing of HTML."""
        self.targets: dict[str, str] = {}
        """Where links by reference lead."""
        self.leads: dict[int, str] = {}
        """Of lines in a frame, by their beginnings: what stands before their words."""
        self.passed = 0
        """Lines before this place are done."""
        self._bodies: list[_Body] = []
        self._indents: list[int] = []
        """The places in `_bodies` of those that are indented."""
        self._dressed: list[int] = []
        """The places in `_bodies` of those that are indented or framed."""
        self._frames = 0
        self._blanks: list[int] = []
        """Blank lines in a frame that may be its last."""
        self._in_html = False
        self._html_end = 0
        """Where the element ends that is open, while its content is HTML."""
        self._html_margin = 0
        """How far in its tag stands; its content, farther."""
        self._fence: tuple[str, int, int, str] | None = None
        """The marks of the open listing, where it began, how many bodies hold it, and its language."""
        self._fence_indent = 0
        self._pre: tuple[int, int, str, set[str]] | None = None
        """Of a listing of HTML, where its end tags begin and end, what stands before it, and what tags it closes."""
        self._after_blank = True
        self._in_list = False
        self._in_code = False
        self._after_text = False
        self._line_is_hidden = False
        self._pane_is_code = False
        self._tabs_open = 0
        """Those of Hugo."""
        self._slashes_end: dict[str, int] = {}
        """Where the next line of these marks alone ends."""
        # What never ends costs a look ahead; when all of them have cost this much, the rest stay as they are.
        self._patience = self._html_patience = 2 * len(text) + 10_000

    # --- lines ------------------------------------------------------------------------------------

    def read_line(self, begin: int, end: int) -> None:
        line = self._text[begin:end]
        bare = line.lstrip(" \t")
        if not bare:
            self._after_blank, self._after_text, self._in_html = True, False, False
            if self._frames:
                self._blanks.append(begin)
            return
        self._line_is_hidden = False
        lead = len(line) - len(bare)
        indent = _width(line[:lead]) if lead else 0
        frames = self._frames
        while self._indents and self._bodies[self._indents[-1]].indent > indent:
            self._close(self._indents[-1], begin)
        if frames > self._frames and not self._after_blank and not _LIST_ITEM.match(bare):
            # Without a blank line its words would belong to the frame above.
            self._hide(begin, begin, "\n")
        depth = len(self._bodies)
        if self._bodies and self._bodies[-1].until == begin:
            self._close(depth - 1, begin)
            self._end_frame(begin, end)
        else:
            column = 4 * len(self._indents)
            if self._dressed:
                taken = self._move_left(begin, lead)
                begin, lead = begin + taken, lead - taken
            if self._fence is not None:
                self._read_code(begin, end)
            elif not self._is_indented_code(indent - column, begin, end, bare):
                self._read_markup(begin, begin + lead, end, indent)
        if self._blanks:
            lead = self._lead_of(min(depth, len(self._bodies))).rstrip()
            for blank in self._blanks if lead else ():
                self._hide(blank, blank, lead, lead)
                self.leads[blank] = lead
            self._blanks.clear()
        self._after_blank, self._after_text = False, not self._line_is_hidden

    def _lead_of(self, depth: int) -> str:
        """What stands before the words in the bodies up to this depth, up to the last frame."""
        lead, removed = "", 0
        for at in self._dressed:
            body = self._bodies[at] if at < depth else None
            if body and body.framed:
                lead = lead.ljust(body.column - removed + lead.count(">") * 2) + "> "
            removed += body.width if body else 0
        return lead

    def _end_frame(self, begin: int, end: int) -> None:
        """Its last line is gone, or blank where words follow that are no part of it."""
        after = self._text[end + 1 : end + 200].split("\n", 1)[0].strip(" \t:>")
        self._hide_line(begin, end)
        if after and not _LIST_ITEM.match(after):
            self.hidden.pop()
            start = self._text.rfind("\n", 0, begin) + 1
            lead = self._lead_of(len(self._bodies)).rstrip()
            self._hide(start, end, lead, lead)

    def _close(self, at: int, place: int) -> None:
        """The body at this depth and all that it holds."""
        if self._fence is not None and self._fence[2] > at:
            self._end_fence(place)
        while len(self._bodies) > at:
            body = self._bodies.pop()
            for places in (self._indents, self._dressed):
                while places and places[-1] >= len(self._bodies):
                    places.pop()
            self._frames -= body.framed
            if body.unseen_from is not None:
                while self.hidden and self.hidden[-1].end > body.unseen_from:
                    self.hidden.pop()
                self._hide(body.unseen_from, place)

    def close_all(self, end: int) -> None:
        if self._fence is not None:
            self._end_fence(end)
        if self._in_code:
            self.code[-1] = self.code[-1][0], end

    def _move_left(self, begin: int, lead: int) -> int:
        """Four columns for each indented body that the line stands in; at a frame's own column stands its sign."""
        at, column, taken = begin, 0, 0

        def move_to(wanted: int) -> None:
            nonlocal at, column
            while at < begin + lead and column < wanted:
                column += 4 - column % 4 if self._text[at] == "\t" else 1
                at += 1

        for place in self._dressed:
            body = self._bodies[place]
            move_to(body.column)
            start = at
            move_to(body.column + body.width)
            taken += at - start
            if body.framed or start < at:
                self._hide(start, at, *(("> ", "> ") if body.framed else ()))
        if self._frames:
            self.leads[begin] = self._lead_of(len(self._bodies))
        return taken

    def _lead(self, begin: int) -> str:
        """What is shown before this place on its line, as the next line has it."""
        at = self._text.rfind("\n", 0, begin) + 1
        own = [*takewhile(lambda hidden: hidden.start >= at, reversed(self.hidden))]
        lead = ""
        for hidden in reversed(own):
            lead, at = f"{lead}{self._text[at : hidden.start]}{hidden.filler}".rpartition("\n")[2], hidden.end
        return re.sub(r"[^>\s]", " ", lead + self._text[at:begin])

    def _frame(self, body: _Body) -> bool:
        """Frames in frames are not shown without an end."""
        body.framed = self._frames < FRAMES_MOST
        self._frames += body.framed
        if body.framed and not body.indent:
            self._dressed.append(len(self._bodies) - 1)
        return body.framed

    def _hide(self, start: int, end: int, filler: str = "", parsed: str | None = None) -> None:
        self.hidden.append(Hidden(start, end, filler, parsed))

    def _hide_line(self, begin: int, end: int) -> None:
        start = self._text.rfind("\n", 0, begin) + 1
        while self.hidden and self.hidden[-1].start >= start:
            self.hidden.pop()
        self._hide(start, min(end + 1, len(self._text)))
        self._line_is_hidden = True

    def _is_indented_code(self, indent: int, begin: int, end: int, bare: str) -> bool:
        opens = _HTML_OPENS.match(bare) if not self._mdx and indent < 4 else None
        is_tag = self._in_html or opens is not None or bare.startswith("<")
        if begin < self._html_end and (not is_tag or indent <= self._html_margin):
            # Its content is Markdown, where tags that are indented are a listing.
            self._html_end = 0
        elif opens and begin >= self._html_end and _ALONE.fullmatch(bare) and opens["name"].lower() not in _UNCLOSED:
            self._html_end, self._html_margin = self._find_html_end(opens["name"], end - len(bare)), indent
        # Below a blank line its words may be a listing; its tags are none.
        self._in_html = self._in_html or opens is not None or (begin < self._html_end and bare.startswith("<"))
        if self._in_html:
            # Words in HTML are no listing, wherever they stand.
            self._hide(begin, end - len(bare)) if indent >= 4 else None
            self._in_code = False
            return False
        if _LIST_ITEM.match(bare) and (indent < 4 or self._in_list):
            self._in_list = True
        elif self._after_blank and indent <= 0:
            self._in_list = False
        goes_on = self._in_code and indent >= 4
        begins = self._after_blank and indent >= 4 and not self._mdx and not self._in_list
        self._in_code = goes_on or begins
        if self._in_code:
            self.code.append((self.code.pop()[0] if goes_on else begin, end))
        return self._in_code

    def _find_html_end(self, name: str, at: int) -> int:
        depth = 0
        far = at + (_FORMULA_MAX if self._html_patience > 0 else 0)
        for tag in re.compile(rf"<(/?){name}\b", re.IGNORECASE).finditer(self._text, at, far):
            depth += -1 if tag[1] else 1
            if depth <= 0:
                return tag.start()
        self._html_patience -= min(_FORMULA_MAX, len(self._text) - at)
        return 0

    def _look_for(self, closing: str, end: int) -> re.Match[str] | None:
        """The line that closes what stands above it."""
        if self._patience <= 0:
            return None
        stop = re.compile(closing, re.MULTILINE).search(self._text, end, end + _FORMULA_MAX)
        self._patience -= 0 if stop else min(_FORMULA_MAX, len(self._text) - end)
        return stop

    # --- listings and directives ------------------------------------------------------------------

    def _read_markup(self, begin: int, at: int, end: int, indent: int) -> None:
        if self._mdx and at == begin and _ESM.match(self._text, at):
            # What an import or export holds is a program, whatever its lines look like.
            self.passed = statement_end(self._text, at) or 0
            return
        for tab in _HUGO_TAB.finditer(self._text, at, end) if self._text.startswith("{{", at) else ():
            self._tabs_open = max(0, self._tabs_open + (-1 if tab["ends"] else 1))
        if fence := _FENCE.match(self._text, begin, end):
            if fence["mark"][0] in ":/":
                self._read_colons(fence, end)
            else:
                self._read_fence(fence, end)
        elif found := _LINE.match(self._text, at, end):
            self._read_line_markup(found, begin, at, end, indent)

    def _close_with(self, mark: str, begin: int, end: int) -> bool:
        """The body that a line of these marks closes; one left open inside it closes with it."""
        depth = len(self._bodies)
        while depth and (own := self._bodies[depth - 1].mark) and own[0] == mark[0] and len(own) <= len(mark):
            depth -= 1
            if len(own) == len(mark):
                break
        if depth == len(self._bodies):
            return False
        body = self._bodies[depth]
        if body.unseen_from is not None:
            self._close(depth, min(end + 1, len(self._text)))
            return True
        self._close(depth, begin)
        (self._end_frame if body.framed else self._hide_line)(begin, end)
        return True

    def _read_colons(self, fence: re.Match[str], end: int) -> None:
        mark, info, begin = fence["mark"], fence["info"].strip(), fence.start("mark")
        if not info:
            self._close_with(mark, begin, end)
            return
        found = _CONTAINER.match(self._text, fence.start("info"), end)
        if found is None or (mark[0] == "/" and not self._is_block(found["name"] or "", mark, end)):
            return
        if found["directive"]:
            self._read_directive(found, mark, begin, end, _width(fence["prefix"]))
            return
        if found["dotted"]:
            self._hide(begin, found.start("name"), "`")
            self._hide(found.end("dotted"), end, "`")
        else:
            self._bodies.append(_Body(mark=mark, column=_width(fence["prefix"])))
            self._read_named(found, begin, end)
        if found["dotted"] or mark[0] == "/":
            self._hide_options(_API_OPTIONS.match(self._text, end + 1))

    def _is_block(self, name: str, mark: str, end: int) -> bool:
        """Material's `/// name | Title`; one that it does not have by itself must be closed."""
        if name.lower() in _BLOCKS or not name:
            return bool(name)
        if self._slashes_end.get(mark, 0) <= end:
            stop = self._look_for(_closing(mark), end)
            self._slashes_end[mark] = stop.end() if stop else 0
        return self._slashes_end[mark] > end

    def _read_named(self, found: re.Match[str], begin: int, end: int) -> None:
        """`:::tip[Title]`, `::: info Title`, `::: {.callout-note title="Title"}`."""
        kind = (found["name"] or "").lower()
        if found["classes"]:
            kinds = re.findall(r"\.(?:callout-)?([\w-]+)", found["classes"])
            kind = next((name for name in kinds if name in LABELS), "")
        title = next((found.span(name) for name in ("boxed", "rest") if (found[name] or "").strip()), None)
        if title and found["rest"] and title == found.span("rest") and (tail := _TRAILING.search(self._text, *title)):
            title = title[0], tail.start()
        if title is None or title[0] == title[1]:
            attribute = _TITLE.search(self._text, begin, end)
            title = next((attribute.span(n) for n in "ds" if attribute[n] is not None), None) if attribute else None
        is_own = self._text[begin] == "/" and kind not in _BLOCKS
        prefix = f"{kind.replace('-', ' ').capitalize()} " if is_own else ""
        self._label(begin, end, title, kind if kind in LABELS or is_own else "", prefix, kind in _FRAMED or is_own)

    def _read_directive(self, found: re.Match[str], mark: str, begin: int, end: int, column: int) -> None:
        """MyST: ```{note} Title, :::{figure} picture.png."""
        name = found["directive"].lower().rpartition(":")[2]
        options = _OPTIONS.match(self._text, end + 1) if end < len(self._text) else None
        body = _Body(mark=mark, column=column)
        self._bodies.append(body)
        if name in ("only", "raw") and "html" in found["argument"]:
            self._hide_line(begin, end)
            return
        if _is_rst_unseen(name):
            body.unseen_from = self._text.rfind("\n", 0, begin) + 1
            return
        argument = found.span("argument") if found["argument"].strip() else None
        if found["directive"].lower().startswith("glue:"):
            # Its argument is the name under which a program keeps what it has drawn.
            argument, name = None, "glue"
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
        self._label(begin, end, argument, name if name in LABELS else "", _PREFIXES.get(name, ""), name in _FRAMED)
        self._hide_options(options)

    def _show_picture(self, begin: int, end: int, path: str, options: re.Match[str] | None) -> bool:
        """As Markdown has it, on the line of its words where it has some; what a figure holds stands below it."""
        before = "\n" if self._after_text else ""
        alt = _ALT.search(self._text, *options.span()) if options else None
        if not _PATH.fullmatch(path) or (alt and any(sign in alt[1] for sign in "[]")):
            return False
        path = to_target(path)
        if options is None or alt is None:
            self._hide(begin, end, f"{before}![]({path})\n", f"![]({path})")
            self._hide_options(options)
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

    def _hide_options(self, options: re.Match[str] | None, seen: re.Match[str] | None = None) -> None:
        """All but the words that are seen, which are read in bold."""
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
        if own := _ADMONISH.fullmatch(self._text, fence.start("info"), end):
            self._bodies.append(_Body(mark=mark, column=self._fence_indent))
            title = next((own.span(name) for name in ("title", "own") if own[name] is not None), None)
            self._label(begin, end, title, "" if title else (own["kind"] or "note").lower(), framed=True)
            return
        if info == "mdx-code-block":
            self._bodies.append(_Body(mark=mark))
            self._hide_line(begin, end)
            return
        found = _CONTAINER.match(self._text, fence.start("info"), end) if info.startswith("{") else None
        directive = found["directive"].lower().rpartition(":")[2] if found and found["directive"] else None
        if directive == "math":
            self._open_formula(mark, begin, end)
        elif (directive == "code-cell" and self._hide_cell(mark, begin, end)) or (
            directive == "eval-rst" and self._read_rst(mark, begin, end)
        ):
            return
        elif found and directive and directive not in _CODE and found["directive"].lower() not in _CODE_OF_R:
            self._read_directive(found, mark, begin, end, self._fence_indent)
        else:
            self._fence = mark, begin, len(self._bodies), self._read_info(fence, found, end)

    def _hide_cell(self, mark: str, begin: int, end: int) -> bool:
        """Jupyter Book shows no cell that is tagged so."""
        options = _OPTIONS.match(self._text, end + 1)
        tags = _TAGS.search(options[0]) if options else None
        stop = self._look_for(_closing(mark), end) if tags and _REMOVED.search(tags[0]) else None
        if stop is None:
            return False
        self._hide_line(begin, stop.end())
        self.passed = stop.end()
        return True

    def _read_rst(self, mark: str, begin: int, end: int) -> bool:
        """What Sphinx is told in its own language: objects and their words, where nothing else is said."""
        stop = self._look_for(_closing(mark), end)
        lines = [*_RST_LINE.finditer(self._text, end + 1, stop.start())] if stop else []
        known = [name.rpartition(":")[2] for line in lines if (name := line["name"])]
        if stop is None or not known:
            return False
        if not all(_is_rst_unseen(name) or name in _RST_OBJECTS or name in LABELS for name in known):
            return False
        self._hide_line(begin, end)
        told = False
        for line in lines:
            name = (line["name"] or "").rpartition(":")[2]
            if _is_rst_unseen(name) or line["comment"] or (told and line["option"]):
                self._hide(line.start(), min(line.end() + 1, stop.start()))
            elif name:
                before, after = (f"**{name.capitalize()}** ", "") if name in LABELS else ("`", "`")
                self._hide(line.start(), line.start("argument"), before)
                self._hide(line.end("argument"), line.end(), after)
            elif line["words"]:
                self._hide(line.start(), line.start("words"))
            told = bool(name or (told and line["option"]))
        self._hide(stop.start(), min(stop.end() + 1, len(self._text)))
        self.passed = stop.end()
        return True

    def _read_info(self, fence: re.Match[str], found: re.Match[str] | None, end: int) -> str:
        """What a listing's first line says beyond its language is for the generator; its title is for readers."""
        text, info, mark = self._text, fence.start("info"), fence.start("mark")
        said = text[info:end].lstrip()
        if not said:
            return ""
        options = _OPTIONS.match(text, end + 1) if found and found["directive"] and end < len(text) else None
        if found and found["directive"] in _CODE:
            word = _LANGUAGE.match(text, found.start("argument"), end)
        else:
            word = _CLASS.match(text, end - len(said), end) if said[0] == "{" else _LANGUAGE.match(text, info, end)
        language = word.span("name") if word else (end, end)
        title = _TITLE.search(text, language[1], end) or _BOXED.search(text, language[1], end)
        named = title and (title["d"] if title["d"] is not None else title["s"])
        if options and (caption := _CAPTION.search(text, *options.span())):
            named = caption[1]
        if named and not fence["prefix"].strip():
            lead = self._lead(mark)
            self._hide(mark, info, f"**{named.strip()}**\n{lead.rstrip()}\n{lead}{fence['mark']}", fence["mark"])
        if text[info : language[0]].strip():
            self._hide(info, language[0])
        if named or _FOR_GENERATOR.fullmatch(text, language[1], end):
            self._hide(language[1], end)
        self._hide_options(options)
        return text[slice(*language)].lower()

    def _read_code(self, begin: int, end: int) -> None:
        assert self._fence is not None
        mark, language = self._fence[0], self._fence[3]
        if self._pre is not None:
            self._read_pre(begin, begin, end)
            return
        closing = _FENCE.match(self._text, begin, end)
        # One that stands four columns further in belongs to a listing that is shown in this one.
        is_own = closing and closing["mark"].startswith(mark) and _width(closing["prefix"]) < self._fence_indent + 4
        if closing and is_own and not closing["info"].strip():
            self._end_fence(end)
        elif self._tabs_open and _TAB_ENDS.match(self._text, begin, end):
            # Hugo reads a tab by itself: a listing that is open ends with it.
            self._tabs_open = 0
            self._hide(begin, end, *[" " * self._fence_indent + mark] * 2)
            self._end_fence(end)
        elif _UNSEEN_CODE.match(self._text, begin, end) or (
            language.startswith("rust") and _RUST_HIDDEN.match(self._text, begin, end)
        ):
            self._hide_line(begin, end)
        elif remark := _REMARK.search(self._text, begin, end):
            self._hide(remark.end() - 1, remark.end())

    def _end_fence(self, end: int) -> None:
        assert self._fence is not None
        self.code.append((self._fence[1], end))
        self._fence = self._pre = None

    def _open_formula(self, mark: str, begin: int, end: int) -> None:
        """```{math} reads as $$."""
        found = self._look_for(_closing(mark), end)
        if found is None:
            self._fence = mark, begin, len(self._bodies), ""
            return
        self._hide(begin, end, "$$")
        options = _OPTIONS.match(self._text, end + 1)
        if options and options.end() <= found.start():
            self._hide(*options.span())
            self._number(end, found.start(), _LABEL.search(self._text, *options.span()))
        self._hide(found.end() - len(found[0].lstrip(" \t>")), found.end(), "$$")
        self._pass_formula(begin, found.end())

    # --- lines that mark something ----------------------------------------------------------------

    def _read_line_markup(self, found: re.Match[str], begin: int, at: int, end: int, indent: int) -> None:
        match found.lastgroup:
            case "material" if whole := _MATERIAL.match(self._text, at, end):
                title = whole.span("title") if whole["title"] else None
                kind = whole["kind"].lower() if whole["title"] is None else ""
                self._indent_body(indent)
                self._label(at, end, title, kind, framed=True)
            case "tab" if whole := _TAB.match(self._text, at, end):
                self._indent_body(indent)
                self._label(at, end, whole.span("title"), "")
            case "footnote":
                name = self._text[at + 2 : found.end() - 2]
                self._indent_body(indent)
                self._hide(at, found.end(), f"Footnote {name}:" if name.isdigit() else "Footnote:")
            case "defined" if not self._after_text and (whole := _DEFINED.match(self._text, at)):
                name = " ".join(whole["name"].casefold().split())
                target = whole["target"].strip("<>")
                if page := _REF.fullmatch(target):
                    target = page["page"]
                # One that another shortcode makes leads nowhere that is known.
                self.targets.setdefault(name, "#" if "{" in target else target)
                self._hide_line(begin, whole.end())
                self.passed = whole.end()
            case "abbreviation":
                self._hide(at, at + 2)
                self._hide(found.end() - 2, found.end() - 1)
            case "d2l":
                name = re.compile(r":begin_tab:`([^`\n]*)`").match(self._text, at, end)
                self._label(at, end, name.span(1) if name else None, "")
            case "label" | "contents" | "unresolved" | "changed":
                self._hide_line(begin, end)
            case "hook" | "words":
                self._hide(found.start() + found[0].index("<"), found.start("words"))
                self._hide(found.end("words"), end)
            case "box" | "component" | "hint":
                self._read_box(found, at, end)
            case "shortcode" | "code" | "told":
                self._read_shortcode(found, at, end)
            case "pre" | "raw":
                self._open_pre(found, begin, at, end)
            case "comment" | "unseen":
                self._hide_comment(found, begin, at)
            case "alert" | "kind":
                self._read_alert(found, end)
            case "math" | "sign" | "env":
                self._read_formula(found, found.start("sign"))
            # Behind less than three blanks it may be a table's caption, or prose; a term right above it tells.
            case "definition" if found[0][1:].startswith(("   ", "\t")) or (self._after_text and not self._mdx):
                above = f"\n{self._lead(at)}" if self._after_text else ""
                self._indent_body(indent)
                rest = found.end() - 1
                self._hide(at, rest, above)
                self._after_text = False
                self._read_markup(rest, rest, end, indent + 4)
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
        # A tab that nothing closes ends with its pane.
        names = "(?:tab|tabpane)" if name == "tab" else name
        stop = self._look_for(rf"^[ \t]*(?:\{{\{{<[ \t]*/[ \t]*{names}[ \t]*>\}}\}}[ \t]*)+$", end)
        if stop is None or "```" in self._text[end : stop.start()]:
            return
        title = re.search(r"\b(?:header|title)=\"([^\"\n]+)\"", told) or re.match(r"[ \t]*\"([^\"\n]+)\"", told)
        language = re.search(r"\blang=\"?([\w+-]+)" if name == "tab" else r"^[ \t]*([\w+-]+)", told)
        fence = f"```{language[1] if language else ''}"
        lead = self._lead(at)
        self._hide(at, end, f"**{title[1]}**\n{lead.rstrip()}\n{lead}{fence}" if title else fence, fence)
        self._hide(*stop.span(), f"{lead}```", f"{lead}```")
        self.code.append((end, stop.start()))
        self.passed = stop.end()

    def _open_pre(self, found: re.Match[str], begin: int, at: int, end: int) -> None:
        """`<pre>` is a listing up to its end tag, whatever its lines look like."""
        text, raw = self._text, found["raw"]
        ends = rf"(?i:(?:</(?:code|span)[ \t]*>)*</{raw}[ \t]*>)(?:[ \t]*</[\w-]+[ \t]*>)*[ \t]*"
        stop = self._look_for(ends, found.end()) if not self._mdx else None
        lines = text[found.end() : stop.end()].split("\n")[1:] if stop else []
        # What ends its item or its tab would end the listing.
        margin = self._bodies[self._indents[-1]].indent if self._indents else 0
        margin = max(margin, _width(text[begin:at])) if self._in_list else margin
        if not lines or any(line.strip() and _width(line[: len(line) - len(line.lstrip())]) < margin for line in lines):
            return
        assert stop is not None
        longest = max(re.findall("`{3,}", text[at : stop.end()]), key=len, default="``")
        language = _HTML_LANGUAGE.search(found[0])
        fence = f"{longest}`{language['name'] if language else ''}"
        words = text[found.end() : end].strip()
        self._fence = f"{longest}`", at, len(self._bodies), ""
        closed = {name.lower() for name in re.findall(r"</([\w-]+)", text[at : stop.end()])}
        lead = text[begin:at] if _width(text[begin:at]) < 4 or self._in_list else ""
        self._pre = stop.start(), stop.end(), lead, closed
        self.parsed.append(Hidden(at, end, parsed=fence))
        self._hide(at, found.end(), f"{fence}\n{self._lead(at)}" if words else fence)
        self._read_pre(found.end(), at, end)

    def _read_pre(self, at: int, begin: int, end: int) -> None:
        """A line of it: what its tags hold, with the signs that entities stand for."""
        assert self._fence is not None and self._pre is not None
        stop, behind, lead, closed = self._pre
        for found in _OF_HTML.finditer(self._text, at, min(end, stop)):
            name = (found["name"] or "").lower()
            # `<path>` and `Vec<T>` are words.
            if not name or name in closed or name in ("br", "hr", "img", "wbr") or "=" in found[0]:
                self._hide(*found.span(), html.unescape(found["sign"]) if found["sign"] else "")
        if stop > end:
            return
        fence, inner = lead + self._fence[0], self._lead(begin)
        below = f"\n{inner}{lead}" if behind < end else ""
        if self._text[begin:stop].strip():
            self._hide(stop, behind, f"\n{inner}{fence}{below}")
        else:
            self._hide(begin, behind, f"{fence}{below}", fence)
        self.parsed.append(Hidden(begin, end, parsed=fence))
        self._end_fence(min(behind, end))

    def _read_box(self, found: re.Match[str], at: int, end: int) -> None:
        """`<Callout>`, `{{% alert %}}`, `{% hint %}`: its label is read among words; its lines are a frame."""
        name = found["component"] or found["hint"]
        if name.lower() not in _FRAMED_TAGS or self._patience <= 0:
            return
        ends = rf"</{name}>|\{{\{{[<%][ \t]*/[ \t]*{name}[ \t]*[>%]\}}\}}|\{{%[ \t]*end{name}[ \t]*%\}}"
        stop = self._look_for(rf"^[ \t]*(?:{ends})[ \t]*$", end)
        if stop is None:
            return
        start = self._text.rfind("\n", 0, at) + 1
        lead = self._lead(at)
        column, first = _width(self._text[start:at]), self._text[end : stop.start()].lstrip("\n").split("\n", 1)[0]
        inside = _width(first[: len(first) - len(first.lstrip())])
        self._bodies.append(_Body(until=stop.start(), column=column, width=max(0, inside - column)))
        if self._frame(self._bodies[-1]):
            self._hide(at, at, "> ", "> ")
            self.leads[start] = f"{lead}> "

    def _indent_body(self, indent: int) -> None:
        self._indents.append(len(self._bodies))
        self._dressed.append(len(self._bodies))
        self._bodies.append(_Body(indent=indent + 4, column=indent, width=4))

    def _label(
        self, begin: int, end: int, title: Span | None, kind: str, prefix: str = "", framed: bool = False
    ) -> None:
        """A marker's line as readers see it: its title, else what it is; a paragraph of its own."""
        lead = self._lead(begin)
        sign = "> " if framed and self._frame(self._bodies[-1]) else ""
        before = (f"\n{lead}" if self._after_text else "") + sign
        below = "\n" + f"{lead}{sign}".rstrip() if ">" in f"{lead}{sign}" else "\n"
        if title is not None and self._text[slice(*title)].strip():
            bold = "" if re.search(r"\*|__", self._text[slice(*title)]) else "**"
            self._hide(begin, title[0], before + bold + prefix, sign + bold)
            self._hide(title[1], end, f"{bold}{below}", bold)
        elif kind:
            words = "See also" if kind == "seealso" else kind.replace("-", " ").capitalize()
            self._hide(begin, end, f"{before}**{words}**{below}", f"{sign}**{words}**")
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
            label = f"**{found['kind'].capitalize()}**"
            self._hide(begin, end, f"{label}\n>", label)

    def _hide_comment(self, found: re.Match[str], begin: int, at: int) -> None:
        opening = found[0].lower()
        closing = "-->" if opening == "<!--" else "*/}" if opening == "{/*" else f"</{found['unseen'].lower()}>"
        if opening == "{/*" and not self._mdx:
            return
        if at >= self._last[closing]:
            return
        stop = self._text.find(closing, at) + len(closing)
        # What stands behind the comment on its last line is read as that line's beginning.
        line_end = self._text.find("\n", stop)
        self.passed = line_end = len(self._text) if line_end < 0 else line_end
        if self._text[stop:line_end].strip():
            self._hide(at, stop)
        elif self._text[begin:at].strip():
            self._hide(at, min(line_end + 1, len(self._text)))
        else:
            self._hide_line(at, line_end)

    def _read_formula(self, found: re.Match[str], at: int) -> None:
        """A formula on lines of its own is one paragraph, blank lines and all."""
        closing = {"$$": "$$", "\\[": "\\]"}.get(found["sign"], f"\\end{{{found['env']}}}")
        stop = self._text.find(closing, found.end(), found.end() + _FORMULA_MAX)
        is_whole = stop >= 0 and self._text.count("\n", at, stop) <= _FORMULA_LINES
        if is_whole and not _NO_FORMULA.search(self._text, at, stop):
            if label := _FORMULA_LABEL.match(self._text, stop + len(closing)):
                self._number(at, stop, label)
                self._hide(*label.span())
            self._pass_formula(at, stop + len(closing))

    def _number(self, start: int, stop: int, label: re.Match[str] | None) -> None:
        """The number by which pages refer to a formula stands beside it."""
        number = self._titles.get(f"eq`{label['name']}") if label else None
        if number and _COUNTED.search(self._text, start, stop) is None:
            last = start + len(self._text[start:stop].rstrip(" \t\n>"))
            self._hide(last, last, f" \\tag{{{number.strip('()')}}}")

    def _pass_formula(self, start: int, end: int) -> None:
        if "\n" not in self._text[start:end]:
            return
        self.math.append((start, end))
        line_end = self._text.find("\n", end)
        self.passed = len(self._text) if line_end < 0 else line_end
        # The lines of a formula move left with the body that they stand in.
        at = self._text.find("\n", start, end) + 1
        while self._dressed and at > 0:
            line = self._text[at : at + 4 * len(self._indents) + self._bodies[self._dressed[-1]].column]
            self._move_left(at, len(line) - len(line.lstrip(" \t")))
            at = self._text.find("\n", at, end) + 1
