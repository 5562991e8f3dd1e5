"""The rows of the table `sample` of schema.sql as Python's values."""

import datetime
from decimal import Decimal

FIRST = (
    1,
    True,
    2,
    3,
    1.5,
    2.5,
    Decimal("12.34"),
    "Grüße",
    b"\x00\xff",
    datetime.date(2026, 11, 28),
    datetime.time(12, 34, 56, 789000),
    datetime.datetime(2026, 11, 28, 12, 34, 56, 789000),
    datetime.datetime(2026, 11, 28, 12, 34, 56, 789000, datetime.timezone.utc),
    [1, 2, 3],
)
SECOND = (2,) + (None,) * 6 + ("",) + (None,) * 6
ROWS = [FIRST, SECOND]


def plain(row):
    """A row with bytes in place of views of memory."""
    return tuple(bytes(value) if isinstance(value, memoryview) else value for value in row)
