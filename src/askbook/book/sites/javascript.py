"""The literals of a JavaScript or TypeScript file: texts, numbers, lists and objects. Nothing is run.

What is no literal is unknown (None): calls, functions, conditions. A name stands for the literal it was given in the
same file or in a file of the book that is imported by a relative path; `a || b` is b where a is unknown, since no
environment variable is set here; an unknown `...spread` is a call of that name in its place; a call keeps its arguments
(`defineConfig({…})`), and one of a function of the file that does nothing but return a literal is that literal.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

Load = Callable[[str, str], tuple[str, str] | None]
"""The path of a file and what it imports → that file's path and text."""

MAX_DEPTH = 40
MAX_VALUES = 100_000
MAX_FILES = 20
MAX_TYPE = 20
SPREAD = "..."

_TOKEN = re.compile(
    r"""(?P<space>\s++|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z))
    |(?P<text>"(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+'|`(?:[^`\\$]|\\.|\$(?!\{))*+`)
    |(?P<number>\d[\w.]*+)
    |(?P<name>[A-Za-z_$][\w$]*+)
    |(?P<mark>\.\.\.|=>|\|\||\?\?|&&|[=!]==?|.)""",
    re.VERBOSE | re.DOTALL,
)
_IN_TEMPLATE = re.compile(r"\\.|`|\$\{|[{}]", re.DOTALL)
_REGEX = re.compile(r"/(?![*/])(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.){0,200}+\]){1,300}+/[a-z]*+")
_ESCAPE = re.compile(r"\\(?:u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r"} | dict.fromkeys("bfv0\n", "")
_WORDS: dict[str, object] = {"true": True, "false": False, "null": None, "undefined": None}
_PAIRS = {"(": ")", "[": "]", "{": "}"}
_BEFORE_REGEX = ("(", ",", "=", ":", "[", "!", "&&", "||", "?", "{", "}", ";", "=>", "return")
_ENDS = (",", ")", "]", "}", ";")


@dataclass(slots=True)
class _Token:
    kind: str
    text: str
    new_line: bool
    end: int = 0
    """Of an opening bracket: where the bracket that closes it stands."""


@dataclass(frozen=True, slots=True)
class _Name:
    name: str
    rest: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Spread:
    value: object


@dataclass(frozen=True, slots=True)
class _Import:
    source: str
    name: str


@dataclass(frozen=True, slots=True)
class _Either:
    first: object
    other: object


@dataclass(frozen=True, slots=True)
class Call:
    """`name(…)`; `new` and what stands before a dot belong to the name."""

    name: str
    arguments: list[Any]


@dataclass(slots=True)
class _File:
    path: str
    names: dict[str, object] = field(default_factory=dict[str, object])
    exports: dict[str, object] = field(default_factory=dict[str, object])
    functions: dict[str, object] = field(default_factory=dict[str, object])
    all_from: list[str] = field(default_factory=list[str])
    objects: list[dict[Any, Any]] = field(default_factory=list[dict[Any, Any]])

    def exported(self, name: str) -> object:
        module = self.exports.get("module")
        if name in self.exports or name == "default":
            return self.exports.get(name, module)
        if isinstance(module, dict) and name in module:
            return module[name]
        return reduce(_Either, (_Import(source, name) for source in self.all_from), None)


def read_javascript(path: str, text: str, load: Load, wanted: tuple[str, ...] = ()) -> Any:
    """What the file exports, as plain values. `wanted`: keys of the object to take where that export is no literal."""
    reading = _Reading(load)
    file = reading.read(path, text)
    found = find_object(reading.resolve(file.exported("default"), file))
    if found is None and wanted:
        best = max(file.objects, key=lambda entries: (len(set(wanted) & set(entries)), len(entries)), default={})
        found = reading.resolve(best, file) if set(wanted) & set(best) else None
    return found


def find_object(value: object) -> Any:
    """The object or list that a value is, or that is handed to the functions wrapped around it."""
    for _ in range(MAX_DEPTH):
        if not isinstance(value, Call):
            break
        value = next((found for found in value.arguments if isinstance(found, dict | list | Call)), None)
    return value if isinstance(value, dict | list) else None


# --- text → tokens --------------------------------------------------------------------------------


def _tokenize(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    open_brackets: list[int] = []
    at, new_line = 0, True
    while at < len(text):
        kind, end = _next_token(text, at, tokens)
        if kind == "space":
            new_line = new_line or "\n" in text[at:end]
        else:
            token = _Token(kind, text[at:end], new_line)
            if kind == "mark" and token.text in _PAIRS:
                open_brackets.append(len(tokens))
            elif kind == "mark" and token.text in ")]}":
                while open_brackets:
                    opening = tokens[open_brackets.pop()]
                    opening.end = len(tokens)
                    if _PAIRS[opening.text] == token.text:
                        break
            tokens.append(token)
            new_line = False
        at = end
    for index in open_brackets:
        tokens[index].end = len(tokens)
    return tokens


def _next_token(text: str, at: int, tokens: list[_Token]) -> tuple[str, int]:
    if text[at] == "/" and (not tokens or tokens[-1].text in _BEFORE_REGEX) and (regex := _REGEX.match(text, at)):
        return "mark", regex.end()
    match = _TOKEN.match(text, at)
    assert match is not None and match.lastgroup
    return match.lastgroup, _template_end(text, at) if match[0] == "`" else match.end()


def _template_end(text: str, at: int) -> int:
    """Behind a template with `${…}` in it, which may hold templates again."""
    depth: list[str] = []
    for match in _IN_TEMPLATE.finditer(text, at):
        found, inside = match.group(), depth[-1:] == ["`"]
        if found == ("`" if inside else "}"):
            depth.pop()
        elif found in ("`", "${") or (found == "{" and not inside):
            depth.append(found[-1])
        if not depth:
            return match.end()
    return len(text)


def _unquote(raw: str) -> str:
    def letter(match: re.Match[str]) -> str:
        code = match[1] or match[2] or match[3]
        if not code:
            return _LETTERS.get(match[4], match[4])
        number = int(code, 16)
        return chr(number) if 0 < number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"

    return _ESCAPE.sub(letter, raw[1:-1]).replace("\0", "\ufffd")


# --- tokens → values with names in them -----------------------------------------------------------


class _Parser:
    """Each token is looked at a few times at most: what is unknown is stepped over, bracket by bracket."""

    def __init__(self, path: str, text: str) -> None:
        self.tokens = _tokenize(text)
        self.file = _File(path)
        self._bodies: list[tuple[int, int]] = []

    def text(self, at: int) -> str:
        return self.tokens[at].text if 0 <= at < len(self.tokens) and self.tokens[at].kind != "text" else ""

    def string(self, at: int) -> str | None:
        is_text = at < len(self.tokens) and self.tokens[at].kind == "text"
        return _unquote(self.tokens[at].text) if is_text else None

    def read_file(self) -> _File:
        """A configuration may be what a function returns: what was stepped over is read for statements as well."""
        self._bodies.append((0, len(self.tokens)))
        while self._bodies:
            at, end = self._bodies.pop()
            while at < end:
                at = max(self._read_statement(at), at + 1)
        return self.file

    def _read_statement(self, at: int) -> int:
        match self.text(at), self.text(at + 1):
            case "import", _:
                return self._read_import(at + 1)
            case "const" | "let" | "var", _:
                return self._read_names(at + 1, self.text(at - 1) == "export")
            case "export", "default":
                self.file.exports["default"], at = self.value(at + 2)
            case "export", "*" if source := self.string(at + 3):
                self.file.all_from.append(source)
                return at + 4
            case "module", "." if self.text(at + 2) == "exports" and self.text(at + 3) == "=":
                self.file.exports["module"], at = self.value(at + 4)
            case "function", _:
                return self._read_function(at + 1)
            case "return", _:
                return self.value(at + 1)[1]
            case _:
                pass
        return at

    def _read_function(self, at: int) -> int:
        """`function sidebar() { return [ … ] }`"""
        if self.text(at + 1) != "(":
            return at
        body = self.tokens[at + 1].end + 1
        last = min(body + MAX_TYPE, len(self.tokens))
        while body < last and self.text(body) not in ("{", ";") and not self._starts_line(body):
            body = self.tokens[body].end + 1 if self.text(body) in ("[", "(") else body + 1
        if self.text(body) != "{" or self.text(body + 1) != "return":
            return at + 1
        self.file.functions[self.text(at)], end = self.value(body + 2)
        if self.text(at - 2) == "export":
            self.file.exports[self.text(at)] = Call(self.text(at), [])
        return max(end, at + 1)

    def _read_import(self, at: int) -> int:
        """`import a, { b as c } from './x'`"""
        names: dict[str, str] = {}
        in_braces = False
        for end in range(at, min(at + 200, len(self.tokens))):
            word = self.text(end)
            if word == "import":
                return end
            if (source := self.string(end)) is not None:
                if source.startswith("."):
                    self.file.names |= {local: _Import(source, name) for local, name in names.items()}
                return end + 1
            if word in ("{", "}"):
                in_braces = word == "{"
            elif word in (",", "*", "as", "from", "type"):
                continue
            elif self.tokens[end].kind != "name":
                return end
            elif self.text(end - 1) == "as" and self.text(end - 2) in names:
                names[word] = names.pop(self.text(end - 2))
            else:
                names[word] = word if in_braces else "default"
        return at

    def _read_names(self, at: int, exported: bool) -> int:
        if self.text(at) == "{":
            return self._read_required(at)
        if at >= len(self.tokens) or self.tokens[at].kind != "name":
            return at
        name, at = self.text(at), at + 1
        if self.text(at) == ":":
            while at < len(self.tokens) and self.text(at) not in ("=", ";"):
                at = self.tokens[at].end + 1 if self.text(at) in _PAIRS else at + 1
        if self.text(at) != "=":
            return at
        value, end = self.value(at + 1)
        if (made := self._returned(at + 1, end)) is not None:
            self.file.functions.setdefault(name, made)
            value = Call(name, [])
        else:
            self.file.names.setdefault(name, value)
        if exported:
            self.file.exports[name] = value
        return max(end, at)

    def _returned(self, at: int, end: int) -> object:
        """Of `(): Item[] => [ … ]` the list, of `() => ({ … })` the object."""
        if self.text(at) != "(" or self.text(self.tokens[at].end + 1) not in ("=>", ":"):
            return None
        at = self.tokens[at].end + 1
        while at < end and self.text(at) != "=>":
            at = self._step(at)
        is_literal = self.text(at + 1) == "[" or (self.text(at + 1) == "(" and self.text(at + 2) == "{")
        if at >= end or not is_literal:
            return None
        noted = len(self._bodies)
        made = self.value(at + 1)[0]
        # They were noted when its end was looked for.
        del self._bodies[noted:]
        return made

    def _read_required(self, at: int) -> int:
        """`const { a, b } = require('./x')`"""
        end = self.tokens[at].end
        names = [token.text for token in self.tokens[at + 1 : end] if token.kind == "name"]
        if self.text(end + 1) != "=":
            return at + 1
        value, after = self.value(end + 2)
        if isinstance(value, _Import):
            self.file.names |= {name: _Import(value.source, name) for name in names}
        return after

    def value(self, at: int, depth: int = 0) -> tuple[object, int]:
        """The value that begins at a token, and where the expression it stands in ends."""
        found, at = self._operand(at, depth)
        while not self._ends(at):
            word = self.text(at)
            if word in ("as", "satisfies"):
                return found, self._skip(at)
            if word in ("||", "??"):
                other, at = self._operand(at + 1, depth)
                found = _Either(found, other)
            elif word == "?":
                # `a ? b : c` is c: it is what holds where nothing is set.
                at = self._skip(self._step(at), ":")
                return self.value(at + 1, depth + 1) if self.text(at) == ":" else (None, at)
            else:
                # A sum, a comparison, a call on a literal: unknown, unless `? :` or `||` follows.
                found, at = None, self._step(at)
        return found, at

    def _ends(self, at: int) -> bool:
        return at >= len(self.tokens) or self.text(at) in _ENDS or self._starts_line(at)

    def _starts_line(self, at: int) -> bool:
        """Where a statement ends without a semicolon, the next begins with a word on a line of its own."""
        token = self.tokens[at]
        return token.new_line and token.kind == "name" and token.text not in ("as", "satisfies")

    def _step(self, at: int) -> int:
        if self.text(at) not in _PAIRS:
            return at + 1
        if self.text(at) == "{":
            self._bodies.append((at + 1, self.tokens[at].end))
        return self.tokens[at].end + 1

    def _skip(self, at: int, stop: str | None = None) -> int:
        while not self._ends(at) and self.text(at) != stop:
            at = self._step(at)
        return at

    def _operand(self, at: int, depth: int) -> tuple[object, int]:
        if at >= len(self.tokens) or depth > MAX_DEPTH:
            return None, self._skip(at)
        token = self.tokens[at]
        if token.kind == "text":
            return _unquote(token.text), at + 1
        if token.kind == "number":
            return (float(token.text) if re.fullmatch(r"\d{1,15}(\.\d{1,15})?", token.text) else None), at + 1
        if token.text == "-" and self.tokens[at + 1 : at + 2] and self.tokens[at + 1].kind == "number":
            found, end = self._operand(at + 1, depth)
            return (-found if isinstance(found, float) else None), end
        if token.text == "[":
            return self._list(at, depth), token.end + 1
        if token.text == "{":
            return self._object(at, depth), token.end + 1
        if token.text == "(":
            if self.text(token.end + 1) in ("=>", ":"):
                return self._function(token.end + 1, depth)
            return self.value(at + 1, depth + 1)[0], token.end + 1
        if token.kind == "name" and token.text not in ("function", "class", "async"):
            return self._named(at, depth)
        return None, self._step(at)

    def _function(self, at: int, depth: int) -> tuple[object, int]:
        """Unknown; the objects inside are noted, one of them may be what it returns."""
        while at < len(self.tokens) and self.text(at) != "=>":
            at = self._step(at)
        return None, at + 1 if self.text(at + 1) == "{" else self.value(at + 1, depth + 1)[1]

    def _named(self, at: int, depth: int) -> tuple[object, int]:
        if self.text(at) in _WORDS:
            return _WORDS[self.text(at)], at + 1
        if self.text(at) in ("new", "await"):
            at += 1
        parts = [self.text(at)]
        at += 1
        while self.text(at) in (".", "!") or (self.text(at) == "?" and self.text(at + 1) == "."):
            if self.text(at) == ".":
                parts.append(self.text(at + 1))
                at += 1
            at += 1
        if self.text(at) == "<":
            while at < len(self.tokens) and self.text(at) not in (">", "(", ";"):
                at += 1
            at += self.text(at) == ">"
        if self.text(at) == "=>":
            return self._function(at, depth)
        if self.text(at) != "(":
            return _Name(parts[0], tuple(parts[1:])), at
        arguments, at = self._list(at, depth), self.tokens[at].end + 1
        name = ".".join(parts)
        first = arguments[0] if arguments and isinstance(arguments[0], str) else None
        if name == "require" and first and first.startswith("."):
            return _Import(first, "default"), at
        return (first if name == "require.resolve" and first else Call(name, arguments)), at

    def _list(self, at: int, depth: int) -> list[object]:
        items: list[object] = []
        end, at = self.tokens[at].end, at + 1
        while at < end:
            is_spread = self.text(at) == "..."
            value, after = self.value(at + is_spread, depth + 1)
            items.append(_Spread(value) if is_spread else value)
            at = max(after, at + 1)
            at += self.text(at) == ","
        return items

    def _object(self, at: int, depth: int) -> dict[object, object]:
        """A `...spread` keeps its place in the order, under a key of its own."""
        found: dict[object, object] = {}
        end, at = self.tokens[at].end, at + 1
        while at < end:
            token, behind, after = self.tokens[at], self.text(at + 1), at
            if token.text == "...":
                found[SPREAD, at], after = self.value(at + 1, depth + 1)
            elif behind == ":" and token.kind in ("text", "name", "number"):
                key = self.string(at) if token.kind == "text" else token.text
                found[key], after = self.value(at + 2, depth + 1)
            elif behind in (",", "}") and token.kind == "name":
                found[token.text] = _Name(token.text)
            while after < end and self.text(after) != ",":
                after = self._step(after)
            at = max(after, at + 1)
            at += self.text(at) == ","
        self.file.objects.append(found)
        return found


# --- names → values -------------------------------------------------------------------------------


class _Reading:
    """One configuration with the files it is spread over. What it builds is counted, so that no doubling runs away."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._files: dict[str, _File] = {}
        self._budget = MAX_VALUES
        self._open: set[tuple[str, str]] = set()

    def read(self, path: str, text: str) -> _File:
        if path not in self._files:
            self._files[path] = _Parser(path, text).read_file()
        return self._files[path]

    def resolve(self, value: object, file: _File, depth: int = 0) -> Any:
        """A copy without names; None for what is unknown, too deep or too much."""
        self._budget -= 1
        if self._budget < 0 or depth > MAX_DEPTH:
            return None
        match value:
            case _Name():
                found = self._resolve_once(value.name, file.names.get(value.name), file, depth)
                for part in value.rest:
                    found = found.get(part) if isinstance(found, dict) else None
                return found
            case _Import():
                loaded = self._load(file.path, value.source) if len(self._files) < MAX_FILES else None
                if loaded is None:
                    return None
                other = self.read(*loaded)
                return self._resolve_once(f"import {value.name}", other.exported(value.name), other, depth)
            case _Either():
                first = self.resolve(value.first, file, depth + 1)
                return self.resolve(value.other, file, depth + 1) if first is None else first
            case Call():
                made = file.functions.get(value.name)
                if made is None and isinstance(imported := file.names.get(value.name), _Import):
                    made = imported
                found = self._resolve_once(f"{value.name}()", made, file, depth)
                return (
                    Call(value.name, self.resolve(value.arguments, file, depth + 1) or []) if found is None else found
                )
            case list():
                return self._resolve_list(value, file, depth)
            case dict():
                return self._resolve_object(value, file, depth)
            case _:
                return value

    def _resolve_once(self, name: str, value: object, file: _File, depth: int) -> Any:
        """None where it stands in itself."""
        mark = (file.path, name)
        if mark in self._open:
            return None
        self._open.add(mark)
        found = self.resolve(value, file, depth + 1)
        self._open.discard(mark)
        return found

    def _resolve_list(self, items: list[object], file: _File, depth: int) -> list[object]:
        found: list[object] = []
        for item in items:
            if self._budget <= 0:
                break
            if isinstance(item, _Spread):
                spread = self.resolve(item.value, file, depth + 1)
                found += spread if isinstance(spread, list) else [Call(SPREAD, [])]
            else:
                found.append(self.resolve(item, file, depth + 1))
        return found

    def _resolve_object(self, entries: dict[Any, object], file: _File, depth: int) -> dict[str, object]:
        found: dict[str, object] = {}
        for key, item in entries.items():
            value = self.resolve(item, file, depth + 1)
            if isinstance(key, tuple):
                spread = find_object(value)
                found |= spread if isinstance(spread, dict) else {SPREAD: Call(SPREAD, [])}
            else:
                found[key] = value
        return found
