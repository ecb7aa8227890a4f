"""What may reach a model or a screen: nothing invisible, no delimiters that a model obeys, no links out of the book."""

from __future__ import annotations

import base64
import html
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

# --- what cannot be seen --------------------------------------------------------------------------

_HIDDEN_CATEGORIES = frozenset(("Cc", "Cf", "Cs", "Co", "Cn"))
# Blank, although Unicode calls them letters, marks and symbols.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
_JOINERS = "\u200c\u200d"
_SELECTORS = "\ufe0e\ufe0f"
_OTHER_SELECTORS = (range(0xFE00, 0xFE0E), range(0xE0100, 0xE01F0))
_IN_DOUBT = re.compile(rf"[{_JOINERS}{_SELECTORS}]")
_FIRST_JOINING_SCRIPT = "\u0590"


class _Visible(dict[int, str | None]):
    """For `str.translate`: each character is judged once."""

    def __missing__(self, code: int) -> str | None:
        char = chr(code)
        is_hidden = unicodedata.category(char) in _HIDDEN_CATEGORIES or char in _BLANK
        is_hidden = is_hidden or any(code in selectors for selectors in _OTHER_SELECTORS)
        seen = "\n" if char in "\u2028\u2029" else None if is_hidden else char
        self[code] = seen = char if char in f"\n\t{_JOINERS}" else seen
        return seen


_VISIBLE = _Visible()


def drop_invisible(text: str) -> str:
    """Works by character, so that a text may come in any pieces; those that need their neighbours to be judged stay."""
    return text.translate(_VISIBLE)


def clean(text: str) -> str:
    """Drops characters that command a terminal, reorder text, or are seen by machines only."""
    return _IN_DOUBT.sub(lambda found: found[0] if _is_at_home(found) else "", drop_invisible(text))


def _is_at_home(found: re.Match[str]) -> bool:
    before, after = found.string[: found.start()][-1:], found.string[found.end() : found.end() + 1]
    if found[0] in _JOINERS:
        return _joins(before, "LMS") and _joins(after, "LS")
    return after == "\u20e3" or (before > "\x7f" and unicodedata.category(before)[0] in "SP")


def _joins(char: str, kinds: str) -> bool:
    """Latin, Greek and Cyrillic letters never join: there a joiner only hides a word from a search."""
    return char >= _FIRST_JOINING_SCRIPT and unicodedata.category(char)[0] in kinds


# --- what a model would obey ----------------------------------------------------------------------

_OPENS_TOKEN = re.compile(r"<(?=[|｜])")
_BRACKET_TOKEN = re.compile(
    r"\[(?=/?(?:INST|SYS|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\])", re.IGNORECASE
)
_DELIMITER = re.compile(
    r"<(?=/?<?\s*/?\s*(?:s|sys|bos|eos|pad|unk|(?:\w+:)?"
    r"(?:system|user|human|assistant|developer|context|documents?|document_\w+|passages?|instructions?|prompt"
    r"|tools?|tool_\w+|functions?|function_\w+|invoke|search_results?|retrieved\w*|think|thinking|start_of_\w+|end_of_\w+))"
    r"\b[^<>]{0,200}>)",
    re.IGNORECASE,
)
_ROLE = re.compile(
    r"^((?:Human|Assistant|System|User)|#{2,} ?(?:Instruction|Response|Human|Assistant|System|User))(?=:)", re.MULTILINE
)


def escape_for_model(text: str) -> str:
    """Book text as data: special tokens and prompt delimiters stay readable but lose their effect."""
    text = _OPENS_TOKEN.sub("< ", clean(text))
    text = _BRACKET_TOKEN.sub("[ ", text)
    return _ROLE.sub(r"\1 ", _DELIMITER.sub("‹", text))


# --- what leaves the book -------------------------------------------------------------------------

IsBookLink = Callable[[str], bool]

LINK_REMOVED = "[link removed]"
_PASSES = 8

_PARSER = MarkdownIt("commonmark").enable("table")
_NESTED = r"(?:\\.|[^\[\]\\]|\[(?:\\.|[^\[\]\\])*\])*"
_TARGET = r"\((?:\\.|[^()\\\n]|\((?:\\.|[^()\\\n])*\))*\)"
_DEFINITION = re.compile(
    r"^[ \t>*+-]*\[(?:\\.|[^\[\]\\])+\]:[ \t]*(?:\n[ \t]*)?(?:<[^<>\n]*>|\S*)[ \t]*(?:\n?[ \t]*[\"'(][^\n]*)?$",
    re.MULTILINE,
)
_BARE = (
    r"(?:(?:https?|ftp|wss?)://|www\.|(?<![\w:/])//(?=[\w-]+(?:\.[\w-]+)+))[^\s<>‹›`]+"
    r"|\b(?:javascript|vbscript|mailto):[^\s<>‹›`]*|\bdata:\w+/[^\s<>‹›`]*"
)
# Code spans end at their line: beyond it, a list, a heading or a blank line could cut them in two.
_CONSTRUCT = re.compile(
    r"(?P<escaped>\\[!-/:;=-@\[-`{-~])"
    r"|(?P<ticks>`+)(?!`)(?P<code>[^\n]+?)(?<!`)(?P=ticks)(?!`)"
    rf"|!\[(?P<alt>{_NESTED})\](?:{_TARGET}|\[[^\[\]]*\])?"
    rf"|\[(?P<text>{_NESTED})\](?P<target>{_TARGET})"
    r"|\[(?P<label>[^\[\]]*[^\[\]\d\s,^][^\[\]]*)\]\[[^\[\]]*\]"
    r"|<(?P<auto>[A-Za-z][A-Za-z0-9+.-]*:[^\s<>]*)>"
    r"|(?P<tag><(?=[A-Za-z/!?])[^<>]*>?)"
    rf"|(?P<bare>{_BARE})"
    r"|(?P<left>`+)"
    r"|(?P<opening>\])(?=\()",
    re.DOTALL | re.IGNORECASE,
)
_TRAILING = ".,;:!?'\"*_)]"
_TITLE = re.compile(r"(?<!\s)\s++(?:\"[^\"]*\"|'[^']*'|\([^()]*\))\s*$")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_NO_URL = re.compile(r"[\s\\<>\"'`()\[\]{}|^]")


def keep_book_links(text: str, allowed: IsBookLink) -> str:
    """An answer's Markdown with only the links that `allowed` accepts, without images and HTML. Code stays."""
    tokens: list[Token] = []
    _PARSER.block.parse(text, _PARSER, {}, tokens)
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    pieces: list[str] = []
    at = 0
    for start, end in (token.map for token in tokens if token.type == "fence" and token.map):
        pieces += _rewrite_all("".join(lines[at:start]), allowed), "".join(lines[start:end])
        at = end
    return "".join((*pieces, _rewrite_all("".join(lines[at:]), allowed)))


def _rewrite_all(text: str, allowed: IsBookLink) -> str:
    """Repeats until nothing changes, since removing something may create a link."""
    for _ in range(_PASSES):
        rewritten = _CONSTRUCT.sub(lambda found: _rewrite(found, allowed), _DEFINITION.sub("", text))
        if rewritten == text:
            return text
        text = rewritten
    return re.sub(r"[\[\]<>`:]", "", text)


def _rewrite(found: re.Match[str], allowed: IsBookLink) -> str:
    match found.lastgroup:
        case "code":
            # In a table a bar ends the cell, and the code with it.
            code = _rewrite_all(found["code"], allowed) if "|" in found["code"] else found["code"]
            return f"{found['ticks']}{code}{found['ticks']}"
        case "alt":
            return found["alt"]
        case "target":
            url = _TITLE.sub("", found["target"][1:-1].strip()).strip().removeprefix("<").removesuffix(">")
            url, words = _ESCAPED.sub(r"\1", html.unescape(url)), _rewrite_all(found["text"], allowed)
            return f"[{words}]({url})" if _leads_into_book(url, allowed) else words
        case "label":
            return found["label"]
        case "auto":
            return found[0] if _leads_into_book(found["auto"], allowed) else LINK_REMOVED
        case "tag":
            if re.fullmatch(r"<br\s*/?>", found["tag"], re.IGNORECASE):
                return " "
            return found["tag"].replace("<", "‹").replace(">", "›").replace("`", "'")
        case "bare":
            # A renderer would read further than the pattern did.
            goes_on = found.string[found.end() : found.end() + 1] in tuple("‹›`<>")
            url = found["bare"].rstrip(_TRAILING)
            is_kept = not goes_on and _leads_into_book(url, allowed)
            return found["bare"] if is_kept else LINK_REMOVED + found["bare"][len(url) :]
        case "left":
            # It opens no code here, but together with the next sentence it could.
            return "'" * len(found[0])
        case "opening":
            return "] "
        case _:
            return found[0]


def _leads_into_book(url: str, allowed: IsBookLink) -> bool:
    if _NO_URL.search(url) or not url.isprintable() or url.startswith("//"):
        return False
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    # "https://book.example@evil.example" leads to evil.example, whatever it looks like.
    if parts.scheme not in ("", "http", "https") or "@" in parts.netloc or "%" in parts.netloc:
        return False
    return bool(url) and (bool(parts.netloc) or not parts.scheme) and allowed(url)


# --- what must not get out ------------------------------------------------------------------------

SECRET_WORDS = 8


class Secret:
    """Finds runs of the instructions in a text that comes sentence by sentence, even if encoded."""

    def __init__(self, secret: str) -> None:
        self._runs = _find_runs(_to_words(secret))
        self._last: list[str] = []

    def leaks(self, text: str) -> bool:
        words = [*self._last, *_to_words(text)]
        self._last = words[1 - SECRET_WORDS :]
        decoded = _to_words(" ".join(decode_hidden(text)))
        return not self._runs.isdisjoint(_find_runs(words) | _find_runs(decoded))


def decode_hidden(text: str) -> Iterator[str]:
    """Its decoded Base64 and hexadecimal."""
    for blob in re.findall(r"[A-Za-z0-9+/]{20,}={0,2}", text):
        with suppress(ValueError):
            yield base64.b64decode(blob[: len(blob) // 4 * 4]).decode("utf-8", "ignore")
        with suppress(ValueError):
            yield bytes.fromhex(blob).decode("utf-8", "ignore")


def _to_words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _find_runs(words: Sequence[str]) -> set[tuple[str, ...]]:
    return {tuple(words[at : at + SECRET_WORDS]) for at in range(len(words) - SECRET_WORDS + 1)}
