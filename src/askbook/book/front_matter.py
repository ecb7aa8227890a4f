"""The YAML block at the head of a file, read without trusting it, and the values people write there."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from askbook.domain import Facet, FacetValue

MAX_CHARS = 64 * 1024
MAX_DEPTH = 32
MAX_ALIASES = 100
MAX_EVENTS = 50_000
MAX_NUMBER = 9999

# The base loader knows strings, lists and mappings only: no dates, no huge integers, no objects.
_Loader: type = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_OPENING = re.compile(r"---[ \t]*\n")
_TOML_BLOCK = re.compile(r"\+\+\+[ \t]*\n(?P<toml>.*?)^\+\+\+[ \t]*$\n?", re.MULTILINE | re.DOTALL)
_CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*$\n?", re.MULTILINE)
_KEY_LINE = re.compile(r"([A-Za-z_][\w-]*)[ \t]*:")
_PLAIN_LINE = re.compile(
    r"^(?P<key>[A-Za-z_][\w-]*)[ \t]*:[ \t]++(?:\"(?P<quoted>[^\"\\\n]+)\"|(?P<plain>[\w/.][^\n:#]*+))[ \t]*$",
    re.MULTILINE,
)
_NUMBERED = re.compile(
    r"\s*(?:(?:chapter|ch|lesson|module|part|unit|section|week|day|tier)\b[\s.#_-]*+)?(\d{1,9})(?![\d.]*\d)(?!\w)",
    re.IGNORECASE,
)
_SLUG_NUMBER = re.compile(r"(?:chapter|lesson|module|part|unit|section|week|day|tier)[-_]?(\d{1,9})\b", re.IGNORECASE)
_RANGE = re.compile(r"([\w.]+)\s*(?:-|–|—|/|\bto\b)\s*([\w.]+)")
_LEADING_WORD = re.compile(r"([\w.]+?)(?=$|[\s:,;()–—-])")
_NOTHING = ("", "~", "null", "Null", "NULL")

YamlValue = object


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """What the head of a file says. `complaint` when it could not be used, `complaint_key` when one key is to blame."""

    values: Mapping[str, YamlValue]
    body_start: int
    complaint: str | None = None
    complaint_key: str | None = None

    def find(self, *keys: str) -> tuple[str, YamlValue] | None:
        """The first of these keys that has a value."""
        for key in keys:
            value = self.values.get(key)
            if value is not None and not (isinstance(value, str) and value.strip() in _NOTHING):
                return key, value
        return None

    def text(self, *keys: str) -> str | None:
        found = self.find(*keys)
        return " ".join(found[1].split()) if found and isinstance(found[1], str) else None


def read_front_matter(text: str) -> FrontMatter:
    opening = _OPENING.match(text)
    if opening is None:
        toml = _TOML_BLOCK.match(text) if text.startswith("+++") else None
        return _read_toml(toml["toml"], toml.end()) if toml else FrontMatter({}, 0)
    closing = _CLOSING.search(text, opening.end())
    if closing is None:
        complaint = "the front matter is never closed by a line ---" if _KEY_LINE.match(text, opening.end()) else None
        return FrontMatter({}, 0, complaint)
    raw = text[opening.end() : closing.start()]
    return read_yaml(raw, closing.end()) if raw.strip() else FrontMatter({}, closing.end())


def read_yaml(raw: str, body_start: int = 0) -> FrontMatter:
    if len(raw) > MAX_CHARS:
        return FrontMatter({}, body_start, f"the front matter is larger than {MAX_CHARS // 1024} KB")
    try:
        if refusal := _refusal(raw):
            complaint, line = refusal
            return FrontMatter({}, body_start, complaint, _key_at(raw, line))
        values = _storable(yaml.load(raw, Loader=_Loader))  # noqa: S506 - the base loader builds strings only
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "it cannot be read"
        return FrontMatter(
            _salvage(raw),
            body_start,
            f"the front matter is not valid YAML: {problem}",
            _key_at(raw, mark.line if mark else 0),
        )
    if not isinstance(values, dict):
        # Two rules with prose between them are no front matter: what they hold is the lesson's.
        return FrontMatter({}, 0, "the front matter is not a list of `key: value` lines")
    return FrontMatter({str(key): value for key, value in values.items()}, body_start)


def _read_toml(raw: str, body_start: int) -> FrontMatter:
    """Hugo's other front matter. Numbers and truth values become the texts that YAML would have given."""
    if len(raw) > MAX_CHARS:
        return FrontMatter({}, body_start, f"the front matter is larger than {MAX_CHARS // 1024} KB")
    try:
        return FrontMatter(_storable(tomllib.loads(raw)), body_start)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        return FrontMatter({}, body_start, f"the front matter is not valid TOML: {str(error)[:100]}")


def read_settings(raw: str) -> tuple[dict[str, Any], str | None]:
    """A generator's YAML file, and what is wrong with it. Texts, lists and mappings are taken; a value with a tag
    (`!!python/name:…`, `!ENV`) and an alias of anything but a text are unknown (None): nothing is built, nothing
    doubles."""
    try:
        values, complaint = _build_settings(yaml.parse(raw, Loader=_Loader))
    except (yaml.YAMLError, ValueError) as error:
        return _salvage(raw), f"is read in part: {getattr(error, 'problem', None) or error}"
    if values and not isinstance(values, dict):
        complaint = "is no list of `key: value` lines"
    known = _storable(values) if isinstance(values, dict) else {}
    return {str(key): value for key, value in known.items()}, complaint


def _build_settings(events: Iterator[Any]) -> tuple[Any, str | None]:
    """One pass over the events, without recursion."""
    complaint: str | None = None
    root: list[Any] = []
    open_values: list[tuple[Any, bool]] = [(root, True)]
    keys: list[Any] = [None]
    in_anchor = [False]
    anchors: dict[str, str] = {}
    for count, event in enumerate(events):
        if count > MAX_EVENTS:
            raise ValueError(f"it has more than {MAX_EVENTS} parts")
        if isinstance(event, yaml.CollectionEndEvent):
            value, is_known = open_values.pop()
            keys.pop()
            in_anchor.pop()
            _put(open_values[-1][0], keys, value if is_known else None)
        elif isinstance(event, yaml.CollectionStartEvent):
            if len(open_values) > MAX_DEPTH:
                raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels")
            is_mapping = isinstance(event, yaml.MappingStartEvent)
            open_values.append(({} if is_mapping else [], event.tag is None))
            keys.append(None)
            in_anchor.append(in_anchor[-1] or event.anchor is not None)
        elif isinstance(event, yaml.ScalarEvent):
            value = event.value if event.tag is None else None
            if event.anchor and value is not None:
                anchors[event.anchor] = value
            _put(open_values[-1][0], keys, value)
        elif isinstance(event, yaml.AliasEvent):
            if in_anchor[-1] and event.anchor not in anchors:
                complaint = "has aliases of aliases, which are not read"
            _put(open_values[-1][0], keys, anchors.get(event.anchor))
    return (root[0] if root else None), complaint


def _put(into: Any, keys: list[Any], value: Any) -> None:
    """Into the innermost open value; of a mapping, the key comes first and waits for its value."""
    if isinstance(into, list):
        into.append(value)
    elif keys[-1] is None:
        keys[-1] = (value if isinstance(value, str) else "",)
    else:
        into.setdefault(keys[-1][0], value)
        keys[-1] = None


def _storable(value: Any) -> Any:
    """Texts, lists and mappings. Escapes can write NUL and halves of characters, which no database takes as text."""
    if isinstance(value, dict):
        return {_storable(key): _storable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_storable(item) for item in value]
    if value is None:
        return None
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _salvage(raw: str) -> dict[str, YamlValue]:
    """Where one line breaks the YAML, the plain `key: value` lines around it still count."""
    return {match["key"]: match["quoted"] or match["plain"] for match in _PLAIN_LINE.finditer(raw)}


def _refusal(raw: str) -> tuple[str, int] | None:
    """Why this YAML is not loaded, and the line: events come one by one, so a bomb is seen before it is built."""
    depth = aliases = 0
    for event in yaml.parse(raw, Loader=_Loader):
        line = event.start_mark.line if event.start_mark else 0
        is_collection = isinstance(event, yaml.CollectionStartEvent)
        aliases += isinstance(event, yaml.AliasEvent)
        # A text that is used again is harmless; a list or a mapping doubles.
        if (is_collection and event.anchor) or aliases > MAX_ALIASES:
            return "the front matter uses YAML anchors or aliases, which are not read", line
        if getattr(event, "tag", None):
            return "the front matter uses YAML tags, which are not read", line
        if is_collection:
            depth += 1
            if depth > MAX_DEPTH:
                return f"the front matter is nested deeper than {MAX_DEPTH} levels", line
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    return None


def _key_at(raw: str, line: int) -> str | None:
    for text in reversed(raw.split("\n")[: line + 1]):
        if match := _KEY_LINE.match(text):
            return match.group(1)
    return None


def read_number(value: YamlValue) -> int | None:
    """`3`, `"03"`, `"Chapter 3: Building with ROS 2"`, `"chapter-3-building"` are 3; `"Building with ROS 2"` none."""
    if not isinstance(value, str):
        return None
    match = _NUMBERED.match(value) or _SLUG_NUMBER.match(value.strip())
    return int(match.group(1)) if match and int(match.group(1)) <= MAX_NUMBER else None


def read_facet(facet: Facet, value: YamlValue) -> FacetValue | None:
    """The value as the book allows it, or None. A range (`A2-B1`) means its lower bound, a list its greatest number."""
    if isinstance(value, list):
        found = [known for item in value if (known := read_facet(facet, item)) is not None]
        numbers = [item for item in found if isinstance(item, int)]
        return max(numbers) if numbers else (found[0] if found else None)
    if not isinstance(value, str):
        return None
    value = value.strip()
    if not facet.values:
        return int(value) if re.fullmatch(r"0|[1-9]\d{0,8}", value) and not isinstance(facet.default, str) else value
    allowed = {str(item).casefold(): item for item in facet.values}
    if spread := _RANGE.fullmatch(value.casefold()):
        ends = [allowed[end] for end in spread.groups() if end in allowed]
        if len(ends) == 2:
            return min(ends, key=facet.values.index)
    return next((allowed[word] for word in _readings(value.casefold()) if word in allowed), None)


def _readings(value: str) -> Iterator[str]:
    """What a written value may stand for, the most literal first."""
    yield value
    if word := _LEADING_WORD.match(value):
        yield word.group(1)
    if (number := read_number(value)) is not None:
        yield str(number)
