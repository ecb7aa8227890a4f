"""The generators' markup among words: tags, comments, roles, shortcodes, attributes, footnote marks, wiki links."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from askbook.book.markup.spans import (
    LABELS,
    CodeSpans,
    Hidden,
    Lines,
    Span,
    find_blank_before,
    find_blank_behind,
    names,
    to_target,
)
from askbook.book.markup.tags import ESM, Tags, break_above, comment_end, statement_end, tag_end

# A class alone is looked for at the speed of C; whether a sign opens something is asked where it stands.
_STOP = re.compile(r"[\\`<{\[$:=+]")
_MDX_STOP = re.compile(r"[\\`<{}\[$:=+]|^(?=import\b|export\b)|^[ \t]*\)|(?<=>)[ \t]{0,20}\)", re.MULTILINE)
_AT_LINE_START = re.compile(ESM)
_TAG = re.compile(r"</?(?P<name>[A-Za-z][\w.-]*+(?::[\w-]++)?(?=[\s/>])|(?=>))")
_UNSEEN_END = re.compile(r"(?P<close></(?:script|style)[ \t]*>)|\n[ \t]*\n", re.IGNORECASE)
_COMMENT = re.compile(r"\{\s*+/\*|<!--")
_ROLE = re.compile(
    r"\{(?P<name>[A-Za-z][\w:.+-]*)\}(?P<ticks>`+)(?!`)(?P<said>[^`\n]+(?:\n(?![ \t]*\n)[^`\n]+)?)(?P=ticks)(?!`)"
)
_SPHINX_TARGET = re.compile(r"(?<!\s)\s*+<[^<>]*>$")
_NUMBER = re.compile(r"(?<!\s)\s*+(?:%s|\{(?:number|name)\})")
_COLON_ROLE = re.compile(
    r":(?P<name>numref|eqref|ref|cite|citet|label|width|height|class|func|meth|mod|doc|term):(?P<ticks>`)(?P<said>[^`\n]*)`"
)
_ICON = re.compile(r":(?:material|octicons|fontawesome|simple|fa)-[\w-]+:(?:\{[^{}\n]*\})?[ \t]?")
_SHORTCODE = re.compile(
    r"\{\{(?P<open>[<%])(?P<inside>(?:[^{}\"`]|\"(?:\\.|[^\"\\])*\"|`[^`]*`){0,2000}?)(?P<close>[%>])\}\}"
)
# Of a program that makes mdBook's pages: nobody knows what it would say.
_PREPROCESSOR = re.compile(r"\{\{%[ \t]*\w[\w \t/.-]{0,200}\}\}")
_LIQUID = re.compile(r"\{%-?(?P<inside>(?:[^{}%\"']|\"[^\"]*\"|'[^']*'|%(?!\})){0,2000}?)-?%\}")
_NAME = re.compile(r"\s*+(?P<closing>/)?\s*+(?P<name>[\w./-]+)")
_SEEN = re.compile(
    r"\b(?P<name>title|label|header|heading|summary|caption|text|alt)\s*=\s*(?P<quote>[\"'])(?P<value>[^\"'\n]{1,300})(?P=quote)"
)
_STYLE = re.compile(r"\b(?:style|type|color|kind)\s*=\s*[\"'](\w+)[\"']")
# The words of `{{< tab "macOS" >}}`; in `{{< tabs "id" >}}` they are for the generator.
_TITLED = names("tab notice expand details collapse accordion")
_OWN_TITLE = re.compile(r"(?<=\s)(?:name=)?(?P<quote>[\"'])(?P<value>[^\"'\n]{1,300})(?P=quote)")
_QUOTED = re.compile(r"[\"']([^\"'\n]{1,200})[\"']")
_MDBOOK = re.compile(r"\{\{#(?:include|rustdoc_include|playground|playpen|title|quiz)\b[^{}\n]*\}\}")
_BRANCH = re.compile(r"\{[#:/](?:if|else|each|await|then|key)\b[^{}\n]*\}")
# `_{i=1}` is a formula's, delimiters or not.
_ATTRIBUTES = re.compile(
    r"\{:[^{}\n]*\}|\{[ \t]*(?:[.#][\w:-]+|(?<![_^]\{)[\w-]+=(?:\"[^\"\n]*\"|'[^'\n]*'|[\w%.-]+))"
    r"(?:[ \t]+(?:[.#][\w:-]+|[\w:-]+=(?:\"[^\"\n]*\"|'[^'\n]*'|[\w%./-]+)))*[ \t]*\}"
)
_HEADS = re.compile(r"[^\S\n]*+#")
_ID = re.compile(r"(?:#|\bid=[\"']?)([^\s{}\"']+)")
# {names.map((name) => ( <Tag /> ))}: its tags and the words in them are read as all others are.
_PROGRAM = re.compile(
    r"\{(?:[^{}<>\n=]|\{[^{}\n]{0,300}\}|=(?!>)){1,200}(?:\n[ \t]*)?(?:=>|&&|\?)[ \t]*\(?[ \t]*"
    r"(?=\s{0,200}<(?P<tag>[\w.:-]*)|\n)"
)
_PROGRAM_END = re.compile(r"[)\s]{0,200}\}")
# } of a program ends tags, or what is said instead of them.
_ENDS_TAGS = re.compile(r"(?:[>)]|:\s*(?:\"[^\"\n]*\"|'[^'\n]*'|[\w.$]+))\s*\Z")
_ELSE = re.compile(
    r"[)\s]{0,200}:\s{0,200}(?:[^{}<>\n:]{1,200}\?[ \t]*)?"
    r"(?:\(?[ \t]*(?=\s{0,200}<(?P<tag>[\w.:-]*))|(?P<quote>[\"'])(?P<words>[^\"'\n]{1,300})(?P=quote)\s{0,200}(?=\})"
    r"|[\w.$]{1,100}\s{0,200}(?=\}))"
)
_BRACE = re.compile(r"\\.|[`{}]")
_EXPRESSION = re.compile(
    r"\{\s*+(?:(?P<quote>[\"'`])(?P<words>[^\"'`{}\n]{0,300})(?P=quote)|[A-Za-z_$][\w$.]*+(?:\(\))?)\s*+\}"
)
_FOOTNOTE = re.compile(r"\[\^[^\]\s\[]{1,100}\]")
_FOOTNOTE_TEXT = re.compile(r"^[ \t>]*+(\[\^[^\]\s\[]{1,100}\]):", re.MULTILINE)
_WIKI = re.compile(r"\[\[(?![\s_])(?P<page>[^\[\]|\n]{1,200}?)(?:\|(?P<words>[^\[\]\n]{1,200}))?\]\](?!\()")
_REFERRED = re.compile(r"\[(?P<name>[^\[\]]{0,200})\](?P<own>\[\])?")
_OBJECT = re.compile(
    r"\[(?P<words>(?=`)`[\w.()]{1,200}`(?=\]\[\])|[^\[\]\n]{1,200}(?=\]\[[A-Za-z_]\w{0,100}(?:\.\w{1,100}){1,20}\]))\]\[[\w.]*\]"
)
_VARIABLE = re.compile(r"\{\{-?\s*+(?P<name>\$?[A-Za-z_][\w.-]{0,100})\s*+-?\}\}")
_EMPTY_LINK = re.compile(r"\[\]\((?P<target>[^()\s]{1,300})\)")
_KEYS = re.compile(r"\+\+(?=[a-z\"])(?P<keys>[\w\"-]+(?:\+[\w\"-]+){0,5})\+\+")
_MARKED = re.compile(r"(?<!\w)==(?=[^\s=])(?P<words>[^=\n]{1,200}?)(?<=[^\s=])==(?![=\w])")
_CRITIC = re.compile(
    r"\{(?:(?P<sign>\+\+|--|==|>>)(?P<words>[^{}\n]{1,300}?)(?:\+\+|--|==|<<)|~~(?P<old>[^{}\n]{1,300}?)~>(?P<new>[^{}\n]{1,300}?)~~)\}"
)
_CRITIC_SHOWN = {"--": ("~~", "~~"), ">>": (" (", ")")}
_FORMULA = re.compile(
    r"\$\$(?=[^$])(?:[^$\n]|\n(?![ \t>]*+(?:#{1,6}[ \t]|`{3}|~{3}))){1,5000}?\$\$"
    r"|\$(?=[^\s$])(?:\\.|[^$\\\n]|\n(?!\s*\n)){0,1000}?(?<=[^\s\\])\$(?!\d)|\$(?=[^\s$])[^\s$]\$(?!\d)"
)
_BRACKETED = {
    "(": re.compile(r"\\\([^\n]{1,2000}?\\\)"),
    "[": re.compile(r"\\\[(?:(?!\n\s*\n).){1,5000}?\\\]", re.DOTALL),
}
_CODE_ROLES = names("code file program option envvar command literal samp")
_OBJECT_ROLES = names("class func meth mod attr data exc obj const")
_OBJECT_DOMAINS = ("py:", "c:", "cpp:", "js:", "rst:")
_LEADING_ROLES = names("option envvar")
"""Those of code that lead somewhere; in the others `<x>` is what is said."""
_UNSEEN_ROLES = names("label width height")
# {class}`~package.Name` reads as its last name.
_MODULE = re.compile(r"~(?:[\w.]*\.)?|!|\.(?=\w)")


class InlineScan:
    """Outside `skip`, in order; the formulas found on the way are added to `math`. `targets` of links by reference."""

    def __init__(
        self,
        text: str,
        start: int,
        mdx: bool,
        skip: Sequence[Span],
        math: list[Span],
        titles: Mapping[str, str],
        targets: Mapping[str, str],
    ) -> None:
        self._text, self._mdx, self._math, self._titles, self._targets = text, mdx, math, titles, targets
        self._code = CodeSpans(text, start, len(text))
        self._skip = skip
        self._skip_starts = [span[0] for span in skip]
        self._lines = Lines(text)
        self._tags = Tags(text, self._lines)
        self._last_comment_end = {"-->": text.rfind("-->"), "*/": text.rfind("*/")}
        # A tag or export that never ends costs a look ahead; when all have cost this much, the rest stay as text.
        self._patience = 2 * len(text) + 10_000
        self._footnotes = {found[1] for found in _FOOTNOTE_TEXT.finditer(text)} if "[^" in text else set[str]()
        self._found: list[Hidden] = []
        self._programs: list[tuple[int, str]] = []
        """Those that are open around tags: where each ends, and the tag that it shows now."""

    def read(self, at: int) -> Iterator[Hidden]:
        pattern = _MDX_STOP if self._mdx else _STOP
        while stop := pattern.search(self._text, at):
            place = stop.start()
            inside = self._skipped(place)
            if inside is not None:
                at = inside
                continue
            end = self._read_at(place)
            yield from self._found
            self._found.clear()
            at = max(end if end is not None else place + 1, place + (1 if stop.end() > place else 0))
            if end is None and stop.end() == place:
                at = place + 6

    def _skipped(self, place: int) -> int | None:
        index = bisect_right(self._skip_starts, place) - 1
        return self._skip[index][1] if index >= 0 and self._skip[index][1] > place else None

    def _read_at(self, at: int) -> int | None:
        """Behind what was read here; None where nothing was."""
        text = self._text
        match text[at]:
            case "\\":
                return self._read_escape(at)
            case "`":
                ticks = text[at : at + 1_000]
                return self._code.end_of(at) or at + len(ticks) - len(ticks.lstrip("`"))
            case "<":
                return self._read_comment(at) if text.startswith("<!--", at) else self._read_tag(at)
            case "{":
                return self._read_brace(at)
            case "[":
                return self._read_bracket(at)
            case "$":
                return self._read_formula(at, _FORMULA)
            case ":":
                return (self._read_else(at) if self._programs else None) or self._read_icon(at)
            case "+":
                return self._unwrap(_KEYS.match(text, at), "keys")
            case "=":
                return (
                    self._unwrap(_MARKED.match(text, at), "words") if text[at - 1 : at] not in ("=", "!", "<") else None
                )
            case ")" | " " | "\t" | "}":
                return self._read_program_end(at) or self._read_else(at)
            case _ if self._mdx and _AT_LINE_START.match(text, at):
                return self._hide_to(at, statement_end(text, at))
            case _:
                return None

    def _hide_to(self, start: int, end: int | None, filler: str = "") -> int | None:
        if end is not None:
            self._found.append(Hidden(start, end, filler))
        return end

    def _unwrap(self, found: re.Match[str] | None, group: str) -> int | None:
        """Its words without its signs."""
        if found is None:
            return None
        self._hide_to(found.start(), found.start(group))
        return self._hide_to(found.end(group), found.end())

    def _read_escape(self, at: int) -> int:
        char = self._text[at + 1 : at + 2]
        if char == "{" and _MDBOOK.match(self._text, at + 1):
            self._hide_to(at, at + 1)
            return at + 3
        return (self._read_formula(at, _BRACKETED[char]) if char in _BRACKETED else None) or at + 2

    def _read_formula(self, at: int, pattern: re.Pattern[str]) -> int | None:
        if self._patience < 0:
            return None
        found = pattern.match(self._text, at)
        if found is None:
            self._patience -= 50
            return None
        self._math.append(found.span())
        return found.end()

    def _read_comment(self, at: int) -> int | None:
        closing = "-->" if self._text[at] == "<" else "*/"
        if at + 2 > self._last_comment_end[closing]:
            return None
        return self._hide_to(at, comment_end(self._text, at + 2, closing))

    def _read_tag(self, at: int) -> int | None:
        found = _TAG.match(self._text, at)
        if found is None or self._patience <= 0 or not self._tags.is_tag(at, found["name"], self._mdx):
            return None
        end, looked_to = tag_end(self._text, found.end())
        if end is None:
            self._patience -= looked_to - at
            return None
        if not self._mdx and not self._tags.is_whole(at, end, found["name"]):
            return None
        unseen = self._find_unseen_end(found["name"] or "", at, end)
        if unseen is not None:
            return self._hide_to(at, unseen)
        self._found += self._tags.show(at, end, found["name"] or "")
        return end

    def _find_unseen_end(self, name: str, at: int, end: int) -> int | None:
        """Of a script or style among words, in the same paragraph."""
        if name.lower() not in ("script", "style") or self._text[at + 1] == "/" or self._text[end - 2] == "/":
            return None
        stop = _UNSEEN_END.search(self._text, end, end + 20_000)
        self._patience -= (stop.end() if stop else min(end + 20_000, len(self._text))) - end
        return stop.end() if stop and stop["close"] else None

    def _read_brace(self, at: int) -> int | None:
        text = self._text
        if text.startswith("{{", at):
            if unresolved := _MDBOOK.match(text, at):
                return self._hide_to(at, unresolved.end())
            if (variable := _VARIABLE.match(text, at)) and (value := self._titles.get(f"{{{{{variable['name']}}}}}")):
                return self._hide_to(at, variable.end(), value)
            if not text.startswith(("<", "%"), at + 2):
                return None
            if own := _PREPROCESSOR.match(text, at):
                return self._hide_to(at, own.end())
            return self._read_code(_SHORTCODE.match(text, at))
        if text.startswith("{%", at):
            return self._read_code(_LIQUID.match(text, at))
        if self._mdx and _COMMENT.match(text, at):
            return self._read_comment(at)
        if branch := _BRANCH.match(text, at):
            return self._hide_to(at, branch.end())
        if role := _ROLE.match(text, at):
            return self._read_role(role)
        if attributes := _ATTRIBUTES.match(text, at):
            return self._read_attributes(attributes)
        if self._mdx and (program := _PROGRAM.match(text, at)):
            return self._read_program(program)
        if self._mdx:
            return self._read_expression(_EXPRESSION.match(text, at))
        return self._read_change(_CRITIC.match(text, at))

    def _read_program(self, program: re.Match[str]) -> int | None:
        """{condition && <Tag />}: what it shows is read; its own signs stand before, between and behind the tags."""
        end = self._brace_ends.get(program.start())
        if end is None or _ENDS_TAGS.search(self._text, max(program.end(), end - 400), end) is None:
            return None
        self._programs.append((end, program["tag"] or ""))
        return self._hide_to(*program.span())

    @cached_property
    def _brace_ends(self) -> dict[int, int]:
        """Outside code and `skip`."""
        ends: dict[int, int] = {}
        opened: list[int] = []
        at = 0
        while stop := _BRACE.search(self._text, at):
            place, at = stop.start(), stop.end()
            inside = self._skipped(place)
            if inside is not None:
                at = inside
            elif stop[0] == "`":
                at = self._code.end_of(place) or at
            elif stop[0] == "{":
                opened.append(place)
            elif stop[0] == "}" and opened:
                ends[opened.pop()] = place
        return ends

    def _read_program_end(self, at: int) -> int | None:
        while self._programs and self._programs[-1][0] < at:
            self._programs.pop()
        end = _PROGRAM_END.match(self._text, at) if self._programs else None
        if end is None or end.end() - 1 != self._programs[-1][0]:
            return None
        self._programs.pop()
        return self._hide_to(at, end.end())

    def _read_else(self, at: int) -> int | None:
        """`) : (` between the tags that a condition chooses from, and what it says or does instead of the last."""
        other = _ELSE.match(self._text, at) if self._programs else None
        if other is None or other.end() > self._programs[-1][0]:
            return None
        end, tag = self._programs[-1]
        if not self._text[max(0, at - 200) : at].rstrip().endswith((f"</{tag}>", "/>")):
            return None
        self._programs.pop()
        if other["words"]:
            self._hide_to(at, other.start("words"))
            return self._hide_to(other.end("words"), end + 1)
        if other["tag"] is None:
            return self._hide_to(at, end + 1)
        self._programs.append((end, other["tag"]))
        parts = find_blank_before(self._text, at) is not None and find_blank_behind(self._text, other.end()) is not None
        # On a line of its own it leaves a blank one.
        self._found.append(Hidden(*other.span(), parsed="" if parts else None))
        return other.end()

    def _read_expression(self, found: re.Match[str] | None) -> int | None:
        """A text in braces is itself; what a name alone on its line stands for is the program's to say."""
        if found is None:
            return None
        if found["quote"]:
            return self._unwrap(found, "words")
        before = self._text[max(0, found.start() - 100) : found.start()].rpartition("\n")[2]
        after = self._text[found.end() : found.end() + 100].partition("\n")[0]
        return None if before.strip() or after.strip() else self._hide_to(*found.span())

    def _read_change(self, found: re.Match[str] | None) -> int | None:
        """{++What was added++}, {--struck out--}, {~~replaced~>by this~~}, and {>>a remark on it<<}."""
        if found is None:
            return None
        if found["old"]:
            self._hide_to(found.start(), found.start("old"), "~~")
            self._hide_to(found.end("old"), found.start("new"), "~~ ")
            return self._hide_to(found.end("new"), found.end())
        opening, closing = _CRITIC_SHOWN.get(found["sign"], ("", ""))
        self._hide_to(found.start(), found.start("words"), opening)
        return self._hide_to(found.end("words"), found.end(), closing)

    def _read_attributes(self, found: re.Match[str]) -> int | None:
        """Behind what they are for, or alone on a line. A heading's own id is still the parser's to see."""
        text, at = self._text, found.start()
        line_start = self._lines.start_of(at)
        closes = find_blank_behind(text, found.end()) is not None
        heads = _HEADS.match(text, line_start) or text.startswith(("\n---", "\n==="), found.end())
        is_known = text[at + 1 : at + 100].lstrip()[:1] in (":", "#", ".") or heads
        if not (text[at - 1 : at] in tuple(")]*_`:\"'>$") or (closes and is_known)):
            return None
        start = line_start + len(text[line_start:at].rstrip()) if closes and text[line_start:at].strip() else at
        own = _ID.search(found[0])
        self._found.append(Hidden(start, found.end(), "", f" {{#{own[1]}}}" if own and heads else None))
        return found.end()

    def _read_role(self, role: re.Match[str]) -> int:
        """{math}`x` is a formula, {code}`x` is code, and a reference is its words, else the title of where it leads."""
        name, said = role["name"].lower(), role.span("said")
        short = name.rpartition(":")[2]
        target = _SPHINX_TARGET.search(self._text, *said)
        if short == "math":
            self._found += Hidden(role.start(), said[0], "$"), Hidden(said[1], role.end(), "$")
            self._math.append(role.span())
        elif short in _UNSEEN_ROLES:
            self._hide_to(*role.span())
        elif short in ("numref", "eq"):
            self._read_counted(role, short, target)
        elif (is_object := name.startswith(_OBJECT_DOMAINS) or short in _OBJECT_ROLES) or short in _CODE_ROLES:
            self._hide_to(role.start(), role.start("ticks"))
            if is_object and (module := _MODULE.match(self._text, *said)):
                self._hide_to(*module.span())
            if target and said[0] < target.start() and (is_object or short in _LEADING_ROLES):
                self._hide_to(*target.span())
        elif target and said[0] < target.start():
            self._hide_to(role.start(), said[0])
            self._hide_to(target.start(), role.end())
        elif title := self._titles.get(self._text[slice(*said)]):
            self._hide_to(role.start(), role.end(), title)
        else:
            self._hide_to(role.start(), said[0])
            self._hide_to(said[1], role.end())
        return role.end()

    def _read_counted(self, role: re.Match[str], name: str, target: re.Match[str] | None) -> None:
        """{numref}`Figure %s <label>`: its words, with the caption where the number would stand."""
        label = target[0].strip(" \n<>") if target else role["said"].strip()
        title = self._titles.get(f"{name}`{label}")
        if target is None or target.start() == role.start("said"):
            self._hide_to(*role.span(), title or label)
            return
        place = _NUMBER.search(self._text, role.start("said"), target.start())
        self._hide_to(role.start(), role.start("said"))
        if place:
            self._hide_to(*place.span(), " " + title[title.find("“") :] if title else "")
        self._hide_to(target.start(), role.end())

    def _read_icon(self, at: int) -> int | None:
        if icon := _ICON.match(self._text, at):
            return self._hide_to(at, icon.end())
        role = _COLON_ROLE.match(self._text, at)
        if role is None:
            return None
        if role["name"] in _UNSEEN_ROLES:
            return self._hide_to(at, role.end())
        self._hide_to(at, role.start("ticks"))
        module = _MODULE.match(self._text, *role.span("said")) if role["name"] in _OBJECT_ROLES else None
        if module:
            self._hide_to(*module.span())
        return role.end()

    def _read_code(self, found: re.Match[str] | None) -> int | None:
        """Hugo's shortcodes and GitBook's tags: of each its title; of a hint what it is; of a reference its words."""
        if found is None:
            return None
        start, end, text = found.start(), found.end(), self._text
        inside = found["inside"]
        if inside.startswith("/*") and inside.rstrip().endswith("*/"):
            # An example of a shortcode, shown without the stars that keep it from being one.
            self._hide_to(found.start("inside"), found.start("inside") + 2)
            self._hide_to(found.end("inside") - 2, found.end("inside"))
            return end
        named = _NAME.match(inside)
        name = named["name"].lower() if named else ""
        if named is None or named["closing"] or name.startswith("end"):
            return self._hide_to(start, end)
        opens = find_blank_before(text, start, ">") is not None
        gap = "\n" if text[end : end + 1] in ("\n", "") else "\n\n"
        told = found.start("inside") + named.end(), found.end("inside")
        if seen := _SEEN.search(text, *told) or (_OWN_TITLE.search(text, *told) if name in _TITLED else None):
            bold = "**" if name == "tab" or (opens and not seen[0].startswith("text")) else ""
            above = break_above(text, self._lines, start) if name == "tab" else ""
            self._hide_to(start, seen.start("value"), above + bold)
            self._found.append(Hidden(seen.end("value"), end, bold and bold + gap, bold))
            return end
        if name == "param":
            value = text[slice(*told)].strip(" \"'`").lower()
            return self._hide_to(start, end, self._titles.get(f"{{{{param {value}}}}}", ""))
        if name in ("ref", "relref", "link") and (target := _QUOTED.search(inside)):
            if text[start - 1 : start] != "(":
                return self._hide_to(start, end, self._titles.get(target[1], ""))
            self._hide_to(start, found.start("inside") + target.start(1))
            return self._hide_to(found.start("inside") + target.end(1), end)
        kind = _find_kind(name, text[slice(*told)])
        label = f"**{kind.capitalize()}**" if opens and kind in LABELS else ""
        self._found.append(Hidden(start, end, f"{label}{gap}", label) if label else Hidden(start, end))
        return end

    def _read_bracket(self, at: int) -> int | None:
        text = self._text
        if (footnote := _FOOTNOTE.match(text, at)) and footnote[0] in self._footnotes:
            return self._hide_to(at, footnote.end()) if text[footnote.end() : footnote.end() + 1] != "(" else None
        inside = text[at - 1 : at].isalnum() or text[at - 1 : at] in tuple("_()[]")
        if text.startswith("[[", at) and not (at and inside) and (wiki := _WIKI.match(text, at)):
            line_start = self._lines.start_of(at)
            heads = text[line_start : line_start + 6].lstrip().startswith("#")
            if heads and text[wiki.end() : wiki.end() + 1] in ("\n", ""):
                # A heading's own id, as the Hugging Face courses write it.
                self._found.append(Hidden(at, wiki.end(), "", wiki[0]))
                return wiki.end()
            return self._unwrap(wiki, "words" if wiki["words"] else "page")
        if text.startswith("[](", at) and (link := _EMPTY_LINK.match(text, at)):
            title = self._titles.get(link["target"])
            if title:
                self._found.append(Hidden(at + 1, at + 1, title))
            elif text[at - 1 : at] != "!":
                return self._hide_to(at, link.end())
            return link.end()
        return self._read_reference(at) if self._targets else self._read_object(at)

    def _read_reference(self, at: int) -> int | None:
        """`[words][name]`, `[name][]` and `[name]` lead where their definition says, maybe in another chunk."""
        text, found = self._text, _REFERRED.match(self._text, at)
        after = text[found.end() : found.end() + 1] if found else ""
        target = self._targets.get(" ".join(found["name"].casefold().split())) if found else None
        if found is None or target is None or after == "(" or (after == "[" and text[at - 1 : at] != "]"):
            return self._read_object(at)
        begin = at if text[at - 1 : at] == "]" else found.end("name") + 1
        self._hide_to(begin, found.end(), f"({to_target(target)})")
        return found.end() if begin == at else at + 1

    def _read_object(self, at: int) -> int | None:
        """[`zarr.open`][] and [the array][zarr.Array] lead to a program's object, which only the generator finds."""
        inside = self._text[at - 1 : at].isalnum() or self._text[at - 1 : at] in tuple("_)]!")
        return self._unwrap(_OBJECT.match(self._text, at), "words") if not (at and inside) else None


def _find_kind(name: str, told: str) -> str:
    """What a shortcode is for: `{{< alert color="warning" >}}`, `{{% notice tip %}}`, or its own name."""
    if name not in ("alert", "hint", "callout", "admonition", "notice"):
        return name
    style, first = _STYLE.search(told), told.split()[:1]
    kind = style[1].lower() if style else first[0] if first and first[0] in LABELS else name
    return "note" if kind == "primary" else kind
