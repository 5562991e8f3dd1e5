"""pgcli is a terminal program: what it asks of a server to complete names is asked here by its own executor."""

from pgcli import __version__
from pgcli.pgexecute import PGExecute
from pgspecial.main import PGSpecial
from steps import DATABASE, HOST, PORT, USER, holds, report, same, step

special = PGSpecial()
executor = PGExecute(DATABASE, USER, "", HOST, PORT)
report("connect", True, __version__)


@step("list")
def _():
    holds({name for _, name in executor.tables()}, {"place", "sample"})
    holds({name for _, name in executor.views()}, {"named"})
    holds(executor.schemata(), {"public"})
    holds(executor.databases(), {DATABASE})
    executor.search_path()


@step("reflect")
def _():
    holds({(row[1], row[2]) for row in executor.table_columns()}, {("sample", "id"), ("sample", "list")})
    list(executor.view_columns())
    list(executor.functions())
    list(executor.datatypes())
    list(executor.foreignkeys())
    list(executor.casing())
    same(executor.view_definition("named") is None, False)


def answers(statement):
    return list(executor.run(statement, pgspecial=special))


@step("read")
def _():
    _, rows, headers, *_ = answers("SELECT id, name FROM sample ORDER BY id")[0]
    same((headers, list(rows)), (["id", "name"], [(1, "Grüße"), (2, "")]))
    answers("\\d sample")
    answers("\\dt")


@step("write")
def _():
    answers("BEGIN; INSERT INTO place VALUES (1, 'gone'); ROLLBACK; INSERT INTO place VALUES (2, 'kept')")
    _, rows, *_ = answers("SELECT id FROM place")[0]
    same(list(rows), [(2,)])


@step("error")
def _():
    try:
        executor.execute_normal_sql("SELECT nothing")
    except Exception as error:
        same(error.sqlstate, "42703")
    else:
        raise AssertionError("SELECT nothing works")
