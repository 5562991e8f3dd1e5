import pandas
import sqlalchemy as sa
from steps import COLUMNS, DATABASE, HOST, PORT, USER, report, same, step

engine = sa.create_engine(f"postgresql+psycopg2://{USER}@{HOST}:{PORT}/{DATABASE}")
with engine.connect():
    report("connect", True, pandas.__version__)


@step("list")
def _():
    same(pandas.io.sql.has_table("sample", engine), True)
    same(pandas.io.sql.has_table("nowhere", engine), False)


@step("reflect")
def _():
    same(list(pandas.read_sql_table("sample", engine).columns), COLUMNS)


@step("read")
def _():
    frame = pandas.read_sql("SELECT * FROM sample ORDER BY id", engine)
    same((frame["id"].tolist(), frame["name"].tolist(), frame["double"][0]), ([1, 2], ["Grüße", ""], 2.5))
    same(str(frame["moment"][0]), "2026-11-28 12:34:56.789000")


@step("write")
def _():
    frame = pandas.DataFrame({"a": range(1000), "b": [f"b {n}" for n in range(1000)], "c": pandas.date_range("2026-01-01", periods=1000)})
    frame.to_sql("written", engine, index=False, if_exists="replace")
    frame.to_sql("written", engine, index=False, if_exists="append", method="multi", chunksize=100)
    frame.to_sql("indexed", engine)
    same(pandas.read_sql("SELECT COUNT(*) AS n FROM written", engine)["n"].tolist(), [2000])


@step("stream")
def _():
    with engine.connect().execution_options(stream_results=True) as connection:
        same(sum(len(part) for part in pandas.read_sql("SELECT * FROM written", connection, chunksize=300)), 2000)


@step("error")
def _():
    try:
        pandas.read_sql("SELECT nothing", engine)
    except (sa.exc.ProgrammingError, pandas.errors.DatabaseError) as error:
        same('no column "nothing"' in str(error), True)
    else:
        raise AssertionError("SELECT nothing works")


engine.dispose()
