"""What a page takes from other files of its book: includes of every generator, resolved inside the book's folder only."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

MOST, DEEPEST, RANGES = 1_000, 8, 20
MAX_CHARS = 16 * 1024 * 1024

ReadFile = Callable[[str], str | None]
"""A path in the book → the file's text; None where there is no such file in the book's folder."""

_PATH = r"(?P<path>[^\s\"'{}:#\]]+)"
_ANY = re.compile(
    r"\{\{\s*#|8<-|^<<<|@include|\{(?:literal)?include\}|readfile|\{(?:\{[<%]|%-?)\s*include|\{!|^\{\*|^import\b",
    re.MULTILINE,
)
_SIGNS = ("{{", "8<-", "<<<", "@include", "include}", "{!", "{%", "{*", "import ")
_MDBOOK = re.compile(
    rf"(?<!\\)\{{\{{\s*#(?:include|rustdoc_include|playground|playpen)\s+{_PATH}(?P<part>:[^\s{{}}]*)?[^{{}}\n]*\}}\}}"
)
_PLAYGROUND = re.compile(
    rf"^(?P<indent>[ \t]*)\{{\{{\s*#(?:playground|playpen)\s+{_PATH}(?P<part>:[^\s{{}}]*)?[^{{}}\n]*\}}\}}[ \t]*$"
)
# Of MkDocs' plugins markdown-include, mdx_include and include-markdown.
_PLUGIN = re.compile(
    r"\{(?:!>?|%-?[ \t]*include(?:-markdown)?[ \t]++[\"'])[ \t]*(?P<path>[^\s\"'{}\[\]!%]+)(?:\[ln:(?P<part>[\d,-]+)\])?[^{}\n]{0,200}[!%]\}"
)
_SNIPPET = re.compile(r"^(?P<indent>[ \t]*)-+8<-+[ \t]+[\"'](?P<path>[^\"':\n]+)(?P<part>:[^\"'\n]*)?[\"'][ \t]*$")
_SNIPPET_BLOCK = re.compile(r"^(?P<indent>[ \t]*)-+8<-+[ \t]*$")
_VITEPRESS = re.compile(rf"^(?P<indent>[ \t]*)<<<[ \t]+{_PATH}(?P<part>#[\w-]+)?(?P<more>[^\n]*)$")
_COMMENT = re.compile(rf"^(?P<indent>[ \t]*)<!--[ \t]*@include:[ \t]*{_PATH}(?P<part>[#{{][^\s>]*)?[ \t]*-->[ \t]*$")
_SHORTCODE = re.compile(
    r"^(?P<indent>[ \t]*)\{\{[<%][ \t]*(?:readfile[ \t][^{}\n]*?file=|readfile[ \t]+|include[ \t]+)[\"']?(?P<path>[^\s\"'{}<>%]+)[\"']?(?P<more>[^{}\n]*)[>%]\}\}[ \t]*$"
)
_MDX_INCLUDE = re.compile(rf"^(?P<indent>[ \t]*)\{{\*[ \t]+{_PATH}(?:[ \t]+ln\[(?P<part>[\d:,]+)\])?[^\n]*\*\}}[ \t]*$")
_DIRECTIVE = re.compile(
    r"^(?P<indent>[ \t]*)(?P<mark>`{3,}|~{3,}|:{3,})\{(?P<name>include|literalinclude)\}[ \t]+(?P<path>\S+)[ \t]*$"
)
_OPTION = re.compile(r"^[ \t]*:([\w-]+):[ \t]*(.*)$")
_PARTIAL = re.compile(r"^import[ \t]+(?P<name>[A-Z]\w*)[ \t]+from[ \t]+[\"'](?P<path>[^\"'\n]+\.mdx?)[\"'];?[ \t]*$")
_COMPONENT = re.compile(r"^(?P<indent>[ \t]*)<(?P<name>[A-Z]\w*)\b[^<>\n]*/>[ \t]*$")
_FENCE = re.compile(r"^[ \t>]*(?P<mark>`{3,}|~{3,})(?P<info>[^`\n]*)$")
_MARK = re.compile(r"ANCHOR(?:_END)?:|(?<!-)-++8<-++[ \t]*+\[(?:start|end):|#(?:end)?region\b")
_RANGE = re.compile(r"(\d*)(?:[:,-](\d*))?$")
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_BY_ENDING = {
    "rs": "rust",
    "py": "python",
    "yml": "yaml",
    "sh": "bash",
    "js": "js",
    "ts": "ts",
    "mjs": "js",
    "mts": "ts",
}


@dataclass(slots=True)
class Expanded:
    """`lines`: of each line of the text the line of the page's file that it comes from, counted from one."""

    text: str
    lines: tuple[int, ...] = ()
    taken: list[str] = field(default_factory=list[str])
    """The texts that were included."""
    complaints: list[str] = field(default_factory=list[str])


def expand_includes(path: str, text: str, start: int, read_file: ReadFile) -> Expanded:
    """The page with what it includes in its place, from `start` on."""
    if not any(sign in text for sign in _SIGNS) or _ANY.search(text, start) is None:
        return Expanded(text)
    first = text.count("\n", 0, start)
    expansion = _Expansion(read_file)
    shown, numbers = [text[:start]], [*range(1, first + 2)]
    pieces = list(expansion.expand(path, text[start:].split("\n"), (path,)))
    if not expansion.taken:
        return Expanded(text, complaints=expansion.complaints)
    body: list[str] = []
    numbers.pop()
    for line, piece in pieces:
        body.append(piece)
        numbers += [first + 1 + line] * (piece.count("\n") + 1)
    return Expanded("".join(shown) + "\n".join(body), tuple(numbers), expansion.taken, expansion.complaints)


class _Expansion:
    def __init__(self, read_file: ReadFile) -> None:
        self._read_file = read_file
        self._left, self._room = MOST, MAX_CHARS
        self.taken: list[str] = []
        self.complaints: list[str] = []

    def expand(self, path: str, lines: Sequence[str], above: tuple[str, ...]) -> Iterator[tuple[int, str]]:
        """Each line with its number; one that includes becomes all that it takes."""
        partials: dict[str, str] = {}
        fence, at = "", 0
        while at < len(lines):
            number, line = at, lines[at]
            at += 1
            if found := _DIRECTIVE.match(line) if not fence else None:
                end = next((n for n in range(at, min(at + 50, len(lines))) if lines[n].strip() == found["mark"]), at)
                yield number, self._direct(path, found, lines[at:end], above) or "\n".join(lines[number : end + 1])
                at = end + 1
                continue
            if found := _SNIPPET_BLOCK.match(line):
                end = next((n for n in range(at, min(at + 50, len(lines))) if _SNIPPET_BLOCK.match(lines[n])), None)
                if end is not None:
                    for name in filter(str.strip, lines[at:end]):
                        yield number, self._take(path, name.strip(), "", found["indent"], above) or name
                    at = end + 1
                    continue
            mark = _FENCE.match(line)
            if mark and not fence:
                fence = mark["mark"]
            elif mark and mark["mark"].startswith(fence) and not mark["info"].strip():
                fence = ""
            if not fence and (found := _PARTIAL.match(line)):
                partials[found["name"]] = found["path"]
            yield number, self._expand_line(path, line, bool(fence), partials, above)

    def _expand_line(
        self, path: str, line: str, in_fence: bool, partials: dict[str, str], above: tuple[str, ...]
    ) -> str:
        if found := _SNIPPET.match(line):
            return self._take(path, found["path"], found["part"] or "", found["indent"], above) or line
        if not in_fence and (found := _PLAYGROUND.match(line)):
            return self._list(path, found, found["part"] or "", above) or line
        plugin = "{!" in line or ("{%" in line and not in_fence)
        pattern = _PLUGIN if plugin and _PLUGIN.search(line) else _MDBOOK
        if (pattern is _PLUGIN or "{{" in line) and not _SHORTCODE.match(line):
            return pattern.sub(lambda one: self._take(path, one["path"], one["part"] or "", "", above) or one[0], line)
        if in_fence:
            return line
        if found := _VITEPRESS.match(line):
            return self._list(path, found, found["part"] or "", above) or line
        if found := _MDX_INCLUDE.match(line):
            return self._list(path, found, found["part"] or "", above) or line
        if found := _COMMENT.match(line) or _SHORTCODE.match(line):
            more = found.groupdict().get("more") or ""
            if "code=" in more:
                return self._list(path, found, "", above) or line
            return self._take(path, found["path"], found.groupdict().get("part") or "", found["indent"], above) or line
        if (found := _COMPONENT.match(line)) and (partial := partials.get(found["name"])):
            return self._take(path, partial, "", found["indent"], above) or line
        return line

    def _direct(self, path: str, found: re.Match[str], inside: Sequence[str], above: tuple[str, ...]) -> str | None:
        options: dict[str, str] = {one[1]: one[2] for one in map(_OPTION.match, inside) if one}
        lines = options.get("lines") or ""
        if found["name"] == "include":
            return self._take(path, found["path"], lines, found["indent"], above)
        return self._list(path, found, lines, above, options.get("language", ""), options.get("caption", ""))

    def _list(
        self, path: str, found: re.Match[str], part: str, above: tuple[str, ...], language: str = "", title: str = ""
    ) -> str | None:
        """As a listing, in the language that the file's name says."""
        listing = self._take(path, found["path"], part, "", (*above, ""))
        if listing is None:
            return None
        ending = posixpath.splitext(found["path"])[1].lstrip(".")
        longest = max((len(run) for run in re.findall(r"^[ \t]*(`{3,})", listing, re.MULTILINE)), default=2)
        mark = "`" * (longest + 1)
        named = f' title="{title}"' if title else ""
        lines = [f"{mark}{language or _BY_ENDING.get(ending, ending)}{named}", *listing.split("\n"), mark]
        return "\n".join(found["indent"] + line for line in lines)

    def _take(self, path: str, wanted: str, part: str, indent: str, above: tuple[str, ...]) -> str | None:
        """The text of an included file; None where it cannot be had. An empty name above says that it is a listing."""
        for there in _candidates(path, wanted):
            if there in above:
                self.complaints.append(f"“{wanted}” includes itself; it was left out")
                return ""
            if len(above) > DEEPEST or self._left <= 0 or self._room <= 0:
                self.complaints.append(f"“{wanted}” was not included: there is too much of it")
                return None
            text = self._read_file(there)
            if text is None:
                continue
            self._left -= 1
            self._room -= len(text) * (1 + part.count(","))
            self.taken.append(text)
            chosen = _choose(_FRONT_MATTER.sub("", text) if there.endswith((".md", ".mdx")) else text, part)
            lines = [line for line in chosen if not _MARK.search(line)]
            if "" not in above and _ANY.search("\n".join(lines)):
                lines = "\n".join(piece for _, piece in self.expand(there, lines, (*above, there))).split("\n")
            self._room -= len(indent) * len(lines)
            if self._room < 0:
                self.complaints.append(f"“{wanted}” was not included: there is too much of it")
                return None
            return "\n".join(indent + line if line else line for line in lines).rstrip("\n")
        self.complaints.append(f"“{wanted}” is not a file of this book; it was not included")
        return None


def _candidates(path: str, wanted: str) -> Iterator[str]:
    """Beside the page, then from each folder above it, as generators count from their own roots."""
    wanted = re.sub(r"^@(?:site/|/)?", "", wanted)
    folder = posixpath.dirname(path)
    while True:
        there = posixpath.normpath(posixpath.join(folder, wanted.lstrip("/")))
        if not there.startswith("../") and there != "..":
            yield there
        if not folder:
            return
        folder = posixpath.dirname(folder)


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
        for one in wanted.split(",")[:RANGES]:
            chosen += _choose(text, one) if one else []
        return chosen
    name = re.escape(wanted)
    begins = re.compile(rf"(?:ANCHOR:[ \t]*|\[start:|#region[ \t]+){name}\b")
    start = next((at + 1 for at, line in enumerate(lines) if begins.search(line)), None)
    if start is None:
        return lines
    stop = re.compile(rf"(?:ANCHOR_END:[ \t]*|\[end:){name}\b|#endregion\b")
    end = next((at for at in range(start, len(lines)) if stop.search(lines[at])), len(lines))
    return lines[start:end]
