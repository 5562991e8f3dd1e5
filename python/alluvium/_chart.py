"""Charts of two columns."""

from __future__ import annotations

import datetime
import decimal
import html
import math
from collections.abc import Sequence
from typing import Any

from . import _cell

# Lengths in pixels.
_WIDTH, _HEIGHT = 640, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 12, 12, 34


def columns_of(chart: str, columns: Sequence[str]) -> tuple[int, int]:
    """Returns the places of the two columns that a text like ``"x,y"`` names.

    >>> columns_of("day, sales", ["shop", "day", "sales"])
    (1, 2)
    """
    names = [name.strip() for name in chart.split(",")]
    if len(names) != 2:
        raise ValueError(f"chart is {chart!r}: write the names of two columns, as \"x,y\"")
    for name in names:
        if name not in columns:
            raise ValueError(f"chart is {chart!r}, and there is no column {name!r}: the columns are {', '.join(columns)}")
    return columns.index(names[0]), columns.index(names[1])


def svg(points: Sequence[tuple[Any, Any]], x: str, y: str) -> str:
    """Returns a chart, in the colours of the text around it: a line if all x are numbers or times, else bars.

    Points without a number for y are left out.

    >>> svg([(1, 10), (2, 30)], "auction", "price").startswith("<svg")
    True
    """
    drawn = [(at, value) for at, number in points if at is not None and (value := _number(number)) is not None]
    scale = [_position(at) for at, _ in drawn]
    low, high, step = _axis([value for _, value in drawn])

    def top(value: float) -> float:
        return _TOP + (high - value) / (high - low) * (_HEIGHT - _TOP - _BOTTOM)

    parts = [f"<title>{html.escape(_cell.text(y))} by {html.escape(_cell.text(x))}</title>"]
    for number in range(round((high - low) / step) + 1):
        value = low + number * step
        parts.append(
            f'<path d="M{_LEFT} {top(value):.1f} H{_WIDTH - _RIGHT}" stroke="currentColor" stroke-opacity="{0.5 if abs(value) < step / 2 else 0.15}"/>'
            f'<text x="{_LEFT - 6}" y="{top(value) + 4:.1f}" text-anchor="end">{_tick(value)}</text>'
        )
    numbers = [number for number in scale if number is not None]
    if drawn and len(numbers) == len(drawn):
        parts += _line(sorted(zip(numbers, drawn), key=lambda point: point[0]), top)
    else:
        parts += _bars(drawn, top)
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{_HEIGHT - 4}" text-anchor="middle" fill-opacity="0.65">{html.escape(_cell.text(x))}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'style="max-width: 100%" fill="currentColor" font-family="system-ui, sans-serif" font-size="11">'
        f"{''.join(parts)}</svg>"
    )


def _line(points: Sequence[tuple[float, tuple[Any, float]]], top: Any) -> list[str]:
    first, last = points[0][0], points[-1][0]
    room = _WIDTH - _LEFT - _RIGHT

    def left(number: float) -> float:
        return _LEFT + (room / 2 if last == first else (number - first) / (last - first) * room)

    path = " L".join(f"{left(number):.1f} {top(value):.1f}" for number, (_, value) in points)
    parts = [f'<path d="M{path}" fill="none" stroke="#3b82c4" stroke-width="2" stroke-linejoin="round"/>']
    parts += [
        f'<circle cx="{left(number):.1f}" cy="{top(value):.1f}" r="3" fill="#3b82c4">{_hint(at, value)}</circle>'
        for number, (at, value) in points
    ]
    ends = [(points[0], "start"), (points[-1], "end")] if last != first else [(points[0], "middle")]
    parts += [
        f'<text x="{left(number):.1f}" y="{_HEIGHT - _BOTTOM + 14}" text-anchor="{anchor}">{html.escape(_cell.cut(_cell.text(at), 30))}</text>'
        for (number, (at, _)), anchor in ends
    ]
    return parts


def _bars(points: Sequence[tuple[Any, float]], top: Any) -> list[str]:
    parts = []
    step = (_WIDTH - _LEFT - _RIGHT) / max(len(points), 1)
    for number, (at, value) in enumerate(points):
        left = _LEFT + number * step
        start, end = sorted((top(value), top(0)))
        parts.append(
            f'<rect x="{left + step * 0.1:.1f}" y="{start:.1f}" width="{step * 0.8:.1f}" height="{max(end - start, 0.5):.1f}" fill="#3b82c4">'
            f"{_hint(at, value)}</rect>"
        )
        letters = int(step / 6)
        if letters >= 2:
            parts.append(
                f'<text x="{left + step / 2:.1f}" y="{_HEIGHT - _BOTTOM + 14}" text-anchor="middle">'
                f"{html.escape(_cell.cut(_cell.text(at), letters))}</text>"
            )
    return parts


def _hint(at: Any, value: float) -> str:
    return f"<title>{html.escape(_cell.text(at))}: {_tick(value)}</title>"


def _axis(values: Sequence[float]) -> tuple[float, float, float]:
    """The ends of an axis that has all values and zero, and the step between round numbers on it."""
    low, high = min(0.0, *values, 0.0), max(0.0, *values, 0.0)
    if low == high:
        return 0.0, 1.0, 0.5
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    return math.floor(low / step) * step, math.ceil(high / step) * step, step


def _tick(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 or value == round(value) else f"{value:.4g}"


def _number(value: Any) -> float | None:
    """A value as a number; None if it is none that can be drawn."""
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, (int, float, decimal.Decimal)):
        number = float(value)
        # Sums and differences of those that are drawn have to be finite.
        return number if abs(number) < 1e300 else None
    return None


def _position(value: Any) -> float | None:
    """A value as a place on an axis; None if it is neither a number nor a time."""
    if isinstance(value, datetime.datetime):
        utc = value if value.tzinfo is not None else value.replace(tzinfo=datetime.timezone.utc)
        return utc.timestamp()
    if isinstance(value, datetime.date):
        return float(value.toordinal() * 86_400)
    if isinstance(value, datetime.time):
        return value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6
    if isinstance(value, bool):
        return None
    return _number(value)
