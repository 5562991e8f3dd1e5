"""Places for values in the text of a statement."""

from __future__ import annotations

import re
from collections.abc import Callable

# What a statement is made of: spaces, comments and words are told from texts, in which a question mark is one.
_TOKEN = re.compile(
    r"""
      (?P<space> \s+ | --[^\n]* )
    | (?P<comment> /\* )
    | (?P<escaped> [eE]' (?: [^'\\] | \\. | '' )* (?: ' | \Z ) )
    | (?P<text> ' (?: [^'] | '' )* (?: ' | \Z ) )
    | (?P<name> " (?: [^"] | "" )* (?: " | \Z ) )
    | (?P<numbered> \$\d+ )
    | (?P<dollar> \$ (?P<tag> (?: [^\W\d]\w* )? ) \$ )
    | (?P<word> [^\W\d][\w$]* )
    | (?P<number> \d[\w.]* )
    | (?P<mark> \? )
    | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT = re.compile(r"/\*|\*/")

#: The relation of the values that a statement inserts for many rows.
VALUES = "values_of_executemany"

_CONSTANTS = ("NULL", "TRUE", "FALSE")


class Statement:
    """A statement with its places for values, which may be written ``?`` or ``$1``.

    >>> Statement("SELECT ? AS a, '?' AS b").text
    "SELECT $1 AS a, '?' AS b"
    """

    def __init__(self, sql: str) -> None:
        parts: list[str] = []
        #: The first word, in upper case.
        self.keyword = ""
        #: The number of places that are written ``?``.
        self.marks = 0
        #: Whether there are places that are written ``$1``.
        self.has_numbers = False
        position = 0
        while match := _TOKEN.match(sql, position):
            kind, end = match.lastgroup, match.end()
            # The group of a dollar's tag is inside of another one.
            kind = "dollar" if match["dollar"] is not None else kind
            part = match[0]
            if kind == "comment":
                end = _end_of_comment(sql, end)
            elif kind == "dollar":
                found = sql.find(part, end)
                end = len(sql) if found < 0 else found + len(part)
            elif kind == "mark":
                self.marks += 1
                parts.append(f"${self.marks}" + (" " if sql[end : end + 1].isalnum() else ""))
                position = end
                continue
            elif kind == "numbered":
                self.has_numbers = True
            elif kind == "word" and not self.keyword:
                self.keyword = part.upper()
            parts.append(sql[position:end])
            position = end
        #: The statement as the engine takes it, with ``$1``, ``$2`` and so on.
        self.text = "".join(parts)

    @property
    def insertion(self) -> str | None:
        """The statement that inserts the rows of a relation ``values_of_executemany``, whose columns are called by the numbers of the places.

        None if this statement inserts anything but one row of places, each once, and constants.

        >>> print(Statement("INSERT INTO t (a, b, c) VALUES (?, 'x', DEFAULT)").insertion)
        INSERT INTO t (a, b) SELECT "1", 'x' FROM values_of_executemany
        """
        return _Insertion(_tokens(self.text)).rows_of(VALUES)


def _end_of_comment(sql: str, position: int) -> int:
    # Comments may be inside of comments.
    depth = 1
    while depth:
        match = _COMMENT.search(sql, position)
        if match is None:
            return len(sql)
        depth += 1 if match[0] == "/*" else -1
        position = match.end()
    return position


# The kind of a token and its text.
_Token = tuple[str, str]


def _tokens(sql: str) -> list[_Token]:
    """What a statement is made of, without spaces and comments."""
    tokens = []
    position = 0
    while match := _TOKEN.match(sql, position):
        kind, end = match.lastgroup or "other", match.end()
        if match["dollar"] is not None:
            kind = "dollar"
            found = sql.find(match[0], end)
            end = len(sql) if found < 0 else found + len(match[0])
        elif kind == "comment":
            end = _end_of_comment(sql, end)
        if kind not in ("space", "comment"):
            tokens.append((kind, sql[position:end]))
        position = end
    return tokens


class _Insertion:
    """Reads ``INSERT [OR REPLACE] INTO t (a, b) VALUES ($1, 5)``."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._place = 0

    def rows_of(self, relation: str) -> str | None:
        """The statement that inserts the rows of a relation; None if it reads something else."""
        if not self._takes("INSERT"):
            return None
        verb = "INSERT"
        if self._takes("OR"):
            if not self._takes("REPLACE"):
                return None
            # Of rows with one key the last one stays, as if they came one by one.
            verb = "INSERT OR REPLACE"
        if not self._takes("INTO"):
            return None
        table = self._name()
        while table and self._takes("."):
            part = self._name()
            table = part and f"{table}.{part}"
        columns = self._list(self._name) if self._next() == "(" else []
        values = self._list(self._value) if self._takes("VALUES") else None
        self._takes(";")
        if not table or columns is None or values is None or self._place < len(self._tokens):
            return None
        if columns and len(columns) != len(values):
            return None
        numbers = sorted(int(value[1:]) for value in values if value.startswith("$"))
        if not numbers or numbers != list(range(1, len(numbers) + 1)):
            return None
        if "DEFAULT" in values:
            # Columns that are left out have their defaults.
            columns = [column for column, value in zip(columns, values) if value != "DEFAULT"]
            values = [value for value in values if value != "DEFAULT"]
            if not columns:
                return None
        named = f" ({', '.join(columns)})" if columns else ""
        selected = ", ".join(f'"{value[1:]}"' if value.startswith("$") else value for value in values)
        return f"{verb} INTO {table}{named} SELECT {selected} FROM {relation}"

    def _next(self) -> str:
        """The next token; empty at the end."""
        return self._tokens[self._place][1] if self._place < len(self._tokens) else ""

    def _kind(self) -> str:
        return self._tokens[self._place][0] if self._place < len(self._tokens) else ""

    def _takes(self, word: str) -> bool:
        """Goes past the next token if it is this one."""
        if self._kind() not in ("word", "other") or self._next().upper() != word:
            return False
        self._place += 1
        return True

    def _take(self) -> str:
        token = self._next()
        self._place += 1
        return token

    def _list(self, item: Callable[[], str | None]) -> list[str] | None:
        """Items in parentheses; None if it is something else."""
        items = []
        if not self._takes("("):
            return None
        while True:
            read = item()
            if read is None:
                return None
            items.append(read)
            if self._takes(")"):
                return items
            if not self._takes(","):
                return None

    def _name(self) -> str | None:
        return self._take() if self._kind() in ("word", "name") else None

    def _value(self) -> str | None:
        """A place, a constant or DEFAULT."""
        kind, token = self._kind(), self._next()
        if kind in ("numbered", "number", "text", "escaped"):
            return self._take()
        if kind == "word" and token.upper() in (*_CONSTANTS, "DEFAULT"):
            return self._take().upper()
        if token == "-":
            self._place += 1
            return f"-{self._take()}" if self._kind() == "number" else None
        return None
