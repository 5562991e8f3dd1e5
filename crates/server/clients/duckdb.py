import duckdb
import duckdb_extensions
from sample import FIRST
from steps import COLUMNS, DATABASE, HOST, PORT, USER, holds, report, same, step

connection = duckdb.connect()
duckdb_extensions.import_extension("postgres_scanner", con=connection)
connection.execute("LOAD postgres_scanner")
connection.execute("SET TimeZone = 'UTC'")
# Tables have no pages that threads could divide among them.
connection.execute("SET pg_use_ctid_scan = false")
connection.execute(f"ATTACH 'host={HOST} port={PORT} user={USER} dbname={DATABASE}' AS pg (TYPE postgres)")
report("connect", True, duckdb.__version__)


@step("list")
def _():
    rows = connection.execute("SELECT table_name FROM duckdb_tables() WHERE database_name = 'pg'").fetchall()
    holds({name for (name,) in rows}, {"place", "sample"})


@step("reflect")
def _():
    same([row[0] for row in connection.execute("DESCRIBE pg.sample").fetchall()], COLUMNS)


@step("read")
def _():
    columns = [f'"{name}"' for name in COLUMNS if name != "instant"]
    row = connection.execute(f"SELECT {', '.join(columns)} FROM pg.sample WHERE id = 1").fetchone()
    same(row, tuple(value for name, value in zip(COLUMNS, FIRST) if name != "instant"))
    same(connection.execute("SELECT epoch(instant) FROM pg.sample WHERE id = 1").fetchone(), (1795869296.789,))
    same(connection.execute("SELECT name FROM pg.named").fetchall(), [("Grüße",)])
    same(connection.execute("SELECT * FROM postgres_query('pg', 'SELECT 1 AS a')").fetchall(), [(1,)])


@step("write")
def _():
    connection.execute("BEGIN")
    connection.execute("INSERT INTO pg.place VALUES (1, 'gone')")
    connection.execute("ROLLBACK")
    connection.execute("INSERT INTO pg.place SELECT range, 'place ' || range FROM range(1000)")
    # Its own UPDATE and DELETE find rows by ctid, where they lie in Postgres's files: these are sent as they are.
    connection.execute("CALL postgres_execute('pg', 'UPDATE place SET name = ''changed'' WHERE id = 1')")
    connection.execute("CALL postgres_execute('pg', 'DELETE FROM place WHERE id >= 500')")
    same(connection.execute("SELECT COUNT(*), MIN(name) FROM pg.place").fetchone(), (500, "changed"))


@step("copy")
def _():
    connection.execute("CREATE TABLE pg.made AS SELECT range AS a, range::VARCHAR AS b FROM range(1000)")
    same(connection.execute("SELECT SUM(a) FROM pg.made").fetchone(), (499500,))
    connection.execute("DROP TABLE pg.made")


@step("error")
def _():
    try:
        connection.execute("SELECT * FROM postgres_query('pg', 'SELECT nothing')").fetchall()
    except duckdb.Error as error:
        same('no column "nothing"' in str(error), True)
    else:
        raise AssertionError("SELECT nothing works")


connection.close()
