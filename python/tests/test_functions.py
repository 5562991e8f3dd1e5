"""Functions of Python are called in queries and in views."""

import datetime as dt
import decimal
import pathlib
from collections.abc import Iterator
from typing import Any

import polars
import pyarrow
import pyarrow.compute
import pytest

import alluvium

handles: dict[str, Any] = {}


@alluvium.function
def double(x: int) -> int:
    return 2 * x


@alluvium.function
def fails(x: int) -> int:
    if x == 13:
        raise ValueError("unlucky")
    return x


@alluvium.function(returns="BIGINT", arguments=["BIGINT", "BIGINT"], vectorized=True)
def plus(a: Any, b: Any) -> Any:
    return pyarrow.compute.add(pyarrow.array(a), pyarrow.array(b))


@alluvium.function(returns="VARCHAR", arguments=["VARCHAR"], vectorized=True)
def shout(a: Any) -> Any:
    return polars.Series(a).str.to_uppercase()


@alluvium.function(returns="BIGINT", arguments=["BIGINT"], vectorized=True)
def short(a: Any) -> Any:
    return pyarrow.array([1])


@alluvium.function(returns="BIGINT", arguments=["BIGINT"], vectorized=True)
def no_array(a: Any) -> Any:
    return 5


@alluvium.function(returns="BIGINT", arguments=["BIGINT"], vectorized=True)
def other_type(a: Any) -> Any:
    return pyarrow.array(["x"] * len(pyarrow.array(a)))


@alluvium.function
def wrong_type(x: int) -> int:
    return "no number"  # type: ignore[return-value]


@alluvium.function
def too_large(x: int) -> int:
    return 2**70


@alluvium.function
def odd(x: int) -> int | None:
    return x if x % 2 else None


@alluvium.function
def digits(text: str, count: int) -> list[str]:
    return [text[:count], text[count:]]


@alluvium.function
def seven() -> int:
    return 7


@alluvium.function(volatile=True)
def count_up() -> int:
    handles["count"] = handles.get("count", 0) + 1
    return int(handles["count"])


@alluvium.function(arguments=["BIGINT"], returns="BIGINT")
def same_handle(x: int) -> Any:
    return handles["db"].sql("SELECT 1 AS one").fetchall()[0][0]


@alluvium.function(arguments=["BIGINT"], returns="BIGINT")
def other_session(x: int) -> Any:
    return handles["session"].sql("SELECT $1 + 1 AS more", x).fetchall()[0][0]


@alluvium.function
def leaves(x: int) -> int:
    raise KeyboardInterrupt


ALL = [double, fails, plus, shout, short, no_array, other_type, wrong_type, too_large, odd, digits, seven, count_up]
ALL += [same_handle, other_session, leaves]


@pytest.fixture
def db() -> Iterator[alluvium.Database]:
    """Numbers from 0 to 9 and NULL."""
    with alluvium.memory(workers=2, functions=ALL) as database:
        database.sql("CREATE TABLE n (a BIGINT)")
        database.insert("n", {"a": [*range(10), None]})
        handles.update(db=database, session=database.session())
        yield database
        handles.clear()


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT double(21) AS d", [(42,)]),
        ("SELECT double(a) AS d FROM n WHERE a < 3 OR a IS NULL", [(0,), (2,), (4,), (None,)]),
        ("SELECT sum(double(a)) AS s FROM n", [(90,)]),
        ("SELECT a FROM n WHERE double(a) = 8", [(4,)]),
        ("SELECT double(double(a)) + seven() AS d FROM n WHERE a = 2", [(15,)]),
        ("SELECT count(*) AS c FROM n x JOIN n y ON double(x.a) = y.a", [(5,)]),
        ("SELECT double(a % 2) AS g, count(*) AS c FROM n WHERE a IS NOT NULL GROUP BY double(a % 2)", [(0, 5), (2, 5)]),
        ("SELECT plus(a, 1) AS p FROM n WHERE a > 7 OR a IS NULL", [(9,), (10,), (None,)]),
        ("SELECT shout('x' || a) AS s FROM n WHERE a < 2", [("X0",), ("X1",)]),
        ("SELECT odd(a) AS o FROM n WHERE a < 3", [(1,), (None,), (None,)]),
        ("SELECT digits('abc', 1) AS d", [(["a", "bc"],)]),
        ("SELECT double(NULL) AS d", [(None,)]),
        ("SELECT double(a) AS d FROM n WHERE a > 100", []),
        ("SELECT double(CAST(a AS SMALLINT)) AS d FROM n WHERE a = 1", [(2,)]),
        ("SELECT DOUBLE(a) AS d FROM n WHERE a = 1", [(2,)]),
    ],
)
def test_queries_call_functions(db: alluvium.Database, sql: str, rows: list[Any]) -> None:
    assert sorted(db.sql(sql).fetchall(), key=str) == sorted(rows, key=str)


def test_a_function_is_still_a_function() -> None:
    assert (double(4), double.name, repr(double)) == (8, "double", "<alluvium.Function double>")


def test_views_keep_what_functions_return(db: alluvium.Database) -> None:
    db.sql("""
        CREATE MATERIALIZED VIEW v AS SELECT double(a % 3) AS g, sum(plus(a, 1)) AS s, count(*) AS c FROM n WHERE odd(a) IS NOT NULL GROUP BY 1;
        CREATE MATERIALIZED VIEW w AS SELECT shout('x' || a) AS s FROM n
    """)

    def expected(values: list[int]) -> list[Any]:
        odds = [value for value in values if value % 2]
        groups = sorted({value % 3 for value in odds})
        return [(2 * g, sum(v + 1 for v in odds if v % 3 == g), len([v for v in odds if v % 3 == g])) for g in groups]

    assert db.sql("SELECT * FROM v ORDER BY g").fetchall() == expected(list(range(10)))
    db.insert("n", {"a": range(10, 50)})
    assert db.sql("SELECT * FROM v ORDER BY g").fetchall() == expected(list(range(50)))
    db.sql("DELETE FROM n WHERE a >= 20")
    assert db.sql("SELECT * FROM v ORDER BY g").fetchall() == expected(list(range(20)))
    db.sql("UPDATE n SET a = a + 1")
    assert db.sql("SELECT * FROM v ORDER BY g").fetchall() == expected(list(range(1, 21)))
    assert sorted(db.sql("SELECT s FROM w WHERE s IS NOT NULL").fetchall()) == sorted((f"X{number}",) for number in range(1, 21))


@pytest.mark.parametrize(
    ("sql", "said", "cause"),
    [
        ("SELECT fails(a + 10) AS f FROM n", "function fails: ValueError: unlucky", ValueError),
        ("SELECT fails(13) AS f", "function fails: ValueError: unlucky", ValueError),
        ("SELECT wrong_type(a) AS f FROM n", "'no number' is no BIGINT", alluvium.DataError),
        ("SELECT too_large(a) AS f FROM n", "beyond the range of BIGINT", alluvium.DataError),
        ("SELECT short(a) AS f FROM n", "returned 1 value", alluvium.DataError),
        ("SELECT no_array(a) AS f FROM n", "returns Arrow data, and this is a int", alluvium.DataError),
        ("SELECT other_type(a) AS f FROM n", "'x'|string", alluvium.DataError),
    ],
)
def test_what_functions_raise_is_the_cause(db: alluvium.Database, sql: str, said: str, cause: type[BaseException]) -> None:
    with pytest.raises(alluvium.DataError, match=said) as raised:
        db.sql(sql).fetchall()
    assert isinstance(raised.value.__cause__, cause)
    assert db.sql("SELECT double(1) AS d").fetchall() == [(2,)]


def test_ctrl_c_in_a_function_comes_out_as_it_is(db: alluvium.Database) -> None:
    with pytest.raises(KeyboardInterrupt):
        db.sql("SELECT leaves(a) AS l FROM n").fetchall()
    assert db.sql("SELECT double(1) AS d").fetchall() == [(2,)]


def test_a_row_that_fails_in_a_view_is_an_error_of_that_row(db: alluvium.Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT fails(a) AS f FROM n WHERE a IS NOT NULL")
    db.insert("n", [(12,), (13,), (14,)])
    assert sorted(db.sql("SELECT f FROM v").fetchall())[-2:] == [(12,), (14,)]
    (error,) = db.sql("SELECT * FROM alluvium.errors").fetchall()
    assert "unlucky" in str(error)
    db.sql("DELETE FROM n WHERE a = 13")
    assert db.sql("SELECT * FROM alluvium.errors").fetchall() == []


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT double('x') AS d", "double|'x'"),
        ("SELECT double(1, 2) AS d", "double"),
        ("SELECT double() AS d", "double"),
        ("SELECT triple(1) AS d", "triple"),
        ("CREATE MATERIALIZED VIEW v AS SELECT count_up() AS c FROM n", "count_up"),
    ],
)
def test_calls_that_do_not_match_are_refused(db: alluvium.Database, sql: str, said: str) -> None:
    with pytest.raises(alluvium.DatabaseError, match=said):
        db.sql(sql)


def test_a_volatile_function_is_called_for_each_row(db: alluvium.Database) -> None:
    assert sorted(db.sql("SELECT count_up() AS c FROM n WHERE a < 3").fetchall()) == [(1,), (2,), (3,)]


def test_a_function_uses_another_session_and_not_the_same(db: alluvium.Database) -> None:
    assert sorted(db.sql("SELECT other_session(a) AS s FROM n WHERE a < 3").fetchall()) == [(1,), (2,), (3,)]
    with pytest.raises(alluvium.DataError, match=r"take another one with Database.session\(\)") as raised:
        db.sql("SELECT same_handle(a) AS s FROM n").fetchall()
    assert isinstance(raised.value.__cause__, alluvium.InterfaceError)


@pytest.mark.parametrize(
    "use",
    [
        lambda db, session: db.sql("SELECT 1 AS one").fetchall(),
        lambda db, session: session.sql("SELECT count(*) AS n FROM v").fetchall(),
        lambda db, session: db.insert("n", [(1,)]),
        lambda db, session: db.view("v").get(1),
        lambda db, session: db.wait(db.progress().committed + 1),
        lambda db, session: db.close(),
    ],
    ids=["statement", "query of the view", "insert", "point read", "wait", "close"],
)
def test_a_function_of_a_view_cannot_use_its_database(use: Any) -> None:
    def uses(x: int) -> int:
        use(db, session)
        return x

    with alluvium.memory(workers=2, functions=[alluvium.function(uses)]) as db:
        session = db.session()
        db.sql("CREATE TABLE n (a BIGINT PRIMARY KEY); CREATE MATERIALIZED VIEW v AS SELECT a, uses(a) AS u FROM n")
        db.insert("n", [(1,)])
        ((error,),) = db.sql("SELECT message FROM alluvium.errors").fetchall()
        assert "cannot use the database of the view" in error
        assert db.sql("SELECT * FROM v").fetchall() == []


def test_a_function_of_a_view_may_use_another_database() -> None:
    with alluvium.memory() as other:
        other.sql("CREATE TABLE names (k BIGINT PRIMARY KEY, name VARCHAR); INSERT INTO names VALUES (1, 'one'), (2, 'two')")
        names = other.view("names")

        @alluvium.function
        def name(k: int) -> str | None:
            row = names.get(k)
            return None if row is None else row[1]

        with alluvium.memory(workers=2, functions=[name]) as db:
            db.sql("CREATE TABLE n (a BIGINT); CREATE MATERIALIZED VIEW v AS SELECT name(a) AS name FROM n")
            db.insert("n", [(1,), (2,), (3,)])
            assert sorted(db.sql("SELECT name FROM v").fetchall(), key=str) == sorted([("one",), ("two",), (None,)], key=str)


def test_functions_survive_in_a_state_directory(tmp_path: pathlib.Path) -> None:
    with alluvium.open(tmp_path / "state", functions=[double]) as db:
        db.sql("CREATE TABLE n (a BIGINT); CREATE MATERIALIZED VIEW v AS SELECT double(a) AS d FROM n; INSERT INTO n VALUES (1)")
    with alluvium.open(tmp_path / "state", functions=[double]) as db:
        db.sql("INSERT INTO n VALUES (2)")
        assert sorted(db.sql("SELECT d FROM v").fetchall()) == [(2,), (4,)]
    with pytest.raises(alluvium.Error, match="double"):
        alluvium.open(tmp_path / "state").close()
    with alluvium.open(tmp_path / "state", functions=[double]) as db:
        assert sorted(db.sql("SELECT d FROM v").fetchall()) == [(2,), (4,)]


@pytest.mark.parametrize(
    ("annotation", "sql", "value"),
    [
        (bool, "TRUE", True),
        (float, "1.5e0", 1.5),
        (str, "'é'", "é"),
        (bytes, "CAST('ab' AS BYTEA)", b"ab"),
        (dt.date, "DATE '2020-01-01'", dt.date(2020, 1, 1)),
        (dt.datetime, "TIMESTAMP '2020-01-01 10:00:00.000001'", dt.datetime(2020, 1, 1, 10, 0, 0, 1)),
        (dt.time, "TIME '10:00:00'", dt.time(10)),
        (dt.timedelta, "INTERVAL '1 day'", dt.timedelta(days=1)),
        (decimal.Decimal, "CAST(1.5 AS DECIMAL(38, 9))", decimal.Decimal("1.5")),
        (list[int], "[1, NULL]", [1, None]),
        (list[list[str]], "[['x']]", [["x"]]),
    ],
)
def test_functions_get_and_return_values_of_python(annotation: Any, sql: str, value: Any) -> None:
    seen = []

    def same(x: Any) -> Any:
        seen.append(x)
        return x

    same.__annotations__ = {"x": annotation, "return": annotation}
    with alluvium.memory(functions=[alluvium.function(same)]) as db:
        assert db.sql(f"SELECT same({sql}) AS s").fetchall() == [(value,)]
    assert seen == [value] and type(seen[0]) is type(value)


@pytest.mark.parametrize("options", [{"arguments": ["NOTYPE"]}, {"returns": "INT, INT"}, {"returns": "INT); DROP TABLE t; --"}, {"arguments": [""]}])
def test_types_that_are_none_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(alluvium.Error):
        alluvium.function(lambda x: x, name="f", **{"arguments": ["INT"], "returns": "INT", **options})
