import sys

import adbc_driver_postgresql
import adbc_driver_postgresql.dbapi as dbapi
import pyarrow
from sample import FIRST
from steps import COLUMNS, DATABASE, HOST, PORT, USER, holds, report, same, step

try:
    connection = dbapi.connect(f"postgresql://{USER}@{HOST}:{PORT}/{DATABASE}")
    report("connect", True, adbc_driver_postgresql.__version__)
except dbapi.Error as error:
    report("connect", False, error)
    sys.exit()


@step("list")
def _():
    objects = connection.adbc_get_objects(depth="all").read_all().to_pylist()
    tables = {table["table_name"] for catalog in objects for schema in catalog["catalog_db_schemas"] for table in schema["db_schema_tables"]}
    holds(tables, {"place", "sample"})
    holds(connection.adbc_get_table_types(), {"table", "view"})
    try:
        same(connection.adbc_get_info()["vendor_name"], "PostgreSQL")
    finally:
        connection.rollback()


@step("reflect")
def _():
    schema = connection.adbc_get_table_schema("sample")
    same(schema.names, COLUMNS)
    same([str(schema.field(name).type) for name in ("id", "flag", "day", "list")], ["int64", "bool", "date32[day]", "list<item: int32>"])


@step("read")
def _():
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM sample WHERE id = 1")
        row = cursor.fetch_arrow_table().to_pylist()[0]
        found = [row[name] for name in COLUMNS if name not in ("amount",)]
        expected = [value for name, value in zip(COLUMNS, FIRST) if name not in ("amount",)]
        same([str(value) for value in found], [str(value) for value in expected])
    connection.commit()


@step("write")
def _():
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO place VALUES ($1, $2)", (1, "gone"))
        connection.rollback()
        cursor.executemany("INSERT INTO place VALUES ($1, $2)", [(n, f"place {n}") for n in range(10)])
        cursor.execute("SELECT COUNT(*) FROM place")
        same(cursor.fetchone(), (10,))
    connection.commit()


@step("copy")
def _():
    table = pyarrow.table({"a": list(range(1000)), "b": [f"b {n}" for n in range(1000)]})
    try:
        with connection.cursor() as cursor:
            cursor.adbc_ingest("ingested", table, mode="create")
            cursor.adbc_ingest("ingested", table, mode="append")
            cursor.execute("SELECT COUNT(*) FROM ingested")
            same(cursor.fetchone(), (2000,))
        connection.commit()
    finally:
        connection.rollback()


@step("stream")
def _():
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM place")
        same(sum(batch.num_rows for batch in cursor.fetch_record_batch()), 10)
    connection.commit()


@step("error")
def _():
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT nothing")
            cursor.fetchall()
    except dbapi.Error as error:
        same(error.sqlstate, "42703")
    else:
        raise AssertionError("SELECT nothing works")
    connection.rollback()


connection.close()
