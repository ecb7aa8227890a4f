"""References to what a generator counts: a formula by its number on its page, a figure or table by its caption."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from askbook.book.sections import clean_heading

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
_REFERENCE = re.compile(
    r"\{(?P<role>numref|eq)\}`(?:[^`<>\n]{0,200}<(?P<inner>[^`<>\n]{1,200})>|(?P<label>[^`<>\n]{1,200}))`"
)
_KINDS = {"figure": "Figure", "code-cell": "Figure", "code-block": "Listing"}
CAPTION_MOST = 60


def find_counted(texts: Sequence[str]) -> dict[str, str]:
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


def find_counted_titles(text: str, labels: Mapping[str, str]) -> dict[str, str]:
    """Of the references on a page, and of its own formulas."""
    wanted = {f"eq`{label}": label for label in _find_formulas(text)}
    for found in _REFERENCE.finditer(text) if "{numref}`" in text or "{eq}`" in text else ():
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
