import psycopg2
import psycopg2.extensions
import psycopg2.extras
from io import StringIO
from sample import FIRST, ROWS, plain
from steps import holds, report, same, step

connection = psycopg2.connect("")
report("connect", True, psycopg2.__version__)


@step("list")
def _():
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = %s", ("public",))
        holds({name for (name,) in cursor}, {"place", "sample", "named"})


@step("reflect")
def _():
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT * FROM sample LIMIT 0")
        same([(column.name, column.type_code) for column in cursor.description][:3], [("id", 20), ("flag", 16), ("small", 21)])
        cursor.execute(
            "SELECT column_name FROM information_schema.key_column_usage WHERE table_name = 'sample' AND constraint_name = 'sample_pkey'"
        )
        same(cursor.fetchall(), [("id",)])


@step("read")
def _():
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT * FROM sample ORDER BY id")
        same([plain(row) for row in cursor], ROWS)


@step("write")
def _():
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO place VALUES (1, 'gone')")
        connection.rollback()
        cursor.execute("SAVEPOINT a")
        cursor.execute("INSERT INTO place VALUES (1, 'gone')")
        cursor.execute("ROLLBACK TO SAVEPOINT a")
        psycopg2.extras.execute_values(cursor, "INSERT INTO place VALUES %s", [(n, f"place {n}") for n in range(100)])
        connection.commit()
        cursor.execute("SELECT COUNT(*), MIN(name) FROM place")
        same(cursor.fetchone(), (100, "place 0"))
        connection.commit()
    row = (10, *FIRST[1:])
    with connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO sample VALUES (" + ", ".join(["%s"] * 14) + ")", row)
        cursor.execute("SELECT * FROM sample WHERE id = 10")
        same(plain(cursor.fetchone()), row)


@step("copy")
def _():
    with connection, connection.cursor() as cursor:
        cursor.copy_expert("COPY place FROM STDIN (FORMAT csv)", StringIO('200,"a, b"\n201,c\n'))
        out = StringIO()
        cursor.copy_expert("COPY (SELECT * FROM place WHERE id >= 200 ORDER BY id) TO STDOUT (FORMAT csv, HEADER)", out)
        same(out.getvalue(), 'id,name\n200,"a, b"\n201,c\n')
        cursor.copy_from(StringIO("300\td\n"), "place", columns=("id", "name"))


@step("stream")
def _():
    with connection, connection.cursor("named") as cursor:
        cursor.itersize = 10
        cursor.execute("SELECT id FROM place ORDER BY id")
        same(len(list(cursor)), 103)


@step("error")
def _():
    for statement, state in (("SELECT nothing", "42703"), ("SELECT 1 / 0", "22012"), ("INSERT INTO sample (id, name) VALUES (1, 'a')", "23505")):
        try:
            with connection, connection.cursor() as cursor:
                cursor.execute(statement)
        except psycopg2.Error as error:
            same(error.pgcode, state)
        else:
            raise AssertionError(f"{statement} works")


connection.close()
