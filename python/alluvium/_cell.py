"""Values as texts of one line."""

from __future__ import annotations

import datetime
import decimal
import unicodedata
from collections.abc import Iterable
from typing import Any

# Nothing longer than this is shown whole.
_LENGTH = 200


def text(value: Any) -> str:
    """Returns a value as a text of one line, cut off where it is long.

    >>> text([1.5, None, "two\\nlines"])
    "[1.5, NULL, 'two\\\\nlines']"
    """
    shown = _text(value, is_nested=False)
    return shown if len(shown) <= _LENGTH else shown[: _LENGTH - 1] + "…"


def printable(value: str) -> str:
    """Returns a text without line breaks, controls and what else is not seen: they become escapes."""
    if value.isprintable():
        return value
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape", "surrogatepass").decode("ascii")
        for character in value
    )


def width(value: str) -> int:
    """Returns how many columns of a terminal a text takes."""
    return len(value) if value.isascii() else sum(map(_character_width, value))


def cut(value: str, columns: int) -> str:
    """Returns as much of a text as fits into some columns of a terminal.

    >>> cut("a long text", 6)
    'a lon…'
    """
    if width(value) <= columns:
        return value
    taken = 0
    for number, character in enumerate(value):
        taken += _character_width(character)
        if taken > columns - 1:
            return value[:number] + "…"
    return value


def _character_width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _text(value: Any, *, is_nested: bool) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        shown = printable(value[: _LENGTH + 1])
        return "'" + shown.replace("'", "''") + "'" if is_nested else shown
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "\\x" + bytes(value[:_LENGTH]).hex()
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, dict):
        return "{" + _joined(f"{_text(key, is_nested=True)}: {_text(item, is_nested=True)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + _joined(_text(item, is_nested=True) for item in value) + "]"
    return printable(str(value))


def _joined(items: Iterable[str]) -> str:
    shown: list[str] = []
    length = 0
    for item in items:
        if length > _LENGTH:
            shown.append("…")
            break
        shown.append(item)
        length += len(item)
    return ", ".join(shown)
