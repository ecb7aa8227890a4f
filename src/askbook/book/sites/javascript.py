"""The literals of a JavaScript or TypeScript file: texts, numbers, lists and objects. Nothing is run.

What is no literal is unknown (None): calls, functions, conditions. A name stands for the literal it was given in the same
file or in a file of the book that is imported by a relative path; `a || b` is b where a is unknown, since no environment
variable is set here; an unknown `...spread` is a call of that name in its place; a call keeps its arguments (`defineConfig({…})`), and one of a function of the file that does nothing
but return a literal is that literal.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
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
    |(?P<text>"(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+')
    |(?P<number>\d[\w.]*+)
    |(?P<name>[A-Za-z_$][\w$]*+)
    |(?P<mark>\.\.\.|=>|\|\||\?\?|&&|[=!]==?|.)""",
    re.VERBOSE | re.DOTALL,
)
_TEMPLATE = re.compile(r"`(?:[^`\\$]|\\.|\$(?!\{))*+`", re.DOTALL)
_REGEX = re.compile(r"/(?![*/])(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.){0,200}+\]){1,300}+/[a-z]*+")
_ESCAPE = re.compile(r"\\(?:u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(\n)|(.))", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "b": "", "f": "", "v": "", "0": ""}
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


def read_javascript(path: str, text: str, load: Load, wanted: tuple[str, ...] = ()) -> Any:
    """What the file exports, as plain values. `wanted`: keys of the object to take where that export is no literal."""
    reading = _Reading(load)
    file = reading.read(path, text)
    found = reading.resolve(file.exports.get("default", file.exports.get("module")), file)
    found = find_object(found)
    if found is None and wanted:
        best = max(file.objects, key=lambda one: (len(set(wanted) & set(one)), len(one)), default={})
        found = reading.resolve(best, file) if set(wanted) & set(best) else None
    return found


def find_object(value: object) -> Any:
    """The object or list that a value is, or that is handed to the functions wrapped around it."""
    for _ in range(MAX_DEPTH):
        if not isinstance(value, Call):
            break
        value = next((one for one in value.arguments if isinstance(one, dict | list | Call)), None)
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
    if text[at] == "`":
        template = _TEMPLATE.match(text, at)
        return ("text", template.end()) if template else ("mark", _template_end(text, at))
    if text[at] == "/" and (not tokens or tokens[-1].text in _BEFORE_REGEX) and (regex := _REGEX.match(text, at)):
        return "mark", regex.end()
    match = _TOKEN.match(text, at)
    return (match.lastgroup or "mark", match.end()) if match else ("mark", at + 1)


def _template_end(text: str, at: int) -> int:
    """Behind a template with `${…}` in it, which may hold templates again."""
    depth: list[str] = ["`"]
    mark = re.compile(r"\\.|`|\$\{|[{}]", re.DOTALL)
    for match in mark.finditer(text, at + 1):
        found, inside = match.group(), depth[-1] == "`"
        if found == "`":
            if inside:
                depth.pop()
            else:
                depth.append("`")
        elif found == "${" or (found == "{" and not inside):
            depth.append("{")
        elif not inside and found == "}":
            depth.pop()
        if not depth:
            return match.end()
    return len(text)


def _unquote(raw: str) -> str:
    def letter(match: re.Match[str]) -> str:
        code = match.group(1) or match.group(2) or match.group(3)
        if code:
            number = int(code, 16)
            return chr(number) if 0 < number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"
        return "" if match.group(4) else _LETTERS.get(match.group(5), match.group(5))

    return _ESCAPE.sub(letter, raw[1:-1]).replace("\0", "\ufffd")


# --- tokens → values with names in them -----------------------------------------------------------


class _Parser:
    """Each token is looked at a few times at most: what is unknown is stepped over, bracket by bracket."""

    def __init__(self, path: str, text: str) -> None:
        self.tokens = _tokenize(text)
        self.file = _File(path)
        self._bodies: list[tuple[int, int]] = []

    def text(self, at: int) -> str:
        return self.tokens[at].text if at < len(self.tokens) and self.tokens[at].kind != "text" else ""

    def string(self, at: int) -> str | None:
        is_text = at < len(self.tokens) and self.tokens[at].kind == "text"
        return _unquote(self.tokens[at].text) if is_text else None

    def read_file(self) -> _File:
        """A configuration may be what a function returns: what was stepped over is read for statements as well."""
        self._bodies.append((0, len(self.tokens)))
        while self._bodies:
            at, end = self._bodies.pop()
            while at < end:
                at = self._read_statement(at)
        return self.file

    def _read_statement(self, at: int) -> int:
        word = self.text(at)
        if word == "import":
            return self._read_import(at + 1)
        if word in ("const", "let", "var"):
            return self._read_names(at + 1, self.text(at - 1) == "export" if at else False)
        if word == "export" and self.text(at + 1) == "default":
            self.file.exports["default"], end = self.value(at + 2)
            return end
        if word == "export" and self.text(at + 1) == "*" and (source := self.string(at + 3)):
            self.file.all_from.append(source)
            return at + 4
        if (
            word == "module"
            and self.text(at + 1) == "."
            and self.text(at + 2) == "exports"
            and self.text(at + 3) == "="
        ):
            self.file.exports["module"], end = self.value(at + 4)
            return end
        if word == "function":
            return self._read_function(at + 1)
        if word == "return":
            return max(self.value(at + 1)[1], at + 1)
        return at + 1

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
            elif self.tokens[end].kind == "name" and word not in ("as", "from", "type"):
                if self.text(end - 1) == "as" and self.text(end - 2) in names:
                    names[word] = names.pop(self.text(end - 2))
                else:
                    names[word] = word if in_braces else "default"
            elif word not in (",", "*", "as", "from", "type"):
                return end
        return at

    def _read_names(self, at: int, exported: bool) -> int:
        if self.text(at) == "{":
            return self._read_required(at)
        if at >= len(self.tokens) or self.tokens[at].kind != "name":
            return at
        name, at = self.text(at), at + 1
        if self.text(at) == ":":
            at = self._skip_type(at)
        if self.text(at) != "=":
            return at
        value, end = self.value(at + 1)
        self.file.names.setdefault(name, value)
        if exported:
            self.file.exports[name] = value
        return max(end, at)

    def _read_required(self, at: int) -> int:
        """`const { a, b } = require('./x')`"""
        end = self.tokens[at].end
        names = [token.text for token in self.tokens[at + 1 : end] if token.kind == "name"]
        if self.text(end + 1) != "=":
            return at + 1
        value, after = self.value(end + 2)
        if isinstance(value, _Import):
            self.file.names |= {name: _Import(value.source, name) for name in names}
        return max(after, at + 1)

    def _skip_type(self, at: int) -> int:
        while at < len(self.tokens) and self.text(at) not in ("=", ";"):
            at = self.tokens[at].end + 1 if self.text(at) in _PAIRS else at + 1
        return at

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
                return self._otherwise(at, depth)
            else:
                # A sum, a comparison, a call on a literal: unknown, unless `? :` or `||` follows.
                found, at = None, self._step(at)
        return found, at

    def _otherwise(self, at: int, depth: int) -> tuple[object, int]:
        """`a ? b : c` → c: it is what holds where nothing is set."""
        if depth > MAX_DEPTH:
            return None, self._skip(at)
        at = self._step(at)
        while not self._ends(at) and self.text(at) != ":":
            at = self._step(at)
        return self.value(at + 1, depth + 1) if self.text(at) == ":" else (None, at)

    def _ends(self, at: int) -> bool:
        if at >= len(self.tokens) or self.text(at) in _ENDS:
            return True
        return self._starts_line(at)

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

    def _skip(self, at: int) -> int:
        while not self._ends(at):
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
        if self.text(at + 1) == "{":
            return None, at + 1
        return None, self.value(at + 1, depth + 1)[1]

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
            at += 1 if self.text(at) == ">" else 0
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
            if self.text(at) == "...":
                value, after = self.value(at + 1, depth + 1)
                items.append(_Spread(value))
            else:
                value, after = self.value(at, depth + 1)
                items.append(value)
            at = max(after, at + 1)
            at += 1 if self.text(at) == "," else 0
        return items

    def _object(self, at: int, depth: int) -> dict[object, object]:
        """A `...spread` keeps its place in the order, under a key of its own."""
        found: dict[object, object] = {}
        end, at = self.tokens[at].end, at + 1
        while at < end:
            at = max(self._read_key(at, end, found, depth), at + 1)
            at += 1 if self.text(at) == "," else 0
        self.file.objects.append(found)
        return found

    def _read_key(self, at: int, end: int, found: dict[object, object], depth: int) -> int:
        token = self.tokens[at]
        if token.text == "...":
            value, after = self.value(at + 1, depth + 1)
            found[_Spread(None), at] = value
            return after
        key = self.string(at) if token.kind == "text" else token.text
        if token.kind not in ("text", "name", "number"):
            return self._skip_entry(at, end)
        if self.text(at + 1) == ":":
            found[key], after = self.value(at + 2, depth + 1)
            return after if self.text(after) in (",", "}") else self._skip_entry(after, end)
        if self.text(at + 1) in (",", "}") and token.kind == "name":
            found[key] = _Name(token.text)
            return at + 1
        return self._skip_entry(at, end)

    def _skip_entry(self, at: int, end: int) -> int:
        while at < end and self.text(at) != ",":
            at = self._step(at)
        return at


@dataclass(frozen=True, slots=True)
class _Either:
    first: object
    other: object


# --- names → values -------------------------------------------------------------------------------


class _Reading:
    """One configuration with the files it is spread over. All it may build is counted, so that no doubling runs away."""

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
                return self._look_up(value, file, depth)
            case _Import():
                return self._import(value, file, depth)
            case _Either():
                first = self.resolve(value.first, file, depth + 1)
                return self.resolve(value.other, file, depth + 1) if first is None else first
            case Call() if value.name in file.functions or value.name in file.names:
                return self._call(value, file, depth)
            case Call():
                return Call(value.name, self.resolve(value.arguments, file, depth + 1) or [])
            case list():
                return self._resolve_list(value, file, depth)
            case dict():
                return self._resolve_object(value, file, depth)
            case _:
                return value

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

    def _call(self, call: Call, file: _File, depth: int) -> Any:
        mark = (file.path, f"{call.name}()")
        if mark in self._open:
            return None
        self._open.add(mark)
        value = file.functions.get(call.name)
        if value is not None:
            found = self.resolve(value, file, depth + 1)
        elif isinstance(imported := file.names.get(call.name), _Import):
            found = self._import(imported, file, depth + 1)
        else:
            found = None
        self._open.discard(mark)
        return found if found is not None else Call(call.name, self.resolve(call.arguments, file, depth + 1) or [])

    def _look_up(self, name: _Name, file: _File, depth: int) -> Any:
        mark = (file.path, name.name)
        if name.name not in file.names or mark in self._open:
            return None
        self._open.add(mark)
        value = self.resolve(file.names[name.name], file, depth + 1)
        self._open.discard(mark)
        for part in name.rest:
            value = value.get(part) if isinstance(value, dict) else None
        return value

    def _import(self, wanted: _Import, file: _File, depth: int) -> Any:
        other = self._open_file(file.path, wanted.source)
        if other is None:
            return None
        mark = (other.path, f"import {wanted.name}")
        if mark in self._open:
            return None
        self._open.add(mark)
        value = self._exported(other, wanted.name, depth)
        self._open.discard(mark)
        return value

    def _exported(self, file: _File, name: str, depth: int) -> Any:
        if name == "default" and "default" not in file.exports:
            return self.resolve(file.exports.get("module"), file, depth + 1)
        if name in file.exports:
            return self.resolve(file.exports[name], file, depth + 1)
        if isinstance(module := file.exports.get("module"), dict) and name in module:
            return self.resolve(module[name], file, depth + 1)
        for source in file.all_from:
            found = self._import(_Import(source, name), file, depth + 1)
            if found is not None:
                return found
        return None

    def _open_file(self, path: str, source: str) -> _File | None:
        if len(self._files) >= MAX_FILES:
            return None
        found = self._load(path, source)
        return self.read(*found) if found else None
