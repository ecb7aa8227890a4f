"""Small drawings in SVG. Colours come from the page's CSS, so that they follow its light and dark form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from askbook.evals.measures import Bin, RiskPoint

BAR_WIDTH, GROUP_GAP, BAR_HEIGHT, LEFT, TOP, BOTTOM = 18, 46, 180, 40, 16, 32
PITCH_MIN = 130
"""Room for a group's name."""
SQUARE = 220


def draw_bars(groups: Mapping[str, Mapping[str, float]], top: float = 1.0, mark: float | None = None) -> str:
    """For each group its bars side by side, the same name in the same colour; `mark` draws a line across."""
    series = list(dict.fromkeys(name for values in groups.values() for name in values))
    pitch = max(len(series) * BAR_WIDTH + GROUP_GAP, PITCH_MIN)
    width = LEFT + max(1, len(groups)) * pitch
    parts: list[str] = []
    for value in (0.0, top / 4, top / 2, top * 3 / 4, top):
        parts.append(_line(LEFT, _height(value, top), width, _height(value, top), "grid"))
        parts.append(_label(LEFT - 6, _height(value, top) + 4, f"{value:g}", "end"))
    for at, (group, values) in enumerate(groups.items()):
        middle = LEFT + (at + 0.5) * pitch
        left = middle - len(values) * BAR_WIDTH / 2
        for place, (name, value) in enumerate(values.items()):
            parts.append(_bar(left + place * BAR_WIDTH, series.index(name), name, value, top))
        parts.append(_label(middle, TOP + BAR_HEIGHT + 16, group, "middle"))
    if mark is not None and mark <= top:
        parts.append(_line(LEFT, _height(mark, top), width, _height(mark, top), "mark"))
    legend = "".join(f'<span class="key c{at}">{escape(name)}</span>' for at, name in enumerate(series))
    # Many groups scroll on a small screen: shrunk to fit it, nobody could read their names.
    svg = _svg(width, TOP + BAR_HEIGHT + BOTTOM, parts, least=width * 0.8)
    return f'<p class="legend">{legend}</p><div class="scroll">{svg}</div>'


def draw_reliability(bins: Sequence[Bin]) -> str:
    """On the diagonal an answer is right as often as its confidence says; a larger dot stands for more answers."""
    most = max((step.count for step in bins), default=1)
    dots = [
        f'<circle cx="{_across(step.confidence):.1f}" cy="{_up(step.right):.1f}" '
        f'r="{3 + 7 * (step.count / most) ** 0.5:.1f}" class="dot">'
        f"<title>{step.count} answers: confidence {step.confidence:.2f}, right {step.right:.2f}</title></circle>"
        for step in bins
    ]
    line = _path([(step.confidence, step.right) for step in bins], "thread")
    diagonal = _line(_across(0), _up(0), _across(1), _up(1), "mark")
    return _square([diagonal, line, *dots], "confidence", "share right")


def draw_risk(points: Sequence[RiskPoint]) -> str:
    """From left to right more questions are answered, the surest first; the line tells how many of them are wrong."""
    return _square([_path([(point.coverage, point.risk) for point in points], "line")], "coverage", "risk")


# --- pieces ---------------------------------------------------------------------------------------


def _svg(width: float, height: float, parts: Sequence[str], least: float = 0.0) -> str:
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" style="max-width:{width:.0f}px; min-width:{least:.0f}px"'
    return f'<svg {size} role="img">{"".join(parts)}</svg>'


def _square(parts: Sequence[str], across: str, up: str) -> str:
    drawn = [f'<rect x="{LEFT}" y="{TOP}" width="{SQUARE}" height="{SQUARE}" class="frame"/>']
    for value in (0.0, 0.5, 1.0):
        drawn.append(_label(_across(value), TOP + SQUARE + 14, f"{value:g}", "middle"))
        drawn.append(_label(LEFT - 6, _up(value) + 4, f"{value:g}", "end"))
    drawn.append(_label(_across(0.5), TOP + SQUARE + 30, across, "middle"))
    drawn.append(_label(LEFT, TOP - 5, up, "start"))
    return _svg(LEFT + SQUARE + 12, TOP + SQUARE + BOTTOM, [*drawn, *parts])


def _bar(left: float, colour: int, name: str, value: float, top: float) -> str:
    y = _height(min(max(value, 0.0), top), top)
    return (
        f'<rect x="{left:.1f}" y="{y:.1f}" width="{BAR_WIDTH - 3}" '
        f'height="{TOP + BAR_HEIGHT - y:.1f}" class="c{colour}"><title>{escape(name)}: {value:.3f}</title></rect>'
    )


def _path(places: Sequence[tuple[float, float]], kind: str) -> str:
    return f'<polyline class="{kind}" points="{" ".join(f"{_across(x):.1f},{_up(y):.1f}" for x, y in places)}"/>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def _label(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _height(value: float, top: float) -> float:
    return TOP + BAR_HEIGHT * (1 - value / top)


def _across(value: float) -> float:
    return LEFT + SQUARE * value


def _up(value: float) -> float:
    return TOP + SQUARE * (1 - value)
