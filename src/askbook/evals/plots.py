"""Small drawings in SVG. Colours come from the page's CSS, so that they follow its light and dark form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from askbook.evals.measures import Bin, RiskPoint

BAR_WIDTH, GROUP_GAP, BAR_HEIGHT, LEFT, TOP, BOTTOM = 18, 46, 180, 40, 14, 40
SQUARE = 220


def draw_bars(groups: Mapping[str, Mapping[str, float]], top: float = 1.0, mark: float | None = None) -> str:
    """For each group its bars side by side, in the order of the first group's names; `mark` draws a line across."""
    series = list(next(iter(groups.values()), {}))
    pitch = len(series) * BAR_WIDTH + GROUP_GAP
    width = LEFT + max(1, len(groups)) * pitch
    parts = [_scale_lines(width, top)]
    for at, (group, values) in enumerate(groups.items()):
        left = LEFT + at * pitch + GROUP_GAP / 2
        parts += [_bar(left, series.index(name), name, value, top) for name, value in values.items()]
        middle = left + len(series) * BAR_WIDTH / 2
        parts.append(_label(middle, TOP + BAR_HEIGHT + 16, group, "middle"))
    if mark is not None and mark <= top:
        parts.append(_line(LEFT, _height(mark, top), width, _height(mark, top), "mark"))
    legend = "".join(f'<span class="key c{at}">{escape(name)}</span>' for at, name in enumerate(series))
    return f'<p class="legend">{legend}</p>{_svg(width, TOP + BAR_HEIGHT + BOTTOM, parts)}'


def draw_reliability(bins: Sequence[Bin]) -> str:
    """On the diagonal an answer is right as often as its confidence says; a larger dot stands for more answers."""
    most = max((one.count for one in bins), default=1)
    dots = [
        f'<circle cx="{_across(one.confidence):.1f}" cy="{_up(one.right):.1f}" r="{3 + 7 * (one.count / most) ** 0.5:.1f}" '
        f'class="dot"><title>{one.count} answers: confidence {one.confidence:.2f}, right {one.right:.2f}</title></circle>'
        for one in bins
    ]
    line = _path([(one.confidence, one.right) for one in bins])
    diagonal = _line(_across(0), _up(0), _across(1), _up(1), "mark")
    return _square([diagonal, line, *dots], "confidence", "share right")


def draw_risk(points: Sequence[RiskPoint]) -> str:
    """From left to right more questions are answered, the surest first; the line tells how many of them are wrong."""
    return _square([_path([(point.coverage, point.risk) for point in points])], "coverage", "risk")


# --- pieces ---------------------------------------------------------------------------------------


def _svg(width: float, height: float, parts: Sequence[str]) -> str:
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" style="max-width:{width:.0f}px"'
    return f'<svg {size} role="img">{"".join(parts)}</svg>'


def _square(parts: Sequence[str], across: str, up: str) -> str:
    ticks = [
        label
        for value in (0.0, 0.5, 1.0)
        for label in (
            _label(_across(value), TOP + SQUARE + 14, f"{value:g}", "middle"),
            _label(LEFT - 6, _up(value) + 4, f"{value:g}", "end"),
        )
    ]
    frame = f'<rect x="{LEFT}" y="{TOP}" width="{SQUARE}" height="{SQUARE}" class="frame"/>'
    names = [
        _label(_across(0.5), TOP + SQUARE + 30, across, "middle"),
        _label(LEFT + 6, TOP + 14, up, "start"),
    ]
    return _svg(LEFT + SQUARE + 12, TOP + SQUARE + BOTTOM, [frame, *ticks, *names, *parts])


def _scale_lines(width: float, top: float) -> str:
    return "".join(
        _line(LEFT, _height(value, top), width, _height(value, top), "grid")
        + _label(LEFT - 6, _height(value, top) + 4, f"{value:g}", "end")
        for value in (0.0, top / 4, top / 2, top * 3 / 4, top)
    )


def _bar(left: float, at: int, name: str, value: float, top: float) -> str:
    y = _height(min(max(value, 0.0), top), top)
    return (
        f'<rect x="{left + at * BAR_WIDTH:.1f}" y="{y:.1f}" width="{BAR_WIDTH - 3}" '
        f'height="{TOP + BAR_HEIGHT - y:.1f}" class="c{at}"><title>{escape(name)}: {value:.3f}</title></rect>'
    )


def _path(places: Sequence[tuple[float, float]]) -> str:
    return f'<polyline class="line" points="{" ".join(f"{_across(x):.1f},{_up(y):.1f}" for x, y in places)}"/>'


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
