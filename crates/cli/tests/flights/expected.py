#!/usr/bin/env python3
"""Writes the contents of the views of views.sql, computed by DuckDB: expected/VIEW.csv, or VIEW.hash for large ones.

    pip install duckdb
    python3 expected.py FOLDER_OF_FLIGHTS

A .csv has a header line and the rows in order of their text; NULL is an empty field. A .hash has the number of rows,
and the sum, in 64 bits, of the rows' FNV-1a hashes, a row being its fields with the byte 0x1F between them.
"""

import csv
import datetime
import io
import pathlib
import re
import sys

import duckdb

HERE = pathlib.Path(__file__).resolve().parent
WIDE = {"late_flights", "flights_with_all", "planes_every_day"}


def main():
    data = pathlib.Path(sys.argv[1])
    text = (HERE / "views.sql").read_text()
    text = re.sub(r"--.*", "", text)
    db = duckdb.connect()
    db.execute("SET TimeZone = 'UTC'")
    views = []
    for statement in text.split(";"):
        statement = statement.strip()
        if table := re.match(r"CREATE TABLE (\w+)", statement):
            db.execute(statement[: statement.rindex(") WITH (")] + ")")
            name, path = table[1], data / f"{table[1]}.csv.gz"
            db.execute(f"INSERT INTO {name} FROM read_csv('{path}', header = true, nullstr = 'NA', all_varchar = true)")
        elif view := re.match(r"CREATE (MATERIALIZED|LOCAL) VIEW (\w+)", statement):
            db.execute(statement.replace(f"{view[1]} ", "", 1))
            if view[1] == "MATERIALIZED":
                views.append(view[2])
    for old in (HERE / "expected").iterdir():
        old.unlink()
    for view in views:
        answer = db.execute(f"SELECT * FROM {view}")
        header = line(column[0] for column in answer.description)
        rows = [list(map(field, row)) for row in answer.fetchall()]
        if view in WIDE:
            total = sum(fnv("\x1f".join(row).encode()) for row in rows) % 2**64
            (HERE / "expected" / f"{view}.hash").write_text(f"{len(rows)} {total:016x}\n")
        else:
            (HERE / "expected" / f"{view}.csv").write_text("\n".join([header, *sorted(map(line, rows)), ""]))
    print(len(views), "views by DuckDB", duckdb.__version__)


def field(value):
    """A value as Alluvium writes it in CSV."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, datetime.date):
        return value.isoformat()
    return repr(value) if isinstance(value, float) else str(value)


def line(fields):
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(list(fields))
    return out.getvalue()


def fnv(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


main()
