import sqlalchemy as sa
from sample import ROWS, plain
from steps import DATABASE, HOST, PORT, USER, holds, report, same, step

engine = sa.create_engine(f"postgresql+psycopg2://{USER}@{HOST}:{PORT}/{DATABASE}")
with engine.connect():
    report("connect", True, sa.__version__)


@step("list")
def _():
    inspector = sa.inspect(engine)
    same(set(inspector.get_table_names()), {"place", "sample"})
    same(inspector.get_view_names(), ["named"])
    same(inspector.get_materialized_view_names(), ["total"])
    holds(inspector.get_schema_names(), {"public"})


@step("reflect")
def _():
    metadata = sa.MetaData()
    metadata.reflect(engine, views=True)
    sample = metadata.tables["sample"]
    same([column.name for column in sample.primary_key], ["id"])
    same([type(sample.c[name].type).__name__ for name in ("id", "amount", "list")], ["BIGINT", "NUMERIC", "ARRAY"])
    same([index.name for index in sample.indexes], ["sample_day"])
    same(sample.c.name.nullable, False)
    inspector = sa.inspect(engine)
    inspector.get_view_definition("named")
    inspector.get_foreign_keys("sample")
    inspector.get_unique_constraints("sample")
    inspector.get_check_constraints("sample")
    inspector.get_table_comment("sample")
    inspector.get_enums()


@step("read")
def _():
    sample = sa.Table("sample", sa.MetaData(), sa.Column("id", sa.BigInteger, primary_key=True), sa.Column("name", sa.String))
    with engine.connect() as connection:
        same([plain(row) for row in connection.execute(sa.text("SELECT * FROM sample ORDER BY id"))], ROWS)
        same(connection.execute(sa.select(sample).where(sample.c.id == 1)).all(), [(1, "Grüße")])


@step("write")
def _():
    metadata = sa.MetaData()
    made = sa.Table(
        "made",
        metadata,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(40), nullable=False),
        sa.Column("amount", sa.Numeric(10, 2)),
        sa.Column("moment", sa.DateTime),
    )
    metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(made.insert(), [{"id": n, "name": f"name {n}", "amount": n} for n in range(100)])
        with connection.begin_nested() as savepoint:
            connection.execute(made.delete())
            savepoint.rollback()
        connection.execute(made.update().where(made.c.id == 1).values(name="changed"))
    with engine.connect() as connection:
        same(connection.scalar(sa.select(sa.func.count()).select_from(made)), 100)
        connection.execute(made.delete())
        same(connection.scalar(made.insert().values(name="by itself").returning(made.c.id)), 1)
        connection.rollback()
    metadata.drop_all(engine)


@step("stream")
def _():
    with engine.connect() as connection:
        rows = connection.execution_options(stream_results=True, max_row_buffer=10).execute(sa.text("SELECT id FROM sample"))
        same(len(list(rows)), 2)


@step("error")
def _():
    with engine.connect() as connection:
        try:
            connection.execute(sa.text("SELECT nothing"))
        except sa.exc.ProgrammingError as error:
            same(error.orig.pgcode, "42703")
        else:
            raise AssertionError("SELECT nothing works")
        connection.rollback()
        try:
            connection.execute(sa.text("INSERT INTO sample (id, name) VALUES (1, 'a')"))
        except sa.exc.IntegrityError as error:
            same(error.orig.pgcode, "23505")
        else:
            raise AssertionError("a key is there twice")


engine.dispose()
