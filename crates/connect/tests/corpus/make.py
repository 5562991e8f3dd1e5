#!/usr/bin/env python3
"""Writes one small table with the programs that people write files with, in many ways each.

    python3 -m venv v && v/bin/pip install pyarrow polars pandas duckdb fastparquet && v/bin/python make.py

The files lie beside this script, and `corpus.rs` reads each: all have the rows of TABLE.
"""

import datetime
import decimal
import pathlib
import shutil

import duckdb
import fastparquet
import pandas
import polars
import pyarrow
import pyarrow.csv
import pyarrow.parquet

HERE = pathlib.Path(__file__).parent
DAY = datetime.date
TIME = datetime.datetime

TABLE = {
    "id": [1, 2, 3, 4],
    "b": [True, False, None, True],
    "f": [0.1, -2.5e10, 3.0, None],
    "s": ["a,b;c|d", 'say "hi"', "two\nlines\té", None],
    "d": [DAY(2024, 2, 29), DAY(1969, 12, 31), None, DAY(2024, 12, 1)],
    "t": [TIME(2024, 2, 29, 12, 34, 56, 789000), TIME(1969, 12, 31, 23, 59, 59), None, TIME(2024, 1, 1)],
    "x": [decimal.Decimal("1.25"), decimal.Decimal("-99999.99"), None, decimal.Decimal("0.00")],
}


def write_with_pyarrow(folder, table):
    def write(name, table=table, **options):
        pyarrow.parquet.write_table(table, folder / f"{name}.parquet", **options)

    def with_type(column, kind):
        place = table.schema.get_field_index(column)
        return table.set_column(place, column, table[column].cast(kind))

    for compression in ["none", "snappy", "gzip", "brotli", "zstd", "lz4"]:
        write(compression, compression=compression)
    write("version-1", version="1.0")
    write("pages-2", data_page_version="2.0", compression="zstd")
    write("plain", use_dictionary=False)
    write("two-rows-a-group", row_group_size=2)
    write("int96", use_deprecated_int96_timestamps=True)
    write("nanoseconds", with_type("t", pyarrow.timestamp("ns")))
    write("milliseconds", with_type("t", pyarrow.timestamp("ms")))
    write("date64", with_type("d", pyarrow.date64()))
    write("large-text", with_type("s", pyarrow.large_string()))
    write("text-view", with_type("s", pyarrow.string_view()))
    write("categories", table.set_column(3, "s", table["s"].dictionary_encode()))
    write("float", with_type("f", pyarrow.float64()), use_byte_stream_split=["f"], use_dictionary=False)
    write("delta", use_dictionary=False, column_encoding={"id": "DELTA_BINARY_PACKED", "s": "DELTA_BYTE_ARRAY"})
    write("decimal-256", with_type("x", pyarrow.decimal256(50, 2)))
    write("decimal-as-integer", store_decimal_as_integer=True)
    write("small-integers", with_type("id", pyarrow.uint8()))
    write("a-duration-beside", table.append_column("wait", pyarrow.array([1, 2, None, 4], pyarrow.duration("us"))))
    nested = [{"k": 1, "l": [1, None]}, None, {"k": None, "l": []}, {"k": 2, "l": None}]
    write("nested-beside", table.append_column("n", pyarrow.array(nested)))
    pyarrow.csv.write_csv(table, folder / "usual.csv")
    tabs = pyarrow.csv.WriteOptions(delimiter="\t", quoting_style="all_valid")
    pyarrow.csv.write_csv(table, folder / "all-in-quotes.tsv", tabs)
    pyarrow.parquet.write_to_dataset(table, folder / "folders", partition_cols=["id"], basename_template="part-{i}.parquet")


def write_with_polars(folder, table):
    frame = polars.from_arrow(table)
    for compression in ["uncompressed", "snappy", "gzip", "brotli", "zstd", "lz4"]:
        frame.write_parquet(folder / f"{compression}.parquet", compression=compression)
    frame.write_csv(folder / "usual.csv")
    frame.write_csv(folder / "semicolons.csv", separator=";", quote_style="necessary", null_value="NA")
    frame.write_csv(folder / "bars.psv", separator="|", quote_style="non_numeric")
    frame.write_csv(folder / "mark.csv", include_bom=True, line_terminator="\r\n")
    frame.with_columns(polars.col("x").cast(polars.Float64)).write_ndjson(folder / "lines.ndjson")
    frame.with_columns(polars.col("x").cast(polars.Float64)).write_json(folder / "array.json")
    frame.write_parquet(folder / "folders", partition_by=["d"])


def write_with_pandas(folder, table):
    frame = table.to_pandas(types_mapper=pandas.ArrowDtype)
    frame.to_parquet(folder / "usual.parquet")
    frame.to_parquet(folder / "with-index.parquet", index=True, compression="brotli")
    frame.to_csv(folder / "usual.csv", index=False)
    frame.to_csv(folder / "semicolons.csv", index=False, sep=";", na_rep="NULL")
    frame.to_csv(folder / "escaped.csv", index=False, doublequote=False, escapechar="\\", quotechar='"')
    frame.to_csv(folder / "compressed.csv.gz", index=False, compression={"method": "gzip", "mtime": 0})
    plain = frame.astype({"d": "string", "x": "float64"})
    plain.to_json(folder / "array.json", orient="records", date_format="iso", date_unit="us")
    plain.to_json(folder / "lines.jsonl", orient="records", lines=True, date_format="iso", date_unit="us")
    plain.to_json(folder / "indented.json", orient="records", indent=2, date_format="iso", date_unit="us")


def write_with_duckdb(folder, table):
    connection = duckdb.connect()
    connection.register("t", table)
    for compression in ["uncompressed", "snappy", "gzip", "brotli", "zstd", "lz4_raw"]:
        connection.sql(f"COPY t TO '{folder}/{compression}.parquet' (FORMAT parquet, COMPRESSION {compression})")
    connection.sql(f"COPY t TO '{folder}/version-2.parquet' (FORMAT parquet, PARQUET_VERSION v2)")
    connection.sql(f"COPY t TO '{folder}/usual.csv'")
    connection.sql(f"COPY t TO '{folder}/tabs.tsv' (DELIMITER '\t')")
    connection.sql(f"COPY t TO '{folder}/escaped.csv' (DELIMITER '|', ESCAPE '\\', FORCE_QUOTE *, NULLSTR 'NA')")
    connection.sql(f"COPY t TO '{folder}/compressed.csv.gz'")
    connection.sql(f"COPY t TO '{folder}/lines.ndjson' (FORMAT json)")
    connection.sql(f"COPY t TO '{folder}/array.json' (FORMAT json, ARRAY true)")
    connection.sql(f"COPY t TO '{folder}/folders' (FORMAT csv, PARTITION_BY (d, b))")


def write_with_fastparquet(folder, table):
    frame = table.to_pandas()
    # It writes other units than nanoseconds wrong.
    frame["d"] = pandas.to_datetime(frame["d"]).astype("datetime64[ns]")
    frame["t"] = frame["t"].astype("datetime64[ns]")
    frame["x"] = frame["x"].astype(float)
    frame["b"] = frame["b"].astype("boolean")
    for compression in ["UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD"]:
        fastparquet.write(str(folder / f"{compression.lower()}.parquet"), frame, compression=compression)
    fastparquet.write(str(folder / "int96.parquet"), frame, times="int96")
    fastparquet.write(str(folder / "two-rows-a-group.parquet"), frame, row_group_offsets=2)
    fastparquet.write(str(folder / "folders"), frame, file_scheme="hive", partition_on=["id"])


def main():
    kinds = {"id": pyarrow.int64(), "b": pyarrow.bool_(), "f": pyarrow.float64(), "s": pyarrow.string()}
    kinds |= {"d": pyarrow.date32(), "t": pyarrow.timestamp("us"), "x": pyarrow.decimal128(10, 2)}
    table = pyarrow.table(TABLE, schema=pyarrow.schema(list(kinds.items())))
    writers = {
        "pyarrow": write_with_pyarrow,
        "polars": write_with_polars,
        "pandas": write_with_pandas,
        "duckdb": write_with_duckdb,
        "fastparquet": write_with_fastparquet,
    }
    for name, write in writers.items():
        folder = HERE / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        write(folder, table)


main()
