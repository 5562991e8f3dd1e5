"""Names of relations in SQL."""

from __future__ import annotations


def quoted(name: str) -> str:
    """Returns the name of a relation as SQL writes it, whatever its letters.

    A dot separates a schema from a relation, unless it is in quotes.

    >>> quoted("shop.Sales")
    '"shop"."Sales"'
    >>> quoted('"a.b"')
    '"a.b"'
    """
    parts = [""]
    is_quoted = False
    position = 0
    while position < len(name):
        character = name[position]
        if character == '"':
            if is_quoted and name[position + 1 : position + 2] == '"':
                parts[-1] += '"'
                position += 1
            else:
                is_quoted = not is_quoted
        elif character == "." and not is_quoted:
            parts.append("")
        else:
            parts[-1] += character
        position += 1
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)
