"""Frames of other libraries, whose Arrow data the compiled half reads."""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

from . import _alluvium
from ._errors import InterfaceError

# Readers whose rows have been taken.
_taken: WeakSet[Any] = WeakSet()


def readable(data: Any) -> Any:
    """Returns the same rows, as an object whose Arrow data has the columns that its users see, and that every library takes.

    The index of a frame of pandas is no column.
    """
    library = type(data).__module__.partition(".")[0]
    if library == "pandas" and type(data).__name__ == "DataFrame":
        import pyarrow

        return pyarrow.Table.from_pandas(data, preserve_index=False)
    if library == "polars":
        import polars

        if isinstance(data, polars.LazyFrame):
            data = data.collect()
        if isinstance(data, polars.DataFrame):
            # polars gives columns of NULLs alone a buffer, which Arrow does not know there.
            types = {name: _without_null(kind, polars) for name, kind in data.schema.items()}
            changed: Any = {name: kind for name, kind in types.items() if kind != data.schema[name]}
            return data.cast(changed) if changed else data
    return data


def take(data: Any) -> Any:
    """Marks the rows of an object as taken, if they are read once."""
    if isinstance(data, _alluvium.Result) or hasattr(data, "read_next_batch"):
        if data in _taken:
            kind = type(data).__name__
            raise InterfaceError(f"a {kind} is read once, and its rows have been taken: make a table of it first, for what is read again")
        _taken.add(data)
    return data


def _without_null(kind: Any, polars: Any) -> Any:
    if kind == polars.Null:
        return polars.String
    if isinstance(kind, polars.List):
        return polars.List(_without_null(kind.inner, polars))
    if isinstance(kind, polars.Array):
        return polars.Array(_without_null(kind.inner, polars), kind.size)
    if isinstance(kind, polars.Struct):
        return polars.Struct([polars.Field(field.name, _without_null(field.dtype, polars)) for field in kind.fields])
    return kind
