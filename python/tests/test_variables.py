"""SQL reads what the caller's variables hold."""

import pathlib
import threading
from collections.abc import Iterator
from typing import Any

import duckdb
import pandas
import polars
import pyarrow
import pytest

import alluvium

pytestmark = pytest.mark.engine("a server reads no variables of this process")

at_module = polars.DataFrame({"x": [1, 2, 3]})
Spelled = polars.DataFrame({"x": [7]})
no_data = 5
rows_of_dicts = [{"x": 1}]


def reader(*batches: Any, raises: BaseException | None = None) -> pyarrow.RecordBatchReader:
    def each() -> Iterator[pyarrow.RecordBatch]:
        for values in batches:
            yield pyarrow.record_batch({"x": pyarrow.array(values, pyarrow.int64())})
        if raises is not None:
            raise raises

    return pyarrow.RecordBatchReader.from_batches(pyarrow.schema([("x", pyarrow.int64())]), each())


FRAMES: dict[str, Any] = {
    "polars": lambda: polars.DataFrame({"x": [1, None, 3], "s": ["a", "b", None]}),
    "pandas": lambda: pandas.DataFrame({"x": pandas.array([1, None, 3], dtype="Int64"), "s": ["a", "b", None]}),
    "pyarrow table": lambda: pyarrow.table({"x": [1, None, 3], "s": ["a", "b", None]}),
    "pyarrow batch": lambda: pyarrow.record_batch({"x": [1, None, 3], "s": ["a", "b", None]}),
    "pyarrow reader": lambda: pyarrow.table({"x": [1, None, 3], "s": ["a", "b", None]}).to_reader(),
    "duckdb": lambda: duckdb.sql("SELECT * FROM (VALUES (1, 'a'), (NULL, 'b'), (3, NULL)) v(x, s)"),
    "result": lambda: alluvium.memory().sql("SELECT * FROM (VALUES (1, 'a'), (NULL, 'b'), (3, NULL)) v(x, s)"),
    "table": lambda: alluvium.memory().sql("SELECT * FROM (VALUES (1, 'a'), (NULL, 'b'), (3, NULL)) v(x, s)").table(),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_of_all_kinds_are_read(db: alluvium.Database, kind: str) -> None:
    frame = FRAMES[kind]()
    assert db.sql("SELECT x + 1 AS y, s FROM frame WHERE s IS NOT NULL ORDER BY s").fetchall() == [(2, "a"), (None, "b")]


def test_variables_of_the_module_are_read(db: alluvium.Database) -> None:
    assert db.sql("SELECT sum(x) AS s FROM at_module").fetchall() == [(6,)]


def test_variables_of_the_function_come_first(db: alluvium.Database) -> None:
    at_module = polars.DataFrame({"x": [100]})
    assert db.sql("SELECT * FROM at_module").fetchall() == at_module.rows()


def test_variables_of_callers_are_not_seen(db: alluvium.Database) -> None:
    mine = polars.DataFrame({"x": [1]})

    def called() -> alluvium.Result:
        return db.sql("SELECT * FROM mine")

    with pytest.raises(alluvium.ProgrammingError, match='no table or view "mine"'):
        called()
    assert mine.height == 1


def test_variables_of_functions_around_are_seen_if_they_are_used(db: alluvium.Database) -> None:
    around = polars.DataFrame({"x": [1]})

    def inner() -> list[Any]:
        assert around.height == 1
        return db.sql("SELECT * FROM around").fetchall()

    assert inner() == [(1,)]


def test_arguments_and_variables_of_comprehensions_are_seen(db: alluvium.Database) -> None:
    def of(frame: Any) -> list[Any]:
        return db.sql("SELECT * FROM frame").fetchall()

    frames = [polars.DataFrame({"x": [number]}) for number in range(3)]
    assert [of(frame) for frame in frames] == [[(0,)], [(1,)], [(2,)]]
    assert [db.sql("SELECT x FROM one").fetchall() for one in frames if one.height == 1] == [[(0,)], [(1,)], [(2,)]]
    assert (lambda one: db.sql("SELECT x FROM one").fetchall())(frames[2]) == [(2,)]


def test_variables_of_the_calling_thread_are_seen(db: alluvium.Database) -> None:
    found = {}

    def run(number: int) -> None:
        mine = polars.DataFrame({"x": [number] * 1_000})
        for _ in range(5):
            found[number] = db.session().sql("SELECT DISTINCT x FROM mine").fetchall()
        assert mine.height == 1_000

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: [(number,)] for number in range(4)}


@pytest.mark.parametrize("name", ["spelled", "SPELLED", '"Spelled"'])
def test_names_are_those_of_sql(db: alluvium.Database, name: str) -> None:
    assert db.sql(f"SELECT x FROM {name}").fetchall() == [(7,)]


def test_names_with_any_characters_are_quoted(db: alluvium.Database) -> None:
    näme = polars.DataFrame({"größe in cm": [1]})
    assert db.sql('SELECT "größe in cm" FROM "näme"').fetchall() == näme.rows()


def test_a_table_hides_a_variable(db: alluvium.Database) -> None:
    db.sql("CREATE TABLE hidden (a INT); INSERT INTO hidden VALUES (5)")
    hidden = polars.DataFrame({"x": [1]})
    assert db.sql("SELECT * FROM hidden").fetchall() == [(5,)]
    db.sql("DROP TABLE hidden")
    assert db.sql("SELECT * FROM hidden").fetchall() == hidden.rows()


@pytest.mark.parametrize("kind", ["VIEW", "MATERIALIZED VIEW", "TEMPORARY TABLE"])
def test_views_and_temporary_tables_hide_a_variable(db: alluvium.Database, kind: str) -> None:
    hidden = polars.DataFrame({"x": [1]})
    db.sql(f"CREATE TABLE t (a INT); CREATE {kind} hidden AS SELECT * FROM t")
    assert db.sql("SELECT * FROM hidden").columns == ["a"]
    assert hidden.columns == ["x"]


def test_a_query_of_with_hides_a_variable(db: alluvium.Database) -> None:
    assert db.sql("WITH at_module AS (SELECT 5 AS five) SELECT * FROM at_module").fetchall() == [(5,)]
    assert db.sql("WITH w AS (SELECT max(x) AS m FROM at_module) SELECT * FROM w").fetchall() == [(3,)]


def test_variables_are_read_anywhere_in_a_query(db: alluvium.Database) -> None:
    other = pyarrow.table({"x": [2, 3, 4]})
    sql = """
        SELECT a.x FROM at_module a JOIN other b ON a.x = b.x
        WHERE a.x IN (SELECT x FROM other) AND EXISTS (SELECT 1 FROM at_module c WHERE c.x = a.x) AND a.x <= (SELECT max(x) FROM other)
        UNION ALL SELECT x + 10 FROM other ORDER BY 1
    """
    assert db.sql(sql).fetchall() == [(2,), (3,), (12,), (13,), (14,)]
    assert other.num_rows == 3


def test_one_variable_is_joined_with_itself(db: alluvium.Database) -> None:
    assert db.sql("SELECT count(*) AS n FROM at_module a, at_module b").fetchall() == [(9,)]


def test_a_table_is_made_of_a_variable(db: alluvium.Database) -> None:
    assert db.sql("CREATE TABLE t AS SELECT * FROM at_module").rows_changed == 3
    assert db.sql("INSERT INTO t SELECT x + 10 FROM at_module WHERE x > 1").rows_changed == 2
    assert db.sql("SELECT x FROM t ORDER BY x").fetchall() == [(1,), (2,), (3,), (12,), (13,)]


def test_a_transaction_reads_variables(db: alluvium.Database) -> None:
    db.sql("CREATE TABLE t (x BIGINT); BEGIN; INSERT INTO t SELECT x FROM at_module")
    assert db.sql("SELECT count(*) AS n FROM t, at_module").fetchall() == [(9,)]
    db.sql("ROLLBACK")
    assert db.sql("SELECT count(*) AS n FROM t").fetchall() == [(0,)]


CHANGES = [
    "UPDATE t SET v = f.v FROM frame f WHERE t.k = f.k",
    "UPDATE t SET v = frame.v + 1 FROM frame WHERE t.k = frame.k AND frame.v > 100",
    "UPDATE t SET v = (SELECT max(v) FROM frame) WHERE k IN (SELECT k FROM frame)",
    "DELETE FROM t USING frame WHERE t.k = frame.k",
    "DELETE FROM t WHERE k NOT IN (SELECT k FROM frame)",
    "INSERT INTO t SELECT k + 10, v FROM frame",
    "INSERT INTO t SELECT k, v FROM frame ON CONFLICT (k) DO UPDATE SET v = excluded.v + t.v",
    "INSERT OR REPLACE INTO t SELECT k, v FROM frame",
    "INSERT INTO t VALUES (7, (SELECT sum(v) FROM frame))",
    "WITH w AS (SELECT k + 1 AS k FROM frame) DELETE FROM t USING w WHERE t.k = w.k",
]


@pytest.mark.parametrize("sql", CHANGES)
@pytest.mark.parametrize("library", [polars.DataFrame, pandas.DataFrame, pyarrow.table])
def test_statements_that_change_rows_read_variables(db: alluvium.Database, sql: str, library: Any) -> None:
    table = "CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT); INSERT INTO t VALUES (1, 10), (2, 20), (4, 40)"
    frame = library({"k": [1, 2, 3], "v": [100, 200, 300]})
    assert len(frame) == 3
    db.sql(table)
    with duckdb.connect() as other:
        other.execute(table)
        [expected] = other.execute(sql).fetchall()
        changed = db.sql(sql).rows_changed
        if "ON CONFLICT" not in sql:
            assert (changed,) == expected
        assert db.sql("SELECT * FROM t ORDER BY k").fetchall() == other.execute("SELECT * FROM t ORDER BY k").fetchall()


@pytest.mark.parametrize("sql", CHANGES)
def test_changes_by_variables_are_taken_back(db: alluvium.Database, sql: str) -> None:
    db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT); INSERT INTO t VALUES (1, 10), (2, 20)")
    frame = polars.DataFrame({"k": [1, 2, 3], "v": [100, 200, 300]})
    before = db.sql("SELECT * FROM t ORDER BY k").fetchall()
    db.sql("BEGIN")
    assert db.sql(sql).rows_changed != frame.height * 100
    assert "NOT IN" in sql or db.sql("SELECT * FROM t ORDER BY k").fetchall() != before
    db.sql("ROLLBACK")
    assert db.sql("SELECT * FROM t ORDER BY k").fetchall() == before


def test_variables_of_changes_take_parameters(db: alluvium.Database) -> None:
    db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT); INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)")
    for number in range(3):
        frame = polars.DataFrame({"k": [1, 2, 3], "v": [1, 2, 3]})
        assert db.sql("UPDATE t SET v = t.v + frame.v * $1 FROM frame WHERE t.k = frame.k AND t.k <> $2", 100, number + 1).rows_changed == frame.height - 1
    assert db.sql("SELECT v FROM t ORDER BY k").fetchall() == [(210,), (420,), (630,)]


@pytest.mark.parametrize("sql", ["UPDATE t SET v = once.x FROM once WHERE t.k = once.x", "DELETE FROM t USING once WHERE t.k = once.x"])
def test_changes_read_a_reader_once(db: alluvium.Database, sql: str) -> None:
    db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT); INSERT INTO t VALUES (1, 10), (2, 20)")
    once = reader([1], [7])
    assert db.sql(sql).rows_changed == 1
    with pytest.raises(alluvium.DatabaseError, match="read once"):
        db.sql(sql)
    assert once is not None


@pytest.mark.parametrize(
    "sql",
    ["EXPLAIN SELECT * FROM at_module", "CREATE TEMPORARY TABLE u AS SELECT * FROM at_module", "DECLARE c CURSOR WITH HOLD FOR SELECT * FROM at_module"],
)
def test_statements_with_queries_read_variables(db: alluvium.Database, sql: str) -> None:
    db.sql(sql)


def test_a_variable_is_copied_to_a_file(db: alluvium.Database, tmp_path: pathlib.Path) -> None:
    assert db.sql(f"COPY (SELECT x FROM at_module) TO '{tmp_path}/x.csv'").rows_changed == 3
    assert (tmp_path / "x.csv").read_text().split() == ["x", "1", "2", "3"]


@pytest.mark.parametrize("sql", ["INSERT INTO at_module VALUES (1)", "UPDATE at_module SET x = 1", "DELETE FROM at_module"])
def test_variables_are_not_changed(db: alluvium.Database, sql: str) -> None:
    with pytest.raises(alluvium.ProgrammingError, match='"at_module" is not a table: only tables can be changed'):
        db.sql(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE VIEW v AS SELECT * FROM at_module",
        "CREATE MATERIALIZED VIEW v AS SELECT * FROM at_module",
        "DESCRIBE at_module",
        "DROP TABLE at_module",
        "ALTER TABLE at_module ADD COLUMN y INT",
        "CREATE INDEX i ON at_module (x)",
        "SUBSCRIBE at_module",
    ],
)
def test_other_statements_say_what_to_do_about_a_variable(db: alluvium.Database, sql: str) -> None:
    with pytest.raises(alluvium.ProgrammingError, match='CREATE TABLE t AS SELECT [*] FROM "at_module"') as raised:
        db.sql(sql)
    assert raised.value.sqlstate == "42P01"
    assert db.sql('CREATE TABLE t AS SELECT * FROM "at_module"').rows_changed == 3


@pytest.mark.parametrize("name", ["no_data", "rows_of_dicts", "nothing", "len", "pytest", "reader"])
def test_what_has_no_rows_is_no_table(db: alluvium.Database, name: str) -> None:
    with pytest.raises(alluvium.ProgrammingError, match=f'"{name}"') as raised:
        db.sql(f"SELECT * FROM {name}")
    assert raised.value.sqlstate == "42P01"


def test_a_variable_that_changes_is_read_anew(db: alluvium.Database) -> None:
    for number in range(3):
        frame = polars.DataFrame({f"c{number}": [number]})
        result = db.sql("SELECT * FROM frame")
        assert (result.columns, result.fetchall()) == (frame.columns, [(number,)])


def test_rows_are_read_after_the_variable_is_gone(db: alluvium.Database) -> None:
    frame = polars.DataFrame({"x": range(100_000)})
    result = db.sql("SELECT x FROM frame")
    del frame
    assert sum(row[0] for row in result.fetchall()) == sum(range(100_000))


def test_a_reader_is_read_once(db: alluvium.Database) -> None:
    once = reader([1, 2], [], [3])
    assert db.sql("SELECT * FROM once").fetchall() == [(1,), (2,), (3,)]


def test_a_reader_is_not_read_again(db: alluvium.Database) -> None:
    once = reader([1, 2], [3])
    with pytest.raises(alluvium.DatabaseError, match="read once"):
        db.sql("SELECT a.x FROM once a JOIN once b ON a.x = b.x ORDER BY a.x").fetchall()
    once = reader([1, 2], [3])
    assert len(db.sql("SELECT * FROM once").fetchall()) == 3
    with pytest.raises(alluvium.DatabaseError, match="read once") as raised:
        db.sql("SELECT * FROM once").fetchall()
    assert isinstance(raised.value.__cause__, alluvium.InterfaceError)
    db.sql("CREATE TABLE t (x BIGINT)")
    with pytest.raises(alluvium.InterfaceError, match="read once"):
        db.insert("t", once)


def test_a_result_is_not_read_again(db: alluvium.Database) -> None:
    taken = db.sql("SELECT x FROM at_module")
    assert db.sql("SELECT count(*) AS n FROM taken").fetchall() == [(3,)]
    with pytest.raises(alluvium.DatabaseError, match="read once"):
        db.sql("SELECT count(*) AS n FROM taken").fetchall()
    kept = db.sql("SELECT x FROM at_module").table()
    assert db.sql("SELECT count(*) AS n FROM kept a, kept b").fetchall() == [(len(kept) ** 2,)]


def test_a_statement_that_fails_has_read_nothing(db: alluvium.Database) -> None:
    once = reader([1, 2])
    with pytest.raises(alluvium.ProgrammingError, match="nothing"):
        db.sql("SELECT nothing FROM once")
    assert db.sql("SELECT x FROM once").fetchall() == [(1,), (2,)]
    assert once is not None


def test_lazy_frames_are_computed(db: alluvium.Database) -> None:
    lazy = polars.LazyFrame({"x": [1, 2]}).filter(polars.col("x") > 1)
    assert db.sql("SELECT x FROM lazy").fetchall() == [(2,)]
    db.sql("CREATE TABLE t (x BIGINT)")
    assert db.insert("t", lazy) == 1


def test_a_reader_that_raises_fails_the_statement_and_no_other(db: alluvium.Database) -> None:
    db.sql("CREATE TABLE t (x BIGINT)")
    failing = reader([1, 2], raises=ValueError("half way"))
    with pytest.raises(alluvium.DatabaseError, match='(?s)variable "failing" cannot be read.*half way'):
        db.sql("INSERT INTO t SELECT * FROM failing")
    assert failing is not None
    assert db.sql("SELECT * FROM t").fetchall() == []


def test_what_an_object_raises_is_the_cause(db: alluvium.Database) -> None:
    class Broken:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            raise ZeroDivisionError("broken")

    broken = Broken()
    with pytest.raises(alluvium.DatabaseError, match="broken") as raised:
        db.sql("SELECT * FROM broken")
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    assert broken is not None


@pytest.mark.parametrize(
    "frame",
    [pyarrow.table({}), pyarrow.table([[1], [2]], names=["a", "a"]), polars.Series("a", [1]), pyarrow.chunked_array([[1]])],
    ids=["no columns", "two columns of one name", "a series", "an array"],
)
def test_data_that_is_no_table_is_refused(db: alluvium.Database, frame: Any) -> None:
    with pytest.raises(alluvium.ProgrammingError):
        db.sql("SELECT * FROM frame")


def test_columns_whose_names_differ_in_case_are_two(db: alluvium.Database) -> None:
    frame = pyarrow.table([[1], [2]], names=["A", "a"])
    assert db.sql('SELECT "A", "a" FROM frame').fetchall() == [(1, 2)]
    assert frame.num_columns == 2


def test_the_index_of_a_pandas_frame_is_no_column(db: alluvium.Database) -> None:
    frame = pandas.DataFrame({"a": [1, 2, 3, 4, 5]}).query("a in (1, 2, 4)")
    assert list(frame.index) == [0, 1, 3]
    assert db.sql("SELECT * FROM frame").columns == ["a"] == duckdb.sql("SELECT * FROM frame").columns
