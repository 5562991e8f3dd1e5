"""Places for values in the text of a statement."""

from __future__ import annotations

import re

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
