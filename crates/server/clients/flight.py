import os
import sys

import adbc_driver_flightsql
import adbc_driver_flightsql.dbapi as dbapi
import pyarrow
from steps import COLUMNS, RELATIONS, holds, report, same, step

ADDRESS = os.environ["FLIGHT"]

try:
    connection = dbapi.connect(f"grpc://{ADDRESS}", autocommit=True)
    report("connect", True, adbc_driver_flightsql.__version__)
except dbapi.Error as error:
    report("connect", False, error)
    sys.exit()


@step("list")
def _():
    objects = connection.adbc_get_objects(depth="all").read_all().to_pylist()
    tables = {table["table_name"] for catalog in objects for schema in catalog["catalog_db_schemas"] for table in schema["db_schema_tables"]}
    holds(tables, RELATIONS | {"named", "total"})
    holds(connection.adbc_get_table_types(), {"TABLE", "VIEW", "MATERIALIZED VIEW"})
    same(connection.adbc_get_info()["vendor_name"], "Alluvium")


@step("reflect")
def _():
    schema = connection.adbc_get_table_schema("sample")
    same(schema.names, COLUMNS)
    same([str(schema.field(name).type) for name in ("id", "flag", "day", "amount")], ["int64", "bool", "date32[day]", "decimal128(12, 2)"])


@step("read")
def _():
    from sample import ROWS

    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM sample ORDER BY id")
        rows = cursor.fetch_arrow_table().to_pylist()
        same([tuple(row[name] for name in COLUMNS) for row in rows], ROWS)
        cursor.execute("SELECT name FROM sample WHERE id = $1", (1,))
        same(cursor.fetchone(), ("Grüße",))


@step("write")
def _():
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO place VALUES ($1, $2)", (0, "one"))
        cursor.executemany("INSERT INTO place VALUES ($1, $2)", [(n, f"place {n}") for n in range(1, 10)])
        cursor.execute("SELECT COUNT(*) FROM place")
        same(cursor.fetchone(), (10,))
        cursor.execute("CREATE TABLE made (a BIGINT)")
        cursor.execute("SELECT COUNT(*) FROM made")
        same(cursor.fetchone(), (0,))
    with dbapi.connect(f"grpc://{ADDRESS}") as other, other.cursor() as cursor:
        cursor.execute("INSERT INTO place VALUES (100, 'gone')")
        other.rollback()
        cursor.execute("INSERT INTO place VALUES (101, 'stays')")
        other.commit()
        cursor.execute("SELECT id FROM place WHERE id >= 100")
        same(cursor.fetchall(), [(101,)])
        other.rollback()


@step("copy")
def _():
    table = pyarrow.table({"a": list(range(100_000)), "b": pyarrow.array([f"b {n % 10}" for n in range(100_000)]).dictionary_encode()})
    with connection.cursor() as cursor:
        same(cursor.adbc_ingest("copied", table, mode="create"), 100_000)
        same(cursor.adbc_ingest("copied", table, mode="append"), 100_000)
        same(cursor.adbc_ingest("copied", table, mode="replace"), 100_000)
        same(cursor.adbc_ingest("copied", table, mode="create_append"), 100_000)
        cursor.execute("SELECT COUNT(*), COUNT(DISTINCT b) FROM copied")
        same(cursor.fetchone(), (200_000, 10))


@step("stream")
def _():
    with connection.cursor() as cursor:
        cursor.execute("SELECT i FROM generate_series(1, 1000000) AS s (i)")
        same(sum(batch.num_rows for batch in cursor.fetch_record_batch()), 1_000_000)


@step("error")
def _():
    with connection.cursor() as cursor:
        try:
            cursor.execute("SELECT * FROM nothing")
            cursor.fetchall()
        except dbapi.Error as error:
            holds([str(error).count("nothing") > 0], [True])
        else:
            raise AssertionError("no error")
        cursor.execute("SELECT 1")
        same(cursor.fetchone(), (1,))


connection.close()
