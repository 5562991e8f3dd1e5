import psycopg
from sample import FIRST, ROWS, plain
from steps import holds, report, same, step

connection = psycopg.connect(autocommit=True)
report("connect", True, psycopg.__version__)
COLUMNS = "id, flag, small, whole, single, double, amount, name, bytes, day, at, moment, instant, list"


@step("list")
def _():
    rows = connection.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = %s", ("public",))
    holds({name for (name,) in rows}, {"place", "sample", "named"})


@step("reflect")
def _():
    cursor = connection.execute("SELECT * FROM sample LIMIT 0")
    same([(column.name, column.type_display) for column in cursor.description][:3], [("id", "int8"), ("flag", "bool"), ("small", "int2")])
    rows = connection.execute(
        "SELECT column_name, is_nullable FROM information_schema.columns WHERE table_name = %s ORDER BY ordinal_position", ("sample",)
    ).fetchall()
    same(rows[:2], [("id", "NO"), ("flag", "YES")])


@step("read")
def _():
    for binary in (False, True):
        rows = connection.execute("SELECT * FROM sample ORDER BY id", binary=binary).fetchall()
        same([plain(row) for row in rows], ROWS)


@step("write")
def _():
    places = "(" + ", ".join(["%s"] * 14) + ")"
    for number, form in ((10, "%s"), (11, "%b")):
        row = (number, *FIRST[1:])
        connection.execute(f"INSERT INTO sample ({COLUMNS}) VALUES {places.replace('%s', form)}", row)
        found = connection.execute("SELECT * FROM sample WHERE id = %s", (number,)).fetchone()
        same(plain(found), row)
    with connection.transaction():
        connection.execute("DELETE FROM sample WHERE id >= %s", (10,))
        try:
            with connection.transaction():
                connection.execute("INSERT INTO place VALUES (%s, %s)", (1, "inside"))
                raise psycopg.Rollback
        except psycopg.Rollback:
            pass
    with connection.pipeline():
        connection.execute("INSERT INTO place VALUES (%s, %s)", (2, "pipeline"))
        connection.execute("INSERT INTO place VALUES (%s, %s)", (3, "pipeline"))
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO place VALUES (%s, %s)", [(4, "many"), (5, "many")])
        same(cursor.rowcount, 2)
    same([number for (number,) in connection.execute("SELECT id FROM place ORDER BY id", prepare=True)], [2, 3, 4, 5])


@step("copy")
def _():
    with connection.cursor() as cursor:
        with cursor.copy("COPY place (id, name) FROM STDIN") as copy:
            for number in range(100, 1100):
                copy.write_row((number, f"text\t{number}"))
        with cursor.copy("COPY place (id, name) FROM STDIN (FORMAT binary)") as copy:
            copy.set_types(["int8", "text"])
            copy.write_row((2000, "binary"))
        with cursor.copy("COPY (SELECT id, name FROM place WHERE id >= 100 ORDER BY id) TO STDOUT (FORMAT binary)") as copy:
            copy.set_types(["int8", "text"])
            rows = list(copy.rows())
        same((len(rows), rows[0], rows[-1]), (1001, (100, "text\t100"), (2000, "binary")))


@step("stream")
def _():
    with connection.transaction(), connection.cursor("named") as cursor:
        cursor.itersize = 100
        cursor.execute("SELECT id FROM place WHERE id >= 100 ORDER BY id")
        same(sum(1 for _ in cursor), 1001)
    changes = []
    with psycopg.connect(autocommit=True) as other, other.cursor() as cursor:
        for row in cursor.stream("SUBSCRIBE total"):
            changes.append(row[1:])
            if len(changes) == 1:
                connection.execute("INSERT INTO place VALUES (3000, 'changed')")
            if len(changes) == 3:
                other.cancel()
                break
    same(sorted(change[0] for change in changes), [-1, 1, 1])


@step("error")
def _():
    for statement, state in (("SELECT nothing", "42703"), ("SELECT 1 / 0", "22012"), ("SELECT * FROM nowhere", "42P01")):
        try:
            connection.execute(statement)
        except psycopg.Error as error:
            same(error.sqlstate, state)
        else:
            raise AssertionError(f"{statement} works")
    try:
        connection.execute("INSERT INTO sample (id, name) VALUES (1, 'again')")
    except psycopg.errors.UniqueViolation:
        pass
    else:
        raise AssertionError("a key is there twice")


connection.close()
