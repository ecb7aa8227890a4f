"""References without words of their own read as the title of what they lead to: a page, section, figure or formula."""

from __future__ import annotations

import posixpath
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence

from askbook.book.sections import clean_heading

_REFERENCE = re.compile(
    r"\[\]\((?P<link>[^()\s]{1,300})\)|\{(?:doc|ref|any|std:doc|std:ref)\}`(?P<role>[^`<>\n]{1,200})`"
    r"|\{\{[<%]\s*(?:rel)?ref\s+\"(?P<shortcode>[^\"\n]{1,200})\"\s*[>%]\}\}"
)
_LABELLED = re.compile(r"^\((?P<label>[\w:./-]+)\)=\s*\n+#{1,6}[ \t]+(?P<title>[^\n]+)", re.MULTILINE)
_OWN_ID = re.compile(
    r"^#{1,6}[ \t]+(?P<title>[^\n]+?)[ \t]*\{:?[ \t]*#(?P<label>[\w:.-]+)[^{}\n]*\}[ \t]*$", re.MULTILINE
)
_VARIABLE = re.compile(r"\{\{-?\s*+(\$?[A-Za-z_][\w.-]{0,100})\s*+-?\}\}")
_PARAMETER = re.compile(r"\{\{[<%]\s*+param\s++[\"'`]?([\w.-]{1,100})[\"'`]?\s*+[%>]\}\}")
VALUE_MAX, VALUES_MOST = 300, 500
_ENDINGS = ("", ".md", ".mdx", ".ipynb", "/index.md", "/README.md", "/_index.md")
_FORMULA = re.compile(
    r"\$\$[ \t]*\((?P<behind>[\w:./-]{1,200})\)[ \t]*$"
    r"|^[ \t>]*(?:`{3,}|:{3,})\{math\}[^\n]*\n(?:[ \t>]*---[ \t]*\n)?(?:[ \t>]*:?(?!label:)[\w-]+:[^\n]*\n){0,20}"
    r"[ \t>]*:?label:[ \t]*(?P<within>\S{1,200})",
    re.MULTILINE,
)
_FIGURE = re.compile(
    r"^[ \t>]*(?:`{3,}|:{3,})\{(?:glue:)?(?P<kind>figure|table|list-table|csv-table|code-block|code-cell)\}"
    r"[ \t]*(?P<argument>[^\n]*)\n"
    r"(?P<options>(?:[ \t>]*:[\w-]+:[^\n]*\n)+|[ \t>]*---[ \t]*\n(?:(?![ \t>]*---)[^\n]*\n){0,50}[ \t>]*---[ \t]*\n)"
    r"(?:[ \t>]*\n)*+(?P<words>[^\n]*(?:\n(?![ \t>]*(?:\n|`{3}|:{3}))[^\n]*){0,3})",
    re.MULTILINE,
)
_NAME = re.compile(r"^[ \t>]*:?name:[ \t]*(\S+)", re.MULTILINE)
_CAPTION = re.compile(r"^[ \t>]*:?caption:[ \t]*(.+)$", re.MULTILINE)
_ROLE = re.compile(r"\{[\w:]+\}(?=`)")
_COUNTED = re.compile(
    r"\{(?P<role>numref|eq)\}`(?:[^`<>\n]{0,200}<(?P<inner>[^`<>\n]{1,200})>|(?P<label>[^`<>\n]{1,200}))`"
)
_KINDS = {"figure": "Figure", "code-cell": "Figure", "code-block": "Listing"}
CAPTION_MOST = 60


def find_labels(texts: Iterable[str]) -> dict[str, str]:
    """The headings of a book that have a name to refer to them by, and what is counted."""
    texts = list(texts)
    return _find_counted(texts) | {
        found["label"]: clean_heading(found["title"])
        for text in texts
        if ")=" in text or "{#" in text or "{:" in text
        for pattern in (_LABELLED, _OWN_ID)
        for found in pattern.finditer(text)
    }


def find_link_titles(path: str, text: str, pages: Mapping[str, str], labels: Mapping[str, str]) -> dict[str, str]:
    """What each reference of a page reads as; `pages` are the titles by file."""
    counted = _find_counted_titles(text, labels)
    if "[](" not in text and "}`" not in text and "ref " not in text:
        return counted
    targets = {found["link"] or found["role"] or found["shortcode"] for found in _REFERENCE.finditer(text)}
    named = {target: _name(path, target, pages, labels) for target in sorted(targets)}
    return counted | {target: title for target, title in named.items() if title}


def find_values(text: str, front: Mapping[str, object], known: Mapping[str, str]) -> dict[str, str]:
    """What the variables of a page read as: `{{ version }}`, from its own front matter, else from the site's files."""
    if "{{" not in text:
        return {}
    names = {*_VARIABLE.findall(text), *(f"param {name.lower()}" for name in _PARAMETER.findall(text))}
    myst = front.get("myst")
    of_myst = myst.get("substitutions") if isinstance(myst, Mapping) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    values = {**known, **flatten(front.get("substitutions")), **flatten(of_myst)}
    # Of VitePress and of Hugo.
    for name, value in flatten(front).items() if any(name.startswith(("$", "param ")) for name in names) else ():
        values |= {f"$frontmatter.{name}": value, f"param {name.lower().removeprefix('params.')}": value}
    return {f"{{{{{name}}}}}": values[name] for name in sorted(names & values.keys())}


def find_unknown(text: str, known: Mapping[str, str]) -> Iterator[str]:
    """Parameters of Hugo without a value, as they are written."""
    for found in _PARAMETER.finditer(text) if "{{" in text else ():
        if f"{{{{param {found[1].lower()}}}}}" not in known:
            yield found[0]


def flatten(values: object, prefix: str = "", depth: int = 0) -> dict[str, str]:
    """The texts of one line in a mapping: `{a: {b: c}}` → `a.b`."""
    found: dict[str, str] = {}
    for key, value in values.items() if isinstance(values, Mapping) and depth < 4 else ():  # pyright: ignore[reportUnknownVariableType]
        if isinstance(value, Mapping):
            found |= flatten(value, f"{prefix}{key}.", depth + 1)
        elif isinstance(value, str) and value.strip() and "\n" not in value.strip() and len(value) <= VALUE_MAX:
            found[f"{prefix}{key}"] = value.strip()
        if len(found) >= VALUES_MOST:
            break
    return found


def _name(path: str, target: str, pages: Mapping[str, str], labels: Mapping[str, str]) -> str | None:
    page, _, label = target.partition("#")
    if title := labels.get(label or target):
        return title
    for folder in (posixpath.dirname(path), "") if page else ():
        there = posixpath.normpath(posixpath.join(folder, page.lstrip("/")))
        for ending in _ENDINGS:
            if title := pages.get(there + ending):
                return title
    return None


# --- what is counted: a formula by its number on its page, a figure or table by its caption -----------


def _find_counted(texts: Sequence[str]) -> dict[str, str]:
    """By role and label what a reference reads as: “eq`label” as “(2)”, “numref`label” as “Figure “Its caption””."""
    found: dict[str, str] = {}
    for text in texts:
        for number, label in enumerate(_find_formulas(text), 1):
            found.setdefault(f"eq`{label}", f"({number})")
        for figure in _FIGURE.finditer(text) if "name:" in text and "}" in text else ():
            name, caption = _NAME.search(figure["options"]), _find_caption(figure)
            if name and caption:
                found.setdefault(f"numref`{name[1]}", f"{_KINDS.get(figure['kind'], 'Table')} “{caption}”")
    return found


def _find_counted_titles(text: str, labels: Mapping[str, str]) -> dict[str, str]:
    """Of the references on a page, and of its own formulas."""
    wanted = {f"eq`{label}": label for label in _find_formulas(text)}
    for found in _COUNTED.finditer(text) if "{numref}`" in text or "{eq}`" in text else ():
        label = (found["inner"] or found["label"]).strip()
        wanted[f"{found['role']}`{label}"] = label
    titles = {key: labels.get(key) or labels.get(label) for key, label in sorted(wanted.items())}
    return {key: title for key, title in titles.items() if title}


def _find_formulas(text: str) -> Iterator[str]:
    if "$$" in text or "{math}" in text:
        yield from (found["behind"] or found["within"] for found in _FORMULA.finditer(text))


def _find_caption(figure: re.Match[str]) -> str:
    told = _CAPTION.search(figure["options"])
    words = told[1] if told else figure["words"] if figure["kind"] == "figure" else figure["argument"]
    plain = clean_heading(" ".join(re.sub(r"[${}]", "", _ROLE.sub("", words)).split()))
    return textwrap.shorten(plain.rstrip("."), CAPTION_MOST, placeholder=" …")
