"""Results and tables as text and as HTML."""

from __future__ import annotations

import html as escapes
import re
import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _cell
from ._alluvium import Result, Table
from ._errors import Error
from ._plan import Plan

if TYPE_CHECKING:
    from ._alluvium import Row

Rows = Result | Table

# How many rows are shown.
ROWS = 40
# Where there is not room for the whole of all columns, none is cut to less than this. If that is not enough, some are left out, and the others have
# this much, in characters.
_NARROW, _MEDIUM = 8, 20
# The class of a cell, by whether it is a number.
_NUMBER = ("", "number")
_NUMERIC = re.compile(r"(U?(TINYINT|SMALLINT|INTEGER|BIGINT)|FLOAT|REAL|DOUBLE|DECIMAL(\(.*\))?)")

STYLE = """\
.alluvium table { border-collapse: collapse; border: none; font-variant-numeric: tabular-nums; color: inherit; }
.alluvium th, .alluvium td { border: none; padding: 0.2em 0.8em; text-align: left; white-space: pre; background: none; color: inherit; }
.alluvium thead tr:last-child th { border-bottom: 1px solid currentColor; font-weight: normal; font-size: 85%; opacity: 0.65; padding-top: 0; }
.alluvium tbody tr:nth-child(even) { background: rgba(128, 128, 128, 0.12); }
.alluvium tbody tr:nth-child(odd) { background: none; }
.alluvium .number { text-align: right; }
.alluvium .null { opacity: 0.5; font-style: italic; }
.alluvium caption { caption-side: bottom; text-align: left; font-size: 85%; opacity: 0.65; padding: 0.4em 0.8em; color: inherit; }
.alluvium pre { background: none; color: inherit; }"""


def text(shown: Rows) -> str:
    """Returns the first rows as text, in a box that fits the terminal. The rows of a result stay to be taken.

    >>> import alluvium
    >>> with alluvium.memory() as db:
    ...     print(text(db.sql("SELECT 1 AS one, 'a' AS letter")))
    ┌────────┬─────────┐
    │    one │ letter  │
    │ BIGINT │ VARCHAR │
    ├────────┼─────────┤
    │      1 │ a       │
    └────────┴─────────┘
    (1 row)
    """
    other = _without_rows(shown)
    if other is not None:
        return other
    try:
        rows, total = _first(shown)
    except Error as error:
        return f"({error})"
    return _box(shown.columns, shown.types, rows, total, shutil.get_terminal_size((100, 24)).columns)


def html(shown: Rows) -> str:
    """Returns the first rows as a table of HTML. The rows of a result stay to be taken."""
    other = _without_rows(shown)
    if other is not None:
        return framed(f"<pre>{escapes.escape(other)}</pre>")
    try:
        rows, total = _first(shown)
    except Error as error:
        return framed(f"<pre>({escapes.escape(str(error))})</pre>")
    return html_of_rows(shown.columns, shown.types, rows, count(len(rows), total))


def html_of_rows(columns: Sequence[str], types: Sequence[str], rows: Sequence[Row], caption: str) -> str:
    """Returns rows as a table of HTML."""
    numeric = list(map(is_numeric, types))

    def cell(tag: str, text: str, *classes: str) -> str:
        classes = tuple(filter(None, classes))
        attribute = f' class="{" ".join(classes)}"' if classes else ""
        return f"<{tag}{attribute}>{escapes.escape(text)}</{tag}>"

    def headers(texts: Sequence[str]) -> str:
        return "".join(cell("th", _cell.printable(text), _NUMBER[place]) for text, place in zip(texts, numeric))

    def data(value: Any, is_number: bool) -> str:
        return cell("td", _cell.text(value), _NUMBER[is_number], "null" if value is None else "")

    lines = [f"<tr>{''.join(map(data, row, numeric))}</tr>" for row in rows]
    return framed(
        f"<table><caption>{escapes.escape(caption)}</caption>"
        f"<thead><tr>{headers(columns)}</tr><tr>{headers(types)}</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table>"
    )


def framed(content: str) -> str:
    """Returns HTML with the style of this package."""
    return f'<div class="alluvium"><style>{STYLE}</style>{content}</div>'


def plan_svg(plan: str) -> str:
    """Returns the text of a plan as a picture.

    >>> plan_svg("scan t (a)").startswith("<svg")
    True
    """
    return Plan(plan).svg()


def count(shown: int, total: int | None) -> str:
    """Returns how many rows there are, and how many of them are shown.

    >>> count(12, 12), count(40, 1234), count(40, None)
    ('12 rows', 'first 40 of 1,234 rows', 'first 40 rows of more')
    """
    if total is None:
        return f"first {shown:,} rows of more"
    if total > shown:
        return f"first {shown:,} of {total:,} rows"
    return "1 row" if total == 1 else f"{total:,} rows"


def is_numeric(type_: str) -> bool:
    """Whether values of a type of SQL are numbers, which are aligned to the right.

    >>> is_numeric("BIGINT"), is_numeric("BIGINT[]")
    (True, False)
    """
    return _NUMERIC.fullmatch(type_) is not None


def _without_rows(shown: Rows) -> str | None:
    """What to show of a result that has no rows; None if there are rows."""
    if not isinstance(shown, Result) or shown.has_rows:
        return None
    if shown.text is not None:
        return shown.text
    if shown.rows_changed is not None:
        return f"({count(shown.rows_changed, shown.rows_changed)} changed)"
    return "(done)"


def _first(shown: Rows) -> tuple[list[Row], int | None]:
    """The first rows, and how many there are if that is known."""
    if isinstance(shown, Table):
        return [shown[row] for row in range(min(len(shown), ROWS))], len(shown)
    table, total = shown.peek(ROWS)
    return table.fetchall(), total


def _box(columns: Sequence[str], types: Sequence[str], rows: Sequence[Row], total: int | None, room: int) -> str:
    numeric = list(map(is_numeric, types))
    # Names, types, then rows.
    lines = [[_cell.printable(text) for text in texts] for texts in (columns, types)]
    lines += [[_cell.text(value) for value in row] for row in rows]
    widths = [max(_cell.width(line[column]) for line in lines) for column in range(len(columns))]
    widths, left_out = _fitted(widths, room)
    places: list[int | None] = list(range(len(columns)))
    if left_out is not None:
        places[left_out[0] : left_out[1]] = [None]

    def line(texts: Sequence[str]) -> str:
        cells = []
        for place in places:
            if place is None:
                cells.append(" … ")
                continue
            text = _cell.cut(texts[place], widths[place])
            space = " " * (widths[place] - _cell.width(text))
            cells.append(f" {space}{text} " if numeric[place] else f" {text}{space} ")
        return "│" + "│".join(cells) + "│"

    def rule(left: str, middle: str, right: str) -> str:
        return left + middle.join("─" * (3 if place is None else widths[place] + 2) for place in places) + right

    shown = count(len(rows), total)
    if left_out is not None:
        shown += f", {len(places) - 1} of {len(columns)} columns"
    if not columns:
        return f"({shown})"
    return "\n".join(
        [
            rule("┌", "┬", "┐"),
            *map(line, lines[:2]),
            rule("├", "┼", "┤"),
            *map(line, lines[2:]),
            rule("└", "┴", "┘"),
            f"({shown})",
        ]
    )


def _fitted(widths: list[int], room: int) -> tuple[list[int], tuple[int, int] | None]:
    """The widths of columns so that they fit, and which columns in the middle are left out if they cannot."""

    def needed(widths: Sequence[int]) -> int:
        return sum(widths) + 3 * len(widths) + 1

    widest_of_all = max(widths, default=0)
    for widest in range(widest_of_all, min(widest_of_all, _NARROW) - 1, -1):
        fitted = [min(width, widest) for width in widths]
        if needed(fitted) <= room:
            return fitted, None
    fitted = [min(width, _MEDIUM) for width in widths]
    # The column that stands for those left out is one wide.
    start, end = len(fitted) // 2, len(fitted) // 2 + 1
    while (start > 1 or end < len(fitted) - 1) and needed([*fitted[:start], 1, *fitted[end:]]) > room:
        if start > len(fitted) - end:
            start -= 1
        else:
            end += 1
    return (fitted, (start, end)) if len(fitted) > 2 else (fitted, None)
