"""Sizes of memory, written as on the command line."""

from __future__ import annotations

import re

_SIZE = re.compile(r"([0-9]+)\s*([A-Za-z]*)")
_UNITS = {
    "": 1,
    "b": 1,
    "k": 1024,
    "kib": 1024,
    "kb": 1000,
    "m": 1024**2,
    "mib": 1024**2,
    "mb": 1000**2,
    "g": 1024**3,
    "gib": 1024**3,
    "gb": 1000**3,
    "t": 1024**4,
    "tib": 1024**4,
    "tb": 1000**4,
}
_LARGEST = 2**64 - 1


def parse(size: int | str | None) -> int | None:
    """Returns a size in bytes.

    A size is a number of bytes, or a text: a whole number and a unit. ``K``, ``M``, ``G`` and ``T``, also written ``KiB`` and so on, are
    powers of 1,024; ``KB``, ``MB``, ``GB`` and ``TB`` are powers of 1,000. Upper and lower case are the same. ``None`` stays ``None``.

    >>> parse("512M")
    536870912
    >>> parse("1500MB")
    1500000000
    """
    if size is None:
        return None
    if isinstance(size, str):
        match = _SIZE.fullmatch(size)
        unit = _UNITS.get(match[2].lower()) if match else None
        # More than 20 digits are too many in any unit, and Python refuses to convert very long ones.
        bytes_ = int(match[1]) * unit if match and unit and len(match[1].lstrip("0")) <= 20 else 0
    elif isinstance(size, int) and not isinstance(size, bool):
        bytes_ = size
    else:
        kind = type(size).__name__
        raise TypeError(f"memory is a {kind}: write a number of bytes, or a text such as '512M' or '2GiB'")
    if not 0 < bytes_ <= _LARGEST:
        raise ValueError(f"memory is {size!r}: expected a size such as 512M, 2GiB or 1500MB")
    return bytes_
