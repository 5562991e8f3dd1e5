"""Functions of SQL that are written in Python."""

from __future__ import annotations

import datetime
import decimal
import inspect
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any, overload

from ._alluvium import Function

_TYPES: dict[Any, str] = {
    int: "BIGINT",
    float: "DOUBLE",
    str: "VARCHAR",
    bool: "BOOLEAN",
    bytes: "BLOB",
    datetime.date: "DATE",
    datetime.datetime: "TIMESTAMP",
    datetime.time: "TIME",
    datetime.timedelta: "INTERVAL",
    decimal.Decimal: "DECIMAL(38, 9)",
}
_KNOWN = "int, float, str, bool, bytes, date, datetime, time, timedelta, Decimal and lists of these"


@overload
def function(
    call: Callable[..., Any],
    /,
    *,
    returns: str | None = None,
    arguments: Sequence[str] | None = None,
    name: str | None = None,
    vectorized: bool = False,
    volatile: bool = False,
) -> Function: ...


@overload
def function(
    call: None = None,
    /,
    *,
    returns: str | None = None,
    arguments: Sequence[str] | None = None,
    name: str | None = None,
    vectorized: bool = False,
    volatile: bool = False,
) -> Callable[[Callable[..., Any]], Function]: ...


def function(
    call: Callable[..., Any] | None = None,
    /,
    *,
    returns: str | None = None,
    arguments: Sequence[str] | None = None,
    name: str | None = None,
    vectorized: bool = False,
    volatile: bool = False,
) -> Function | Callable[[Callable[..., Any]], Function]:
    """Makes a function of Python a function of SQL.

    Pass it to :func:`alluvium.open` or :func:`alluvium.memory` as one of ``functions``. It can then be called in queries and in views.

    >>> import alluvium
    >>> @alluvium.function
    ... def double(x: int) -> int:
    ...     return 2 * x
    >>> with alluvium.memory(functions=[double]) as db:
    ...     db.sql("SELECT double(21)").fetchone()
    (42,)

    The types are those of the annotations: ``int`` is ``BIGINT``, ``float`` ``DOUBLE``, ``str`` ``VARCHAR``, ``bool`` ``BOOLEAN``, ``bytes``
    ``BLOB``, ``datetime.date`` ``DATE``, ``datetime.datetime`` ``TIMESTAMP``, ``datetime.time`` ``TIME``, ``datetime.timedelta``
    ``INTERVAL``, ``decimal.Decimal`` ``DECIMAL(38, 9)``, and ``list[X]`` a list of ``X``. ``X | None`` is ``X``. Where there are no
    annotations, or others, give the types of SQL:

    >>> shout = alluvium.function(str.upper, name="shout", arguments=["VARCHAR"], returns="VARCHAR")

    A function gets one value for each argument and returns one. If an argument is NULL the result is NULL: the function is not called, so no
    argument is ever ``None``, whatever its annotation is. It may return ``None`` for NULL.

    A ``vectorized`` function is called for many rows at once. It gets one Arrow array for each argument, which any library takes that knows
    ``__arrow_c_array__``, and returns one array of the same length. NULLs are in the arrays. It needs ``arguments`` and ``returns``:

    >>> @alluvium.function(returns="BIGINT", arguments=["BIGINT", "BIGINT"], vectorized=True)
    ... def plus(a, b):
    ...     import pyarrow.compute
    ...     return pyarrow.compute.add(pyarrow.array(a), pyarrow.array(b))

    A view keeps what a function has returned, and counts on getting the same again for the same arguments. A function for which this does not
    hold is ``volatile``: queries can call it, and views cannot.
    """
    if call is None:
        return lambda call: _made(call, returns, arguments, name, vectorized, volatile)
    return _made(call, returns, arguments, name, vectorized, volatile)


def _made(
    call: Callable[..., Any],
    returns: str | None,
    arguments: Sequence[str] | None,
    name: str | None,
    vectorized: bool,
    volatile: bool,
) -> Function:
    if not callable(call):
        raise TypeError(f"a {type(call).__name__} cannot be called: write @alluvium.function above a function, options by name")
    if name is None:
        name = getattr(call, "__name__", None)
        if name is None or not name.isidentifier():
            raise TypeError(f"{call!r} has no name: write name=\"…\"")
    if inspect.iscoroutinefunction(call):
        raise TypeError(f"{name} is async: SQL calls functions that return their value at once")
    if isinstance(arguments, str):
        raise TypeError(f"arguments of {name} is a text: write a list of types, as arguments=[{arguments!r}]")
    if vectorized and (arguments is None or returns is None):
        raise TypeError(f"{name} is vectorized: write its types, as arguments=[\"BIGINT\"] and returns=\"BIGINT\"")
    if arguments is None:
        arguments = _argument_types(call, name)
    else:
        arguments = list(arguments)
        _check_arity(call, name, len(arguments))
    if returns is None:
        returns = _return_type(call, name)
    return Function(call, name=name, arguments=arguments, returns=returns, vectorized=vectorized, volatile=volatile)


def _argument_types(call: Callable[..., Any], name: str) -> list[str]:
    signature = _signature(call)
    if signature is None:
        raise TypeError(f"{name} does not tell its arguments: write arguments=[\"BIGINT\", …]")
    annotations = _annotations(call, name)
    types_ = []
    for parameter in signature.parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            raise TypeError(
                f"{name} takes {parameter}: SQL gives a fixed number of arguments by position; write arguments=[\"BIGINT\", …] for those it gives"
            )
        if parameter.name not in annotations:
            raise TypeError(
                f"argument {parameter.name} of {name} has no annotation: write one, as {parameter.name}: int, or arguments=[\"BIGINT\", …]"
            )
        annotation = annotations[parameter.name]
        sql = sql_type(annotation)
        if sql is None:
            raise TypeError(
                f"argument {parameter.name} of {name} is {_shown(annotation)}, for which there is no type of SQL: "
                f"write arguments=[\"BIGINT\", …], or one of {_KNOWN}"
            )
        types_.append(sql)
    return types_


def _return_type(call: Callable[..., Any], name: str) -> str:
    annotations = _annotations(call, name)
    if "return" not in annotations:
        raise TypeError(f"{name} does not tell what it returns: write an annotation, as -> int, or returns=\"BIGINT\"")
    annotation = annotations["return"]
    sql = sql_type(annotation)
    if sql is None:
        raise TypeError(
            f"{name} returns {_shown(annotation)}, for which there is no type of SQL: write returns=\"BIGINT\", or one of {_KNOWN}"
        )
    return sql


def sql_type(annotation: Any) -> str | None:
    """Returns the type of SQL for an annotation, or None if there is none.

    >>> sql_type(list[int])
    'BIGINT[]'
    """
    origin = typing.get_origin(annotation)
    parts = typing.get_args(annotation)
    if origin is typing.Annotated:
        return sql_type(parts[0])
    if origin in (typing.Union, types.UnionType):
        others = [part for part in parts if part is not type(None)]
        return sql_type(others[0]) if len(others) == 1 else None
    if origin is list and parts:
        element = sql_type(parts[0])
        return None if element is None else f"{element}[]"
    try:
        return _TYPES.get(annotation)
    except TypeError:
        return None


def _signature(call: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(call)
    except (TypeError, ValueError):
        return None


def _annotations(call: Callable[..., Any], name: str) -> dict[str, Any]:
    described = call if inspect.isroutine(call) else getattr(call, "__call__", call)  # noqa: B004
    try:
        return typing.get_type_hints(described, include_extras=True)
    except NameError as error:
        raise TypeError(f"an annotation of {name} names what is not there ({error}): write arguments=[…] and returns=…") from None
    except TypeError:
        return {}


def _check_arity(call: Callable[..., Any], name: str, count: int) -> None:
    signature = _signature(call)
    if signature is None:
        return
    try:
        signature.bind(*[None] * count)
    except TypeError as error:
        raise TypeError(f"{name} cannot be called with {count} arguments, as many as arguments= has: {error}") from None


def _shown(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)
