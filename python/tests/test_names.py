"""Names of columns of frames, which may have capitals."""

import pathlib
from typing import Any

import duckdb
import hypothesis
import hypothesis.strategies as some
import pandas
import polars
import pyarrow
import pytest

import alluvium

pytestmark = pytest.mark.engine("a server reads no variables of this process")

people = pandas.DataFrame({"Name": ["Ann", "Bob", "Eve"], "Age": [30, 40, 50], "city of Birth": ["Rome", None, "Oslo"]})
visits = pyarrow.table({"NAME": ["Ann", "Ann", "Eve"], "Day": [1, 2, 3]})


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT name FROM people",
        "SELECT NAME, Age FROM people",
        'SELECT "name", "AGE" FROM people',
        "SELECT people.name FROM people",
        "SELECT p.name, P.AGE FROM people p WHERE p.age > 30 AND name <> 'Bob'",
        "SELECT * FROM people",
        "SELECT * EXCLUDE (age) FROM people",
        "SELECT * EXCLUDE age FROM people",
        "SELECT name AS name, age AS age FROM people WHERE age > 30",
        "SELECT name AS name, sum(age) AS age FROM people GROUP BY name ORDER BY name",
        "SELECT name AS name FROM people UNION ALL SELECT name FROM visits",
        "SELECT age FROM (SELECT age + 1 AS age FROM people) x WHERE age > 31",
        "WITH w AS (SELECT name AS name, age FROM people) SELECT name, age FROM w ORDER BY name",
        'SELECT "City Of birth" FROM people',
        "SELECT sum(age) AS s, max(name) AS m FROM people",
        "SELECT age % 20 AS r, count(*) AS n FROM people GROUP BY r ORDER BY r",
        "SELECT name FROM people GROUP BY name HAVING max(age) > 30 ORDER BY name",
        "SELECT age, name FROM people ORDER BY age DESC, NAME LIMIT 2",
        "SELECT name AS age FROM people ORDER BY age",
        "SELECT age + 1 AS name FROM people ORDER BY name",
        "SELECT x.name FROM (SELECT name, age FROM people) x WHERE x.age > 30",
        "WITH w AS (SELECT name, age + 1 AS older FROM people) SELECT name, older FROM w WHERE name <> 'Bob'",
        "WITH w(n, a) AS (SELECT name, age FROM people) SELECT n FROM w WHERE a > 30",
        "SELECT name FROM people WHERE age = (SELECT max(age) FROM people)",
        "SELECT name FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.name = p.name)",
        "SELECT p.name, v.day FROM people p JOIN visits v ON p.name = v.name",
        "SELECT a.age FROM people a JOIN people b USING (name) ORDER BY a.age",
        "SELECT name, rank() OVER (PARTITION BY age % 20 ORDER BY age) AS r FROM people ORDER BY name",
        "SELECT CASE WHEN age > 30 THEN name ELSE 'x' END AS c FROM people",
        "SELECT name FROM people UNION ALL SELECT name FROM visits",
        "SELECT list_transform([age], lambda name: name + 1) AS l FROM people",
    ],
)
def test_names_are_found_in_any_case(db: alluvium.Database, sql: str) -> None:
    expected = duckdb.sql(sql)
    found = db.sql(sql)
    assert found.columns == expected.columns
    assert sorted(map(repr, found.fetchall())) == sorted(map(repr, expected.fetchall()))


@pytest.mark.parametrize("sql", ["INSERT INTO t SELECT name, age FROM people", "UPDATE t SET age = people.age FROM people WHERE people.name = t.name", "DELETE FROM t USING people p WHERE p.name = t.name AND p.AGE > 30"])
def test_changes_find_names_in_any_case(db: alluvium.Database, sql: str) -> None:
    table = "CREATE TABLE t (name VARCHAR, age BIGINT); INSERT INTO t VALUES ('Ann', 1), ('Bob', 2), ('Zoe', 3)"
    db.sql(table)
    with duckdb.connect() as other:
        other.execute(table)
        other.execute(sql)
        db.sql(sql)
        assert db.sql("SELECT * FROM t ORDER BY name, age").fetchall() == other.execute("SELECT * FROM t ORDER BY name, age").fetchall()


def test_a_column_of_this_spelling_comes_first(db: alluvium.Database) -> None:
    frame = pyarrow.table([[1], [2]], names=["A", "a"])
    assert db.sql("SELECT a, A FROM frame").fetchall() == [(2, 2)]
    assert db.sql('SELECT "A", "a" FROM frame').fetchall() == [(1, 2)]
    assert db.sql("SELECT frame.a FROM frame").fetchall() == [(2,)]
    assert frame.num_columns == 2


def test_columns_of_tables_come_first(db: alluvium.Database) -> None:
    db.sql("CREATE TABLE t (name VARCHAR); INSERT INTO t VALUES ('Zoe')")
    assert db.sql("SELECT DISTINCT name FROM t, people").fetchall() == [("Zoe",)]
    assert db.sql("SELECT max(people.name) AS m, max(t.name) AS n FROM t, people").fetchall() == [("Eve", "Zoe")]
    assert db.sql("SELECT count(*) FROM t JOIN people ON t.name = people.name").fetchall() == [(0,)]


def test_a_name_of_several_columns_is_ambiguous(db: alluvium.Database) -> None:
    frame = pyarrow.table([[1], [2], [3]], names=["Ab", "AB", "c"])
    with pytest.raises(alluvium.ProgrammingError, match='column "ab" may be "AB" or "Ab": write the one that is meant in quotes') as raised:
        db.sql("SELECT c,\n  ab FROM frame")
    assert (raised.value.sqlstate, raised.value.line, raised.value.column) == ("42702", 2, 3)
    assert db.sql('SELECT "AB", "Ab" FROM frame').fetchall() == [(2, 1)]
    assert frame.num_columns == 3


def test_a_column_of_two_frames_is_ambiguous(db: alluvium.Database) -> None:
    with pytest.raises(alluvium.ProgrammingError, match="ambiguous"):
        db.sql("SELECT age FROM people a, people b")


def test_unknown_names_are_told_with_what_is_near(db: alluvium.Database) -> None:
    with pytest.raises(alluvium.ProgrammingError, match='no column "nam" in "people"; did you mean "Name"'):
        db.sql("SELECT nam FROM people")


def test_columns_of_files_are_found_in_any_case(db: alluvium.Database, tmp_path: pathlib.Path) -> None:
    (tmp_path / "people.csv").write_text("Name,Age\nAnn,30\nBob,40\n")
    assert db.sql(f"SELECT name FROM '{tmp_path}/people.csv' WHERE AGE > 30").fetchall() == [("Bob",)]


def test_tables_made_of_frames_keep_their_names(db: alluvium.Database) -> None:
    db.sql("CREATE TABLE t AS SELECT name, age FROM people")
    assert db.sql("SELECT * FROM t").columns == ["Name", "Age"]
    assert db.insert("t", polars.DataFrame({"name": ["Zoe"], "AGE": [1]})) == 1


NAMES = some.sampled_from(["a", "A", "b", "B", "Ab", "aB", "ab", "c"])


@hypothesis.given(some.lists(NAMES, min_size=1, max_size=4, unique_by=str.lower), NAMES, some.booleans())
def test_names_without_doubt_are_those_of_duckdb(columns: list[str], name: str, is_quoted: bool) -> None:
    frame = pyarrow.table([[number] for number, _ in enumerate(columns)], names=columns)
    written = f'"{name}"' if is_quoted else name
    sql = f"SELECT {written} FROM frame WHERE frame.{written} >= 0"

    def answer(run: Any, frame: pyarrow.Table) -> Any:
        assert frame.num_rows == 1
        try:
            result = run(sql)
        except (alluvium.ProgrammingError, duckdb.BinderException):
            return None
        return result.columns, result.fetchall()

    with alluvium.memory() as db:
        assert answer(db.sql, frame) == answer(duckdb.sql, frame)
