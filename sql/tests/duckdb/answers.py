"""Fills in DuckDB's answers: python3 sql/tests/duckdb/answers.py [functions.txt] (needs pip install duckdb pytz; last run with 2.0.1).

A line of answers.txt, or of functions.txt, which calls each of DuckDB's functions once, is a mark, an expression, and its
value in each row of table.sql, or for aggregates in each group, with tabs in between. A line of an expression alone is a new one. Expressions that DuckDB does not know are dropped.
"""

import pathlib
import sys

import duckdb

HERE = pathlib.Path(__file__).parent
LIST = HERE / (sys.argv[1] if len(sys.argv) > 1 else "answers.txt")

connection = duckdb.connect()
connection.execute("SET TimeZone = 'UTC'")
for statement in (HERE / "table.sql").read_text().split(";"):
    if statement.strip():
        connection.execute(statement)

INTERVAL = (
    "((extract(year FROM x) * 12 + extract(month FROM x)) || ' months ' || extract(day FROM x) || ' days ' || "
    "(extract(hour FROM x) * 3600000000 + extract(minute FROM x) * 60000000 + extract(microsecond FROM x)) || ' us')"
)
# Sections of aggregates are grouped, and those of windows have their own ORDER BY.
TEXT = {"INTERVAL": INTERVAL, "BLOB": "lower(hex(x))"}


def answers(section, expression):
    of = "g" if section == "aggregates" else "id"
    group = "GROUP BY g" if section == "aggregates" else ""
    values = f"(SELECT {of} AS o, {expression} AS x FROM t {group})"
    (kind,) = connection.execute(f"SELECT typeof(x) FROM {values} LIMIT 1").fetchone()
    text = TEXT.get(kind, "CAST(x AS VARCHAR)")
    rows = connection.execute(f"SELECT {text} FROM {values} ORDER BY o").fetchall()
    return ["NULL" if row[0] is None else "'" + row[0].replace("\n", "\\n") + "'" for row in rows]


lines, section = [], None
for line in LIST.read_text().splitlines():
    if line.startswith("# "):
        section = line[2:]
        lines.append(line)
        continue
    mark, expression, *_ = line.split("\t") if "\t" in line else ("=", line)
    try:
        lines.append("\t".join([mark, expression, *answers(section, expression)]))
    except duckdb.Error as error:
        print(f"dropped: {expression}: {str(error).splitlines()[0]}", file=sys.stderr)
LIST.write_text("\n".join(lines) + "\n")
