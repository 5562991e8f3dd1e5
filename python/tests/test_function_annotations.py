"""Types of functions come from annotations."""

import datetime
import decimal
import functools
import typing
from collections.abc import Callable
from typing import Any

import pytest

import alluvium
from alluvium._function import sql_type


@pytest.mark.parametrize(
    ("annotation", "sql"),
    [
        (int, "BIGINT"),
        (float, "DOUBLE"),
        (str, "VARCHAR"),
        (bool, "BOOLEAN"),
        (bytes, "BLOB"),
        (datetime.date, "DATE"),
        (datetime.datetime, "TIMESTAMP"),
        (datetime.time, "TIME"),
        (datetime.timedelta, "INTERVAL"),
        (decimal.Decimal, "DECIMAL(38, 9)"),
        (list[int], "BIGINT[]"),
        (typing.List[str], "VARCHAR[]"),  # noqa: UP006
        (list[list[bool]], "BOOLEAN[][]"),
        (list[int | None], "BIGINT[]"),
        (typing.Optional[int], "BIGINT"),  # noqa: UP045
        (int | None, "BIGINT"),
        (list[float] | None, "DOUBLE[]"),
        (typing.Annotated[int, "dollars"], "BIGINT"),
        (dict, None),
        (dict[str, int], None),
        (list, None),
        (typing.List, None),  # noqa: UP006
        (int | str, None),
        (None, None),
        (type(None), None),
        (Any, None),
        ([], None),
    ],
)
def test_annotations_have_types_of_sql(annotation: Any, sql: str | None) -> None:
    assert sql_type(annotation) == sql


def test_types_are_those_of_the_annotations() -> None:
    @alluvium.function
    def label(number: int, text: str) -> str:
        return f"{text}{number}"

    with alluvium.memory(functions=[label]) as db:
        result = db.sql("SELECT label(7, 'a') AS l")
        assert result.types == ["VARCHAR"]
        assert result.fetchall() == [("a7",)]
    assert label.name == "label"


@pytest.mark.parametrize(
    ("annotation", "sql", "value"),
    [
        (int, "7", 7),
        (float, "CAST(1.5 AS DOUBLE)", 1.5),
        (str, "'é'", "é"),
        (bool, "true", True),
        (bytes, "CAST('ab' AS BLOB)", b"ab"),
        (datetime.date, "DATE '2024-02-29'", datetime.date(2024, 2, 29)),
        (datetime.datetime, "$1", datetime.datetime(2024, 2, 29, 12, 30, 0, 500_000)),
        (datetime.time, "TIME '12:30:00'", datetime.time(12, 30)),
        (decimal.Decimal, "CAST(1.25 AS DECIMAL(38, 9))", decimal.Decimal("1.25")),
        (list[int], "[1, NULL, 3]", [1, None, 3]),
    ],
)
def test_values_of_each_type_go_in_and_out(annotation: Any, sql: str, value: Any) -> None:
    seen = []

    def same(value: Any) -> Any:
        seen.append(value)
        return value

    same.__annotations__ = {"value": annotation, "return": annotation}
    with alluvium.memory(functions=[alluvium.function(same)]) as db:
        parameters = [value] if sql == "$1" else []
        assert db.sql(f"SELECT same({sql}) AS v", *parameters).fetchone() == (value,)
    assert set(map(type, seen)) == {type(value)}


def test_an_interval_goes_in_and_out() -> None:
    @alluvium.function
    def twice(length: datetime.timedelta) -> datetime.timedelta:
        return 2 * length

    with alluvium.memory(functions=[twice]) as db:
        assert db.sql("SELECT twice(INTERVAL '90 minutes') = INTERVAL '3 hours' AS same").fetchone() == (True,)


def test_a_view_calls_a_function() -> None:
    @alluvium.function
    def double(number: int) -> int:
        return 2 * number

    with alluvium.memory(functions=[double]) as db:
        db.sql("CREATE TABLE n (n BIGINT); CREATE MATERIALIZED VIEW d AS SELECT double(n) AS d FROM n")
        db.insert("n", [(1,), (2,)])
        assert sorted(db.sql("SELECT * FROM d").fetchall()) == [(2,), (4,)]


@pytest.mark.parametrize("annotation", [int, int | None])
def test_a_function_is_not_called_for_null(annotation: Any) -> None:
    calls = []

    def seen(number: Any) -> Any:
        calls.append(number)
        return number

    seen.__annotations__ = {"number": annotation, "return": int}
    with alluvium.memory(functions=[alluvium.function(seen)]) as db:
        db.sql("CREATE TABLE n (n BIGINT)")
        db.insert("n", [(1,), (None,)])
        assert sorted(db.sql("SELECT seen(n) FROM n").fetchall(), key=str) == [(1,), (None,)]
    assert calls == [1]


def test_a_function_may_return_null() -> None:
    @alluvium.function
    def positive(number: int) -> int | None:
        return number if number > 0 else None

    with alluvium.memory(functions=[positive]) as db:
        assert db.sql("SELECT positive(1), positive(-1)").fetchone() == (1, None)


def test_given_types_are_those() -> None:
    @alluvium.function(returns="INTEGER", arguments=["VARCHAR"], name="letters")
    def count(text):  # type: ignore[no-untyped-def]
        return len(text)

    with alluvium.memory(functions=[count]) as db:
        result = db.sql("SELECT letters('four') AS n")
        assert result.types == ["INTEGER"]
        assert result.fetchone() == (4,)


def test_given_types_come_before_annotations() -> None:
    @alluvium.function(returns="INTEGER")
    def half(number: int) -> int:
        return number // 2

    with alluvium.memory(functions=[half]) as db:
        assert db.sql("SELECT half(9) AS h").types == ["INTEGER"]


def test_a_vectorized_function_gets_arrays() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    compute = pytest.importorskip("pyarrow.compute")
    lengths = []

    @alluvium.function(returns="BIGINT", arguments=["BIGINT", "BIGINT"], vectorized=True)
    def plus(a: Any, b: Any) -> Any:
        left, right = pyarrow.array(a), pyarrow.array(b)
        lengths.append(len(left))
        return compute.add(left, right)

    with alluvium.memory(functions=[plus]) as db:
        db.sql("CREATE TABLE n (a BIGINT, b BIGINT)")
        db.insert("n", [(number, None if number == 3 else 1) for number in range(5)])
        rows = db.sql("SELECT a, plus(a, b) FROM n ORDER BY a").fetchall()
    assert rows == [(0, 1), (1, 2), (2, 3), (3, None), (4, 5)]
    assert max(lengths) > 1


def test_a_function_can_still_be_called() -> None:
    @alluvium.function
    def double(number: int) -> int:
        return 2 * number

    assert double(21) == 42


def test_what_a_function_raises_is_raised() -> None:
    @alluvium.function
    def fail(number: int) -> int:
        raise ZeroDivisionError(f"not {number}")

    with alluvium.memory(functions=[fail]) as db, pytest.raises(Exception, match="not 7"):
        db.sql("SELECT fail(7)").fetchall()


def test_string_annotations_are_resolved() -> None:
    def double(number: "int") -> "int":
        return 2 * number

    assert alluvium.function(double).name == "double"


def test_a_bound_method_is_a_function() -> None:
    class Scale:
        def __init__(self, by: int) -> None:
            self.by = by

        def times(self, number: int) -> int:
            return self.by * number

        def __call__(self, number: int) -> int:
            return self.by * number

    functions = [alluvium.function(Scale(3).times), alluvium.function(Scale(5), name="five")]
    with alluvium.memory(functions=functions) as db:
        assert db.sql("SELECT times(2), five(2)").fetchone() == (6, 10)


def untyped(a, b):  # type: ignore[no-untyped-def]
    return a


def no_return(a: int):  # type: ignore[no-untyped-def]
    return a


def mapping(a: dict[str, int]) -> int:
    return len(a)


def returns_mapping(a: int) -> dict[str, int]:
    return {}


def many(*numbers: int) -> int:
    return 0


def by_name(*, number: int) -> int:
    return 0


def unknown(a: "Nowhere") -> int:  # type: ignore[name-defined]  # noqa: F821
    return 0


async def waits(a: int) -> int:
    return a


@pytest.mark.parametrize(
    ("call", "options", "message"),
    [
        (untyped, {}, r"argument a of untyped has no annotation: write one, as a: int, or arguments=\["),
        (untyped, {"arguments": ["BIGINT", "BIGINT"]}, 'does not tell what it returns: write an annotation, as -> int, or returns="BIGINT"'),
        (untyped, {"arguments": ["BIGINT"], "returns": "BIGINT"}, "untyped cannot be called with 1 arguments"),
        (untyped, {"arguments": "BIGINT", "returns": "BIGINT"}, r"write a list of types, as arguments=\['BIGINT'\]"),
        (no_return, {}, 'or returns="BIGINT"'),
        (mapping, {}, r"argument a of mapping is dict\[str, int\], for which there is no type of SQL"),
        (returns_mapping, {}, r"returns_mapping returns dict\[str, int\], for which there is no type of SQL"),
        (many, {}, r"many takes \*numbers: int: SQL gives a fixed number of arguments"),
        (by_name, {}, "SQL gives a fixed number of arguments by position"),
        (unknown, {}, "an annotation of unknown names what is not there"),
        (waits, {}, "waits is async"),
        (mapping, {"vectorized": True}, "mapping is vectorized: write its types"),
        (lambda a: a, {"arguments": ["BIGINT"], "returns": "BIGINT"}, 'has no name: write name="…"'),
        (functools.partial(untyped, 1), {"arguments": ["BIGINT"], "returns": "BIGINT"}, 'has no name: write name="…"'),
        (7, {}, "a int cannot be called"),
    ],
)
def test_what_is_missing_is_asked_for(call: Callable[..., Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        alluvium.function(call, **options)


def test_a_type_that_is_none_is_refused() -> None:
    with pytest.raises(alluvium.Error):
        alluvium.function(untyped, arguments=["BIGINT", "NONSENSE"], returns="BIGINT")
