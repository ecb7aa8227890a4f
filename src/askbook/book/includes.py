"""What a page takes from other files of its book: includes of every generator, resolved in the book's folder only."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from types import MappingProxyType

MOST, DEEPEST, RANGES = 1_000, 8, 20
MAX_CHARS = 16 * 1024 * 1024

ReadFile = Callable[[str], str | None]
"""A path in the book → the file's text; None where there is no such file in the book's folder."""

_PATH = r"(?P<path>[^\s\"'{}:#\]]+)"
# Alternatives that open with few different characters are found five times as fast as lines marked by `^`.
_ANY = re.compile(
    r"\{\{\s*#|8<-|@include|\{(?:literal)?include\}|\{(?:\{[<%]|%-?)\s*(?:include|readfile)|\{!"
    r"|\n(?:<<<|\{\*|[ \t]*!!![ \t]*include\(|import\b)"
)
_SIGNS = ("{{", "8<-", "<<<", "@include", "include(", "include}", "{!", "{%", "{*", "import ")
_MDBOOK = re.compile(
    rf"(?<!\\)\{{\{{\s*#(?:include|rustdoc_include|playground|playpen)\s+{_PATH}(?P<part>:[^\s{{}}]*)?[^{{}}\n]*\}}\}}"
)
_PLAYGROUND = re.compile(
    rf"^(?P<indent>[ \t]*)\{{\{{\s*#(?:playground|playpen)\s+{_PATH}(?P<part>:[^\s{{}}]*)?[^{{}}\n]*\}}\}}[ \t]*$"
)
# Of MkDocs' plugins markdown-include, mdx_include and include-markdown.
_PLUGIN = re.compile(
    r"\{(?:!>?|%-?[ \t]*include(?:-markdown)?[ \t]++[\"'])[ \t]*(?P<path>[^\s\"'{}\[\]!%]+)"
    r"(?:\[ln:(?P<part>[\d,-]+)\])?[^{}\n]{0,200}[!%]\}"
)
_SNIPPET = re.compile(r"^(?P<indent>[ \t]*)-+8<-+[ \t]+[\"'](?P<path>[^\"':\n]+)(?P<part>:[^\"'\n]*)?[\"'][ \t]*$")
_SNIPPET_BLOCK = re.compile(r"^(?P<indent>[ \t]*)-+8<-+[ \t]*$")
_VITEPRESS = re.compile(rf"^(?P<indent>[ \t]*)<<<[ \t]+{_PATH}(?P<part>#[\w-]+)?(?P<more>[^\n]*)$")
_COMMENT = re.compile(rf"^(?P<indent>[ \t]*)<!--[ \t]*@include:[ \t]*{_PATH}(?P<part>[#{{][^\s>]*)?[ \t]*-->[ \t]*$")
_EXCLAIMED = re.compile(r"^(?P<indent>[ \t]*)!!![ \t]*include\([ \t]*(?P<path>[^()\s]+)[ \t]*\)[ \t]*!!![ \t]*$")
_SHORTCODE = re.compile(
    r"^(?P<indent>[ \t]*)\{\{[<%][ \t]*(?:readfile[ \t][^{}\n]*?file=|readfile[ \t]+|include[ \t]+)[\"']?"
    r"(?P<path>[^\s\"'{}<>%]+)[\"']?(?P<more>[^{}\n]*)[>%]\}\}[ \t]*$"
)
_MDX_INCLUDE = re.compile(rf"^(?P<indent>[ \t]*)\{{\*[ \t]+{_PATH}(?:[ \t]+ln\[(?P<part>[\d:,]+)\])?[^\n]*\*\}}[ \t]*$")
_DIRECTIVE = re.compile(
    r"^(?P<indent>[ \t]*)(?P<mark>`{3,}|~{3,}|:{3,})\{(?P<name>include|literalinclude)\}[ \t]+(?P<path>\S+)[ \t]*$"
)
_OPTION = re.compile(r"^[ \t]*:?([\w-]+):(?:[ \t]++(?P<quote>[\"']?)(?P<value>.*)(?P=quote)[ \t]*)?$")
_NUMBER = re.compile(r"-?\d{1,9}$")
_PARTIAL = re.compile(
    r"(?:^|;[ \t]*+)import[ \t]+(?P<name>[A-Z]\w*)[ \t]+from[ \t]+[\"'](?P<path>[^\"'\n]+\.mdx?)[\"'](?=[ \t]*(?:;|$))"
)
_COMPONENT = re.compile(r"^(?P<indent>[ \t]*)<(?P<name>[A-Z]\w*)\b[^<>\n]*/>[ \t]*$")
_FENCE = re.compile(r"^[ \t>]*(?P<mark>`{3,}|~{3,})(?P<info>[^`\n]*)$")
_MARK = re.compile(r"ANCHOR(?:_END)?:|(?<!-)-++8<-++[ \t]*+\[(?:start|end):|#(?:end)?region\b")
_RANGE = re.compile(r"(\d*)(?:[:,-](\d*))?$")
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_BY_ENDING = {"rs": "rust", "py": "python", "yml": "yaml", "sh": "bash", "mjs": "js", "mts": "ts"}


@dataclass(slots=True)
class Expanded:
    """`lines`: of each line of the text the line of the page's file that it comes from, counted from one."""

    text: str
    lines: tuple[int, ...] = ()
    taken: list[str] = field(default_factory=list[str])
    """The texts that were included."""
    complaints: list[str] = field(default_factory=list[str])


def expand_includes(path: str, text: str, start: int, read_file: ReadFile, snippets: tuple[str, ...] = ()) -> Expanded:
    """The page with what it includes in its place, from `start` on. `snippets`: the folders `--8<--` counts from."""
    if not any(sign in text for sign in _SIGNS) or _ANY.search(f"\n{text[start:]}") is None:
        return Expanded(text)
    first = text.count("\n", 0, start)
    expansion = _Expansion(read_file, snippets)
    pieces = list(expansion.expand(text[start:].split("\n"), (path,)))
    if not expansion.taken:
        return Expanded(text, complaints=expansion.complaints)
    numbers = [*range(1, first + 1)]
    for line, piece in pieces:
        numbers += [first + 1 + line] * (piece.count("\n") + 1)
    body = "\n".join(piece for _, piece in pieces)
    return Expanded(text[:start] + body, tuple(numbers), expansion.taken, expansion.complaints)


class _Expansion:
    def __init__(self, read_file: ReadFile, snippets: tuple[str, ...]) -> None:
        self._read_file, self._snippets = read_file, snippets
        self._left, self._room = MOST, MAX_CHARS
        self.taken: list[str] = []
        self.complaints: list[str] = []

    def expand(self, lines: Sequence[str], above: tuple[str, ...]) -> Iterator[tuple[int, str]]:
        """Each line with its number; one that includes becomes all that it takes. `above`: the files that are open."""
        partials: dict[str, str] = {}
        fence, at = "", 0
        while at < len(lines):
            number, line = at, lines[at]
            at += 1
            below = range(at, min(at + 50, len(lines)))
            if found := _DIRECTIVE.match(line) if not fence else None:
                end = next((n for n in below if lines[n].strip() == found["mark"]), at)
                yield number, self._direct(found, lines[at:end], above) or "\n".join(lines[number : end + 1])
                at = end + 1
                continue
            if found := _SNIPPET_BLOCK.match(line):
                end = next((n for n in below if _SNIPPET_BLOCK.match(lines[n])), None)
                if end is not None:
                    for name in filter(str.strip, lines[at:end]):
                        taken = self._take(name.strip(), above, indent=found["indent"], folders=self._snippets)
                        yield number, taken or name
                    at = end + 1
                    continue
            mark = _FENCE.match(line)
            if mark and not fence:
                fence = mark["mark"]
            elif mark and mark["mark"].startswith(fence) and not mark["info"].strip():
                fence = ""
            for found in _PARTIAL.finditer(line) if not fence and line.startswith("import") else ():
                # In a text of JavaScript `\_` is `_`.
                partials[found["name"]] = re.sub(r"\\(?=_)", "", found["path"])
            yield number, self._expand_line(line, bool(fence), partials, above) or line

    def _expand_line(
        self, line: str, in_fence: bool, partials: Mapping[str, str], above: tuple[str, ...]
    ) -> str | None:
        if found := _SNIPPET.match(line):
            return self._take(found["path"], above, found["part"], found["indent"], folders=self._snippets)
        if not in_fence and (found := _PLAYGROUND.match(line)):
            return self._list(found, above)
        is_plugin = ("{!" in line or ("{%" in line and not in_fence)) and _PLUGIN.search(line)
        if (is_plugin or "{{" in line) and not _SHORTCODE.match(line):
            pattern = _PLUGIN if is_plugin else _MDBOOK
            return pattern.sub(lambda found: self._take(found["path"], above, found["part"]) or found[0], line)
        if in_fence:
            return None
        if found := _VITEPRESS.match(line) or _MDX_INCLUDE.match(line):
            return self._list(found, above)
        if found := _COMMENT.match(line) or _EXCLAIMED.match(line):
            return self._take(found["path"], above, found.groupdict().get("part"), found["indent"])
        if found := _SHORTCODE.match(line):
            is_code = "code=" in found["more"]
            return self._list(found, above) if is_code else self._take(found["path"], above, indent=found["indent"])
        found = _COMPONENT.match(line)
        partial = partials.get(found["name"]) if found else None
        return self._take(partial, above, indent=found["indent"]) if found and partial else None

    def _direct(self, found: re.Match[str], inside: Sequence[str], above: tuple[str, ...]) -> str | None:
        options = {option[1]: (option["value"] or "").strip() for option in map(_OPTION.match, inside) if option}
        if found["name"] == "include":
            return self._take(found["path"], above, options.get("lines"), found["indent"], options)
        return self._list(found, above, options)

    def _list(
        self, found: re.Match[str], above: tuple[str, ...], options: Mapping[str, str] = MappingProxyType({})
    ) -> str | None:
        """As a listing, in the language that the file's name says."""
        part = options.get("lines") or found.groupdict().get("part")
        listing = self._take(found["path"], above, part, options=options, is_listing=True)
        if listing is None:
            return None
        ending = posixpath.splitext(found["path"])[1].lstrip(".")
        longest = max((len(run) for run in re.findall(r"^[ \t]*(`{3,})", listing, re.MULTILINE)), default=2)
        mark = "`" * (longest + 1)
        title = f' title="{options["caption"]}"' if options.get("caption") else ""
        language = options.get("language") or _BY_ENDING.get(ending, ending)
        lines = [f"{mark}{language}{title}", *listing.split("\n"), mark]
        return "\n".join(found["indent"] + line for line in lines)

    def _take(
        self,
        wanted: str,
        above: tuple[str, ...],
        part: str | None = None,
        indent: str = "",
        options: Mapping[str, str] = MappingProxyType({}),
        folders: tuple[str, ...] = (),
        is_listing: bool = False,
    ) -> str | None:
        """The text of an included file; None where it cannot be had."""
        too_much = f"“{wanted}” was not included: there is too much of it"
        part = part or ""
        for there in _candidates(above[-1], wanted, folders):
            if there in above:
                self.complaints.append(f"“{wanted}” includes itself; it was left out")
                return ""
            if len(above) + is_listing > DEEPEST or self._left <= 0 or self._room <= 0:
                self.complaints.append(too_much)
                return None
            text = self._read_file(there)
            if text is None:
                continue
            self._left -= 1
            try:
                text = _limit(text, options, is_listing) if options else text
            except _NotThere as error:
                self.complaints.append(f"“{wanted}” was not included: {error}, which cannot be found in it")
                return None
            self._room -= len(text) * (1 + part.count(","))
            self.taken.append(text)
            chosen = _choose(_FRONT_MATTER.sub("", text) if there.endswith((".md", ".mdx")) else text, part)
            lines = [line for line in chosen if not _MARK.search(line)]
            if not is_listing and _ANY.search("\n".join(["", *lines])):
                lines = "\n".join(piece for _, piece in self.expand(lines, (*above, there))).split("\n")
            self._room -= len(indent) * len(lines)
            if self._room < 0:
                self.complaints.append(too_much)
                return None
            return "\n".join(indent + line if line else line for line in lines).rstrip("\n")
        self.complaints.append(f"“{wanted}” is not a file of this book; it was not included")
        return None


def _candidates(path: str, wanted: str, folders: tuple[str, ...]) -> Iterator[str]:
    """In the folders that the site names, beside the page, then from each folder above it, as generators count."""
    wanted = re.sub(r"^@(?:site/|/)?", "", wanted)
    for folder in (*folders, *map(str, PurePosixPath(path).parents)):
        there = posixpath.normpath(posixpath.join(folder, wanted.lstrip("/")))
        if not there.startswith("../") and there != "..":
            yield there


class _NotThere(Exception):
    """What an option names is not in the file."""

    def __init__(self, option: str, value: str) -> None:
        super().__init__(f"`{option}` is {value[:60]!r}")


def _limit(text: str, options: Mapping[str, str], is_listing: bool) -> str:
    """What a directive's options leave of a file: of a listing Sphinx takes whole lines, docutils cuts at the text."""
    if is_listing:
        lines = text.split("\n")
        if name := options.get("pyobject"):
            lines = _find_object(lines, name)
        for option in filter(options.get, ("start-at", "start-after", "end-at", "end-before")):
            lines = _limit_lines(lines, option, options[option])
        return "\n".join(lines)
    bounds: list[int | None] = []
    for option in ("start-line", "end-line"):
        written = options.get(option)
        if written and not _NUMBER.match(written):
            raise _NotThere(option, written)
        bounds.append(int(written) if written else None)
    text = "\n".join(text.removesuffix("\n").split("\n")[slice(*bounds)])
    for option in filter(options.get, ("start-after", "end-before")):
        before, found, after = text.partition(options[option])
        if not found:
            raise _NotThere(option, options[option])
        text = after if option == "start-after" else before
    return text


def _limit_lines(lines: list[str], option: str, wanted: str) -> list[str]:
    # Sphinx ends before no first line, so that `start-at` and `end-before` may name alike lines.
    begin = 1 if option == "end-before" else 0
    at = next((at for at in range(begin, len(lines)) if wanted in lines[at]), None)
    if at is None:
        raise _NotThere(option, wanted)
    if option in ("start-after", "end-at"):
        at += 1
    return lines[at:] if option.startswith("start") else lines[:at]


def _find_object(lines: list[str], name: str) -> list[str]:
    """A function or class of a Python file with its decorators, by its indentation alone."""
    first, end, outer = 0, len(lines), -1
    for part in name.split("."):
        opens = re.compile(rf"([ \t]*)(?:async[ \t]+)?(?:def|class)[ \t]+{re.escape(part)}\b")
        found = [(len(opening[1]), at) for at in range(first, end) if (opening := opens.match(lines[at]))]
        found = [place for place in found if place[0] > outer]
        if not found:
            raise _NotThere("pyobject", name)
        outer, at = min(found)
        closed = re.compile(rf"[ \t]{{0,{outer}}}[^\s#)\]}}]")
        end = next((below for below in range(at + 1, end) if closed.match(lines[below])), end)
        first = at + 1
    while not lines[end - 1].strip() or re.match(rf"[ \t]{{0,{outer}}}#", lines[end - 1]):
        end -= 1
    begin = first - 1
    while begin and re.match(rf"[ \t]{{{outer}}}@", lines[begin - 1]):
        begin -= 1
    taken = "\n".join(lines[begin:end])
    # A decorator over several lines, or a text that reaches the margin: its bounds cannot be told so.
    is_open = taken.count('"""') % 2 or taken.count("'''") % 2
    if is_open or (begin and re.match(rf"[ \t]{{{outer}}}[)\]}}]", lines[begin - 1])):
        raise _NotThere("pyobject", name)
    return lines[begin:end]


def _choose(text: str, part: str) -> list[str]:
    """The named part, or the lines from one to another, or all."""
    lines = text.split("\n")
    wanted = part.strip("{}").lstrip(":#").strip()
    if not wanted:
        return lines
    if "," not in wanted and (found := _RANGE.match(wanted)) and wanted[0] in "0123456789:":
        first = int(found[1]) if found[1] else 1
        last = int(found[2]) if found[2] else len(lines) if found[2] is not None else first
        return lines[max(0, first - 1) : last]
    if re.fullmatch(r"[\d,:-]+", wanted):
        chosen: list[str] = []
        for piece in filter(None, wanted.split(",")[:RANGES]):
            chosen += _choose(text, piece)
        return chosen
    name = re.escape(wanted)
    begins = re.compile(rf"(?:ANCHOR:[ \t]*|\[start:|#region[ \t]+){name}\b")
    start = next((at + 1 for at, line in enumerate(lines) if begins.search(line)), None)
    if start is None:
        return lines
    stop = re.compile(rf"(?:ANCHOR_END:[ \t]*|\[end:){name}\b|#endregion\b")
    end = next((at for at in range(start, len(lines)) if stop.search(lines[at])), len(lines))
    return lines[start:end]
