import polars
from steps import COLUMNS, DATABASE, HOST, PORT, USER, report, same, step

URI = f"postgresql://{USER}@{HOST}:{PORT}/{DATABASE}"


@step("connect")
def _():
    same(polars.read_database_uri("SELECT 1 AS a", URI, engine="connectorx")["a"].to_list(), [1])
    return polars.__version__


@step("read")
def _():
    for engine in ("connectorx", "adbc"):
        try:
            frame = polars.read_database_uri("SELECT * FROM sample ORDER BY id", URI, engine=engine)
            same(frame.columns, COLUMNS)
            same((frame["id"].to_list(), frame["name"].to_list(), frame["list"].to_list()[0]), ([1, 2], ["Grüße", ""], [1, 2, 3]))
            same(str(frame["day"][0]), "2026-11-28")
        except Exception as error:
            raise RuntimeError(f"{engine}: {error}") from error


@step("stream")
def _():
    frame = polars.read_database_uri("SELECT id, name FROM sample", URI, engine="connectorx", partition_on="id", partition_num=2)
    same(sorted(frame["id"].to_list()), [1, 2])


@step("write")
def _():
    frame = polars.DataFrame({"a": [1, 2, 3], "b": ["x", "y", None]})
    frame.write_database("written", URI, engine="adbc", if_table_exists="replace")
    frame.write_database("written", URI, engine="adbc", if_table_exists="append")
    same(polars.read_database_uri("SELECT COUNT(*) AS n FROM written", URI, engine="adbc")["n"].to_list(), [6])


@step("error")
def _():
    try:
        polars.read_database_uri("SELECT nothing", URI, engine="adbc")
    except Exception as error:
        same(getattr(error, "sqlstate", None), "42703")
    else:
        raise AssertionError("SELECT nothing works")
